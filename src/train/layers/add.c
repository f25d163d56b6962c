/* add.c: y = x + skip, the residual connection of He et al. 2016 ("Deep residual learning"),
 * section 3.2.
 *
 * Where x has fewer places and more channels than the skip, that is thinned out to every second
 * place (or third, ...) and its missing channels count as 0: their shortcut of kind A, section 3.3,
 * which has no parameters.
 */
#include <string.h>

#include "train/layers/layers.h"

/* Of one side of the image: from the other it can't be told where that has one place left. */
static uint32_t stride(uint32_t from, uint32_t to)
{
    return (from + to - 1) / to;
}

static bool fits(uint32_t from, uint32_t to)
{
    return (to - 1) * stride(from, to) < from;
}

static bool same(const struct layer *layer)
{
    struct shape in = layer->in, from = layer->skip_in;

    return in.channels == from.channels && in.height == from.height && in.width == from.width;
}

static const char *plan(struct layer *layer)
{
    struct shape in = layer->in, from = layer->skip_in;

    layer->out = in;
    if (in.channels < from.channels || !fits(from.height, in.height) || !fits(from.width, in.width))
        return "has a residual connection between unlike shapes";
    return NULL;
}

/* Where a row of an image begins in x: that of channel c and height i. */
static size_t row_at(const struct layer *layer, size_t row, size_t c, size_t i)
{
    struct shape in = layer->in;

    return ((row * in.channels + c) * in.height + i) * in.width;
}

/* Where the one that is added to it begins in the skip. */
static size_t skip_row_at(const struct layer *layer, size_t row, size_t c, size_t i)
{
    struct shape from = layer->skip_in;

    i *= stride(from.height, layer->in.height);
    return ((row * from.channels + c) * from.height + i) * from.width;
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    size_t count = pass->rows * shape_size(layer->in);
    uint32_t step = stride(layer->skip_in.width, layer->in.width);
    float *y = pass->output;

    memcpy(y, pass->input, count * sizeof *y);
    for (size_t i = 0; same(layer) && i < count; i++)
        y[i] += pass->skip[i];
    for (uint32_t row = 0; !same(layer) && row < pass->rows; row++)
        for (size_t c = 0; c < layer->skip_in.channels; c++)
            for (size_t i = 0; i < layer->in.height; i++) {
                float *to = y + row_at(layer, row, c, i);
                const float *from = pass->skip + skip_row_at(layer, row, c, i);
                for (size_t j = 0; j < layer->in.width; j++)
                    to[j] += from[j * step];
            }
    for (size_t i = 0; layer->relu && i < count; i++)
        y[i] = y[i] < 0 ? 0 : y[i]; /* this way round NaN stays NaN */
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    size_t count = pass->rows * shape_size(layer->in);
    size_t skip_count = pass->rows * shape_size(layer->skip_in);
    uint32_t step = stride(layer->skip_in.width, layer->in.width);

    memcpy(pass->below, pass->delta, count * sizeof(float));
    if (same(layer)) {
        memcpy(pass->skip_delta, pass->delta, count * sizeof(float));
        return;
    }
    memset(pass->skip_delta, 0, skip_count * sizeof(float));
    for (uint32_t row = 0; row < pass->rows; row++)
        for (size_t c = 0; c < layer->skip_in.channels; c++)
            for (size_t i = 0; i < layer->in.height; i++) {
                float *to = pass->skip_delta + skip_row_at(layer, row, c, i);
                const float *from = pass->delta + row_at(layer, row, c, i);
                for (size_t j = 0; j < layer->in.width; j++)
                    to[j * step] = from[j];
            }
}

const struct layer_kind layer_add = {"add", plan, forward, backward};
