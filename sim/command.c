/* command.c: `parley sim`: settings to simulation, run to its end.
 *
 * Data, model and trainers are the real ones, time and network are not. The run ends when every
 * node has ended; a virtual hour after the last local step without that is no agreement.
 */
#include "settings/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "report.h"
#include "schedule.h"
#include "training.h"

#define PROGRESS_US UINT64_C(250000)
#define ENDING_US UINT64_C(3600000000)

struct run {
    const struct settings *settings;
    struct job job;
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
    const struct run *run = arg;
    (void)node;
    job_config(&run->job, config);
    config->min_peers = (uint32_t)run->settings->nodes - 1;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static int prepare_job(struct run *run, const struct source_reader *reader)
{
    char why[512] = "";
    int error = job_init(&run->job, run->settings, reader, why, sizeof why);
    if (!error) error = sim_training_init(&run->training, &run->task, &run->job, run->nodes);
    if (error) fprintf(stderr, "parley: %s\n", why[0] ? why : parley_error_text(error));
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
        .job = &run->job,
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
    double progress = 0, samples = (double)run->sim->samples;
    if (s->epochs > 0) progress = samples / (s->epochs * run->job.data.train.count);
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
    uint64_t due = run->sim->samples / s->eval_samples;
    if (s->accuracy <= 0 || due == run->evaluated || run->report.reached_s >= 0) return;
    run->evaluated = due;
    uint32_t node = (uint32_t)(rng_mix(s->seed ^ rng_mix(due)) % run->nodes);
    for (uint32_t i = 0; i < run->nodes && !parley_sim_live(run->sim, node); i++)
        node = (node + 1) % run->nodes;
    if (!parley_sim_live(run->sim, node)) return;
    double accuracy, loss;
    trainer_evaluate(run->job.trainer, parley_sim_vector(run->sim, node), &run->job.data.test,
                     &accuracy, &loss);
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

int sim_command(const struct settings *settings, const struct source_reader *reader)
{
    struct run run = {.settings = settings, .nodes = (uint32_t)settings->nodes};
    for (size_t i = 0; i < settings->faults.count; i++)
        if (settings->faults.items[i].kind == FAULT_JOIN &&
            settings->faults.items[i].target == FAULT_NUMBER)
            run.nodes += settings->faults.items[i].number;
    int error = run.nodes <= PARLEY_MEMBERS_MAX ? prepare_job(&run, reader) : PARLEY_EUSAGE;
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
    job_close(&run.job);
    free(run.starts);
    return error;
}
