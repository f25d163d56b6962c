/* buffers.c: the floats behind buffer ids.
 *
 * A buffer is a block that others may hold too: a chunk on its way refers to its sender's block,
 * and a STORE of a whole vector makes that the receiver's. Who is about to write one that is held
 * elsewhere gets a new block instead. So a snapshot crosses the network without a copy. A buffer
 * may also be a difference of two blocks (gap.c), whose floats are made when somebody wants them as
 * such. Blocks are counted by the loop's thread alone; jobs hold those that they work on until
 * their DONE is told.
 *
 * Blocks come from slabs, the small before the large, and are used again until the end. A thousand
 * models lie far apart: in large pages the way to each is shorter.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "world/compute/gap.h"
#include "world/compute/pages.h"

enum { SLAB_BLOCKS_MIN = 4, SLAB_BYTES_MAX = 8 << 20 };

/* The first line of a slab; its blocks follow, then their floats. */
struct sim_slab {
    _Alignas(SIM_LINE) struct sim_slab *next;
    struct sim_block blocks[];
};

static bool slab_new(struct parley_sim *sim)
{
    size_t floats = (sim->floats * sizeof(float) + SIM_LINE - 1) / SIM_LINE * SIM_LINE;
    size_t block = sizeof(struct sim_block) + floats;
    if (sim->slab_blocks == 0) sim->slab_blocks = SLAB_BLOCKS_MIN;
    while (sim->slab_blocks > 1 && sim->slab_blocks * block > SLAB_BYTES_MAX)
        sim->slab_blocks /= 2;
    size_t bytes = sizeof(struct sim_slab) + sim->slab_blocks * block;
    void *memory;
    if (posix_memalign(&memory, bytes < SIM_LARGE_PAGE ? SIM_LINE : SIM_LARGE_PAGE, bytes))
        return false;
    sim_pages_advise(memory, bytes);
    struct sim_slab *slab = memory;
    slab->next = sim->slabs;
    sim->slabs = slab;
    for (uint32_t i = sim->slab_blocks; i-- > 0;) {
        struct sim_block *made = &slab->blocks[i];
        made->x = (float *)((char *)&slab->blocks[sim->slab_blocks] + i * floats);
        made->next = sim->blocks;
        sim->blocks = made;
    }
    sim->slab_blocks *= 2;
    return true;
}

struct sim_block *sim_block_new(struct parley_sim *sim)
{
    if (!sim->blocks && !slab_new(sim)) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a buffer");
        return NULL;
    }
    struct sim_block *block = sim->blocks;
    sim->blocks = block->next; /* the newest, as it may still lie in a cache */
    block->newest = NULL;
    block->norm_sq = -1;
    block->users = 1;
    return block;
}

struct sim_block *sim_block_hold(struct sim_block *block)
{
    if (block) block->users++;
    return block;
}

void sim_block_release(struct parley_sim *sim, struct sim_block *block)
{
    if (!block || --block->users > 0) return;
    block->next = sim->blocks;
    sim->blocks = block;
}

void sim_blocks_free(struct parley_sim *sim)
{
    while (sim->slabs) {
        struct sim_slab *slab = sim->slabs;
        sim->slabs = slab->next;
        free(slab);
    }
}

void sim_buffer_release(struct parley_sim *sim, struct sim_buffer *buffer)
{
    sim_block_release(sim, buffer->block);
    sim_gap_release(buffer->gap);
    *buffer = (struct sim_buffer){0};
}

static struct sim_buffer *place(struct sim_host *host, uint32_t buffer)
{
    if (buffer < host->buffers_count) return &host->buffers[buffer];
    sim_fail(host->sim, PARLEY_EINVARIANT, "a buffer that is not there");
    return NULL;
}

static void replace(struct parley_sim *sim, struct sim_buffer *buffer, struct sim_block *block)
{
    sim_buffer_release(sim, buffer);
    buffer->block = block;
}

/* The first n; of a difference there are only those of a model. */
static void read_floats(const struct parley_sim *sim, const struct sim_buffer *buffer, float *into,
                        uint64_t n)
{
    const struct sim_gap *gap = buffer->gap;
    if (gap)
        mix_subtract(into, (buffer->mirrored ? gap->ours : gap->theirs)->x,
                     (buffer->mirrored ? gap->theirs : gap->ours)->x, sim->parameters);
    else if (buffer->block)
        memcpy(into, buffer->block->x, n * sizeof *into);
    else /* not written yet: on a real node it may hold anything, so who reads it is to be seen */
        for (uint64_t i = 0; i < n; i++)
            into[i] = NAN;
}

