/* vectors.c: see vectors.h. */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "compute/vectors.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/wire/wire.h"
#include "kernels/digest.h"
#include "kernels/mix.h"
#include "kernels/sketch.h"
#include "memory_file.h"

/* Floats in a cache line: buffers start on one, so that no two threads share any. */
enum { LINE = 16, BLOCK = 2048, CHUNK = PARLEY_CHUNK_BYTES_MAX / sizeof(float) };
_Static_assert(CHUNK % BLOCK == 0, "a chunk ends with a block");

static int add_tensor(struct vectors *vectors, const struct parley_tensor *from, size_t *offset)
{
    struct tensor *to = &vectors->tensors[vectors->tensors_count];
    if (!from->name || strlen(from->name) >= sizeof to->name) return PARLEY_EUSAGE;
    if (from->rank < 1 || from->rank > 4) return PARLEY_EUSAGE;
    strcpy(to->name, from->name);
    to->rank = from->rank;
    to->offset = *offset;
    to->count = 1;
    for (uint32_t i = 0; i < from->rank; i++) {
        to->shape[i] = from->shape[i];
        if (!from->shape[i] || to->count > vectors->count / from->shape[i]) return PARLEY_EUSAGE;
        to->count *= from->shape[i];
    }
    *offset += to->count;
    if (*offset > vectors->count) return PARLEY_EUSAGE;
    vectors->tensors_count++;
    return PARLEY_OK;
}

static int add_tensors(struct vectors *vectors, const struct parley_options *options, char *why,
                       size_t size)
{
    uint32_t count = options->tensors_count;
    vectors->tensors = calloc(count ? count : 1, sizeof *vectors->tensors);
    if (!vectors->tensors) return PARLEY_ENOMEM;
    size_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!add_tensor(vectors, &options->tensors[i], &offset)) continue;
        const char *name = options->tensors[i].name;
        snprintf(why, size,
                 "tensors: number %u, \"%.80s\", has a name of more than 31 bytes, or a shape that "
                 "is not of 1 to 4 sizes from 1 on, or does not fit",
                 i, name ? name : "(NULL)");
        return PARLEY_EUSAGE;
    }
    if (offset == vectors->count) return PARLEY_OK;
    snprintf(why, size, "tensors: they hold %zu floats, the vector %zu", offset, vectors->count);
    return PARLEY_EUSAGE;
}

/* A file of nobody's file system: it goes with the last process that has it. Peers may map it, for
 * reading only, and rely on its size. */
static float *map_file(int file, size_t bytes)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    struct rlimit limit; /* beyond it there is a signal */
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < bytes) return NULL;
    if (ftruncate(file, (off_t)bytes)) return NULL;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return NULL;
    if (fcntl(file, F_ADD_SEALS, seals) == 0) return at;
    munmap(at, bytes);
    return NULL;
}

/* Where no such file can be had, plain memory will do. Of a file nobody says that it is larger than
 * all memory, before it is filled: so plain memory is asked first. */
static void make_block(struct vectors *vectors, size_t bytes, bool shared)
{
    vectors->block = aligned_alloc(LINE * sizeof(float), bytes);
    if (!vectors->block) return;
    int file = shared ? memory_file_new("parley") : -1;
    vectors->block_bytes = bytes;
    float *mapped = file >= 0 ? map_file(file, bytes) : NULL;
    if (mapped) {
        free(vectors->block);
        vectors->block = mapped;
        vectors->file = file;
    } else if (file >= 0)
        close(file);
}

int vectors_init(struct vectors *vectors, const struct parley_options *options,
                 const struct parley_config *config, char *why, size_t size)
{
    memset(vectors, 0, sizeof *vectors);
    vectors->file = -1;
    vectors->count = config->parameters;
    vectors->run = config->run;
    vectors->codec = (struct codec){.kind = config->codec, .part = config->codec_part};
    for (uint32_t v = 0; v < config->vectors; v++) {
        vectors->trained[v] = options->vectors[v];
        if (options->vectors[v]) continue;
        snprintf(why, size, "vectors[%u] is missing", v);
        return PARLEY_EUSAGE;
    }
    int code = add_tensors(vectors, options, why, size);
    if (code) return code;
    vectors->buffers = parley_config_buffers(config);
    vectors->averaged = config->averaged;
    vectors->stride = (vectors->count * config->averaged + LINE - 1) / LINE * LINE;
    if (vectors->stride > SIZE_MAX / sizeof(float) / vectors->buffers) return PARLEY_ENOMEM;
    size_t bytes = vectors->stride * vectors->buffers * sizeof(float);
    make_block(vectors, bytes, !options->no_lane);
    vectors->parts = calloc(vectors->buffers, sizeof *vectors->parts);
    vectors->chunks = (vectors->count + CHUNK - 1) / CHUNK;
    vectors->sums = calloc(vectors->chunks * vectors->buffers, sizeof *vectors->sums);
    vectors->norms_sq = calloc(vectors->buffers, sizeof *vectors->norms_sq);
    vectors->known = calloc(vectors->buffers, sizeof *vectors->known);
    if (!vectors->sums || !vectors->norms_sq || !vectors->known) return PARLEY_ENOMEM;
    return vectors->block && vectors->parts ? PARLEY_OK : PARLEY_ENOMEM;
}

