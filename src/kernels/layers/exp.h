/* exp.h: e to a power, inside other kernels' loops.
 *
 * Own code because libm's does not vectorise, and rounds in different ways on different machines.
 * Thread rule: pure.
 */
#ifndef PARLEY_KERNELS_EXP_H
#define PARLEY_KERNELS_EXP_H

#include <stdint.h>
#include <string.h>

#include "kernels/path.h"

/* For x at most 0: within 2 ulp down to -87 and 1.6e-38 below; NaN stays NaN. */
KERNEL_BODY float exp_of(float x)
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

#endif
