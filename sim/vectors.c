/* vectors.c: a node's trainer and its vector operations.
 *
 * TAKE, SET and ADD happen in their order at the trainer's next boundary: the end of the step under
 * way, or at once when it is idle. The others happen at once, unless an earlier operation on one of
 * their buffers still waits. An operation's DONE comes when it has taken its virtual time. A step's
 * work is done at its end: nobody may touch the vectors in between.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "kernels/digest.h"
#include "kernels/mix.h"
#include "kernels/sketch.h"

_Static_assert((int)PARLEY_SKETCH_BUCKETS == (int)SKETCH_BUCKETS, "one size of sketch");

/* ---- Steps ----------------------------------------------------------------------------------- */

static void step_begin(struct sim_host *host)
{
    if (host->stepping || host->steps_left == 0) return;
    uint64_t takes = sim_draw_us(&host->draws, &host->sim->options.compute);
    struct sim_item item = sim_item_for(host, SIM_STEP_END);
    item.time_us += (uint64_t)((double)takes * host->slow);
    host->stepping = true;
    host->steps_left--;
    sim_put(host->sim, item);
}

void sim_train(struct sim_host *host, const struct parley_update *update)
{
    host->steps_left += update->train.steps;
    host->turn =
        (struct trainer_turn){update->train.progress, update->train.inherited, update->train.live};
    step_begin(host);
}

void sim_step_end(struct sim_host *host)
{
    struct parley_sim *sim = host->sim;
    const struct sim_task *task = sim->task;
    uint32_t samples = task->samples ? task->samples(task->self, host->index) : task->batch;
    if (task->step) {
        float *x = host->vectors[0];
        struct trainer_turn turn = host->turn;
        turn.steps += host->version;
        memcpy(sim->before, x, sim->parameters * sizeof *x);
        host->loss = task->step(task->self, host->index, host->vectors, &turn);
        for (uint64_t j = 0; j < sim->parameters; j++)
            sim->expected[j] += (double)x[j] - sim->before[j];
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
                                                            .loss = host->loss}});
}

/* ---- Buffers --------------------------------------------------------------------------------- */

float *sim_buffer(struct sim_host *host, uint32_t buffer)
{
    if (buffer >= host->buffers_count) {
        sim_fail(host->sim, PARLEY_EINVARIANT, "a buffer that is not there");
        return NULL;
    }
    if (!host->buffers[buffer]) /* made when first used: most nodes need few most of the time */
        host->buffers[buffer] = calloc(host->sim->parameters, sizeof(float));
    if (!host->buffers[buffer]) sim_fail(host->sim, PARLEY_ENOMEM, "no memory for a buffer");
    return host->buffers[buffer];
}

void sim_store(struct sim_host *host, const struct parley_update *update)
{
    uint64_t bytes = host->sim->parameters * sizeof(float);
    if (update->store.offset > bytes || update->store.size > bytes - update->store.offset) {
        sim_fail(host->sim, PARLEY_EINVARIANT, "a STORE past the end of its buffer");
        return;
    }
    float *buffer = sim_buffer(host, update->store.buffer);
    if (buffer)
        memcpy((uint8_t *)buffer + update->store.offset, update->store.bytes, update->store.size);
}

/* ---- Operations ------------------------------------------------------------------------------ */

static bool at_boundary(enum parley_update_type type)
{
    return type == PARLEY_UPDATE_TAKE || type == PARLEY_UPDATE_SET || type == PARLEY_UPDATE_ADD;
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
    if (update->type == PARLEY_UPDATE_DIFF) mask |= UINT64_C(1) << (update->vector.other & 63);
    return mask;
}

static struct sim_done *done_new(struct parley_sim *sim, uint32_t op, bool ok, bool sketch)
{
    size_t extra = sketch ? sizeof(double[PARLEY_SKETCH_BUCKETS]) : 0;
    struct sim_done *done = calloc(1, sizeof *done + extra);
    if (!done) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for an operation");
        return NULL;
    }
    done->event.type = PARLEY_EVENT_DONE;
    done->event.done.op = op;
    done->event.done.ok = ok;
    done->event.done.finite = true;
    if (sketch) done->event.done.sketch = done->sketch;
    done->event.done.digest = done->digest;
    return done;
}

