/* route.c: what the simulator makes of lines that lose packets, and that several messages share. */
#include <criterion/criterion.h>
#include <math.h>

#include "world/network/route.h"

enum { MESSAGES = 20000 };

static struct parley_sim *two_nodes(struct parley_sim_again again, double loss)
{
    struct parley_sim_options options = {.nodes = 2, .seed = 5, .loss = loss, .again = again};
    struct parley_sim *sim;
    cr_assert_eq(parley_sim_new(&sim, &options), 0);
    return sim;
}

/* The mean of many messages between the two, and how many of them ended their connection. */
static double mean_us(struct parley_sim *sim, size_t size, uint32_t *broken)
{
    double sum = 0;
    *broken = 0;
    for (int i = 0; i < MESSAGES; i++) {
        bool ends;
        sum += (double)sim_message_us(sim, &sim->hosts[0], &sim->hosts[1], size, &ends);
        *broken += ends;
    }
    return sum / MESSAGES;
}

Test(route, pauses_are_even_then_double_and_end_at_256_times_the_first)
{
    const struct parley_sim_again again = {.least_us = 10, .even = 3, .most = 15};
    cr_assert_eq(sim_again_us(&again, 0, 0), 10);
    cr_assert_eq(sim_again_us(&again, 0, 2), 10);
    cr_assert_eq(sim_again_us(&again, 0, 3), 20);
    cr_assert_eq(sim_again_us(&again, 0, 10), 2560);
    cr_assert_eq(sim_again_us(&again, 0, 11), 2560);
    cr_assert_eq(sim_again_us(&again, 0, 60), 2560);
}

Test(route, over_a_long_way_a_pause_is_several_ways_long)
{
    const struct parley_sim_again again = {.least_us = 16000, .ways = 3, .even = 6, .most = 15};
    cr_assert_eq(sim_again_us(&again, 5000, 0), 16000);
    cr_assert_eq(sim_again_us(&again, 100000, 0), 300000);
}

Test(route, a_packet_waits_a_pause_for_each_time_that_it_is_lost)
{
    /* Of a tenth lost, a packet is sent 1 / 0.9 times on average: 0.111 pauses. */
    struct parley_sim_again even = {.least_us = 16000, .even = 15, .most = 15};
    struct parley_sim *sim = two_nodes(even, 0.1);
    uint32_t broken;
    double one = mean_us(sim, 100, &broken);
    cr_assert_float_eq(one, 16000 * 0.1 / 0.9, 100, "%g us", one);
    cr_assert_eq(broken, 0);
    parley_sim_free(sim);
}

Test(route, of_many_packets_one_is_lost_almost_always_and_few_a_second_time)
{
    /* 22 packets, a tenth lost: all arrive at once in 0.9^22 = 10 % of cases; of 2.2 that go again
     * both arrive in 79 %. A message that is twice as long waits only a little longer. */
    struct parley_sim *sim = two_nodes((struct parley_sim_again){0}, 0.1);
    uint32_t broken;
    double mean = mean_us(sim, 22 * SIM_PACKET_BYTES, &broken);
    double wanted = 16000 * (1 - pow(0.9, 22)) * (1 + (1 - pow(0.9, 2.2)) / 0.9);
    cr_assert_float_eq(mean, wanted, 0.03 * wanted, "%g us for %g", mean, wanted);
    cr_assert_lt(mean_us(sim, 44 * SIM_PACKET_BYTES, &broken), 1.4 * mean);
    parley_sim_free(sim);
}

Test(route, what_is_lost_too_often_in_a_row_ends_its_connection)
{
    /* Half lost, three times at most: an eighth of all messages. */
    struct parley_sim *sim = two_nodes((struct parley_sim_again){.most = 3}, 0.5);
    uint32_t broken;
    mean_us(sim, 100, &broken);
    cr_assert_float_eq((double)broken / MESSAGES, 0.125, 0.01);
    parley_sim_free(sim);
}

Test(route, nothing_is_lost_on_the_way_to_oneself)
{
    struct parley_sim *sim = two_nodes((struct parley_sim_again){0}, 0.9);
    bool ends;
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(sim_message_us(sim, &sim->hosts[0], &sim->hosts[0], 100, &ends), 0);
        cr_assert(!ends);
    }
    parley_sim_free(sim);
}

/* ---- Lines: here of a byte a microsecond ----------------------------------------------------- */

