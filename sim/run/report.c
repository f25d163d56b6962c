/* report.c: JSON lines in virtual time, a line now and then for people, the summary. */
#include "run/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kernels/digest.h"
#include "kernels/mix.h"
#include "report/human.h"
#include "report/summary.h"
#include "run/output.h"
#include "run/save.h"
#include "run/talk.h"
#include "run/verdict.h"

/* Bytes of memory that this process has at hand now; 0 where nobody says. */
static double resident(void)
{
    unsigned long size, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%lu %lu", &size, &pages) != 2) pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double sim_report_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double virtual_s(const struct sim_report *report)
{
    return (double)parley_sim_now(report->sim) / 1e6;
}

static void say(struct sim_report *report, struct report_line *line)
{
    if (!report->json) return;
    line->t = virtual_s(report);
    char *text = report_line_text(line);
    if (text) fputs(text, report->json);
    fflush(report->json);
    free(text);
}

/* Of what nodes say of themselves only warnings are for everybody. */
static enum parley_log level_of(enum parley_log level)
{
    return level <= PARLEY_LOG_WARN ? level : PARLEY_LOG_DEBUG;
}

void sim_report_stepped(struct sim_report *report)
{
    if (report->trained) return;
    report->wall_trained_s = sim_report_wall();
    report->steps_trained = report->sim->steps;
}

void sim_report_trained(struct sim_report *report)
{
    if (report->trained) return;
    for (uint32_t i = 0; i < report->sim->nodes; i++)
        sim_settle(report->sim, i);
    sim_report_stepped(report);
    report->trained = true;
    report->drift_trained = models_drift(report->sim);
    report->exchanges_trained = verdict_exchanges(report->sim);
    report->bytes_trained = parley_sim_bytes_sent(report->sim);
    models_own(&report->own, report->sim, report->settings->seed);
}

/* ---- While it goes --------------------------------------------------------------------------- */

static void agreed_line(struct sim_report *report, uint32_t node)
{
    struct parley_view view;
    char digest[DIGEST_TEXT_BYTES];
    parley_sim_view(report->sim, node, &view);
    digest_text(view.digest, digest);
    struct report_line line = {
        .event = REPORT_AGREED,
        .node = report->sim->names[node],
        .as.agreed = {.digest = digest,
                      .held = view.held,
                      .known = view.known,
                      .generation = view.generation,
                      .drift_before = view.drift_before >= 0 ? view.drift_before : NAN,
                      .test_accuracy = NAN,
                      .test_loss = NAN},
    };
    say(report, &line);
}

static void phase_line(struct sim_report *report, uint32_t node, enum parley_phase phase)
{
    struct parley_view view;
    parley_sim_view(report->sim, node, &view);
    bool stops = phase == PARLEY_PHASE_STOP;
    struct report_line line = {
        .event = REPORT_PHASE,
        .node = report->sim->names[node],
        .as.phase = {.phase = parley_phase_name(phase),
                     .cause = stops ? parley_stop_name(view.stop) : NULL},
    };
    say(report, &line);
}

/* From here on. That of time 0 would not be begun. */
static void begin_rate(struct sim_report *report, uint32_t node)
{
    uint64_t now_us = parley_sim_now(report->sim), samples = report->sim->hosts[node].life.samples;
    rate_now(&report->rates[node], now_us > 0 ? now_us : 1, samples, false);
}

static void on_update(struct parley_sim *sim, uint32_t node, const struct parley_update *update,
                      void *arg)
{
    struct sim_report *report = arg;
    struct report_line line = {.node = sim->names[node]};
    char boot[REPORT_BOOT_BYTES];
    switch (update->type) {
    case PARLEY_UPDATE_PHASE:
        phase_line(report, node, update->phase.phase);
        begin_rate(report, node);
        if (update->phase.phase > PARLEY_PHASE_TRAIN) sim_report_trained(report);
        if (update->phase.phase != PARLEY_PHASE_DONE) break;
        report->agreed_us = parley_sim_now(sim);
        agreed_line(report, node);
        break;
    case PARLEY_UPDATE_MEMBER:
        line.event = REPORT_MEMBER;
        report_boot(update->member.boot, boot);
        line.as.member = (struct report_member){
            .peer = update->member.name,
            .state = parley_member_state_name(update->member.state),
            .reason = update->member.reason,
            .boot = boot,
        };
        say(report, &line);
        break;
    case PARLEY_UPDATE_LOG:
        if (!report->silent)
            sim_say(level_of(update->log.level), "%.3f s  %s: %s", virtual_s(report),
                    sim->names[node], update->log.text);
        break;
    default:
        break;
    }
}

void sim_report_fault(const char *kind, const char *target, void *arg)
{
    struct sim_report *report = arg;
    struct report_line line = {.event = REPORT_FAULT, .as.fault = {.kind = kind, .target = target}};
    say(report, &line);
    if (!report->silent)
        sim_say(PARLEY_LOG_INFO, "%.3f s  fault: %s %s", virtual_s(report), kind, target);
}

static double epochs(const struct sim_report *report)
{
    return (double)report->sim->samples / report->job->data.train.count;
}

/* Passes that the node has ended. */
static uint64_t passes_of(const struct sim_report *report, uint32_t node)
{
    const struct sim_task *task = report->sim->task;
    return task->place ? task->place(task->self, node) / SAMPLER_SLICES : 0;
}

void sim_report_progress(struct sim_report *report)
{
    struct parley_sim *sim = report->sim;
    for (uint32_t i = 0; report->json && i < sim->nodes; i++) {
        struct parley_view view;
        const struct sim_host *host = &sim->hosts[i];
        struct rate *rate = &report->rates[i];
        if (!parley_sim_live(sim, i)) continue;
        parley_sim_view(sim, i, &view);
        rate_now(rate, parley_sim_now(sim), host->life.samples, view.phase == PARLEY_PHASE_TRAIN);
        struct report_line line = {
            .event = REPORT_PROGRESS,
            .node = sim->names[i],
            .as.progress = {.step = host->life.version,
                            .epoch = (double)view.samples_cluster / report->job->data.train.count,
                            .loss = host->life.version > 0 ? host->life.loss : NAN,
                            .drift = view.drift >= 0 ? view.drift : NAN,
                            .drift_age_s = NAN,
                            .live = view.live,
                            .samples_per_s = rate->value,
                            .exchanges = view.ledger.applied,
                            .bytes_sent = host->bytes_sent,
                            .bytes_membership = host->bytes_membership,
                            .bytes_sketches = host->bytes_sketches,
                            .gap_max_ms = NAN,
                            .turn_max_ms = NAN,
                            .passes = host->life.place / SAMPLER_SLICES,
                            .progress = view.progress},
        };
        if (view.drift >= 0)
            line.as.progress.drift_age_s =
                (double)(parley_sim_now(sim) + host->clock_us - view.drift_us) / 1e6;
        say(report, &line);
    }
}

void sim_report_speak(struct sim_report *report, double progress)
{
    struct parley_sim *sim = report->sim;
    double wall = sim_report_wall(), loss = 0;
    uint32_t stepped = 0;
    if (!sim_shows_progress() || report->silent ||
        wall < report->spoken_s + human_pause_s(wall - report->wall_start_s))
        return;
    report->spoken_s = wall;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (!parley_sim_live(sim, i) || sim->hosts[i].life.version == 0) continue;
        loss += sim->hosts[i].life.loss;
        stepped++;
    }
    char t[HUMAN_BYTES], virtual[HUMAN_BYTES], losses[HUMAN_BYTES], drift[HUMAN_BYTES],
        part[8] = "";
    if (progress >= 0) snprintf(part, sizeof part, "%d%%  ", (int)(100 * fmin(progress, 1)));
    sim_show("%s  %s virtual  %" PRIu32 " of %" PRIu32 " alive  epoch %.2f  %sloss %s  drift %s",
             human_seconds(t, wall - report->wall_start_s),
             human_seconds(virtual, virtual_s(report)), parley_sim_live_count(sim), sim->nodes,
             epochs(report), part, human_loss(losses, stepped ? loss / stepped : NAN),
             human_drift(drift, models_drift(sim)));
}