void vectors_close(struct vectors *vectors)
{
    if (vectors->file >= 0) {
        munmap(vectors->block, vectors->block_bytes);
        close(vectors->file);
    } else {
        free(vectors->block);
    }
    free(vectors->parts);
    free(vectors->sums);
    free(vectors->norms_sq);
    free(vectors->known);
    free(vectors->tensors);
}

float *vectors_buffer(const struct vectors *vectors, uint32_t buffer)
{
    assert(buffer < vectors->buffers);
    return vectors->block + vectors->stride * buffer;
}

/* The difference goes on by whole blocks of these floats of theirs: those that follow. */
static void diff_on(struct vectors *vectors, const struct parley_update *update,
                    const float *theirs, size_t floats)
{
    struct mix_part *part = &vectors->parts[update->store.buffer];
    mix_diff_next(part, vectors_buffer(vectors, update->store.buffer) + part->done, theirs,
                  vectors_buffer(vectors, update->store.other) + part->done, floats / MIX_BLOCK,
                  vectors->run);
}

/* The same of theirs that stand in their place, up to `ready`. Where it began late, as the snapshot
 * was not there, it catches up bit by bit: a turn is short. */
static void diff_in_place(struct vectors *vectors, const struct parley_update *update, size_t ready)
{
    size_t done = vectors->parts[update->store.buffer].done;
    size_t soon = done + 2 * MIX_BLOCK + update->store.size / 2;
    if (ready > soon) ready = soon;
    if (ready > done)
        diff_on(vectors, update, vectors_buffer(vectors, update->store.buffer) + done,
                ready - done);
}

