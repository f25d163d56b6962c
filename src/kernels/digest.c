/* digest.c: SHA-256 by OpenSSL over a model's canonical bytes. It fails only for want of memory. */
#include "kernels/digest.h"

#include <float.h>
#include <openssl/evp.h>
#include <string.h>

/* Vectors travel, lie in files and are hashed as they stand in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(float) == 4,
               "parley needs a little-endian machine with 32-bit floats");
_Static_assert(FLT_EVAL_METHOD == 0,
               "both ends of an exchange must round alike: on a 32-bit x86 build with -msse2 "
               "-mfpmath=sse");

static const char scheme[16] = "parley-model-1";
static const char prefix[] = "sha256:";

int digest_init(struct digest *digest)
{
    digest->context = EVP_MD_CTX_new();
    if (digest->context == NULL) return PARLEY_ENOMEM;
    return EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1 ? 0 : PARLEY_ENOMEM;
}

int digest_add(struct digest *digest, const void *bytes, size_t size)
{
    if (size == 0) return 0;
    return EVP_DigestUpdate(digest->context, bytes, size) == 1 ? 0 : PARLEY_ENOMEM;
}

int digest_add_shape(struct digest *digest, size_t n, const struct tensor *tensors,
                     uint32_t tensor_count, uint64_t run)
{
    /* A shape holds 32 bits a dimension: a longer vector is split, high part first, as rank 2. */
    struct tensor whole = {.name = "vector", .rank = 1, .shape = {(uint32_t)n}, .count = n};
    if ((uint64_t)n >> 32 != 0) {
        whole.rank = 2;
        whole.shape[0] = (uint32_t)((uint64_t)n >> 32);
        whole.shape[1] = (uint32_t)n;
    }
    if (tensor_count == 0) {
        tensors = &whole;
        tensor_count = 1;
    }
    int error = digest_add(digest, scheme, sizeof scheme);
    if (error == 0) error = digest_add(digest, &run, sizeof run);
    if (error == 0) error = digest_add(digest, &tensor_count, sizeof tensor_count);
    for (uint32_t t = 0; t < tensor_count && error == 0; t++) {
        const struct tensor *tensor = &tensors[t];
        uint32_t length = (uint32_t)strnlen(tensor->name, sizeof tensor->name);
        error = digest_add(digest, &length, sizeof length);
        if (error == 0) error = digest_add(digest, tensor->name, length);
        if (error == 0) error = digest_add(digest, &tensor->rank, sizeof tensor->rank);
        if (error == 0)
            error = digest_add(digest, tensor->shape, tensor->rank * sizeof *tensor->shape);
    }
    return error;
}

int digest_end(struct digest *digest, uint8_t out[DIGEST_BYTES])
{
    return EVP_DigestFinal_ex(digest->context, out, NULL) == 1 ? 0 : PARLEY_ENOMEM;
}

void digest_close(struct digest *digest)
{
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
}

int digest_model(const float *x, size_t n, const struct tensor *tensors, uint32_t tensor_count,
                 uint64_t run, uint8_t out[DIGEST_BYTES])
{
    struct digest digest;
    int error = digest_init(&digest);
    if (error == 0) error = digest_add_shape(&digest, n, tensors, tensor_count, run);
    if (error == 0) error = digest_add(&digest, x, n * sizeof *x);
    if (error == 0) error = digest_end(&digest, out);
    digest_close(&digest);
    return error;
}

int digest_bytes(const void *bytes, size_t size, uint8_t out[DIGEST_BYTES])
{
    struct digest digest;
    int error = digest_init(&digest);
    if (error == 0) error = digest_add(&digest, bytes, size);
    if (error == 0) error = digest_end(&digest, out);
    digest_close(&digest);
    return error;
}

void digest_text(const uint8_t digest[DIGEST_BYTES], char text[DIGEST_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    char *at = text + sizeof prefix - 1;
    memcpy(text, prefix, sizeof prefix - 1);
    for (int i = 0; i < DIGEST_BYTES; i++) {
        *at++ = digits[digest[i] >> 4];
        *at++ = digits[digest[i] & 15];
    }
    *at = 0;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int digest_parse(const char *text, uint8_t digest[DIGEST_BYTES])
{
    if (strlen(text) != DIGEST_TEXT_BYTES - 1) return PARLEY_EMALFORMED;
    if (memcmp(text, prefix, sizeof prefix - 1) != 0) return PARLEY_EMALFORMED;
    const char *at = text + sizeof prefix - 1;
    for (int i = 0; i < DIGEST_BYTES; i++, at += 2) {
        int high = digit_value(at[0]), low = digit_value(at[1]);
        if (high < 0 || low < 0) return PARLEY_EMALFORMED;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}
