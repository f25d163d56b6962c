/* vectors.c: a node's trainer and its vector operations.
 *
 * TAKE, SET, ADD, GRADIENT and APPLY happen in their order at the trainer's next boundary: the end
 * of the step under way, or at once when it is idle. The others happen at once, unless an earlier
 * operation on one of their buffers still waits. An operation's DONE comes when it has taken its
 * virtual time.
 *
 * What is computed is given to the host's lane, to be made there in this order: a step when it
 * begins, as nobody may touch the vectors until it ends, an operation when it happens. Results are
 * waited for when their event is due. Steps and ADDs have none that the core must know, so they are
 * held back, to be made in one go with what comes after them: a node's vectors then come into a
 * cache once for several steps. The loss that is told with a step is the newest that was heard of,
 * at most two runs of steps old. Who looks at a model in between waits for all that was given, and
 * so sees the step under way as made.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/digest.h"
#include "kernels/mix.h"
#include "kernels/moved.h"
#include "kernels/sketch.h"
#include "world/gap.h"

_Static_assert((int)PARLEY_SKETCH_BUCKETS == (int)SKETCH_BUCKETS, "one size of sketch");

/* ---- Steps ----------------------------------------------------------------------------------- */

static void step_make(struct sim_job *job, uint32_t thread)
{
    struct sim_step *step = (struct sim_step *)job; /* its first member */
    const struct sim_host *host = step->host;
    const struct sim_task *task = host->sim->task;
    struct moved moved;
    if (host->measures) moved_begin(&moved, host->vectors[0], host->sim->parameters);
    step->loss = task->step(task->self, host->index, thread, host->vectors, &step->turn);
    if (host->measures) step->moved_sq = moved_end(&moved, host->vectors[0], host->sim->parameters);
}

/* Of so many steps all are made: the loss of the newest, if its place holds no later one. */
static void hear(struct sim_host *host, uint64_t steps)
{
    uint64_t begun = host->version + host->stepping;
    if (!host->sim->task->step || steps <= host->heard || begun >= steps + SIM_STEPS) return;
    host->heard = steps;
    host->loss = host->steps[(steps - 1) % SIM_STEPS].loss;
    host->moved_sq = host->steps[(steps - 1) % SIM_STEPS].moved_sq;
}

/* Waits for the run that had the place of the next one; the newest is to be made meanwhile. */
static void begin_run(struct sim_host *host)
{
    struct sim_workers *workers = host->sim->workers;
    uint64_t before = host->version - SIM_RUN_STEPS;
    sim_workers_hurry(workers, &host->lane);
    if (host->version < SIM_STEPS) return;
    sim_workers_wait(workers, &host->lane, &host->steps[(before - 1) % SIM_STEPS].job);
    hear(host, before);
}

static void step_give(struct sim_host *host)
{
    struct sim_step *step = &host->steps[host->version % SIM_STEPS];
    if (host->version % SIM_RUN_STEPS == 0) begin_run(host);
    *step = (struct sim_step){.job = {.make = step_make}, .host = host, .turn = host->turn};
    step->turn.steps += host->version;
    step->turn.averaged = host->averaged;
    sim_workers_hold(host->sim->workers, &host->lane, &step->job);
}

/* Its end is put into the queue; a GRADIENT's comes with what its DONE brings. */
static void step_lasts(struct sim_host *host, struct sim_done *gradient)
{
    const struct sim_options *options = &host->sim->options;
    uint64_t takes = options->trace ? sim_trace_us(options->trace, host->index, host->version)
                                    : sim_draw_us(&host->draws, &options->compute);
    struct sim_item item = sim_item_for(host, SIM_STEP_END);
    item.time_us += (uint64_t)((double)takes * host->slow);
    item.data = gradient;
    host->stepping = host->sim->begun = true;
    sim_put(host->sim, item);
}

static void step_begin(struct sim_host *host)
{
    if (host->stepping || host->steps_left == 0) return;
    sim_share(host, false);
    if (host->sim->task->step) step_give(host);
    host->steps_left--;
    step_lasts(host, NULL);
}

