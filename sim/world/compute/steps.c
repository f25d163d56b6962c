/* steps.c: a node's local steps: given to its lane in runs, and ended in virtual time.
 *
 * A step is computed from when it begins, as nobody may touch the vectors until it ends. It has no
 * result that the core must know, but a loss; so steps are held back, to be made in one go with
 * what comes after them: a node's vectors then come into a cache once for several of them. The loss
 * that is told with a step is the newest that was heard of, at most two runs of steps old. Who
 * looks at a model in between waits for all that was given, and so sees the step under way as made.
 *
 * A snapshot is x itself, until x is to be written next: then it goes on in another block.
 */
#include <math.h>
#include <stddef.h>

#include "kernels/moved.h"
#include "world/cluster.h"

static void step_make(struct sim_job *job, uint32_t thread)
{
    struct sim_step *step = (struct sim_step *)job; /* its first member */
    struct sim_host *host = step->host;
    const struct sim_task *task = host->sim->task;
    const float *from = host->vectors[0];
    struct moved moved;
    host->vectors[0] = step->x;
    if (host->life.measures) moved_begin(&moved, from, host->sim->parameters);
    step->loss = task->step(task->self, host->index, thread, from, host->vectors, &step->turn);
    if (task->place) step->place = task->place(task->self, host->index);
    if (host->life.measures)
        step->moved_sq = moved_end(&moved, host->vectors[0], host->sim->parameters);
}

void sim_steps_hear(struct sim_host *host, uint64_t steps)
{
    uint64_t begun = host->life.version + host->life.stepping;
    if (!host->sim->task->step || steps <= host->life.heard || begun >= steps + SIM_STEPS) return;
    double loss = host->steps[(steps - 1) % SIM_STEPS].loss;
    /* One that is not finite counts, whatever the next ones are. */
    uint64_t first = begun > SIM_STEPS ? begun - SIM_STEPS : 0; /* whose place is not used again */
    if (first < host->life.heard) first = host->life.heard;
    for (uint64_t s = first < host->life.set ? host->life.set : first; s < steps; s++)
        if (!isfinite(host->steps[s % SIM_STEPS].loss)) loss = NAN;
    host->life.heard = steps;
    if (isfinite(loss)) host->life.sound_loss = loss;
    if (isfinite(loss) || steps > host->life.set) host->life.loss = loss;
    host->life.moved_sq = host->steps[(steps - 1) % SIM_STEPS].moved_sq;
    host->life.place = host->steps[(steps - 1) % SIM_STEPS].place;
}

void sim_steps_set(struct sim_host *host)
{
    host->life.set = host->life.version;
    if (!isfinite(host->life.loss)) host->life.loss = host->life.sound_loss;
}

struct sim_block *sim_x_leave(struct sim_host *host)
{
    struct sim_block *left = host->blocks[0];
    if (left->users == 1) {
        left->norm_sq = -1;
        return NULL;
    }
    struct sim_block *block = sim_block_new(host->sim);
    if (!block) return NULL;
    host->blocks[0] = block;
    return left;
}

void sim_steps_leave(struct sim_host *host)
{
    for (struct sim_step **at = &host->leaving; *at;) {
        struct sim_step *step = *at;
        if (sim_workers_made(&step->job)) {
            sim_block_release(host->sim, step->left);
            *at = step->next;
        } else {
            at = &step->next;
        }
    }
}

/* Waits for the run that had the place of the next one; the newest is to be made meanwhile. */
static void begin_run(struct sim_host *host)
{
    struct sim_workers *workers = host->sim->workers;
    uint64_t before = host->life.version - SIM_RUN_STEPS;
    sim_workers_hurry(workers, &host->lane);
    if (host->life.version < SIM_STEPS) return;
    sim_workers_wait(workers, &host->lane, &host->steps[(before - 1) % SIM_STEPS].job);
    sim_steps_hear(host, before);
    sim_steps_leave(host);
}