static struct sim_line empty_line(void)
{
    return (struct sim_line){.rate_bytes = 1000000};
}

/* When a message is through whose last byte comes to the line now, its first span_us before. */
static uint64_t through_us(struct sim_line *line, uint64_t now_us, size_t size, uint64_t span_us)
{
    return sim_line_us(line, now_us, size, &span_us);
}

Test(route, a_message_that_comes_as_fast_as_the_line_goes_waits_for_nothing)
{
    struct sim_line line = empty_line();
    cr_assert_eq(through_us(&line, 5000, 1000, 1000), 5000);
    cr_assert_eq(through_us(&line, 6000, 1000, 1000), 6000, "right behind it");
}

Test(route, what_is_at_hand_takes_its_time_behind_what_was_there)
{
    struct sim_line line = empty_line();
    cr_assert_eq(through_us(&line, 5000, 1000, 0), 6000);
    cr_assert_eq(through_us(&line, 5400, 1000, 0), 7000);
}

Test(route, a_few_bytes_in_the_midst_of_a_message_cost_it_only_their_own_time)
{
    /* The long one is on the line from 4000 on. Each short one comes before its last byte, and
     * takes 10 us of it. */
    struct sim_line line = empty_line();
    for (uint64_t i = 0; i < 5; i++)
        cr_assert_eq(through_us(&line, 4110 + 150 * i, 10, 10), 4110 + 150 * i);
    cr_assert_eq(through_us(&line, 5000, 1000, 1000), 5050);
    cr_assert_eq(through_us(&line, 6000, 1000, 1000), 6050, "what they took is not made up for");
}

Test(route, two_that_come_at_once_share_the_line)
{
    struct sim_line line = empty_line();
    cr_assert_eq(through_us(&line, 5000, 1000, 1000), 5000);
    cr_assert_eq(through_us(&line, 5000, 1000, 1000), 6000);
}

Test(route, those_who_send_slowly_together_fill_the_line_and_no_more)
{
    /* Ten that each come at a tenth of its rate, all at the same time; an eleventh is too much. */
    struct sim_line line = empty_line();
    for (int i = 0; i < 10; i++)
        cr_assert_eq(through_us(&line, 10000, 1000, 10000), 10000);
    cr_assert_eq(through_us(&line, 10000, 1000, 10000), 11000);
}

Test(route, a_line_carries_no_more_than_its_rate)
{
    /* Messages of any sizes and spans: from one time to another all that has come through is no
     * more than the line could take in between, and the last comes when a queue would let it. */
    struct rng rng = rng_init(3, 0);
    for (int trial = 0; trial < 100; trial++) {
        struct sim_line line = empty_line();
        uint64_t now_us = 1000000, bytes = 0, last_us = 0, first_us = now_us;
        for (int i = 0; i < 200; i++) {
            uint32_t size = 1 + rng_below(&rng, 2000), span = rng_below(&rng, 3000);
            now_us += rng_below(&rng, 1500);
            uint64_t end_us = through_us(&line, now_us, size, span);
            cr_assert_geq(end_us, now_us);
            if (now_us - span < first_us) first_us = now_us - span;
            if (end_us > last_us) last_us = end_us;
            bytes += size;
            cr_assert_leq(bytes, last_us - first_us, "trial %d, message %d", trial, i);
        }
    }
}

Test(route, what_follows_on_a_connection_never_overtakes)
{
    /* Three connections whose messages come in their order, some of less than a microsecond. */
    struct rng rng = rng_init(4, 0);
    for (int trial = 0; trial < 200; trial++) {
        struct sim_line line = {.rate_bytes = 100000000};
        uint64_t came_us[3] = {0}, ended_us[3] = {0}, now_us = 1000000;
        for (int i = 0; i < 300; i++) {
            uint32_t size = rng_below(&rng, 2) ? rng_below(&rng, 200) : rng_below(&rng, 200000);
            uint32_t conn = rng_below(&rng, 3), span = rng_below(&rng, 3000);
            now_us += rng_below(&rng, 700);
            if (now_us - span < came_us[conn]) span = (uint32_t)(now_us - came_us[conn]);
            uint64_t end_us = through_us(&line, now_us, size, span);
            cr_assert_geq(end_us, ended_us[conn], "trial %d, message %d", trial, i);
            came_us[conn] = now_us;
            ended_us[conn] = end_us;
        }
    }
}
