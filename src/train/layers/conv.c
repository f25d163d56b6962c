/* conv.c: y[o][i][j] = sum of weight[o][c][u][v] * x[c][i * stride + u - pad][j * stride + v - pad]
 * over all c, u, v, + bias[o]; x is 0 beyond its border.
 *
 * Sample by sample, as a matrix product with the patches of its image: y[out][places] =
 * weight[out][patch] * columns[patch][places]. BLAS does it. So the columns of one sample stay in
 * the cache; backward makes them again, which is cheaper than to fetch those of a whole batch.
 * Few channels don't fill BLAS's tiles, and to make columns takes as long as their product. So they
 * are not made: if the output's rows are taken to be as far apart as the padded image's, a column
 * is the padded image from some place on. What is computed behind the rows' ends is left out.
 * Without bias where a batch norm follows, which would take it away again.
 * He et al. 2015, section 2.2, for the initial variance, as in dense.c.
 */
#include <cblas.h>
#include <string.h>

#include "kernels/layers/image.h"
#include "kernels/layers/lanes.h"
#include "kernels/layers/narrow.h"
#include "train/layers/layers.h"

enum { WEIGHT, BIAS };

/* Up to so many channels the products of the weights are kernels/layers/narrow.h's. Timed with 6,
 * which take half of BLAS's time, and with 16, for which the dot products take twice as long. */
enum { FEW_CHANNELS = 11 };

/* The parts of the scratch memory, in floats from its start. */
struct room {
    size_t columns; /* [patch][places]; of few channels: the padded image; at last [out][patch] */
    size_t turned; /* [places][out]: delta of a sample; of few channels: the wide output or delta */
    size_t gradient; /* [patch][out]: of the weights, over all samples; forward: they, turned */
    size_t bias;     /* [out] */
    size_t starts;   /* [patch], of uint32_t: where in the padded image each column begins */
    size_t all;
};

static bool has_bias(const struct layer *layer)
{
    return layer->option[CONV_BARE] == 0;
}

static struct patches patches_of(const struct layer *layer)
{
    return (struct patches){.channels = layer->in.channels,
                            .height = layer->in.height,
                            .width = layer->in.width,
                            .kernel = layer->option[CONV_KERNEL],
                            .stride = layer->option[CONV_STRIDE],
                            .pad = layer->option[CONV_PAD],
                            .out_height = layer->out.height,
                            .out_width = layer->out.width};
}

static size_t patch_size(const struct layer *layer)
{
    return (size_t)layer->in.channels * layer->option[CONV_KERNEL] * layer->option[CONV_KERNEL];
}

static size_t places_of(const struct layer *layer)
{
    return (size_t)layer->out.height * layer->out.width;
}

static bool has_few(const struct layer *layer)
{
    return layer->out.channels <= FEW_CHANNELS && layer->option[CONV_STRIDE] == 1;
}

/* With rows of whole lanes; and one row more, as the last columns end there. */
static struct shape padded_shape(const struct layer *layer)
{
    uint32_t pad = layer->option[CONV_PAD];

    return (struct shape){layer->in.channels, layer->in.height + 2 * pad + 1,
                          (uint32_t)lanes_whole(layer->in.width + 2 * pad)};
}

/* The output's, with rows as far apart as those of the padded image. */
static struct shape wide_shape(const struct layer *layer)
{
    return (struct shape){layer->out.channels, layer->out.height, padded_shape(layer).width};
}

