/* child.c: starting a node's process, reading what it tells, telling it what to do. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/run/run.h"
#include "clock.h"

enum { PIPE_BYTES = 1 << 16, ARGUMENT_BYTES = SETTINGS_VALUE_BYTES_MAX + 16 };

extern char **environ;

/* ---- What it tells --------------------------------------------------------------------------- */

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* Once all have told what they bring along. */
static void say_resumed(struct run *run)
{
    const char *directory = run->settings->checkpoint;
    uint32_t count = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *child = &run->children[i];
        if (!child->listen[0]) return;
        if (child->resumed > 0) count++;
        if (child->resumed > most) most = child->resumed;
    }
    if (!run->settings->resume || run->resumed) return;
    run->resumed = true;
    if (count > 0)
        run_say(run,
                "%" PRIu32 " of %" PRIu32
                " nodes go on from their checkpoints in %.400s, from step "
                "%" PRIu64 " at most",
                count, run->nodes, directory, most);
    else
        run_say(run, "no checkpoint in %.400s: starts with the first model", directory);
}

/* A node takes no more of them. */
static void tell_seeds(struct run *run)
{
    char line[sizeof CONTROL_SEEDS + PARLEY_SEEDS_MAX * PARLEY_ADDRESS_SIZE];
    size_t at = (size_t)snprintf(line, sizeof line, CONTROL_SEEDS);
    uint32_t told = 0;
    for (uint32_t i = 0; i < run->nodes && told < PARLEY_SEEDS_MAX; i++) {
        if (!run->children[i].listen[0]) continue;
        at += (size_t)snprintf(line + at, sizeof line - at, "%s ", run->children[i].listen);
        told++;
    }
    for (uint32_t i = 0; i < run->nodes; i++)
        child_say(&run->children[i], line);
}

static void on_started(struct child *child, const struct report_started *started)
{
    struct run *run = child->run;
    copy(child->listen, sizeof child->listen, started->listen);
    child->resumed = started->resumed;
    run->samples = started->samples;
    run_say(run, "%s  pid %" PRIu64 "  %s", child->name, started->pid, child->listen);
    say_resumed(run);
    tell_seeds(run);
}

static void on_phase(struct child *child, const struct report_phase *phase)
{
    struct run *run = child->run;
    copy(child->phase, sizeof child->phase, phase->phase);
    if (strcmp(child->phase, "stop") == 0) {
        run->stop_us = clock_now_us();
        if (child->bytes_trained == 0) {
            child->bytes_trained = child->bytes_before + child->told.bytes_sent;
            child->exchanges_trained = child->exchanges_before + child->told.exchanges;
        }
    }
    if (strcmp(child->phase, "done") == 0) run->published = true;
    bool trains = strcmp(child->phase, "train") == 0;
    if (trains || strcmp(child->phase, "late") == 0) child->came_in = true;
    if (trains && !run->train_us) run->train_us = clock_now_us();
    if (phase->cause && strcmp(phase->cause, "target") == 0 && !run->target_us)
        run->target_us = clock_now_us();
    if (phase->cause && strcmp(phase->cause, "budget") == 0 && !run->spent && !run->ending) {
        run->spent = true;
        run_faults_advance(run); /* at once: by the next look all others may have agreed and left */
    }
    if (strcmp(child->phase, "left") == 0 && !child->agreed.json)
        run_say(run, "%s has left", child->name);
}

static void on_member(struct child *child, const struct report_line *line)
{
    struct run *run = child->run;
    const struct report_member *member = &line->as.member;
    if (!member->peer || !member->state) return;
    /* Every node says it; people want it once, from the first that lives. */
    for (uint32_t i = 0; i < run->nodes; i++) {
        const struct child *first = &run->children[i];
        if (!first->running || child_is_still(first) || strcmp(first->name, member->peer) == 0)
            continue;
        if (first == child && strcmp(member->state, "dead") == 0)
            run_say(run, "%s is dead: %s", member->peer, member->reason ? member->reason : "");
        return;
    }
}

