/* command.c: one run of `parley sim`: settings to simulation, run to its end.
 *
 * Data, model and trainers are the real ones, time and network are not. The run ends when every
 * node has ended; a virtual hour after the last local step without that, in which nobody who is
 * paused is to be woken, is no agreement.
 */
#include "run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "experiment/experiment.h"
#include "run/models.h"
#include "run/quadratic.h"
#include "run/room.h"
#include "run/schedule.h"
#include "run/talk.h"
#include "run/trace.h"
#include "run/training.h"
#include "settings/simulate.h"
#include "swarm/swarm.h"

#define PROGRESS_US UINT64_C(250000)
#define TRACE_BYTES_MAX (UINT64_C(64) << 20)
#define ENDING_US UINT64_C(3600000000)
#define START_INTERVAL_US UINT64_C(1000)
#define FLOAT_PS 1000 /* of an operation on vectors */

enum {
    STARTS_AT_ONCE = 16,
    EVENTS_UNSEEN = 64 /* between two looks at the real clock */
};
/* A node's whole state, the table of members too, is looked at after each so many events: and so
 * many for each member, as the look at the table takes longer, too. */
#define CHECK_EVENTS 4096
#define CHECK_EVENTS_A_MEMBER 8

struct run {
    const struct settings *settings;
    struct settings data; /* the same for the job, which has a model of data */
    struct job job;
    struct sim_training training;
    struct sim_trace trace;
    struct sim_task task;
    struct parley_sim *sim;
    struct sim_schedule schedule;
    struct sim_report report;
    struct sim_outcome *outcome;
    bool silent, draws_curve;
    uint64_t *starts; /* [nodes] */
    float *mean;      /* [parameters], where a target is looked for */
    uint32_t nodes;   /* with those that join later */
    uint32_t threads;
    uint64_t steps_seen, evaluated;
};

static struct sim_time time_of(const struct units_dist *dist)
{
    return (struct sim_time){dist->low_us, dist->high_us, dist->sigma};
}

/* A quadratic has no momentum. */
static uint32_t averaged_of(const struct run *run)
{
    bool momentum = run->settings->momentum_mode == TRAINER_MOMENTUM_AVERAGED;
    return momentum && run->task.vectors > 1 ? 2 : 1;
}

static void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct run *run = arg;
    (void)node;
    job_config(&run->job, config);
    config->parameters = run->task.parameters;
    config->vectors = run->task.vectors;
    config->averaged = averaged_of(run);
    config->model_digest = run->task.model_digest;
    config->min_peers = (uint32_t)run->settings->nodes - 1;
}

static uint32_t threads_of(const struct settings *settings)
{
    uint32_t threads = sim_threads(settings);
    if (threads == 1 || sim_blas_is_safe()) return threads;
    sim_say(PARLEY_LOG_WARN, "sim: this OpenBLAS computes in one thread only; --threads is 1");
    return 1;
}

