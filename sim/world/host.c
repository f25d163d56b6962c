/* host.c: one node's life: its configuration and start, the events it gets, the updates it gives.
 *
 * An item for a process goes to its core as an event; the core's updates are carried out in order
 * and leave new items. While paused, items wait and are given in their order when it wakes. The
 * step under way ends as much later as it was paused. After its end, items of its epoch are void.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job.h"
#include "world/network/network.h"

struct sim_item sim_item_for(const struct sim_host *host, enum sim_kind kind)
{
    return (struct sim_item){
        .time_us = host->sim->queue.now_us,
        .node = host->index,
        .epoch = host->epoch,
        .kind = kind,
    };
}

/* ---- Start and end --------------------------------------------------------------------------- */

/* One table of members for all, with room for some restarts. */
static int roster_for(struct parley_sim *sim, const struct parley_config *config)
{
    uint32_t boots = 2 * sim->nodes < PARLEY_MEMBERS_MAX ? 2 * sim->nodes : PARLEY_MEMBERS_MAX;
    return sim->roster ? 0 : parley_roster_new(&sim->roster, boots, config->steps_budget);
}

/* Whether a node can be made of what `configure` left. */
static int check_config(const struct parley_sim *sim, const struct parley_config *config, char *why,
                        size_t size)
{
    if (config->parameters == sim->parameters && config->vectors == sim->task->vectors &&
        config->averaged == sim->options.base.averaged)
        return parley_config_check(config, why, size);
    snprintf(why, size, "parameters, vectors and averaged are not for configure to change");
    return PARLEY_EUSAGE;
}

static int core_new(struct sim_host *host, char *why, size_t size)
{
    struct parley_sim *sim = host->sim;
    const struct parley_sim_options *options = &sim->options.base;
    const char *seeds[PARLEY_SEEDS_MAX];
    for (uint32_t i = 0; i < options->seeds; i++)
        seeds[i] = sim->addresses[i];
    struct parley_config config;
    parley_config_defaults(&config);
    config.cluster = "sim";
    config.name = sim->names[host->index];
    config.address = sim->addresses[host->index];
    config.boot = rng_mix(sim->run ^ ((uint64_t)(host->index + 1) << 32 | host->boots)) | 1;
    config.run = sim->run;
    config.seed = rng_mix(config.boot);
    config.seeds = seeds;
    config.seeds_count = options->seeds;
    config.parameters = sim->parameters;
    config.vectors = sim->task->vectors;
    config.averaged = options->averaged;
    config.batch = sim->task->batch;
    config.batch_is_shared = sim->task->batch_is_shared;
    config.model_digest = sim->task->model_digest;
    config.chunk_sums = false;
    if (options->configure) options->configure(&config, host->index, options->arg);
    int error = sim->options.shares_roster ? roster_for(sim, &config) : 0;
    config.roster = sim->roster;
    if (!error) error = check_config(sim, &config, why, size);
    if (!error) error = parley_node_new(&host->node, &config);
    host->boot = config.boot;
    host->life.measures = config.mix_steered;
    host->life.codec = (struct codec){.kind = config.codec, .part = config.codec_part};
    host->life.seals = config.chunk_sums;
    if (error) return error;
    uint32_t buffers = parley_config_buffers(&config);
    host->buffers = calloc(buffers, sizeof *host->buffers);
    host->buffers_count = host->buffers ? buffers : 0;
    return host->buffers ? 0 : PARLEY_ENOMEM;
}

static int vectors_new(struct sim_host *host)
{
    for (uint32_t v = 0; v < host->sim->task->vectors; v++) {
        host->blocks[v] = sim_block_new(host->sim);
        if (!host->blocks[v]) return PARLEY_ENOMEM;
        host->vectors[v] = host->blocks[v]->x;
    }
    return 0;
}

static void memory_free(struct sim_host *host)
{
    sim_settle(host->sim, host->index);
    sim_told_free(host);
    sim_steps_leave(host);
    for (uint32_t v = 0; v < PARLEY_VECTORS_MAX; v++) {
        sim_block_release(host->sim, host->blocks[v]);
        host->blocks[v] = NULL;
        host->vectors[v] = NULL;
    }
    for (uint32_t b = 0; b < host->buffers_count; b++)
        sim_buffer_release(host->sim, &host->buffers[b]);
    free(host->buffers);
    host->buffers = NULL;
    host->buffers_count = 0;
    parley_node_free(host->node);
    host->node = NULL;
}

