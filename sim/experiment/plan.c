/* plan.c: see plan.h. */
#include "experiment/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Axes ------------------------------------------------------------------------------------ */

static int find_strategies(struct plan *plan, char *why)
{
    const struct settings *base = plan->base;
    if (base->compare && base->values[OPTION_ID_STRATEGY].origin > ORIGIN_DEFAULT) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--strategy and --compare exclude each other: --compare names the strategies");
        return PARLEY_EUSAGE;
    }
    const char *one = base->values[OPTION_ID_STRATEGY].text;
    char clause[SWEEP_CLAUSE_BYTES];
    int error = contenders_parse(&plan->contenders, base->compare ? base->compare : one, clause);
    if (error) snprintf(why, SETTINGS_WHY_BYTES, "sim: what is compared %.900s", clause);
    return error;
}

/* The first that has a value of its own, or NULL. */
static const struct contender *owner_of(const struct plan *plan, enum option_id id)
{
    for (size_t i = 0; i < plan->contenders.count; i++)
        if (plan->contenders.list[i].own[id]) return &plan->contenders.list[i];
    return plan->contenders.single.own[id] ? &plan->contenders.single : NULL;
}

static int find_axes(struct plan *plan, char *why)
{
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        bool swept = plan->base->sweeps[id].count > 1;
        const struct contender *owner = owner_of(plan, id);
        if (swept && owner) {
            snprintf(why, SETTINGS_WHY_BYTES,
                     "--%s: \"%.400s\" is for all that are compared, and \"%.400s\" (--compare) "
                     "has one of its own; give it in one place",
                     option_info(id)->name, plan->base->values[id].text, owner->text);
            return PARLEY_EUSAGE;
        }
        bool sorts = id == OPTION_ID_STRATEGY || id == OPTION_ID_SEED;
        if ((swept && !sorts) || owner) plan->axes[plan->axes_count++] = id;
    }
    plan->seeds = plan->base->sweeps[OPTION_ID_SEED].count > 1;
    if (plan->seeds) plan->axes[plan->axes_count++] = OPTION_ID_SEED;
    return 0;
}

static const struct sweep *axis(const struct plan *plan, uint32_t i)
{
    return &plan->base->sweeps[plan->axes[i]];
}

/* Else it is some contenders' own. */
static bool is_swept(const struct plan *plan, uint32_t i)
{
    return axis(plan, i)->count > 1;
}

/* Combinations of the swept settings, or more than are allowed. */
static uint64_t combinations(const struct plan *plan)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < plan->axes_count && count <= PLAN_RUNS_MAX; i++)
        if (is_swept(plan, i)) count *= axis(plan, i)->count;
    return count;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* What says nothing to a node without peers. */
static bool is_social(enum option_id id)
{
    enum option_group group = option_info(id)->group;
    return id == OPTION_ID_NODES || id == OPTION_ID_PARTITION || group == GROUP_GOSSIP ||
           group == GROUP_FAULTS || (group == GROUP_SIM && id != OPTION_ID_COMPUTE);
}

/* Whether the run's strategy and optimizer go by it; a node without peers goes by what is no social
 * matter. */
static bool run_heeds(const struct plan_run *run, enum option_id id)
{
    const struct settings *settings = &run->settings;
    bool heeds = plan_is_single(run) ? !is_social(id) : settings_heeds(settings->strategy, id);
    return heeds && settings_optimizer_heeds(settings->optimizer, id);
}

static void drop(struct plan_run *run)
{
    settings_close(&run->settings);
    free(run);
}

static int add_run(struct plan *plan, const struct contender *contender, const char *const *texts,
                   struct plan_run *run, char *why)
{
    char clause[SETTINGS_WHY_BYTES] = "";
    int error = settings_copy(&run->settings, plan->base, texts, clause);
    if (error) {
        bool own = strchr(contender->text, '=') != NULL;
        snprintf(why, SETTINGS_WHY_BYTES, "%s%.200s%s%.800s", own ? "--compare: \"" : "",
                 own ? contender->text : "", own ? "\": " : "", clause);
        drop(run);
        return error;
    }
    for (uint32_t i = 0; i < plan->axes_count; i++)
        if (!is_swept(plan, i) && run_heeds(run, plan->axes[i]))
            run->values[i] = run->settings.values[plan->axes[i]].text;
    plan->runs[plan->count++] = run;
    return 0;
}

