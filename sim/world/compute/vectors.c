/* vectors.c: what operations on a node's vectors compute, in any thread (operations.c has the rest
 * of their life).
 */
#include <math.h>
#include <string.h>

#include "kernels/digest.h"
#include "kernels/mix.h"
#include "kernels/sketch.h"
#include "world/compute/gap.h"

/* Where the operation writes x; all of it as it was there, if it is somewhere else. */
static void bring(struct sim_done *done)
{
    struct sim_host *host = done->host;
    if (done->x != host->vectors[0])
        memcpy(done->x, host->vectors[0], host->sim->parameters * sizeof(float));
    host->vectors[0] = done->x;
}

/* x as it is; where others stand behind it in one buffer, a copy. */
static void take(struct sim_done *done)
{
    const struct sim_host *host = done->host;
    struct sim_block *to = done->to[0];
    uint64_t n = host->sim->parameters;
    if (to->x != host->vectors[0]) memcpy(to->x, host->vectors[0], n * sizeof(float));
    for (uint32_t v = 1; v < done->update.vector.vectors; v++)
        memcpy(done->to[v]->x, host->vectors[v], n * sizeof(float));
    for (uint32_t v = 1; v < done->update.vector.wide; v++)
        memcpy(to->x + v * n, host->vectors[v], n * sizeof(float));
    if (to->norm_sq < 0) to->norm_sq = mix_norm_sq(to->x, n); /* else an earlier one has found it */
    double norm_sq = to->norm_sq;
    for (uint32_t v = 1; v < done->update.vector.wide; v++)
        norm_sq += mix_norm_sq(host->vectors[v], n);
    done->event.done.finite = isfinite(norm_sq);
}

static void set(struct sim_done *done)
{
    struct sim_host *host = done->host;
    uint64_t n = host->sim->parameters;
    uint32_t count = done->update.vector.vectors;
    bool finite = true;
    for (uint32_t v = 0; done->update.vector.if_finite && v < count; v++)
        finite = mix_finite(done->from[v]->x, n) && finite;
    done->event.done.finite = finite;
    if (!finite) {
        bring(done);
        return;
    }
    host->vectors[0] = done->x;
    for (uint32_t v = 0; v < count; v++)
        memcpy(host->vectors[v], done->from[v]->x, n * sizeof(float));
}

/* The truth compares each block while it is in the nearest cache. */
static void add(struct sim_done *done, uint32_t thread)
{
    struct sim_host *host = done->host;
    const struct sim_gap *gap = done->gap;
    const struct sim_task *task = host->sim->task;
    uint64_t n = host->sim->parameters;
    float factor = done->mirrored ? -done->update.vector.factor : done->update.vector.factor;
    float follow = task->follow ? task->follow(task->self, host->index) : 0;
    const float *from = host->vectors[0];
    float *x = host->vectors[0] = done->x, *m = follow != 0 ? host->vectors[1] : NULL;
    float copy[SIM_TRUTH_BLOCK];
    for (uint64_t at = 0; at < n; at += SIM_TRUTH_BLOCK) {
        uint64_t size = n - at < SIM_TRUTH_BLOCK ? n - at : SIM_TRUTH_BLOCK;
        bool sampled = sim_truth_samples(host->sim, at);
        const float *before = from + at;
        if (sampled && x == from) before = memcpy(copy, before, size * sizeof *x);
        if (gap) {
            mix_add_gap(x + at, from + at, m ? m + at : NULL, gap->theirs->x + at,
                        gap->ours->x + at, factor, factor * follow, size);
        } else {
            if (m) mix_add(m + at, done->from[0]->x + at, factor * follow, size);
            if (done->to[0] && x != from) memcpy(x + at, from + at, size * sizeof *x);
            if (done->to[0])
                mix_add_rest(x + at, done->to[0]->x + at, size);
            else
                mix_add_to(x + at, from + at, done->from[0]->x + at, factor, size);
        }
        if (sampled) sim_truth_moved(host->sim, thread, at, before, x + at, size);
    }
    for (uint32_t v = 1; v < done->update.vector.wide; v++)
        mix_add(host->vectors[v], done->from[0]->x + v * n, factor, n);
}

static struct codec codec_of(const struct sim_done *done)
{
    struct codec codec = done->host->life.codec;
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
    struct codec_result result;
    codec_diff(&codec, done->to[0]->x, done->from[1]->x, sim->parameters, done->update.vector.wide,
               sim->run, &result);
    done->event.done.finite = result.finite;
    done->event.done.norm_sq = result.norm_sq;
    done->event.done.own_norm_sq = result.ours_norm_sq;
    done->event.done.mass = result.mass;
}

static struct trainer_turn turn_of(const struct sim_done *done)
{
    return (struct trainer_turn){.progress = done->update.vector.progress,
                                 .steps = done->update.vector.steps,
                                 .live = done->update.vector.live,
                                 .weight = done->update.vector.weight};
}

static void gradient(struct sim_done *done, uint32_t thread)
{
    const struct sim_host *host = done->host;
    const struct sim_task *task = host->sim->task;
    const float *at = done->from[0] ? done->from[0]->x : host->vectors[0];
    struct trainer_turn turn = turn_of(done);
    done->loss = task->gradient(task->self, host->index, thread, at, done->to[0]->x, &turn);
    done->event.done.finite =
        isfinite(done->loss) && mix_finite(done->to[0]->x, host->sim->parameters);
}

static void apply(struct sim_done *done, uint32_t thread)
{
    const struct sim_host *host = done->host;
    const struct sim_task *task = host->sim->task;
    struct trainer_turn turn = turn_of(done);
    bring(done);
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
    done->event.done.finite =
        mix_combine(done->to[0]->x + at, done->from[1]->x + at, done->update.vector.keep,
                    done->update.vector.factor, done->update.vector.size / sizeof(float));
}

static void sketch(struct sim_done *done)
{
    sketch_of(done->sketch, done->from[0]->x, done->host->sim->parameters, done->host->sim->run);
}

static void hash(struct sim_done *done)
{
    const struct parley_sim *sim = done->host->sim;
    done->event.done.finite = mix_finite(done->from[0]->x, sim->parameters);
    done->error = digest_model(done->from[0]->x, sim->parameters, sim->task->tensors,
                               sim->task->tensors_count, sim->run, done->digest);
}

void sim_done_make(struct sim_job *job, uint32_t thread)
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
        bring(done);
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
