/* control.c: the thread that waits for signals, for the lines of `parley run`, and for names
 * that change in DNS. Nothing on it blocks: a signal is heard at once.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/node/node.h"
#include "clock.h"
#include "disk/durable.h"
#include "disk/files.h"

enum { LATE_MS = 50 };

void node_control_init(struct node *node)
{
    const char *control = getenv(CONTROL_VARIABLE);
    node->start_us = control ? strtoull(control, NULL, 10) : clock_now_us();
    node->controlled = control != NULL;
    /* A process group of its own: a terminal's Ctrl-C is for `run` only. No session of its own, as
     * Linux then gives each node a share of the processor apart, and trainers that take turns by
     * sched_yield() (peers/compute/handoff.c) would not see each other. */
    if (control) setpgid(0, 0);
    unsetenv(CONTROL_VARIABLE);
}

enum { NO_SAVE, SAVING, ENDING };

void node_control_saves(struct node *node)
{
    int at = NO_SAVE;
    if (!atomic_compare_exchange_strong(&node->saves, &at, SAVING))
        for (;;) /* the other thread ends the process */
            pause();
}

/* What has not been given its name yet: another thread may be in the middle of the agreed model, or
 * of this node's own in durable_replace(). */
static void remove_parts(const struct node *node, bool saving)
{
    char part[sizeof node->own_path + sizeof DURABLE_PART];
    files_remove_parts(node->settings->out, parley_config_of(node->p)->boot);
    snprintf(part, sizeof part, "%s" DURABLE_PART, node->own_path);
    if (saving) unlink(part);
}

/* They go first: hardly any gets its name as the last words are read. Then those that have come
 * meanwhile. */
_Noreturn static void end_now(struct node *node, int status)
{
    bool saving = atomic_exchange(&node->saves, ENDING) == SAVING;
    remove_parts(node, saving);
    say_briefly(node->json.writer);
    remove_parts(node, saving);
    _exit(status);
}

static void on_late(uv_timer_t *timer)
{
    node_leave_late(timer->loop->data);
}

/* Somebody may be about to kill it when the time is up: the last twentieth is to end in. */
static void leave(struct node *node)
{
    uint64_t late_us = node->settings->leave_timeout_us / 20 * 19;
    say(PARLEY_LOG_INFO, "leaving; a second signal ends it at once");
    parley_leave(node->p);
    uv_timer_start(&node->control.late, on_late, late_us / 1000, LATE_MS);
}

static void end(struct node *node, int number)
{
    enum asked_as as = asked_by(&node->control.asked, number);
    if (as == ASKED_FIRST) leave(node);
    if (as != ASKED_AGAIN) return;
    const char *model = atomic_load(&node->model);
    if (model)
        say(PARLEY_LOG_ERROR, "ended by signal %d: the model is in %s", number, model);
    else
        say(PARLEY_LOG_ERROR, "ended by signal %d: no model is written", number);
    end_now(node, STATUS_SIGNAL + number);
}

/* A model of no training is nothing to agree on. */
static void stop_all(struct node *node)
{
    if (atomic_load(&node->samples) == 0 && node->resumed.samples == 0) {
        say(PARLEY_LOG_ERROR, "SIGUSR2: this node has not trained yet; end it by SIGTERM");
        return;
    }
    say(PARLEY_LOG_INFO, "stopping: all nodes settle and agree");
    parley_stop(node->p, PARLEY_STOP_OPERATOR);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct node *node = handle->loop->data;
    if (number == SIGHUP) {
        node_seeds_read(node, true);
    } else if (number == SIGUSR1) {
        if (!node->settings->checkpoint)
            say(PARLEY_LOG_ERROR, "SIGUSR1: --checkpoint says where to; not given");
        atomic_store(&node->checkpoint.asked, true);
    } else if (number == SIGUSR2) {
        stop_all(node);
    } else {
        end(node, number);
    }
}

