/* schedule.c: see schedule.h. */
#include "run/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_planned {
    struct sim_schedule *schedule;
    const struct fault_spec *spec;
    struct rng rng;  /* whom it strikes */
    uint32_t struck; /* as so many-th; 0: not yet */
    bool over;
    double last;     /* part of the budget at which one ends that lasts a part of it */
    uint32_t *nodes; /* [count] whom it struck; owned */
    uint32_t count;
};

static int index_of(const struct parley_sim *sim, const char *name)
{
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (strcmp(sim->names[i], name) == 0) return (int)i;
    return -1;
}

/* Whom the fault strikes now. */
static bool draw_targets(struct sim_planned *planned)
{
    struct parley_sim *sim = planned->schedule->sim;
    const struct fault_spec *spec = planned->spec;
    planned->nodes = malloc(sim->nodes * sizeof *planned->nodes);
    if (!planned->nodes) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a fault");
        return false;
    }
    uint32_t *nodes = planned->nodes, alive = 0;
    if (spec->target == FAULT_NAME) {
        nodes[0] = (uint32_t)index_of(sim, spec->name);
        planned->count = 1;
        return true;
    }
    if (spec->target == FAULT_GROUPS) return true;
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (spec->kind == FAULT_JOIN ? sim->hosts[i].boots == 0
                                     : sim->hosts[i].state == SIM_HOST_UP)
            nodes[alive++] = i;
    planned->count = fault_draw(spec, &planned->rng, planned->schedule->nodes, nodes, alive);
    return true;
}

static void wall(struct parley_sim *sim, uint32_t from, uint32_t to, bool up)
{
    if (up)
        parley_sim_block(sim, from, to);
    else
        parley_sim_unblock(sim, from, to);
}

/* The walls of a partition, or of one direction: the first group hears nothing of the others. Who
 * is in no group is cut off from nobody. */
static void separate(struct parley_sim *sim, const struct fault_spec *spec, bool up)
{
    int *group = malloc(sim->nodes * sizeof *group);
    if (!group) {
        sim_fail(sim, PARLEY_ENOMEM, "no memory for a partition");
        return;
    }
    for (uint32_t i = 0; i < sim->nodes; i++)
        group[i] = groups_find(spec->name, i);
    for (uint32_t a = 0; a < sim->nodes; a++)
        for (uint32_t b = 0; b < sim->nodes; b++)
            if (group[a] != GROUPS_NONE && group[b] != GROUPS_NONE && group[a] != group[b] &&
                (spec->kind != FAULT_ONEWAY || group[b] == 0))
                wall(sim, a, b, up);
    free(group);
}

static const enum parley_sim_lie lies[FAULT_LIE_COUNT] = {
#define X(name, text) [FAULT_LIE_##name] = PARLEY_SIM_##name,
    FAULT_LIES(X)
#undef X
};

/* Its lines. */
static void strike_lines(struct parley_sim *sim, const struct fault_spec *spec, uint32_t node,
                         bool begins)
{
    double value = begins ? spec->value : 0;
    uint64_t time_us = begins ? spec->time_us : 0;
    switch (spec->kind) {
    case FAULT_LATENCY:
        parley_sim_latency(sim, node, time_us);
        break;
    case FAULT_LOSS:
        parley_sim_loss(sim, node, value);
        break;
    case FAULT_CUT:
        parley_sim_cut(sim, node, value);
        break;
    case FAULT_DUPLICATE:
        parley_sim_duplicate(sim, node, value);
        break;
    case FAULT_REORDER:
        parley_sim_reorder(sim, node, time_us);
        break;
    case FAULT_BANDWIDTH:
        parley_sim_bandwidth(sim, node,
                             begins ? spec->rate_bytes : sim->options.base.bandwidth_bytes);
        break;
    case FAULT_CLOG: /* nothing comes or goes, and nothing breaks */
        for (uint32_t i = 0; i < sim->nodes; i++) {
            if (i == node) continue;
            wall(sim, i, node, begins);
            wall(sim, node, i, begins);
        }
        break;
    default:
        break;
    }
}

