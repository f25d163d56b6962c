/* model.h: layers as named tensors in one flat vector (see trainer.h for the way in). */
#ifndef PARLEY_TRAIN_MODEL_H
#define PARLEY_TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* One named tensor inside the flat vector. */
struct tensor {
    char name[32];
    uint32_t rank;     /* 1 to 4 */
    uint32_t shape[4]; /* outermost first */
    size_t offset;     /* in floats from the vector's start */
    size_t count;      /* product of the shape */
};

struct model; /* opaque, immutable once made */

/* features and classes come from the data. PARLEY_EUSAGE with why, PARLEY_ENOMEM. */
int model_new(struct model **model, const char *spec, uint32_t features, uint32_t classes,
              char *why, size_t why_size);
size_t model_parameters(const struct model *model);
const struct tensor *model_tensors(const struct model *model, uint32_t *count);
const char *model_spec(const struct model *model); /* in its normal form */
/* 64 bits over names, shapes and dtype: equal on all nodes of a cluster. */
uint64_t model_digest(const struct model *model);
void model_free(struct model *model);

#endif