static void on_error(struct child *child, const struct report_error *error)
{
    /* It has gone on after the one before, which would not be said at the end. */
    if (child->has_error && child->run->settings->level < PARLEY_LOG_INFO) {
        run_view_clear(child->run);
        say(PARLEY_LOG_ERROR, "%s: %s", child->name, child->message);
    }
    child->has_error = true;
    copy(child->code, sizeof child->code, error->code);
    copy(child->message, sizeof child->message, error->message);
    copy(child->hint, sizeof child->hint, error->hint);
}

static bool take(struct report_line *to, const struct report_line *line)
{
    report_line_close(to);
    *to = *line;
    return true;
}

/* Returns true if the line was taken over and is not to be closed. */
static bool on_line(struct child *child, struct report_line *line)
{
    switch (line->event) {
    case REPORT_STARTED:
        on_started(child, &line->as.started);
        break;
    case REPORT_PROGRESS:
        child->told = line->as.progress;
        if (!child->progressed && child->resumed > 0) child->passes_before = child->told.passes + 1;
        child->progressed = true;
        break;
    case REPORT_PHASE:
        on_phase(child, &line->as.phase);
        break;
    case REPORT_MEMBER:
        on_member(child, line);
        break;
    case REPORT_AGREED:
        if (!line->as.agreed.digest) break;
        child->run->test_samples = line->as.agreed.test_samples;
        return take(&child->agreed, line);
    case REPORT_ERROR:
        on_error(child, &line->as.error);
        break;
    case REPORT_LEDGER:
        return take(&child->ledger, line);
    default:
        break;
    }
    return false;
}

/* With its newline. */
static void out_line(struct child *child, const char *text, size_t size)
{
    struct report_line line;
    if (report_line_parse(&line, text, size)) {
        run_say(child->run, "%s: a line that is not understood: %.*s", child->name,
                (int)(size < 80 ? size : 80) - 1, text);
        return;
    }
    run_relay(child->run, text, size);
    if (!on_line(child, &line)) report_line_close(&line);
}

static void err_line(struct child *child, const char *text, size_t size)
{
    static const char own[] = "parley: ";
    size_t skip = strncmp(text, own, sizeof own - 1) == 0 ? sizeof own - 1 : 0;
    run_say(child->run, "%s: %.*s", child->name, (int)(size - skip), text + skip);
    if (!child->has_error) /* its last words, if it ends without any other */
        snprintf(child->message, sizeof child->message, "%.*s", (int)(size - skip), text + skip);
}

/* ---- Pipes ----------------------------------------------------------------------------------- */

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct run_pipe *pipe = (struct run_pipe *)handle;
    (void)suggested;
    *buffer = uv_buf_init(NULL, 0);
    if (pipe->capacity - pipe->size < PIPE_BYTES / 2) {
        size_t capacity = pipe->capacity ? 2 * pipe->capacity : PIPE_BYTES;
        if (capacity > 2 * REPORT_LINE_BYTES_MAX) return; /* reading ends with ENOBUFS */
        char *bytes = realloc(pipe->bytes, capacity);
        if (!bytes) return;
        pipe->bytes = bytes;
        pipe->capacity = capacity;
    }
    *buffer = uv_buf_init(pipe->bytes + pipe->size, (unsigned)(pipe->capacity - pipe->size - 1));
}

static void on_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;
    if (--child->handles == 0) run_child_gone(child);
}

static void close_one(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) uv_close(handle, on_closed);
}

static void close_all(struct child *child)
{
    close_one((uv_handle_t *)&child->in);
    close_one((uv_handle_t *)&child->out.handle);
    close_one((uv_handle_t *)&child->err.handle);
    close_one((uv_handle_t *)&child->process);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct run_pipe *pipe = (struct run_pipe *)stream;
    struct child *child = stream->data;
    (void)buffer;
    if (got < 0) {
        /* Its last words, if it died before their newline. */
        if (pipe == &child->err && pipe->size > 0) {
            pipe->bytes[pipe->size] = 0;
            err_line(child, pipe->bytes, pipe->size);
        }
        close_one((uv_handle_t *)stream);
        return;
    }
    pipe->size += (size_t)got;
    char *start = pipe->bytes, *end;
    while ((end = memchr(start, '\n', pipe->size - (size_t)(start - pipe->bytes)))) {
        if (pipe == &child->out)
            out_line(child, start, (size_t)(end - start) + 1);
        else
            err_line(child, start, (size_t)(end - start));
        start = end + 1;
    }
    pipe->size -= (size_t)(start - pipe->bytes);
    memmove(pipe->bytes, start, pipe->size);
}

