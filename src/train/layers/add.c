/* add.c: y = x + skip, the residual connection of He et al. 2016 ("Deep residual learning"),
 * section 3.2.
 *
 * Where x has fewer places and more channels than the skip, that is thinned out to every second
 * place (or third, ...) and its missing channels count as 0: their shortcut of kind A, section 3.3,
 * which has no parameters.
 */
#include <string.h>

#include "train/layers/layers.h"

static uint32_t stride(const struct layer *layer)
{
    return (layer->skip_in.height + layer->in.height - 1) / layer->in.height;
}

static bool same(const struct layer *layer)
{
    return shape_size(layer->in) == shape_size(layer->skip_in);
}

static const char *plan(struct layer *layer)
{
    uint32_t s = stride(layer);

    layer->out = layer->in;
    if (layer->in.channels < layer->skip_in.channels ||
        (layer->in.height - 1) * s >= layer->skip_in.height ||
        (layer->in.width - 1) * s >= layer->skip_in.width)
        return "has a residual connection between unlike shapes";
    return NULL;
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    size_t count = pass->rows * shape_size(layer->in), s = stride(layer);
    struct shape in = layer->in, from = layer->skip_in;
    float *y = pass->output;

    memcpy(y, pass->input, count * sizeof *y);
    for (size_t i = 0; same(layer) && i < count; i++)
        y[i] += pass->skip[i];
    for (uint32_t row = 0; !same(layer) && row < pass->rows; row++)
        for (size_t c = 0; c < from.channels; c++)
            for (size_t i = 0; i < in.height; i++)
                for (size_t j = 0; j < in.width; j++)
                    y[((row * in.channels + c) * in.height + i) * in.width + j] +=
                        pass->skip[((row * from.channels + c) * from.height + i * s) * from.width +
                                   j * s];
    for (size_t i = 0; layer->relu && i < count; i++)
        y[i] = y[i] < 0 ? 0 : y[i]; /* this way round NaN stays NaN */
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    size_t count = pass->rows * shape_size(layer->in), s = stride(layer);
    size_t skip_count = pass->rows * shape_size(layer->skip_in);
    struct shape in = layer->in, from = layer->skip_in;

    memcpy(pass->below, pass->delta, count * sizeof(float));
    if (same(layer)) {
        memcpy(pass->skip_delta, pass->delta, count * sizeof(float));
        return;
    }
    memset(pass->skip_delta, 0, skip_count * sizeof(float));
    for (uint32_t row = 0; row < pass->rows; row++)
        for (size_t c = 0; c < from.channels; c++)
            for (size_t i = 0; i < in.height; i++)
                for (size_t j = 0; j < in.width; j++)
                    pass->skip_delta[((row * from.channels + c) * from.height + i * s) *
                                         from.width +
                                     j * s] =
                        pass->delta[((row * in.channels + c) * in.height + i) * in.width + j];
}

const struct layer_kind layer_add = {"add", plan, forward, backward};