static void done_put(struct sim_host *host, struct sim_done *done, uint64_t time_us)
{
    struct sim_item item = sim_item_for(host, SIM_DONE);
    item.time_us = time_us;
    item.data = done;
    sim_put(host->sim, item);
}

void sim_done_chunk(struct sim_host *host, uint32_t op, bool ok)
{
    struct sim_done *done = done_new(host->sim, op, ok, false);
    if (done) done_put(host, done, host->sim->queue.now_us);
}

static void take(struct sim_host *host, const struct parley_update *update, struct sim_done *done)
{
    for (uint32_t v = 0; v < update->vector.vectors; v++) {
        float *buffer = sim_buffer(host, update->vector.buffers[v]);
        if (!buffer) return;
        memcpy(buffer, host->vectors[v], host->sim->parameters * sizeof *buffer);
    }
    done->event.done.finite = mix_finite(host->vectors[0], host->sim->parameters);
}

static void set(struct sim_host *host, const struct parley_update *update)
{
    for (uint32_t v = 0; v < update->vector.vectors; v++) {
        const float *buffer = sim_buffer(host, update->vector.buffers[v]);
        if (!buffer) return;
        if (v == 0) sim_truth_add(host->sim, host->vectors[0], -1);
        memcpy(host->vectors[v], buffer, host->sim->parameters * sizeof *buffer);
        if (v == 0) sim_truth_add(host->sim, host->vectors[0], 1);
    }
}

static void measure(struct sim_host *host, const struct parley_update *update,
                    struct sim_done *done)
{
    struct parley_sim *sim = host->sim;
    float *theirs = sim_buffer(host, update->vector.buffer);
    if (!theirs) return;
    if (update->type == PARLEY_UPDATE_SKETCH) {
        struct sketch sketch;
        sketch_of(&sketch, theirs, sim->parameters, sim->run);
        memcpy(done->sketch, sketch.bucket, sizeof sketch.bucket);
        return;
    }
    const float *ours = sim_buffer(host, update->vector.other);
    if (!ours) return;
    struct mix_diff_result result;
    mix_diff(theirs, ours, sim->parameters, sim->run, &result);
    done->event.done.finite = result.finite;
    done->event.done.norm_sq = result.norm_sq;
    done->event.done.own_norm_sq = result.ours_norm_sq;
    done->event.done.mass = result.mass;
}

static void write_file(struct sim_host *host, const struct parley_update *update,
                       struct sim_done *done)
{
    struct parley_sim *sim = host->sim;
    if (update->type == PARLEY_UPDATE_PUBLISH) {
        host->published = host->written && !host->disk_full;
        done->event.done.ok = host->published;
        return;
    }
    if (update->type == PARLEY_UPDATE_WRITE && host->disk_full) {
        done->event.done.ok = false;
        return;
    }
    const float *x = sim_buffer(host, update->vector.buffer);
    if (!x) return;
    if (digest_model(x, sim->parameters, sim->task->tensors, sim->task->tensors_count, sim->run,
                     done->digest) != 0)
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a digest");
    if (update->type != PARLEY_UPDATE_WRITE) return;
    memcpy(host->file, done->digest, sizeof host->file);
    host->written = true;
}

static void perform(struct sim_host *host, const struct parley_update *update)
{
    struct parley_sim *sim = host->sim;
    struct sim_done *done =
        done_new(sim, update->vector.op, true, update->type == PARLEY_UPDATE_SKETCH);
    if (!done) return;
    uint64_t cost = sim->options.base.operation_us;
    done->event.done.version = host->version;
    switch (update->type) {
    case PARLEY_UPDATE_TAKE:
        take(host, update, done);
        cost = 0;
        break;
    case PARLEY_UPDATE_SET:
        set(host, update);
        cost = 0;
        break;
    case PARLEY_UPDATE_ADD: {
        const float *d = sim_buffer(host, update->vector.buffer);
        if (d) mix_add(host->vectors[0], d, update->vector.factor, sim->parameters);
        cost = 0;
        break;
    }
    case PARLEY_UPDATE_DIFF:
    case PARLEY_UPDATE_SKETCH:
        measure(host, update, done);
        break;
    default:
        write_file(host, update, done);
    }
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
            perform(host, update);
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
