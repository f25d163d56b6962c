/* fault.c: carries out --fault at processes: signals for kill and pause, a word for slow and
 * sleep.
 *
 * WHEN and FOR are looked at every few milliseconds; a share of the budget is that of the cluster's
 * progress as last told. Who "half of them" are is drawn by the seed when the fault strikes, from
 * those that are there.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/run/run.h"
#include "clock.h"

int run_faults_init(struct run *run)
{
    size_t count = run->settings->faults.count;
    run->plans = calloc(count + 1, sizeof *run->plans);
    if (!run->plans) return PARLEY_ENOMEM;
    for (size_t i = 0; i < count; i++)
        run->plans[i] =
            (struct plan){.spec = &run->settings->faults.items[i],
                          .rng = fault_rng(&run->settings->faults, i, run->settings->seed)};
    return 0;
}

size_t run_faults_left(const struct run *run)
{
    size_t left = 0;
    for (size_t i = 0; i < run->settings->faults.count; i++)
        left += !run->plans[i].struck;
    return left;
}

void run_faults_close(struct run *run)
{
    for (size_t i = 0; run->plans && i < run->settings->faults.count; i++)
        free(run->plans[i].targets);
    free(run->plans);
}

/* Who is killed is gone, even if the kernel has yet to say so; it can be started again. */
static bool can_be_hit(const struct child *child, const struct fault_spec *spec)
{
    if (spec->target == FAULT_NAME && strcmp(child->name, spec->name) != 0) return false;
    if (child->killed) return spec->target == FAULT_NAME && spec->kind == FAULT_RESTART;
    return child->running;
}

/* Whom it hits; those that are gone are left out. */
static void draw(struct run *run, struct plan *plan)
{
    const struct fault_spec *spec = plan->spec;
    plan->targets = calloc(run->nodes, sizeof *plan->targets);
    if (!plan->targets) return;
    for (uint32_t i = 0; i < run->nodes; i++)
        if (can_be_hit(&run->children[i], spec)) plan->targets[plan->count++] = i;
    if (plan->count == 0)
        run_say(run, "fault: %s: nothing happens, as no such node is running",
                fault_kind_text(spec->kind));
    if (spec->target == FAULT_NAME) return;
    plan->count = fault_draw(spec, &plan->rng, run->nodes, plan->targets, plan->count);
}

static void tell(struct run *run, const char *kind, const char *target)
{
    struct report_line line = {.event = REPORT_FAULT, .as.fault = {.kind = kind, .target = target}};
    run_tell(run, &line);
    run_say(run, "fault: %s %s", kind, target);
}

/* It has struck the node, and goes on. */
static bool holds(const struct run *run, const struct plan *plan, const struct child *child)
{
    for (uint32_t k = 0; plan->struck && !plan->ended && k < plan->count; k++)
        if (&run->children[plan->targets[k]] == child) return true;
    return false;
}

/* The newest fault of that kind which holds the node still, or NULL. */
static const struct fault_spec *still(const struct run *run, enum fault_kind kind,
                                      const struct child *child)
{
    const struct plan *newest = NULL;
    for (size_t i = 0; i < run->settings->faults.count; i++) {
        const struct plan *plan = &run->plans[i];
        if (plan->spec->kind == kind && holds(run, plan, child) &&
            (!newest || plan->start_us >= newest->start_us))
            newest = plan;
    }
    return newest ? newest->spec : NULL;
}

bool run_faults_hold(const struct run *run, const struct child *child)
{
    return still(run, FAULT_RESTART, child) != NULL;
}

/* A part of a budget of time is a time, once that has begun. */
bool run_faults_pass(const struct run *run, const struct child *child)
{
    bool timed = run->settings->time_us > 0 && run->train_us > 0;
    for (size_t i = 0; i < run->settings->faults.count; i++) {
        const struct plan *plan = &run->plans[i];
        enum fault_moment_kind lasting = plan->spec->lasting.kind;
        bool stops = plan->spec->kind == FAULT_PAUSE || plan->spec->kind == FAULT_RESTART;
        bool passes = lasting == FAULT_TIME || (lasting == FAULT_BUDGET && timed);
        if (stops && !passes && holds(run, plan, child)) return false;
    }
    return true;
}

/* Where its end has been seen already, nothing else would start it again. */
static void start_if_gone(struct child *child)
{
    bool starts = child->again && !run_faults_hold(child->run, child);
    if (starts && child->handles == 0) run_child_gone(child);
}

