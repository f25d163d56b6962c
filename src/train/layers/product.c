/* product.c: see product.h. Nothing fails here. */
#include "train/layers/product.h"

#include <cblas.h>

/* Timed over layers of 10 to 784 units with batches of 32, on AVX-512 and on AVX2. */
enum {
    BLOCK_PRODUCTS = 1000000, /* of a block: multiplications */
    FORWARD_COLUMNS = 128,
    BACK_COLUMNS = 32,
    TILE_FLOATS = 16384, /* 64 KiB: small beside an L2 cache, yet a product of some size */
    MANY_ROWS = 256,     /* are not cut; timed with 2048 rows of 65 to 512 units */
    MANY_TILE = 64       /* rows of weights, at least */
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Blocks of [rows][columns], `depth` long, of a product as long as `length`: all but the last are
 * of one length, and that is no odd little rest. */
static uint32_t depth_of(uint32_t rows, uint32_t columns, uint32_t length)
{
    uint64_t limit = BLOCK_PRODUCTS / ((uint64_t)rows * columns);
    if (rows >= MANY_ROWS) return length;
    if (limit < 16) limit = 16; /* so many rows that blocks don't help */
    if (limit >= length) return length;
    uint32_t blocks = (uint32_t)((length + limit - 1) / limit);
    return (length + blocks - 1) / blocks;
}

static uint32_t columns_of(uint32_t rows, uint32_t columns, uint32_t length, uint32_t wanted)
{
    uint64_t whole = (uint64_t)rows * columns * length;
    return whole <= BLOCK_PRODUCTS || rows >= MANY_ROWS ? columns : least(columns, wanted);
}

void product_forward(const struct product *p, uint32_t rows, const float *input,
                     const float *weight, float *y)
{
    uint32_t in = p->in, out = p->out;
    uint32_t columns = columns_of(rows, out, in, FORWARD_COLUMNS);
    uint32_t depth = depth_of(rows, columns, in);

    for (uint32_t k = 0; k < in; k += depth)
        for (uint32_t j = 0; j < out; j += columns)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows,
                        (blasint)least(columns, out - j), (blasint)least(depth, in - k), 1,
                        input + k, (blasint)in, weight + (size_t)k * out + j, (blasint)out,
                        k > 0 ? 1 : 0, y + j, (blasint)out);
}

void product_back(const struct product *p, uint32_t rows, const float *delta, const float *weight,
                  float *below)
{
    uint32_t in = p->in, out = p->out;
    uint32_t columns = columns_of(rows, in, out, BACK_COLUMNS);
    uint32_t depth = depth_of(rows, columns, out);

    for (uint32_t k = 0; k < out; k += depth)
        for (uint32_t i = 0; i < in; i += columns)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows,
                        (blasint)least(columns, in - i), (blasint)least(depth, out - k), 1,
                        delta + k, (blasint)out, weight + (size_t)i * out + k, (blasint)out,
                        k > 0 ? 1 : 0, below + i, (blasint)in);
}

uint32_t product_tile(const struct product *p, uint32_t rows)
{
    uint32_t tile = TILE_FLOATS / p->out, least_rows = rows >= MANY_ROWS ? MANY_TILE : 1;
    return tile > least_rows ? tile : least_rows;
}

void product_weights(const struct product *p, uint32_t rows, uint32_t first, uint32_t count,
                     const float *input, const float *delta, float scale, float keep, float *into)
{
    blasint in = (blasint)p->in, out = (blasint)p->out;

    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)count, out, (blasint)rows, scale,
                input + first, in, delta, out, keep, into, out);
}