/* The values of combination `number`, the last axis the fastest. */
static struct plan_run *choose(const struct plan *plan, const struct contender *contender,
                               uint64_t number, const char **texts)
{
    struct plan_run *run = calloc(1, sizeof *run);
    if (!run) return NULL;
    run->strategy = contender->name;
    for (uint32_t i = plan->axes_count; i-- > 0;) {
        const struct sweep *sweep = axis(plan, i);
        texts[plan->axes[i]] = contender->own[plan->axes[i]];
        if (!is_swept(plan, i)) continue;
        run->values[i] = sweep->values[number % sweep->count];
        number /= sweep->count;
        bool none = sweep_is_none(plan->axes[i], run->values[i]);
        texts[plan->axes[i]] = none ? "" : run->values[i];
    }
    texts[OPTION_ID_COMPARE] = "";
    return run;
}

/* What differs from the run before in its seed alone is of the same group. */
static uint32_t group_of(struct plan *plan, const struct plan_run *run, bool first)
{
    bool fresh = first;
    const struct plan_run *before = first ? NULL : plan->runs[plan->count - 2];
    for (uint32_t i = 0; !fresh && i < plan->axes_count - plan->seeds; i++)
        fresh = is_swept(plan, i) && before->values[i] != run->values[i];
    return fresh ? plan->groups++ : plan->groups - 1;
}

/* For others of several optimizers. */
static bool is_of_others(const char *const *texts, enum option_id id)
{
    const char *optimizer = texts[OPTION_ID_OPTIMIZER];
    return optimizer && !settings_optimizer_heeds(optimizer, id);
}

/* What is for others of the strategies or optimizers is left out; of the combinations that are then
 * alike, the first is a run. False for the others. */
static bool leave_unheeded(const struct plan *plan, const struct contender *contender,
                           struct plan_run *run, const char **texts)
{
    bool heeds[OPTION_ID_COUNT];
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        heeds[i] = settings_heeds(contender->strategy, id) && !is_of_others(texts, id);
    }
    for (int i = 0; i < OPTION_ID_COUNT; i++)
        if (!heeds[i] && !contender->own[i]) texts[i] = "";
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        if (!is_swept(plan, i) || heeds[plan->axes[i]]) continue;
        if (run->values[i] != axis(plan, i)->values[0]) return false;
        run->values[i] = NULL;
    }
    return true;
}

static int add_contender(struct plan *plan, const struct contender *contender, char *why)
{
    uint32_t first = plan->count;
    for (uint64_t number = 0; number < combinations(plan); number++) {
        const char *texts[OPTION_ID_COUNT] = {NULL};
        struct plan_run *run = choose(plan, contender, number, texts);
        if (!run) return PARLEY_ENOMEM;
        texts[OPTION_ID_STRATEGY] = contender->name;
        if (!leave_unheeded(plan, contender, run, texts)) {
            free(run);
            continue;
        }
        int error = add_run(plan, contender, texts, run, why);
        if (error) return error;
        run->group = group_of(plan, run, plan->count - 1 == first);
    }
    return 0;
}

static void add_unheeded(struct text *text, enum option_id id, const char *by, bool *named)
{
    if (!*named) text_add(text, "--%s changes nothing for ", option_info(id)->name);
    text_add(text, "%s%s", *named ? ", " : "", by);
    *named = true;
}

char *plan_unheeded(const struct plan *plan)
{
    const struct contenders *all = &plan->contenders;
    const struct sweep *optimizers = &plan->base->sweeps[OPTION_ID_OPTIMIZER];
    struct text text;
    text_init(&text, 1 << 16);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        bool given = plan->base->values[i].origin > ORIGIN_DEFAULT, named = false;
        if (!given || plan->base->sweeps[i].count > 1) continue;
        for (size_t c = 0; c < all->count; c++)
            if (!settings_heeds(all->list[c].strategy, id) || is_of_others(all->list[c].own, id))
                add_unheeded(&text, id, all->list[c].text, &named);
        if (is_of_others(all->single.own, id)) add_unheeded(&text, id, all->single.text, &named);
        for (size_t o = 0; o < optimizers->count; o++)
            if (!settings_optimizer_heeds(optimizers->values[o], id))
                add_unheeded(&text, id, optimizers->values[o], &named);
        if (named) text_add(&text, "\n");
    }
    return text_take(&text);
}