void sim_train(struct sim_host *host, const struct parley_update *update)
{
    host->steps_left += update->train.steps;
    host->turn = (struct trainer_turn){.progress = update->train.progress,
                                       .steps = update->train.inherited,
                                       .live = update->train.live,
                                       .weight = update->train.weight};
    step_begin(host);
}

static void done_put(struct sim_host *host, struct sim_done *done, uint64_t time_us)
{
    struct sim_item item = sim_item_for(host, SIM_DONE);
    item.time_us = time_us;
    item.data = done;
    sim_put(host->sim, item);
}

void sim_step_end(struct sim_host *host, struct sim_done *gradient)
{
    struct parley_sim *sim = host->sim;
    const struct sim_task *task = sim->task;
    uint32_t samples = task->samples ? task->samples(task->self, host->index) : task->batch;
    if (gradient) {
        sim_workers_wait(sim->workers, &host->lane, &gradient->job);
        host->loss = gradient->loss;
        host->heard = host->version + 1;
        done_put(host, gradient, sim->queue.now_us);
    } else if (task->step && host->version == 0) { /* so that there is a loss to tell */
        sim_workers_wait(sim->workers, &host->lane, &host->steps[0].job);
        hear(host, 1);
    }
    host->stepping = false;
    host->version++;
    host->samples += samples;
    sim->steps++;
    sim->samples += samples;
    sim_operations_run(host);
    step_begin(host);
    sim_host_event(host, &(struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                                .stepped = {.version = host->version,
                                                            .samples = host->samples,
                                                            .moved_sq = host->moved_sq,
                                                            .loss = host->loss}});
}

/* ---- Operations ------------------------------------------------------------------------------ */

static bool at_boundary(enum parley_update_type type)
{
    return type == PARLEY_UPDATE_TAKE || type == PARLEY_UPDATE_SET || type == PARLEY_UPDATE_ADD ||
           type == PARLEY_UPDATE_MIX || type == PARLEY_UPDATE_GRADIENT ||
           type == PARLEY_UPDATE_APPLY;
}

static uint64_t buffers_of(const struct parley_update *update)
{
    uint64_t mask = 0;
    if (update->type == PARLEY_UPDATE_TAKE || update->type == PARLEY_UPDATE_SET) {
        for (uint32_t v = 0; v < update->vector.vectors; v++)
            mask |= UINT64_C(1) << (update->vector.buffers[v] & 63);
        return mask;
    }
    mask = UINT64_C(1) << (update->vector.buffer & 63);
    bool other = update->type == PARLEY_UPDATE_DIFF || update->type == PARLEY_UPDATE_COMBINE ||
                 update->vector.at_other;
    if (other) mask |= UINT64_C(1) << (update->vector.other & 63);
    return mask;
}

/* ---- What an operation computes, in any thread -------------------------------------------------
 */

enum { TAKE_FLOATS = 4096 };

static void take(struct sim_done *done)
{
    const struct sim_host *host = done->host;
    uint64_t n = host->sim->parameters;
    double norm_sq = 0;
    for (uint64_t at = 0; at < n; at += TAKE_FLOATS) {
        uint64_t size = n - at < TAKE_FLOATS ? n - at : TAKE_FLOATS;
        memcpy(done->to[0]->x + at, host->vectors[0] + at, size * sizeof(float));
        norm_sq += mix_norm_sq(done->to[0]->x + at, size); /* while in the cache */
    }
    for (uint32_t v = 1; v < done->update.vector.vectors; v++)
        memcpy(done->to[v]->x, host->vectors[v], n * sizeof(float));
    for (uint32_t v = 1; v < done->update.vector.wide; v++)
        memcpy(done->to[0]->x + v * n, host->vectors[v], n * sizeof(float));
    done->to[0]->norm_sq = norm_sq;
    for (uint32_t v = 1; v < done->update.vector.wide; v++)
        norm_sq += mix_norm_sq(host->vectors[v], n);
    done->event.done.finite = isfinite(norm_sq);
}

