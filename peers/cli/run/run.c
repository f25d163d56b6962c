/* run.c: `parley run`: N nodes on this machine as processes, watched until they agree.
 *
 *   start N nodes on free ports; tell each the addresses of all, as they become known; relay their
 *   lines; carry out planned faults; when all are gone, judge, and say the summary
 *
 * A node that dies while training is the cluster's to bear. One that ends before any has trained
 * ends the run: the others would wait for it for ever. One that somebody has stopped (SIGSTOP) is
 * killed when the others are through. The first signal asks the nodes to settle and agree, SIGHUP
 * and SIGUSR2 as well as SIGINT and SIGTERM: there is no peer list to be read again here, and hours
 * of work shall outlive a terminal. The second ends them: each removes what it has begun to write
 * as it sees its pipe end, as it does should this process be killed; who is there for longer is
 * killed. SIGUSR1 goes on to the nodes, by their pipes: one that does not listen to signals yet
 * would die of it.
 */
#include "cli/run/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/node/checkpoint_files.h"
#include "cli/read_file.h"
#include "cli/shared_data.h"
#include "clock.h"
#include "data/remarks.h"
#include "descriptors.h"
#include "job/job.h"

enum { TICK_MS = 20, START_US = 5000000, END_US = 2000000 };

static bool has_trained(const struct run *run)
{
    return run->train_us > 0;
}

/* Nobody who trained is left that would let in who comes, and of those who have not come in each
 * waits for more others than there are. */
static bool all_wait_in_vain(const struct run *run)
{
    uint64_t here = 0;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (!child->running || child_is_still(child)) continue;
        if (child->came_in) return false;
        here++;
    }
    return here > 0 && here <= run_min_peers(run);
}

static void kill_all(struct run *run)
{
    run->ending = true;
    for (uint32_t i = 0; i < run->nodes; i++) {
        run->children[i].again = false;
        if (run->children[i].running) run->children[i].killed = true;
        child_signal(&run->children[i], SIGKILL);
    }
}

int run_error_of(const struct child *child)
{
    if (child->term_signal) return PARLEY_EFAIL;
#define X(name, status, text)                                                                      \
    if (strcmp(child->code, "PARLEY_E" #name) == 0) return PARLEY_E##name;
    PARLEY_ERRORS(X)
#undef X
    return child->status ? PARLEY_EFAIL : 0;
}

static void failed_start(struct child *child)
{
    struct run *run = child->run;
    run->failed = child->status || child->term_signal ? run_error_of(child) : PARLEY_EFAIL;
    run_view_clear(run);
    if (child->has_error) {
        say(PARLEY_LOG_ERROR, "%s: %s", child->name, child->message);
        if (child->hint[0]) say(PARLEY_LOG_ERROR, "hint: %s", child->hint);
    } else if (child->term_signal)
        say(PARLEY_LOG_ERROR, "%s was killed by signal %d before all were training", child->name,
            child->term_signal);
    else
        say(PARLEY_LOG_ERROR, "%s ended with status %d before all were training", child->name,
            child->status);
    if (!child->has_error && child->message[0] && run->settings->quiet) /* else they are said */
        say(PARLEY_LOG_ERROR, "%s: %s", child->name, child->message);
    kill_all(run);
}

static void stop_watching(struct run *run)
{
    signals_hold(true);
    uv_close((uv_handle_t *)&run->timer, NULL);
    for (size_t i = 0; i < SIGNALS_HEARD; i++)
        uv_close((uv_handle_t *)&run->signals[i], NULL);
}

/* Whether a node has come to its end by itself. */
static bool has_ended(const struct run *run)
{
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (child->used && !child->running && !child->term_signal) return true;
    }
    return false;
}

/* Whether one has come to its end by that: who is started now comes too late. */
static bool has_agreed(const struct run *run)
{
    for (uint32_t i = 0; i < run->nodes; i++)
        if (!run->children[i].running && run->children[i].agreed.json) return true;
    return false;
}

/* The others say that more have agreed than have told of it: under load all that a node has said
 * may not have been written yet. Who died in between, and counts there, tells nothing any more. */
static bool is_unheard(const struct run *run)
{
    uint64_t held = 0, told = 0;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct report_line *line = &run->children[i].agreed;
        told += line->json != NULL;
        if (line->json && line->as.agreed.held > held) held = line->as.agreed.held;
    }
    return held > told && clock_now_us() < run->gone_us + START_US;
}

