/* narrow_path.h: the loops of narrow.c for one path; included by kernels/paths.h.
 *
 * `few` is a constant to the compiler, so that sums are registers.
 */
#define INNER TARGET static inline __attribute__((always_inline))

/* In a register; and wherever floats are. GCC takes all vectors to lie as whole ones do, and
 * AddressSanitizer puts variables where their type says. */
typedef float NAME(lanes) __attribute__((vector_size((LANES)*4)));
typedef float NAME(lanes_at) __attribute__((vector_size((LANES)*4), aligned(4), may_alias));
#define lanes NAME(lanes)
#define lanes_at NAME(lanes_at)

/* ---- Turning --------------------------------------------------------------------------------- */

/* Weight rows at a time: of four columns of theirs one or two squares, side by side in a vector. */
#if LANES == 4
#define SPAN 4
#else
#define SPAN 8
#endif

typedef float NAME(span) __attribute__((vector_size(SPAN * 4)));
typedef float NAME(span_at) __attribute__((vector_size(SPAN * 4), aligned(4), may_alias));
#define span NAME(span)
#define span_at NAME(span_at)

/* Rows of squares become their columns. */
INNER void NAME(turn)(span s[QUAD])
{
    span ac_low = __builtin_shufflevector(s[0], s[2], LIST(FIRSTS, SPAN));
    span ac_high = __builtin_shufflevector(s[0], s[2], LIST(SECONDS, SPAN));
    span bd_low = __builtin_shufflevector(s[1], s[3], LIST(FIRSTS, SPAN));
    span bd_high = __builtin_shufflevector(s[1], s[3], LIST(SECONDS, SPAN));

    s[0] = __builtin_shufflevector(ac_low, bd_low, LIST(FIRSTS, SPAN));
    s[1] = __builtin_shufflevector(ac_low, bd_low, LIST(SECONDS, SPAN));
    s[2] = __builtin_shufflevector(ac_high, bd_high, LIST(FIRSTS, SPAN));
    s[3] = __builtin_shufflevector(ac_high, bd_high, LIST(SECONDS, SPAN));
}

/* from: SPAN rows, `step` apart, of which four columns are taken. */
INNER void NAME(take)(span s[QUAD], const float *from, size_t step)
{
    for (size_t i = 0; i < QUAD; i++) {
        const float *row = from + i * step;
#if SPAN == 4
        s[i] = *(const span_at *)row;
#else
        s[i] = __builtin_shufflevector(*(const quad *)row, *(const quad *)(row + QUAD * step), 0, 1,
                                       2, 3, 4, 5, 6, 7);
#endif
    }
}

/* The reverse, row by row: what is too much of one is overwritten by the next. */
INNER void NAME(put)(float *to, size_t step, const span s[QUAD])
{
    for (size_t i = 0; i < QUAD; i++)
        *(quad *)(to + i * step) = __builtin_shufflevector(s[i], s[i], 0, 1, 2, 3);
#if SPAN == 8
    for (size_t i = 0; i < QUAD; i++)
        *(quad *)(to + (QUAD + i) * step) = __builtin_shufflevector(s[i], s[i], 4, 5, 6, 7);
#endif
}

/* to: [out][in rounded up], with zeroes behind each row; the rows behind `out` hold anything. */
INNER void NAME(turn_weights)(float *restrict to, const float *restrict weight, size_t in,
                              size_t out)
{
    size_t step = lanes_whole(in), wide = whole_quads(out), k = 0;

    for (; (k + SPAN - 1) * out + wide <= in * out; k += SPAN)
        for (size_t j = 0; j < wide; j += QUAD) {
            span s[QUAD];

            NAME(take)(s, weight + k * out + j, out);
            NAME(turn)(s);
            for (size_t i = 0; i < QUAD; i++)
                *(span_at *)(to + (j + i) * step + k) = s[i];
        }
    for (; k < step; k++)
        for (size_t j = 0; j < out; j++)
            to[j * step + k] = k < in ? weight[k * out + j] : 0;
}

/* to: [count][out] and some scratch behind; from: [out in whole quads][STEP]. From right to left,
 * as what is too much of one row falls on the left of the next. */
