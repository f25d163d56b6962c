/* batch_norm.c: batch normalisation (Ioffe, Szegedy 2015, algorithms 1 and 2), per channel:
 * y = scale * (x - mean) / sqrt(variance + 1e-5) + shift.
 *
 * In training, mean and variance are those of the batch, over its samples and all places. For
 * evaluation the layer keeps running means of x ("mean") and of its square ("square") in the
 * vector, which move by a tenth towards each batch's; the variance is square - mean^2. Both are
 * means of something, and nodes' vectors are averaged: what comes out are the moments of all nodes'
 * data together, which averaged variances would not be where the means differ. They are no
 * parameters: gradients and optimizers, decay included, leave them alone. A full batch that is
 * computed in parts is normalised part by part.
 */
#include <math.h>

#include "kernels/layers/image.h"
#include "train/layers/layers.h"

#define EPSILON 1e-5
#define MOVE 0.1f

enum { SCALE, SHIFT, MEAN, SQUARE };

static const char *plan(struct layer *layer)
{
    uint32_t channels = layer->in.channels;

    layer->out = layer->in;
    layer->cache = 2 * (size_t)channels; /* of which a batch uses the first row's */
    layer->scratch = 2 * (size_t)channels;
    layer->tensor_count = 4;
    layer->tensors[SCALE] =
        (struct tensor_plan){.name = "scale", .rank = 1, .shape = {channels}, .value = 1};
    layer->tensors[SHIFT] = (struct tensor_plan){.name = "shift", .rank = 1, .shape = {channels}};
    layer->tensors[MEAN] =
        (struct tensor_plan){.name = "mean", .rank = 1, .shape = {channels}, .statistic = true};
    layer->tensors[SQUARE] = (struct tensor_plan){
        .name = "square", .rank = 1, .shape = {channels}, .value = 1, .statistic = true};
    return NULL;
}

/* What normalises channel c: mean, and 1 / deviation. */
struct moments {
    double mean, variance;
};

/* [places] of channel c of a sample. */
static size_t at(const struct layer *layer, uint32_t row, uint32_t c)
{
    return ((size_t)row * layer->in.channels + c) * layer->in.height * layer->in.width;
}

static size_t places(const struct layer *layer)
{
    return (size_t)layer->in.height * layer->in.width;
}

/* Two passes, so that a large mean costs no digits. */
static struct moments of_batch(const struct layer *layer, const struct layer_pass *pass, uint32_t c)
{
    double sums[2] = {0, 0}, squares[2] = {0, 0}, count = (double)pass->rows * places(layer);
    float shift;

    for (uint32_t row = 0; row < pass->rows; row++) {
        const float *x = pass->input + at(layer, row, c);
        image_kernels_best()->sums(sums, x, x, 0, 0, places(layer));
    }
    shift = (float)(sums[0] / count);
    for (uint32_t row = 0; row < pass->rows; row++) {
        const float *x = pass->input + at(layer, row, c);
        image_kernels_best()->sums(squares, x, x, shift, shift, places(layer));
    }
    return (struct moments){sums[0] / count, squares[1] / count};
}

static struct moments of_run(const struct layer *layer, const struct layer_pass *pass, uint32_t c)
{
    double mean = (double)pass->x[layer->at[MEAN] + c];
    double variance = (double)pass->x[layer->at[SQUARE] + c] - mean * mean;

    return (struct moments){mean, variance < 0 ? 0 : variance};
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    float *mean = pass->cache, *variance = pass->cache + layer->in.channels;

    for (uint32_t c = 0; c < layer->in.channels; c++) {
        struct moments m = pass->training ? of_batch(layer, pass, c) : of_run(layer, pass, c);
        double scale = (double)pass->x[layer->at[SCALE] + c] / sqrt(m.variance + EPSILON);
        double shift = (double)pass->x[layer->at[SHIFT] + c] - m.mean * scale;

        mean[c] = (float)m.mean;
        variance[c] = (float)m.variance;
        for (uint32_t row = 0; row < pass->rows; row++)
            image_kernels_best()->scale(pass->output + at(layer, row, c),
                                        pass->input + at(layer, row, c), (float)scale, (float)shift,
                                        places(layer), layer->relu);
    }
}

/* below of channel c; sums: of delta, and of delta * (x - mean). Section 3 of the paper:
 * below = scale / deviation * (delta - mean(delta) - x^ * mean(delta * x^)). */
static void back_channel(const struct layer *layer, const struct layer_pass *pass, uint32_t c,
                         const double sums[2])
{
    double mean = (double)pass->cache[c], variance = (double)pass->cache[layer->in.channels + c];
    double count = (double)pass->rows * places(layer), square = variance + EPSILON;
    double by_delta = (double)pass->x[layer->at[SCALE] + c] / sqrt(square);
    double by_x = -by_delta * sums[1] / (square * count);
    double shift = -by_delta * sums[0] / count - by_x * mean;

    for (uint32_t row = 0; row < pass->rows; row++)
        image_kernels_best()->blend(pass->below + at(layer, row, c),
                                    pass->delta + at(layer, row, c),
                                    pass->input + at(layer, row, c), (float)by_delta, (float)by_x,
                                    (float)shift, places(layer));
}

static void move_statistics(const struct layer *layer, const struct layer_pass *pass,
                            float *statistics, uint32_t c)
{
    float mean = pass->cache[c], variance = pass->cache[layer->in.channels + c];
    float *run = statistics + layer->at[MEAN] + c, *square = statistics + layer->at[SQUARE] + c;

    *run += MOVE * (mean - *run);
    *square += MOVE * (variance + mean * mean - *square);
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    uint32_t channels = layer->in.channels;
    float *scales = pass->scratch, *shifts = pass->scratch + channels;

    for (uint32_t c = 0; c < channels; c++) {
        double sums[2] = {0, 0}, variance = (double)pass->cache[channels + c];

        for (uint32_t row = 0; row < pass->rows; row++)
            image_kernels_best()->sums(sums, pass->delta + at(layer, row, c),
                                       pass->input + at(layer, row, c), 0, pass->cache[c],
                                       places(layer));
        scales[c] = (float)(sums[1] / sqrt(variance + EPSILON));
        shifts[c] = (float)sums[0];
        if (pass->below != NULL) back_channel(layer, pass, c, sums);
        if (sink->statistics != NULL) move_statistics(layer, pass, sink->statistics, c);
    }
    sink_add(sink, layer->at[SCALE], scales, channels);
    sink_add(sink, layer->at[SHIFT], shifts, channels);
}

const struct layer_kind layer_batch_norm = {"batch-norm", plan, forward, backward};
