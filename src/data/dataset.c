/* dataset.c: scaling, splitting and gathering of samples.
 *
 * Happy path: a loader fills a set; dataset_measure learns its scaling; dataset_gather copies the
 * samples of a batch, scaled, into the trainer's input matrix.
 * Failure: no memory; an empty set; values that are not finite; a test set of another shape.
 */
#include "data/dataset.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/layers/scale.h"

/* By how many deviations targets may lie beside 0 as their mean is no float: a bias learns that. */
#define LABEL_OFF_MAX 8.0

/* Gives `set` an uninitialised scaling of n pairs instead of the one it has. */
static int scaling_new(struct dataset *set, size_t n)
{
    float *shift = malloc(n * sizeof *shift);
    float *scale = malloc(n * sizeof *scale);
    if (!shift || !scale) {
        free(shift);
        free(scale);
        return PARLEY_ENOMEM;
    }
    free(set->shift);
    free(set->scale);
    set->shift = shift;
    set->scale = scale;
    return 0;
}

static float inverse_deviation(double variance)
{
    /* A constant column carries nothing: 0 takes it out. Its variance is 0 exactly, as a double
     * sums half a billion equal floats without rounding. */
    float scale = variance > 0 ? (float)(1 / sqrt(variance)) : 0;
    return isnormal(scale) ? scale : 0;
}

/* How often each byte is there. Counted in four lists in turn: where neighbours are alike, as in
 * most images, one count would have to wait for the other. */
static void count_bytes(uint64_t histogram[256], const uint8_t *bytes, size_t total)
{
    uint64_t lists[4][256] = {{0}};
    size_t i = 0;
    for (; i + 4 <= total; i += 4)
        for (int k = 0; k < 4; k++)
            lists[k][bytes[i + k]]++;
    for (; i < total; i++)
        lists[0][bytes[i]]++;
    for (int v = 0; v < 256; v++)
        histogram[v] = lists[0][v] + lists[1][v] + lists[2][v] + lists[3][v];
}

/* Exact: the sums over a histogram of bytes are integers below 2^63. */
static int measure_images(struct dataset *set)
{
    uint64_t histogram[256];
    size_t total = (size_t)set->count * set->features;
    count_bytes(histogram, set->bytes, total);

    double mean = 0, variance = 0;
    for (int v = 0; v < 256; v++)
        mean += (double)histogram[v] * v;
    mean /= (double)total;
    for (int v = 0; v < 256; v++)
        variance += (double)histogram[v] * (v - mean) * (v - mean);
    variance /= (double)total;

    int error = scaling_new(set, 1);
    if (error) return error;
    set->shift[0] = (float)mean;
    set->scale[0] = inverse_deviation(variance);
    return 0;
}

/* Of values[count][features]; mean, variance: [features], zeroes. Row by row, as the memory lies;
 * two passes, so that a large mean costs no digits. PARLEY_EDATA if a value is not finite. */
static int moments(const float *values, size_t count, size_t features, double *mean,
                   double *variance)
{
    int error = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t f = 0; f < features; f++)
            mean[f] += values[i * features + f];
    for (size_t f = 0; f < features; f++) {
        mean[f] /= count;
        if (!isfinite(mean[f])) error = PARLEY_EDATA;
    }
    if (error) return error;
    for (size_t i = 0; i < count; i++) {
        for (size_t f = 0; f < features; f++) {
            double d = values[i * features + f] - mean[f];
            variance[f] += d * d;
        }
    }
    for (size_t f = 0; f < features; f++)
        variance[f] /= count;
    return 0;
}

static void note_flat(struct dataset *set, uint32_t column)
{
    if (set->flat == 0 || column < set->flat_first) set->flat_first = column;
    set->flat++;
}

static int measure_table(struct dataset *set)
{
    size_t features = set->features;
    double *mean = calloc(2 * features, sizeof *mean);
    if (!mean) return PARLEY_ENOMEM;
    double *variance = mean + features;

    int error = moments(set->values, set->count, features, mean, variance);
    if (!error) error = scaling_new(set, features);
    for (uint32_t f = 0; !error && f < features; f++) {
        set->shift[f] = (float)mean[f];
        set->scale[f] = inverse_deviation(variance[f]);
        if (variance[f] > 0 && set->scale[f] == 0) note_flat(set, f);
    }
    free(mean);
    return error;
}