static void set(struct sim_done *done)
{
    for (uint32_t v = 0; v < done->update.vector.vectors; v++)
        memcpy(done->host->vectors[v], done->from[v]->x,
               done->host->sim->parameters * sizeof(float));
}

/* Block by block, so that each is read and written while it is in the nearest cache. */
static void add(struct sim_done *done, uint32_t thread)
{
    const struct sim_host *host = done->host;
    const struct sim_gap *gap = done->gap;
    const struct sim_task *task = host->sim->task;
    uint64_t n = host->sim->parameters;
    float factor = done->mirrored ? -done->update.vector.factor : done->update.vector.factor;
    float follow = task->follow ? task->follow(task->self, host->index) : 0;
    float made[SIM_TRUTH_BLOCK];
    for (uint64_t at = 0; at < n; at += SIM_TRUTH_BLOCK) {
        uint64_t size = n - at < SIM_TRUTH_BLOCK ? n - at : SIM_TRUTH_BLOCK;
        if (gap) mix_subtract(made, gap->theirs->x + at, gap->ours->x + at, size);
        const float *d = gap ? made : done->from[0]->x + at;
        if (follow != 0) mix_add(host->vectors[1] + at, d, factor * follow, size);
        if (done->to[0])
            sim_truth_mix_rest(host->sim, thread, at, host->vectors[0] + at, done->to[0]->x + at);
        else
            sim_truth_mix(host->sim, thread, at, host->vectors[0] + at, d, factor);
    }
    for (uint32_t v = 1; v < done->update.vector.wide; v++)
        mix_add(host->vectors[v], done->from[0]->x + v * n, factor, n);
}

static struct codec codec_of(const struct sim_done *done)
{
    struct codec codec = done->host->codec;
    codec.draw = done->update.vector.draw;
    return codec;
}

static void encode(struct sim_done *done)
{
    struct codec codec = codec_of(done);
    float *to = done->to[0]->x;
    const float *from = done->from[1] ? done->from[1]->x : to;
    codec_encode(&codec, to, from, done->host->sim->parameters, done->update.vector.wide);
}

static void coded_diff(struct sim_done *done)
{
    const struct parley_sim *sim = done->host->sim;
    struct codec codec = codec_of(done);
    struct mix_diff_result result;
    codec_diff(&codec, done->to[0]->x, done->from[1]->x, sim->parameters, done->update.vector.wide,
               sim->run, &result);
    done->event.done.finite = result.finite;
    done->event.done.norm_sq = result.norm_sq;
    done->event.done.own_norm_sq = result.ours_norm_sq;
    done->event.done.mass = result.mass;
}

static void gradient(struct sim_done *done, uint32_t thread)
{
    const struct sim_host *host = done->host;
    const struct sim_task *task = host->sim->task;
    const float *at = done->from[0] ? done->from[0]->x : host->vectors[0];
    done->loss = task->gradient(task->self, host->index, thread, at, done->to[0]->x);
    done->event.done.finite = isfinite(done->loss);
}

static void apply(struct sim_done *done, uint32_t thread)
{
    const struct sim_host *host = done->host;
    const struct sim_task *task = host->sim->task;
    struct trainer_turn turn = {.progress = done->update.vector.progress,
                                .steps = done->update.vector.steps,
                                .live = done->update.vector.live};
    task->apply(task->self, host->index, thread, host->vectors, done->from[0]->x,
                done->update.vector.factor, &turn);
}

static void combine(struct sim_done *done)
{
    struct codec codec = codec_of(done);
    if (done->update.vector.coded) {
        done->event.done.finite =
            codec_add(&codec, done->to[0]->x, done->from[1]->x, done->host->sim->parameters);
        return;
    }
    size_t at = done->update.vector.offset / sizeof(float);
    const float *other = done->from[1] ? done->from[1]->x + at : NULL;
    done->event.done.finite =
        mix_combine(done->to[0]->x + at, other, done->update.vector.keep,
                    done->update.vector.factor, done->update.vector.size / sizeof(float));
}

