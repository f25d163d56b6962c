/* votes.c: --quorum majority, and nodes that are started anew.
 *
 * Five nodes, of which three are a majority. n0 to n2 agree while n3 and n4, cut off, train on;
 * then n2 is started again among those two.
 */
#include "scene.h"

enum { NODES = 5 };

struct votes {
    enum parley_earlier earlier[NODES];
    uint32_t met;  /* peers that each waits for */
    uint32_t room; /* for records; 0: as is the default */
};

static void majority(struct parley_config *config, uint32_t node, void *arg)
{
    const struct votes *votes = arg;
    config->min_peers = votes->met;
    config->quorum = PARLEY_QUORUM_MAJORITY;
    config->nodes = NODES;
    config->earlier = votes->earlier[node];
    config->settle_timeout_us = 5 * SECOND;
    if (votes->room) config->members_max = votes->room;
}

static struct parley_sim *trained(struct votes *votes, uint64_t seed)
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = NODES,
                                                                .seed = seed,
                                                                .seeds = NODES,
                                                                .rate = 0.001,
                                                                .latency_us = 500,
                                                                .configure = majority,
                                                                .arg = votes});
    votes->met = NODES - 1;
    scene_train(sim, NODES);
    scene_run(sim, SECOND);
    votes->met = 0;
    return sim;
}

static bool is_done(const struct parley_sim *sim, uint32_t node)
{
    return scene_view(sim, node).phase == PARLEY_PHASE_DONE;
}

static bool has_joined(struct parley_sim *sim, void *arg)
{
    (void)arg;
    return scene_view(sim, 2).phase == PARLEY_PHASE_TRAIN;
}

/* Three of them, the first being ... */
static bool three_ended(struct parley_sim *sim, void *first)
{
    for (uint32_t i = *(uint32_t *)first, last = i + 2; i <= last; i++)
        if (!parley_sim_finished(sim, i, NULL)) return false;
    return true;
}

static void stop_last_three(struct parley_sim *sim)
{
    for (uint32_t i = 2; i < NODES; i++)
        parley_sim_stop(sim, i, PARLEY_STOP_OPERATOR);
}

/* How many of n2 to n4 are done, in the end. */
static uint32_t last_three_done(struct parley_sim *sim)
{
    uint32_t first = 2;
    stop_last_three(sim);
    scene_until(sim, NODES, three_ended, &first, 600);
    return (uint32_t)is_done(sim, 2) + is_done(sim, 3) + is_done(sim, 4);
}

/* n0 to n2 agree and are gone; n3 and n4 know nothing of it. */
static struct parley_sim *three_agreed(struct votes *votes, uint64_t seed)
{
    struct parley_sim *sim = trained(votes, seed);
    uint32_t first = 0;
    parley_sim_partition(sim, (const uint32_t[]){0, 0, 0, 1, 1});
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, NODES, three_ended, &first, 90);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert(is_done(sim, i), "n%u", i);
    cr_assert(!is_done(sim, 3) && !is_done(sim, 4));
    return sim;
}

/* n2, among n3 and n4. */
static void start_again(struct parley_sim *sim)
{
    parley_sim_kill(sim, 2, false);
    parley_sim_heal(sim);
    parley_sim_partition(sim, (const uint32_t[]){0, 0, 1, 1, 1});
    parley_sim_start(sim, 2);
}

static void join_again(struct parley_sim *sim)
{
    start_again(sim);
    scene_run(sim, SECOND); /* what is seen before is its earlier start */
    scene_until(sim, NODES, has_joined, NULL, 60);
}

Test(votes, who_has_agreed_and_was_started_anew_is_no_third_of_a_second_majority)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct votes votes = {0};
        struct parley_sim *sim = three_agreed(&votes, seed);
        join_again(sim);
        cr_assert_eq(last_three_done(sim), 0);
        parley_sim_free(sim);
    }
}

struct lines {
    uint32_t lacks, uncounted; /* what n3 has said: all, and those that tell of n1 and n2 */
};

static void on_line(const char *line, void *arg)
{
    struct lines *lines = arg;
    if (!strstr(line, " n3 ") || !strstr(line, "waiting for others")) return;
    lines->lacks++;
    lines->uncounted +=
        strstr(line, "only 2 of 5 nodes are here") && strstr(line, "not counted: 2 started anew");
}