static int measure_text(struct dataset *set)
{
    int error = scaling_new(set, 1);
    if (error) return error;
    set->shift[0] = 0;
    set->scale[0] = 1;
    return 0;
}

/* A network starts near 0 and moves by steps of a size of its own: it learns numbers best that lie
 * around 0 and are about 1. The mean is taken off as the float that a model's file has. */
static int measure_targets(struct dataset *set)
{
    double mean = 0, variance = 0;
    bool varies = false; /* of equal ones a rounded mean may tell otherwise */
    for (uint32_t i = 0; i < set->count; i++) {
        mean += set->targets[i];
        varies = varies || set->targets[i] != set->targets[0];
    }
    mean /= set->count;
    if (!isfinite((float)mean)) return PARLEY_EDATA;
    for (uint32_t i = 0; i < set->count; i++) {
        double d = set->targets[i] - mean;
        variance += d * d;
    }
    float scale = varies ? inverse_deviation(variance / set->count) : 0;
    set->label[0] = (float)mean;
    set->label[1] = scale > 0 ? scale : 1;
    double off = fabs(mean - (double)set->label[0]) * (double)scale;
    set->label_flat = varies && (scale == 0 || off > LABEL_OFF_MAX);
    return 0;
}

int dataset_measure(struct dataset *set)
{
    if (set->count == 0 || set->features == 0) return PARLEY_EDATA;
    if (set->text) return measure_text(set);
    int error = set->bytes ? measure_images(set) : measure_table(set);
    if (!error && set->targets) error = measure_targets(set);
    return error;
}

int dataset_scale_by(struct dataset *set, const void *shift, const void *scale,
                     const float label[2])
{
    size_t n = set->bytes ? 1 : set->features;
    int error = scaling_new(set, n);
    if (error) return error;
    memcpy(set->label, label, sizeof set->label);
    memcpy(set->shift, shift, n * sizeof *set->shift);
    memcpy(set->scale, scale, n * sizeof *set->scale);
    return 0;
}

int dataset_scale_like(struct dataset *set, const struct dataset *from)
{
    assert(from->shift && from->scale);
    if (set->features != from->features || !set->bytes != !from->bytes) return PARLEY_EDATA;
    if (set->channels != from->channels || set->height != from->height) return PARLEY_EDATA;
    return dataset_scale_by(set, from->shift, from->scale, from->label);
}

enum { HELD_PARTS = 10 };

/* One of each HELD_PARTS neighbours, drawn by hashing the number of their group; where the last
 * group is the only one, its last sample. */
static bool is_held(uint32_t i, uint32_t count)
{
    if (count < HELD_PARTS) return i == count - 1;
    return rng_mix(i / HELD_PARTS + UINT64_C(1)) % HELD_PARTS == i % HELD_PARTS;
}

static void copy_sample(struct dataset *to, uint32_t k, const struct dataset *from, uint32_t i)
{
    size_t features = from->features;
    to->labels[k] = from->labels[i];
    if (from->targets) to->targets[k] = from->targets[i];
    if (from->bytes) {
        memmove(to->bytes + k * features, from->bytes + i * features, features);
    } else {
        memmove(to->values + k * features, from->values + i * features,
                features * sizeof *to->values);
    }
}

int dataset_split(struct dataset *set, struct dataset *held)
{
    if (set->count < 2) return PARLEY_EDATA;
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        count += is_held(i, set->count);

    size_t values = (size_t)count * set->features;
    *held = *set;
    held->shift = held->scale = NULL;
    held->count = count;
    held->labels = malloc(count * sizeof *held->labels);
    held->targets = set->targets ? malloc(count * sizeof *held->targets) : NULL;
    held->bytes = set->bytes ? malloc(values) : NULL;
    held->values = set->bytes ? NULL : malloc(values * sizeof *held->values);
    if (!held->labels || (set->targets && !held->targets) || (!held->bytes && !held->values)) {
        dataset_close(held);
        return PARLEY_ENOMEM;
    }
    uint32_t kept = 0, out = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (is_held(i, set->count))
            copy_sample(held, out++, set, i);
        else
            copy_sample(set, kept++, set, i);
    }
    set->count = kept;
    free(set->shift);
    free(set->scale);
    set->shift = set->scale = NULL;
    return 0;
}

void dataset_note_alike(struct dataset *set, const double *first)
{
    for (uint32_t f = 0; f < set->features; f++) {
        const float *value = set->values + f;
        uint32_t i = 1;
        if (!isnan(first[f])) continue;
        while (i < set->count && value[(size_t)i * set->features] == *value)
            i++;
        if (i == set->count) note_flat(set, f);
    }
}

