/* loop.c: see loop.h. */
#define _GNU_SOURCE /* pthread_tryjoin_np */
#include "loop.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "descriptors.h"
#include "network/address.h"
#include "network/conn.h"
#include "prompt.h"
#include "quiet.h"

enum {
    SHUT_LOOK_US = 10 * 1000,
    LATE_US = 250 * 1000, /* a TICK so late waits until all there is was read */
    DRAIN_US_MAX = 1000 * 1000,
    NEWS_ROUNDS_MAX = 4,
    JOIN_LOOK_MS = 10,
    JOIN_US = 1000000 /* the end waits so long for threads that nobody can end */
};

uint64_t loop_turn_us(struct loop *loop)
{
    uint64_t idle_us = uv_metrics_idle_time(&loop->uv) / 1000 - loop->idle_us;
    uint64_t passed_us = clock_now_us() - loop->turn_us;
    return passed_us > idle_us ? passed_us - idle_us : 0;
}

void loop_log(struct loop *loop, enum parley_log level, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    struct parley_update update = {.type = PARLEY_UPDATE_LOG, .log = {level, text}};
    loop_show(loop, &update);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static size_t step(struct loop *loop, struct parley_event *event)
{
    if (loop->finished) return 0;
    assert(!loop->stepping);
    loop->stepping = true;
    wake_up(&loop->wake);
    event->now_us = clock_now_us();
    parley_node_step(loop->node, event, &loop->updates);
    size_t consumed = loop->updates.consumed;
    carry_updates(loop, &loop->updates);
    loop->stepping = false;
    return consumed;
}

size_t loop_tell(struct loop *loop, struct parley_event *event)
{
    size_t consumed = step(loop, event);
    while (loop->later_count > 0) {
        struct parley_event later = loop->later[0];
        loop->later_count--;
        memmove(loop->later, loop->later + 1, loop->later_count * sizeof *loop->later);
        step(loop, &later);
    }
    return consumed;
}

void loop_tell_later(struct loop *loop, const struct parley_event *event)
{
    assert(loop->stepping && loop->later_count < LOOP_LATER_MAX);
    loop->later[loop->later_count++] = *event;
}

/* ---- Other threads --------------------------------------------------------------------------- */

void loop_tell_steps(struct loop *loop)
{
    uint64_t version = atomic_load(&loop->handoff->version);
    bool news = version != loop->version_told || atomic_load(&loop->handoff->lost);
    if (loop->finished || !news) return;
    loop->version_told = version;
    struct parley_event event = {
        .type = PARLEY_EVENT_STEPPED,
        .stepped = {version, atomic_load(&loop->handoff->samples), handoff_loss(loop->handoff),
                    atomic_load(&loop->handoff->moved_sq), atomic_load(&loop->handoff->place)}};
    loop_tell(loop, &event);
}

static void take_answers(struct loop *loop)
{
    /* Steps are read after the list was taken: no result is told before the steps it follows. */
    struct op *op = mailbox_take(&loop->answers);
    loop_tell_steps(loop);
    while (op) {
        struct op *next = op->next;
        if (op->why[0])
            loop_log(loop, op->done.done.ok ? PARLEY_LOG_WARN : PARLEY_LOG_ERROR, "%s", op->why);
        loop_tell(loop, &op->done);
        ops_remove(&loop->ops, op);
        op = next;
    }
    carry_ops(loop);
}

static struct commands take_commands(struct loop *loop)
{
    uv_mutex_lock(&loop->answers.lock);
    struct commands taken = loop->commands;
    loop->commands = (struct commands){0};
    uv_mutex_unlock(&loop->answers.lock);
    return taken;
}

static void close_parts(struct loop *loop, bool flush)
{
    lane_close_door(loop);
    if (!uv_is_closing((uv_handle_t *)&loop->listener)) {
        uv_close((uv_handle_t *)&loop->listener, NULL);
        uv_close((uv_handle_t *)&loop->hook, NULL);
    }
    conn_close_all(loop, flush);
}

void loop_finish(struct loop *loop, int error)
{
    loop->finished = true;
    loop->later_count = 0;
    close_parts(loop, true);
    handoff_end(loop->handoff, error);
}

static void obey(struct loop *loop)
{
    struct commands commands = take_commands(loop);
    struct parley_event event;
    conn_take_lookups(loop);
    if (commands.seeds) {
        event.type = PARLEY_EVENT_SEEDS;
        event.seeds.seeds = (const char *const *)commands.seeds;
        event.seeds.count = commands.seeds_count;
        loop_tell(loop, &event);
        free(commands.seeds);
    }
    if (commands.stop) {
        event.type = PARLEY_EVENT_STOP;
        event.stop.cause = commands.stop;
        loop_tell(loop, &event);
    }
    if (commands.leave) {
        event.type = PARLEY_EVENT_LEAVE;
        loop_tell(loop, &event);
    }
    if (commands.close) {
        loop->closing = true;
        close_parts(loop, loop->finished);
        if (!loop->finished) loop_finish(loop, PARLEY_EFAIL);
    }
}

static bool has_news(struct loop *loop)
{
    if (atomic_load(&loop->commanded)) return true;
    return !loop->finished && (atomic_load(&loop->answers.news) || handoff_has_news(loop->handoff));
}

/* After this has_news() is true exactly for what the trainer rings for. */
static void await_steps(struct loop *loop)
{
    if (!loop->finished)
        atomic_store(&loop->handoff->awaited, parley_node_awaits_steps(loop->node));
}

/* All that other threads have left, and what comes of it, as far as a turn should last. */
static void look_at_news(struct loop *loop)
{
    int rounds = 0;
    do {
        if (!loop->finished) take_answers(loop);
        if (atomic_exchange(&loop->commanded, false)) obey(loop);
        await_steps(loop);
    } while (++rounds < NEWS_ROUNDS_MAX && has_news(loop));
    wake_sleep(&loop->wake);
    if (has_news(loop)) wake_ring(&loop->wake);
}

/* ---- A turn ---------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it only ends the wait: on_check looks at what is due */
}

