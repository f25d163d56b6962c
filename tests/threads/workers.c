/* workers.c: the simulator's threads: order in a lane, results that no number of threads changes.
 */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../sim/world/compute/workers.h"
#include "parley/sim.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- Lanes ----------------------------------------------------------------------------------- */

enum { LANES = 20, JOBS = 300 };

struct number {
    struct sim_job job;
    uint64_t *sum; /* the lane's */
    uint64_t digit;
};

static void append_digit(struct sim_job *job, uint32_t thread)
{
    struct number *number = (struct number *)job;
    uint64_t before = *number->sum;
    (void)thread;
    for (volatile int i = 0; i < 300; i++) /* time for others to come in between */
        continue;
    *number->sum = before * 31 + number->digit;
}

/* A lane's jobs are made in their order, by any number of threads, those held back among them: the
 * sums say in which. */
static void lanes_keep_their_order(uint32_t threads)
{
    static struct number numbers[LANES][JOBS];
    struct sim_lane lanes[LANES] = {0};
    uint64_t sums[LANES] = {0}, expected = 0;
    struct sim_workers *workers;
    CHECK(sim_workers_new(&workers, threads) == 0);
    for (uint64_t j = 0; j < JOBS; j++) {
        expected = expected * 31 + j;
        for (int l = 0; l < LANES; l++) {
            numbers[l][j] = (struct number){{.make = append_digit}, &sums[l], j};
            struct sim_job *job = &numbers[l][j].job;
            (j % 3 == 0 ? sim_workers_give : sim_workers_hold)(workers, &lanes[l], job);
        }
        /* Now and then one in the middle is waited for: all before it are made by then. */
        if (j % 10 == 9)
            sim_workers_wait(workers, &lanes[j % LANES], &numbers[j % LANES][j - 5].job);
    }
    for (int l = 0; l < LANES; l++) {
        sim_workers_drain(workers, &lanes[l]);
        CHECK(sums[l] == expected);
    }
    sim_workers_free(workers);
}

/* With one thread nothing is made before its time: what is held back, when another is given. */
static void what_is_held_back_is_made_with_the_next(void)
{
    uint64_t sum = 0;
    struct number first = {{.make = append_digit}, &sum, 1}, second = first, third = first;
    struct sim_lane lane = {0};
    struct sim_workers *workers;
    CHECK(sim_workers_new(&workers, 1) == 0);
    sim_workers_hold(workers, &lane, &first.job);
    CHECK(!sim_workers_made(&first.job));
    sim_workers_give(workers, &lane, &second.job);
    CHECK(sim_workers_made(&first.job) && sim_workers_made(&second.job));
    sim_workers_hold(workers, &lane, &third.job);
    sim_workers_wait(workers, &lane, &third.job);
    CHECK(sim_workers_made(&third.job));
    sim_workers_free(workers);
}

/* ---- BLAS ------------------------------------------------------------------------------------ */

enum { SIZE = 112, PRODUCTS = 1500 }; /* smaller ones would need no buffer */

struct product {
    struct sim_job job;
    const float *a, *b, *right;
    bool same;
};

static void multiply(const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIZE, SIZE, SIZE, 1, a, SIZE, b, SIZE, 0,
                c, SIZE);
}

static void multiply_and_compare(struct sim_job *job, uint32_t thread)
{
    struct product *product = (struct product *)job;
    float c[SIZE * SIZE];
    (void)thread;
    product->same = true;
    for (int i = 0; i < PRODUCTS; i++) {
        multiply(product->a, product->b, c);
        product->same = product->same && memcmp(c, product->right, sizeof c) == 0;
    }
}

/* Products large enough for OpenBLAS's work buffers come out alike in four threads at once. */
static void threads_may_use_blas(void)
{
    static float a[SIZE * SIZE], b[SIZE * SIZE], right[SIZE * SIZE];
    struct product products[8];
    struct sim_lane lanes[8] = {0};
    struct sim_workers *workers;
    if (!sim_blas_is_safe()) return;
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = (float)(i % 97) / 97;
        b[i] = (float)(i % 89) / 89 - 0.5f;
    }
    multiply(a, b, right);
    CHECK(sim_workers_new(&workers, 4) == 0);
    for (int p = 0; p < 8; p++) {
        products[p] = (struct product){{.make = multiply_and_compare}, a, b, right, false};
        sim_workers_give(workers, &lanes[p], &products[p].job);
    }
    for (int p = 0; p < 8; p++) {
        sim_workers_wait(workers, &lanes[p], &products[p].job);
        CHECK(products[p].same);
    }
    sim_workers_free(workers);
}

/* ---- Simulations ----------------------------------------------------------------------------- */

enum { NODES = 6, PARAMETERS = 500 };

struct outcome {
    uint64_t hash;
    double mass_error, spread;
    float model[PARAMETERS];
};

static void wait_for_all(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->min_peers = NODES - 1;
}

/* Training, exchanges, looks in the middle of steps, a death in one, an agreement. */
static void simulate(uint32_t threads, struct outcome *outcome)
{
    struct parley_sim *sim;
    CHECK(parley_sim_new(&sim, &(struct parley_sim_options){.nodes = NODES,
                                                            .parameters = PARAMETERS,
                                                            .vectors = 2,
                                                            .seed = 5,
                                                            .rate = 0.01,
                                                            .latency_us = 300,
                                                            .threads = threads,
                                                            .configure = wait_for_all}) == 0);
    CHECK(parley_sim_run_for(sim, 150000) == 0);
    outcome->spread = parley_sim_spread(sim);
    parley_sim_kill(sim, 2, false);
    CHECK(parley_sim_run_for(sim, 100300) == 0);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    CHECK(parley_sim_step_until(sim, parley_sim_agreed, NULL, 60000000) == 0);
    outcome->hash = parley_sim_run_hash(sim);
    outcome->mass_error = parley_sim_mass_error(sim);
    memcpy(outcome->model, parley_sim_agreed_vector(sim, 0), sizeof outcome->model);
    parley_sim_free(sim);
}

static void no_result_depends_on_the_number_of_threads(void)
{
    static struct outcome one, many;
    simulate(1, &one);
    const uint32_t threads[] = {2, 4, 2};
    for (int i = 0; i < 3; i++) {
        simulate(threads[i], &many);
        CHECK(memcmp(&one, &many, sizeof one) == 0);
    }
}

int main(void)
{
    for (uint32_t threads = 1; threads <= 4; threads++)
        lanes_keep_their_order(threads);
    what_is_held_back_is_made_with_the_next();
    threads_may_use_blas();
    no_result_depends_on_the_number_of_threads();
    return 0;
}
