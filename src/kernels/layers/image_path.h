/* image_path.h: the loops of image.c for one path; included by kernels/paths.h. */
#define INNER TARGET static inline __attribute__((always_inline))

#define PICK(a, b, list) __builtin_shufflevector(a, b, LIST(list, LANES))

typedef float NAME(lanes) LANED(LANES);
typedef int32_t NAME(bits) LANED(LANES);
#define lanes NAME(lanes)
#define bits NAME(bits)

static const bits NAME(numbers) = {LIST(NUMBERS, LANES)};
#define numbers NAME(numbers)

/* Of variables whose address is taken. GCC takes them to lie as whole vectors do; AddressSanitizer
 * puts them where their type says. */
#define OWN _Alignas(LANES * 4)

/* inside: of the lanes, those whose place is at least 0 and below `count`; the first has `at`. */
INNER void NAME(within)(bits *inside, int32_t at, int32_t count)
{
    bits place = numbers + at;

    *inside = (place >= 0) & (place < count);
}

/* Where a row of the kernel is for each row y of outputs: row y * stride + up of the image. Rows of
 * `first` to `last` - 1 are on the image. */
struct NAME(over) {
    int32_t up, first, last;
};

/* To divide takes longer than to take a small plane. */
INNER int32_t NAME(rows_of)(int32_t places, int32_t stride)
{
    return stride == 1 ? places : (places + stride - 1) / stride;
}

/* From row `start` on. */
INNER void NAME(find)(struct NAME(over) * over, const struct patches *p, int32_t i, int32_t start)
{
    int32_t stride = (int32_t)p->stride, rows = (int32_t)p->out_height;

    over->up = i - (int32_t)p->pad;
    over->first = over->up < 0 ? NAME(rows_of)(-over->up, stride) : 0;
    over->last = NAME(rows_of)((int32_t)p->height - over->up, stride);
    if (over->last > rows) over->last = rows;
    if (over->first > over->last) over->first = over->last;
    if (over->first < start) over->first = start;
    if (over->last < start) over->last = start;
}

/* The rows on the image, with stride 1; from right to left, as what is too much of one row falls on
 * the left of the next. Column x of outputs lies over column x + left. */
INNER void NAME(take_rows)(float *restrict to, const float *restrict image, const struct patches *p,
                           const struct NAME(over) * over, int32_t left)
{
    ptrdiff_t width = (ptrdiff_t)p->width, out = (ptrdiff_t)p->out_width;

    for (ptrdiff_t x = (out - 1) / LANES * LANES; x >= 0; x -= LANES) {
        const float *from = image + (over->first + over->up) * width + left + x;
        float *at = to + over->first * out + x;
        OWN bits inside;

        NAME(within)(&inside, (int32_t)x + left, (int32_t)width);
        for (int32_t y = over->first; y < over->last; y++, from += width, at += out)
            *(bits *)at = *(const bits *)from & inside;
    }
}

INNER void NAME(take_apart)(float *restrict to, const float *restrict image,
                            const struct patches *p, const struct NAME(over) * over, int32_t left)
{
    int32_t out = (int32_t)p->out_width, stride = (int32_t)p->stride, width = (int32_t)p->width;

    for (int32_t y = over->first; y < over->last; y++)
        for (int32_t x = 0; x < out; x++) {
            int32_t row = y * stride + over->up, column = x * stride + left;
            bool inside = column >= 0 && column < width;

            to[y * out + x] = inside ? image[row * width + column] : 0;
        }
}

/* to: [out_height][out_width], from row `start` on. */
INNER void NAME(take_place)(float *restrict to, const float *restrict image,
                            const struct patches *p, const struct NAME(over) * over, int32_t left,
                            int32_t start)
{
    size_t out = p->out_width;

    if (p->stride == 1)
        NAME(take_rows)(to, image, p, over, left);
    else
        NAME(take_apart)(to, image, p, over, left);
    for (size_t k = (size_t)start * out; k < (size_t)over->first * out; k++)
        to[k] = 0;
    for (size_t k = (size_t)over->last * out; k < p->out_height * out; k++)
        to[k] = 0;
}

/* With stride 1, a kernel's place (i, j) lies over what (i - 1, j) lies over one row later; large
 * planes are copied from there, as that is aligned better. */
INNER void NAME(take_over)(float *restrict to, const struct patches *p)
{
    size_t width = p->out_width, plane = p->out_height * width;

    memcpy(to, to + width - p->kernel * plane, (plane - width) * sizeof *to);
}

/* A row of the kernel. */
INNER void NAME(take_row)(float *restrict columns, const float *restrict image,
                          const struct patches *p, int32_t i)
{
    size_t plane = (size_t)p->out_height * p->out_width;
    bool copies = p->stride == 1 && i > 0 && plane >= MOVED_FLOATS;
    int32_t start = copies ? (int32_t)p->out_height - 1 : 0;
    struct NAME(over) over;

    NAME(find)(&over, p, i, start);
    for (int32_t j = 0; j < (int32_t)p->kernel; j++, columns += plane) {
        if (copies) NAME(take_over)(columns, p);
        NAME(take_place)(columns, image, p, &over, j - (int32_t)p->pad, start);
    }
}