static void step_give(struct sim_host *host)
{
    struct sim_step *step = &host->steps[host->life.version % SIM_STEPS];
    if (host->life.version % SIM_RUN_STEPS == 0) begin_run(host);
    *step = (struct sim_step){.job = {.make = step_make}, .host = host, .turn = host->life.turn};
    step->left = sim_x_leave(host);
    step->x = host->blocks[0]->x;
    if (step->left) {
        step->next = host->leaving;
        host->leaving = step;
    }
    step->turn.steps += host->life.version;
    step->turn.progress = parley_pace_progress(&host->life.pace, host->life.version);
    step->turn.averaged = host->life.averaged;
    sim_workers_hold(host->sim->workers, &host->lane, &step->job);
}

static void put_end(struct sim_host *host, struct sim_done *gradient)
{
    struct sim_item item = sim_item_for(host, SIM_STEP_END);
    item.time_us = host->life.step_end_us;
    item.data = gradient;
    sim_put(host->sim, item);
}

void sim_step_lasts(struct sim_host *host, struct sim_done *gradient)
{
    const struct sim_options *options = &host->sim->options;
    uint64_t takes = options->step_us
                         ? options->step_us(options->step_us_arg, host->index, host->life.version)
                         : sim_draw_us(&host->draws, &options->compute);
    uint64_t lasts = (uint64_t)((double)takes * host->slow);
    if (lasts == 0 && takes > 0) lasts = 1; /* else time would stand still */
    host->life.step_end_us = sim_later_us(host->sim, lasts);
    host->life.stepping = host->sim->begun = true;
    put_end(host, gradient);
}

static void step_begin(struct sim_host *host)
{
    if (host->life.stepping || host->life.steps_left == 0) return;
    sim_share(host, false);
    if (host->sim->task->step) step_give(host);
    host->life.steps_left--;
    sim_step_lasts(host, NULL);
}

void sim_train(struct sim_host *host, const struct parley_update *update)
{
    host->life.steps_left += update->train.steps;
    host->life.turn = (struct trainer_turn){.steps = update->train.inherited,
                                            .live = update->train.live,
                                            .weight = update->train.weight};
    host->life.pace = update->train.pace;
    step_begin(host);
}

void sim_steps_tell(struct sim_host *host)
{
    if (host->life.version_told == host->life.version) return;
    host->life.version_told = host->life.version;
    sim_host_event(host, &(struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                                .stepped = {.version = host->life.version,
                                                            .samples = host->life.samples,
                                                            .moved_sq = host->life.moved_sq,
                                                            .loss = host->life.loss,
                                                            .place = host->life.place}});
}

void sim_step_end(struct sim_host *host, struct sim_done *gradient)
{
    struct parley_sim *sim = host->sim;
    const struct sim_task *task = sim->task;
    if (sim->queue.now_us < host->life.step_end_us) { /* it was paused meanwhile */
        put_end(host, gradient);
        return;
    }
    uint32_t samples = task->samples ? task->samples(task->self, host->index) : task->batch;
    if (gradient) {
        sim_workers_wait(sim->workers, &host->lane, &gradient->job);
        host->life.loss = gradient->loss;
        host->life.heard = host->life.version + 1;
        if (task->place) host->life.place = task->place(task->self, host->index);
        sim_done_put(host, gradient, sim->queue.now_us);
    } else if (task->step && host->life.version == 0) { /* so that there is a loss to tell */
        sim_workers_wait(sim->workers, &host->lane, &host->steps[0].job);
        sim_steps_hear(host, 1);
    }
    host->life.stepping = false;
    host->life.version++;
    host->life.samples += samples;
    sim->steps++;
    sim->samples += samples;
    sim_operations_run(host);
    step_begin(host);
    if (host->life.version >= parley_node_awaits_steps(host->node)) sim_steps_tell(host);
}
