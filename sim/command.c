/* command.c: `parley sim`: settings to simulation, run to its end.
 *
 * Data, model and trainers are the real ones, time and network are not. The run ends when every
 * node has ended; a virtual hour after the last local step without that is no agreement.
 */
#include "settings/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "report.h"
#include "schedule.h"

#define PROGRESS_US UINT64_C(250000)
#define ENDING_US UINT64_C(3600000000)

struct run {
    const struct settings *settings;
    struct dataset train, test;
    struct sim_training training;
    struct sim_task task;
    struct parley_sim *sim;
    struct sim_schedule schedule;
    struct sim_report report;
    uint64_t *starts; /* [nodes] */
    uint32_t nodes;   /* with those that join later */
    uint64_t steps_seen, evaluated;
    uint64_t stepped_us; /* virtual time of the newest local step */
};

static struct sim_time time_of(const struct units_dist *dist)
{
    struct sim_time time = {.low_us = dist->low_us, .high_us = dist->low_us};
    if (dist->kind == UNITS_DIST_UNIFORM) time.high_us = dist->high_us;
    if (dist->kind == UNITS_DIST_LOGNORMAL) time.sigma = dist->sigma;
    return time;
}

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    static const char *const topologies[] = {"complete", "ring", "torus", "exponential"};
    const struct run *run = arg;
    const struct settings *s = run->settings;
    (void)node;
    config->samples_budget = s->epochs > 0 ? (uint64_t)ceil(s->epochs * run->train.count) : 0;
    config->steps_budget = s->steps;
    config->time_budget_us = s->time_us;
    config->min_peers = (uint32_t)s->nodes - 1;
    config->strategy =
        s->strategy == STRATEGY_GOSSIP ? PARLEY_STRATEGY_GOSSIP : PARLEY_STRATEGY_NONE;
    for (int t = 0; t < 4; t++)
        if (strcmp(s->topology, topologies[t]) == 0) config->topology = (enum parley_topology)t;
    config->mix_every = (uint32_t)s->mix_every;
    config->tolerance = s->tolerance;
    config->settle_timeout_us = s->settle_timeout_us;
    config->quorum = s->quorum == QUORUM_MAJORITY ? PARLEY_QUORUM_MAJORITY : PARLEY_QUORUM_LIVE;
    config->nodes = s->quorum == QUORUM_MAJORITY ? (uint32_t)s->nodes : 0;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static int prepare_data(struct run *run)
{
    const struct settings *s = run->settings;
    char why[512];
    int error = sim_load(&run->train, &run->test, s->data, s->test, why, sizeof why);
    if (error) {
        fprintf(stderr, "parley: %s\n", why);
        return error;
    }
    struct trainer_options options = {
        .model = s->model,
        .optimizer = s->optimizer,
        .schedule = s->schedule,
        .rate = s->rate,
        .momentum = s->momentum,
        .batch = (uint32_t)s->batch,
        .seed = s->seed,
    };
    error = sim_training_init(&run->training, &run->task, &options, s->partition, &run->train,
                              run->nodes);
    if (error)
        fprintf(stderr, "parley: %s\n",
                run->training.why[0] ? run->training.why : parley_error_text(error));
    return error;
}

static int prepare_sim(struct run *run)
{
    const struct settings *s = run->settings;
    char why[512] = "";
    run->starts = calloc(run->nodes, sizeof *run->starts);
    if (!run->starts) return PARLEY_ENOMEM;
    for (uint64_t i = s->nodes; i < run->nodes; i++)
        run->starts[i] = PARLEY_SIM_NEVER;
    struct sim_options options = {
        .base = {.nodes = run->nodes,
                 .parameters = run->task.parameters,
                 .vectors = run->task.vectors,
                 .seed = s->seed,
                 .seeds = s->nodes < 3 ? (uint32_t)s->nodes : 3,
                 .start_us = run->starts,
                 .operation_us = SIM_OPERATION_US + run->task.parameters / 1000, /* 1 ns each */
                 .configure = configure,
                 .arg = run},
        .compute = time_of(&s->compute),
        .latency = time_of(&s->latency),
        .task = &run->task,
    };
    int error = sim_new(&run->sim, &options);
    if (!error)
        error = sim_schedule_init(&run->schedule, run->sim, &s->faults, s->seed, why, sizeof why);
    if (why[0]) fprintf(stderr, "parley: %s\n", why);
    if (error) return error;
    run->report = (struct sim_report){
        .settings = s,
        .sim = run->sim,
        .training = &run->training,
        .train = &run->train,
        .test = &run->test,
        .nodes = (uint32_t)s->nodes,
    };
    run->schedule.on_fault = sim_report_fault;
    run->schedule.arg = &run->report;
    return sim_report_init(&run->report);
}