/* Its next view will be of its next process. */
static void keep_ledger(struct sim_host *host)
{
    struct parley_ledger *gone = &host->sim->ledger_gone;
    const struct parley_ledger *last = &host->last.ledger;
    gone->committed += last->committed;
    gone->applied += last->applied;
    gone->dropped += last->dropped;
    gone->mass_dropped += last->mass_dropped;
}

static void sim_host_start(struct sim_host *host)
{
    if (host->state == SIM_HOST_UP) return;
    sim_host_stop(host);
    keep_ledger(host);
    host->boots++;
    host->silent = false;
    host->tick_us = UINT64_MAX;
    host->life = (struct sim_life){0};
    for (int i = 0; i < SIM_STEPS; i++) /* a GRADIENT takes a number, and no place */
        host->steps[i] = (struct sim_step){.job = {.made = true}};
    char why[128] = "it could not be made", text[160];
    int error = core_new(host, why, sizeof why);
    if (!error) error = vectors_new(host);
    if (error) {
        snprintf(text, sizeof text, "%s: %s", host->sim->names[host->index], why);
        sim_fail(host->sim, error, text);
        return;
    }
    host->state = SIM_HOST_UP;
    host->sim->standing++;
    host->sim->task->start(host->sim->task->self, host->index, host->vectors);
    host->counted = true;
    sim_host_event(host, &(struct parley_event){.type = PARLEY_EVENT_START});
}

void sim_waiting_drop(struct sim_host *host)
{
    for (uint32_t i = 0; i < host->waiting_count; i++)
        sim_drop(host->sim, &host->waiting[i]);
    host->waiting_count = 0;
}

void sim_host_stop(struct sim_host *host)
{
    if (host->node) parley_node_view(host->node, &host->last);
    if (host->node && host->sim->roster) parley_roster_dead(host->sim->roster, host->boot);
    if (host->state != SIM_HOST_OFF) {
        host->sim->standing--;
        host->sim->steps_gone += host->life.version;
    }
    host->counted = false;
    host->paused = false;
    host->state = SIM_HOST_OFF;
    host->epoch++;
    host->operations_count = 0;
    sim_waiting_drop(host);
    memory_free(host);
}

void sim_host_free(struct sim_host *host)
{
    if (!host->sim) return; /* memory ended before it was set up */
    memory_free(host);
    free(host->links);
    free(host->operations);
    free(host->waiting);
}

/* The core has said FINISHED: no event after this. */
static void finish(struct sim_host *host, int error)
{
    sim_network_end(host, SIM_NETWORK_FLUSH);
    host->state = SIM_HOST_ENDED;
    host->life.error = error;
    if (host->sim->roster) parley_roster_dead(host->sim->roster, host->boot);
    host->epoch++;
    host->operations_count = 0;
    host->life.steps_left = 0;
    sim_waiting_drop(host);
    struct parley_view view;
    parley_node_view(host->node, &view);
    if (view.phase != PARLEY_PHASE_DONE) host->counted = false;
}

/* ---- Events in ------------------------------------------------------------------------------- */

static void hash_event(struct sim_host *host, const struct parley_event *event)
{
    struct parley_sim *sim = host->sim;
    sim_hash(sim, sim->queue.now_us);
    sim_hash(sim, (uint64_t)host->index << 32 | event->type);
    switch (event->type) {
    case PARLEY_EVENT_RECEIVED:
        sim_hash(sim, (uint64_t)event->received.conn << 32 | event->received.size);
        break;
    case PARLEY_EVENT_SENT:
        sim_hash(sim, (uint64_t)event->sent.conn << 32 | event->sent.bytes);
        break;
    case PARLEY_EVENT_CLOSED:
        sim_hash(sim, (uint64_t)event->closed.conn << 32 | event->closed.reason);
        break;
    case PARLEY_EVENT_STEPPED: {
        uint64_t bits;
        memcpy(&bits, &event->stepped.loss, sizeof bits);
        sim_hash(sim, event->stepped.version);
        sim_hash(sim, bits);
        break;
    }
    case PARLEY_EVENT_DONE: {
        uint64_t bits;
        memcpy(&bits, &event->done.norm_sq, sizeof bits);
        sim_hash(sim, (uint64_t)event->done.op << 32 | event->done.ok);
        sim_hash(sim, event->done.version);
        sim_hash(sim, bits);
        break;
    }
    default:
        break;
    }
}

