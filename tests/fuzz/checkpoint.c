/* checkpoint.c: checkpoint files. As the digest keeps mutations out, a first byte of 1 has the
 * input's own put right before it is read. */
#include "file/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void read_it(const uint8_t *bytes, size_t size)
{
    struct checkpoint checkpoint;
    const uint8_t *vectors;
    char why[200] = "";
    int error = checkpoint_read(&checkpoint, &vectors, bytes, size, why, sizeof why);
    FUZZ_CHECK(error == 0 || why[0]);
    if (error) return;
    FUZZ_CHECK(checkpoint.n > 0 && checkpoint.vectors > 0 &&
               checkpoint.vectors <= PARLEY_VECTORS_MAX);
    FUZZ_CHECK(vectors >= bytes && checkpoint.n * checkpoint.vectors <= size / 4);
    FUZZ_CHECK((size_t)(vectors - bytes) + 4 * checkpoint.n * checkpoint.vectors + DIGEST_BYTES ==
               size);
    /* What is read can be written. */
    uint8_t *header;
    size_t header_size;
    FUZZ_CHECK(checkpoint_header(&checkpoint, &header, &header_size) == 0);
    free(header);
}

void fuzz_checkpoint(const uint8_t *bytes, size_t size)
{
    if (size == 0) return;
    uint8_t *copy = malloc(size);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, bytes + 1, size - 1);
    if (bytes[0] == 1 && size > DIGEST_BYTES)
        FUZZ_CHECK(digest_bytes(copy, size - 1 - DIGEST_BYTES, copy + size - 1 - DIGEST_BYTES) ==
                   0);
    read_it(copy, size - 1);
    free(copy);
}

void fuzz_checkpoint_seeds(fuzz_emit *emit, void *context)
{
    static const float vectors[3 * 7] = {1, -2, 3, 4.5f, 0, 6, 7};
    for (uint32_t count = 1; count <= 3; count++) {
        const struct checkpoint made = {
            .node = "n0",
            .model = "mlp:3",
            .optimizer = "momentum",
            .data = "digits",
            .run = 5,
            .n = 7,
            .vectors = count,
            .steps = 1200,
            .samples = 5000,
            .position = 17,
            .settings = {{"lr", "0.05"}, {"budget", "2 epochs 9s"}},
            .settings_count = 2,
        };
        uint8_t *header, bytes[4096];
        size_t size;
        FUZZ_CHECK(checkpoint_header(&made, &header, &size) == 0);
        memcpy(bytes + 1, header, size);
        free(header);
        memcpy(bytes + 1 + size, vectors, count * 7 * sizeof *vectors);
        size += count * 7 * sizeof *vectors;
        FUZZ_CHECK(digest_bytes(bytes + 1, size, bytes + 1 + size) == 0);
        for (bytes[0] = 0; bytes[0] < 2; bytes[0]++)
            emit(context, bytes, 1 + size + DIGEST_BYTES);
    }
}
