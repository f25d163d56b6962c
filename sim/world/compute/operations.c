/* operations.c: the life of an operation on a node's vectors, from the core's wish to its DONE.
 *
 * TAKE, SET, ADD, MIX, GRADIENT and APPLY happen in their order at the trainer's next boundary: the
 * end of the step under way, or at once when it is idle. The others happen at once, unless an
 * earlier operation on one of their buffers still waits. An operation's DONE comes when it has
 * taken its virtual time.
 *
 * What is computed (vectors.c) is given to the host's lane when it happens, to be made there in
 * this order, between the steps (steps.c). Results are waited for when their event is due. An ADD
 * has none that the core must know, so it is held back as steps are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffers.h"
#include "world/compute/gap.h"
#include "world/network/network.h"

/* ---- Beginning and end ---------------------------------------------------------------------- */

static struct sim_done *done_new(struct sim_host *host, uint32_t op, bool ok, bool sketch)
{
    size_t extra = sketch ? sizeof(double[PARLEY_SKETCH_BUCKETS]) : 0;
    struct sim_done *done = calloc(1, sizeof *done + extra);
    if (!done) {
        sim_fail(host->sim, PARLEY_ENOMEM, "no memory for an operation");
        return NULL;
    }
    atomic_init(&done->job.made, true);
    done->job.make = sim_done_make;
    done->host = host;
    done->event.type = PARLEY_EVENT_DONE;
    done->event.done.op = op;
    done->event.done.ok = ok;
    done->event.done.finite = true;
    if (sketch) done->event.done.sketch = done->sketch;
    done->event.done.digest = done->digest;
    return done;
}

static void done_free(struct sim_done *done)
{
    struct parley_sim *sim = done->host->sim;
    for (int i = 0; i < PARLEY_VECTORS_MAX; i++) {
        sim_block_release(sim, done->from[i]);
        sim_block_release(sim, done->to[i]);
    }
    sim_block_release(sim, done->left);
    sim_gap_release(done->gap);
    free(done);
}

void sim_done_free(struct sim_done *done)
{
    sim_workers_wait(done->host->sim->workers, &done->host->lane, &done->job);
    done_free(done);
}

void sim_done_put(struct sim_host *host, struct sim_done *done, uint64_t time_us)
{
    struct sim_item item = sim_item_for(host, SIM_DONE);
    item.time_us = time_us;
    item.data = done;
    sim_put(host->sim, item);
}

void sim_told_free(struct sim_host *host)
{
    while (host->told && sim_workers_made(&host->told->job)) {
        struct sim_done *done = host->told;
        host->told = done->next;
        done_free(done);
    }
}

/* What it holds must stay until it is made. */
static void told_keep(struct sim_host *host, struct sim_done *done)
{
    struct sim_done **end = &host->told;
    sim_told_free(host);
    while (*end)
        end = &(*end)->next;
    *end = done;
}

/* The figures of a difference. Those of the snapshot that is subtracted were found when it was
 * taken, but for one that nobody took. */
static void tell_gap(struct sim_done *done)
{
    struct sim_gap *gap = done->gap;
    sim_gap_wait(gap);
    struct sim_block *ours = done->mirrored ? gap->theirs : gap->ours;
    if (ours->norm_sq < 0) ours->norm_sq = mix_norm_sq(ours->x, done->host->sim->parameters);
    done->event.done.finite = isfinite(gap->figures.norm_sq);
    done->event.done.norm_sq = gap->figures.norm_sq;
    done->event.done.own_norm_sq = ours->norm_sq;
    done->event.done.mass = done->mirrored ? -gap->figures.mass : gap->figures.mass;
}

void sim_done_tell(struct sim_host *host, struct sim_done *done)
{
    if (done->update.type != PARLEY_UPDATE_ADD) {
        sim_workers_wait(host->sim->workers, &host->lane, &done->job);
        sim_steps_hear(host, done->steps);
        sim_steps_leave(host);
        sim_told_free(host);
    }
    if (done->gap && done->update.type == PARLEY_UPDATE_DIFF) tell_gap(done);
    if (done->error) sim_fail(host->sim, done->error, "an operation on vectors failed");
    if (done->update.type == PARLEY_UPDATE_WRITE && done->event.done.ok) {
        /* What is read back is not what was written: no driver would publish that. */
        if (host->disk_torn) done->digest[0] ^= 1;
        memcpy(host->file, done->digest, sizeof host->file);
        host->life.written = !host->disk_torn;
    }
    if (done->failed) sim_end_lost(host, done->failed);
    sim_host_event(host, &done->event);
    if (sim_workers_made(&done->job))
        done_free(done);
    else
        told_keep(host, done);
}