static void strike_node(struct parley_sim *sim, const struct fault_spec *spec, uint32_t node,
                        bool begins)
{
    switch (spec->kind) {
    case FAULT_KILL:
        if (begins) parley_sim_kill(sim, node, false);
        break;
    case FAULT_RESTART:
        if (begins)
            parley_sim_kill(sim, node, false);
        else
            parley_sim_start(sim, node);
        break;
    case FAULT_PAUSE:
        if (begins)
            parley_sim_pause(sim, node);
        else
            parley_sim_resume(sim, node);
        break;
    case FAULT_JOIN:
        if (begins) parley_sim_start(sim, node);
        break;
    case FAULT_SLOW:
        parley_sim_slow(sim, node, begins ? spec->value : 1);
        break;
    case FAULT_DISK_FULL:
        parley_sim_disk_full(sim, node, begins);
        break;
    case FAULT_DISK_TORN:
        parley_sim_disk_torn(sim, node, begins);
        break;
    case FAULT_DISK_SLOW:
        parley_sim_disk_slow(sim, node, begins ? spec->time_us : 0);
        break;
    case FAULT_BYZANTINE:
        parley_sim_byzantine(sim, node, begins ? lies[spec->lie] : PARLEY_SIM_HONEST);
        break;
    default:
        strike_lines(sim, spec, node, begins);
    }
}

static void tell(const struct sim_schedule *schedule, const char *kind, const char *target)
{
    if (schedule->on_fault) schedule->on_fault(kind, target, schedule->arg);
}

static void tell_begin(const struct sim_planned *planned)
{
    const char *kind = fault_kind_text(planned->spec->kind);
    if (planned->spec->target == FAULT_GROUPS) tell(planned->schedule, kind, planned->spec->name);
    for (uint32_t i = 0; i < planned->count; i++)
        tell(planned->schedule, kind, planned->schedule->sim->names[planned->nodes[i]]);
}

/* Whoever was started now would find nobody. */
static bool is_over(const struct sim_schedule *schedule)
{
    return sim_schedule_ended(schedule) && !sim_schedule_runs(schedule);
}

/* In the words of `run`, for a node or, where that is NULL, for groups. held: another fault of the
 * kind has the node; where that shows in how it goes on, it is told again. */
static void tell_end(const struct sim_planned *planned, const struct sim_host *host, bool held)
{
    const struct fault_spec *spec = planned->spec;
    const char *target = host ? planned->schedule->sim->names[host->index] : spec->name;
    char ended[32];
    snprintf(ended, sizeof ended, "%s-end", fault_kind_text(spec->kind));
    if (spec->kind == FAULT_PAUSE) {
        if (host->paused && !held) tell(planned->schedule, "resume", target);
    } else if (spec->kind == FAULT_RESTART) {
        bool later = spec->lasting.kind != FAULT_NEVER; /* else it was told of with the beginning */
        if (host->state != SIM_HOST_UP && !held && later) tell(planned->schedule, "start", target);
    } else {
        tell(planned->schedule, held ? fault_kind_text(spec->kind) : ended, target);
    }
}

static bool holds(const struct sim_planned *planned, uint32_t node)
{
    for (uint32_t i = 0; planned->struck && !planned->over && i < planned->count; i++)
        if (planned->nodes[i] == node) return true;
    return false;
}

/* The newest fault of that kind which holds the node still, or NULL. */
static const struct fault_spec *still(const struct sim_schedule *schedule, enum fault_kind kind,
                                      uint32_t node)
{
    const struct sim_planned *newest = NULL;
    for (size_t i = 0; i < schedule->count; i++) {
        const struct sim_planned *other = &schedule->planned[i];
        if (other->spec->kind == kind && holds(other, node) &&
            (!newest || other->struck > newest->struck))
            newest = other;
    }
    return newest ? newest->spec : NULL;
}

static bool is_wall(enum fault_kind kind)
{
    return kind == FAULT_PARTITION || kind == FAULT_ONEWAY || kind == FAULT_CLOG;
}

/* Those of other faults, which the end of one has taken down. */
static void walls_again(struct sim_schedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++) {
        const struct sim_planned *planned = &schedule->planned[i];
        if (!planned->struck || planned->over || !is_wall(planned->spec->kind)) continue;
        if (planned->spec->target == FAULT_GROUPS) separate(schedule->sim, planned->spec, true);
        for (uint32_t k = 0; k < planned->count; k++)
            strike_node(schedule->sim, planned->spec, planned->nodes[k], true);
    }
}

