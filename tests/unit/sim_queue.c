/* sim_queue.c: the virtual clock and its radix heap. */
#include <criterion/criterion.h>
#include <math.h>

#include "../../sim/world/cluster.h"
#include "../../sim/world/queue.h"
#include "core/rng.h"

Test(sim_queue, items_leave_by_time_and_then_in_the_order_they_came)
{
    /* Ten thousand draws with many ties come out sorted by (time, order), and the clock follows. */
    struct sim_queue queue;
    struct rng rng = rng_init(1, 1);
    struct sim_item item;
    uint64_t time_us = 0, number = 0;
    sim_queue_init(&queue);
    for (uint64_t i = 0; i < 10000; i++)
        cr_assert_eq(
            sim_queue_put(&queue, (struct sim_item){.time_us = rng_below(&rng, 50), .number = i}),
            0);
    for (int i = 0; i < 10000; i++) {
        uint64_t next_us = sim_queue_next_us(&queue);
        cr_assert(sim_queue_take(&queue, &item));
        cr_assert_eq(item.time_us, next_us);
        cr_assert(item.time_us > time_us || (item.time_us == time_us && item.number >= number));
        cr_assert_eq(queue.now_us, item.time_us);
        time_us = item.time_us;
        number = item.number;
    }
    cr_assert_not(sim_queue_take(&queue, &item));
    cr_assert_eq(sim_queue_next_us(&queue), UINT64_MAX);
    sim_queue_close(&queue);
}

Test(sim_queue, the_past_is_now)
{
    /* An item for a time gone by happens at the present one: the clock never goes back. */
    struct sim_queue queue;
    struct sim_item item;
    sim_queue_init(&queue);
    cr_assert_eq(sim_queue_put(&queue, (struct sim_item){.time_us = 100}), 0);
    cr_assert(sim_queue_take(&queue, &item));
    cr_assert_eq(sim_queue_put(&queue, (struct sim_item){.time_us = 50, .number = 1}), 0);
    cr_assert(sim_queue_take(&queue, &item));
    cr_assert_eq(item.time_us, 100);
    cr_assert_eq(queue.now_us, 100);
    sim_queue_close(&queue);
}

Test(sim_queue, what_comes_at_the_same_time_can_be_seen_ahead)
{
    /* So that its memory can be asked for: items of this moment, no later ones, none that are gone.
     */
    struct sim_queue queue;
    struct sim_item item;
    sim_queue_init(&queue);
    cr_assert_null(sim_queue_ahead(&queue, 0));
    for (uint64_t i = 0; i < 4; i++)
        cr_assert_eq(sim_queue_put(&queue, (struct sim_item){.time_us = 7, .number = i}), 0);
    cr_assert_eq(sim_queue_put(&queue, (struct sim_item){.time_us = 8}), 0);
    cr_assert(sim_queue_take(&queue, &item));
    cr_assert_eq(sim_queue_ahead(&queue, 0)->number, 1);
    cr_assert_eq(sim_queue_ahead(&queue, 2)->number, 3);
    cr_assert_null(sim_queue_ahead(&queue, 3));
    cr_assert(sim_queue_take(&queue, &item));
    cr_assert_eq(sim_queue_ahead(&queue, 0)->number, 2);
    sim_queue_close(&queue);
}

/* The number of the item that must leave next: the least time, and of those the first to come. */
static uint64_t expected(const uint64_t *time_us, uint64_t count)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < count; i++)
        if (time_us[i] < time_us[best]) best = i;
    return best;
}

Test(sim_queue, items_put_in_while_others_leave_keep_the_order)
{
    /* Against a plain search: puts between takes, times from now to far away, the clock sometimes
     * moved on by hand as far as the next item allows. */
    enum { COUNT = 3000 };
    static uint64_t time_us[COUNT];
    struct sim_queue queue;
    struct rng rng = rng_init(2, 1);
    struct sim_item item;
    uint64_t put = 0, left = 0;
    sim_queue_init(&queue);
    while (left < COUNT) {
        if (put < COUNT && rng_below(&rng, 3) > 0) {
            uint64_t away = rng_next(&rng) >> (rng_below(&rng, 52) + 12);
            time_us[put] = queue.now_us + (rng_below(&rng, 4) ? away : 0);
            item = (struct sim_item){.time_us = time_us[put], .number = put};
            put++;
            cr_assert_eq(sim_queue_put(&queue, item), 0);
        } else if (left < put) {
            uint64_t next = expected(time_us, put);
            cr_assert_eq(sim_queue_next_us(&queue), time_us[next]);
            cr_assert(sim_queue_take(&queue, &item));
            cr_assert_eq(item.number, next);
            time_us[next] = UINT64_MAX;
            left++;
            uint64_t gap = sim_queue_next_us(&queue) - queue.now_us;
            if (left < put && rng_below(&rng, 4) == 0) queue.now_us += gap / 2;
        }
    }
    sim_queue_close(&queue);
}

/* The share of a hundred thousand draws that are below `us`. */
static double share_below(const struct sim_time *time, double us)
{
    enum { DRAWS = 100000 };
    struct rng rng = rng_init(3, 1);
    uint32_t below = 0;
    for (uint32_t i = 0; i < DRAWS; i++)
        below += (double)sim_draw_us(&rng, time) < us;
    return below / (double)DRAWS;
}

Test(sim_queue, times_are_drawn_from_the_distribution_that_is_given)
{
    /* A constant; a uniform between its ends; a lognormal with its median, and with the shares of a
     * normal distribution one and two sigma away from it, on either side. */
    const struct sim_time constant = {.low_us = 7}, uniform = {.low_us = 1000, .high_us = 3000},
                          lognormal = {.low_us = 100000, .sigma = 0.5};
    static const double shares[][2] = {
        {-2, 0.0228}, {-1, 0.1587}, {0, 0.5}, {1, 0.8413}, {2, 0.9772}};
    cr_assert(share_below(&constant, 7) == 0 && share_below(&constant, 8) == 1);
    cr_assert(share_below(&uniform, 1000) == 0 && share_below(&uniform, 3000) == 1);
    cr_assert_float_eq(share_below(&uniform, 1500), 0.25, 0.01);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        cr_assert_float_eq(share_below(&lognormal, 100000 * exp(0.5 * shares[i][0])), shares[i][1],
                           0.01, "%g sigma", shares[i][0]);
}
