/* curve.c: see curve.h. */
#include "run/curve.h"

#include <math.h>
#include <stdlib.h>

#include "run/models.h"

int curve_init(struct curve *curve, struct trainer *trainer, const struct source *data,
               uint64_t parameters, double every)
{
    *curve = (struct curve){.trainer = trainer, .data = data, .every = every};
    curve->mean = malloc(parameters * sizeof *curve->mean);
    return curve->mean ? 0 : PARLEY_ENOMEM;
}

static bool trains(const struct parley_sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes; i++) {
        struct parley_view view;
        if (!parley_sim_live(sim, i)) continue;
        parley_sim_view(sim, i, &view);
        if (view.phase <= PARLEY_PHASE_TRAIN) return true;
    }
    return false;
}

/* Every other point is dropped; they then lie twice as far apart. */
static void thin(struct curve *curve)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < curve->count; i += 2)
        curve->points[kept++] = curve->points[i];
    curve->count = kept;
    curve->every *= 2;
}

static struct curve_point *add(struct curve *curve, struct parley_sim *sim)
{
    struct curve_point *point = &curve->points[curve->count++];
    *point = (struct curve_point){
        .time_s = (double)parley_sim_now(sim) / 1e6,
        .bytes = (double)parley_sim_bytes_sent(sim),
        .samples = (double)sim->samples,
        .epoch = (double)sim->samples / curve->data->train.count,
        .accuracy = NAN,
        .loss = NAN,
        .drift = models_drift(sim),
    };
    return point;
}

static void judge(struct curve *curve, struct parley_sim *sim, struct curve_point *point)
{
    models_mean(sim, curve->mean);
    trainer_evaluate(curve->trainer, curve->mean, &curve->data->test, &point->accuracy,
                     &point->loss);
}

void curve_look(struct curve *curve, struct parley_sim *sim, double place)
{
    if (place < curve->next || parley_sim_live_count(sim) == 0) return;
    if (curve->count >= 2 * CURVE_POINTS) thin(curve);
    struct curve_point *point = add(curve, sim);
    if (curve->trainer) judge(curve, sim, point);
    curve->next = (floor(place / curve->every) + 1) * curve->every;
    curve->after_s = 0;
}

void curve_settle(struct curve *curve, struct parley_sim *sim, double trained_s)
{
    double now = (double)parley_sim_now(sim) / 1e6;
    if (curve->count == 0 || curve->count >= CURVE_POINTS_MAX - 1) return;
    if (curve->after_s == 0) {
        curve->pause_s = fmax(trained_s / 200, 1e-3);
        curve->after_s = trained_s + curve->pause_s;
    }
    if (now < curve->after_s) return;
    if (curve->points[curve->count - 1].drift > 0 && !trains(sim)) {
        add(curve, sim);
        curve->pause_s *= 1.15;
    }
    curve->after_s = now + curve->pause_s;
}

void curve_end(struct curve *curve, struct parley_sim *sim, double time_s, double accuracy,
               double loss)
{
    while (curve->count > 0 &&
           (curve->count == CURVE_POINTS_MAX || curve->points[curve->count - 1].time_s > time_s))
        curve->count--;
    struct curve_point *point = add(curve, sim);
    point->time_s = time_s;
    point->accuracy = accuracy;
    point->loss = loss;
}

void curve_close(struct curve *curve)
{
    free(curve->mean);
    curve->mean = NULL;
}