/* Nothing comes of a node that a fault has stopped for good. One that somebody may wake, or that
 * came back too late to get in, is waited for as long as there is somebody that it can come to. */
static bool is_given_up(const struct child *child)
{
    bool outside = strcmp(child->phase, "start") == 0; /* and no phase told since */
    if (child->paused) return !run_faults_pass(child->run, child);
    outside = outside && has_trained(child->run) && !is_unheard(child->run);
    return (child->stopped || outside) && has_ended(child->run);
}

/* True if nothing runs any more, nor will, but what is given up. Who was asked to stop waits for
 * nobody that a fault has yet to start again. */
static bool is_over(const struct run *run)
{
    bool starts = run->asked.since_us == 0 && !has_agreed(run);
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        bool comes = starts && child->again && run_faults_pass(run, child);
        if (child->running ? !is_given_up(child) : comes) return false;
        if (!child->running && child->handles > 0) return false; /* lines are still to be read */
    }
    return true;
}

/* Those that are still there are killed. */
_Noreturn static void end_now(struct run *run)
{
    for (uint32_t i = 0; i < run->nodes; i++)
        child_signal(&run->children[i], SIGKILL);
    say_exit(run->json.writer, STATUS_SIGNAL + run->ended_by);
}

static void end_if_over(struct run *run)
{
    for (uint32_t i = 0; !run->ending && i < run->nodes; i++)
        child_look(&run->children[i]);
    if (!run->ending && !is_over(run)) return;
    for (uint32_t i = 0; !run->ending && i < run->nodes; i++)
        if (run->children[i].stopped)
            run_say(run, "%s is still stopped, and the others have ended: it is killed",
                    run->children[i].name);
    if (!run->ending) kill_all(run); /* those that are stopped for good */
    for (uint32_t i = 0; i < run->nodes; i++)
        if (run->children[i].handles > 0) return;
    if (run->ended_by) end_now(run);
    if (!uv_is_closing((uv_handle_t *)&run->timer)) stop_watching(run);
}

void run_child_gone(struct child *child)
{
    struct run *run = child->run;
    run->gone_us = clock_now_us();
    if (!run->ending && child->again && !run_faults_hold(run, child)) {
        if (child_start(child, true))
            run->failed = PARLEY_EFAIL;
        else
            run_faults_again(run, child);
        return;
    }
    if (!run->ending && !child->again && !has_trained(run)) failed_start(child);
    bool failed = child->term_signal || child->status;
    if (failed) run->lost = child;
    if (!run->ending && has_trained(run) && !child->killed && child->term_signal)
        run_say(run, "%s was killed by signal %d", child->name, child->term_signal);
    end_if_over(run);
}

static void ask_for_checkpoints(struct run *run)
{
    if (!run->settings->checkpoint)
        say(PARLEY_LOG_ERROR, "SIGUSR1: --checkpoint says where to; not given");
    for (uint32_t i = 0; run->settings->checkpoint && i < run->nodes; i++)
        child_say(&run->children[i], CONTROL_CHECKPOINT);
}

static void end_by_signal(struct run *run, int number)
{
    const char *out = run->settings->out;
    if (run->published && access(out, F_OK) == 0) /* of one that could not write it, it is not */
        say(PARLEY_LOG_ERROR,
            "ended by signal %d, before all nodes had ended; the agreed model is in %s", number,
            out);
    else
        say(PARLEY_LOG_ERROR, "ended by signal %d, before all nodes had ended", number);
    run->ending = true;
    run->ended_by = number;
    run->ended_us = clock_now_us();
    for (uint32_t i = 0; i < run->nodes; i++)
        child_let_go(&run->children[i]);
    end_if_over(run); /* perhaps none is there */
}

