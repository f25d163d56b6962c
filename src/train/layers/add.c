/* add.c: y = the layer before + the skip, of one shape. No tensors. */
#include <string.h>

#include "train/layers/layers.h"

static const char *plan(struct layer *layer)
{
    layer->out = layer->in;
    return shape_size(layer->in) == shape_size(layer->skip_in) ? NULL : "adds unlike shapes";
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    const float *restrict a = pass->input, *restrict b = pass->skip;
    float *restrict y = pass->output;
    size_t count = pass->rows * shape_size(layer->in);

    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    size_t bytes = pass->rows * shape_size(layer->in) * sizeof(float);

    memcpy(pass->skip_delta, pass->delta, bytes);
    if (pass->below != NULL) memcpy(pass->below, pass->delta, bytes);
}

const struct layer_kind layer_add = {"add", plan, forward, backward};