/* ---- The single node ------------------------------------------------------------------------- */

static bool alike(const struct settings *a, const struct settings *b)
{
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        const char *one = a->values[id].text, *two = b->values[id].text;
        if ((one == NULL) != (two == NULL) || (one && strcmp(one, two) != 0)) return false;
    }
    return true;
}

/* Steps are each node's: one node has to do those of all. */
static void whole_budget(const struct plan *plan, const struct plan_run *run, const char **texts,
                         char steps[32])
{
    uint64_t nodes = plan->base->nodes, count = plan->base->steps;
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        if (plan->axes[i] == OPTION_ID_NODES) nodes = strtoull(run->values[i], NULL, 10);
        if (plan->axes[i] == OPTION_ID_STEPS) count = strtoull(run->values[i], NULL, 10);
    }
    if (count == 0) return;
    snprintf(steps, 32, "%" PRIu64, count * nodes);
    texts[OPTION_ID_STEPS] = steps;
}

static int add_single(struct plan *plan, uint32_t first, uint64_t number, char *why)
{
    const char *texts[OPTION_ID_COUNT] = {NULL};
    char steps[32];
    const struct contender *single = &plan->contenders.single;
    struct plan_run *run = choose(plan, single, number, texts);
    if (!run) return PARLEY_ENOMEM;
    whole_budget(plan, run, texts, steps);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        if (is_social(id) || (is_of_others(texts, id) && !single->own[i])) texts[i] = "";
    }
    texts[OPTION_ID_NODES] = "1";
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        enum option_id id = plan->axes[i];
        bool tells = id == OPTION_ID_NODES && texts[OPTION_ID_STEPS];
        if ((is_social(id) && !tells) || is_of_others(texts, id)) run->values[i] = NULL;
    }
    int error = add_run(plan, single, texts, run, why);
    if (error) return error;
    for (uint32_t i = first; i + 1 < plan->count; i++) {
        if (!alike(&plan->runs[i]->settings, &run->settings)) continue;
        plan->count--;
        drop(run);
        return 0;
    }
    run->group = group_of(plan, run, plan->count - 1 == first);
    return 0;
}

bool plan_is_single(const struct plan_run *run)
{
    return strcmp(run->strategy, "single") == 0;
}

/* ---- Making it ------------------------------------------------------------------------------- */

int plan_init(struct plan *plan, const struct settings *base, char why[SETTINGS_WHY_BYTES])
{
    *plan = (struct plan){.base = base};
    int error = find_strategies(plan, why);
    if (error) return error;
    error = find_axes(plan, why);
    if (error) return error;
    uint64_t each = combinations(plan), rows = plan->contenders.count + (base->compare != NULL);
    if (each * rows > PLAN_RUNS_MAX) {
        snprintf(why, SETTINGS_WHY_BYTES, "sim: the settings swept make more than %d runs",
                 PLAN_RUNS_MAX);
        return PARLEY_EUSAGE;
    }
    plan->runs = calloc(each * rows, sizeof *plan->runs);
    if (!plan->runs) return PARLEY_ENOMEM;
    for (size_t i = 0; i < plan->contenders.count && !error; i++)
        error = add_contender(plan, &plan->contenders.list[i], why);
    uint32_t first = plan->count;
    for (uint64_t number = 0; base->compare && number < each && !error; number++)
        error = add_single(plan, first, number, why);
    plan->planned = plan->count;
    return error;
}

/* Runs of a group stand together. */
void plan_drop_unmade(struct plan *plan)
{
    uint32_t count = plan->count, group = 0;
    plan->count = plan->groups = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct plan_run *run = plan->runs[i];
        if (!run->made) {
            drop(run);
            continue;
        }
        plan->groups += plan->groups == 0 || run->group != group;
        group = run->group;
        run->group = plan->groups - 1;
        plan->runs[plan->count++] = run;
    }
}

void plan_close(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        drop(plan->runs[i]);
    free(plan->runs);
    contenders_close(&plan->contenders);
    *plan = (struct plan){0};
}
