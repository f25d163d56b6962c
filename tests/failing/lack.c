/* lack.c: see lack.h. */
#include "lack.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t made, fails_at;
static atomic_int_fast64_t kept;
static atomic_bool in_library;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **block, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *block);

static bool fails(void)
{
    if (atomic_fetch_add(&made, 1) + 1 != atomic_load(&fails_at)) return false;
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block) atomic_fetch_add(&kept, 1);
    return block;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (fails()) return NULL;
    void *grown = __real_realloc(block, size);
    return block ? grown : counted(grown);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size)
{
    int error = fails() ? ENOMEM : __real_posix_memalign(block, alignment, size);
    if (!error) atomic_fetch_add(&kept, 1);
    return error;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, SIZE_MAX);
}

char *__wrap_strndup(const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = __wrap_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

void __wrap_free(void *block)
{
    if (block) atomic_fetch_sub(&kept, 1);
    __real_free(block);
}

static bool fails_in_library(void)
{
    if (!fails()) return false;
    atomic_store(&in_library, true);
    return true;
}

static void *json_malloc(size_t size)
{
    return fails_in_library() ? NULL : counted(__real_malloc(size));
}

static void *crypto_malloc(size_t size, const char *file, int line)
{
    return fails_in_library() ? NULL : __real_malloc(size);
}

static void *crypto_realloc(void *block, size_t size, const char *file, int line)
{
    return fails_in_library() ? NULL : __real_realloc(block, size);
}

static void crypto_free(void *block, const char *file, int line)
{
    __real_free(block);
}

void lack_init(void)
{
    json_set_alloc_funcs(json_malloc, __wrap_free);
    /* Not counted as kept: it keeps what it has fetched until the process ends. */
    if (!CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free)) abort();
}

void lack_start(uint64_t n)
{
    atomic_store(&fails_at, 0);
    atomic_store(&made, 0);
    atomic_store(&in_library, false);
    atomic_store(&fails_at, n);
}

uint64_t lack_made(void)
{
    return atomic_load(&made);
}

bool lack_failed(void)
{
    uint64_t at = atomic_load(&fails_at);
    return at > 0 && atomic_load(&made) >= at;
}

bool lack_in_library(void)
{
    return atomic_load(&in_library);
}

int64_t lack_kept(void)
{
    return atomic_load(&kept);
}