/* ---- Updates out ----------------------------------------------------------------------------- */

static void line(struct sim_host *host, const char *what, const char *a, const char *b,
                 const char *c)
{
    struct parley_sim *sim = host->sim;
    if (!sim->on_line) return;
    char text[512];
    snprintf(text, sizeof text, SIM_SECONDS "s %s %s %s%s%s%s%s", SIM_SECONDS_OF(sim->queue.now_us),
             sim->names[host->index], what, a, b[0] ? " " : "", b, c[0] ? ": " : "", c);
    sim->on_line(text, sim->on_line_arg);
}

/* The same name, for as long as the simulation lasts. */
static const char *lasting(const struct parley_sim *sim, const char *name)
{
    return sim->names[strtoul(name + 1, NULL, 10)];
}

static uint32_t gone_members(struct sim_host *host, struct partition_gone *gone)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < parley_node_members(host->node); i++) {
        struct parley_member member;
        parley_node_member(host->node, i, &member);
        bool lives = member.state == PARLEY_MEMBER_ALIVE || member.state == PARLEY_MEMBER_SUSPECT;
        if (lives || member.place == 0) continue;
        gone[count++] = (struct partition_gone){lasting(host->sim, member.name), member.place};
    }
    return count;
}

void sim_share(struct sim_host *host, bool first)
{
    const struct sim_task *task = host->sim->task;
    if (!task->share || (!first && host->life.turnover == parley_node_turnover(host->node))) return;
    host->life.turnover = parley_node_turnover(host->node);
    char why[128] = "", text[160];
    struct parley_view view;
    uint32_t records = parley_node_members(host->node);
    const char **names = malloc(records * sizeof *names);
    struct partition_gone *gone = malloc(records * sizeof *gone);
    struct job_members members = {.names = names, .gone = gone};
    if (names && gone) {
        members.count = parley_node_live(host->node, names);
        members.gone_count = gone_members(host, gone);
    }
    for (uint32_t i = 0; i < members.count; i++)
        names[i] = lasting(host->sim, names[i]);
    parley_node_view(host->node, &view);
    sim_workers_drain(host->sim->workers, &host->lane); /* steps that are to use the old one */
    int error = names && gone ? task->share(task->self, host->index, &members, first,
                                            view.samples_cluster, why, sizeof why)
                              : PARLEY_ENOMEM;
    free(gone);
    free(names);
    snprintf(text, sizeof text, "%s: %s", host->sim->names[host->index],
             why[0] ? why : parley_error_text(error));
    if (error) sim_fail(host->sim, error, text);
}

static void tell(struct sim_host *host, const struct parley_update *update)
{
    struct parley_sim *sim = host->sim;
    if (sim->on_update) sim->on_update(sim, host->index, update, sim->on_update_arg);
    switch (update->type) {
    case PARLEY_UPDATE_PHASE:
        line(host, "phase", parley_phase_name(update->phase.phase), "", "");
        if (update->phase.phase == PARLEY_PHASE_TRAIN) sim_share(host, true);
        break;
    case PARLEY_UPDATE_MEMBER:
        line(host, "member", update->member.name, parley_member_state_name(update->member.state),
             update->member.reason ? update->member.reason : "");
        break;
    case PARLEY_UPDATE_LOG:
        if (update->log.level <= sim->line_level) line(host, "log", update->log.text, "", "");
        break;
    default: /* FINISHED */
        line(host, "finished", parley_error_text(update->finished.error), "", "");
        finish(host, update->finished.error);
    }
}

static void carry_out(struct sim_host *host, const struct parley_update *update)
{
    switch (update->type) {
    case PARLEY_UPDATE_DIAL:
        sim_dial(host, update->dial.conn, update->dial.address);
        break;
    case PARLEY_UPDATE_CLOSE:
        sim_close(host, update->close.conn);
        break;
    case PARLEY_UPDATE_SEND:
    case PARLEY_UPDATE_SEND_CHUNK:
        sim_send(host, update);
        break;
    case PARLEY_UPDATE_TRAIN:
        sim_train(host, update);
        break;
    case PARLEY_UPDATE_HALT:
        host->life.steps_left = 0;
        break;
    case PARLEY_UPDATE_STORE:
        sim_store(host, update);
        break;
    case PARLEY_UPDATE_PHASE:
    case PARLEY_UPDATE_MEMBER:
    case PARLEY_UPDATE_LOG:
    case PARLEY_UPDATE_FINISHED:
        tell(host, update);
        break;
    default:
        sim_operation(host, update);
    }
}