void sim_buffer_read(struct sim_host *host, uint32_t buffer, float *into)
{
    read_floats(host->sim, &host->buffers[buffer], into, host->sim->parameters);
}

/* Its floats in a block of its own. Who else holds the old one may be a job that is still to write
 * it. */
static struct sim_block *own_block(struct sim_host *host, struct sim_buffer *buffer)
{
    struct parley_sim *sim = host->sim;
    struct sim_block *block = sim_block_new(sim);
    if (!block) return NULL;
    if (buffer->block) sim_workers_drain(sim->workers, &host->lane);
    read_floats(sim, buffer, block->x, sim->floats);
    replace(sim, buffer, block);
    return block;
}

struct sim_block *sim_buffer(struct sim_host *host, uint32_t buffer)
{
    struct sim_buffer *at = place(host, buffer);
    if (!at) return NULL;
    return at->block ? at->block : own_block(host, at);
}

struct sim_block *sim_buffer_fresh(struct sim_host *host, uint32_t buffer)
{
    struct sim_buffer *at = place(host, buffer);
    if (!at) return NULL;
    if (at->block && at->block->users == 1) {
        at->block->norm_sq = -1;
        return at->block;
    }
    sim_buffer_release(host->sim, at);
    return at->block = sim_block_new(host->sim);
}

struct sim_block *sim_buffer_share(struct sim_host *host, uint32_t buffer, struct sim_block *block)
{
    struct sim_buffer *at = place(host, buffer);
    if (!at) return NULL;
    sim_block_hold(block);
    replace(host->sim, at, block);
    return block;
}

struct sim_buffer *sim_buffer_subtract(struct sim_host *host, uint32_t buffer, uint32_t other)
{
    struct sim_block *theirs = sim_buffer(host, buffer), *ours = sim_buffer(host, other);
    bool mirrored = false;
    struct sim_gap *gap = theirs && ours ? sim_gap_of(host, theirs, ours, &mirrored) : NULL;
    if (!gap) return NULL;
    struct sim_buffer *at = place(host, buffer);
    replace(host->sim, at, NULL);
    at->gap = gap;
    at->mirrored = mirrored;
    return at;
}

struct sim_buffer sim_buffer_move(struct sim_host *host, uint32_t buffer)
{
    struct sim_buffer *at = place(host, buffer), moved = {0};
    if (at && !at->gap) sim_buffer(host, buffer); /* so that there is something */
    if (!at) return moved;
    moved = *at;
    *at = (struct sim_buffer){0};
    return moved;
}

struct sim_block *sim_buffer_own(struct sim_host *host, uint32_t buffer)
{
    struct sim_buffer *at = place(host, buffer);
    if (!at) return NULL;
    struct sim_block *block = at->block && at->block->users == 1 ? at->block : own_block(host, at);
    if (block) block->norm_sq = -1;
    return block;
}

static void store_part(struct sim_host *host, const struct parley_update *update)
{
    struct sim_block *block = sim_buffer_own(host, update->store.buffer);
    if (block)
        memcpy((uint8_t *)block->x + update->store.offset, update->store.bytes, update->store.size);
}

/* Whether the floats are those of the arriving block at the same place. If so, the buffer becomes
 * that block with its first floats; those that follow stand in it already, as nobody writes a block
 * that two hold. */
static bool store_shared(struct sim_host *host, const struct parley_update *update)
{
    struct sim_block *block = host->sim->arriving;
    if (!block || update->store.bytes != (const uint8_t *)block->x + update->store.offset)
        return false;
    struct sim_buffer *at = place(host, update->store.buffer);
    if (update->store.offset > 0) return at->block == block;
    sim_buffer_share(host, update->store.buffer, block);
    return true;
}

void sim_store(struct sim_host *host, const struct parley_update *update)
{
    uint64_t bytes = host->sim->floats * sizeof(float);
    if (update->store.offset > bytes || update->store.size > bytes - update->store.offset) {
        sim_fail(host->sim, PARLEY_EINVARIANT, "a STORE past the end of its buffer");
        return;
    }
    if (!place(host, update->store.buffer)) return;
    if (!store_shared(host, update)) store_part(host, update);
}