int sim_report_init(struct sim_report *report)
{
    report->rates = calloc(report->sim->nodes, sizeof *report->rates);
    if (!report->rates) return sim_blame(PARLEY_ENOMEM, "");
    const char *path = report->silent ? NULL : report->settings->json;
    int error = sim_output_open(&report->json, "json", path);
    if (error) return error;
    report->sim->on_update = on_update;
    report->sim->on_update_arg = report;
    report->wall_start_s = report->spoken_s = sim_report_wall();
    report->resident = resident();
    report->reached_s = -1;
    const char *core = getenv("OPENBLAS_CORETYPE");
    struct report_line line = {
        .event = REPORT_STARTED,
        .as.started = {.pid = (uint64_t)getpid(),
                       .version = PARLEY_VERSION,
                       .protocol = WIRE_VERSION,
                       .data = report->settings->data,
                       .samples = report->job->data.train.count,
                       .model = report->settings->model,
                       .parameters = report->sim->parameters,
                       .seed = report->settings->seed,
                       .blas = core ? core : "default"},
    };
    say(report, &line);
    return 0;
}

int sim_report_close(struct sim_report *report)
{
    free(report->rates);
    return report->json ? sim_output_close(report->json, "json", report->settings->json) : 0;
}

/* ---- At the end ------------------------------------------------------------------------------ */

