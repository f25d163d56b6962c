/* The addresses a node starts from: which it dials once its list was read again. */
#include "lone.h"

enum { LIVES = 7 }; /* of the first list, the seed that a peer answers at */

static const char *const *list(const char *host)
{
    static char text[PARLEY_SEEDS_MAX][PARLEY_ADDRESS_SIZE];
    static const char *seeds[PARLEY_SEEDS_MAX];
    for (int i = 0; i < PARLEY_SEEDS_MAX; i++) {
        snprintf(text[i], sizeof text[i], "%s:%d", host, i + 1);
        seeds[i] = text[i];
    }
    return seeds;
}

static struct lone *node_with_all_seeds(void)
{
    struct parley_config config = lone_config();
    config.seeds = list("first");
    config.seeds_count = PARLEY_SEEDS_MAX;
    config.join_timeout_us = UINT64_MAX;
    config.redial_min_us = 10 * 1000000; /* so that there are not thousands of dials */
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    return lone;
}

static void read_again(struct lone *lone, const char *const *seeds, uint32_t count)
{
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_SEEDS, .seeds = {seeds, count}});
}

/* All dials under way are refused. Returns how many of them went to that host. */
static uint32_t refuse(struct lone *lone, const char *host)
{
    uint32_t count = 0;
    for (uint32_t id = 1; id <= lone->highest; id += 2) {
        if (lone->conns[id] != LONE_DIALED) continue;
        const struct conn *conn = connection_find(lone->node, id);
        count += strncmp(conn->address, host, strlen(host)) == 0;
        lone_closed(lone, id, PARLEY_CLOSED_REFUSED);
    }
    return count;
}

/* Time enough for each seed to be dialled twice. Returns as refuse(). */
static uint32_t dials_in_a_minute(struct lone *lone, const char *host)
{
    uint32_t count = 0;
    for (int i = 0; i < 600; i++) {
        count += refuse(lone, host);
        lone_run(lone, 100000);
    }
    return count;
}

/* A peer answers where the node has dialled that address. Returns the connection. */
static uint32_t answer_at(struct lone *lone, const char *address)
{
    for (uint32_t id = 1; id <= lone->highest; id += 2) {
        if (lone->conns[id] != LONE_DIALED ||
            strcmp(connection_find(lone->node, id)->address, address) != 0)
            continue;
        struct message_hello hello = lone_hello(lone, "b", 2000);
        lone_connected(lone, id);
        lone_say(lone, id, WIRE_HELLO, &hello);
        cr_assert_eq(lone->conns[id], LONE_OPEN);
        return id;
    }
    cr_assert(false, "%s is not dialled", address);
    return 0;
}

/* parley_seeds() promises both; a list that changes often would else be full one day. */
Test(seeds, a_list_read_again_is_dialled_and_what_left_it_is_not)
{
    struct lone *lone = node_with_all_seeds();
    cr_assert_geq(dials_in_a_minute(lone, "first"), PARLEY_SEEDS_MAX);
    const char *const seed = "second:1";
    read_again(lone, &seed, 1);
    refuse(lone, "");
    cr_assert_geq(dials_in_a_minute(lone, "second:1"), 2);
    cr_assert_eq(dials_in_a_minute(lone, "first"), 0);
    lone_free(lone);
}

/* The place of one that is dialled or linked is not given away: its connection names it. */
Test(seeds, a_link_to_a_seed_that_left_the_list_stays_and_is_not_dialled_again)
{
    struct lone *lone = node_with_all_seeds();
    char address[PARLEY_ADDRESS_SIZE];
    snprintf(address, sizeof address, "first:%d", LIVES);
    lone_tick(lone);
    uint32_t link = answer_at(lone, address);
    refuse(lone, "");
    read_again(lone, list("second"), PARLEY_SEEDS_MAX);
    cr_assert_eq(lone->conns[link], LONE_OPEN);
    lone_closed(lone, link, PARLEY_CLOSED_RESET);
    cr_assert_eq(dials_in_a_minute(lone, "first"), 0);
    cr_assert_geq(dials_in_a_minute(lone, "second"), PARLEY_SEEDS_MAX);
    lone_free(lone);
}

/* A name of several nodes is this one at times; so is one that somebody forwards back for a while.
 */
Test(seeds, where_this_node_itself_has_answered_another_may_later)
{
    const char *seed = "all:1";
    struct parley_config config = lone_config();
    config.seeds = &seed;
    config.seeds_count = 1;
    config.min_peers = 1;
    struct lone *lone = lone_new(&config);
    struct message_hello own = lone_hello(lone, config.name, config.boot);
    lone_start(lone);
    lone_connected(lone, 1);
    lone_say(lone, 1, WIRE_HELLO, &own);
    lone_closed(lone, 1, PARLEY_CLOSED_LOCAL);
    cr_assert(seeds_only_self(lone->node));
    lone_run(lone, config.redial_max_us - 1000);
    cr_assert_eq(lone->dials, 1, "there is no hurry");
    lone_run(lone, 2000);
    answer_at(lone, seed);
    cr_assert(!seeds_only_self(lone->node));
    lone_free(lone);
}

/* While all places of the list are taken, and some of those that leave it are being dialled. */
Test(seeds, a_whole_list_is_taken_in_the_place_of_another)
{
    struct lone *lone = node_with_all_seeds();
    lone_tick(lone);
    cr_assert_gt(lone->dials, 0);
    read_again(lone, list("second"), PARLEY_SEEDS_MAX);
    refuse(lone, "");
    cr_assert_geq(dials_in_a_minute(lone, "second"), PARLEY_SEEDS_MAX);
    for (uint32_t i = 0; i < lone->node->seeds_count; i++) {
        const struct seed_dial *seed = &lone->node->seeds[i];
        cr_assert(seed->off || strncmp(seed->address, "second", 6) == 0);
    }
    read_again(lone, NULL, 0);
    refuse(lone, "");
    cr_assert_eq(dials_in_a_minute(lone, ""), 0);
    lone_free(lone);
}
