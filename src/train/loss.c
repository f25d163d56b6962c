/* loss.c: softmax and cross-entropy.
 *
 * Happy path: take the greatest logit off each row, so that nothing overflows; exponentiate all
 * rows in one flat loop, which vectorises where a row of ten would not; divide by the row's sum.
 * The logarithm is taken of products of many sums, as it costs more than all else of a row.
 * Failure modes: NaN or +infinity in a row makes the loss NaN, which is what the caller looks for.
 */
#include "train/loss.h"

#include <math.h>
#include <stddef.h>

#include "kernels/layers/layer.h"

/* A sum is at most the number of classes: one more factor is no overflow. */
#define PRODUCT_MAX 1e250

double loss_gradient(float *logits, const uint16_t *labels, uint32_t rows, uint32_t classes)
{
    double loss = 0, product = 1;

    for (uint32_t row = 0; row < rows; row++) {
        float *z = logits + (size_t)row * classes;
        float max = z[0];

        for (uint32_t c = 1; c < classes; c++)
            max = z[c] > max ? z[c] : max;
        for (uint32_t c = 0; c < classes; c++)
            z[c] -= max;
        loss -= (double)z[labels[row]];
    }
    layer_kernels_best()->exp(logits, (size_t)rows * classes);
    for (uint32_t row = 0; row < rows; row++) {
        float *z = logits + (size_t)row * classes;
        float sum = 0, inverse;

        for (uint32_t c = 0; c < classes; c++)
            sum += z[c];
        inverse = 1 / sum;
        for (uint32_t c = 0; c < classes; c++)
            z[c] *= inverse;
        z[labels[row]] -= 1;
        product *= (double)sum;
        if (product > PRODUCT_MAX) {
            loss += log(product);
            product = 1;
        }
    }
    return loss + log(product);
}

uint32_t loss_best(const float *logits, uint32_t classes)
{
    uint32_t best = 0;

    for (uint32_t c = 1; c < classes; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

uint32_t loss_hits(const float *logits, const uint16_t *labels, uint32_t rows, uint32_t classes)
{
    uint32_t hits = 0;

    for (uint32_t row = 0; row < rows; row++) {
        const float *z = logits + (size_t)row * classes;
        uint32_t best = loss_best(z, classes);

        hits += best == labels[row] && !isnan(z[best]); /* NaN predicts nothing */
    }
    return hits;
}

double loss_square(float *y, const float *targets, uint32_t rows)
{
    double loss = 0;

    for (uint32_t row = 0; row < rows; row++) {
        double d = (double)y[row] - (double)targets[row];

        loss += d * d;
        y[row] = (float)(2 * d);
    }
    return loss;
}
