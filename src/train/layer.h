/* layer.h: what a layer of a network is, and what a kind of layers must do.
 *
 * A network is a list of layers. Each turns the activations of `rows` samples, [rows][in], into
 * [rows][out]; its input is the output of the one before it (of the first: the data), and what a
 * residual connection adds is the output of an earlier one (`skip`). A kind of layers is one file
 * in layers/ with one constant `struct layer_kind`; a network is put together in models/.
 *
 * How a kind is added:
 *   1. layers/NAME.c with plan, forward and backward; `extern const struct layer_kind layer_NAME;`
 *      in layers/layers.h; the file in src/meson.build.
 *   2. A model uses it: network_add() in a file of models/ (network.h).
 *   3. A check of its gradient in tests/unit.
 *
 * What is not a kind's business: max(0, .) on the way back (`relu`), the gradient that comes in
 * over a skip, where the gradient goes and what an optimizer makes of it (sink_add).
 *
 * An image is [channels][height][width]. A text is [1][places][width]: a row is a window, and
 * what acts on each place alone (dense, with option "each") sees rows * places vectors of `width`.
 * Tokens come in as floats with whole numbers, [1][1][places], and the first layer looks them up.
 * Thread rule: layers and kinds are constant once made; a pass belongs to one thread.
 */
#ifndef PARLEY_TRAIN_LAYER_H
#define PARLEY_TRAIN_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/layers/scale.h"
#include "parley/error.h"

#define LAYER_TENSORS_MAX 6u
#define LAYER_OPTIONS_MAX 5u
#define LAYER_NONE UINT32_MAX
#define LAYER_SLACK                                                                                \
    32u /* floats behind each array of a pass, for kernels that run over its end                   \
         */

/* The activations of one row; each at least 1. */
struct shape {
    uint32_t channels, height, width;
};

static inline size_t shape_size(struct shape shape)
{
    return (size_t)shape.channels * shape.height * shape.width;
}

/* One tensor of a layer, as its kind plans it. */
struct tensor_plan {
    const char *name;  /* "weight"; of all tensors of a layer another */
    uint32_t rank;     /* 1 to 4 */
    uint32_t shape[4]; /* outermost first; each at least 1 */
    double variance;   /* initial values are uniform around `value` with this variance; */
    float value;       /* with 0 all are `value` */
    /* A running statistic and no parameter: no gradient, no optimizer; averaged with the rest.
     * forward reads it, backward moves it in sink->statistics. */
    bool statistic;
};

struct layer {
    const struct layer_kind *kind;
    char name[20];                      /* "layer0"; of its tensors: "layer0.weight" */
    uint32_t option[LAYER_OPTIONS_MAX]; /* the kind's own, as the model gave them */
    bool relu;                          /* max(0, .) at the end of its forward pass */
    uint32_t skip;   /* number of the earlier layer whose output it takes, too; or LAYER_NONE */
    struct shape in; /* one row's */
    struct shape skip_in; /* the output of `skip`, if any */

    /* What plan() sets: */
    struct shape out;
    bool takes_pixels; /* as a model's first layer */
    /* In floats, which may be more than memory could hold: */
    uint64_t cache;   /* a row's, that forward leaves for backward */
    uint64_t scratch; /* of which nothing is kept from call to call, whatever the rows */
    uint32_t tensor_count;
    struct tensor_plan tensors[LAYER_TENSORS_MAX];

    size_t at[LAYER_TENSORS_MAX]; /* where each tensor begins in the vector, in floats */
    uint32_t skipped_to;          /* the layer that has this one as its `skip`, or LAYER_NONE */
};

/* Where a gradient goes, and what happens then. */
struct gradient_sink {
    float *into;       /* [model_trained()] = keep * from + scale * gradient */
    float scale, keep; /* keep 0: from is not read */
    /* Called for range after range of `into` as each is done, while it is in the cache and after
     * the last use of x in that range. Together they cover the vector once. May be NULL. */
    void (*finish)(void *context, size_t offset, size_t count);
    void *context;
    /* x itself: backward moves the running statistics of this batch there. NULL: they stay. */
    float *statistics;
    const float *from; /* NULL: into itself */
};

static inline const float *sink_from(const struct gradient_sink *sink, size_t offset)
{
    return (sink->from != NULL ? sink->from : sink->into) + offset;
}

/* into[offset ...] = keep * from + scale * gradient[count], and finished. `gradient` is scratch. */
void sink_add(const struct gradient_sink *sink, size_t offset, const float *gradient, size_t count);

/* One batch at one layer. */
struct layer_pass {
    const float *x; /* the whole vector */
    uint32_t rows;
    bool training;        /* backward will follow; kinds with statistics take those of the batch */
    const float *input;   /* [rows][in] */
    struct pixels pixels; /* with bytes: the input, [rows][in], which stands nowhere as floats */
    const float *skip;    /* [rows][skip_in], or NULL */
    float *output;        /* [rows][out]: forward writes it, backward reads it */
    float *cache;         /* [rows][layer->cache] */
    float *scratch;       /* [layer->scratch], on a cache line */
    float *delta;         /* backward: [rows][out], loss by the output; may be spoiled */
    float *below;         /* backward writes loss by the input, [rows][in]; NULL: nobody wants it */
    float *skip_delta;    /* backward writes loss by the skip, [rows][skip_in] */
};

struct layer_kind {
    const char *name;
    /* Fills in what plan() sets of a zeroed layer. NULL, or what is wrong: "needs images". */
    const char *(*plan)(struct layer *layer);
    void (*forward)(const struct layer *layer, const struct layer_pass *pass);
    /* Writes `below` before anything goes to the sink, which may change the weights: x may not be
     * read any more in a range once it is finished. Every tensor that is no statistic is finished
     * once. */
    void (*backward)(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink);
};

#endif
