/* report.c: what a node says: JSON lines, and lines for people on stderr.
 *
 * Callbacks of parley's loop and the main thread both talk, and wait for no reader: writer.h. If
 * nobody reads, lines are lost and the node goes on; only at its end it waits.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/node/node.h"
#include "clock.h"
#include "core/wire/wire.h"
#include "kernels/digest.h"
#include "report/human.h"
#include "report/lines.h"
#include "report/summary.h"
#include "report/table.h"

static double seconds(const struct node *node)
{
    return (double)(clock_now_us() - node->start_us) / 1e6;
}

/* Who waits for others before or after it trains does not train. */
static double trained_s(const struct node *node)
{
    if (!node->train_us) return 0;
    return (double)((node->stop_us ? node->stop_us : clock_now_us()) - node->train_us) / 1e6;
}

static void tell(struct node *node, struct report_line *line)
{
    if (node->json.fd < 0) return;
    line->t = seconds(node);
    line->node = node_name(node);
    char *text = report_line_text(line);
    bool must = line->event == REPORT_AGREED || line->event == REPORT_ERROR;
    if (text) json_out_put(&node->json, text, strlen(text), must);
    free(text);
}

static char *lost_line(void *context, uint64_t lines)
{
    const struct node *node = context;
    struct report_line line = {.event = REPORT_LOST,
                               .t = seconds(node),
                               .node = node_name(node),
                               .as.lost = {.lines = lines}};
    return report_line_text(&line);
}

int node_report_init(struct node *node)
{
    node->told_us = node->start_us;
    if (uv_mutex_init(&node->start_lock)) return PARLEY_EFAIL;
    int error = uv_mutex_init(&node->error_lock) ? PARLEY_EFAIL : 0;
    if (error) goto no_lock;
    error = json_out_open(&node->json, node->settings->json, lost_line, node);
    if (!error) return 0;
    uv_mutex_destroy(&node->error_lock);
no_lock:
    uv_mutex_destroy(&node->start_lock);
    return error;
}

int node_report_close(struct node *node)
{
    uv_mutex_destroy(&node->start_lock);
    uv_mutex_destroy(&node->error_lock);
    return json_out_close(&node->json, node->settings->json);
}

/* ---- The start ------------------------------------------------------------------------------- */

void node_report_started(struct node *node)
{
    const struct job *job = &node->job;
    struct report_line line = {
        .event = REPORT_STARTED,
        .as.started = {.pid = (uint64_t)getpid(),
                       .listen = parley_listens(node->p),
                       .version = PARLEY_VERSION,
                       .protocol = WIRE_VERSION,
                       .data = job->data.name,
                       .samples = job->data.train.count,
                       .model = model_spec(job->model),
                       .parameters = trainer_parameters(job->trainer),
                       .seed = node->settings->seed,
                       .blas = environment_blas(),
                       .resumed = node->resumed.steps},
    };
    tell(node, &line);
    if (node->controlled) return;
    say(PARLEY_LOG_INFO, "%s (pid %ld) listens on %s", node_name(node), (long)getpid(),
        parley_listens(node->p));
    node_join_say_next(node);
    node_join_warn(node);
    say(PARLEY_LOG_INFO, "%s: %" PRIu32 " samples; %s: %zu parameters; BLAS kernels: %s",
        job->data.name, job->data.train.count, model_spec(job->model),
        trainer_parameters(job->trainer), environment_blas());
    if (node->settings->min_peers > 0)
        say(PARLEY_LOG_INFO, "training starts when %" PRIu64 " other %s here",
            node->settings->min_peers, node->settings->min_peers == 1 ? "node is" : "nodes are");
}

void node_report_takeover(struct node *node)
{
    struct report_line line = {.event = REPORT_TAKEOVER, .as.takeover = {node->share}};
    tell(node, &line);
}

/* ---- While it goes --------------------------------------------------------------------------- */

