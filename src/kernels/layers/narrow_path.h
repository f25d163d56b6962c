/* narrow_path.h: the loops of narrow.c for one path; included by kernels/paths.h.
 *
 * `few` is a constant to the compiler, so that sums are registers; so is `pixels`.
 */
#define INNER TARGET static inline __attribute__((always_inline))

/* In a register; and wherever floats are. GCC takes all vectors to lie as whole ones do, and
 * AddressSanitizer puts variables where their type says. */
typedef float NAME(lanes) __attribute__((vector_size((LANES)*4)));
typedef float NAME(lanes_at) __attribute__((vector_size((LANES)*4), aligned(4), may_alias));
#define lanes NAME(lanes)
#define lanes_at NAME(lanes_at)

/* ---- Inputs ---------------------------------------------------------------------------------- */

INNER lanes NAME(inputs)(const struct narrow *n, size_t at, bool pixels)
{
    if (pixels) return BYTES(n->pixels.bytes + at);
    return *(const lanes_at *)(n->x + at);
}

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

/* to: [out][in rounded up], times `scale`, with zeroes behind each row; the rows behind `out` hold
 * anything. */
INNER void NAME(turn_weights)(float *restrict to, const float *restrict weight, size_t in,
                              size_t out, float scale)
{
    size_t step = lanes_whole(in), wide = whole_quads(out), k = 0;

    for (; (k + SPAN - 1) * out + wide <= in * out; k += SPAN)
        for (size_t j = 0; j < wide; j += QUAD) {
            span s[QUAD];

            NAME(take)(s, weight + k * out + j, out);
            NAME(turn)(s);
            for (size_t i = 0; i < QUAD; i++)
                *(span_at *)(to + (j + i) * step + k) = s[i] * scale;
        }
    for (; k < step; k++)
        for (size_t j = 0; j < out; j++)
            to[j * step + k] = k < in ? weight[k * out + j] * scale : 0;
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

/* The terms of LANES of the 16 lanes, from lane `lane` on; rows begin at[ROWS]. */
INNER void NAME(add_terms)(lanes sums[ROWS_MAX][FEW], const struct narrow *n, const size_t *at,
                           const float *weight, size_t step, size_t lane, size_t count, int few,
                           bool pixels)
{
    for (size_t k = lane; k < count; k += LANES_COUNT) {
        lanes x[ROWS_MAX];

        for (int i = 0; i < NAME(ROWS); i++) {
            x[i] = NAME(inputs)(n, at[i] + k, pixels);
            KEPT(x[i]);
        }
        for (int j = 0; j < few; j++) {
            lanes w = *(const lanes_at *)(weight + (size_t)j * step + k);

            KEPT(w);
            for (int i = 0; i < NAME(ROWS); i++)
                sums[i][j] = PLUS(sums[i][j], x[i], w);
        }
    }
}

/* part[ROWS * few]: the dot products of some rows with `few` outputs, in lanes. */
INNER void NAME(dot)(float part[SUMS][LANES_COUNT], const struct narrow *n, const size_t *at,
                     const float *weight, int few)
{
    size_t step = lanes_whole(n->in), rest = n->in % LANES_COUNT, whole = n->in - rest;
    float last[ROWS_MAX * LANES_COUNT];
    const struct narrow behind = {.x = last};
    const size_t behind_at[ROWS_MAX] = {0, LANES_COUNT, 2 * LANES_COUNT, 3 * LANES_COUNT};

    if (rest > 0) take_rest(last, n, at, NAME(ROWS), whole);
    for (size_t lane = 0; lane < LANES_COUNT; lane += LANES) {
        lanes sums[ROWS_MAX][FEW] = {0};

        if (n->pixels.bytes != NULL)
            NAME(add_terms)(sums, n, at, weight, step, lane, whole, few, true);
        else
            NAME(add_terms)(sums, n, at, weight, step, lane, whole, few, false);
        if (rest > 0) NAME(add_terms)
        (sums, &behind, behind_at, weight + whole, step, lane, LANES_COUNT, few, false);
        for (int i = 0; i < NAME(ROWS); i++)
            for (int j = 0; j < few; j++)
                *(lanes_at *)(part[i * few + j] + lane) = sums[i][j];
    }
}

/* `few` outputs of all rows; weight (turned), bias, y: from the first of them on. Without bias they
 * are added to y. */
INNER void NAME(outputs)(const struct narrow *n, const float *weight, const float *bias, float *y,
                         bool relu, int few)
{
    float part[SUMS][LANES_COUNT] = {0}, sums[SUMS];

    for (size_t row = 0; row < n->rows; row += NAME(ROWS)) {
        size_t at[ROWS_MAX], last = n->rows - 1; /* which may be taken more than once */

        for (size_t i = 0; i < ROWS_MAX; i++)
            at[i] = row_at(n, row + i < last ? row + i : last);
        NAME(dot)(part, n, at, weight, few);
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

TARGET static KERNEL_ONCE void NAME(all_outputs)(const struct narrow *n, const float *weight,
                                                 const float *bias, float *y, bool relu)
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

/* own: [out], the bias without what pixels are shifted by. */
INNER void NAME(bias_of_pixels)(float *own, const struct narrow *n, const float *turned,
                                const float *bias)
{
    for (size_t j = 0; j < n->out; j++)
        own[j] = bias[j] - n->pixels.shift * lanes_sum(turned + j * lanes_whole(n->in), n->in);
}

TARGET static void NAME(forward)(const struct narrow *n, const float *weight, const float *bias,
                                 float *turned, float *y, bool relu)
{
    float own[NARROW_OUT_MAX];

    NAME(turn_weights)(turned, weight, n->in, n->out, scale_of(n));
    if (n->pixels.bytes == NULL) {
        NAME(all_outputs)(n, turned, bias, y, relu);
        return;
    }
    NAME(bias_of_pixels)(own, n, turned, bias);
    NAME(all_outputs)(n, turned, own, y, relu);
}

TARGET static void NAME(add_dots)(const struct narrow *n, const float *turned, float *y)
{
    NAME(all_outputs)(n, turned, NULL, y, false);
}

/* ---- The gradient of the weights ------------------------------------------------------------- */

/* The products of two vectors of weight rows, from row k on, with a few outputs' delta. */
INNER void NAME(add_rows)(lanes sums[PAIR][FEW], const struct narrow *n, size_t k,
                          const float *delta, int few, bool pixels)
{
    for (size_t row = 0; row < n->rows; row++, delta += n->out) {
        size_t at = row_at(n, row) + k;
        lanes a = NAME(inputs)(n, at, pixels), b = NAME(inputs)(n, at + LANES, pixels);

        for (int j = 0; j < few; j++) {
            lanes d = delta[j] - (lanes){0};

            sums[0][j] = PLUS(sums[0][j], a, d);
            sums[1][j] = PLUS(sums[1][j], b, d);
        }
    }
}

/* to[few][step]: of those two vectors; delta, begin: of a few outputs. */
INNER void NAME(strip)(float *to, size_t step, const struct narrow *n, size_t k, const float *delta,
                       const float *begin, int few)
{
    lanes sums[PAIR][FEW];

    for (int j = 0; j < few; j++)
        sums[0][j] = sums[1][j] = begin[j] - (lanes){0};
    if (n->pixels.bytes != NULL)
        NAME(add_rows)(sums, n, k, delta, few, true);
    else
        NAME(add_rows)(sums, n, k, delta, few, false);
    for (int j = 0; j < few; j++) {
        *(lanes_at *)(to + (size_t)j * step) = sums[0][j];
        *(lanes_at *)(to + (size_t)j * step + LANES) = sums[1][j];
    }
}

/* The same of all outputs. */
TARGET static KERNEL_ONCE void NAME(strips)(float *to, size_t step, const struct narrow *n,
                                            size_t k, const float *delta, const float *begin)
{
    for (size_t j = 0, few; j < n->out; j += few, to += few * step, delta += few, begin += few) {
        few = few_of(n->out - j);
        switch (few) {
        case 1:
            NAME(strip)(to, step, n, k, delta, begin, 1);
            break;
        case 2:
            NAME(strip)(to, step, n, k, delta, begin, 2);
            break;
        case 3:
            NAME(strip)(to, step, n, k, delta, begin, 3);
            break;
        case 4:
            NAME(strip)(to, step, n, k, delta, begin, 4);
            break;
        default:
            NAME(strip)(to, step, n, k, delta, begin, FEW);
        }
    }
}

/* The same of all weight rows, where a vector would reach over their end. */
INNER void NAME(short_rows)(float *to, size_t step, const struct narrow *n, const float *delta,
                            const float *begin)
{
    for (size_t j = 0; j < n->out; j++)
        for (size_t k = 0; k < n->in; k++)
            to[j * step + k] = begin[j];
    for (size_t row = 0; row < n->rows; row++)
        for (size_t j = 0; j < n->out; j++)
            for (size_t k = 0; k < n->in; k++)
                to[j * step + k] = PLUS_ONE(to[j * step + k], input_at(n, row_at(n, row) + k),
                                            delta[row * n->out + j]);
}

/* to[out][step]: of weight rows first .. first + count - 1, and of some around them. */
INNER void NAME(block)(float *to, size_t step, const struct narrow *n, size_t first, size_t count,
                       const float *delta, const float *begin)
{
    const size_t wide = PAIR * LANES;

    if (n->in < wide) {
        NAME(short_rows)(to - first, step, n, delta, begin);
        return;
    }
    for (size_t k = first; k < first + count; k += wide) {
        size_t from = k + wide <= n->in ? k : n->in - wide;

        NAME(strips)(to + (ptrdiff_t)(from - first), step, n, from, delta, begin);
    }
}

TARGET static void NAME(across)(const struct narrow *n, const float *delta, float *to)
{
    float begin[NARROW_OUT_MAX];

    begin_sums(begin, n, delta);
    NAME(block)(to, n->in, n, 0, n->in, delta, begin);
}

TARGET static void NAME(weights)(const struct narrow *n, size_t first, size_t count,
                                 const float *delta, float scale, float keep, const float *from,
                                 float *into)
{
    float block[NARROW_OUT_MAX * STEP], gradient[BLOCK * NARROW_OUT_MAX], begin[NARROW_OUT_MAX];

    begin_sums(begin, n, delta);
    scale *= scale_of(n);
    for (size_t end = first + count, rows; first < end; first += rows) {
        rows = end - first < BLOCK ? end - first : BLOCK;
        NAME(block)(block + AROUND, STEP, n, first, rows, delta, begin);
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
