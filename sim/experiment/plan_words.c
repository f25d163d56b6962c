/* plan_words.c: how tables and files name the runs of a plan, and what they say of their rates. See
 * plan.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "experiment/plan.h"
#include "train/trainer.h"

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
    struct text text;
    *error = 0;
    if (plan->axes_count == 0) return NULL;
    json_t *object = json_object();
    for (uint32_t i = 0; object && i < plan->axes_count; i++)
        if (json_object_set_new(object, option_info(plan->axes[i])->name,
                                value_of(plan->axes[i], run->values[i])) != 0) {
            json_decref(object);
            object = NULL;
        }
    text_init(&text, 1 << 20);
    text_json(&text, object, JSON_COMPACT | JSON_REAL_PRECISION(15));
    char *line = text_take(&text);
    if (!line) *error = PARLEY_ENOMEM;
    return line;
}

void plan_fields(struct text *text, const struct plan *plan, const struct plan_run *run)
{
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        text_add(text, ",");
        if (run->values[i]) text_field(text, run->values[i]);
    }
}

/* ---- Rates ----------------------------------------------------------------------------------- */

/* 0 where a column tells it. */
static double warmup_of(const struct plan *plan, const struct plan_run *run)
{
    for (uint32_t i = 0; i < plan->axes_count; i++)
        if (plan->axes[i] == OPTION_ID_WARMUP) return 0;
    return run->settings.warmup;
}

static bool rates_alike(const struct plan *plan, uint32_t i, uint32_t k)
{
    const struct plan_run *a = plan->runs[i], *b = plan->runs[k];
    return a->settings.lr_scale == b->settings.lr_scale &&
           !(warmup_of(plan, a) < warmup_of(plan, b) || warmup_of(plan, a) > warmup_of(plan, b));
}

/* Of those whose rate is made like that of run `first`: nodes and batch may be swept. */
static void add_rate(struct text *text, const struct plan *plan, uint32_t first)
{
    const struct settings *like = &plan->runs[first]->settings;
    double least = INFINITY, most = 0, warmup = warmup_of(plan, plan->runs[first]);
    const char *named = NULL;
    for (uint32_t i = first; i < plan->count; i++) {
        const struct plan_run *run = plan->runs[i];
        if (!rates_alike(plan, i, first)) continue;
        double factor =
            trainer_scaling((enum trainer_scale)run->settings.lr_scale,
                            (uint32_t)run->settings.batch, (uint32_t)run->settings.nodes);
        least = fmin(least, factor);
        most = fmax(most, factor);
        if (named && strcmp(named, run->strategy) == 0) continue;
        text_add(text, "%s%s", named ? ", " : "", run->strategy);
        named = run->strategy;
    }
    text_add(text, ": ");
    if (like->lr_scale != TRAINER_SCALE_NONE) text_add(text, "--lr times %g", least);
    if (least < most) text_add(text, " to %g", most);
    if (like->lr_scale != TRAINER_SCALE_NONE)
        text_add(text, " (--lr-scale %s)%s", like->values[OPTION_ID_LR_SCALE].text,
                 warmup > 0 ? ", " : "");
    if (warmup > 0) text_add(text, "--warmup %g", warmup);
    text_add(text, "\n");
}

char *plan_rates(const struct plan *plan)
{
    struct text text;
    bool differ = false;
    text_init(&text, 1 << 16);
    for (uint32_t i = 1; i < plan->count; i++)
        differ |= !rates_alike(plan, 0, i);
    for (uint32_t i = 0; differ && i < plan->count; i++) {
        const struct plan_run *run = plan->runs[i];
        uint32_t k = 0;
        while (!rates_alike(plan, k, i))
            k++;
        bool plain = run->settings.lr_scale == TRAINER_SCALE_NONE && !(warmup_of(plan, run) > 0);
        if (k == i && !plain) add_rate(&text, plan, i);
    }
    return text_take(&text);
}
