/* plan.c: see plan.h. */
#include "experiment/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* ---- Axes ------------------------------------------------------------------------------------ */

static int find_strategies(struct plan *plan, char *why)
{
    const struct settings *base = plan->base;
    const char *list = base->compare;
    if (plan->compares && base->values[OPTION_ID_STRATEGY].origin > ORIGIN_DEFAULT) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--strategy and --compare exclude each other: --compare names the strategies");
        return PARLEY_EUSAGE;
    }
    if (!plan->compares) list = base->values[OPTION_ID_STRATEGY].text;
    return sweep_strategies(&plan->strategies, list, why);
}

static void find_axes(struct plan *plan)
{
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        if (plan->base->sweeps[id].count > 1 && id != OPTION_ID_STRATEGY && id != OPTION_ID_SEED)
            plan->axes[plan->axes_count++] = (enum option_id)id;
    plan->seeds = plan->base->sweeps[OPTION_ID_SEED].count > 1;
    if (plan->seeds) plan->axes[plan->axes_count++] = OPTION_ID_SEED;
}

static const struct sweep *axis(const struct plan *plan, uint32_t i)
{
    return &plan->base->sweeps[plan->axes[i]];
}

/* Combinations of the swept settings, or more than are allowed. */
static uint64_t combinations(const struct plan *plan)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < plan->axes_count && count <= PLAN_RUNS_MAX; i++)
        count *= axis(plan, i)->count;
    return count;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static int add_run(struct plan *plan, const char *const *texts, struct plan_run *run, char *why)
{
    int error = settings_copy(&run->settings, plan->base, texts, why);
    if (error) {
        settings_close(&run->settings);
        free(run);
        return error;
    }
    plan->runs[plan->count++] = run;
    return 0;
}

/* The values of combination `number`, the last axis the fastest. */
static struct plan_run *choose(const struct plan *plan, uint64_t number, const char **texts)
{
    struct plan_run *run = calloc(1, sizeof *run);
    if (!run) return NULL;
    for (uint32_t i = plan->axes_count; i-- > 0;) {
        const struct sweep *sweep = axis(plan, i);
        run->values[i] = sweep->values[number % sweep->count];
        number /= sweep->count;
        bool none = sweep_is_none(plan->axes[i], run->values[i]);
        texts[plan->axes[i]] = none ? "" : run->values[i];
    }
    texts[OPTION_ID_COMPARE] = "";
    return run;
}

/* Of its word; "ps-ssp:2" is that of "ps-ssp:". */
static int number_of(const char *strategy)
{
    const char *const *valid = option_info(OPTION_ID_STRATEGY)->valid;
    size_t length = strcspn(strategy, ":");
    int number = 0;
    while (valid[number] &&
           (strncmp(valid[number], strategy, length) != 0 || strcspn(valid[number], ":") != length))
        number++;
    return number;
}

/* What differs from the run before in its seed alone is of the same group. */
static uint32_t group_of(struct plan *plan, const struct plan_run *run, bool first)
{
    bool fresh = first;
    const struct plan_run *before = first ? NULL : plan->runs[plan->count - 2];
    for (uint32_t i = 0; !fresh && i < plan->axes_count - plan->seeds; i++)
        fresh = before->values[i] != run->values[i];
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
static bool leave_unheeded(const struct plan *plan, struct plan_run *run, const char **texts)
{
    int number = number_of(run->strategy);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        if (!settings_heeds(number, id) || is_of_others(texts, id)) texts[i] = "";
    }
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        if (settings_heeds(number, plan->axes[i]) && !is_of_others(texts, plan->axes[i])) continue;
        if (run->values[i] != axis(plan, i)->values[0]) return false;
        run->values[i] = NULL;
    }
    return true;
}

static int add_strategy(struct plan *plan, const char *strategy, char *why)
{
    uint32_t first = plan->count;
    for (uint64_t number = 0; number < combinations(plan); number++) {
        const char *texts[OPTION_ID_COUNT] = {NULL};
        struct plan_run *run = choose(plan, number, texts);
        if (!run) return PARLEY_ENOMEM;
        texts[OPTION_ID_STRATEGY] = run->strategy = strategy;
        if (!leave_unheeded(plan, run, texts)) {
            free(run);
            continue;
        }
        int error = add_run(plan, texts, run, why);
        if (error) return error;
        run->group = group_of(plan, run, plan->count - 1 == first);
    }
    return 0;
}

static bool strategy_heeds(const char *strategy, enum option_id id)
{
    return settings_heeds(number_of(strategy), id);
}

static void add_unheeded(struct text *text, enum option_id id, const struct sweep *of,
                         bool (*heeds)(const char *, enum option_id))
{
    bool named = false;
    for (size_t i = 0; i < of->count; i++) {
        if (heeds(of->values[i], id)) continue;
        if (!named) text_add(text, "--%s changes nothing for ", option_info(id)->name);
        text_add(text, "%s%s", named ? ", " : "", of->values[i]);
        named = true;
    }
    if (named) text_add(text, "\n");
}

