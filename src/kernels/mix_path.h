/* mix_path.h: the sums of mix.c for one path; included by kernels/paths.h.
 *
 * All MIX_LANES sums stay in registers: floats are taken half a register at a time, which fills one
 * as doubles. The square of an fp32 is exact in fp64, so fusing it with the sum would change no
 * bit.
 */
#define INNER TARGET static inline __attribute__((always_inline))
#define HALF (LANES / 2)
#define SUMS (MIX_LANES / HALF)

/* Of variables whose address is taken: see image_path.h. */
#define OWN _Alignas(LANES * 4)

typedef float NAME(narrow) __attribute__((vector_size(HALF * 4), aligned(4), may_alias));
typedef float NAME(lanes) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef double NAME(wide) __attribute__((vector_size(HALF * 8), aligned(8), may_alias));
#define narrow NAME(narrow)
#define wide NAME(wide)
#define lanes NAME(lanes)

/* sq, sum: [SUMS] */
INNER void NAME(gap_block)(wide *sq, wide *sum, float *d, const float *theirs, const float *ours)
{
    for (size_t j = 0; j < MIX_BLOCK; j += MIX_LANES) {
        MIX_UNROLL
        for (size_t i = 0; i < SUMS; i++) {
            size_t at = j + i * HALF;
            narrow delta = *(const narrow *)(theirs + at) - *(const narrow *)(ours + at);
            wide exact = __builtin_convertvector(delta, wide);

            will_read(theirs, at);
            will_read(ours, at);
            if (d) {
                will_write(d, at);
                *(narrow *)(d + at) = delta;
            }
            sq[i] += exact * exact;
            sum[i] += exact;
        }
    }
}

/* One sign for all of a block that went to the same sum. */
INNER void NAME(gap_blocks)(struct mix_part *part, float *d, const float *theirs, const float *ours,
                            size_t blocks, struct rng signs)
{
    OWN wide sq[SUMS], sum[SUMS];

    memcpy(sq, part->delta, sizeof sq);
    for (size_t b = 0; b < blocks; b++, theirs += MIX_BLOCK, ours += MIX_BLOCK) {
        uint64_t bits = rng_next(&signs);

        memset(sum, 0, sizeof sum);
        NAME(gap_block)(sq, sum, d, theirs, ours);
        for (size_t i = 0; i < MIX_LANES; i++) {
            double lane = sum[i / HALF][i % HALF];
            part->mass[i] += bits >> i & 1 ? -lane : lane;
        }
        if (d) d += MIX_BLOCK;
    }
    memcpy(part->delta, sq, sizeof sq);
    part->done += blocks * MIX_BLOCK;
}

TARGET static void NAME(diff)(struct mix_part *part, float *d, const float *theirs,
                              const float *ours, size_t blocks, struct rng signs)
{
    NAME(gap_blocks)(part, d, theirs, ours, blocks, signs);
}

TARGET static void NAME(gap)(struct mix_part *part, const float *theirs, const float *ours,
                             size_t blocks, struct rng signs)
{
    NAME(gap_blocks)(part, NULL, theirs, ours, blocks, signs);
}

INNER void NAME(squares)(double *lane, float *to, const float *from, size_t n)
{
    size_t rest = n % MIX_LANES;
    OWN wide sq[SUMS];

    memcpy(sq, lane, sizeof sq);
    for (size_t j = 0; j < n - rest; j += MIX_LANES) {
        MIX_UNROLL
        for (size_t i = 0; i < SUMS; i++) {
            size_t at = j + i * HALF;
            narrow x = *(const narrow *)(from + at);
            wide exact = __builtin_convertvector(x, wide);

            will_read(from, at);
            if (to) {
                will_write(to, at);
                *(narrow *)(to + at) = x;
            }
            sq[i] += exact * exact;
        }
    }
    memcpy(lane, sq, sizeof sq);
    for (size_t i = 0, at = n - rest; i < rest; i++, at++) {
        lane[i] += (double)from[at] * from[at];
        if (to) to[at] = from[at];
    }
}

TARGET static void NAME(norm_sq)(double *lane, const float *x, size_t n)
{
    NAME(squares)(lane, NULL, x, n);
}

TARGET static void NAME(take)(double *lane, float *to, const float *from, size_t n)
{
    NAME(squares)(lane, to, from, n);
}

/* No element of x depends on another, so x may be `from`. */
TARGET static void NAME(add_gap)(float *x, const float *from, float *restrict m,
                                 const float *theirs, const float *ours, float c, float cm,
                                 size_t n)
{
    size_t rest = n % LINE;

    for (size_t j = 0; j < n - rest; j += LINE) {
        MIX_UNROLL
        for (size_t at = j; at < j + LINE; at += LANES) {
            lanes d = *(const lanes *)(theirs + at) - *(const lanes *)(ours + at);

            if (m) *(lanes *)(m + at) += cm * d;
            *(lanes *)(x + at) = *(const lanes *)(from + at) + c * d;
        }
        will_read(theirs, j);
        will_read(ours, j);
        will_write(x, j);
        if (m) will_write(m, j);
    }
    for (size_t at = n - rest; at < n; at++) {
        float d = theirs[at] - ours[at];

        if (m) m[at] += cm * d;
        x[at] = from[at] + c * d;
    }
}

#undef lanes
#undef wide
#undef narrow
#undef OWN
#undef SUMS
#undef HALF
#undef INNER
