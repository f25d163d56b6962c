/* parley.c: the public API over the loop, the handoff and the worker (see parley/parley.h).
 *
 * The happy path of parley_open: options are completed (complete.c), the loop listens, the vectors
 * and the node are made, the threads start. Closing goes the same way back.
 */
#include "parley/parley.h"
#include "core/plain.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complete.h"
#include "compute/handoff.h"
#include "compute/worker.h"
#include "disk/files.h"
#include "live.h"
#include "loop.h"
#include "network/conn.h"
#include "network/tls.h"

struct parley {
    struct loop loop;
    struct vectors vectors;
    struct handoff handoff;
    struct worker worker;
    struct files files;
    struct vote vote;
    struct complete complete; /* the config as it stands, with the texts that were chosen */
    struct parley_options options;
    struct parley_view view; /* at FINISHED; given to the trainer by handoff_end() */
};

const char *parley_version(void)
{
    return PARLEY_VERSION;
}

void parley_options_defaults(struct parley_options *options)
{
    memset(options, 0, sizeof *options);
    parley_config_defaults(&options->config);
    options->listen = "127.0.0.1:0";
}

void loop_show(struct loop *loop, const struct parley_update *update)
{
    struct parley *p = loop->parley;
    /* The core's own lines go by the same level. */
    bool quiet =
        update->type == PARLEY_UPDATE_LOG && (int)update->log.level > p->options.config.log_level;
    if (quiet) return;
    if (update->type == PARLEY_UPDATE_FINISHED) parley_node_view(loop->node, &p->view);
    if (p->options.on_update) p->options.on_update(p->options.context, p, update);
}

void loop_hook(struct loop *loop)
{
    struct parley *p = loop->parley;
    if (p->options.on_timer) p->options.on_timer(p->options.context, p);
}

/* Makes what needs no thread. On errors everything is released again. */
static int make(struct parley *p, char *why, size_t size)
{
    struct parley_config *config = &p->complete.config;
    int code = parley_config_check(config, why, size);
    if (code) return code;
    if (config->roster) {
        snprintf(why, size,
                 "roster: it belongs to one thread, and each parley has its own; leave "
                 "it NULL (parley/node.h)");
        return PARLEY_EUSAGE;
    }
    if (parley_strategy_splits(config->strategy) && !p->options.splits) {
        snprintf(why, size,
                 "strategy: it averages gradients, and this program makes whole steps "
                 "only (parley_options.splits)");
        return PARLEY_EUSAGE;
    }
    code = vectors_init(&p->vectors, &p->options, config, why, size);
    if (!code)
        code =
            files_init(&p->files, &p->vectors, &p->options, config->name, config->boot, why, size);
    if (!code)
        code = vote_open(&p->vote, p->options.vote, config->run, &config->earlier, why, size);
    p->files.vote = &p->vote;
    if (!code) code = live_init(&p->loop, config->members_max, config->name);
    if (code) goto out_vectors;
    code = parley_updates_init(&p->loop.updates);
    if (code) goto out_live;
    code = handoff_init(&p->handoff, &p->vectors, &p->loop.answers);
    p->handoff.measures = config->mix_steered;
    if (code) goto out_updates;
    code = parley_node_new(&p->loop.node, config);
    config->seeds = NULL; /* the caller's; the node has copies */
    config->settings = NULL;
    config->seeds_count = config->settings_count = 0;
    if (!code) return PARLEY_OK;
    handoff_close(&p->handoff);
out_updates:
    parley_updates_close(&p->loop.updates);
out_live:
    live_close(&p->loop);
out_vectors:
    vote_close(&p->vote, VOTE_NOT_GIVEN);
    files_close(&p->files);
    vectors_close(&p->vectors);
    return code;
}

/* Of its end; where it came to none, this is all zero. */
static enum vote_end vote_end(const struct parley_view *view)
{
    if (view->phase == PARLEY_PHASE_DONE) return VOTE_AGREED;
    return view->phase == PARLEY_PHASE_JOINING || view->locked ? VOTE_MAY_BE_GIVEN : VOTE_NOT_GIVEN;
}

static void unmake(struct parley *p)
{
    parley_node_free(p->loop.node);
    handoff_close(&p->handoff);
    parley_updates_close(&p->loop.updates);
    live_close(&p->loop);
    vote_close(&p->vote, vote_end(&p->view));
    files_close(&p->files);
    vectors_close(&p->vectors);
}

static int use_key(struct parley *p, char *why, size_t size)
{
    if (!p->options.cluster_key) return PARLEY_OK;
    p->loop.sealed = malloc(CONN_READ_BYTES);
    if (!p->loop.sealed) return PARLEY_ENOMEM;
    char cause[200] = "";
    int code = tls_new(&p->loop.tls, p->options.cluster_key, cause, sizeof cause);
    if (code) snprintf(why, size, "cluster key: %s", cause);
    return code;
}

static void forget_key(struct parley *p)
{
    tls_free(p->loop.tls);
    free(p->loop.sealed);
}

static int start(struct parley *p, char *why, size_t size)
{
    p->loop.vectors = &p->vectors;
    p->loop.handoff = &p->handoff;
    p->loop.worker = &p->worker;
    p->loop.streams_most = p->complete.config.streams;
    int code = worker_init(&p->worker, &p->vectors, &p->files, &p->loop.answers);
    if (!code && (code = loop_start(&p->loop, p->options.on_timer ? p->options.timer_us : 0))) {
        worker_end(&p->worker);
        worker_close(&p->worker);
    }
    if (code)
        snprintf(why, size,
                 "can't start a thread: memory (ulimit -v) or threads (ulimit -u) are at "
                 "their limit");
    return code;
}