/* p is its own: no write to columns can change it, so it stays in registers. */
INNER void NAME(take_all)(float *restrict columns, const float *restrict image, struct patches p)
{
    size_t row = (size_t)p.kernel * p.out_height * p.out_width;

    for (uint32_t c = 0; c < p.channels; c++, image += (size_t)p.height * p.width)
        for (int32_t i = 0; i < (int32_t)p.kernel; i++, columns += row)
            NAME(take_row)(columns, image, &p, i);
}

TARGET static void NAME(take)(float *restrict columns, const float *restrict image,
                              const struct patches *p)
{
    struct patches near = *p;

    near.stride = 1; /* a constant to the compiler */
    if (p->stride == 1)
        NAME(take_all)(columns, image, near);
    else
        NAME(take_all)(columns, image, *p);
}

/* LANES of one row of an image, from column x on, from the places of all kernels that lie over
 * them, rows `first` to `last` - 1 of each. The sums of every other row are apart, as each addition
 * waits for the one before it. */
INNER void NAME(give_lanes)(float *restrict to, const float *restrict columns,
                            const struct patches *p, int32_t row, int32_t x, int32_t first,
                            int32_t last)
{
    int32_t out = (int32_t)p->out_width, kernel = (int32_t)p->kernel, pad = (int32_t)p->pad;
    ptrdiff_t plane = (ptrdiff_t)p->out_height * out, below = kernel * plane - out;
    lanes even = {0}, odd = {0};

    for (int32_t j = 0; j < kernel; j++) {
        const float *from = columns + (first * kernel + j) * plane +
                            (ptrdiff_t)(row + pad - first) * out + x + pad - j;
        int32_t i = first;
        OWN bits inside;

        NAME(within)(&inside, x + pad - j, out);
        for (; i + 1 < last; i += 2, from += 2 * below) {
            even += (lanes)(*(const bits *)from & inside);
            odd += (lanes)(*(const bits *)(from + below) & inside);
        }
        if (i < last) even += (lanes)(*(const bits *)from & inside);
    }
    *(lanes *)(to + x) = even + odd;
}

INNER void NAME(give_row)(float *restrict to, const float *restrict columns,
                          const struct patches *p, int32_t row)
{
    int32_t kernel = (int32_t)p->kernel, above = row + (int32_t)p->pad;
    int32_t first = above - (int32_t)p->out_height + 1;

    if (first < 0) first = 0;
    for (int32_t x = 0; x < (int32_t)p->width; x += LANES)
        NAME(give_lanes)(to, columns, p, row, x, first, above < kernel ? above + 1 : kernel);
}

/* The same place by place, where kernels are more than one place apart. */
INNER void NAME(give_apart)(float *restrict to, const float *restrict columns,
                            const struct patches *p)
{
    int32_t out = (int32_t)p->out_width, stride = (int32_t)p->stride, pad = (int32_t)p->pad;

    memset(to, 0, (size_t)p->height * p->width * sizeof *to);
    for (int32_t i = 0; i < (int32_t)p->kernel; i++)
        for (int32_t j = 0; j < (int32_t)p->kernel; j++)
            for (int32_t y = 0; y < (int32_t)p->out_height; y++, columns += out) {
                int32_t row = y * stride + i - pad;

                if (row < 0 || row >= (int32_t)p->height) continue;
                for (int32_t x = 0; x < out; x++) {
                    int32_t column = x * stride + j - pad;
                    if (column >= 0 && column < (int32_t)p->width)
                        to[row * (int32_t)p->width + column] += columns[x];
                }
            }
}

TARGET static void NAME(give)(float *restrict image, const float *restrict columns,
                              const struct patches *p)
{
    size_t channel = (size_t)p->kernel * p->kernel * p->out_height * p->out_width;

    for (uint32_t c = 0; c < p->channels; c++, columns += channel) {
        float *to = image + (size_t)c * p->height * p->width;

        if (p->stride > 1) NAME(give_apart)(to, columns, p);
        for (uint32_t y = 0; p->stride == 1 && y < p->height; y++)
            NAME(give_row)(to + (size_t)y * p->width, columns, p, (int32_t)y);
    }
}

INNER float NAME(rectify)(float v)
{
    return v < 0 ? 0 : v; /* this way round NaN stays NaN */
}

TARGET static void NAME(add_bias)(float *restrict y, const float *restrict bias, size_t planes,
                                  size_t count, bool relu)
{
    for (size_t p = 0; p < planes; p++, y += count) {
        float b = bias[p];

        if (relu)
            for (size_t i = 0; i < count; i++)
                y[i] = NAME(rectify)(y[i] + b);
        else
            for (size_t i = 0; i < count; i++)
                y[i] += b;
    }
}

INNER void NAME(greater)(lanes *a, const lanes *b)
{
    bits keep = *a > *b;

    *a = (lanes)(((bits)*a & keep) | ((bits)*b & ~keep));
}

