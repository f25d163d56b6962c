/* gradient.h: one batch through a model, forward and back.
 *
 * Happy path: workspace_init; fill `inputs`; gradient_forward; turn the logits into their gradient
 * (loss.h); gradient_backward; ...; workspace_close.
 * Thread rule: a workspace belongs to one thread.
 */
#ifndef PARLEY_TRAIN_GRADIENT_H
#define PARLEY_TRAIN_GRADIENT_H

#include <stdbool.h>

#include "train/layer.h"
#include "train/model.h"

struct workspace {
    float *inputs;        /* [rows_max][features]; the caller writes it */
    struct pixels pixels; /* with bytes, where gradient_takes_pixels(): the inputs instead */
    /* Of each layer, [layers]: */
    struct workspace_layer {
        float *output;     /* [rows_max][out]; the last: the logits */
        float *cache;      /* [rows_max][cache] */
        float *skip_delta; /* [rows_max][skip_in], where it has a skip: loss by that */
    } * layers;            /* owned */
    float *deltas[2];      /* [rows_max][widest hidden layer]: loss by a layer's output, in turns */
    float *scratch;        /* of the layer that wants most */
    float *block;          /* all of the above; owned */
};

/* Room for batches of up to rows_max rows (at least 1). PARLEY_ENOMEM. */
PARLEY_CHECK int workspace_init(struct workspace *workspace, const struct model *model,
                                uint32_t rows_max);
void workspace_close(struct workspace *workspace);

/* Whether the model can do with bytes. */
bool gradient_takes_pixels(const struct model *model);

/* Runs `inputs` through the vector x; `training`: as gradient_backward needs it, with a batch's own
 * statistics where layers take some. Returns the logits, [rows][places][classes], which stand in
 * the workspace and may be changed in place. */
float *gradient_forward(const struct model *model, struct workspace *workspace, const float *x,
                        uint32_t rows, bool training);

/* The gradient of the loss whose derivative by the logits stands in the logits now. sink->into may
 * be x, and sink->finish may change x: each layer's weights are used before. That is how a step of
 * SGD or momentum makes no pass over memory beside its products. */
void gradient_backward(const struct model *model, struct workspace *workspace, const float *x,
                       uint32_t rows, const struct gradient_sink *sink);

#endif
