/* digest.c: the model's name: stable, sensitive to all that it covers, text there and back. */
#include <criterion/criterion.h>
#include <string.h>

#include "kernels/digest.h"

static const struct tensor tensors[] = {{"w", 2, {2, 3}, 0, 6}, {"b", 1, {3}, 6, 3}};
static const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static void text_of(const float *vector, size_t n, const struct tensor *table, uint32_t count,
                    uint64_t run, char *text)
{
    uint8_t digest[DIGEST_BYTES];
    cr_assert_eq(digest_model(vector, n, table, count, run, digest), 0);
    digest_text(digest, text);
}

Test(digest, bytes_hash_to_the_published_value)
{
    /* SHA-256 of "abc" (FIPS 180-2, appendix B.1). */
    uint8_t digest[DIGEST_BYTES];
    char text[DIGEST_TEXT_BYTES];
    cr_assert_eq(digest_bytes("abc", 3, digest), 0);
    digest_text(digest, text);
    cr_assert_str_eq(text,
                     "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Test(digest, any_change_of_run_name_shape_or_bits_changes_it)
{
    /* What the digest covers: run id, tensor names, shapes, count, and the sign of a zero. */
    char base[DIGEST_TEXT_BYTES], other[DIGEST_TEXT_BYTES];
    text_of(x, 9, tensors, 2, 5, base);
    text_of(x, 9, tensors, 2, 5, other);
    cr_assert_str_eq(base, other);
    text_of(x, 9, tensors, 2, 6, other);
    cr_assert_str_neq(base, other);
    text_of(x, 9, tensors, 1, 5, other);
    cr_assert_str_neq(base, other);
    text_of(x, 9, NULL, 0, 5, other);
    cr_assert_str_neq(base, other);
    struct tensor changed[2] = {tensors[0], tensors[1]};
    changed[0].name[0] = 'v';
    text_of(x, 9, changed, 2, 5, other);
    cr_assert_str_neq(base, other);
    changed[0] = tensors[0];
    changed[0].shape[0] = 3;
    changed[0].shape[1] = 2;
    text_of(x, 9, changed, 2, 5, other);
    cr_assert_str_neq(base, other);
    float zero = 0, minus = -0.0f;
    text_of(&zero, 1, NULL, 0, 5, base);
    text_of(&minus, 1, NULL, 0, 5, other);
    cr_assert_str_neq(base, other);
}

Test(digest, pieces_hash_like_the_whole)
{
    /* A vector that arrives in chunks has the digest of the whole, and a table of one tensor called
     * "vector" that of no table. */
    uint8_t whole[DIGEST_BYTES], pieces[DIGEST_BYTES];
    const struct tensor vector = {"vector", 1, {9}, 0, 9};
    struct digest digest;
    cr_assert_eq(digest_model(x, 9, NULL, 0, 1, whole), 0);
    cr_assert_eq(digest_init(&digest), 0);
    cr_assert_eq(digest_add_shape(&digest, 9, &vector, 1, 1), 0);
    cr_assert_eq(digest_add(&digest, x, 5), 0);
    cr_assert_eq(digest_add(&digest, NULL, 0), 0);
    cr_assert_eq(digest_add(&digest, (const char *)x + 5, sizeof x - 5), 0);
    cr_assert_eq(digest_end(&digest, pieces), 0);
    digest_close(&digest);
    cr_assert_arr_eq(whole, pieces, sizeof whole);
}

Test(digest, text_goes_there_and_back_and_nothing_else_is_taken)
{
    /* Only the exact form that digest_text writes is parsed. */
    uint8_t digest[DIGEST_BYTES], back[DIGEST_BYTES];
    char text[DIGEST_TEXT_BYTES], bad[DIGEST_TEXT_BYTES];
    cr_assert_eq(digest_bytes("x", 1, digest), 0);
    digest_text(digest, text);
    cr_assert_eq(digest_parse(text, back), 0);
    cr_assert_arr_eq(digest, back, sizeof back);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        memcpy(bad, text, sizeof text);
        bad[i] = 'G';
        cr_assert_eq(digest_parse(bad, back), PARLEY_EMALFORMED);
        bad[i] = 0;
        cr_assert_eq(digest_parse(bad, back), PARLEY_EMALFORMED);
    }
}
