/* narrow_path.h: the loops of narrow.c for one path; included by kernels/paths.h.
 *
 * `few` is a constant to the compiler, so that sums are registers.
 */
#define INNER TARGET static inline __attribute__((always_inline))

typedef float NAME(lanes) __attribute__((vector_size((LANES)*4), aligned(4), may_alias));
#define lanes NAME(lanes)

/* ---- Forward --------------------------------------------------------------------------------- */

/* The terms of LANES of the 16 lanes, from lane `at` on. */
INNER void NAME(add_terms)(lanes sums[PAIR][FEW], const float *const x[PAIR], const float *weight,
                           size_t step, size_t at, size_t count, int few)
{
    for (size_t k = at; k < count; k += LANES_COUNT) {
        lanes a = *(const lanes *)(x[0] + k), b = *(const lanes *)(x[1] + k);

        for (int j = 0; j < few; j++) {
            lanes w = *(const lanes *)(weight + (size_t)j * step + k);

            sums[0][j] = PLUS(sums[0][j], a, w);
            sums[1][j] = PLUS(sums[1][j], b, w);
        }
    }
}

/* part[PAIR * few]: the dot products of two rows with `few` outputs, in lanes. */
INNER void NAME(dot)(float part[SUMS][LANES_COUNT], const float *const x[PAIR], const float *weight,
                     size_t in, int few)
{
    size_t step = lanes_whole(in), rest = in % LANES_COUNT, whole = in - rest;
    float last[PAIR][LANES_COUNT] = {0};
    const float *const behind[PAIR] = {last[0], last[1]};

    for (int i = 0; i < PAIR && rest > 0; i++)
        memcpy(last[i], x[i] + whole, rest * sizeof(float));
    for (size_t at = 0; at < LANES_COUNT; at += LANES) {
        lanes sums[PAIR][FEW] = {0};

        NAME(add_terms)(sums, x, weight, step, at, whole, few);
        if (rest > 0) NAME(add_terms)(sums, behind, weight + whole, step, at, LANES_COUNT, few);
        for (int j = 0; j < few; j++) {
            *(lanes *)(part[j] + at) = sums[0][j];
            *(lanes *)(part[few + j] + at) = sums[1][j];
        }
    }
}

/* `few` outputs of all rows; weight (turned), bias, y: from the first of them on. Without bias they
 * are added to y. */
INNER void NAME(outputs)(const struct narrow *n, const float *weight, const float *bias, float *y,
                         bool relu, int few)
{
    float part[SUMS][LANES_COUNT] = {0}, sums[SUMS];

    for (size_t row = 0; row < n->rows; row += PAIR) {
        size_t second = row + 1 < n->rows ? 1 : 0; /* else the last one twice */
        const float *const x[PAIR] = {row_of(n, row), row_of(n, row + second)};

        NAME(dot)(part, x, weight, n->in, few);
        for (int i = 0; i < PAIR * few; i += OCT)
            fold(sums + i, part + i);
        for (int j = 0; j < few; j++) {
            float *to[PAIR] = {y + row * n->out + j, y + (row + second) * n->out + j};
            float one = sums[j] + (bias != NULL ? bias[j] : *to[0]);
            float two = sums[few + j] + (bias != NULL ? bias[j] : *to[1]);

            *to[0] = relu && one < 0 ? 0 : one; /* NaN stays NaN */
            *to[1] = relu && two < 0 ? 0 : two;
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
    turn_weights(turned, weight, n->in, n->out);
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
        lanes a = *(const lanes *)x, b = *(const lanes *)(x + LANES);

        for (int j = 0; j < few; j++) {
            lanes d = delta[j] - (lanes){0};

            sums[0][j] = PLUS(sums[0][j], a, d);
            sums[1][j] = PLUS(sums[1][j], b, d);
        }
    }
    for (int j = 0; j < few; j++) {
        *(lanes *)(to + (size_t)j * step) = sums[0][j];
        *(lanes *)(to + (size_t)j * step + LANES) = sums[1][j];
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
                                 const float *delta, float scale, float keep, float *into)
{
    float block[NARROW_OUT_MAX * STEP], gradient[BLOCK * NARROW_OUT_MAX];

    for (size_t end = first + count, rows; first < end; first += rows, into += rows * n->out) {
        rows = end - first < BLOCK ? end - first : BLOCK;
        NAME(block)(block + AROUND, STEP, n, first, rows, delta);
        turn_back(gradient, block + AROUND, rows, n->out);
        if (keep == 0)
            for (size_t i = 0; i < rows * n->out; i++)
                into[i] = scale * gradient[i];
        else
            for (size_t i = 0; i < rows * n->out; i++)
                into[i] = keep * into[i] + scale * gradient[i];
    }
}

#undef lanes
#undef INNER