struct write {
    uv_write_t request;
    char text[];
};

static void on_written(uv_write_t *request, int code)
{
    (void)code; /* a node that is gone need not be told */
    free(request);
}

void child_say(struct child *child, const char *line)
{
    if (!child->running || uv_is_closing((uv_handle_t *)&child->in)) return;
    size_t size = strlen(line) + 1;
    struct write *write = malloc(sizeof *write + size);
    if (!write) return;
    memcpy(write->text, line, size - 1);
    write->text[size - 1] = '\n';
    uv_buf_t buffer = uv_buf_init(write->text, (unsigned)size);
    if (uv_write(&write->request, (uv_stream_t *)&child->in, &buffer, 1, on_written)) free(write);
}

/* ---- The process ----------------------------------------------------------------------------- */

void child_signal(struct child *child, int number)
{
    if (child->running) uv_process_kill(&child->process, number);
}

void child_let_go(struct child *child)
{
    child->again = false;
    if (!child->running) return;
    close_one((uv_handle_t *)&child->in);
    child_signal(child, child->listen[0] ? SIGCONT : SIGKILL); /* it may be stopped */
}

bool child_is_still(const struct child *child)
{
    return child->paused || child->stopped;
}

/* As it is now: nothing is waited for in libuv's stead, and an end that it has yet to hear of is
 * seen, too. */
void child_look(struct child *child)
{
    siginfo_t info = {0};
    if (!child->running ||
        waitid(P_PID, (id_t)child->process.pid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT))
        return;
    bool was = child->stopped;
    child->stopped = info.si_code == CLD_STOPPED && !child->paused;
    if (child->stopped && !was)
        run_say(child->run, "%s was stopped; kill -CONT %d wakes it", child->name,
                (int)child->process.pid);
    else if (was && !child->stopped && info.si_pid == 0)
        run_say(child->run, "%s goes on", child->name);
}

static void on_exit_(uv_process_t *process, int64_t status, int term_signal)
{
    struct child *child = process->data;
    child->running = child->paused = child->stopped = false;
    child->status = (int)status;
    /* A second signal ends a node by that status. */
    child->term_signal = status > STATUS_SIGNAL ? (int)status - STATUS_SIGNAL : term_signal;
    child->listen[0] = 0;
    close_one((uv_handle_t *)&child->in);
    close_one((uv_handle_t *)process);
}

/* Variables of the environment, with the one that makes it a controlled node; one block. What they
 * set here goes by its arguments, and what they would set only there is not meant for it. */
static char **make_environment(const struct run *run, char control[64])
{
    size_t count = 0, n = 0;
    while (environ[count])
        count++;
    char **list = malloc((count + 2) * sizeof *list);
    if (!list) return NULL;
    snprintf(control, 64, CONTROL_VARIABLE "=%" PRIu64, run->start_us);
    for (size_t i = 0; i < count; i++)
        if (!settings_is_variable(environ[i])) list[n++] = environ[i];
    list[n++] = control;
    list[n] = NULL;
    return list;
}

uint64_t run_min_peers(const struct run *run)
{
    bool given = run->settings->values[OPTION_ID_MIN_PEERS].origin > ORIGIN_DEFAULT;
    return given ? run->settings->min_peers : run->nodes - 1;
}