static void on_hook(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    loop_tell_steps(loop);
    if (!loop->finished) loop_hook(loop); /* those steps may have ended the node */
}

static void close_handles(struct loop *loop)
{
    wake_close(&loop->wake);
    uv_close((uv_handle_t *)&loop->timer, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    uv_close((uv_handle_t *)&loop->check, NULL);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->data;
    uint64_t turn_us = loop_turn_us(loop), now_us = clock_now_us();
    if (loop->turn_us > 0 && turn_us > atomic_load(&loop->turn_max_us))
        atomic_store(&loop->turn_max_us, turn_us);
    loop->turn_us = now_us;
    loop->idle_us = uv_metrics_idle_time(&loop->uv) / 1000;
    loop->turn_read_bytes = loop->turn_sent_bytes = 0;
    conn_turn(loop);
    conn_tell_sent(loop);
    look_at_news(loop);
    now_us = clock_now_us();

    /* Here and not in a check: the last connection goes after the check phase, and nothing may come
     * to end the next wait. */
    if (loop->closing && atomic_load(&loop->connections) == 0) {
        close_handles(loop);
        return;
    }
    uint64_t deadline_us = loop->finished ? UINT64_MAX : parley_node_deadline(loop->node);
    if (loop->conns_shut > 0 && deadline_us > now_us + SHUT_LOOK_US)
        deadline_us = now_us + SHUT_LOOK_US;
    if (loop->accept_waits && deadline_us > loop->accepts_until_us && !loop->finished)
        deadline_us = loop->accepts_until_us;
    if (deadline_us > loop->tries_until_us) deadline_us = loop->tries_until_us;
    uv_timer_stop(&loop->timer);
    if (deadline_us == UINT64_MAX) return;
    uint64_t wait_ms = deadline_us > now_us ? (deadline_us - now_us + 999) / 1000 : 0;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->timer, on_timer, wait_ms, 0);
}

/* Only after a stop of the process, or of the machine, is there so much to read first. */
static bool reads_first(struct loop *loop, uint64_t now_us, uint64_t deadline_us)
{
    if (loop->drain_since_us == 0 && now_us - deadline_us > LATE_US) loop->drain_since_us = now_us;
    if (loop->drain_since_us > 0 && loop->turn_read_bytes > 0 &&
        now_us - loop->drain_since_us < DRAIN_US_MAX)
        return true;
    loop->drain_since_us = 0;
    return false;
}

static void on_check(uv_check_t *check)
{
    struct loop *loop = check->data;
    wake_up(&loop->wake);
    uint64_t now_us = clock_now_us();
    conn_sweep(loop, now_us);
    conn_try_others(loop, now_us);
    if (loop->finished) return;
    uint64_t deadline_us = parley_node_deadline(loop->node);
    if (now_us < deadline_us || reads_first(loop, now_us, deadline_us)) return;
    loop_tell_steps(loop);
    struct parley_event event = {.type = PARLEY_EVENT_TICK};
    loop_tell(loop, &event);
}

