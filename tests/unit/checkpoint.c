/* checkpoint.c: a node's state there and back, and every way in which a file may be spoilt. */
#include "file/checkpoint.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { N = 7, VECTORS = 2 };
static const float vectors[VECTORS * N] = {1, -2, 3, 4.5f, 0, 6, 7, -8, 9, 10, 11, 12, 13, 14};
static const struct checkpoint made = {
    .node = "n0",
    .model = "mlp:3",
    .optimizer = "momentum",
    .data = "digits",
    .run = UINT64_C(1) << 63 | 5,
    .n = N,
    .vectors = VECTORS,
    .steps = 1200,
    .samples = UINT64_C(1) << 40,
    .state_steps = 1300,
    .samples_cluster = 99,
    .trained_us = UINT64_C(3600000000),
    .pass = 3,
    .position = 17,
    .settings = {{"lr", "0.05"}, {"budget", "2 epochs 9s"}, {"cluster", ""}},
    .settings_count = 3,
};

static uint8_t *bytes_new(size_t *size)
{
    uint8_t *header;
    size_t at;
    cr_assert_eq(checkpoint_header(&made, &header, &at), 0);
    *size = at + sizeof vectors + DIGEST_BYTES;
    uint8_t *bytes = malloc(*size);
    memcpy(bytes, header, at);
    memcpy(bytes + at, vectors, sizeof vectors);
    cr_assert_eq(digest_bytes(bytes, at + sizeof vectors, bytes + at + sizeof vectors), 0);
    free(header);
    return bytes;
}

static int read_bytes(const uint8_t *bytes, size_t size, struct checkpoint *checkpoint)
{
    const uint8_t *found;
    char why[128] = "";
    int error = checkpoint_read(checkpoint, &found, bytes, size, why, sizeof why);
    if (!error) cr_expect_arr_eq(found, vectors, sizeof vectors);
    cr_expect_eq(error != 0, why[0] != 0);
    return error;
}

Test(checkpoint, what_was_written_is_read_back)
{
    /* Proves that all of a node's state comes through. */
    struct checkpoint read;
    size_t size;
    uint8_t *bytes = bytes_new(&size);
    cr_assert_eq(read_bytes(bytes, size, &read), 0);
    cr_expect_str_eq(read.node, made.node);
    cr_expect_str_eq(read.model, made.model);
    cr_expect_str_eq(read.optimizer, made.optimizer);
    cr_expect_str_eq(read.data, made.data);
    cr_expect_eq(read.run, made.run);
    cr_expect_eq(read.n, made.n);
    cr_expect_eq(read.vectors, made.vectors);
    cr_expect_eq(read.steps, made.steps);
    cr_expect_eq(read.samples, made.samples);
    cr_expect_eq(read.state_steps, made.state_steps);
    cr_expect_eq(read.samples_cluster, made.samples_cluster);
    cr_expect_eq(read.trained_us, made.trained_us);
    cr_expect_eq(read.pass, made.pass);
    cr_expect_eq(read.position, made.position);
    cr_assert_eq(read.settings_count, made.settings_count);
    for (uint32_t i = 0; i < made.settings_count; i++) {
        cr_expect_str_eq(read.settings[i].name, made.settings[i].name);
        cr_expect_str_eq(read.settings[i].value, made.settings[i].value);
    }
    free(bytes);
}

Test(checkpoint, a_file_cut_anywhere_is_told_from_a_whole_one)
{
    /* Proves that no torn write is taken for a checkpoint. */
    struct checkpoint read;
    size_t size;
    uint8_t *bytes = bytes_new(&size);
    for (size_t cut = 0; cut < size; cut++)
        cr_expect_eq(read_bytes(bytes, cut, &read), PARLEY_EDATA, "cut at %zu", cut);
    free(bytes);
}

Test(checkpoint, what_a_terminal_would_obey_is_not_written_and_not_read)
{
    /* Proves it of each text; and of a file that is whole otherwise. */
    const size_t places[] = {offsetof(struct checkpoint, node),
                             offsetof(struct checkpoint, model),
                             offsetof(struct checkpoint, optimizer),
                             offsetof(struct checkpoint, data),
                             offsetof(struct checkpoint, settings[1].name),
                             offsetof(struct checkpoint, settings[1].value)};
    struct checkpoint read;
    uint8_t *header;
    size_t size, at = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct checkpoint bad = made;
        strcpy((char *)&bad + places[i], "\33[2J");
        cr_expect_eq(checkpoint_header(&bad, &header, &size), PARLEY_EUSAGE);
    }
    uint8_t *bytes = bytes_new(&size);
    while (memcmp(bytes + at, "\"digits\"", 8) != 0)
        at++;
    memcpy(bytes + at, "\"\\u001b\"", 8);
    cr_assert_eq(digest_bytes(bytes, size - DIGEST_BYTES, bytes + size - DIGEST_BYTES), 0);
    cr_expect_eq(read_bytes(bytes, size, &read), PARLEY_EDATA);
    free(bytes);
}

Test(checkpoint, any_flipped_bit_is_seen)
{
    /* Proves that header, vectors and digest are all under the digest. */
    struct checkpoint read;
    size_t size;
    uint8_t *bytes = bytes_new(&size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_expect_eq(read_bytes(bytes, size, &read), PARLEY_EDATA, "bit %zu", bit);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cr_expect_eq(read_bytes(bytes, size, &read), 0);
    free(bytes);
}