/* Steps a second from the first that began to the end of training, with all that came between. */
static double steps_per_s(const struct sim_report *report)
{
    double span = report->wall_trained_s - report->wall_train_s;
    return span > 0 ? (double)report->steps_trained / span : NAN;
}

/* Of the nodes that live, or of all that were there. */
static uint64_t least_passes(const struct sim_report *report, bool live)
{
    const struct parley_sim *sim = report->sim;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < sim->nodes; i++)
        if ((live ? parley_sim_live(sim, i) : sim->hosts[i].boots > 0) &&
            passes_of(report, i) < least)
            least = passes_of(report, i);
    return least;
}

static void add_coverage(const struct sim_report *report, struct report_summary *sum)
{
    sum->coverage_count = coverage_parts(report->coverage, sum->epochs, sum->coverage);
    sum->epochs_whole =
        coverage_whole(sum->coverage, sum->coverage_count, sum->epochs,
                       least_passes(report, sum->live > 0), job_share_moves(report->job));
}

/* By the agreed model at the latest: it is what all held after the last local step. */
static double target_s(const struct sim_report *report, const struct verdict *v)
{
    double target = report->settings->accuracy;
    if (report->reached_s >= 0) return report->reached_s;
    return target > 0 && v->accuracy >= target ? (double)report->trained_us / 1e6 : NAN;
}

static enum sim_fate fate_of(const struct parley_sim *sim, uint32_t node)
{
    if (sim->hosts[node].boots == 0) return SIM_FATE_NEVER;
    return parley_sim_live(sim, node) ? SIM_FATE_LIVE : SIM_FATE_DEAD;
}