Test(votes, who_waits_is_told_why_those_who_have_come_are_not_enough)
{
    struct votes votes = {0};
    struct lines lines = {0};
    struct parley_sim *sim = three_agreed(&votes, 11);
    parley_sim_on_line(sim, PARLEY_LOG_WARN, on_line, &lines);
    stop_last_three(sim);
    scene_run(sim, 20 * SECOND);
    cr_assert(lines.lacks == 1 && lines.uncounted == 0);
    /* n1 and n2 train anew, by themselves, before they come. */
    parley_sim_kill(sim, 1, false);
    parley_sim_kill(sim, 2, false);
    parley_sim_heal(sim);
    parley_sim_partition(sim, (const uint32_t[]){0, 2, 2, 1, 1});
    parley_sim_start(sim, 1);
    parley_sim_start(sim, 2);
    scene_run(sim, SECOND);
    scene_until(sim, NODES, has_joined, NULL, 60);
    parley_sim_stop(sim, 2, PARLEY_STOP_OPERATOR);
    scene_run(sim, 5 * SECOND);
    parley_sim_heal(sim);
    parley_sim_partition(sim, (const uint32_t[]){0, 1, 1, 1, 1});
    scene_run(sim, 20 * SECOND);
    cr_assert(lines.uncounted > 0);
    parley_sim_free(sim);
}

Test(votes, who_was_started_anew_in_training_does_not_count_and_gets_the_model_of_those_who_do)
{
    struct votes votes = {0};
    struct parley_sim *sim = trained(&votes, 6);
    join_again(sim);
    /* With n2 they would be three of five. */
    stop_last_three(sim);
    scene_run(sim, 20 * SECOND);
    for (uint32_t i = 2; i < NODES; i++)
        cr_assert(!is_done(sim, i), "n%u", i);
    parley_sim_heal(sim);
    scene_agree(sim, NODES, 0);
    parley_sim_free(sim);
}

Test(votes, who_knows_that_it_never_held_a_model_counts_like_any_other)
{
    struct votes votes = {.earlier = {[2] = PARLEY_EARLIER_NEVER_HELD}};
    struct parley_sim *sim = trained(&votes, 7);
    join_again(sim);
    cr_assert_eq(last_three_done(sim), 3);
    parley_sim_free(sim);
}

Test(votes, who_left_in_training_and_is_back_counts_as_it_said_that_it_had_locked_nothing)
{
    struct votes votes = {0};
    struct parley_sim *sim = trained(&votes, 8);
    parley_sim_leave(sim, 2);
    scene_run(sim, 12 * SECOND);
    cr_assert(parley_sim_finished(sim, 2, NULL));
    join_again(sim);
    cr_assert_eq(last_three_done(sim), 3);
    parley_sim_free(sim);
}

Test(votes, who_knows_that_it_has_held_one_does_not_count_among_those_who_never_met_it)
{
    /* n3 and n4 are started anew, too, and have forgotten n2 with all else. */
    for (int held = 0; held < 2; held++) {
        struct votes votes = {0};
        struct parley_sim *sim = three_agreed(&votes, 9);
        for (uint32_t i = 3; i < NODES; i++)
            parley_sim_kill(sim, i, false);
        votes.earlier[2] = held ? PARLEY_EARLIER_HELD : PARLEY_EARLIER_UNKNOWN;
        start_again(sim);
        for (uint32_t i = 3; i < NODES; i++)
            parley_sim_start(sim, i);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(last_three_done(sim), held ? 0 : 3);
        parley_sim_free(sim);
    }
}

Test(votes, whose_earlier_start_found_no_room_among_the_records_does_not_count_either)
{
    /* Nor at its third start, whose record takes the place of the second's, which left. */
    for (int starts = 1; starts <= 2; starts++) {
        struct votes votes = {.room = NODES};
        struct parley_sim *sim = three_agreed(&votes, (uint64_t)(12 + starts));
        for (int i = 0; i < starts; i++) {
            if (i > 0) parley_sim_leave(sim, 2);
            scene_run(sim, 20 * SECOND);
            join_again(sim);
        }
        cr_assert_eq(last_three_done(sim), 0, "started anew %d times", starts);
        parley_sim_free(sim);
    }
}
