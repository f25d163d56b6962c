/* dataset.h: labelled samples in memory, read-only once made, shared by all who train on them.
 *
 * Images keep their bytes as read and are scaled while a batch is gathered; tables are floats.
 * A set is made in three moves: load, (split,) dataset_measure() or
 * dataset_scale_like(); then it may be gathered from.
 * Thread rule: a finished data set may be read from any thread; gather writes only into `inputs`
 * and `labels`.
 */
#ifndef PARLEY_DATA_DATASET_H
#define PARLEY_DATA_DATASET_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/layers/scale.h"
#include "parley/error.h"

struct dataset {
    uint32_t count;                   /* samples */
    uint32_t features;                /* values a sample: channels * height * width for images */
    uint32_t channels, height, width; /* 0 for tables */
    uint32_t classes;                 /* labels lie in [0, classes) */
    bool text;                        /* chars.h: bytes and classes are numbers of characters */
    uint8_t *bytes;                   /* [count][features] of an image set, else NULL; owned */
    float *values;                    /* [count][features] of a table, else NULL; owned */
    uint16_t *labels;                 /* [count]; owned */
    /* [count], numbers to be met, of which a mean may be far larger than what they differ by; then
     * all labels are 0 and classes is 1; or NULL; owned */
    double *targets;
    /* value scaled = (value - shift) * scale; images: one pair; tables: [features] each; owned */
    float *shift, *scale;
    float label[2]; /* the same for targets: their shift, their scale */
    /* Columns that vary, and not as floats or not once they are scaled: they carry nothing. */
    uint32_t flat, flat_first; /* how many, and the first, from 0 */
    bool label_flat;           /* targets that vary, and carry next to nothing scaled */
    /* Columns of which one value lies far from all others: how many; of the first (from 0) that
     * value, and its place in the file, from 1. */
    uint32_t far, far_first, far_sample;
    float far_value;
    uint32_t far_label; /* the place of a target that lies far from all others, from 1; 0: none */
    double far_label_value;
    size_t header_line; /* of a csv: has numbers, and is taken for a header; 0: there is none */
    /* Of a csv: that column, from 1, is taken for a label that nobody looks at, and only as it is
     * the last; 0: there is none. */
    uint32_t last_column;
    /* Values of a sparse table that were left out, as the training set has no such columns. */
    uint64_t unseen;
    uint32_t unseen_index; /* the largest of theirs, from 1 */
};

/* The i-th target, scaled. */
static inline float dataset_target(const struct dataset *set, uint32_t i)
{
    return (float)(set->targets[i] - (double)set->label[0]) * set->label[1];
}

/* The target that is scaled so. */
static inline double dataset_unscale(const struct dataset *set, float scaled)
{
    return (double)set->label[0] + (double)scaled / (double)set->label[1];
}

/* The squared error of targets for one of scaled ones. */
static inline double dataset_label_unit(const struct dataset *set)
{
    return 1 / ((double)set->label[1] * (double)set->label[1]);
}

/* What a column has in the first row, and NAN once another row has another value. */
static inline void dataset_see_value(double *first, uint32_t row, double value)
{
    if (row == 0)
        *first = value;
    else if (value != *first)
        *first = (double)NAN;
}

/* Of a table that was read: notes those as flat whose values differ by `first`, [features], and are
 * one float. */
void dataset_note_alike(struct dataset *set, const double *first);

#define DATASET_FAR 1e4

/* Before it is split: notes the columns of a table, and targets, of which one value is DATASET_FAR
 * times as far from all others as those are from each other; not where those are equal, as in a
 * sparse one. PARLEY_ENOMEM. */
PARLEY_CHECK int dataset_find_far(struct dataset *set);

/* Scaling to mean 0 and variance 1, measured on `set` (constant columns get scale 0, constant
 * targets 1; numbers of characters stay as they are); columns that vary, and have no scale that
 * is a normal float, get 0 and are counted as flat. Replaces an earlier scaling. PARLEY_EDATA if
 * the set is empty or has values that are not finite, PARLEY_ENOMEM. */
PARLEY_CHECK int dataset_measure(struct dataset *set);

/* Uses that scaling: a float each for images, [features] each for tables, which need not be
 * aligned. PARLEY_ENOMEM. */
PARLEY_CHECK int dataset_scale_by(struct dataset *set, const void *shift, const void *scale,
                                  const float label[2]);

/* Uses the scaling of `from` (the training set, measured) for `set` (its test set).
 * PARLEY_EDATA if their shapes differ, PARLEY_ENOMEM. */
PARLEY_CHECK int dataset_scale_like(struct dataset *set, const struct dataset *from);

/* Moves one sample of each ten into `held`, which need not be initialised: the test data where none
 * were given. The choice depends on the samples' positions only. Drops the scaling. PARLEY_EDATA if
 * the set has fewer than 2 samples, PARLEY_ENOMEM; then `set` is as before. */
PARLEY_CHECK int dataset_split(struct dataset *set, struct dataset *held);

/* inputs: [n][features], scaled; labels: [n]; index: [n], each below set->count. */
void dataset_gather(const struct dataset *set, const uint32_t *index, uint32_t n, float *inputs,
                    uint16_t *labels);

/* The same unscaled, of a set of bytes: to: [n][features], which the pixels point to. */
struct pixels dataset_gather_pixels(const struct dataset *set, const uint32_t *index, uint32_t n,
                                    uint8_t *to, uint16_t *labels);

/* Frees what the set owns and zeroes it; a zeroed set may be closed too. */
void dataset_close(struct dataset *set);

#endif