static size_t step(size_t *at, size_t floats)
{
    size_t start = *at;

    *at += (floats + 2 * IMAGE_SLACK - 1) / IMAGE_SLACK * IMAGE_SLACK; /* and room behind it */
    return start;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static struct room room_of(const struct layer *layer)
{
    size_t patch = patch_size(layer), places = places_of(layer), out = layer->out.channels;
    struct room room = {0};

    room.columns =
        step(&room.all, larger(patch * larger(places, out), shape_size(padded_shape(layer))));
    room.turned = step(&room.all, larger(places * out, shape_size(wide_shape(layer))));
    room.gradient = step(&room.all, patch * out);
    room.bias = step(&room.all, out);
    room.starts = step(&room.all, patch);
    return room;
}

static const char *plan(struct layer *layer)
{
    uint32_t kernel = layer->option[CONV_KERNEL], stride = layer->option[CONV_STRIDE];
    uint32_t pad = layer->option[CONV_PAD], out = layer->option[CONV_OUT];
    uint32_t in = layer->in.channels;

    if (layer->in.height + 2 * pad < kernel || layer->in.width + 2 * pad < kernel)
        return "needs larger images";
    layer->out = (struct shape){out, (layer->in.height + 2 * pad - kernel) / stride + 1,
                                (layer->in.width + 2 * pad - kernel) / stride + 1};
    layer->scratch = room_of(layer).all;
    layer->tensor_count = has_bias(layer) ? 2 : 1;
    layer->tensors[WEIGHT] = (struct tensor_plan){.name = "weight",
                                                  .rank = 4,
                                                  .shape = {out, in, kernel, kernel},
                                                  .variance = 2.0 / (double)patch_size(layer)};
    layer->tensors[BIAS] = (struct tensor_plan){.name = "bias", .rank = 1, .shape = {out}};
    return NULL;
}

static void take_columns(const struct layer *layer, const struct layer_pass *pass, uint32_t row,
                         const struct room *room)
{
    struct patches p = patches_of(layer);

    image_kernels_best()->take(pass->scratch + room->columns,
                               pass->input + row * shape_size(layer->in), &p);
}

/* turned[columns][rows] = from[rows][columns] */
static void turn(float *restrict turned, const float *restrict from, size_t rows, size_t columns)
{
    for (size_t i = 0; i < columns; i++)
        for (size_t row = 0; row < rows; row++)
            turned[i * rows + row] = from[row * columns + i];
}

/* Each row of planes of one shape into a row of another, at `pad`; zeroes beyond its end. */
static void fit(float *restrict to, struct shape shape, const float *restrict from,
                struct shape from_shape, uint32_t pad)
{
    struct patches p = {from_shape.channels, from_shape.height, from_shape.width, 1, 1, pad,
                        shape.height,        shape.width};

    image_kernels_best()->take(to, from, &p);
}

/* ---- Of few channels ------------------------------------------------------------------------- */

/* Sets where the columns begin. */
static struct narrow columns_in_image(const struct layer *layer, const struct layer_pass *pass,
                                      const struct room *room)
{
    struct shape padded = padded_shape(layer), wide = wide_shape(layer);
    uint32_t kernel = layer->option[CONV_KERNEL];
    uint32_t *start = (uint32_t *)(void *)(pass->scratch + room->starts);

    for (uint32_t c = 0, k = 0; c < padded.channels; c++)
        for (uint32_t u = 0; u < kernel; u++)
            for (uint32_t v = 0; v < kernel; v++)
                start[k++] = (c * padded.height + u) * padded.width + v;
    return (struct narrow){.rows = patch_size(layer),
                           .in = (size_t)wide.height * wide.width,
                           .out = wide.channels,
                           .x = pass->scratch + room->columns,
                           .at = start};
}

static void take_image(const struct layer *layer, const struct layer_pass *pass, uint32_t row,
                       const struct room *room)
{
    fit(pass->scratch + room->columns, padded_shape(layer),
        pass->input + row * shape_size(layer->in), layer->in, layer->option[CONV_PAD]);
}

/* y of one sample; turned: [patch][out]. */
static void forward_few(const struct layer *layer, const struct layer_pass *pass, uint32_t row,
                        const struct room *room, const struct narrow *n)
{
    float *wide = pass->scratch + room->turned;

    take_image(layer, pass, row, room);
    narrow_kernels_best()->across(n, pass->scratch + room->gradient, wide);
    fit(pass->output + row * shape_size(layer->out), layer->out, wide, wide_shape(layer), 0);
}

/* Adds one sample's part to gradient[patch][out]. */
static void add_weights_few(const struct layer *layer, const struct layer_pass *pass, uint32_t row,
                            const struct room *room, const struct narrow *n)
{
    float *wide = pass->scratch + room->turned;

    take_image(layer, pass, row, room);
    fit(wide, wide_shape(layer), pass->delta + row * shape_size(layer->out), layer->out, 0);
    narrow_kernels_best()->add_dots(n, wide, pass->scratch + room->gradient);
}

/* ---- Of many --------------------------------------------------------------------------------- */

static void forward_many(const struct layer *layer, const struct layer_pass *pass, uint32_t row,
                         const struct room *room)
{
    blasint out = (blasint)layer->out.channels, patch = (blasint)patch_size(layer);
    blasint places = (blasint)places_of(layer);

    take_columns(layer, pass, row, room);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, out, places, patch, 1,
                pass->x + layer->at[WEIGHT], patch, pass->scratch + room->columns, places, 0,
                pass->output + row * shape_size(layer->out), places);
}

