/* cluster.c: a simulation made, stepped and freed. See cluster.h for who does what. */
#include "world/cluster.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/warm.h"
#include "world/network/network.h"
#include "world/network/route.h"

/* So many events without the clock moving are a livelock (a share for each node on top). */
#define EVENTS_AT_ONCE_MAX UINT64_C(2000000)

/* parley_node_check() looks at all members: so many are looked at after each event. */
#define CHECK_NODES 16u

struct sim_call {
    void (*call)(struct parley_sim *sim, void *arg);
    void *arg; /* borrowed */
};

/* ---- Small parts ----------------------------------------------------------------------------- */

void sim_fail(struct parley_sim *sim, int error, const char *text)
{
    if (sim->error) return;
    sim->error = error;
    snprintf(sim->error_text, sizeof sim->error_text, SIM_SECONDS "s: %s",
             SIM_SECONDS_OF(sim->queue.now_us), text);
}

void sim_hash(struct parley_sim *sim, uint64_t value)
{
    sim->hash = rng_mix(sim->hash * 3 + value);
}

uint64_t sim_draw_us(struct rng *rng, const struct sim_time *time)
{
    if (time->sigma > 0) {
        double us = (double)time->low_us * exp(time->sigma * rng_normal(rng));
        return us < 1e15 ? (uint64_t)us : UINT64_C(1000000000000000);
    }
    if (time->high_us <= time->low_us) return time->low_us;
    return time->low_us + (uint64_t)(rng_unit(rng) * (double)(time->high_us - time->low_us));
}

bool sim_grow(struct parley_sim *sim, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) return true;
    uint32_t more = *capacity ? 2 * *capacity : 8;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, more * size);
    if (!grown) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a list");
        return false;
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = more;
    return true;
}

void sim_drop(struct parley_sim *sim, struct sim_item *item)
{
    switch (item->kind) {
    case SIM_STEP_END:
        if (!item->data) break; /* else of a GRADIENT */
        sim_done_free(item->data);
        break;
    case SIM_DONE:
        sim_done_free(item->data);
        break;
    case SIM_CALL:
        free(item->data);
        break;
    case SIM_CONNECTED:
    case SIM_INCOMING:
    case SIM_CLOSED:
    case SIM_SENT:
    case SIM_SYN:
    case SIM_BREAK:
        sim_link_release(sim, item->data);
        break;
    case SIM_RECEIVED:
    case SIM_LEFT:
    case SIM_ARRIVED:
        sim_message_free(sim, item->data);
        break;
    default:
        break;
    }
    item->data = NULL;
}

void sim_put(struct parley_sim *sim, struct sim_item item)
{
    int error = sim_queue_put(&sim->queue, item);
    if (!error) return;
    sim_fail(sim, error, "no memory for the event queue");
    sim_drop(sim, &item);
}

int sim_call_at(struct parley_sim *sim, uint64_t time_us, void (*call)(struct parley_sim *, void *),
                void *arg)
{
    struct sim_call *data = malloc(sizeof *data);
    if (!data) return PARLEY_ENOMEM;
    *data = (struct sim_call){call, arg};
    sim_put(sim, (struct sim_item){.time_us = time_us, .kind = SIM_CALL, .data = data});
    return sim->error;
}

/* ---- New ------------------------------------------------------------------------------------- */

static void hosts_init(struct parley_sim *sim)
{
    const struct parley_sim_options *options = &sim->options.base;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct sim_host *host = &sim->hosts[i];
        host->sim = sim;
        host->index = i;
        host->slow = 1;
        host->out.rate_bytes = host->in.rate_bytes = options->bandwidth_bytes;
        host->tick_us = UINT64_MAX;
        /* Machines were switched on at different times: nobody may compare clocks. */
        host->clock_us = rng_mix(sim->run + i) % UINT64_C(1000000000000);
        host->draws = rng_init(options->seed, UINT64_C(0x636f6d70) << 32 | i);
        snprintf(sim->names[i], sizeof sim->names[i], "n%u", i);
        snprintf(sim->addresses[i], sizeof sim->addresses[i], "n%u:7000", i);
        uint64_t start = options->start_us ? options->start_us[i] : 0;
        if (start == PARLEY_SIM_NEVER) continue;
        host->boots_due = start == 0;
        struct sim_item item = sim_item_for(host, SIM_START);
        item.time_us = start;
        sim_put(sim, item);
    }
}

static int threads_init(struct parley_sim *sim)
{
    uint32_t threads = sim->options.base.threads;
    size_t lines = sim->parameters * sizeof(int64_t) / SIM_LINE + 1;
    sim->moved = calloc(threads, sizeof *sim->moved);
    if (!sim->moved) return PARLEY_ENOMEM;
    for (uint32_t t = 0; t < threads; t++) {
        sim->moved[t] = aligned_alloc(SIM_LINE, lines * SIM_LINE);
        if (!sim->moved[t]) return PARLEY_ENOMEM;
        memset(sim->moved[t], 0, lines * SIM_LINE);
    }
    return sim_workers_new(&sim->workers, threads);
}