/* ---- The run --------------------------------------------------------------------------------- */

static double progress_of(const struct run *run)
{
    const struct settings *s = run->settings;
    double progress = 0, samples = (double)run->sim->steps * run->task.batch;
    if (s->epochs > 0) progress = samples / (s->epochs * run->train.count);
    if (s->steps > 0)
        progress = fmax(progress, (double)run->sim->steps / ((double)s->steps * run->nodes));
    if (s->time_us > 0)
        progress = fmax(progress, (double)parley_sim_now(run->sim) / (double)s->time_us);
    return fmin(progress, 1);
}

/* The test accuracy of one node's model, now and then; it costs no virtual time. */
static void look(struct run *run)
{
    const struct settings *s = run->settings;
    uint64_t due = run->sim->steps * run->task.batch / s->eval_samples;
    if (s->accuracy <= 0 || due == run->evaluated || run->report.reached_s >= 0) return;
    run->evaluated = due;
    uint32_t node = (uint32_t)(rng_mix(s->seed ^ rng_mix(due)) % run->nodes);
    for (uint32_t i = 0; i < run->nodes && !parley_sim_live(run->sim, node); i++)
        node = (node + 1) % run->nodes;
    if (!parley_sim_live(run->sim, node)) return;
    double accuracy, loss;
    sim_training_evaluate(&run->training, parley_sim_vector(run->sim, node), &run->test, &accuracy,
                          &loss);
    if (accuracy < s->accuracy) return;
    run->report.reached_s = (double)parley_sim_now(run->sim) / 1e6;
    parley_sim_stop(run->sim, node, PARLEY_STOP_TARGET);
}

static bool over(const struct run *run)
{
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct sim_host *host = &run->sim->hosts[i];
        if (host->state == SIM_HOST_UP && !host->paused) return false;
    }
    return parley_sim_now(run->sim) > 0;
}

static void stepped(struct run *run)
{
    double wall = sim_report_wall();
    if (run->steps_seen == 0) run->report.wall_train_s = wall;
    run->report.wall_trained_s = wall;
    run->steps_seen = run->sim->steps;
    run->stepped_us = parley_sim_now(run->sim);
    if (run->schedule.count > 0) sim_schedule_progress(&run->schedule, progress_of(run));
    look(run);
}

static void run_to_end(struct run *run)
{
    struct parley_sim *sim = run->sim;
    uint64_t next_us = PROGRESS_US;
    uint64_t spent_us = run->settings->settle_timeout_us + ENDING_US;
    while (parley_sim_step(sim)) {
        if (sim->steps != run->steps_seen) stepped(run);
        if (parley_sim_now(sim) >= next_us) {
            sim_report_progress(&run->report, false);
            next_us = parley_sim_now(sim) + PROGRESS_US;
            if (over(run)) break;
        }
        if (parley_sim_now(sim) > run->stepped_us + spent_us) break;
    }
}

int sim_command(const struct settings *settings)
{
    struct run run = {.settings = settings, .nodes = (uint32_t)settings->nodes};
    for (size_t i = 0; i < settings->faults.count; i++)
        if (settings->faults.items[i].kind == FAULT_JOIN &&
            settings->faults.items[i].target == FAULT_NUMBER)
            run.nodes += settings->faults.items[i].number;
    int error = run.nodes <= PARLEY_MEMBERS_MAX ? prepare_data(&run) : PARLEY_EUSAGE;
    if (run.nodes > PARLEY_MEMBERS_MAX)
        fprintf(stderr, "parley: sim: at most %d nodes\n", PARLEY_MEMBERS_MAX);
    if (!error) error = prepare_sim(&run);
    if (!error) {
        run_to_end(&run);
        error = sim_report_end(&run.report);
    }
    sim_report_close(&run.report);
    sim_schedule_close(&run.schedule);
    parley_sim_free(run.sim);
    sim_training_close(&run.training);
    dataset_close(&run.train);
    dataset_close(&run.test);
    free(run.starts);
    return error;
}