INNER void NAME(turn_back)(float *restrict to, const float *restrict from, size_t count, size_t out)
{
    for (size_t k = 0; k < count; k += SPAN)
        for (size_t j = whole_quads(out); j > 0; j -= QUAD) {
            const float *row = from + (j - QUAD) * STEP + k;
            span s[QUAD];

            for (size_t i = 0; i < QUAD; i++)
                s[i] = *(const span_at *)(row + i * STEP);
            NAME(turn)(s);
            NAME(put)(to + k * out + j - QUAD, out, s);
        }
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Rows at a time: as many sums of products as there are registers for. */
enum { NAME(ROWS) = LANES < LANES_COUNT ? 2 : ROWS_MAX };

/* The terms of LANES of the 16 lanes, from lane `at` on. */
INNER void NAME(add_terms)(lanes sums[ROWS_MAX][FEW], const float *const x[ROWS_MAX],
                           const float *weight, size_t step, size_t at, size_t count, int few)
{
    for (size_t k = at; k < count; k += LANES_COUNT)
        for (int j = 0; j < few; j++) {
            lanes w = *(const lanes_at *)(weight + (size_t)j * step + k);

            for (int i = 0; i < NAME(ROWS); i++)
                sums[i][j] = PLUS(sums[i][j], *(const lanes_at *)(x[i] + k), w);
        }
}

/* part[ROWS * few]: the dot products of some rows with `few` outputs, in lanes. */
INNER void NAME(dot)(float part[SUMS][LANES_COUNT], const float *const x[ROWS_MAX],
                     const float *weight, size_t in, int few)
{
    size_t step = lanes_whole(in), rest = in % LANES_COUNT, whole = in - rest;
    float last[ROWS_MAX][LANES_COUNT] = {0};
    const float *const behind[ROWS_MAX] = {last[0], last[1], last[2], last[3]};

    for (int i = 0; i < NAME(ROWS) && rest > 0; i++)
        memcpy(last[i], x[i] + whole, rest * sizeof(float));
    for (size_t at = 0; at < LANES_COUNT; at += LANES) {
        lanes sums[ROWS_MAX][FEW] = {0};

        NAME(add_terms)(sums, x, weight, step, at, whole, few);
        if (rest > 0) NAME(add_terms)(sums, behind, weight + whole, step, at, LANES_COUNT, few);
        for (int i = 0; i < NAME(ROWS); i++)
            for (int j = 0; j < few; j++)
                *(lanes_at *)(part[i * few + j] + at) = sums[i][j];
    }
}

/* `few` outputs of all rows; weight (turned), bias, y: from the first of them on. Without bias they
 * are added to y. */
INNER void NAME(outputs)(const struct narrow *n, const float *weight, const float *bias, float *y,
                         bool relu, int few)
{
    float part[SUMS][LANES_COUNT] = {0}, sums[SUMS];

    for (size_t row = 0; row < n->rows; row += NAME(ROWS)) {
        const float *x[ROWS_MAX];
        size_t last = n->rows - 1; /* which may be taken more than once */

        for (size_t i = 0; i < ROWS_MAX; i++)
            x[i] = row_of(n, row + i < last ? row + i : last);
        NAME(dot)(part, x, weight, n->in, few);
        for (int i = 0; i < NAME(ROWS) * few; i++)
            sums[i] = fold(part[i]);
        for (size_t i = 0; i < NAME(ROWS) && row + i <= last; i++)
            for (int j = 0; j < few; j++) {
                float *to = y + (row + i) * n->out + j;
                float sum = sums[i * few + j] + (bias != NULL ? bias[j] : *to);

                *to = relu && sum < 0 ? 0 : sum; /* NaN stays NaN */
            }
    }
}

INNER void NAME(all_outputs)(const struct narrow *n, const float *weight, const float *bias,
                             float *y, bool relu)
{
    for (size_t j = 0, few; j < n->out; j += few) {
        few = few_of(n->out - j);
        switch (few) {
        case 1:
            NAME(outputs)(n, weight, bias, y + j, relu, 1);
            break;
        case 2:
            NAME(outputs)(n, weight, bias, y + j, relu, 2);
            break;
        case 3:
            NAME(outputs)(n, weight, bias, y + j, relu, 3);
            break;
        case 4:
            NAME(outputs)(n, weight, bias, y + j, relu, 4);
            break;
        default:
            NAME(outputs)(n, weight, bias, y + j, relu, FEW);
        }
        weight += few * lanes_whole(n->in);
        if (bias != NULL) bias += few;
    }
}

TARGET static void NAME(forward)(const struct narrow *n, const float *weight, const float *bias,
                                 float *turned, float *y, bool relu)
{
    NAME(turn_weights)(turned, weight, n->in, n->out);
    NAME(all_outputs)(n, turned, bias, y, relu);
}

TARGET static void NAME(add_dots)(const struct narrow *n, const float *turned, float *y)
{
    NAME(all_outputs)(n, turned, NULL, y, false);
}

/* ---- The gradient of the weights ------------------------------------------------------------- */

/* to[few][step]: of two vectors of weight rows, from row k on; delta: of a few outputs. */
INNER void NAME(strip)(float *to, size_t step, const struct narrow *n, size_t k, const float *delta,
                       int few)
{
    lanes sums[PAIR][FEW] = {0};

    for (size_t row = 0; row < n->rows; row++, delta += n->out) {
        const float *x = row_of(n, row) + k;
        lanes a = *(const lanes_at *)x, b = *(const lanes_at *)(x + LANES);

        for (int j = 0; j < few; j++) {
            lanes d = delta[j] - (lanes){0};

            sums[0][j] = PLUS(sums[0][j], a, d);
            sums[1][j] = PLUS(sums[1][j], b, d);
        }
    }
    for (int j = 0; j < few; j++) {
        *(lanes_at *)(to + (size_t)j * step) = sums[0][j];
        *(lanes_at *)(to + (size_t)j * step + LANES) = sums[1][j];
    }
}

/* The same of all outputs. */
INNER void NAME(strips)(float *to, size_t step, const struct narrow *n, size_t k,
                        const float *delta)
{
    for (size_t j = 0, few; j < n->out; j += few, to += few * step, delta += few) {
        few = few_of(n->out - j);
        switch (few) {
        case 1:
            NAME(strip)(to, step, n, k, delta, 1);
            break;
        case 2:
            NAME(strip)(to, step, n, k, delta, 2);
            break;
        case 3:
            NAME(strip)(to, step, n, k, delta, 3);
            break;
        case 4:
            NAME(strip)(to, step, n, k, delta, 4);
            break;
        default:
            NAME(strip)(to, step, n, k, delta, FEW);
        }
    }
}

/* The same of all weight rows, where a vector would reach over their end. */
INNER void NAME(short_rows)(float *to, size_t step, const struct narrow *n, const float *delta)
{
    for (size_t j = 0; j < n->out; j++)
        memset(to + j * step, 0, n->in * sizeof *to);
    for (size_t row = 0; row < n->rows; row++)
        for (size_t j = 0; j < n->out; j++)
            for (size_t k = 0; k < n->in; k++)
                to[j * step + k] =
                    PLUS_ONE(to[j * step + k], row_of(n, row)[k], delta[row * n->out + j]);
}

/* to[out][step]: of weight rows first .. first + count - 1, and of some around them. */
INNER void NAME(block)(float *to, size_t step, const struct narrow *n, size_t first, size_t count,
                       const float *delta)
{
    const size_t wide = PAIR * LANES;

    if (n->in < wide) {
        NAME(short_rows)(to - first, step, n, delta);
        return;
    }
    for (size_t k = first; k < first + count; k += wide) {
        size_t from = k + wide <= n->in ? k : n->in - wide;

        NAME(strips)(to + (ptrdiff_t)(from - first), step, n, from, delta);
    }
}

TARGET static void NAME(across)(const struct narrow *n, const float *delta, float *to)
{
    NAME(block)(to, n->in, n, 0, n->in, delta);
}

TARGET static void NAME(weights)(const struct narrow *n, size_t first, size_t count,
                                 const float *delta, float scale, float keep, const float *from,
                                 float *into)
{
    float block[NARROW_OUT_MAX * STEP], gradient[BLOCK * NARROW_OUT_MAX];

    for (size_t end = first + count, rows; first < end; first += rows) {
        rows = end - first < BLOCK ? end - first : BLOCK;
        NAME(block)(block + AROUND, STEP, n, first, rows, delta);
        NAME(turn_back)(gradient, block + AROUND, rows, n->out);
        if (keep == 0) {
            for (size_t i = 0; i < rows * n->out; i++)
                into[i] = scale * gradient[i];
        } else {
            KERNEL_EACH_ALONE
            for (size_t i = 0; i < rows * n->out; i++)
                into[i] = keep * from[i] + scale * gradient[i];
        }
        from += rows * n->out;
        into += rows * n->out;
    }
}

#undef span_at
#undef span
#undef SPAN
#undef lanes_at
#undef lanes
#undef INNER