/* Who closes a terminal sends SIGHUP more than once: the kernel does, and the shell. So it never
 * counts as the second signal, and nor does SIGUSR2, which asks for an agreement. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct run *run = handle->data;
    bool once = number == SIGHUP || number == SIGUSR2;
    if (run->ended_by || (once && run->asked.since_us > 0)) return;
    run_view_clear(run);
    if (number == SIGUSR1) {
        ask_for_checkpoints(run);
        return;
    }
    if (number == SIGUSR2 && !has_trained(run)) {
        say(PARLEY_LOG_ERROR, "SIGUSR2: nobody has trained yet; end it by SIGINT");
        return;
    }
    enum asked_as as = asked_by(&run->asked, number);
    if (as == ASKED_STILL) return;
    if (as == ASKED_FIRST && has_trained(run)) {
        say(PARLEY_LOG_INFO,
            "stopping: the nodes settle and agree; SIGINT or SIGTERM again: end at once");
        for (uint32_t i = 0; i < run->nodes; i++)
            child_say(&run->children[i], CONTROL_STOP);
        return;
    }
    end_by_signal(run, number);
}

/* Who died as the first began to train may be one that another still waits for (--min-peers), and
 * will not come. */
static void look_at_start(struct run *run)
{
    struct child *lost = run->lost;
    bool vain = has_trained(run) && lost && !lost->running && !lost->again && all_wait_in_vain(run);
    if (!vain)
        run->vain_us = 0;
    else if (run->vain_us == 0)
        run->vain_us = clock_now_us();
    else if (!run->ending && clock_now_us() >= run->vain_us + START_US)
        failed_start(lost);
}

