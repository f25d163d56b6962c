/* flush.h: subnormal numbers count as 0 while a training step computes.
 *
 * The momentum of a weight whose gradient has become 0 (a pixel that is seldom lit, a unit that is
 * dead) shrinks by a tenth each step, is subnormal after 830 steps, below 1.2e-38, and then never
 * reaches 0, as 0.9 times the least of them is rounded up to itself. Some processors take a hundred
 * times as long for a product with such a number: there a step of the MLP took 1,045 us after the
 * first thousand, and takes 300 so. Training loses nothing by it. Not for what two nodes must
 * compute alike (kernels/path.h), as machines differ in where it begins: optimizer_apply() has its
 * own way. What is computed between the two calls stands in memory or in functions of its own: a
 * compiler knows nothing of the mode.
 *
 * Happy path: uint64_t before = flush_begin(); ...; flush_end(before);
 * Thread rule: of the calling thread alone.
 */
#ifndef PARLEY_KERNELS_FLUSH_H
#define PARLEY_KERNELS_FLUSH_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define FLUSH_BITS 0x8040u /* what is subnormal as a result, and as an operand */

static inline uint64_t flush_mode(void)
{
    return _mm_getcsr();
}

static inline void flush_set(uint64_t mode)
{
    __asm__ __volatile__("" : : : "memory");
    _mm_setcsr((unsigned)mode);
    __asm__ __volatile__("" : : : "memory");
}
#elif defined(__aarch64__)
#define FLUSH_BITS (UINT64_C(1) << 24) /* FZ: both */

static inline uint64_t flush_mode(void)
{
    uint64_t mode;

    __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void flush_set(uint64_t mode)
{
    __asm__ __volatile__("msr fpcr, %0" : : "r"(mode) : "memory");
}
#else
#define FLUSH_BITS 0u

static inline uint64_t flush_mode(void)
{
    return 0;
}

static inline void flush_set(uint64_t mode)
{
    (void)mode;
}
#endif

/* Returns what flush_end() takes. */
static inline uint64_t flush_begin(void)
{
    uint64_t before = flush_mode();

    flush_set(before | FLUSH_BITS);
    return before;
}

static inline void flush_end(uint64_t before)
{
    flush_set(before);
}

#endif