void sim_done_chunk(struct sim_host *host, uint32_t op, uint32_t failed)
{
    struct sim_done *done = done_new(host, op, failed == 0, false);
    if (!done) return;
    done->failed = failed;
    sim_done_put(host, done, host->sim->queue.now_us);
}

/* ---- Carrying out ---------------------------------------------------------------------------- */

static void find_vectors(struct sim_host *host, struct sim_done *done)
{
    const struct parley_update *update = &done->update;
    for (uint32_t v = 0; v < update->vector.vectors; v++) {
        uint32_t buffer = update->vector.buffers[v];
        if (update->type == PARLEY_UPDATE_TAKE && v == 0 && update->vector.wide <= 1)
            done->to[v] = sim_block_hold(sim_buffer_share(host, buffer, host->blocks[0]));
        else if (update->type == PARLEY_UPDATE_TAKE)
            done->to[v] = sim_block_hold(sim_buffer_fresh(host, buffer));
        else
            done->from[v] = sim_block_hold(sim_buffer(host, buffer));
    }
}

static bool writes_x(enum parley_update_type type)
{
    return type == PARLEY_UPDATE_SET || type == PARLEY_UPDATE_ADD || type == PARLEY_UPDATE_MIX ||
           type == PARLEY_UPDATE_APPLY;
}

/* Finds what the operation reads and writes, and holds it. */
static void find_blocks(struct sim_host *host, struct sim_done *done)
{
    uint32_t buffer = done->update.vector.buffer;
    if (done->update.type == PARLEY_UPDATE_SET) sim_steps_set(host);
    if (writes_x(done->update.type)) {
        done->left = sim_x_leave(host);
        done->x = host->blocks[0]->x;
    }
    if (done->update.type == PARLEY_UPDATE_TAKE || done->update.type == PARLEY_UPDATE_SET) {
        find_vectors(host, done);
    } else if (done->update.type == PARLEY_UPDATE_ADD && done->update.vector.rest) {
        done->to[0] = sim_block_hold(sim_buffer_own(host, buffer));
        done->from[0] = sim_block_hold(done->to[0]);
    } else if (done->update.type == PARLEY_UPDATE_ADD) {
        struct sim_buffer moved = sim_buffer_move(host, buffer);
        done->from[0] = moved.block;
        done->gap = moved.gap;
        done->mirrored = moved.mirrored;
    } else if (done->update.type == PARLEY_UPDATE_ENCODE) {
        bool apart = done->update.vector.at_other;
        done->to[0] =
            sim_block_hold(apart ? sim_buffer_fresh(host, buffer) : sim_buffer_own(host, buffer));
        if (apart) done->from[1] = sim_block_hold(sim_buffer(host, done->update.vector.other));
    } else if (done->update.type == PARLEY_UPDATE_DIFF && !done->update.vector.coded) {
        const struct sim_buffer *made =
            sim_buffer_subtract(host, buffer, done->update.vector.other);
        if (!made) return;
        done->gap = sim_gap_hold(made->gap);
        done->mirrored = made->mirrored;
    } else if (done->update.type == PARLEY_UPDATE_GRADIENT) {
        done->to[0] = sim_block_hold(sim_buffer_fresh(host, buffer));
        if (done->update.vector.at_other)
            done->from[0] = sim_block_hold(sim_buffer(host, done->update.vector.other));
    } else if (done->update.type == PARLEY_UPDATE_DIFF ||
               done->update.type == PARLEY_UPDATE_COMBINE) {
        done->to[0] = sim_block_hold(sim_buffer_own(host, buffer));
        done->from[1] = sim_block_hold(sim_buffer(host, done->update.vector.other));
    } else {
        done->from[0] = sim_block_hold(sim_buffer(host, buffer));
    }
}

/* False if it needs no computing. */
static bool on_disk(struct sim_host *host, struct sim_done *done)
{
    if (done->update.type == PARLEY_UPDATE_PUBLISH) {
        host->life.published = host->life.written && !host->disk_full;
        done->event.done.ok = host->life.published;
        return false;
    }
    if (done->update.type == PARLEY_UPDATE_WRITE) {
        host->life.written = false; /* what was there gives way, whatever comes of this one */
        if (host->disk_full) done->event.done.ok = false;
    }
    return done->event.done.ok;
}

