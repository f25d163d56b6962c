/* buffers.c: the floats behind buffer ids.
 *
 * A buffer is a block that others may hold too: a chunk on its way refers to its sender's block,
 * and a STORE of a whole vector makes that the receiver's. Who is about to write one that is held
 * elsewhere gets a new block instead. So a snapshot crosses the network without a copy. Blocks are
 * counted by the loop's thread alone; jobs hold those that they work on until their DONE is told.
 */
#include <stdlib.h>
#include <string.h>

#include "world/cluster.h"

struct sim_block *sim_block_new(struct parley_sim *sim)
{
    struct sim_block *block = sim->blocks;
    if (block) {
        sim->blocks = block->next; /* the newest, as it may still lie in a cache */
    } else {
        size_t bytes = sizeof *block + sim->parameters * sizeof *block->x;
        block = aligned_alloc(SIM_LINE, (bytes + SIM_LINE - 1) / SIM_LINE * SIM_LINE);
    }
    if (block)
        block->users = 1;
    else
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a buffer");
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
    while (sim->blocks) {
        struct sim_block *block = sim->blocks;
        sim->blocks = block->next;
        free(block);
    }
}

static struct sim_block **place(struct sim_host *host, uint32_t buffer)
{
    if (buffer < host->buffers_count) return &host->buffers[buffer];
    sim_fail(host->sim, PARLEY_EINVARIANT, "a buffer that is not there");
    return NULL;
}

struct sim_block *sim_buffer(struct sim_host *host, uint32_t buffer)
{
    struct sim_block **block = place(host, buffer);
    if (!block || *block) return block ? *block : NULL;
    *block = sim_block_new(host->sim); /* most nodes need few buffers most of the time */
    if (*block) memset((*block)->x, 0, host->sim->parameters * sizeof *(*block)->x);
    return *block;
}

struct sim_block *sim_buffer_fresh(struct sim_host *host, uint32_t buffer)
{
    struct sim_block **block = place(host, buffer);
    if (!block) return NULL;
    if (*block && (*block)->users == 1) return *block;
    sim_block_release(host->sim, *block);
    *block = sim_block_new(host->sim);
    return *block;
}

static void replace(struct sim_host *host, uint32_t buffer, struct sim_block *block)
{
    sim_block_release(host->sim, host->buffers[buffer]);
    host->buffers[buffer] = block;
}

struct sim_block *sim_buffer_own(struct sim_host *host, uint32_t buffer)
{
    struct sim_block *block = sim_buffer(host, buffer);
    if (!block || block->users == 1) return block;
    struct sim_block *own = sim_block_new(host->sim);
    if (!own) return NULL;
    memcpy(own->x, block->x, host->sim->parameters * sizeof *own->x);
    replace(host, buffer, own);
    return own;
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
    if (update->store.offset > 0) return host->buffers[update->store.buffer] == block;
    block->users++;
    replace(host, update->store.buffer, block);
    return true;
}

void sim_store(struct sim_host *host, const struct parley_update *update)
{
    uint64_t bytes = host->sim->parameters * sizeof(float);
    if (update->store.offset > bytes || update->store.size > bytes - update->store.offset) {
        sim_fail(host->sim, PARLEY_EINVARIANT, "a STORE past the end of its buffer");
        return;
    }
    if (!place(host, update->store.buffer)) return;
    if (!store_shared(host, update)) store_part(host, update);
}
