/* points.c: see points.h. */
#include "experiment/points.h"

#include <inttypes.h>
#include <math.h>

#include "report/text.h"

enum { BYTES_MAX = 1 << 20 };

char *points_csv_head(const struct plan *plan)
{
    struct text text;
    text_init(&text, BYTES_MAX);
    text_add(&text, "run,strategy");
    for (uint32_t i = 0; i < plan->axes_count; i++) {
        text_add(&text, ",");
        for (const char *name = option_info(plan->axes[i])->name; *name; name++)
            text_add(&text, "%c", *name == '-' ? '_' : *name);
    }
    text_add(&text, ",phase,t,epoch,samples,bytes_sent,test_accuracy,test_loss,drift\n");
    return text_take(&text);
}

static enum parley_phase phase_of(const struct report_summary *s, double time_s, bool last)
{
    if (last && isfinite(s->agreed_s)) return PARLEY_PHASE_DONE;
    return time_s <= s->trained_s ? PARLEY_PHASE_TRAIN : PARLEY_PHASE_SETTLE;
}

char *points_csv_rows(const struct plan *plan, uint32_t i, const struct sim_outcome *outcome)
{
    const struct curve *curve = &outcome->curve;
    struct text text;
    text_init(&text, BYTES_MAX);
    for (uint32_t p = 0; p < curve->count; p++) {
        const struct curve_point *point = &curve->points[p];
        enum parley_phase phase = phase_of(&outcome->summary, point->time_s, p + 1 == curve->count);
        const double results[] = {point->accuracy, point->loss, point->drift};
        text_add(&text, "%" PRIu32 ",%s", i + 1, plan->runs[i]->strategy);
        plan_fields(&text, plan, plan->runs[i]);
        text_add(&text, ",%s,%.6f,%.9g,%.0f,%.0f", parley_phase_name(phase), point->time_s,
                 point->epoch, point->samples, point->bytes);
        for (int r = 0; r < 3; r++) {
            text_add(&text, ",");
            text_real(&text, results[r]);
        }
        text_add(&text, "\n");
    }
    return text_take(&text);
}