int parley_open(struct parley **out, const struct parley_options *options, char *why, size_t size)
{
    *out = NULL;
    if (size > 0) why[0] = 0;
    struct parley *p = calloc(1, sizeof *p);
    int code = p ? PARLEY_OK : PARLEY_ENOMEM;
    if (code) goto out;
    p->options = *options;
    code = loop_init(&p->loop, p, options->listen, why, size);
    if (code) goto out;
    code = complete_options(&p->complete, &p->options, &p->loop, why, size);
    if (!code) code = use_key(p, why, size);
    if (!code) code = make(p, why, size);
    if (code) goto out_loop;
    code = start(p, why, size);
    if (!code) {
        *out = p;
        return PARLEY_OK;
    }
    unmake(p);
out_loop:
    loop_close(&p->loop);
    forget_key(p);
out:
    if (size > 0 && !why[0]) snprintf(why, size, "%s", parley_error_text(code));
    if (size > 0) plain_scrub(why); /* settings and paths stand in it as they were given */
    free(p);
    return code;
}

int parley_boundary(struct parley *p, const struct parley_step *step, struct parley_turn *turn)
{
    return parley_boundary_within(p, step, turn, UINT64_MAX);
}

int parley_boundary_within(struct parley *p, const struct parley_step *step,
                           struct parley_turn *turn, uint64_t timeout_us)
{
    assert(!loop_runs_here(&p->loop));
    if (p->handoff.over) return p->handoff.error;
    int code = handoff_boundary(&p->handoff, step, turn, timeout_us);
    turn->turnover = atomic_load_explicit(&p->loop.live_turnover, memory_order_relaxed);
    if (code == PARLEY_GO || code == PARLEY_LATER) return code;
    if (p->view.phase == PARLEY_PHASE_DONE)
        memcpy(p->vectors.trained[0], vectors_buffer(&p->vectors, p->view.candidate),
               p->vectors.count * sizeof(float));
    return code;
}

void parley_stop(struct parley *p, enum parley_stop cause)
{
    if (cause == PARLEY_STOP_NONE) return; /* else it would undo one that is not yet obeyed */
    uv_mutex_lock(&p->loop.answers.lock);
    p->loop.commands.stop = cause;
    uv_mutex_unlock(&p->loop.answers.lock);
    loop_wake(&p->loop);
}

void parley_leave(struct parley *p)
{
    uv_mutex_lock(&p->loop.answers.lock);
    p->loop.commands.leave = true;
    uv_mutex_unlock(&p->loop.answers.lock);
    loop_wake(&p->loop);
}

/* The strings in one allocation, given back by free(). NULL: no memory. */
static char **copy_texts(const char *const *texts, uint32_t count)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < count; i++)
        bytes += strlen(texts[i]) + 1;
    char **copy = malloc(count * sizeof *copy + bytes);
    if (!copy) return NULL;
    char *to = (char *)(copy + count);
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = to;
        to += sprintf(to, "%s", texts[i]) + 1;
    }
    return copy;
}

int parley_seeds(struct parley *p, const char *const *seeds, uint32_t count)
{
    char why[256];
    int code = complete_check_seeds(seeds, count, why, sizeof why);
    if (code) return code;
    char **copy = copy_texts(seeds, count);
    if (!copy) return PARLEY_ENOMEM;
    uv_mutex_lock(&p->loop.answers.lock);
    char **before = p->loop.commands.seeds;
    p->loop.commands.seeds = copy;
    p->loop.commands.seeds_count = count;
    uv_mutex_unlock(&p->loop.answers.lock);
    free(before);
    loop_wake(&p->loop);
    return PARLEY_OK;
}

uint32_t parley_live(struct parley *p, char (*names)[PARLEY_NAME_SIZE], uint32_t max)
{
    return live_copy(&p->loop, names, max);
}

uint32_t parley_gone(struct parley *p, struct parley_gone *gone, uint32_t max)
{
    return live_gone(&p->loop, gone, max);
}

void parley_stats(struct parley *p, struct parley_stats *stats)
{
    stats->bytes_sent = atomic_load(&p->loop.bytes_sent);
    stats->bytes_received = atomic_load(&p->loop.bytes_received);
    stats->bytes_lane = atomic_load(&p->loop.bytes_lane);
    stats->bytes_streams = atomic_load(&p->loop.bytes_streams);
    stats->bytes_membership = atomic_load(&p->loop.bytes_membership);
    stats->bytes_sketches = atomic_load(&p->loop.bytes_sketches);
    stats->connections = atomic_load(&p->loop.connections);
    stats->turn_max_us = atomic_load(&p->loop.turn_max_us);
    stats->gap_max_us = atomic_load(&p->handoff.gap_max_us);
}

const char *parley_listens(const struct parley *p)
{
    return p->loop.listens;
}

const struct parley_config *parley_config_of(const struct parley *p)
{
    return &p->complete.config;
}

const struct parley_node *parley_node_of(const struct parley *p)
{
    return p->loop.node;
}

void parley_result(struct parley *p, struct parley_result *result)
{
    memset(result, 0, sizeof *result);
    if (p->handoff.over) { /* else the loop may be writing them */
        result->error = p->handoff.error;
        result->view = p->view;
    }
    result->agreed = result->view.phase == PARLEY_PHASE_DONE;
    result->aside = result->agreed && p->files.aside;
    parley_stats(p, &result->stats);
}

void parley_close(struct parley *p)
{
    if (!p) return;
    assert(!loop_runs_here(&p->loop));
    worker_end(&p->worker); /* first, as its answers wake the loop */
    loop_close(&p->loop);
    worker_close(&p->worker);
    forget_key(p);
    unmake(p);
    free(p);
}
