/* gradient.h: one batch through a model, forward and back.
 *
 * Happy path: workspace_init; fill `inputs`; gradient_forward; turn the logits into their gradient
 * (loss.h); gradient_backward; ...; workspace_close.
 * Thread rule: a workspace belongs to one thread.
 */
#ifndef PARLEY_TRAIN_GRADIENT_H
#define PARLEY_TRAIN_GRADIENT_H

#include "train/model.h"

struct workspace {
    float *inputs;                        /* [rows_max][features]; the caller writes it */
    float *outputs[MODEL_HIDDEN_MAX + 1]; /* [rows_max][out] of each layer; the last: the logits */
    float *deltas[2]; /* [rows_max][widest hidden layer]: loss by a layer's output, in turns */
    float *sums;      /* [widest layer]: of a delta over the rows */
    float *block;     /* all of the above; owned */
};

/* Room for batches of up to rows_max rows (at least 1). PARLEY_ENOMEM. */
PARLEY_CHECK int workspace_init(struct workspace *workspace, const struct model *model,
                                uint32_t rows_max);
void workspace_close(struct workspace *workspace);

/* Runs `inputs` through the parameters x. Returns the logits, [rows][classes], which stand in the
 * workspace and may be changed in place. */
float *gradient_forward(const struct model *model, struct workspace *workspace, const float *x,
                        uint32_t rows);

/* Where a gradient goes, and what happens then. */
struct gradient_sink {
    float *into;       /* [model_parameters()] = keep * into + scale * gradient */
    float scale, keep; /* keep 0: into is not read */
    /* Called for range after range of `into` as each is done, while it is in the cache and after
     * the last use of x in that range. Together they cover the vector once. May be NULL. */
    void (*finish)(void *context, size_t offset, size_t count);
    void *context;
};

/* The gradient of the loss whose derivative by the logits stands in the logits now. sink->into may
 * be x, and sink->finish may change x: each layer's weights are used before. That is how a step of
 * SGD or momentum makes no pass over memory beside its products. */
void gradient_backward(const struct model *model, struct workspace *workspace, const float *x,
                       uint32_t rows, const struct gradient_sink *sink);

#endif