static void tell_progress(struct node *node, struct parley *p, const struct parley_view *view)
{
    struct parley_stats stats;
    uint64_t now_us = clock_now_us();
    parley_stats(p, &stats);
    node->told_us = now_us;
    node->told_progress = view->progress;
    rate_now(&node->rate, now_us, atomic_load(&node->samples), view->phase == PARLEY_PHASE_TRAIN);
    struct report_line line = {
        .event = REPORT_PROGRESS,
        .as.progress = {.step = view->version,
                        .epoch = (double)view->samples_cluster / node->job.data.train.count,
                        .loss = atomic_load(&node->loss),
                        .drift = view->drift >= 0 ? view->drift : NAN,
                        .drift_age_s = NAN,
                        .live = view->live,
                        .samples_per_s = node->rate.value,
                        .exchanges = view->ledger.applied,
                        .bytes_sent = stats.bytes_sent,
                        .gap_max_ms = (double)stats.gap_max_us / 1e3,
                        .turn_max_ms = (double)stats.turn_max_us / 1e3,
                        .bytes_membership = stats.bytes_membership,
                        .bytes_sketches = stats.bytes_sketches,
                        .passes = atomic_load(&node->place) / SAMPLER_SLICES,
                        .progress = view->progress},
    };
    if (view->drift >= 0 && now_us >= view->drift_us)
        line.as.progress.drift_age_s = (double)(now_us - view->drift_us) / 1e6;
    tell(node, &line);
}

/* Of a budget of epochs alone it follows from the epoch beside it, as in `run`. */
static double shown_progress(const struct node *node, const struct parley_view *view, double epoch)
{
    const struct settings *s = node->settings;
    bool epochs_alone = s->epochs > 0 && s->steps == 0 && s->time_us == 0;
    return epochs_alone && view->phase == PARLEY_PHASE_TRAIN ? epoch / s->epochs : view->progress;
}

static void say_where(struct node *node, const struct parley_view *view)
{
    bool in_place = say_in_place(node->settings);
    uint64_t now_us = clock_now_us();
    uint64_t wait_us = (uint64_t)(human_pause_s(seconds(node)) * 1e6);
    if (node->controlled || !settings_wants_progress(node->settings)) return;
    if (!in_place && now_us < node->spoken_us + wait_us) return;
    node->spoken_us = now_us;
    char phase[64];
    int length = snprintf(phase, sizeof phase, "%s", parley_phase_name(view->phase));
    if (view->incoming >= 0) /* over a slow line nothing else moves for long */
        snprintf(phase + length, sizeof phase - (size_t)length, ", %.0f%% of a model is here",
                 100 * view->incoming);
    double epoch = (double)view->samples_cluster / node->job.data.train.count;
    struct table_plain plain = {
        .t = seconds(node),
        .live = view->live,
        .nodes = view->known,
        .epoch = epoch,
        .loss = atomic_load(&node->loss),
        .drift = view->drift >= 0 ? view->drift : NAN,
        .samples_per_s = node->rate.value,
        .progress = shown_progress(node, view, epoch),
        .phase = view->phase == PARLEY_PHASE_TRAIN ? NULL : phase,
        .here = true,
    };
    char *text = table_plain_text(&plain);
    if (text && in_place)
        say_standing(text);
    else if (text)
        say_line(PARLEY_LOG_INFO, text);
    free(text);
}

/* For the trainer. */
static void keep_progress(struct node *node, const struct parley_view *view)
{
    atomic_store(&node->steps_then, node->steps);
    atomic_store(&node->steps_known, view->steps);
    atomic_store(&node->samples_cluster, view->samples_cluster);
    atomic_store(&node->trained_us, view->trained_us);
}

/* `run` strikes its faults at shares of the budget by what is told, and a short budget is used
 * within a few of these lines. */
static bool is_to_tell(const struct node *node, const struct parley_view *view)
{
    const uint64_t told_every_us = 240000;
    const double share = 0.02;
    if (node->controlled && view->progress >= node->told_progress + share) return true;
    return clock_now_us() >= node->told_us + told_every_us;
}

static void wait_for_start(struct node *node)
{
    uv_mutex_lock(&node->start_lock);
    uv_mutex_unlock(&node->start_lock);
}

void node_on_timer(void *context, struct parley *p)
{
    struct node *node = context;
    struct parley_view view;
    wait_for_start(node);
    parley_node_view(parley_node_of(p), &view);
    keep_progress(node, &view);
    if (!is_to_tell(node, &view)) return;
    tell_progress(node, p, &view);
    say_where(node, &view);
}