char *plan_unheeded(const struct plan *plan)
{
    struct text text;
    text_init(&text, 1 << 16);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        bool given = plan->base->values[i].origin > ORIGIN_DEFAULT;
        if (!given || plan->base->sweeps[i].count > 1) continue;
        add_unheeded(&text, id, &plan->strategies, strategy_heeds);
        add_unheeded(&text, id, &plan->base->sweeps[OPTION_ID_OPTIMIZER], settings_optimizer_heeds);
    }
    return text_take(&text);
}

/* ---- The single node ------------------------------------------------------------------------- */

/* What says nothing to a node without peers. */
static bool is_social(enum option_id id)
{
    enum option_group group = option_info(id)->group;
    return id == OPTION_ID_NODES || id == OPTION_ID_PARTITION || group == GROUP_GOSSIP ||
           group == GROUP_FAULTS || (group == GROUP_SIM && id != OPTION_ID_COMPUTE);
}

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
    struct plan_run *run = choose(plan, number, texts);
    if (!run) return PARLEY_ENOMEM;
    run->strategy = "single";
    whole_budget(plan, run, texts, steps);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        if (is_social(id) || is_of_others(texts, id)) texts[i] = "";
    }
    texts[OPTION_ID_NODES] = "1";
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        enum option_id id = plan->axes[i];
        bool tells = id == OPTION_ID_NODES && texts[OPTION_ID_STEPS];
        if ((is_social(id) && !tells) || is_of_others(texts, id)) run->values[i] = NULL;
    }
    int error = add_run(plan, texts, run, why);
    if (error) return error;
    for (uint32_t i = first; i + 1 < plan->count; i++) {
        if (!alike(&plan->runs[i]->settings, &run->settings)) continue;
        plan->count--;
        settings_close(&run->settings);
        free(run);
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
    *plan = (struct plan){.base = base, .compares = base->compare != NULL};
    int error = find_strategies(plan, why);
    if (error) return error;
    find_axes(plan);
    uint64_t each = combinations(plan), rows = plan->strategies.count + plan->compares;
    if (each * rows > PLAN_RUNS_MAX) {
        snprintf(why, SETTINGS_WHY_BYTES, "sim: the settings swept make more than %d runs",
                 PLAN_RUNS_MAX);
        return PARLEY_EUSAGE;
    }
    plan->runs = calloc(each * rows, sizeof *plan->runs);
    if (!plan->runs) return PARLEY_ENOMEM;
    for (size_t i = 0; i < plan->strategies.count && !error; i++)
        error = add_strategy(plan, plan->strategies.values[i], why);
    uint32_t first = plan->count;
    for (uint64_t number = 0; plan->compares && number < each && !error; number++)
        error = add_single(plan, first, number, why);
    return error;
}

void plan_close(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        settings_close(&plan->runs[i]->settings);
        free(plan->runs[i]);
    }
    free(plan->runs);
    sweep_close(&plan->strategies);
    *plan = (struct plan){0};
}

/* ---- Telling --------------------------------------------------------------------------------- */

char *plan_label(const struct plan *plan, const struct plan_run *run, bool with_seed)
{
    struct text text;
    text_init(&text, 1 << 16);
    text_add(&text, "%s", run->strategy);
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        bool seed = plan->axes[i] == OPTION_ID_SEED;
        if (run->values[i] && (!seed || with_seed))
            text_add(&text, ", %s %s", option_info(plan->axes[i])->name, run->values[i]);
    }
    return text_take(&text);
}

static json_t *value_of(enum option_id id, const char *value)
{
    enum option_kind kind = option_info(id)->kind;
    uint64_t count;
    units_why why;
    if (!value) return json_null();
    bool counts = kind == OPTION_COUNT || kind == OPTION_PERIOD;
    if (counts && !units_count(value, 0, INT64_MAX, &count, why))
        return json_integer((json_int_t)count);
    if (kind == OPTION_REAL) return json_real(strtod(value, NULL));
    return json_string(value);
}

char *plan_json(const struct plan *plan, const struct plan_run *run, int *error)
{
    char *text = NULL;
    *error = 0;
    if (plan->axes_count == 0) return NULL;
    json_t *object = json_object();
    for (uint32_t i = 0; object && i < plan->axes_count; i++)
        if (json_object_set_new(object, option_info(plan->axes[i])->name,
                                value_of(plan->axes[i], run->values[i])) != 0) {
            json_decref(object);
            object = NULL;
        }
    if (object) text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(object);
    if (!text) *error = PARLEY_ENOMEM;
    return text;
}

void plan_fields(struct text *text, const struct plan *plan, const struct plan_run *run)
{
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        text_add(text, ",");
        if (run->values[i]) text_field(text, run->values[i]);
    }
}