/* The spread of the models that the nodes are to start with. */
static int start_spread(struct parley_sim *sim)
{
    const struct sim_task *task = sim->task;
    if (task->alike) return 0;
    float *vectors[PARLEY_VECTORS_MAX] = {0};
    double *sum = calloc(sim->parameters, sizeof *sum);
    double squares = 0, mean_sq = 0;
    int error = PARLEY_ENOMEM;
    for (uint32_t v = 0; v < task->vectors; v++)
        if (!(vectors[v] = malloc(sim->parameters * sizeof(float)))) goto out;
    if (!sum) goto out;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        task->start(task->self, i, vectors);
        for (uint64_t j = 0; j < sim->parameters; j++) {
            sum[j] += vectors[0][j];
            squares += (double)vectors[0][j] * vectors[0][j];
        }
    }
    for (uint64_t j = 0; j < sim->parameters; j++)
        mean_sq += sum[j] / sim->nodes * (sum[j] / sim->nodes);
    double variance = squares / sim->nodes - mean_sq;
    sim->start_spread = variance > 1e-12 * mean_sq ? sqrt(variance) : 0;
    error = 0;
out:
    for (uint32_t v = 0; v < PARLEY_VECTORS_MAX; v++)
        free(vectors[v]);
    free(sum);
    return error;
}

int sim_new(struct parley_sim **result, const struct sim_options *options,
            const struct sim_task *task)
{
    struct parley_sim *sim = calloc(1, sizeof *sim);
    *result = NULL;
    if (!sim) return PARLEY_ENOMEM;
    struct parley_sim_options *base = &sim->options.base;
    sim->options = *options;
    sim_options_fill(base);
    sim->task = task;
    sim->nodes = base->nodes;
    sim->parameters = task->parameters;
    sim->floats = sim->parameters * base->averaged;
    sim->run = rng_mix(base->seed + UINT64_C(0x7061726c6579)) | 1;
    sim->draws = rng_init(base->seed, UINT64_C(0x6c6174));
    sim->line_level = PARLEY_LOG_DEBUG; /* all that nodes log, if nobody says what to hear */
    sim_queue_init(&sim->queue);
    int error = parley_updates_init(&sim->updates);
    if (error) {
        free(sim);
        return error;
    }
    error = PARLEY_ENOMEM;
    sim->hosts = calloc(sim->nodes, sizeof *sim->hosts);
    sim->names = calloc(sim->nodes, sizeof *sim->names);
    sim->addresses = calloc(sim->nodes, sizeof *sim->addresses);
    sim->scratch = calloc(sim->parameters, sizeof *sim->scratch);
    if (!sim->hosts || !sim->names || !sim->addresses || !sim->scratch) goto out;
    error = threads_init(sim);
    if (error) goto out;
    hosts_init(sim);
    error = sim->error ? sim->error : start_spread(sim);
out:
    if (error)
        parley_sim_free(sim);
    else
        *result = sim;
    return error;
}

int parley_sim_new(struct parley_sim **sim, const struct parley_sim_options *given)
{
    struct sim_options options = {.base = *given};
    struct parley_sim_options *base = &options.base;
    *sim = NULL;
    if (parley_sim_check(given, NULL, 0)) return PARLEY_EUSAGE;
    sim_options_fill(base);
    options.check_events = base->unchecked ? 0 : 1 + base->nodes / CHECK_NODES;
    options.compute = (struct sim_time){.low_us = base->step_us};
    options.latency = (struct sim_time){.low_us = base->latency_us};
    struct sim_task task;
    int error = base->work ? sim_program_init(&task, base) : sim_vectors_init(&task, base);
    if (error) return error;
    error = sim_new(sim, &options, &task);
    if (error) {
        sim_task_close(&task);
        return error;
    }
    (*sim)->own_task = task;
    (*sim)->task = &(*sim)->own_task;
    return 0;
}

void parley_sim_free(struct parley_sim *sim)
{
    if (!sim) return;
    for (uint32_t i = 0; sim->hosts && i < sim->nodes; i++)
        sim->hosts[i].epoch++; /* items are void */
    struct sim_item item;
    while (sim_queue_take(&sim->queue, &item))
        sim_drop(sim, &item);
    for (uint32_t i = 0; i < sim->held_count; i++)
        sim_drop(sim, &sim->held[i]);
    for (uint32_t i = 0; sim->hosts && i < sim->nodes; i++)
        sim_waiting_drop(&sim->hosts[i]);
    sim_links_free(sim);
    for (uint32_t i = 0; sim->hosts && i < sim->nodes; i++)
        sim_host_free(&sim->hosts[i]);
    sim_workers_free(sim->workers);
    sim_blocks_free(sim);
    sim_queue_close(&sim->queue);
    parley_updates_close(&sim->updates);
    sim_task_close(&sim->own_task);
    for (uint32_t t = 0; sim->moved && t < sim->options.base.threads; t++)
        free(sim->moved[t]);
    free(sim->moved);
    free(sim->hosts);
    free(sim->names);
    free(sim->addresses);
    free(sim->blocked);
    free(sim->held);
    sim_site_links_free(sim);
    parley_roster_free(sim->roster);
    free(sim->scratch);
    free(sim);
}