static void sketch(struct sim_done *done)
{
    struct sketch sketch;
    sketch_of(&sketch, done->from[0]->x, done->host->sim->parameters, done->host->sim->run);
    memcpy(done->sketch, sketch.bucket, sizeof sketch.bucket);
}

static void hash(struct sim_done *done)
{
    const struct parley_sim *sim = done->host->sim;
    done->error = digest_model(done->from[0]->x, sim->parameters, sim->task->tensors,
                               sim->task->tensors_count, sim->run, done->digest);
}

static void done_make(struct sim_job *job, uint32_t thread)
{
    struct sim_done *done = (struct sim_done *)job; /* its first member */
    switch (done->update.type) {
    case PARLEY_UPDATE_TAKE:
        take(done);
        break;
    case PARLEY_UPDATE_SET:
        set(done);
        break;
    case PARLEY_UPDATE_ADD:
        add(done, thread);
        break;
    case PARLEY_UPDATE_MIX:
        mix_combine(done->host->vectors[0], done->from[0]->x, done->update.vector.keep,
                    done->update.vector.factor, done->host->sim->parameters);
        break;
    case PARLEY_UPDATE_ENCODE:
        encode(done);
        break;
    case PARLEY_UPDATE_DIFF:
        coded_diff(done);
        break;
    case PARLEY_UPDATE_GRADIENT:
        gradient(done, thread);
        break;
    case PARLEY_UPDATE_APPLY:
        apply(done, thread);
        break;
    case PARLEY_UPDATE_COMBINE:
        combine(done);
        break;
    case PARLEY_UPDATE_SKETCH:
        sketch(done);
        break;
    default:
        hash(done);
    }
}

/* ---- An operation's life --------------------------------------------------------------------- */

static struct sim_done *done_new(struct sim_host *host, uint32_t op, bool ok, bool sketch)
{
    size_t extra = sketch ? sizeof(double[PARLEY_SKETCH_BUCKETS]) : 0;
    struct sim_done *done = calloc(1, sizeof *done + extra);
    if (!done) {
        sim_fail(host->sim, PARLEY_ENOMEM, "no memory for an operation");
        return NULL;
    }
    atomic_init(&done->job.made, true);
    done->job.make = done_make;
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
    sim_gap_release(done->gap);
    free(done);
}

void sim_done_free(struct sim_done *done)
{
    sim_workers_wait(done->host->sim->workers, &done->host->lane, &done->job);
    done_free(done);
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
        hear(host, done->steps);
    }
    if (done->gap && done->update.type == PARLEY_UPDATE_DIFF) tell_gap(done);
    if (done->error) sim_fail(host->sim, done->error, "an operation on vectors failed");
    if (done->update.type == PARLEY_UPDATE_WRITE && done->event.done.ok) {
        /* What is read back is not what was written: no driver would publish that. */
        if (host->disk_torn) done->digest[0] ^= 1;
        memcpy(host->file, done->digest, sizeof host->file);
        host->written = !host->disk_torn;
    }
    sim_host_event(host, &done->event);
    if (sim_workers_made(&done->job))
        done_free(done);
    else
        told_keep(host, done);
}

void sim_done_chunk(struct sim_host *host, uint32_t op, bool ok)
{
    struct sim_done *done = done_new(host, op, ok, false);
    if (done) done_put(host, done, host->sim->queue.now_us);
}

static void find_vectors(struct sim_host *host, struct sim_done *done)
{
    const struct parley_update *update = &done->update;
    for (uint32_t v = 0; v < update->vector.vectors; v++) {
        uint32_t buffer = update->vector.buffers[v];
        if (update->type == PARLEY_UPDATE_TAKE)
            done->to[v] = sim_block_hold(sim_buffer_fresh(host, buffer));
        else
            done->from[v] = sim_block_hold(sim_buffer(host, buffer));
    }
}