static void say_pace(struct child *child, enum fault_kind kind, const struct fault_spec *spec)
{
    char text[64];
    if (kind == FAULT_SLOW)
        snprintf(text, sizeof text, CONTROL_SLOW "%g", spec ? spec->value : 1);
    else
        snprintf(text, sizeof text, CONTROL_SLEEP "%" PRIu64, spec ? spec->time_us : 0);
    child_say(child, text);
}

/* They do not hold the process that comes after it. */
static void forget_pauses(struct run *run, const struct child *child)
{
    for (size_t i = 0; i < run->settings->faults.count; i++) {
        struct plan *plan = &run->plans[i];
        for (uint32_t k = 0; plan->spec->kind == FAULT_PAUSE && k < plan->count; k++)
            if (&run->children[plan->targets[k]] == child)
                plan->targets[k] = plan->targets[--plan->count];
    }
}

static void strike(struct run *run, struct plan *plan, struct child *child)
{
    switch (plan->spec->kind) {
    case FAULT_KILL:
    case FAULT_RESTART:
        forget_pauses(run, child);
        child->killed = true;
        child->again = plan->spec->kind == FAULT_RESTART;
        child_signal(child, SIGKILL);
        start_if_gone(child);
        break;
    case FAULT_PAUSE:
        child->paused = true;
        child_signal(child, SIGSTOP);
        break;
    case FAULT_SLOW:
    case FAULT_SLEEP:
        say_pace(child, plan->spec->kind, plan->spec);
        break;
    default:
        return;
    }
    tell(run, fault_kind_text(plan->spec->kind), child->name);
}

/* What held it before does again, and is told again. */
static void end_pace(struct run *run, enum fault_kind kind, struct child *child)
{
    const struct fault_spec *left = still(run, kind, child);
    say_pace(child, kind, left);
    const char *ended = kind == FAULT_SLOW ? "slow-end" : "sleep-end";
    tell(run, left ? fault_kind_text(kind) : ended, child->name);
}

void run_faults_again(struct run *run, struct child *child)
{
    static const enum fault_kind kinds[] = {FAULT_SLOW, FAULT_SLEEP};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct fault_spec *spec = still(run, kinds[i], child);
        if (!spec) continue;
        say_pace(child, kinds[i], spec);
        tell(run, fault_kind_text(kinds[i]), child->name);
    }
}

static void end(struct run *run, struct plan *plan, struct child *child)
{
    enum fault_kind kind = plan->spec->kind;
    switch (kind) {
    case FAULT_RESTART:
        if (!child->again || run_faults_hold(run, child)) return; /* another's end starts it */
        start_if_gone(child);
        tell(run, "start", child->name);
        break;
    case FAULT_PAUSE:
        if (!child->paused || still(run, kind, child)) return;
        child->paused = false;
        child_signal(child, SIGCONT);
        tell(run, "resume", child->name);
        break;
    case FAULT_SLOW:
    case FAULT_SLEEP:
        end_pace(run, kind, child);
        break;
    default:
        break;
    }
}

/* A part of the budget counts from `start`, and is over when all of it is spent. */
static bool is_due(const struct fault_moment *moment, uint64_t passed_us, double progress,
                   double start)
{
    if (moment->kind == FAULT_TIME) return passed_us >= moment->time_us;
    return moment->kind == FAULT_BUDGET && progress >= fmin(start + moment->share, 1);
}

void run_faults_advance(struct run *run)
{
    double progress = run_progress(run);
    uint64_t now_us = clock_now_us();
    for (size_t i = 0; i < run->settings->faults.count; i++) {
        struct plan *plan = &run->plans[i];
        if (!plan->struck && is_due(&plan->spec->when, now_us - run->start_us, progress, 0)) {
            plan->struck = true;
            plan->ended =
                plan->spec->kind == FAULT_RESTART && plan->spec->lasting.kind == FAULT_NEVER;
            plan->start_us = now_us;
            plan->start_progress = progress;
            draw(run, plan);
            for (uint32_t k = 0; k < plan->count; k++)
                strike(run, plan, &run->children[plan->targets[k]]);
        }
        if (plan->struck && !plan->ended &&
            is_due(&plan->spec->lasting, now_us - plan->start_us, progress, plan->start_progress)) {
            plan->ended = true;
            for (uint32_t k = 0; k < plan->count; k++)
                end(run, plan, &run->children[plan->targets[k]]);
        }
    }
}