static void on_tick(uv_timer_t *timer)
{
    struct run *run = timer->data;
    if (run->ended_by && clock_now_us() >= run->ended_us + END_US) end_now(run);
    if (run->ending) return;
    run_faults_advance(run);
    look_at_start(run);
    end_if_over(run); /* perhaps all have just been stopped for good */
    run_view_draw(run);
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

/* Each node reads the graph by itself, but none would say who is not in it but that one. */
static int check_graph(struct run *run, const struct graph *graph, char *why, size_t why_size)
{
    const struct settings *settings = run->settings;
    char remark[512];
    int error = graph_fits(graph, settings, settings->nodes, why, why_size);
    if (!error &&
        graph_strangers(graph, settings->topology, settings->nodes, remark, sizeof remark))
        run_say(run, "--topology: %s", remark);
    return error;
}

/* What a node says of its own share, `run` says of all. */
static int say_cycled(struct run *run, const struct dataset *train, char *why, size_t why_size)
{
    const struct settings *settings = run->settings;
    uint32_t least;
    if (strcmp(settings->optimizer, "gd") == 0) return 0; /* a step takes a share as it is */
    int error = job_smallest_share(settings, train, &least, why, why_size);
    if (!error && least < settings->batch)
        run_say(run,
                "the smallest share has %" PRIu32
                " samples, fewer than a batch: such shares are cycled",
                least);
    return error;
}

/* Once for all nodes. A file that can't be read, a node finds and says; what does not go with the
 * data is said once, before there are any. */
static int load_data(struct run *run, char *why, size_t why_size)
{
    struct source source;
    const struct settings *settings = run->settings;
    int error = 0;
    if (!source_load(&source, &file_reader, settings->data, settings->test, why, why_size)) {
        struct job job;
        struct remarks remarks = {0};
        error = job_init(&job, settings, &source, &file_reader, why, why_size);
        if (!error) error = check_graph(run, &job.graph, why, why_size);
        if (!error) remarks_of(&remarks, &job.data);
        for (uint32_t i = 0; i < remarks.count; i++)
            run_say(run, "%s", remarks.text[i]);
        job_close(&job);
        if (!error) error = job_fits(settings, &source.train, why, why_size);
        if (!error) error = say_cycled(run, &source.train, why, why_size);
        if (!error) run->data = shared_data_make(&source);
        run->classes = source.train.classes;
        run->coverage = shared_coverage_make(source.train.count);
    }
    source_close(&source);
    return error;
}

static int prepare(struct run *run, char *why, size_t why_size)
{
    run->nodes = (uint32_t)run->settings->nodes;
    run->children = calloc(run->nodes, sizeof *run->children);
    if (!run->children) return PARLEY_ENOMEM;
    int error = settings_forward(run->settings, &run->forward, &run->forward_count);
    /* Talk is ours; -v reaches the nodes by its level. */
    for (size_t i = run->forward_count; !error && i-- > 0;)
        if (strcmp(run->forward[i], "--quiet") == 0)
            memmove(&run->forward[i], &run->forward[i + 1],
                    (run->forward_count-- - i) * sizeof *run->forward);
    if (!error) error = run_faults_init(run);
    return error ? error : load_data(run, why, why_size);
}

/* Under nohup, SIGHUP is ignored, and stays so. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void watch_signals(struct run *run)
{
    for (size_t i = 0; i < SIGNALS_HEARD; i++) {
        uv_signal_init(&run->loop, &run->signals[i]);
        run->signals[i].data = run;
        if (signals_heard[i] == SIGHUP && is_ignored(SIGHUP)) continue;
        uv_signal_start(&run->signals[i], on_signal, signals_heard[i]);
    }
}

/* Once for all nodes. */
static void warn_of_replaced(const struct run *run)
{
    const struct settings *settings = run->settings;
    char whose[32];
    uint64_t newest;
    uint32_t count = 0;
    if (!settings->checkpoint || settings->resume) return;
    for (uint32_t i = 0; i < run->nodes; i++)
        count += checkpoint_files_newest(settings->checkpoint, run->children[i].name, UINT64_MAX,
                                         &newest) > 0;
    snprintf(whose, sizeof whose, "%" PRIu32 " of these nodes", count);
    if (count > 0) say(PARLEY_LOG_WARN, CHECKPOINT_FILES_REPLACED, settings->checkpoint, whose);
}

static int start_all(struct run *run)
{
    uv_timer_init(&run->loop, &run->timer);
    run->timer.data = run;
    watch_signals(run);
    uv_timer_start(&run->timer, on_tick, TICK_MS, TICK_MS);
    for (uint32_t i = 0; i < run->nodes; i++) {
        run->children[i].run = run;
        snprintf(run->children[i].name, sizeof run->children[i].name, "n%" PRIu32, i);
    }
    warn_of_replaced(run);
    for (uint32_t i = 0; i < run->nodes; i++) {
        int error = child_start(&run->children[i], false);
        if (!error) continue;
        kill_all(run);
        return error;
    }
    return 0;
}

/* libuv aborts where it finds no descriptors for its own; a node needs more than `run`. */
static int open_loop(struct run *run, char *why, size_t why_size)
{
    int error = descriptors_check(why, why_size);
    int code = error ? 0 : uv_loop_init(&run->loop);
    if (!code) return error;
    snprintf(why, why_size, "can't start a loop: %s", uv_strerror(code));
    return PARLEY_EFAIL;
}

/* Prepared, started, and watched to its end. */
static int carry_out(struct run *run)
{
    char why[600] = "";
    int error = prepare(run, why, sizeof why);
    if (error) {
        say_failure(error, why);
        return error;
    }
    error = json_out_open(&run->json, run->settings->json, run_lost_line, run);
    if (error) return error;
    error = start_all(run);
    if (error) stop_watching(run);
    uv_run(&run->loop, UV_RUN_DEFAULT);
    signals_last(&run->asked);
    return error ? error : run_view_end(run);
}

static int close_all(struct run *run)
{
    uv_loop_close(&run->loop);
    for (uint32_t i = 0; run->children && i < run->nodes; i++) {
        struct child *child = &run->children[i];
        report_line_close(&child->agreed);
        report_line_close(&child->ledger);
        free(child->out.bytes);
        free(child->err.bytes);
    }
    run_faults_close(run);
    int error = json_out_close(&run->json, run->settings->json);
    if (run->coverage >= 0) close(run->coverage);
    if (run->data >= 0) close(run->data);
    free(run->children);
    free(run->forward);
    return error;
}

int run_command(const struct settings *settings)
{
    char why[600] = "";
    struct run *run = calloc(1, sizeof *run);
    int status = run ? say_start() : say_failure(PARLEY_ENOMEM, NULL);
    if (status) {
        free(run);
        return status;
    }
    run->settings = settings;
    run->data = run->coverage = -1;
    int error = open_loop(run, why, sizeof why);
    if (error) {
        say_failure(error, why);
    } else {
        run->start_us = clock_now_us();
        error = carry_out(run);
        int closed = close_all(run);
        if (!error) error = closed;
    }
    free(run);
    say_end();
    return parley_error_status(error);
}