/* Finds what the operation reads and writes, and holds it. */
static void find_blocks(struct sim_host *host, struct sim_done *done)
{
    uint32_t buffer = done->update.vector.buffer;
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
    } else if (done->update.type == PARLEY_UPDATE_DIFF && done->update.vector.coded) {
        done->to[0] = sim_block_hold(sim_buffer_own(host, buffer));
        done->from[1] = sim_block_hold(sim_buffer(host, done->update.vector.other));
    } else if (done->update.type == PARLEY_UPDATE_DIFF) {
        const struct sim_buffer *made =
            sim_buffer_subtract(host, buffer, done->update.vector.other);
        if (!made) return;
        done->gap = sim_gap_hold(made->gap);
        done->mirrored = made->mirrored;
    } else if (done->update.type == PARLEY_UPDATE_GRADIENT) {
        done->to[0] = sim_block_hold(sim_buffer_fresh(host, buffer));
        if (done->update.vector.at_other)
            done->from[0] = sim_block_hold(sim_buffer(host, done->update.vector.other));
    } else if (done->update.type == PARLEY_UPDATE_COMBINE) {
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
        host->published = host->written && !host->disk_full;
        done->event.done.ok = host->published;
        return false;
    }
    if (done->update.type == PARLEY_UPDATE_WRITE && host->disk_full) done->event.done.ok = false;
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
    done->steps = host->version + host->stepping;
    if (done->update.type == PARLEY_UPDATE_ADD && !done->update.vector.rest)
        sim_workers_hold(workers, &host->lane, &done->job);
    else
        sim_workers_give(workers, &host->lane, &done->job);
}

static void perform(struct sim_host *host, const struct parley_update *update)
{
    struct parley_sim *sim = host->sim;
    struct sim_done *done =
        done_new(host, update->vector.op, true, update->type == PARLEY_UPDATE_SKETCH);
    if (!done) return;
    if (update->type == PARLEY_UPDATE_GRADIENT) sim_share(host, false);
    done->update = *update;
    done->event.done.version = host->version;
    host->averaged += update->type == PARLEY_UPDATE_ADD;
    if (on_disk(host, done)) {
        find_blocks(host, done);
        if (!sim->error) give(host, done);
        /* Other parts of the buffer are written by the loop meanwhile, or in a copy of it. */
        if ((update->type == PARLEY_UPDATE_COMBINE || update->vector.rest) && !sim->error)
            combined(done);
    }
    if (update->type == PARLEY_UPDATE_GRADIENT) {
        step_lasts(host, done);
        return;
    }
    uint64_t cost = at_boundary(update->type) ? 0 : sim->options.base.operation_us;
    if (update->type == PARLEY_UPDATE_WRITE) cost += host->disk_us;
    uint64_t start = sim->queue.now_us;
    if (cost > 0) {
        if (host->computed_us > start) start = host->computed_us;
        host->computed_us = start + cost;
    }
    done_put(host, done, start + cost);
}

void sim_operations_run(struct sim_host *host)
{
    uint64_t busy = 0;
    bool wait = host->stepping;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < host->operations_count; i++) {
        const struct parley_update *update = &host->operations[i].update;
        bool boundary = at_boundary(update->type);
        if ((buffers_of(update) & busy) || (boundary && wait)) {
            busy |= buffers_of(update);
            wait = wait || boundary;
            host->operations[kept++] = host->operations[i];
        } else {
            struct parley_update now = *update;
            perform(host, &now);
            wait = wait || host->stepping;
        }
    }
    host->operations_count = kept;
}

void sim_operation(struct sim_host *host, const struct parley_update *update)
{
    if (!sim_grow(host->sim, &host->operations, host->operations_count, &host->operations_capacity,
                  sizeof *host->operations))
        return;
    host->operations[host->operations_count++].update = *update;
    sim_operations_run(host);
}