void vectors_store(struct vectors *vectors, const struct parley_update *update)
{
    size_t whole = vectors->count * vectors->averaged * sizeof(float);
    size_t size = update->store.size, offset = update->store.offset, made = offset;
    assert(offset <= whole && size <= whole - offset);
    uint8_t *buffer = (uint8_t *)vectors_buffer(vectors, update->store.buffer);
    const uint8_t *bytes = update->store.bytes;
    struct mix_part *part = &vectors->parts[update->store.buffer];

    vectors_forget(vectors, update->store.buffer);
    if (offset == 0) memset(part, 0, sizeof *part);
    bool elsewhere = bytes != buffer + offset; /* else it was read from the socket to its place */
    if (elsewhere && update->store.diffs && part->done * sizeof(float) == offset &&
        (uintptr_t)bytes % sizeof(float) == 0) {
        diff_on(vectors, update, (const float *)(const void *)bytes, size / sizeof(float));
        made = part->done * sizeof(float);
    }
    if (elsewhere) memcpy(buffer + made, bytes + (made - offset), offset + size - made);
    if (update->store.diffs) diff_in_place(vectors, update, (offset + size) / sizeof(float));
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

void vectors_forget(struct vectors *vectors, uint32_t buffer)
{
    vectors->known[buffer] = false;
}

void vectors_seal(const struct vectors *vectors, const struct parley_update *update)
{
    size_t from = update->chunk.offset / sizeof(float), chunk = from / CHUNK;
    size_t size = update->chunk.size / sizeof(float), left = vectors->count - chunk * CHUNK;
    uint32_t buffer = update->chunk.buffer;
    if (vectors->known[buffer] && from % CHUNK == 0 && size == (left < CHUNK ? left : CHUNK))
        wire_chunk_seal_as(update->chunk.head, vectors->sums[vectors->chunks * buffer + chunk]);
    else
        wire_chunk_seal(update->chunk.head, vectors_buffer(vectors, buffer) + from,
                        update->chunk.size);
}

/* The block of a snapshot that begins at `at`. All that there is to know of it is seen while it is
 * in the cache, so that memory is passed over once: its squares, and the sum of a chunk that ends
 * with it. */
static void take_block(struct vectors *vectors, uint32_t buffer, const float *from, size_t at,
                       size_t size, struct mix_squares *squares)
{
    float *to = vectors_buffer(vectors, buffer);
    size_t end = at + size, start = at / CHUNK * CHUNK;
    mix_take(squares, to + at, from + at, size);
    if (end % CHUNK == 0 || end == vectors->count)
        vectors->sums[vectors->chunks * buffer + start / CHUNK] =
            wire_chunk_sum(to + start, (end - start) * sizeof *to);
}

/* All of it was taken. Returns whether it is finite. */
static bool end_take(struct vectors *vectors, uint32_t buffer, const struct mix_squares *squares)
{
    vectors->norms_sq[buffer] = mix_squares_sum(squares);
    vectors->known[buffer] = true;
    return isfinite(vectors->norms_sq[buffer]);
}

static size_t block_size(const struct vectors *vectors, size_t at)
{
    return vectors->count - at < BLOCK ? vectors->count - at : BLOCK;
}

static bool take_vector(struct vectors *vectors, uint32_t buffer, const float *from)
{
    struct mix_squares squares = {{0}};
    for (size_t at = 0; at < vectors->count; at += BLOCK)
        take_block(vectors, buffer, from, at, block_size(vectors, at), &squares);
    return end_take(vectors, buffer, &squares);
}

/* Several vectors, one behind the other. */
static bool take_wide(struct vectors *vectors, uint32_t buffer, uint32_t wide)
{
    bool finite = true;
    float *to = vectors_buffer(vectors, buffer);
    for (uint32_t v = 0; v < wide; v++, to += vectors->count) {
        memcpy(to, vectors->trained[v], vectors->count * sizeof *to);
        finite = mix_finite(to, vectors->count) && finite;
    }
    vectors_forget(vectors, buffer);
    return finite;
}

static void take(struct vectors *vectors, struct op *op)
{
    bool finite = true;
    if (op->update.vector.wide > 1)
        finite = take_wide(vectors, op->update.vector.buffer, op->update.vector.wide);
    else
        for (uint32_t v = 0; v < op->update.vector.vectors; v++)
            finite =
                take_vector(vectors, op->update.vector.buffers[v], vectors->trained[v]) && finite;
    op->done.done.finite = finite;
}

/* ---- Averaging ------------------------------------------------------------------------------- */

/* x += factor * d, or d with what rounding keeps from x; so much of it goes to the momentum, too,
 * before x has it. */
static void add_block(struct vectors *vectors, const struct op *op, size_t at, size_t size)
{
    float *x = vectors->trained[0] + at, factor = op->update.vector.factor;
    float *d = vectors_buffer(vectors, op->update.vector.buffer) + at;
    if (vectors->follow != 0 && vectors->trained[1])
        mix_add(vectors->trained[1] + at, d, factor * vectors->follow, size);
    if (op->update.vector.rest)
        mix_add_rest(x, d, size);
    else
        mix_add(x, d, factor, size);
}

static void add(struct vectors *vectors, const struct op *op)
{
    const float *d = vectors_buffer(vectors, op->update.vector.buffer);
    for (uint32_t v = 1; v < op->update.vector.wide; v++)
        mix_add(vectors->trained[v], d + v * vectors->count, op->update.vector.factor,
                vectors->count);
    for (size_t at = 0; at < vectors->count; at += BLOCK)
        add_block(vectors, op, at, block_size(vectors, at));
    vectors->added++;
}

bool vectors_add_take(struct vectors *vectors, struct op *add, struct op *take)
{
    const struct parley_update *to = &take->update;
    if (add->update.type != PARLEY_UPDATE_ADD || to->type != PARLEY_UPDATE_TAKE) return false;
    if (add->update.vector.wide > 1 || to->vector.wide > 1 || to->vector.vectors > 1) return false;
    uint32_t buffer = to->vector.buffers[0];
    struct mix_squares squares = {{0}};
    vectors_forget(vectors, add->update.vector.buffer);
    for (size_t at = 0; at < vectors->count; at += BLOCK) {
        size_t size = block_size(vectors, at);
        add_block(vectors, add, at, size);
        take_block(vectors, buffer, vectors->trained[0], at, size, &squares);
    }
    vectors->added++;
    add->done.done.ok = take->done.done.ok = true;
    take->done.done.finite = end_take(vectors, buffer, &squares);
    return true;
}

static struct codec codec_of(const struct vectors *vectors, const struct op *op)
{
    struct codec codec = vectors->codec;
    codec.draw = op->update.vector.draw;
    return codec;
}

static void encode(struct vectors *vectors, struct op *op)
{
    struct codec codec = codec_of(vectors, op);
    const struct parley_update *update = &op->update;
    uint32_t from = update->vector.at_other ? update->vector.other : update->vector.buffer;
    codec_encode(&codec, vectors_buffer(vectors, update->vector.buffer),
                 vectors_buffer(vectors, from), vectors->count, update->vector.wide);
}

static void plain_diff(struct vectors *vectors, const struct parley_update *update,
                       struct codec_result *out)
{
    const float *ours = vectors_buffer(vectors, update->vector.other);
    struct mix_diff_result result;
    mix_diff_rest(&vectors->parts[update->vector.buffer],
                  vectors_buffer(vectors, update->vector.buffer), ours, vectors->count,
                  vectors->run, &result);
    *out = (struct codec_result){.finite = result.finite,
                                 .norm_sq = result.norm_sq,
                                 .ours_norm_sq = vectors->known[update->vector.other]
                                                     ? vectors->norms_sq[update->vector.other]
                                                     : mix_norm_sq(ours, vectors->count),
                                 .mass = result.mass};
}

static void diff(struct vectors *vectors, struct op *op)
{
    const struct parley_update *update = &op->update;
    struct codec codec = codec_of(vectors, op);
    struct codec_result result;
    if (!update->vector.coded) codec.kind = PARLEY_CODEC_FP32;
    if (codec.kind == PARLEY_CODEC_FP32 && update->vector.wide <= 1)
        plain_diff(vectors, update, &result);
    else
        codec_diff(&codec, vectors_buffer(vectors, update->vector.buffer),
                   vectors_buffer(vectors, update->vector.other), vectors->count,
                   update->vector.wide, vectors->run, &result);
    vectors->parts[update->vector.buffer] = (struct mix_part){0};
    op->done.done.finite = result.finite;
    op->done.done.norm_sq = result.norm_sq;
    op->done.done.mass = result.mass;
    op->done.done.own_norm_sq = result.ours_norm_sq;
}

static void combine(struct vectors *vectors, struct op *op)
{
    struct codec codec = codec_of(vectors, op);
    if (op->update.vector.coded) {
        op->done.done.finite =
            codec_add(&codec, vectors_buffer(vectors, op->update.vector.buffer),
                      vectors_buffer(vectors, op->update.vector.other), vectors->count);
        return;
    }
    size_t at = op->update.vector.offset / sizeof(float);
    op->done.done.finite =
        mix_combine(vectors_buffer(vectors, op->update.vector.buffer) + at,
                    vectors_buffer(vectors, op->update.vector.other) + at, op->update.vector.keep,
                    op->update.vector.factor, op->update.vector.size / sizeof(float));
}

static void sketch(struct vectors *vectors, struct op *op)
{
    sketch_of(op->sketch, vectors_buffer(vectors, op->update.vector.buffer), vectors->count,
              vectors->run);
    op->done.done.sketch = op->sketch;
}

static void set(struct vectors *vectors, struct op *op)
{
    const uint32_t *buffers = op->update.vector.buffers;
    uint32_t count = op->update.vector.vectors;
    bool finite = true;
    for (uint32_t v = 0; op->update.vector.if_finite && v < count; v++)
        finite = mix_finite(vectors_buffer(vectors, buffers[v]), vectors->count) && finite;
    op->done.done.finite = finite;
    for (uint32_t v = 0; finite && v < count; v++)
        memcpy(vectors->trained[v], vectors_buffer(vectors, buffers[v]),
               vectors->count * sizeof(float));
}

void vectors_carry(struct vectors *vectors, struct op *op)
{
    op->done.done.ok = true;
    if (op->update.type != PARLEY_UPDATE_TAKE && op->update.type != PARLEY_UPDATE_SET)
        vectors_forget(vectors, op->update.vector.buffer);
    switch (op->update.type) {
    case PARLEY_UPDATE_TAKE:
        take(vectors, op);
        break;
    case PARLEY_UPDATE_SET:
        set(vectors, op);
        break;
    case PARLEY_UPDATE_ADD:
        add(vectors, op);
        break;
    case PARLEY_UPDATE_ENCODE:
        encode(vectors, op);
        break;
    case PARLEY_UPDATE_MIX:
        mix_combine(vectors->trained[0], vectors_buffer(vectors, op->update.vector.buffer),
                    op->update.vector.keep, op->update.vector.factor, vectors->count);
        break;
    case PARLEY_UPDATE_DIFF:
        diff(vectors, op);
        break;
    case PARLEY_UPDATE_COMBINE:
        combine(vectors, op);
        break;
    case PARLEY_UPDATE_SKETCH:
        sketch(vectors, op);
        break;
    case PARLEY_UPDATE_HASH:
        op->done.done.ok =
            !digest_model(vectors_buffer(vectors, op->update.vector.buffer), vectors->count,
                          vectors->tensors, vectors->tensors_count, vectors->run, op->digest);
        op->done.done.digest = op->digest;
        op->done.done.finite =
            mix_finite(vectors_buffer(vectors, op->update.vector.buffer), vectors->count);
        break;
    default:
        assert(!"no operation on vectors");
    }
}