static void tell_ledger(struct node *node, struct parley *p)
{
    const struct parley_node *core = parley_node_of(p);
    uint32_t count = parley_node_members(core);
    struct report_ledger_peer *peers = calloc(count, sizeof *peers);
    char(*boots)[REPORT_BOOT_BYTES] = calloc(count, sizeof *boots), own[REPORT_BOOT_BYTES];
    struct parley_view view;
    struct report_line line = {.event = REPORT_LEDGER};
    struct report_ledger *ledger = &line.as.ledger;
    parley_node_view(core, &view);
    for (uint32_t i = 1; peers && boots && i < count; i++) {
        struct parley_member member;
        parley_node_member(core, i, &member);
        if (member.applied == 0 || ledger->peer_count == REPORT_LEDGER_PEERS_MAX) continue;
        report_boot(member.boot, boots[i]);
        peers[ledger->peer_count++] = (struct report_ledger_peer){
            .boot = boots[i],
            .name = member.name,
            .applied = member.applied,
            .mass = member.mass,
            .mass_abs = member.mass_abs,
        };
    }
    report_boot(parley_config_of(p)->boot, own);
    ledger->boot = own;
    ledger->peers = peers;
    ledger->started = view.ledger.started;
    ledger->committed = view.ledger.committed;
    ledger->applied = view.ledger.applied;
    ledger->aborted = view.ledger.aborted;
    ledger->dropped = view.ledger.dropped;
    ledger->in_doubt = view.ledger.in_doubt;
    tell(node, &line);
    free(peers);
    free(boots);
}

/* The last figures, too: what the agreement took is in no line before. */
static void on_finished(struct node *node, struct parley *p)
{
    struct parley_view view;
    parley_node_view(parley_node_of(p), &view);
    if (view.version > 0) tell_progress(node, p, &view);
    tell_ledger(node, p);
    atomic_store(&node->left, true);
}

static void on_phase(struct node *node, struct parley *p, enum parley_phase phase)
{
    struct parley_view view;
    parley_node_view(parley_node_of(p), &view);
    bool stops = phase == PARLEY_PHASE_STOP;
    keep_progress(node, &view);
    if (phase == PARLEY_PHASE_TRAIN && !node->train_us) node->train_us = clock_now_us();
    /* The file has its name by then. */
    if (phase == PARLEY_PHASE_DONE && !view.in_memory_only)
        atomic_store(&node->model, node->settings->out);
    if (stops) {
        node->stop_us = clock_now_us();
        node->exchanges = view.ledger.applied;
        tell_progress(node, p, &view);
    }
    struct report_line line = {
        .event = REPORT_PHASE,
        .as.phase = {.phase = parley_phase_name(phase),
                     .cause = stops ? parley_stop_name(view.stop) : NULL},
    };
    tell(node, &line);
}

/* Whether another process of that name lives. */
static bool is_followed(const struct parley_node *core, const char *name, uint64_t boot)
{
    struct parley_member member;
    for (uint32_t i = 0; i < parley_node_members(core); i++) {
        parley_node_member(core, i, &member);
        if (member.state == PARLEY_MEMBER_ALIVE && member.boot != boot &&
            strcmp(member.name, name) == 0)
            return true;
    }
    return false;
}

static void on_member(struct node *node, struct parley *p, const struct parley_update *update)
{
    char boot[REPORT_BOOT_BYTES];
    struct report_line line = {
        .event = REPORT_MEMBER,
        .as.member = {.peer = update->member.name,
                      .state = parley_member_state_name(update->member.state),
                      .reason = update->member.reason,
                      .boot = boot},
    };
    report_boot(update->member.boot, boot);
    tell(node, &line);
    bool is_self = strcmp(update->member.name, node_name(node)) == 0;
    /* People hear nothing of a suspicion, nor that it was wrong. */
    bool is_doubt = update->member.state == PARLEY_MEMBER_SUSPECT ||
                    (update->member.state == PARLEY_MEMBER_ALIVE && update->member.suspected);
    if (node->controlled || is_self || is_doubt) return;
    bool former = is_followed(parley_node_of(p), update->member.name, update->member.boot);
    say(PARLEY_LOG_INFO, "%s%s %s %s%s%s", line.as.member.peer, former ? "'s earlier process" : "",
        update->member.state == PARLEY_MEMBER_LEFT ? "has" : "is", line.as.member.state,
        line.as.member.reason[0] ? ": " : "", line.as.member.reason);
}

