/* loss.c: softmax and cross-entropy.
 *
 * Happy path: take the greatest logit off each row, so that nothing overflows; exponentiate all
 * rows in one flat loop, which vectorises where a row of ten would not; divide by the row's sum.
 * Failure modes: NaN or +infinity in a row makes the loss NaN, which is what the caller looks for.
 */
#include "train/loss.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* exp(x) for x <= 0, within 2 ulp down to -87 and 1.6e-38 below; NaN stays NaN. Own code because
 * libm's does not vectorise, and rounds in different ways on different machines. */
static inline float exp_of_negative(float x)
{
    const float shifter = 0x1.8p23f; /* adding it leaves an integer in the low bits */
    float t = x < -87.0f ? -87.0f : x;
    float shifted = t * 0x1.715476p0f + shifter; /* log2(e) */
    float whole = shifted - shifter;
    float r = (t - whole * 0x1.62ep-1f) - whole * 0x1.0bfbe8p-15f; /* ln 2 in two parts */
    float power;
    uint32_t bits;
    float p = 1.0f / 5040;

    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127u) << 23; /* 2^whole; what the shifter left above falls out */
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

double loss_gradient(float *logits, const uint16_t *labels, uint32_t rows, uint32_t classes)
{
    size_t count = (size_t)rows * classes;
    double loss = 0;

    for (uint32_t row = 0; row < rows; row++) {
        float *z = logits + (size_t)row * classes;
        float max = z[0];

        for (uint32_t c = 1; c < classes; c++)
            max = z[c] > max ? z[c] : max;
        for (uint32_t c = 0; c < classes; c++)
            z[c] -= max;
        loss -= (double)z[labels[row]];
    }
    for (size_t i = 0; i < count; i++)
        logits[i] = exp_of_negative(logits[i]);
    for (uint32_t row = 0; row < rows; row++) {
        float *z = logits + (size_t)row * classes;
        float sum = 0, inverse;

        for (uint32_t c = 0; c < classes; c++)
            sum += z[c];
        inverse = 1 / sum;
        for (uint32_t c = 0; c < classes; c++)
            z[c] *= inverse;
        z[labels[row]] -= 1;
        loss += log((double)sum);
    }
    return loss;
}

uint32_t loss_hits(const float *logits, const uint16_t *labels, uint32_t rows, uint32_t classes)
{
    uint32_t hits = 0;

    for (uint32_t row = 0; row < rows; row++) {
        const float *z = logits + (size_t)row * classes;
        uint32_t best = 0;

        for (uint32_t c = 1; c < classes; c++)
            if (z[c] > z[best]) best = c;
        hits += best == labels[row] && !isnan(z[best]); /* NaN predicts nothing */
    }
    return hits;
}