static void obey(struct node *node, char *line)
{
    if (strcmp(line, CONTROL_STOP) == 0) {
        parley_stop(node->p, PARLEY_STOP_OPERATOR);
    } else if (strcmp(line, CONTROL_CHECKPOINT) == 0) {
        atomic_store(&node->checkpoint.asked, true);
    } else if (strncmp(line, CONTROL_SLOW, strlen(CONTROL_SLOW)) == 0) {
        atomic_store(&node->slow, strtod(line + strlen(CONTROL_SLOW), NULL));
    } else if (strncmp(line, CONTROL_SLEEP, strlen(CONTROL_SLEEP)) == 0) {
        atomic_store(&node->sleep_us, strtoull(line + strlen(CONTROL_SLEEP), NULL, 10));
    } else if (strncmp(line, CONTROL_SEEDS, strlen(CONTROL_SEEDS)) == 0) {
        const char *seeds[PARLEY_SEEDS_MAX];
        uint32_t count = 0;
        char *rest = NULL;
        for (char *at = strtok_r(line + strlen(CONTROL_SEEDS), " ", &rest);
             at && count < PARLEY_SEEDS_MAX; at = strtok_r(NULL, " ", &rest))
            seeds[count++] = at;
        int error = parley_seeds(node->p, seeds, count);
        if (error)
            say(PARLEY_LOG_ERROR, "the peer list stays as it was: %s", parley_error_text(error));
    }
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct node_control *control = &((struct node *)handle->loop->data)->control;
    (void)suggested;
    *buffer = uv_buf_init(control->line + control->line_size,
                          (unsigned)(sizeof control->line - control->line_size));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct node *node = stream->loop->data;
    struct node_control *control = &node->control;
    (void)buffer;
    if (got == 0) return;
    if (got < 0) end_now(node, STATUS_SIGNAL + SIGHUP); /* `parley run` is gone */
    control->line_size += (size_t)got;
    char *start = control->line, *end;
    while ((end = memchr(start, '\n', control->line_size - (size_t)(start - control->line)))) {
        *end = 0;
        obey(node, start);
        start = end + 1;
    }
    control->line_size -= (size_t)(start - control->line);
    memmove(control->line, start, control->line_size);
    if (control->line_size == sizeof control->line) control->line_size = 0;
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

static void on_end(uv_async_t *async)
{
    node_seeds_end(async->loop->data);
    uv_walk(async->loop, close_handle, NULL);
}

static void run(void *argument)
{
    struct node *node = argument;
    uv_run(&node->control.loop, UV_RUN_DEFAULT);
}

static int refuse(int code, char *why, size_t why_size)
{
    snprintf(why, why_size, "can't wait for signals: %s", uv_strerror(code));
    return PARLEY_EFAIL;
}

int node_control_start(struct node *node, char *why, size_t why_size)
{
    struct node_control *control = &node->control;
    int code = uv_loop_init(&control->loop);
    if (code) return refuse(code, why, why_size);
    control->loop.data = node;
    code = uv_async_init(&control->loop, &control->end, on_end);
    if (!code) code = node_seeds_start(node);
    for (size_t i = 0; !code && i < SIGNALS_HEARD; i++) {
        code = uv_signal_init(&control->loop, &control->signals[i]);
        if (!code) code = uv_signal_start(&control->signals[i], on_signal, signals_heard[i]);
    }
    if (!code && node->controlled) {
        code = uv_pipe_init(&control->loop, &control->pipe, 0);
        if (!code) code = uv_pipe_open(&control->pipe, STDIN_FILENO);
        if (!code) code = uv_read_start((uv_stream_t *)&control->pipe, on_room, on_read);
    }
    if (!code) code = uv_timer_init(&control->loop, &control->late);
    if (!code) code = uv_thread_create(&control->thread, run, node);
    if (!code) return 0;
    uv_walk(&control->loop, close_handle, NULL);
    uv_run(&control->loop, UV_RUN_DEFAULT);
    uv_loop_close(&control->loop);
    return refuse(code, why, why_size);
}

void node_control_end(struct node *node)
{
    signals_hold(true); /* libuv gives their handlers back */
    uv_async_send(&node->control.end);
    uv_thread_join(&node->control.thread);
    uv_loop_close(&node->control.loop);
    signals_last(&node->control.asked);
}