/* Of two rows of two vectors each. */
INNER void NAME(pool_lanes)(float *restrict to, const float *restrict up, const float *restrict low)
{
    const lanes *u = (const lanes *)up, *l = (const lanes *)low;
    OWN lanes a = PICK(u[0], u[1], EVENS), b = PICK(u[0], u[1], ODDS);
    OWN lanes c = PICK(l[0], l[1], EVENS), d = PICK(l[0], l[1], ODDS);
    lanes sum = a + b + c + d;

    NAME(greater)(&a, &b);
    NAME(greater)(&c, &d);
    NAME(greater)(&a, &c);
    *(lanes *)to = a + 0 * sum; /* which carries NaN through */
}

TARGET static void NAME(pool)(float *restrict y, const float *restrict x, size_t height,
                              size_t width)
{
    for (size_t i = 0; i < height / 2; i++, x += 2 * width, y += width / 2)
        for (size_t j = 0; j < width / 2; j += LANES)
            NAME(pool_lanes)(y + j, x + 2 * j, x + width + 2 * j);
}

/* Half of a turn of unpool(): max and delta are there twice for each pair. Of rows shorter than
 * LANES, what is too much of `to` falls on to_low, which is written after it. */
INNER void NAME(unpool_half)(float *to, float *to_low, const float *restrict up,
                             const float *restrict low, const lanes *max, const bits *delta)
{
    const bits second = (numbers & 1) == 1;
    bits is_up = *(const lanes *)up == *max, is_low = *(const lanes *)low == *max;
    bits above = PICK(is_up, is_up, FIRSTS) | PICK(is_up, is_up, SECONDS);

    is_up &= ~(PICK(is_up, is_up, FIRSTS) & second);
    is_low &= ~(PICK(is_low, is_low, FIRSTS) & second) & ~above;
    *(bits *)to = is_up & *delta;
    *(bits *)to_low = is_low & *delta;
}

TARGET static void NAME(unpool)(float *restrict below, const float *restrict delta,
                                const float *restrict x, const float *restrict y, size_t height,
                                size_t width)
{
    size_t out = width / 2;

    if (height % 2 != 0) memset(below + (height - 1) * width, 0, width * sizeof *below);
    for (size_t i = 0; i < height / 2; i++, delta += out, y += out) {
        const float *up = x + 2 * i * width;
        float *to = below + 2 * i * width;

        /* From right to left, as in take. */
        for (size_t at = (out + LANES - 1) / LANES * LANES; at > 0; at -= LANES) {
            size_t j = at - LANES;
            bits own = numbers < (int32_t)(out - j);
            OWN bits d = *(const bits *)(delta + j) & own, d0 = PICK(d, d, LOWS),
                     d1 = PICK(d, d, HIGHS);
            OWN lanes max = *(const lanes *)(y + j), m0 = PICK(max, max, LOWS),
                      m1 = PICK(max, max, HIGHS);
            size_t k = 2 * j;

            if (k + LANES < width) NAME(unpool_half)
            (to + k + LANES, to + width + k + LANES, up + k + LANES, up + width + k + LANES, &m1,
             &d1);
            NAME(unpool_half)(to + k, to + width + k, up + k, up + width + k, &m0, &d0);
        }
        if (width % 2 != 0) to[width - 1] = to[2 * width - 1] = 0;
    }
}

TARGET static void NAME(sum)(double sums[2], const float *a, const float *b, float a_shift,
                             float b_shift, size_t count)
{
    lanes plains[PARTS / LANES] = {{0}}, products[PARTS / LANES] = {{0}};
    float plain[PARTS], product[PARTS];
    size_t at = 0;

    for (; at + PARTS <= count; at += PARTS)
        for (size_t k = 0; k < PARTS / LANES; k++) {
            lanes v = *(const lanes *)(a + at + k * LANES);

            plains[k] += v;
            products[k] += (v - a_shift) * (*(const lanes *)(b + at + k * LANES) - b_shift);
        }
    memcpy(plain, plains, sizeof plain);
    memcpy(product, products, sizeof product);
    for (size_t i = 0; at < count; at++, i++) {
        plain[i] += a[at];
        product[i] += (a[at] - a_shift) * (b[at] - b_shift);
    }
    for (size_t i = 0; i < PARTS; i++) {
        sums[0] += (double)plain[i];
        sums[1] += (double)product[i];
    }
}

TARGET static void NAME(scale)(float *restrict y, const float *restrict x, float factor,
                               float shift, size_t count, bool relu)
{
    if (relu)
        for (size_t i = 0; i < count; i++)
            y[i] = NAME(rectify)(factor * x[i] + shift);
    else
        for (size_t i = 0; i < count; i++)
            y[i] = factor * x[i] + shift;
}

TARGET static void NAME(blend)(float *restrict y, const float *restrict a, const float *restrict b,
                               float by_a, float by_b, float shift, size_t count)
{
    for (size_t i = 0; i < count; i++)
        y[i] = by_a * a[i] + by_b * b[i] + shift;
}

#undef OWN
#undef numbers
#undef bits
#undef lanes
#undef PICK
#undef INNER