static void end(struct parley_sim *sim, void *arg)
{
    struct sim_planned *planned = arg;
    const struct fault_spec *spec = planned->spec;
    if (planned->over || is_over(planned->schedule)) return;
    planned->over = true;
    if (spec->kind == FAULT_PAUSE) planned->schedule->woke_us = sim->queue.now_us;
    if (spec->target == FAULT_GROUPS) {
        tell_end(planned, NULL, false);
        separate(sim, spec, false);
    }
    for (uint32_t i = 0; i < planned->count; i++) {
        const struct fault_spec *left = still(planned->schedule, spec->kind, planned->nodes[i]);
        tell_end(planned, &sim->hosts[planned->nodes[i]], left != NULL);
        strike_node(sim, left ? left : spec, planned->nodes[i], left != NULL);
    }
    if (is_wall(spec->kind)) walls_again(planned->schedule);
}

/* Rounded up: that part of it is over then. */
static uint64_t time_of_share(const struct sim_schedule *schedule, double share)
{
    return schedule->begun_us + (uint64_t)ceil(fmin(share, 1) * (double)schedule->time_us);
}

/* When the one that struck ends, if that is known. */
static int plan_end(struct sim_planned *planned)
{
    struct sim_schedule *schedule = planned->schedule;
    const struct fault_spec *spec = planned->spec;
    uint64_t now_us = schedule->sim->queue.now_us, us = now_us;
    if (spec->lasting.kind == FAULT_TIME)
        us += spec->lasting.time_us;
    else if (spec->lasting.kind == FAULT_BUDGET && schedule->time_us > 0)
        us = time_of_share(schedule, planned->last);
    else if (spec->lasting.kind != FAULT_NEVER || spec->kind != FAULT_RESTART)
        return 0; /* but a restart without a length is at once */
    return sim_call_at(schedule->sim, us > now_us ? us : now_us, end, planned);
}

double sim_schedule_passed(const struct sim_schedule *schedule)
{
    if (schedule->time_us == 0) return 0;
    return (double)(schedule->sim->queue.now_us - schedule->begun_us) / (double)schedule->time_us;
}

/* They do not hold the process that comes after it. */
static void forget_pauses(struct sim_schedule *schedule, uint32_t node)
{
    for (size_t i = 0; i < schedule->count; i++) {
        struct sim_planned *planned = &schedule->planned[i];
        for (uint32_t k = 0; planned->spec->kind == FAULT_PAUSE && k < planned->count; k++)
            if (planned->nodes[k] == node) planned->nodes[k] = planned->nodes[--planned->count];
    }
}

static void strike(struct parley_sim *sim, void *arg)
{
    struct sim_planned *planned = arg;
    struct sim_schedule *schedule = planned->schedule;
    const struct fault_spec *spec = planned->spec;
    bool by_budget = spec->when.kind == FAULT_BUDGET;
    if (planned->struck || is_over(schedule) || !draw_targets(planned)) return;
    planned->struck = ++schedule->strikes;
    double progress = fmax(schedule->progress, sim_schedule_passed(schedule));
    planned->last = (by_budget ? spec->when.share : progress) + spec->lasting.share;
    tell_begin(planned);
    if (spec->target == FAULT_GROUPS) separate(sim, spec, true);
    for (uint32_t i = 0; i < planned->count; i++) {
        bool dies = spec->kind == FAULT_KILL || spec->kind == FAULT_RESTART;
        if (dies) forget_pauses(schedule, planned->nodes[i]);
        strike_node(sim, spec, planned->nodes[i], true);
    }
    int error = plan_end(planned);
    if (error) sim_fail(sim, error, "no memory for a fault");
}

int sim_schedule_begin(struct sim_schedule *schedule, uint64_t time_us)
{
    int error = 0;
    if (time_us == 0) return 0;
    schedule->begun_us = schedule->sim->queue.now_us;
    schedule->time_us = time_us;
    for (size_t i = 0; !error && i < schedule->count; i++) {
        struct sim_planned *planned = &schedule->planned[i];
        const struct fault_spec *spec = planned->spec;
        if (planned->struck && spec->lasting.kind == FAULT_BUDGET)
            error = plan_end(planned);
        else if (!planned->struck && spec->when.kind == FAULT_BUDGET)
            error = sim_call_at(schedule->sim, time_of_share(schedule, spec->when.share), strike,
                                planned);
    }
    return error;
}

void sim_schedule_progress(struct sim_schedule *schedule, double progress)
{
    schedule->progress = progress;
    for (size_t i = 0; i < schedule->count; i++) {
        struct sim_planned *planned = &schedule->planned[i];
        const struct fault_spec *spec = planned->spec;
        if (!planned->struck && spec->when.kind == FAULT_BUDGET && progress >= spec->when.share)
            strike(schedule->sim, planned);
        if (planned->struck && spec->lasting.kind == FAULT_BUDGET &&
            progress >= fmin(planned->last, 1))
            end(schedule->sim, planned);
    }
}