/* A budget whose end is known ahead. */
static bool has_budget(const struct settings *s)
{
    return s->epochs > 0 || s->steps > 0 || s->time_us > 0;
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

static int check_nodes(uint32_t nodes)
{
    if (nodes <= PARLEY_MEMBERS_MAX) return 0;
    sim_say(PARLEY_LOG_ERROR,
            "--fault: with those that join there are %" PRIu32 " nodes; at most %d", nodes,
            PARLEY_MEMBERS_MAX);
    return PARLEY_EUSAGE;
}

/* Of those that are there from the start: who joins may find the memory of one that is dead. */
static int check_room(const struct run *run, char *why, size_t why_size)
{
    const struct trainer *trainer = run->job.trainer;
    bool quadratic = sim_quadratic_is(run->settings->model);
    return sim_room_check((uint32_t)run->settings->nodes,
                          quadratic ? run->task.vectors : 1 + trainer_state_vectors(trainer),
                          quadratic ? run->task.parameters : trainer_parameters(trainer), why,
                          why_size);
}

/* A quadratic's stand-in is a model of classes. */
static int check_counted(const struct settings *settings, const struct dataset *train, char *why,
                         size_t why_size)
{
    if (!train->targets && !train->text) return 0;
    snprintf(why, why_size,
             "--data: \"%.200s\" has no classes; --model %.40s only counts samples, of data that "
             "have: take digits",
             settings->data, settings->model);
    return PARLEY_EUSAGE;
}

static void tell_strangers(const struct run *run)
{
    char remark[512];
    if (graph_strangers(&run->job.graph, run->data.topology, run->nodes, remark, sizeof remark))
        sim_say(PARLEY_LOG_WARN, "sim: --topology: %s", remark);
}

static int prepare_job(struct run *run, const struct source *data,
                       const struct source_reader *reader)
{
    char why[512] = "";
    bool quadratic = sim_quadratic_is(run->settings->model);
    run->data = *run->settings;
    if (quadratic) run->data.model = "softmax"; /* never trained: data only say what an epoch is */
    int error = quadratic ? check_counted(run->settings, &data->train, why, sizeof why) : 0;
    if (!error) error = job_init(&run->job, &run->data, data, reader, why, sizeof why);
    if (!error) error = graph_fits(&run->job.graph, &run->data, run->nodes, why, sizeof why);
    if (!error && !run->silent) tell_strangers(run);
    if (!error && quadratic) error = sim_quadratic_init(&run->task, run->settings, why, sizeof why);
    if (!error && !quadratic)
        error = job_fits(run->settings, &run->job.data.train, why, sizeof why);
    if (!error) error = check_room(run, why, sizeof why);
    if (!error && !quadratic)
        error = sim_training_init(&run->training, &run->task, &run->job, run->nodes, run->threads);
    return sim_blame(error, why);
}

static int prepare_trace(struct run *run, const struct source_reader *reader)
{
    const struct units_dist *compute = &run->settings->compute;
    uint8_t *bytes = NULL;
    size_t size;
    char why[512] = "";
    if (compute->kind != UNITS_DIST_TRACE) return 0;
    int said = snprintf(why, sizeof why, "--compute: ");
    int error = reader->read(compute->path, TRACE_BYTES_MAX, &bytes, &size, why + said,
                             sizeof why - (size_t)said);
    if (!error) {
        int length = snprintf(why, sizeof why, "--compute: %.200s: ", compute->path);
        error = sim_trace_init(&run->trace, run->nodes, (const char *)bytes, size, why + length,
                               sizeof why - (size_t)length);
        if (error == PARLEY_ENOMEM) why[0] = '\0';
    }
    free(bytes);
    return sim_blame(error, why);
}

static int prepare_links(struct run *run)
{
    const struct links *links = &run->settings->links;
    uint32_t *group = malloc(run->nodes * sizeof *group);
    int error = group ? 0 : PARLEY_ENOMEM;
    for (size_t i = 0; !error && i < links->count; i++) {
        const struct link_spec *spec = &links->items[i];
        for (uint32_t n = 0; n < run->nodes; n++) {
            int found = groups_find(spec->groups, n);
            group[n] = found == GROUPS_NONE ? UINT32_MAX : (uint32_t)found;
        }
        error = parley_sim_link(run->sim, group,
                                spec->has_latency ? spec->latency_us : PARLEY_SIM_NEVER,
                                spec->bandwidth_bytes);
    }
    free(group);
    return error;
}

static int prepare_starts(struct run *run)
{
    const struct settings *s = run->settings;
    bool floods = s->membership == MEMBERSHIP_FULL; /* a thousand that dial the seeds at once */
    run->starts = calloc(run->nodes, sizeof *run->starts);
    if (!run->starts) return sim_blame(PARLEY_ENOMEM, "");
    for (uint64_t i = 0; i < run->nodes; i++)
        run->starts[i] = i >= s->nodes                  ? PARLEY_SIM_NEVER
                         : floods && i > STARTS_AT_ONCE ? (i - STARTS_AT_ONCE) * START_INTERVAL_US
                                                        : 0;
    return 0;
}

static int prepare_sim(struct run *run)
{
    const struct settings *s = run->settings;
    char why[512] = "";
    struct sim_options options = {
        .base = {.nodes = run->nodes,
                 .averaged = averaged_of(run),
                 .seed = s->seed,
                 .seeds = s->nodes < 3 ? (uint32_t)s->nodes : 3,
                 .start_us = run->starts,
                 .bandwidth_bytes = s->bandwidth_bytes,
                 .loss = s->loss,
                 .again = {.least_us = s->retransmit_us},
                 .threads = run->threads,
                 .configure = configure,
                 .arg = run},
        .compute = time_of(&s->compute),
        .latency = time_of(&s->latency),
        .float_ps = FLOAT_PS,
        .step_us = run->trace.times ? sim_trace_us : NULL,
        .step_us_arg = &run->trace,
        .shares_roster = s->membership == MEMBERSHIP_STATIC,
        .check_events = CHECK_EVENTS + (uint64_t)CHECK_EVENTS_A_MEMBER * run->nodes,
    };
    int error = sim_new(&run->sim, &options, &run->task);
    if (!error) error = prepare_links(run);
    if (!error)
        error = sim_schedule_init(&run->schedule, run->sim, &s->faults, s->seed, why, sizeof why);
    return sim_blame(error, why);
}

static int prepare_report(struct run *run)
{
    const struct settings *s = run->settings;
    bool looks = s->accuracy > 0 && run->task.reaches;
    if (looks) run->mean = malloc(run->task.parameters * sizeof *run->mean);
    if (looks && !run->mean) return sim_blame(PARLEY_ENOMEM, "");
    run->report = (struct sim_report){
        .settings = s,
        .sim = run->sim,
        .job = &run->job,
        .coverage = sim_quadratic_is(s->model) ? NULL : &run->training.coverage,
        .outcome = run->outcome,
        .silent = run->silent,
    };
    run->schedule.on_fault = sim_report_fault;
    run->schedule.arg = &run->report;
    int error = sim_report_init(&run->report);
    if (error || !run->draws_curve) return error;
    struct trainer *trainer = sim_quadratic_is(s->model) ? NULL : run->job.trainer;
    double every = has_budget(s) ? 1.0 / CURVE_POINTS : s->eval_samples;
    error = curve_init(&run->outcome->curve, trainer, &run->job.data, run->task.parameters, every);
    return sim_blame(error, "");
}

/* ---- The run --------------------------------------------------------------------------------- */

/* Steps are each node's own: those of the dead are made by nobody, and who joins has its own to
 * make. Time counts from the first step. */
static double progress_of(const struct run *run)
{
    const struct settings *s = run->settings;
    const struct parley_sim *sim = run->sim;
    double progress = 0, steps = (double)(sim->steps - sim->steps_gone);
    if (s->epochs > 0) progress = (double)sim->samples / (s->epochs * run->job.data.train.count);
    if (s->steps > 0 && sim->standing > 0)
        progress = fmax(progress, steps / ((double)s->steps * sim->standing));
    return fmin(fmax(progress, sim_schedule_passed(&run->schedule)), 1);
}

/* Samples from one look for the target to the next: all models are summed up, so each of them makes
 * a step before that is done again. */
static uint64_t look_every(const struct run *run)
{
    const struct sim_task *task = &run->task;
    uint64_t round = task->batch_is_shared ? task->batch : (uint64_t)task->batch * run->nodes;
    return run->settings->eval_samples > round ? run->settings->eval_samples : round;
}

/* Whether the live would agree on a model that meets the target, now and then. The first of them
 * tells the others. */
static void look(struct run *run)
{
    const struct settings *s = run->settings;
    uint64_t due = run->sim->samples / look_every(run);
    uint32_t node = 0;
    if (!run->mean || due == run->evaluated || run->report.reached_s >= 0) return;
    run->evaluated = due;
    while (node < run->nodes && !models_counts(run->sim, node))
        node++;
    if (node == run->nodes) return;
    models_mean(run->sim, run->mean);
    if (!run->task.reaches(run->task.self, run->mean, s->accuracy)) return;
    run->report.reached_s = (double)parley_sim_now(run->sim) / 1e6;
    parley_sim_stop(run->sim, node, PARLEY_STOP_TARGET);
}

static void draw_curve(struct run *run)
{
    double samples = (double)run->sim->samples;
    if (run->draws_curve)
        curve_look(&run->outcome->curve, run->sim,
                   has_budget(run->settings) ? progress_of(run) : samples);
}

/* Nobody runs until then, or is to be woken; and where none has ended, nobody is to start. Other
 * faults that are planned for hours later are not waited for. */
static bool is_over(const struct run *run, uint64_t until_us)
{
    const struct sim_schedule *schedule = &run->schedule;
    if (sim_queue_next_us(&run->sim->queue) < until_us || sim_schedule_runs(schedule)) return false;
    return sim_schedule_ended(schedule) || !sim_schedule_starts(schedule);
}

static void stepped(struct run *run)
{
    sim_report_stepped(&run->report);
    run->steps_seen = run->sim->steps;
    run->report.trained_us = parley_sim_now(run->sim);
    if (run->schedule.count > 0) sim_schedule_progress(&run->schedule, progress_of(run));
    if (has_budget(run->settings) && progress_of(run) >= 1) sim_report_trained(&run->report);
    look(run);
    draw_curve(run);
}

static void run_to_end(struct run *run)
{
    struct parley_sim *sim = run->sim;
    uint64_t next_us = PROGRESS_US;
    uint64_t spent_us = run->settings->settle_timeout_us + ENDING_US;
    for (uint64_t events = 1; !is_over(run, next_us) && parley_sim_step(sim); events++) {
        if (events % EVENTS_UNSEEN == 0)
            sim_report_speak(&run->report, has_budget(run->settings) ? progress_of(run) : -1);
        if (sim->begun && run->report.wall_train_s == 0) {
            run->report.wall_train_s = sim_report_wall();
            int error = sim_schedule_begin(&run->schedule, run->settings->time_us);
            if (error) sim_fail(sim, error, "no memory for a fault");
        }
        if (sim->steps != run->steps_seen) stepped(run);
        if (run->draws_curve && sim->steps > 0)
            curve_settle(&run->outcome->curve, sim, (double)run->report.trained_us / 1e6);
        if (parley_sim_now(sim) >= next_us) {
            sim_report_progress(&run->report);
            next_us = parley_sim_now(sim) + PROGRESS_US;
        }
        uint64_t trained_us = run->report.trained_us, woke_us = run->schedule.woke_us;
        uint64_t last_us = trained_us > woke_us ? trained_us : woke_us;
        if (parley_sim_now(sim) > last_us + spent_us && !sim_schedule_wakes(&run->schedule)) break;
    }
}

/* The live nodes wait for others, as at the start: the dead are among them for who has started
 * anew. */
static bool all_join(const struct run *run)
{
    struct parley_view view;
    for (uint32_t i = 0; i < run->nodes; i++) {
        if (run->sim->hosts[i].state == SIM_HOST_OFF) continue;
        parley_sim_view(run->sim, i, &view);
        if (view.phase != PARLEY_PHASE_JOINING) return false;
    }
    return true;
}

/* What a reader of the summary alone would wonder at. */
static void tell_oddities(const struct run *run)
{
    uint32_t left = 0;
    size_t unstruck = sim_schedule_left(&run->schedule);
    for (uint32_t i = 0; i < run->nodes; i++)
        left += run->sim->hosts[i].state != SIM_HOST_OFF;
    if (left == 0 && sim_schedule_holds_down(&run->schedule))
        sim_say(PARLEY_LOG_ERROR, "sim: no node is left: those that were to start again wait for a "
                                  "part of the budget, of which nobody uses any");
    else if (left == 0)
        sim_say(PARLEY_LOG_ERROR, "sim: no node is left: all of them were killed");
    if (left > 0 && run->nodes > 1 && all_join(run))
        sim_say(PARLEY_LOG_ERROR,
                "sim: no node has met all others, which it waits for before it trains");
    if (unstruck > 0) sim_say(PARLEY_LOG_WARN, "sim: " FAULTS_LEFT, unstruck, run->schedule.count);
}

static void end_curve(struct run *run)
{
    const struct report_summary *s = &run->outcome->summary;
    double time_s = isfinite(s->agreed_s) ? s->agreed_s : s->virtual_s;
    if (run->draws_curve)
        curve_end(&run->outcome->curve, run->sim, time_s, s->test_accuracy, s->test_loss);
}

uint32_t sim_run_nodes(const struct settings *settings)
{
    uint32_t nodes = (uint32_t)settings->nodes;
    for (size_t i = 0; i < settings->faults.count; i++)
        if (settings->faults.items[i].kind == FAULT_JOIN &&
            settings->faults.items[i].target == FAULT_NUMBER)
            nodes += settings->faults.items[i].number;
    return nodes;
}

void sim_run(const struct settings *settings, const struct source *data,
             const struct source_reader *reader, unsigned how, struct sim_outcome *outcome)
{
    struct run run = {
        .settings = settings,
        .threads = threads_of(settings),
        .nodes = sim_run_nodes(settings),
        .outcome = outcome,
        .silent = (how & SIM_RUN_SILENT) != 0,
        .draws_curve = (how & SIM_RUN_CURVE) != 0,
    };
    int error = check_nodes(run.nodes);
    if (!error) error = prepare_job(&run, data, reader);
    if (!error) error = prepare_trace(&run, reader);
    if (!error) error = prepare_starts(&run);
    if (!error) error = prepare_sim(&run);
    if (!error) error = prepare_report(&run);
    if (!error) {
        run_to_end(&run);
        tell_oddities(&run);
        error = sim_report_end(&run.report);
        end_curve(&run);
    }
    curve_close(&outcome->curve);
    int closed = sim_report_close(&run.report);
    outcome->error = error ? error : closed;
    sim_schedule_close(&run.schedule);
    parley_sim_free(run.sim);
    sim_trace_close(&run.trace);
    if (sim_quadratic_is(settings->model))
        sim_task_close(&run.task);
    else
        sim_training_close(&run.training);
    job_close(&run.job);
    free(run.starts);
    free(run.mean);
}

int sim_command(const struct settings *settings, const struct source_reader *reader,
                sim_talker *talker)
{
    sim_talk_open(settings, talker);
    return settings->swarm ? swarm_command(settings) : sim_experiment(settings, reader);
}