/* Adds one sample's part to gradient[patch][out]. BLAS is twice as fast on a delta that is turned.
 */
static void add_weights_many(const struct layer *layer, const struct layer_pass *pass, uint32_t row,
                             const struct room *room)
{
    blasint out = (blasint)layer->out.channels, patch = (blasint)patch_size(layer);
    blasint places = (blasint)places_of(layer);
    float *turned = pass->scratch + room->turned;

    take_columns(layer, pass, row, room);
    turn(turned, pass->delta + row * shape_size(layer->out), (size_t)out, (size_t)places);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, patch, out, places, 1,
                pass->scratch + room->columns, places, turned, out, 1,
                pass->scratch + room->gradient, out);
}

/* ---- Of all ---------------------------------------------------------------------------------- */

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    const float *weight = pass->x + layer->at[WEIGHT], *bias = pass->x + layer->at[BIAS];
    size_t patch = patch_size(layer), out = layer->out.channels;
    struct room room = room_of(layer);
    struct narrow n = columns_in_image(layer, pass, &room);

    if (has_few(layer)) turn(pass->scratch + room.gradient, weight, out, patch);
    for (uint32_t row = 0; row < pass->rows; row++) {
        if (has_few(layer))
            forward_few(layer, pass, row, &room, &n);
        else
            forward_many(layer, pass, row, &room);
        if (has_bias(layer))
            image_kernels_best()->bias(pass->output + row * shape_size(layer->out), bias, out,
                                       places_of(layer), layer->relu);
    }
}

/* below of one sample. */
static void give_back(const struct layer *layer, const struct layer_pass *pass,
                      const struct room *room, const float *delta, float *below)
{
    blasint out = (blasint)layer->out.channels, patch = (blasint)patch_size(layer);
    blasint places = (blasint)places_of(layer);
    struct patches p = patches_of(layer);
    float *columns = pass->scratch + room->columns;

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, patch, places, out, 1,
                pass->x + layer->at[WEIGHT], patch, delta, places, 0, columns, places);
    image_kernels_best()->give(below, columns, &p);
}

static void add_biases(const struct layer *layer, const struct layer_pass *pass,
                       const struct gradient_sink *sink, float *sums)
{
    size_t places = places_of(layer), out = layer->out.channels;

    for (size_t o = 0; o < out; o++) {
        double sum[2] = {0, 0};

        for (uint32_t row = 0; row < pass->rows; row++) {
            const float *delta = pass->delta + (row * out + o) * places;
            image_kernels_best()->sums(sum, delta, delta, 0, 0, places);
        }
        sums[o] = (float)sum[0];
    }
    sink_add(sink, layer->at[BIAS], sums, out);
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    size_t patch = patch_size(layer), out = layer->out.channels;
    struct room room = room_of(layer);
    struct narrow n = columns_in_image(layer, pass, &room);
    float *gradient = pass->scratch + room.gradient;

    memset(gradient, 0, patch * out * sizeof *gradient);
    for (uint32_t row = 0; row < pass->rows; row++) {
        if (has_few(layer))
            add_weights_few(layer, pass, row, &room, &n);
        else
            add_weights_many(layer, pass, row, &room);
        if (pass->below != NULL)
            give_back(layer, pass, &room, pass->delta + row * shape_size(layer->out),
                      pass->below + row * shape_size(layer->in));
    }
    turn(pass->scratch + room.columns, gradient, patch, out);
    sink_add(sink, layer->at[WEIGHT], pass->scratch + room.columns, patch * out);
    if (has_bias(layer)) add_biases(layer, pass, sink, pass->scratch + room.bias);
}

const struct layer_kind layer_conv = {"conv", plan, forward, backward};