static void run(void *argument)
{
    prompt_thread(100);
    struct loop *loop = argument;
    uv_update_time(&loop->uv);
    struct parley_event event = {.type = PARLEY_EVENT_START};
    loop_tell(loop, &event);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

/* ---- Start and end --------------------------------------------------------------------------- */

static int bind_listener(struct loop *loop, const char *listen, char *why, size_t size)
{
    struct address address;
    struct sockaddr_storage to;
    if (!listen) listen = "";
    if (address_split(&address, listen)) return address_refuse("listen", listen, why, size);
    int length = sizeof to;
    int code = address_resolve(&loop->uv, &to, &address);
    if (!code) code = uv_tcp_bind(&loop->listener, (struct sockaddr *)&to, 0);
    if (!code) code = conn_listen(loop);
    if (!code) code = uv_tcp_getsockname(&loop->listener, (struct sockaddr *)&to, &length);
    if (code) {
        snprintf(why, size, "can't listen on %s: %s", listen,
                 address_error(code, (struct sockaddr *)&to));
        return code == UV_EMFILE || code == UV_ENFILE ? PARLEY_EFAIL : PARLEY_ENETWORK;
    }
    loop->listens_any = address_is_any((struct sockaddr *)&to);
    loop->zone = address_zone((struct sockaddr *)&to);
    address_print(loop->listens, (struct sockaddr *)&to);
    return PARLEY_OK;
}

static void init_handles(struct loop *loop)
{
    uv_loop_configure(&loop->uv, UV_METRICS_IDLE_TIME);
    uv_tcp_init(&loop->uv, &loop->listener); /* makes no socket yet: these can't fail */
    uv_timer_init(&loop->uv, &loop->timer);
    uv_timer_init(&loop->uv, &loop->hook);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_check_init(&loop->uv, &loop->check);
    loop->listener.data = loop->timer.data = loop->hook.data = loop;
    loop->prepare.data = loop->check.data = loop;
}

static void close_uv(struct loop *loop)
{
    if (!loop->running) { /* else its thread has closed them */
        close_parts(loop, false);
        close_handles(loop);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    }
    uint64_t until_us = clock_now_us() + JOIN_US;
    lane_join_closers(&loop->door, until_us);
    conn_join_lookups(loop, until_us);
    int left = uv_loop_close(&loop->uv);
    assert(left == 0);
    (void)left;
    wake_free(&loop->wake);
}

int loop_init(struct loop *loop, struct parley *parley, const char *listen, char *why, size_t size)
{
    memset(loop, 0, sizeof *loop);
    if (descriptors_check(why, size)) return PARLEY_EFAIL;
    loop->parley = parley;
    loop->door.fd = -1;
    loop->tries_until_us = UINT64_MAX;
    ops_init(&loop->ops);
    loop->last_sent = &loop->sent;
    int code = uv_loop_init(&loop->uv);
    if (!code && (code = wake_init(&loop->wake, &loop->uv))) uv_loop_close(&loop->uv);
    if (code) {
        snprintf(why, size, "can't start a loop: %s", uv_strerror(code));
        return PARLEY_EFAIL;
    }
    init_handles(loop);
    code = mailbox_init(&loop->answers, &loop->wake);
    if (code) {
        snprintf(why, size, "can't start a loop: %s", parley_error_text(code));
        goto out_handles;
    }
    code = bind_listener(loop, listen, why, size);
    if (!code) {
        descriptors_keep();
        return PARLEY_OK;
    }
    mailbox_close(&loop->answers);
out_handles:
    close_uv(loop);
    return code;
}

int loop_start(struct loop *loop, uint64_t hook_us)
{
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_start(&loop->check, on_check);
    uint64_t hook_ms = (hook_us + 999) / 1000;
    if (hook_ms > 0) uv_timer_start(&loop->hook, on_hook, hook_ms, hook_ms);
    lane_open_door(loop);
    if (quiet_thread_start(&loop->thread, run, loop)) return PARLEY_EFAIL;
    loop->running = true;
    return PARLEY_OK;
}

bool loop_runs_here(const struct loop *loop)
{
    uv_thread_t self = uv_thread_self();
    return loop->running && uv_thread_equal(&self, &loop->thread);
}

void loop_wake(struct loop *loop)
{
    atomic_store(&loop->commanded, true);
    wake_ring(&loop->wake);
}

/* To pthread_clockjoin_np() ThreadSanitizer is blind: for it such a thread would run on. */
bool loop_join(uv_thread_t thread, uint64_t until_us)
{
    while (pthread_tryjoin_np(thread, NULL)) {
        if (clock_now_us() >= until_us) return false;
        poll(NULL, 0, JOIN_LOOK_MS);
    }
    return true;
}

void loop_close(struct loop *loop)
{
    if (loop->running) {
        uv_mutex_lock(&loop->answers.lock);
        loop->commands.close = true;
        uv_mutex_unlock(&loop->answers.lock);
        loop_wake(loop);
        uv_thread_join(&loop->thread);
    }
    close_uv(loop);
    descriptors_keep_no_more();
    while (loop->ops.count > 0)
        ops_remove(&loop->ops, loop->ops.order[0]);
    free(loop->commands.seeds);
    mailbox_close(&loop->answers);
}