/* ---- Time ------------------------------------------------------------------------------------ */

uint64_t parley_sim_now(const struct parley_sim *sim)
{
    return sim->queue.now_us;
}

/* Nodes take turns, and by the time one has its next the caches hold others. So what the coming
 * items will look at is asked for ahead, each pointer once what it stands in has arrived. */
static void look_ahead(const struct parley_sim *sim)
{
    enum { ARRAYS = 2, NODE = 4, HOST = 7 };
    const struct sim_item *item = sim_queue_ahead(&sim->queue, HOST);
    if (item) {
        __builtin_prefetch(item->data);
        warm(&sim->hosts[item->node], offsetof(struct sim_host, steps));
    }
    item = sim_queue_ahead(&sim->queue, NODE);
    if (item && sim->hosts[item->node].node) node_warm(sim->hosts[item->node].node);
    item = sim_queue_ahead(&sim->queue, ARRAYS);
    if (item && sim->hosts[item->node].node) node_warm_arrays(sim->hosts[item->node].node);
}

bool parley_sim_step(struct parley_sim *sim)
{
    uint64_t before = sim->queue.now_us;
    struct sim_item item;
    if (sim->error) return false;
    if (!sim_queue_take(&sim->queue, &item)) {
        if (sim->queue.error) sim_fail(sim, sim->queue.error, "no memory for the event queue");
        return false;
    }
    look_ahead(sim);
    if (sim->queue.now_us != before) sim->events_now = 0;
    if (++sim->events_now > EVENTS_AT_ONCE_MAX + 1000 * (uint64_t)sim->nodes)
        sim_fail(sim, PARLEY_EINVARIANT, "events without end at one moment");
    if (item.kind == SIM_CALL) {
        struct sim_call call = *(struct sim_call *)item.data;
        free(item.data);
        call.call(sim, call.arg);
    } else if (item.kind >= SIM_SYN) {
        sim_network_item(sim, &item);
    } else {
        sim_host_item(&sim->hosts[item.node], &item);
    }
    return !sim->error;
}

uint64_t sim_later_us(const struct parley_sim *sim, uint64_t us)
{
    uint64_t last_us = PARLEY_SIM_NEVER - 1;
    return us < last_us - sim->queue.now_us ? sim->queue.now_us + us : last_us;
}

/* Who waits for ever has waited until nothing was left to happen. */
static void wait_until(struct parley_sim *sim, uint64_t end_us)
{
    if (end_us < PARLEY_SIM_NEVER - 1 && sim->queue.now_us < end_us) sim->queue.now_us = end_us;
}

int parley_sim_run_for(struct parley_sim *sim, uint64_t us)
{
    uint64_t end = sim_later_us(sim, us);
    while (!sim->error && sim_queue_next_us(&sim->queue) <= end)
        parley_sim_step(sim);
    if (!sim->error) wait_until(sim, end);
    return sim->error;
}

int parley_sim_step_until(struct parley_sim *sim, bool (*predicate)(struct parley_sim *, void *),
                          void *arg, uint64_t limit_us)
{
    uint64_t end = sim_later_us(sim, limit_us), seen = UINT64_MAX;
    for (;;) {
        if (sim->error) return sim->error;
        if (sim->events != seen && predicate(sim, arg)) return 0;
        seen = sim->events;
        if (sim_queue_next_us(&sim->queue) > end) break;
        parley_sim_step(sim);
    }
    wait_until(sim, end);
    return predicate(sim, arg) ? 0 : PARLEY_ENO_AGREEMENT;
}

int parley_sim_error(const struct parley_sim *sim, const char **text)
{
    if (text) *text = sim->error ? sim->error_text : "";
    return sim->error;
}

uint64_t parley_sim_run_hash(const struct parley_sim *sim)
{
    return sim->hash;
}

uint64_t parley_sim_events(const struct parley_sim *sim)
{
    return sim->events;
}

uint64_t parley_sim_frames(const struct parley_sim *sim, uint8_t type)
{
    return type < WIRE_TYPES ? sim->frames[type] : 0;
}

uint64_t parley_sim_bytes_sent(const struct parley_sim *sim)
{
    return sim->bytes_sent;
}