static void on_log(struct node *node, enum parley_log level, const char *text)
{
    if (level == PARLEY_LOG_ERROR) {
        uv_mutex_lock(&node->error_lock);
        char *to = node->cause[0] ? node->error : node->cause;
        snprintf(to, sizeof node->error, "%s", text);
        uv_mutex_unlock(&node->error_lock);
    }
    /* What went wrong is said once, at the end. */
    if (level != PARLEY_LOG_ERROR) say(level, "%s", text);
}

void node_on_update(void *context, struct parley *p, const struct parley_update *update)
{
    struct node *node = context;
    wait_for_start(node);
    if (update->type == PARLEY_UPDATE_PHASE)
        on_phase(node, p, update->phase.phase);
    else if (update->type == PARLEY_UPDATE_MEMBER)
        on_member(node, p, update);
    else if (update->type == PARLEY_UPDATE_LOG)
        on_log(node, update->log.level, update->log.text);
    else if (update->type == PARLEY_UPDATE_FINISHED)
        on_finished(node, p);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void print_summary(struct node *node, const struct parley_result *result, double accuracy,
                          double loss, const char *digest)
{
    const struct parley_view *view = &result->view;
    const struct report_summary line = {
        .agreed = view->held,
        .digest = digest,
        .test_accuracy = accuracy,
        .test_loss = loss,
        .epochs = (double)view->samples_cluster / node->job.data.train.count,
        .steps = view->version,
        .exchanges = view->ledger.applied,
        .exchanges_trained = node->exchanges,
        .bytes_sent = result->stats.bytes_sent,
    };
    const struct summary summary = {
        .line = &line,
        .nodes = view->known,
        .test_samples = node->job.data.test.count,
        .trained_s = trained_s(node),
        .path = view->in_memory_only ? NULL
                : result->aside      ? node->own_path
                                     : node->settings->out,
        .classes = node->job.data.train.classes,
        .rate = node->settings->rate,
    };
    say_summary(&summary);
}

void node_report_end(struct node *node, const struct parley_result *result, double accuracy,
                     double loss)
{
    say_clear();
    if (!result->agreed) return;
    char digest[DIGEST_TEXT_BYTES];
    digest_text(result->view.digest, digest);
    struct report_line line = {
        .event = REPORT_AGREED,
        .as.agreed = {.digest = digest,
                      .held = result->view.held,
                      .known = result->view.known,
                      .generation = result->view.generation,
                      .drift_before =
                          result->view.drift_before >= 0 ? result->view.drift_before : NAN,
                      .test_accuracy = accuracy,
                      .test_loss = loss,
                      .test_samples = node->job.data.test.count},
    };
    tell(node, &line);
    if (node->json.fd != STDOUT_FILENO) print_summary(node, result, accuracy, loss, digest);
}

void node_report_error(struct node *node, int error, const char *message)
{
    uv_mutex_lock(&node->error_lock);
    /* What failed on disk was logged first, what followed from it last. */
    const char *logged =
        error == PARLEY_ENOT_WRITTEN || !node->error[0] ? node->cause : node->error;
    if (!message[0]) message = logged[0] ? logged : parley_error_text(error);
    struct report_line line = {
        .event = REPORT_ERROR,
        .as.error = {.code = parley_error_name(error),
                     .message = message,
                     .hint = node_hint(error, message)},
    };
    tell(node, &line);
    if (!node->controlled || node->json.fd < 0) {
        say(PARLEY_LOG_ERROR, "%s", message);
        if (line.as.error.hint) say(PARLEY_LOG_ERROR, "hint: %s", line.as.error.hint);
    }
    uv_mutex_unlock(&node->error_lock);
}

/* Under `run` our stderr is shown as well; with -q it tells what came in the lines, at its end. */
void node_report_trouble(struct node *node, int error, const char *message)
{
    struct report_line line = {
        .event = REPORT_ERROR,
        .as.error = {.code = parley_error_name(error), .message = message},
    };
    tell(node, &line);
    say(PARLEY_LOG_ERROR, "%s", message);
}
