/* dense.c: y[out] = x[in] * weight[in][out] + bias[out].
 *
 * Weights are stored [in][out], for then the two large products of a step (forward, and the
 * gradient of the weights) run at OpenBLAS's best speed for small batches. BLAS does the products
 * (product.c); bias and ReLU go over the output in one loop. With few outputs BLAS is slow, and
 * kernels of our own do the products of the weights (kernels/layers/narrow.h). Their gradient is
 * computed in tiles that stay in the cache until the optimizer is through with them.
 *
 * He et al. 2015, section 2.2: initial variance 2/in where a ReLU follows, 1/in where none does.
 */
#include <string.h>

#include "kernels/layers/layer.h"
#include "kernels/layers/narrow.h"
#include "train/layers/layers.h"
#include "train/layers/product.h"

enum { WEIGHT, BIAS };

static bool is_narrow(uint32_t out)
{
    return out <= NARROW_OUT_MAX;
}

static const char *plan(struct layer *layer)
{
    bool each = layer->option[DENSE_EACH] != 0;
    uint32_t in = each ? layer->in.width : (uint32_t)shape_size(layer->in);
    uint32_t out = layer->option[DENSE_OUT];

    layer->out = (struct shape){1, each ? layer->in.height : 1, out};
    layer->scratch = is_narrow(out) ? narrow_turned(in, out) : out;
    layer->takes_pixels = is_narrow(out);
    layer->tensor_count = 2;
    layer->tensors[WEIGHT] = (struct tensor_plan){.name = "weight",
                                                  .rank = 2,
                                                  .shape = {in, out},
                                                  .variance = (layer->relu ? 2.0 : 1.0) / in};
    layer->tensors[BIAS] = (struct tensor_plan){.name = "bias", .rank = 1, .shape = {out}};
    return NULL;
}

struct product dense_product(const struct layer *layer)
{
    const uint32_t *shape = layer->tensors[WEIGHT].shape;

    return (struct product){shape[0], shape[1]};
}

/* Vectors that a pass takes through the weights. */
static uint32_t vectors(const struct layer *layer, uint32_t rows)
{
    return rows * layer->out.height;
}

static struct narrow narrow_product(const struct layer *layer, const struct layer_pass *pass)
{
    struct product p = dense_product(layer);

    return (struct narrow){.rows = vectors(layer, pass->rows),
                           .in = p.in,
                           .out = p.out,
                           .x = pass->input,
                           .pixels = pass->pixels};
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    struct product p = dense_product(layer);
    struct narrow n = narrow_product(layer, pass);
    uint32_t rows = vectors(layer, pass->rows);

    if (is_narrow(p.out)) {
        narrow_kernels_best()->forward(&n, pass->x + layer->at[WEIGHT], pass->x + layer->at[BIAS],
                                       pass->scratch, pass->output, layer->relu);
        return;
    }
    product_forward(&p, rows, pass->input, pass->x + layer->at[WEIGHT], pass->output);
    layer_kernels_best()->bias(pass->output, pass->x + layer->at[BIAS], rows, p.out, layer->relu);
}

static void add_weights(const struct narrow *n, const struct product *p, uint32_t first,
                        uint32_t count, const float *delta, const struct gradient_sink *sink,
                        size_t offset)
{
    float *into = sink->into + offset;
    const float *from = sink_from(sink, offset);

    if (is_narrow(p->out)) {
        narrow_kernels_best()->weights(n, first, count, delta, sink->scale, sink->keep, from, into);
        return;
    }
    if (from != into && sink->keep != 0) /* BLAS adds to what is there */
        memcpy(into, from, (size_t)count * p->out * sizeof *into);
    product_weights(p, (uint32_t)n->rows, first, count, n->x, delta, sink->scale, sink->keep, into);
}

static void weight_gradient(const struct layer *layer, const struct layer_pass *pass,
                            const struct gradient_sink *sink)
{
    struct product p = dense_product(layer);
    struct narrow n = narrow_product(layer, pass);
    uint32_t tile_rows = product_tile(&p, vectors(layer, pass->rows));

    for (uint32_t i = 0; i < p.in; i += tile_rows) {
        uint32_t tile = p.in - i < tile_rows ? p.in - i : tile_rows;
        size_t offset = layer->at[WEIGHT] + (size_t)i * p.out;

        add_weights(&n, &p, i, tile, pass->delta, sink, offset);
        if (sink->finish != NULL) sink->finish(sink->context, offset, (size_t)tile * p.out);
    }
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    struct product p = dense_product(layer);
    uint32_t rows = vectors(layer, pass->rows);

    if (pass->below != NULL)
        product_back(&p, rows, pass->delta, pass->x + layer->at[WEIGHT], pass->below);
    weight_gradient(layer, pass, sink);
    layer_kernels_best()->sum(pass->scratch, pass->delta, rows, p.out);
    sink_add(sink, layer->at[BIAS], pass->scratch, p.out);
}

const struct layer_kind layer_dense = {"dense", plan, forward, backward};