/* The buffer is held no longer than it takes to compute. */
static void combined(struct sim_done *done)
{
    struct parley_sim *sim = done->host->sim;
    sim_workers_wait(sim->workers, &done->host->lane, &done->job);
    sim_block_release(sim, done->to[0]);
    sim_block_release(sim, done->from[0]);
    sim_block_release(sim, done->from[1]);
    done->to[0] = done->from[0] = done->from[1] = NULL;
}

static void give(struct sim_host *host, struct sim_done *done)
{
    struct sim_workers *workers = host->sim->workers;
    if (done->gap && done->update.type == PARLEY_UPDATE_DIFF)
        return; /* the gap's own job does that */
    done->steps = host->life.version + host->life.stepping;
    if (done->update.type == PARLEY_UPDATE_ADD && !done->update.vector.rest)
        sim_workers_hold(workers, &host->lane, &done->job);
    else
        sim_workers_give(workers, &host->lane, &done->job);
}

/* By its floats; what is done at a boundary takes none. */
static uint64_t cost_us(const struct sim_host *host, const struct parley_update *update)
{
    const struct sim_options *options = &host->sim->options;
    uint64_t floats = host->sim->parameters * update->vector.wide;
    if (buffers_at_boundary(update->type)) return 0;
    if (update->type == PARLEY_UPDATE_COMBINE) floats = update->vector.size / sizeof(float);
    uint64_t cost = options->base.operation_us + floats * options->float_ps / 1000000;
    return update->type == PARLEY_UPDATE_WRITE ? cost + host->disk_us : cost;
}

static void perform(struct sim_host *host, const struct parley_update *update)
{
    struct parley_sim *sim = host->sim;
    struct sim_done *done =
        done_new(host, update->vector.op, true, update->type == PARLEY_UPDATE_SKETCH);
    if (!done) return;
    if (update->type == PARLEY_UPDATE_GRADIENT) sim_share(host, false);
    done->update = *update;
    done->event.done.version = host->life.version;
    host->life.averaged += update->type == PARLEY_UPDATE_ADD;
    if (on_disk(host, done)) {
        if (update->type == PARLEY_UPDATE_HASH && sim_lies(host))
            sim_byzantine(host, sim_buffer_own(host, update->vector.buffer)->x, 0, sim->parameters);
        find_blocks(host, done);
        if (!sim->error) give(host, done);
        /* Other parts of the buffer are written by the loop meanwhile, or in a copy of it. */
        if ((update->type == PARLEY_UPDATE_COMBINE || update->vector.rest) && !sim->error)
            combined(done);
    }
    if (update->type == PARLEY_UPDATE_GRADIENT) {
        sim_step_lasts(host, done);
        return;
    }
    uint64_t cost = cost_us(host, update);
    uint64_t start = sim->queue.now_us;
    if (cost > 0) {
        if (host->life.computed_us > start) start = host->life.computed_us;
        host->life.computed_us = start + cost;
    }
    sim_done_put(host, done, start + cost);
}

void sim_operations_run(struct sim_host *host)
{
    struct buffer_set busy = {{0}};
    bool wait = host->life.stepping;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < host->operations_count; i++) {
        const struct parley_update *update = &host->operations[i];
        struct buffer_set buffers = buffers_of(update);
        bool boundary = buffers_at_boundary(update->type);
        if (buffers_meet(&buffers, &busy) || (boundary && wait)) {
            buffers_join(&busy, &buffers);
            wait = wait || boundary;
            host->operations[kept++] = host->operations[i];
        } else {
            struct parley_update now = *update;
            perform(host, &now);
            wait = wait || host->life.stepping;
        }
    }
    host->operations_count = kept;
}

void sim_operation(struct sim_host *host, const struct parley_update *update)
{
    if (host->operations_count == PARLEY_OPERATIONS_MAX)
        sim_fail(host->sim, PARLEY_EINVARIANT, "more operations wait than a driver has room for");
    if (!sim_grow(host->sim, &host->operations, host->operations_count, &host->operations_capacity,
                  sizeof *host->operations))
        return;
    host->operations[host->operations_count++] = *update;
    sim_operations_run(host);
}
