/* product.h: the three matrix products of a dense layer, in blocks that BLAS does fast.
 *
 * Batches are small, so OpenBLAS would spend a good part of the time on copying its operands into
 * its own order. Its kernels for AVX-512 work on products of up to 10^6 multiplications as they
 * stand; so larger ones are cut into such blocks. At 784-256-128-10 and batch 32 that takes a step
 * of SGD from 350 us to 250, with momentum from 380 to 310; where there are no such kernels (AVX2),
 * it costs 3 %.
 * Where rows are many (a text has one for each place), it is the other way round: the copies are
 * soon earned back, and blocks cost a third.
 * Thread rule: pure.
 */
#ifndef PARLEY_TRAIN_LAYERS_PRODUCT_H
#define PARLEY_TRAIN_LAYERS_PRODUCT_H

#include <stdint.h>

/* The sizes of weight[in][out]. */
struct product {
    uint32_t in, out;
};

struct layer;

/* Those of a dense layer; its weights are at layer->at[0]. */
struct product dense_product(const struct layer *layer);

/* y[rows][out] = input[rows][in] * weight[in][out] */
void product_forward(const struct product *p, uint32_t rows, const float *input,
                     const float *weight, float *y);

/* below[rows][in] = delta[rows][out] * weight[in][out], transposed */
void product_back(const struct product *p, uint32_t rows, const float *delta, const float *weight,
                  float *below);

/* How many rows of the weights product_weights() shall do at a time: they stay in the cache
 * until they are finished. */
uint32_t product_tile(const struct product *p, uint32_t rows);

/* For weight rows first .. first + count - 1 of [in][out]:
 * into[count][out] = keep * into + scale * (input[rows][in], transposed, * delta[rows][out]) */
void product_weights(const struct product *p, uint32_t rows, uint32_t first, uint32_t count,
                     const float *input, const float *delta, float scale, float keep, float *into);

#endif
