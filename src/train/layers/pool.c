/* pool.c: the greatest of each 2 x 2 places of a channel, and the mean of all places of one.
 *
 * On the way back, the first of the greatest gets all; each place gets its part of the mean. */
#include "kernels/layers/image.h"
#include "train/layers/layers.h"

static const char *plan_max(struct layer *layer)
{
    layer->out = (struct shape){layer->in.channels, layer->in.height / 2, layer->in.width / 2};
    return layer->out.height > 0 && layer->out.width > 0 ? NULL : "needs larger images";
}

static size_t planes(const struct layer *layer, const struct layer_pass *pass)
{
    return (size_t)pass->rows * layer->in.channels;
}

static size_t plane(struct shape shape)
{
    return (size_t)shape.height * shape.width;
}

static void forward_max(const struct layer *layer, const struct layer_pass *pass)
{
    size_t in = plane(layer->in), out = plane(layer->out);

    for (size_t p = 0; p < planes(layer, pass); p++)
        image_kernels_best()->pool(pass->output + p * out, pass->input + p * in, layer->in.height,
                                   layer->in.width);
}

static void backward_max(const struct layer *layer, const struct layer_pass *pass,
                         const struct gradient_sink *sink)
{
    size_t in = plane(layer->in), out = plane(layer->out);

    for (size_t p = 0; p < planes(layer, pass); p++)
        image_kernels_best()->unpool(pass->below + p * in, pass->delta + p * out,
                                     pass->input + p * in, pass->output + p * out, layer->in.height,
                                     layer->in.width);
}

static const char *plan_mean(struct layer *layer)
{
    layer->out = (struct shape){layer->in.channels, 1, 1};
    return NULL;
}

static void forward_mean(const struct layer *layer, const struct layer_pass *pass)
{
    size_t in = plane(layer->in);

    for (size_t p = 0; p < planes(layer, pass); p++) {
        const float *x = pass->input + p * in;
        double sums[2] = {0, 0};

        image_kernels_best()->sums(sums, x, x, 0, 0, in);
        pass->output[p] = (float)(sums[0] / (double)in);
    }
}

static void backward_mean(const struct layer *layer, const struct layer_pass *pass,
                          const struct gradient_sink *sink)
{
    size_t in = plane(layer->in);

    for (size_t p = 0; p < planes(layer, pass); p++)
        for (size_t i = 0; i < in; i++)
            pass->below[p * in + i] = pass->delta[p] / (float)in;
}

const struct layer_kind layer_max_pool = {"max-pool", plan_max, forward_max, backward_max};
const struct layer_kind layer_mean_pool = {"mean-pool", plan_mean, forward_mean, backward_mean};
