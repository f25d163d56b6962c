/* dataset.h: labelled samples in memory, read-only once made, shared by all who train on them.
 *
 * Images keep their bytes as read and are scaled while a batch is gathered; tables are floats.
 * Thread rule: a finished data set may be read from any thread; gather writes only into `inputs`.
 */
#ifndef PARLEY_DATA_DATASET_H
#define PARLEY_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dataset {
    uint32_t count;                   /* samples */
    uint32_t features;                /* values a sample: channels * height * width for images */
    uint32_t channels, height, width; /* 0 for tables */
    uint32_t classes;                 /* labels lie in [0, classes) */
    uint8_t *bytes;                   /* [count][features] of an image set, else NULL; owned */
    float *values;                    /* [count][features] of a table, else NULL; owned */
    uint16_t *labels;                 /* [count]; owned */
    /* value scaled = (value - shift) * scale; images: one pair; tables: [features] each; owned */
    float *shift, *scale;
};

/* Scaling to mean 0 and variance 1, measured on `set` (constant columns get scale 0). */
int dataset_measure(struct dataset *set);

/* Uses the scaling of `from` (the training set) for `set` (its test set). */
int dataset_scale_like(struct dataset *set, const struct dataset *from);

/* inputs: [n][features], scaled; labels: [n]; index: [n], each below set->count. */
void dataset_gather(const struct dataset *set, const uint32_t *index, uint32_t n, float *inputs,
                    uint16_t *labels);

void dataset_close(struct dataset *set);

#endif