int sim_schedule_init(struct sim_schedule *schedule, struct parley_sim *sim,
                      const struct faults *faults, uint64_t seed, char *why, size_t why_size)
{
    const uint64_t *start_us = sim->options.base.start_us;
    uint64_t all_us = 0; /* when the last node of the start is there */
    *schedule = (struct sim_schedule){.sim = sim};
    for (uint32_t i = 0; i < sim->nodes; i++) {
        if (start_us && start_us[i] == PARLEY_SIM_NEVER) continue;
        schedule->nodes++;
        if (start_us && start_us[i] > all_us) all_us = start_us[i];
    }
    if (faults->count == 0) return 0;
    schedule->planned = calloc(faults->count, sizeof *schedule->planned);
    if (!schedule->planned) return PARLEY_ENOMEM;
    schedule->count = faults->count;
    for (size_t i = 0; i < faults->count; i++) {
        const struct fault_spec *spec = &faults->items[i];
        schedule->planned[i] = (struct sim_planned){
            .schedule = schedule, .spec = spec, .rng = fault_rng(faults, i, seed)};
        if (spec->target == FAULT_NAME && index_of(sim, spec->name) < 0) {
            snprintf(why, why_size, "--fault: there is no node \"%s\"", spec->name);
            return PARLEY_EUSAGE;
        }
        if (spec->kind == FAULT_BYZANTINE && spec->lie == FAULT_LIE_LABELS &&
            !sim->task->mislabel) {
            snprintf(why, why_size,
                     "--fault: byzantine=labels needs a --model of data with labels");
            return PARLEY_EUSAGE;
        }
        if (spec->when.kind != FAULT_TIME) continue;
        uint64_t time_us = spec->when.time_us > all_us ? spec->when.time_us : all_us;
        int error = sim_call_at(sim, time_us, strike, &schedule->planned[i]);
        if (error) return error;
    }
    return 0;
}

static bool is_known(const struct sim_schedule *schedule, enum fault_moment_kind kind)
{
    return kind == FAULT_TIME || (kind == FAULT_BUDGET && schedule->time_us > 0);
}

/* It holds somebody, until a time that is known. */
static bool is_to_end(const struct sim_planned *planned, enum fault_kind kind)
{
    const struct fault_spec *spec = planned->spec;
    return spec->kind == kind && planned->struck && !planned->over &&
           is_known(planned->schedule, spec->lasting.kind);
}

bool sim_schedule_runs(const struct sim_schedule *schedule)
{
    const struct parley_sim *sim = schedule->sim;
    for (uint32_t i = 0; i < sim->nodes; i++) {
        bool stands = sim->hosts[i].paused && !sim_schedule_wakes(schedule);
        if (sim->hosts[i].state == SIM_HOST_UP && !stands) return true;
    }
    return false;
}

bool sim_schedule_ended(const struct sim_schedule *schedule)
{
    const struct parley_sim *sim = schedule->sim;
    for (uint32_t i = 0; i < sim->nodes; i++)
        if (sim->hosts[i].state == SIM_HOST_ENDED) return true;
    return false;
}

bool sim_schedule_wakes(const struct sim_schedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++)
        if (is_to_end(&schedule->planned[i], FAULT_PAUSE)) return true;
    return false;
}

bool sim_schedule_starts(const struct sim_schedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++) {
        const struct sim_planned *planned = &schedule->planned[i];
        const struct fault_spec *spec = planned->spec;
        bool starts = spec->kind == FAULT_RESTART || spec->kind == FAULT_JOIN;
        if (starts && !planned->struck && is_known(schedule, spec->when.kind)) return true;
        if (is_to_end(planned, FAULT_RESTART)) return true;
    }
    return false;
}

bool sim_schedule_holds_down(const struct sim_schedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++) {
        const struct sim_planned *planned = &schedule->planned[i];
        if (planned->spec->kind == FAULT_RESTART && planned->struck && !planned->over) return true;
    }
    return false;
}

size_t sim_schedule_left(const struct sim_schedule *schedule)
{
    size_t left = 0;
    for (size_t i = 0; i < schedule->count; i++)
        left += !schedule->planned[i].struck;
    return left;
}

void sim_schedule_close(struct sim_schedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++)
        free(schedule->planned[i].nodes);
    free(schedule->planned);
    schedule->planned = NULL;
    schedule->count = 0;
}