/* The two least and the two greatest values of a column, and where the outer ones stand. */
struct ends {
    double low, low2, high2, high;
    uint32_t low_at, high_at;
};

static const struct ends no_ends = {INFINITY, INFINITY, -INFINITY, -INFINITY, 0, 0};

static void see(struct ends *ends, double value, uint32_t at)
{
    if (value > ends->high) {
        ends->high2 = ends->high;
        ends->high = value;
        ends->high_at = at;
    } else if (value > ends->high2)
        ends->high2 = value;
    if (value < ends->low) {
        ends->low2 = ends->low;
        ends->low = value;
        ends->low_at = at;
    } else if (value < ends->low2)
        ends->low2 = value;
}

static bool lies_far(double value, double nearest, double farthest)
{
    double between = fabs(farthest - nearest);
    return between > 0 && fabs(value - nearest) > DATASET_FAR * between;
}

/* The place of the end that lies far from all others, from 1; 0: neither does. */
static uint32_t find_far(const struct ends *e, double *value)
{
    bool above = lies_far(e->high, e->high2, e->low);
    if (!above && !lies_far(e->low, e->low2, e->high)) return 0;
    *value = above ? e->high : e->low;
    return 1 + (above ? e->high_at : e->low_at);
}

static void find_far_label(struct dataset *set)
{
    struct ends ends = no_ends;
    for (uint32_t i = 0; i < set->count; i++)
        see(&ends, set->targets[i], i);
    set->far_label = find_far(&ends, &set->far_label_value);
}

int dataset_find_far(struct dataset *set)
{
    if (set->count < 3) return 0;
    if (set->targets) find_far_label(set);
    if (!set->values) return 0;
    struct ends *ends = malloc(set->features * sizeof *ends);
    if (!ends) return PARLEY_ENOMEM;
    for (uint32_t f = 0; f < set->features; f++)
        ends[f] = no_ends;
    const float *value = set->values;
    for (uint32_t i = 0; i < set->count; i++)
        for (uint32_t f = 0; f < set->features; f++)
            see(&ends[f], (double)*value++, i);
    for (uint32_t f = 0; f < set->features; f++) {
        double far;
        uint32_t at = find_far(&ends[f], &far);
        if (at == 0 || set->far++ > 0) continue;
        set->far_first = f;
        set->far_sample = at;
        set->far_value = (float)far;
    }
    free(ends);
    return 0;
}

enum { AHEAD = 4, LINE = 64 };

static inline __attribute__((always_inline)) void prefetch(const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        __builtin_prefetch(from + i);
}

/* The bytes of sample index[i]; those of later ones are on their way. */
static const uint8_t *bytes_of(const struct dataset *set, const uint32_t *index, uint32_t i,
                               uint32_t n)
{
    size_t features = set->features;
    if (i + AHEAD < n) prefetch(set->bytes + index[i + AHEAD] * features, features);
    return set->bytes + index[i] * features;
}

void dataset_gather(const struct dataset *set, const uint32_t *index, uint32_t n, float *inputs,
                    uint16_t *labels)
{
    assert(set->shift && set->scale);
    size_t features = set->features;
    for (uint32_t i = 0; i < n; i++) {
        assert(index[i] < set->count);
        float *to = inputs + i * features;
        if (set->bytes)
            scale_bytes(bytes_of(set, index, i, n), to, features, set->shift[0], set->scale[0]);
        else
            scale_floats(set->values + index[i] * features, to, features, set->shift, set->scale);
        labels[i] = set->labels[index[i]];
    }
}

struct pixels dataset_gather_pixels(const struct dataset *set, const uint32_t *index, uint32_t n,
                                    uint8_t *to, uint16_t *labels)
{
    assert(set->bytes && set->shift && set->scale);
    for (uint32_t i = 0; i < n; i++) {
        assert(index[i] < set->count);
        memcpy(to + (size_t)i * set->features, bytes_of(set, index, i, n), set->features);
        labels[i] = set->labels[index[i]];
    }
    return (struct pixels){to, set->shift[0], set->scale[0]};
}

void dataset_close(struct dataset *set)
{
    free(set->bytes);
    free(set->values);
    free(set->labels);
    free(set->targets);
    free(set->shift);
    free(set->scale);
    *set = (struct dataset){0};
}
