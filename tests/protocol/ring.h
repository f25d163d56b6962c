/* ring.h: clusters of a strategy on the ring, of vectors whose gradients tell who contributed. */
#ifndef PARLEY_TESTS_RING_H
#define PARLEY_TESTS_RING_H

#include "run/training.h"
#include "scene.h"
#include "world/cluster.h"

enum { NODES_MAX = 96 };

struct vectors {
    uint64_t parameters;
    uint32_t made[NODES_MAX];
};

static inline void vectors_start(void *pointer, uint32_t node, float *const *vectors)
{
    struct vectors *self = pointer;
    self->made[node] = 0;
    memset(vectors[0], 0, self->parameters * sizeof(float));
}

static inline double vectors_gradient(void *pointer, uint32_t node, uint32_t thread, const float *x,
                                      float *to, const struct trainer_turn *turn)
{
    struct vectors *self = pointer;
    (void)turn;
    struct rng rng = rng_init(node + 1, self->made[node]++);
    (void)thread;
    for (uint64_t j = 0; j < self->parameters; j++)
        to[j] = x[j] / 10 + (float)rng_normal(&rng);
    return 1;
}

static inline double vectors_step(void *pointer, uint32_t node, uint32_t thread, const float *from,
                                  float *const *vectors, const struct trainer_turn *turn)
{
    const struct vectors *self = pointer;
    struct rng rng = rng_init(node + 1, turn->steps);
    (void)thread;
    for (uint64_t j = 0; j < self->parameters; j++)
        vectors[0][j] = from[j] + (float)rng_normal(&rng);
    return 1;
}

static inline void vectors_apply(void *pointer, uint32_t node, uint32_t thread,
                                 float *const *vectors, const float *from, float factor,
                                 const struct trainer_turn *turn)
{
    const struct vectors *self = pointer;
    (void)node;
    (void)thread;
    (void)turn;
    for (uint64_t j = 0; j < self->parameters; j++)
        vectors[0][j] -= factor * from[j];
}

struct ring_scene {
    enum parley_strategy strategy;
    uint32_t nodes, peers;
    uint64_t seed, latency_us;
    uint64_t compute_us; /* 0: 10 ms, or 1 where there is a budget */
    uint64_t steps;      /* budget; 0: none */
    uint64_t late_us;    /* when the last node starts */
    uint64_t float_ps;   /* of an operation on vectors */
    bool narrow;         /* one thing to be added at a time has room */
    uint32_t links;      /* connections_max, of as many members as there are nodes; 0: the usual */
    const double *outer; /* rate and momentum of DILOCO; NULL: the defaults */
    struct parley_resumed resumed; /* of who is started from now on */
    struct vectors vectors;
    struct sim_task task;
};

static inline void configure(struct parley_config *config, uint32_t node, void *arg)
{
    const struct ring_scene *scene = arg;
    (void)node;
    config->strategy = scene->strategy;
    config->min_peers = scene->peers;
    config->steps_budget = scene->steps;
    config->mix_every = 4;
    config->resumed = scene->resumed;
    if (scene->narrow) config->lanes_bytes = 0;
    if (scene->links) {
        config->connections_max = scene->links;
        config->members_max = scene->nodes;
    }
    if (!scene->outer) return;
    config->outer_rate = scene->outer[0];
    config->outer_momentum = scene->outer[1];
}

/* Of the task that stands in the scene. */
static inline struct parley_sim *begin_task(struct ring_scene *scene)
{
    uint64_t starts[NODES_MAX] = {0};
    starts[scene->nodes - 1] = scene->late_us;
    scene->peers = scene->nodes - 1 - (scene->late_us > 0);
    if (scene->compute_us == 0) scene->compute_us = scene->steps ? 1000 : 10000;
    struct sim_options options = {
        .base = {.nodes = scene->nodes,
                 .parameters = scene->task.parameters,
                 .vectors = scene->task.vectors,
                 .seed = scene->seed,
                 .seeds = 2 < scene->nodes ? 2 : scene->nodes,
                 .start_us = starts,
                 .configure = configure,
                 .arg = scene,
                 .threads = 1},
        .compute = {.low_us = scene->compute_us, .high_us = scene->compute_us},
        .latency = {.low_us = scene->latency_us, .high_us = scene->latency_us},
        .float_ps = scene->float_ps,
        .check_events = scene->nodes <= 8 ? 1 : 1000, /* it looks at all members */
    };
    struct parley_sim *sim;
    int error = sim_new(&sim, &options, &scene->task);
    cr_assert_eq(error, 0, "%s", parley_error_name(error));
    return sim;
}

static inline struct sim_task task_of(struct ring_scene *scene)
{
    return (struct sim_task){
        .self = &scene->vectors,
        .parameters = scene->vectors.parameters,
        .vectors = 1,
        .batch = 1,
        .alike = true,
        .model_digest = 1,
        .start = vectors_start,
        .step = vectors_step,
        .gradient = vectors_gradient,
        .apply = vectors_apply,
    };
}

static inline struct parley_sim *begin(struct ring_scene *scene)
{
    scene->task = task_of(scene);
    return begin_task(scene);
}

/* All live nodes end with one model, and had one before they averaged anything. */
static inline void end(struct parley_sim *sim, const struct ring_scene *scene)
{
    uint32_t who = 0;
    while (!parley_sim_live(sim, who))
        who++;
    if (!scene->steps) parley_sim_stop(sim, who, PARLEY_STOP_OPERATOR);
    scene_until(sim, scene->nodes, parley_sim_agreed, NULL, 90);
    for (uint32_t i = 0; i < scene->nodes; i++) {
        if (!parley_sim_live(sim, i)) continue;
        struct parley_view view = scene_view(sim, i);
        if (scene->strategy == PARLEY_STRATEGY_ALLREDUCE)
            cr_assert_eq(view.drift_before, 0, "n%u: %g", i, view.drift_before);
        cr_assert_eq(memcmp(parley_sim_agreed_vector(sim, i), parley_sim_agreed_vector(sim, who),
                            scene->vectors.parameters * sizeof(float)),
                     0);
    }
    parley_sim_free(sim);
}

#endif