static void conclude(struct sim_report *report, const struct verdict *v)
{
    struct parley_sim *sim = report->sim;
    struct sim_outcome *outcome = report->outcome;
    struct parley_view view;
    parley_sim_view(sim, v->first, &view);
    digest_text(view.digest, outcome->digest);
    snprintf(outcome->hash, sizeof outcome->hash, "%016" PRIx64, parley_sim_run_hash(sim));
    outcome->parameters = sim->parameters;
    outcome->summary = (struct report_summary){
        .ok = !outcome->error,
        .live = v->live,
        .agreed = v->agreed,
        .known = v->known,
        .digest = v->agreed > 0 && v->agreed == v->holders ? outcome->digest : NULL,
        .strategy = report->settings->values[OPTION_ID_STRATEGY].text,
        .test_accuracy = v->accuracy,
        .worst_accuracy = v->worst,
        .test_loss = v->loss,
        .drift_before = v->drift_before,
        .epochs = epochs(report),
        .steps = sim->steps,
        .samples = sim->samples,
        .exchanges = v->exchanges,
        .exchanges_trained = report->trained ? report->exchanges_trained : v->exchanges,
        .exchanges_dropped = v->dropped,
        .bytes_sent = parley_sim_bytes_sent(sim),
        .bytes_trained = report->trained ? report->bytes_trained : parley_sim_bytes_sent(sim),
        .mass_error = parley_sim_mass_error(sim),
        .mass_dropped = v->mass_dropped,
        .wall_s = sim_report_wall() - report->wall_start_s,
        .time_to_target_s = target_s(report, v),
        .sim = true,
        .virtual_s = virtual_s(report),
        .run_hash = outcome->hash,
        .node_steps_per_s = steps_per_s(report),
        .trained_s = (double)report->trained_us / 1e6,
        .drift_trained = report->trained ? report->drift_trained : NAN,
        .own_accuracy = report->trained ? report->own.mean : NAN,
        .own_accuracy_worst = report->trained ? report->own.worst : NAN,
        .own_accuracy_sd = report->trained ? report->own.deviation : NAN,
        .lr_scale = report->settings->values[OPTION_ID_LR_SCALE].text,
        .warmup = report->settings->warmup,
        .agreed_s = v->agreed > 0 ? (double)report->agreed_us / 1e6 : NAN,
    };
    if (report->coverage) add_coverage(report, &outcome->summary);
    for (uint32_t i = 0; i < sim->nodes; i++) {
        enum sim_fate fate = fate_of(sim, i);
        outcome->summary.nodes += fate != SIM_FATE_NEVER;
        if (outcome->fates) outcome->fates[i] = (uint8_t)fate;
    }
}

/* Of the node that agreed first, as all have the same. */
static int save(const struct sim_report *report, const struct verdict *v)
{
    struct parley_sim *sim = report->sim;
    struct parley_view view;
    if (!report->settings->out) return 0;
    parley_sim_view(sim, v->first, &view);
    return sim_save(report->job, parley_sim_agreed_vector(sim, v->first), view.digest, sim->run,
                    report->settings->out);
}

int sim_report_end(struct sim_report *report)
{
    struct parley_sim *sim = report->sim;
    struct sim_outcome *outcome = report->outcome;
    struct verdict v;
    const char *why;
    sim_check(sim);
    int error = parley_sim_error(sim, &why);
    if (error) sim_say(PARLEY_LOG_ERROR, "sim: %s: %s", parley_error_text(error), why);
    verdict_judge(&v, sim);
    if (!error) error = v.error;
    if (!error && (v.agreed < v.live || v.agreed == 0)) error = PARLEY_ENO_AGREEMENT;
    /* Of a liar that is left alone: with others it would not have been picked. */
    if (!error && !mix_finite(parley_sim_agreed_vector(sim, v.first), sim->parameters))
        error = PARLEY_EDIVERGED;
    if (!error) error = save(report, &v);
    outcome->error = error;
    conclude(report, &v);
    outcome->guesses =
        summary_guesses(&outcome->summary, report->job->data.train.classes, report->settings->rate);
    sim_report_progress(report);
    struct report_line line = {.event = REPORT_SUMMARY, .as.summary = outcome->summary};
    say(report, &line);
    if (!report->silent && !sim_output_takes_stdout(report->settings)) sim_report_print(report);
    return error;
}
