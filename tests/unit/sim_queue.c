/* sim_queue.c: the virtual clock and its heap. */
#include <criterion/criterion.h>

#include "../../sim/queue.h"
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
        cr_assert_eq(sim_queue_next_us(&queue), queue.heap[0].time_us);
        cr_assert(sim_queue_take(&queue, &item));
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
