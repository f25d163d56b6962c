/* conv.c: y[o][i][j] = sum of weight[o][c][u][v] * x[c][i * stride + u - pad][j * stride + v - pad]
 * over all c, u, v, + bias[o]; x is 0 beyond its border.
 *
 * Sample by sample, as a matrix product with the patches of its image: y[out][places] =
 * weight[out][patch] * columns[patch][places]. BLAS does it, but for few channels, which don't fill
 * its tiles. So the columns of one sample stay in the cache; backward makes them again, which is
 * cheaper than to fetch those of a whole batch. Without bias where a batch norm follows, which
 * would take it away again.
 * He et al. 2015, section 2.2, for the initial variance, as in dense.c.
 */
#include <cblas.h>
#include <string.h>

#include "kernels/image.h"
#include "kernels/lanes.h"
#include "kernels/narrow.h"
#include "train/layers/layers.h"

enum { WEIGHT, BIAS };

/* Up to so many channels the products of the weights are kernels/narrow.h's. Timed with 6, which
 * take half of BLAS's time, and with 16, for which the dot products take twice as long. */
enum { FEW_CHANNELS = 11 };

/* The parts of the scratch memory, in floats from its start. */
struct room {
    size_t columns;  /* [patch][places]; at last [out][patch], too */
    size_t turned;   /* [places][out]: delta of a sample; of few channels: [out][whole places] */
    size_t gradient; /* [patch][out]: of the weights, over all samples; forward: they, turned */
    size_t bias;     /* [out] */
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
    return layer->out.channels <= FEW_CHANNELS;
}

static size_t step(size_t *at, size_t floats)
{
    size_t start = *at;

    *at += (floats + 2 * IMAGE_SLACK - 1) / IMAGE_SLACK * IMAGE_SLACK; /* and room behind it */
    return start;
}

static struct room room_of(const struct layer *layer)
{
    size_t patch = patch_size(layer), places = places_of(layer), out = layer->out.channels;
    struct room room = {0};

    room.columns = step(&room.all, patch * (places > out ? places : out));
    room.turned = step(&room.all, lanes_whole(places) * out);
    room.gradient = step(&room.all, patch * out);
    room.bias = step(&room.all, out);
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

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    blasint out = (blasint)layer->out.channels, patch = (blasint)patch_size(layer);
    blasint places = (blasint)places_of(layer);
    const float *weight = pass->x + layer->at[WEIGHT], *bias = pass->x + layer->at[BIAS];
    struct room room = room_of(layer);
    float *columns = pass->scratch + room.columns, *turned = pass->scratch + room.gradient;
    struct narrow n = {(size_t)patch, (size_t)places, (size_t)out, columns};

    if (has_few(layer)) turn(turned, weight, (size_t)out, (size_t)patch);
    for (uint32_t row = 0; row < pass->rows; row++) {
        float *y = pass->output + row * shape_size(layer->out);

        take_columns(layer, pass, row, &room);
        if (has_few(layer))
            narrow_kernels_best()->across(&n, turned, y);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, out, places, patch, 1, weight,
                        patch, columns, places, 0, y, places);
        if (has_bias(layer))
            image_kernels_best()->bias(y, bias, layer->out.channels, (size_t)places, layer->relu);
    }
}

/* Adds one sample's part to gradient[patch][out]. With many channels BLAS is twice as fast on a
 * delta that is turned. */
static void add_weights(const struct layer *layer, const struct layer_pass *pass,
                        const struct room *room, const float *delta, float *gradient)
{
    size_t out = layer->out.channels, patch = patch_size(layer), places = places_of(layer);
    const float *columns = pass->scratch + room->columns;
    struct narrow n = {patch, places, out, columns};
    float *turned = pass->scratch + room->turned;

    if (!has_few(layer)) {
        turn(turned, delta, out, places);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)patch, (blasint)out,
                    (blasint)places, 1, columns, (blasint)places, turned, (blasint)out, 1, gradient,
                    (blasint)out);
        return;
    }
    for (size_t o = 0; o < out && places % LANES_COUNT != 0; o++) {
        memcpy(turned + o * lanes_whole(places), delta + o * places, places * sizeof *delta);
        memset(turned + o * lanes_whole(places) + places, 0,
               (lanes_whole(places) - places) * sizeof *delta);
    }
    narrow_kernels_best()->add_dots(&n, places % LANES_COUNT != 0 ? turned : delta, gradient);
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
    float *gradient = pass->scratch + room.gradient;

    memset(gradient, 0, patch * out * sizeof *gradient);
    for (uint32_t row = 0; row < pass->rows; row++) {
        const float *delta = pass->delta + row * shape_size(layer->out);

        take_columns(layer, pass, row, &room);
        add_weights(layer, pass, &room, delta, gradient);
        if (pass->below != NULL)
            give_back(layer, pass, &room, delta, pass->below + row * shape_size(layer->in));
    }
    turn(pass->scratch + room.columns, gradient, patch, out);
    sink_add(sink, layer->at[WEIGHT], pass->scratch + room.columns, patch * out);
    if (has_bias(layer)) add_biases(layer, pass, sink, pass->scratch + room.bias);
}

const struct layer_kind layer_conv = {"conv", plan, forward, backward};
