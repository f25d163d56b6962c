/* shared_data.c: see shared_data.h. A copy of the source, in which each pointer is replaced by the
 * place of its block in the file; a block begins on a cache line. */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "shared_data.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory_file.h"

enum { LINE = 64, BLOCKS = 18 };

static const int SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static const int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_WRITE;
static const char MARK[16] = "parley data 1";

struct head {
    char mark[sizeof MARK];
    uint64_t size; /* of the file */
    struct source source;
};

struct block {
    void **pointer; /* in the source */
    size_t size;
};

static void add(struct block *blocks, size_t *count, void *pointer, size_t size)
{
    blocks[(*count)++] = (struct block){pointer, size};
}

static void add_set(struct block *blocks, size_t *count, struct dataset *set)
{
    size_t cells = (size_t)set->count * set->features, scales = set->bytes ? 1 : set->features;
    add(blocks, count, &set->bytes, cells);
    add(blocks, count, &set->values, cells * sizeof *set->values);
    add(blocks, count, &set->labels, set->count * sizeof *set->labels);
    add(blocks, count, &set->targets, set->count * sizeof *set->targets);
    add(blocks, count, &set->shift, scales * sizeof *set->shift);
    add(blocks, count, &set->scale, scales * sizeof *set->scale);
}

static void add_names(struct block *blocks, size_t *count, struct names *names)
{
    add(blocks, count, &names->text, names->size);
    add(blocks, count, &names->at, names->count * sizeof *names->at);
    add(blocks, count, &names->slots, names->slots_count * sizeof *names->slots);
}

/* All that a source owns, in one order. Those that it has not are NULL there. */
static void list_blocks(struct block blocks[BLOCKS], struct source *source)
{
    size_t count = 0;
    add_set(blocks, &count, &source->train);
    add_set(blocks, &count, &source->test);
    add_names(blocks, &count, &source->shape.classes);
    add_names(blocks, &count, &source->shape.columns);
}

static size_t up(size_t size)
{
    return (size + LINE - 1) / LINE * LINE;
}

static void fill(uint8_t *base, size_t size, const struct source *source)
{
    struct head *head = (struct head *)base;
    struct block blocks[BLOCKS];
    size_t at = up(sizeof *head);
    memcpy(head->mark, MARK, sizeof MARK);
    head->size = size;
    head->source = *source;
    list_blocks(blocks, &head->source);
    for (size_t i = 0; i < BLOCKS; i++) {
        if (!*blocks[i].pointer) continue;
        memcpy(base + at, *blocks[i].pointer, blocks[i].size);
        *blocks[i].pointer = (void *)(uintptr_t)at;
        at += up(blocks[i].size);
    }
}

static size_t size_of(const struct source *source)
{
    struct source copy = *source;
    struct block blocks[BLOCKS];
    size_t size = up(sizeof(struct head));
    list_blocks(blocks, &copy);
    for (size_t i = 0; i < BLOCKS; i++)
        size += *blocks[i].pointer ? up(blocks[i].size) : 0;
    return size;
}

int shared_data_make(const struct source *source)
{
    size_t size = size_of(source);
    int file = memory_file_new("parley-data");
    void *base = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)size) == 0)
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base != MAP_FAILED) {
        fill(base, size, source);
        munmap(base, size); /* before the seal: nobody may be writing then */
    }
    if (base != MAP_FAILED && fcntl(file, F_ADD_SEALS, SEALS) == 0) return file;
    if (file >= 0) close(file);
    return -1;
}

bool shared_data_map(int file, struct source *source)
{
    struct stat about;
    struct block blocks[BLOCKS];
    if (!memory_file_has_seals(file, SEALS) || fstat(file, &about)) return false;
    size_t size = (size_t)about.st_size;
    if (size < sizeof(struct head)) return false;
    uint8_t *base = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) return false;
    const struct head *head = (const struct head *)base;
    if (memcmp(head->mark, MARK, sizeof MARK) != 0 || head->size != size) {
        munmap(base, size);
        return false;
    }
    *source = head->source;
    list_blocks(blocks, source);
    for (size_t i = 0; i < BLOCKS; i++)
        if (*blocks[i].pointer) *blocks[i].pointer = base + (uintptr_t)*blocks[i].pointer;
    return true;
}

int shared_coverage_make(uint32_t samples)
{
    int file = memory_file_new("parley-coverage");
    if (file >= 0 && ftruncate(file, (off_t)coverage_bytes(samples)) == 0 &&
        fcntl(file, F_ADD_SEALS, SIZE_SEALS) == 0)
        return file;
    if (file >= 0) close(file);
    return -1;
}

bool shared_coverage_map(int file, uint32_t samples, struct coverage *coverage)
{
    struct stat about;
    size_t size = coverage_bytes(samples);
    if (!memory_file_has_seals(file, SIZE_SEALS) || fstat(file, &about) ||
        about.st_size != (off_t)size)
        return false;
    void *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED) return false;
    *coverage = (struct coverage){words, samples};
    return true;
}
