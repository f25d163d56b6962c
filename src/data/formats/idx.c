/* idx.c: reads image sets in IDX format.
 *
 * Happy path: read the header (of a gzip file: inflate just that), check what it claims against
 * the limits and the file's size, take the bytes behind it; labels likewise; compare the counts.
 * Failure: wrong magic number, sizes of 0 or above the limits, a file shorter or longer than its
 * header says, gzip damage, more or fewer labels than images, a label outside the classes.
 */
#include "data/formats/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/gzip.h"

#define HEADER_SIZE(rank) (4 + 4 * (size_t)(rank))
#define RANK_MAX 3

/* Unsigned bytes (type 8) of the given rank. */
#define MAGIC(rank) (UINT32_C(0x800) + (rank))

struct reading {
    struct bytes file;
    uint32_t rank;
    uint32_t sizes[RANK_MAX];
    char *why;
    size_t why_size;
};

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int read_header(struct reading *r)
{
    uint8_t header[HEADER_SIZE(RANK_MAX)];
    size_t size = HEADER_SIZE(r->rank), got = r->file.size;
    if (gzip_is(r->file)) {
        int error = gzip_inflate(r->file, header, size, &got, r->why, r->why_size);
        if (error) return error;
    } else if (got >= size) {
        memcpy(header, r->file.data, size);
    }
    if (got < size) {
        snprintf(r->why, r->why_size, "%s: %zu bytes are too few for an IDX header of %zu",
                 r->file.name, got, size);
        return PARLEY_EDATA;
    }
    if (big_endian(header) != MAGIC(r->rank)) {
        snprintf(r->why, r->why_size,
                 "%s: the magic number at byte 0 is 0x%08" PRIx32 ", expected 0x%08" PRIx32,
                 r->file.name, big_endian(header), MAGIC(r->rank));
        return PARLEY_EDATA;
    }
    for (uint32_t i = 0; i < r->rank; i++) {
        r->sizes[i] = big_endian(header + 4 + 4 * i);
        if (r->sizes[i] == 0) {
            snprintf(r->why, r->why_size, "%s: size %" PRIu32 " of %" PRIu32 " at byte %zu is 0",
                     r->file.name, i + 1, r->rank, HEADER_SIZE(i));
            return PARLEY_EDATA;
        }
    }
    return 0;
}

static int wrong_size(const struct reading *r, uint64_t total, const char *has, uint64_t size)
{
    char what[64];
    if (r->rank == 3) {
        snprintf(what, sizeof what, "images of %" PRIu32 "x%" PRIu32, r->sizes[1], r->sizes[2]);
    } else {
        snprintf(what, sizeof what, "labels");
    }
    snprintf(r->why, r->why_size,
             "%s: header says %" PRIu32 " %s = %" PRIu64 " bytes, the file %s %" PRIu64,
             r->file.name, r->sizes[0], what, total, has, size);
    return PARLEY_EDATA;
}

/* Takes what stands behind the header, [sizes[0]][features], into *payload, the caller's to free.
 * features is at most IDX_FEATURES_MAX. */
static int read_payload(const struct reading *r, uint32_t features, uint8_t **payload)
{
    size_t header = HEADER_SIZE(r->rank);
    uint64_t total = header + (uint64_t)r->sizes[0] * features;
    bool packed = gzip_is(r->file);

    if (!packed && r->file.size != total) return wrong_size(r, total, "has", r->file.size);
    if (packed && total / GZIP_RATIO_MAX > r->file.size)
        return wrong_size(r, total, "can't hold them in", r->file.size);
    if (total > BYTES_MAX) return wrong_size(r, total, "may have", BYTES_MAX);

    /* One byte more shows a file that is too long. */
    uint8_t *all = malloc((size_t)total + 1);
    if (!all) return PARLEY_ENOMEM;
    if (packed) {
        size_t got;
        int error = gzip_inflate(r->file, all, (size_t)total + 1, &got, r->why, r->why_size);
        if (!error && got < total) error = wrong_size(r, total, "inflates to", got);
        if (!error && got > total) error = wrong_size(r, total, "inflates to more than", total);
        if (error) {
            free(all);
            return error;
        }
        memmove(all, all + header, (size_t)total - header);
    } else {
        memcpy(all, r->file.data + header, (size_t)total - header);
    }
    *payload = all;
    return 0;
}

static int load_images(struct dataset *set, struct reading *r)
{
    int error = read_header(r);
    if (error) return error;
    uint64_t features = (uint64_t)r->sizes[1] * r->sizes[2];
    if (features > IDX_FEATURES_MAX) {
        snprintf(r->why, r->why_size,
                 "%s: images of %" PRIu32 "x%" PRIu32 " at byte 8, the limit is %" PRIu32 " pixels",
                 r->file.name, r->sizes[1], r->sizes[2], IDX_FEATURES_MAX);
        return PARLEY_EDATA;
    }
    set->count = r->sizes[0];
    set->features = (uint32_t)features;
    set->channels = 1;
    set->height = r->sizes[1];
    set->width = r->sizes[2];
    return read_payload(r, set->features, &set->bytes);
}

/* set->count and set->classes (or 0) are given. */
static int load_labels(struct dataset *set, struct reading *r, const char *images)
{
    int error = read_header(r);
    if (error) return error;
    if (r->sizes[0] != set->count) {
        snprintf(r->why, r->why_size, "%s: %" PRIu32 " labels for the %" PRIu32 " images of %s",
                 r->file.name, r->sizes[0], set->count, images);
        return PARLEY_EDATA;
    }
    uint8_t *labels = NULL;
    error = read_payload(r, 1, &labels);
    if (error) return error;
    set->labels = malloc(set->count * sizeof *set->labels);
    if (!set->labels) error = PARLEY_ENOMEM;

    uint32_t largest = 0;
    for (uint32_t i = 0; !error && i < set->count; i++) {
        set->labels[i] = labels[i];
        if (labels[i] > largest) largest = labels[i];
        if (set->classes && labels[i] >= set->classes) {
            snprintf(r->why, r->why_size,
                     "%s: label %u of sample %" PRIu32 " (byte %zu), the classes are 0 to %" PRIu32,
                     r->file.name, labels[i], i, HEADER_SIZE(1) + i, set->classes - 1);
            error = PARLEY_EDATA;
        }
    }
    if (!set->classes) set->classes = largest + 1;
    free(labels);
    return error;
}

int idx_load(struct dataset *set, struct bytes images, struct bytes labels, uint32_t classes,
             char *why, size_t why_size)
{
    *set = (struct dataset){.classes = classes};
    struct reading pixels = {.file = images, .rank = 3, .why = why, .why_size = why_size};
    struct reading marks = {.file = labels, .rank = 1, .why = why, .why_size = why_size};
    int error = load_images(set, &pixels);
    if (!error && labels.data) error = load_labels(set, &marks, images.name);
    if (!error && !set->labels && !(set->labels = calloc(set->count, sizeof *set->labels)))
        error = PARLEY_ENOMEM;
    if (error == PARLEY_ENOMEM) snprintf(why, why_size, "%s: out of memory", images.name);
    if (error) dataset_close(set);
    return error;
}
