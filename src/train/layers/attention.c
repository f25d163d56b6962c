/* attention.c: causal multi-head attention between its two projections (Vaswani et al., NeurIPS
 * 2017, sections 3.2.1 and 3.2.2).
 *
 *   for each text and head: shares = softmax over the past of (Q K^T / sqrt(size)), y = shares V
 *
 * in: [1][places][3 * width], each place's Q, K and V, each of them [heads][size]; out:
 * [1][places][width]. The shares, [heads][places][places] a row, are kept for the way back. A
 * head's products are too small for BLAS to gain by doing several at once. No tensors.
 */
#include <cblas.h>
#include <math.h>

#include "kernels/layers/causal.h"
#include "train/layers/layers.h"

static const char *plan(struct layer *layer)
{
    uint32_t heads = layer->option[ATTENTION_HEADS], places = layer->in.height;
    uint32_t width = layer->in.width / 3;

    if (width % heads != 0) return "has a width that is not a multiple of its heads";
    layer->out = (struct shape){1, places, width};
    layer->cache = (uint64_t)heads * places * places;
    layer->scratch = (uint64_t)places * places;
    return NULL;
}

/* One head of one text: where its parts begin in matrices whose rows hold all heads. */
struct head {
    size_t shares;  /* in the cache */
    size_t q, k, v; /* in the input and in the loss by it */
    size_t out;     /* in the output and in the loss by it */
    blasint places, size, width;
    float scale;
};

static struct head head_at(const struct layer *layer, uint32_t row, uint32_t number)
{
    size_t places = layer->out.height, width = layer->out.width;
    size_t heads = layer->option[ATTENTION_HEADS], size = width / heads;
    size_t q = row * places * 3 * width + number * size;

    return (struct head){
        .shares = (row * heads + number) * places * places,
        .q = q,
        .k = q + width,
        .v = q + 2 * width,
        .out = row * places * width + number * size,
        .places = (blasint)places,
        .size = (blasint)size,
        .width = (blasint)width,
        .scale = 1 / sqrtf((float)size),
    };
}

static void head_forward(const struct head *h, const struct layer_pass *pass)
{
    const float *in = pass->input;
    float *shares = pass->cache + h->shares;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->places, h->places, h->size, h->scale,
                in + h->q, 3 * h->width, in + h->k, 3 * h->width, 0, shares, h->places);
    causal_kernels_best()->forward(shares, (size_t)h->places);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->places, h->size, h->places, 1, shares,
                h->places, in + h->v, 3 * h->width, 0, pass->output + h->out, h->width);
}

static void head_backward(const struct head *h, const struct layer_pass *pass)
{
    const float *in = pass->input, *shares = pass->cache + h->shares;
    const float *delta = pass->delta + h->out;
    float *below = pass->below, *scores = pass->scratch; /* loss by the scores */

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->places, h->size, h->places, 1, shares,
                h->places, delta, h->width, 0, below + h->v, 3 * h->width);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, h->places, h->places, h->size, 1, delta,
                h->width, in + h->v, 3 * h->width, 0, scores, h->places);
    causal_kernels_best()->back(scores, shares, (size_t)h->places);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, h->places, h->size, h->places, h->scale,
                scores, h->places, in + h->k, 3 * h->width, 0, below + h->q, 3 * h->width);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, h->places, h->size, h->places, h->scale,
                scores, h->places, in + h->q, 3 * h->width, 0, below + h->k, 3 * h->width);
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    for (uint32_t row = 0; row < pass->rows; row++) {
        for (uint32_t number = 0; number < layer->option[ATTENTION_HEADS]; number++) {
            struct head head = head_at(layer, row, number);
            head_forward(&head, pass);
        }
    }
}

static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    if (pass->below == NULL) return;
    for (uint32_t row = 0; row < pass->rows; row++) {
        for (uint32_t number = 0; number < layer->option[ATTENTION_HEADS]; number++) {
            struct head head = head_at(layer, row, number);
            head_backward(&head, pass);
        }
    }
}

const struct layer_kind layer_attention = {"attention", plan, forward, backward};
