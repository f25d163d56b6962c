/* gradient.c: a batch through the layers one by one, and back.
 *
 * The gradient by the model's input is never computed: nobody wants it. Failure modes: memory, in
 * workspace_init. Numbers that are not finite just pass through.
 */
#include "train/gradient.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/layers/layer.h"

/* Parts start on cache lines. */
static uint64_t round_up(uint64_t floats)
{
    return (floats + LAYER_SLACK + 15) / 16 * 16;
}

/* The next part of the block; with block NULL only counts. */
static float *cut(float *block, uint64_t *used, uint64_t floats)
{
    float *part = block != NULL ? block + *used : NULL;

    *used += round_up(floats);
    return part;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Sets the pointers into the block and returns its size in floats, which is no overflow even where
 * size_t has 32 bits. */
static uint64_t lay_out(struct workspace *w, const struct model *model, uint64_t rows_max)
{
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);
    uint64_t widest = 0, scratch = 0, used = LAYER_SLACK;

    w->inputs = cut(w->block, &used, rows_max * shape_size(layers[0].in));
    for (uint32_t l = 0; l < count; l++) {
        const struct layer *layer = &layers[l];

        w->layers[l].output = cut(w->block, &used, rows_max * shape_size(layer->out));
        w->layers[l].cache = cut(w->block, &used, rows_max * layer->cache);
        if (layer->skip != LAYER_NONE)
            w->layers[l].skip_delta = cut(w->block, &used, rows_max * shape_size(layer->skip_in));
        if (l + 1 < count) widest = most(widest, shape_size(layer->out));
        scratch = most(scratch, layer->scratch);
    }
    w->deltas[0] = cut(w->block, &used, rows_max * widest);
    w->deltas[1] = cut(w->block, &used, rows_max * widest);
    w->scratch = cut(w->block, &used, scratch);
    return used;
}

int workspace_init(struct workspace *workspace, const struct model *model, uint32_t rows_max)
{
    uint32_t count;
    uint64_t floats;

    memset(workspace, 0, sizeof *workspace);
    model_layers(model, &count);
    workspace->layers = calloc(count, sizeof *workspace->layers);
    if (workspace->layers == NULL) return PARLEY_ENOMEM;
    floats = lay_out(workspace, model, rows_max);
    if (floats <= SIZE_MAX / sizeof(float))
        workspace->block = aligned_alloc(64, floats * sizeof(float));
    if (workspace->block == NULL) {
        workspace_close(workspace);
        return PARLEY_ENOMEM;
    }
    lay_out(workspace, model, rows_max);
    return 0;
}

void workspace_close(struct workspace *workspace)
{
    free(workspace->layers);
    free(workspace->block);
    memset(workspace, 0, sizeof *workspace);
}

void sink_add(const struct gradient_sink *sink, size_t offset, const float *gradient, size_t count)
{
    float *into = sink->into + offset;
    const float *from = sink_from(sink, offset);
    float scale = sink->scale, keep = sink->keep;

    if (keep == 0) { /* 0 * NaN would keep the NaN */
        memset(into, 0, count * sizeof *into);
        from = into;
    }
    KERNEL_EACH_ALONE
    for (size_t i = 0; i < count; i++)
        into[i] = keep * from[i] + scale * gradient[i];
    if (sink->finish != NULL) sink->finish(sink->context, offset, count);
}

/* What forward and backward have in common. */
static struct layer_pass pass_at(const struct workspace *w, const struct layer *layers, uint32_t l,
                                 const float *x, uint32_t rows, bool training)
{
    const struct layer *layer = &layers[l];

    return (struct layer_pass){
        .x = x,
        .rows = rows,
        .training = training,
        .input = l > 0 ? w->layers[l - 1].output : w->inputs,
        .pixels = l > 0 ? (struct pixels){0} : w->pixels,
        .skip = layer->skip != LAYER_NONE ? w->layers[layer->skip].output : NULL,
        .output = w->layers[l].output,
        .cache = w->layers[l].cache,
        .scratch = w->scratch,
        .skip_delta = w->layers[l].skip_delta,
    };
}

bool gradient_takes_pixels(const struct model *model)
{
    uint32_t count;
    const struct layer *first = model_layers(model, &count);

    return first->takes_pixels;
}

float *gradient_forward(const struct model *model, struct workspace *workspace, const float *x,
                        uint32_t rows, bool training)
{
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);

    for (uint32_t l = 0; l < count; l++) {
        const struct layer_pass pass = pass_at(workspace, layers, l, x, rows, training);

        layers[l].kind->forward(&layers[l], &pass);
    }
    return workspace->layers[count - 1].output;
}

/* What came back over the skip that begins here. */
static void add_skip(float *restrict delta, const float *restrict skip_delta, size_t count)
{
    for (size_t i = 0; i < count; i++)
        delta[i] += skip_delta[i];
}

void gradient_backward(const struct model *model, struct workspace *workspace, const float *x,
                       uint32_t rows, const struct gradient_sink *sink)
{
    uint32_t count, first = model_first_trained(model);
    const struct layer *layers = model_layers(model, &count);
    float *delta = workspace->layers[count - 1].output;

    for (uint32_t l = count; l-- > first;) {
        const struct layer *layer = &layers[l];
        struct layer_pass pass = pass_at(workspace, layers, l, x, rows, true);
        size_t floats = rows * shape_size(layer->out);

        pass.delta = delta;
        pass.below = l > first ? workspace->deltas[l % 2] : NULL;
        if (layer->skipped_to != LAYER_NONE)
            add_skip(delta, workspace->layers[layer->skipped_to].skip_delta, floats);
        if (layer->relu) layer_kernels_best()->mask(delta, pass.output, floats);
        layer->kind->backward(layer, &pass, sink);
        delta = pass.below;
    }
}