/* Puts a tick into the queue unless an earlier one is there, which will look again. */
static void schedule_tick(struct sim_host *host)
{
    uint64_t deadline = parley_node_deadline(host->node);
    if (deadline == UINT64_MAX) return;
    uint64_t time = deadline > host->clock_us ? deadline - host->clock_us : 0;
    if (time < host->sim->queue.now_us) time = host->sim->queue.now_us;
    if (host->tick_us != UINT64_MAX && host->tick_us <= time) return;
    struct sim_item item = sim_item_for(host, SIM_TICK);
    item.time_us = host->tick_us = time;
    sim_put(host->sim, item);
}

void sim_host_event(struct sim_host *host, struct parley_event *event)
{
    struct parley_sim *sim = host->sim;
    event->now_us = sim->queue.now_us + host->clock_us;
    hash_event(host, event);
    parley_node_step(host->node, event, &sim->updates);
    sim->events++;
    uint64_t every = sim->options.check_events;
    if (every > 0 && sim->events % every == 0) parley_node_check(host->node);
    if (sim->on_event) sim->on_event(host, event, sim->on_event_arg);
    uint32_t epoch = host->epoch;
    for (uint32_t i = 0; i < sim->updates.count && host->epoch == epoch && !sim->error; i++) {
        if (sim->on_due) sim->on_due(host, &sim->updates.list[i], sim->on_event_arg);
        sim_hash(sim, sim->updates.list[i].type);
        carry_out(host, &sim->updates.list[i]);
    }
    if (host->epoch == epoch) schedule_tick(host);
}

static void tick(struct sim_host *host, const struct sim_item *item)
{
    if (item->time_us != host->tick_us) return; /* one of an older deadline */
    host->tick_us = UINT64_MAX;
    if (parley_node_deadline(host->node) <= item->time_us + host->clock_us)
        sim_host_event(host, &(struct parley_event){.type = PARLEY_EVENT_TICK});
    else
        schedule_tick(host);
}

/* An event for a process; owns what the item owns. */
static void process(struct sim_host *host, struct sim_item *item)
{
    if (item->kind != SIM_STEP_END) sim_steps_tell(host);
    if (item->epoch != host->epoch) { /* that was its last */
        sim_drop(host->sim, item);
        return;
    }
    switch (item->kind) {
    case SIM_TICK:
        tick(host, item);
        break;
    case SIM_STEP_END:
        sim_step_end(host, item->data);
        break;
    case SIM_DONE:
        sim_done_tell(host, item->data);
        break;
    case SIM_STOP:
        sim_host_event(host,
                       &(struct parley_event){.type = PARLEY_EVENT_STOP,
                                              .stop = {.cause = (enum parley_stop)item->number}});
        break;
    case SIM_LEAVE:
        sim_host_event(host, &(struct parley_event){.type = PARLEY_EVENT_LEAVE});
        break;
    default:
        sim_network_event(host->sim, item);
    }
}

void sim_host_item(struct sim_host *host, struct sim_item *item)
{
    if (item->kind == SIM_START) {
        sim_host_start(host);
    } else if (host->state != SIM_HOST_UP || item->epoch != host->epoch) {
        sim_drop(host->sim, item);
    } else if (!host->paused) {
        process(host, item);
    } else if (sim_grow(host->sim, &host->waiting, host->waiting_count, &host->waiting_capacity,
                        sizeof *host->waiting)) {
        host->waiting[host->waiting_count++] = *item;
    } else {
        sim_drop(host->sim, item);
    }
}

void sim_host_resume(struct sim_host *host)
{
    if (!host->paused) return;
    host->paused = false;
    host->life.step_end_us += host->sim->queue.now_us - host->paused_us;
    host->tick_us = UINT64_MAX;
    schedule_tick(host); /* first: the late tick meets the core before what has come meanwhile */
    for (uint32_t i = 0; i < host->waiting_count; i++) {
        struct sim_item item = host->waiting[i];
        item.time_us = host->sim->queue.now_us;
        if (item.kind == SIM_TICK)
            sim_drop(host->sim, &item);
        else
            sim_put(host->sim, item);
    }
    host->waiting_count = 0;
}