/* The command line of a node. own: memory for its own arguments. */
static char **make_arguments(struct child *child, bool again, char own[5][ARGUMENT_BYTES])
{
    const struct run *run = child->run;
    char **list = malloc((run->forward_count + 16) * sizeof *list);
    size_t n = 0;
    if (!list) return NULL;
    list[n++] = "parley";
    list[n++] = "node";
    for (size_t i = 0; i < run->forward_count; i++)
        if (strncmp(run->forward[i], "--min-peers=", 12) != 0) list[n++] = run->forward[i];
    snprintf(own[0], ARGUMENT_BYTES, "--name=%s", child->name);
    list[n++] = own[0];
    list[n++] = "--json=-";
    list[n++] = "--listen=127.0.0.1:0";
    if (!again) {
        snprintf(own[1], ARGUMENT_BYTES, "--min-peers=%" PRIu64, run_min_peers(run));
        list[n++] = own[1];
    }
    if (run->settings->quorum == PARLEY_QUORUM_MAJORITY) {
        snprintf(own[2], ARGUMENT_BYTES, "--nodes=%" PRIu32, run->nodes);
        list[n++] = own[2];
    }
    /* The first seeds of who comes back; the others follow through its pipe. */
    size_t at = 0, given = 0;
    for (uint32_t i = 0; again && i < run->nodes && given < 3; i++) {
        if (!run->children[i].listen[0]) continue;
        at += (size_t)snprintf(own[3] + at, ARGUMENT_BYTES - at, at ? ",%s" : "--join=%s",
                               run->children[i].listen);
        given++;
    }
    if (given > 0) list[n++] = own[3];
    /* All write one file: the models are equal, byte by byte. */
    snprintf(own[4], ARGUMENT_BYTES, "--out=%s", run->settings->out);
    list[n++] = own[4];
    /* Asked for by -q or -v here, not there: most of what a node says comes by its lines. */
    if (!run->settings->verbose) list[n++] = "--log-level=warning";
    list[n] = NULL;
    return list;
}

/* This one, and not by its path: what lies there may have been replaced since, and a node that a
 * fault restarts would be of another program than the rest. */
static const char program[] = "/proc/self/exe";

static void reset(struct child *child)
{
    struct report_progress *told = &child->told;
    child->steps_before += told->step;
    child->bytes_before += told->bytes_sent;
    child->exchanges_before += told->exchanges;
    *told = (struct report_progress){.passes = told->passes,
                                     .epoch = told->epoch,
                                     .live = told->live,
                                     .loss = NAN,
                                     .drift = NAN};
    child->has_error = child->killed = child->again = false;
    child->listen[0] = child->message[0] = child->code[0] = child->hint[0] = 0;
    copy(child->phase, sizeof child->phase, "start");
    child->out.size = child->err.size = 0;
    report_line_close(&child->agreed);
    report_line_close(&child->ledger);
}

static void open_pipes(struct child *child)
{
    struct run *run = child->run;
    uv_pipe_init(&run->loop, &child->in, 0);
    uv_pipe_init(&run->loop, &child->out.handle, 0);
    uv_pipe_init(&run->loop, &child->err.handle, 0);
    child->in.data = child->out.handle.data = child->err.handle.data = child;
    child->process.data = child;
    child->handles = 4;
}

int child_start(struct child *child, bool again)
{
    struct run *run = child->run;
    char own[5][ARGUMENT_BYTES], control[64];
    reset(child);
    char **arguments = make_arguments(child, again, own);
    char **environment = make_environment(run, control);
    int code = UV_ENOMEM;
    if (!arguments || !environment) goto out;
    open_pipes(child);
    uv_stdio_container_t stdio[CONTROL_DATA + 1] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&child->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&child->out.handle},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&child->err.handle}};
    if (run->coverage >= 0)
        stdio[CONTROL_COVERAGE] =
            (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = run->coverage};
    if (run->data >= 0)
        stdio[CONTROL_DATA] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = run->data};
    uv_process_options_t options = {
        .exit_cb = on_exit_,
        .file = program,
        .args = arguments,
        .env = environment,
        .stdio_count = CONTROL_DATA + 1,
        .stdio = stdio,
    };
    code = uv_spawn(&run->loop, &child->process, &options);
    if (!code) {
        child->used = child->running = true;
        uv_read_start((uv_stream_t *)&child->out.handle, on_room, on_read);
        uv_read_start((uv_stream_t *)&child->err.handle, on_room, on_read);
    } else {
        close_all(child);
    }
out:
    free(arguments);
    free(environment);
    if (!code) return 0;
    const char *hint = node_hint(PARLEY_EFAIL, uv_strerror(code));
    say(PARLEY_LOG_ERROR, "%s could not be started: %s: %s", child->name, program,
        uv_strerror(code));
    if (hint) say(PARLEY_LOG_ERROR, "hint: %s", hint);
    return PARLEY_EFAIL;
}
