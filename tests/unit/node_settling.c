/* One node, its peers played by hand: with whom it averages while it settles, and for how long it
 * waits for them. */
#include "lone_talk.h"

/* The peer at `conn`, of that name, has ended training and is in that phase. */
static void say_phase(struct lone *lone, uint32_t conn, char name, enum parley_phase phase)
{
    static uint32_t clock;
    struct record r = training_a((uint64_t)(name - 'a' + 1));
    r.name[0] = name;
    r.clock = ++clock;
    r.phase = phase;
    r.stop = phase == PARLEY_PHASE_TRAIN ? PARLEY_STOP_NONE : PARLEY_STOP_OPERATOR;
    say_record(lone, conn, &r);
}

/* All peers go on to say that they live. */
static void keep_alive(struct lone *lone, const uint32_t *conns, uint32_t count, uint32_t seconds)
{
    for (uint32_t second = 0; second < seconds; second++) {
        for (uint32_t i = 0; i < count; i++)
            say_lives(lone, conns[i]);
        lone_run(lone, 1000000);
        lone_done_all(lone);
    }
}

/* Has ended training, with so many peers that have too. */
static struct lone *settling_node(uint32_t *conns, uint32_t count)
{
    struct lone *lone = plain_node();
    for (uint32_t i = 0; i < count; i++)
        conns[i] = accepted_peer(lone, (char[]){(char)('a' + i), 0}, 1 + i);
    for (uint32_t i = 0; i < count; i++)
        say_phase(lone, conns[i], (char)('a' + i), PARLEY_PHASE_SETTLE);
    keep_alive(lone, conns, count, 1);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_SETTLE);
    cr_assert(pairing_is_kept(lone->node));
    return lone;
}

/* Offers, as one of a round, counted from 0, or by chance. */
static bool is_taken(struct lone *lone, uint32_t conn, uint32_t sequence, uint32_t round,
                     enum message_settles settles)
{
    struct message_exchange offer = {.sequence = sequence, .settles = settles};
    if (settles == MESSAGE_BY_SCHEDULE) {
        offer.round = round + 1;
        offer.line = (uint32_t)lone->node->exchange.pairing.among;
    }
    lone_say(lone, conn, WIRE_OFFER, &offer);
    return responder(lone)->state != SLOT_IDLE;
}

/* The peer at `conn` averages with the node, as it is its turn. */
static void average(struct lone *lone, uint32_t conn, uint32_t sequence)
{
    uint32_t round = lone->node->exchange.pairing.round;
    cr_assert(is_taken(lone, conn, sequence, round, MESSAGE_BY_SCHEDULE));
    lone_done_all(lone);
    say_chunk(lone, conn, WIRE_STREAM_OFFER, sequence, 0, true);
    lone_done_all(lone);
    lone_say(lone, conn, WIRE_COMMIT, &(struct message_exchange){.sequence = sequence});
    lone_done_all(lone);
    cr_assert_eq(responder(lone)->state, SLOT_IDLE);
}

Test(node_settling, a_partner_is_waited_for_as_long_as_it_may_take_to_come_to_this_round)
{
    /* Ten seconds a round; of three, one meets nobody in a round and has to wait for another. Or
     * three times as long as a round has taken. */
    static const uint32_t cases[][3] = {
        {1, 0, 10}, {2, 0, 20}, {1, 8, 24}}; /* peers, took, waits */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t conns[2], peers = cases[i][0], took = cases[i][1], waits = cases[i][2];
        struct lone *lone = settling_node(conns, peers);
        if (took > 0) {
            keep_alive(lone, conns, peers, took - 1); /* it should have asked, and is asked */
            const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
            struct message_exchange m = {.sequence = asks->sequence, .share = SHARE_ALONE};
            to_committed(lone, conns[0], &m);
            cr_assert_eq(asks->state, SLOT_IDLE);
        }
        keep_alive(lone, conns, peers, waits - 2);
        cr_assert(pairing_is_kept(lone->node), "%zu", i);
        keep_alive(lone, conns, peers, 4);
        cr_assert_not(pairing_is_kept(lone->node), "%zu", i);
        lone_free(lone);
    }
}

Test(node_settling, whose_training_has_not_ended_yet_is_waited_for)
{
    uint32_t conn;
    struct lone *lone = settling_node(&conn, 1);
    say_phase(lone, conn, 'a', PARLEY_PHASE_TRAIN);
    keep_alive(lone, &conn, 1, 30);
    say_phase(lone, conn, 'a', PARLEY_PHASE_SETTLE);
    keep_alive(lone, &conn, 1, 8);
    cr_assert(pairing_is_kept(lone->node));
    lone_free(lone);
}

Test(node_settling, who_has_proposed_is_asked_as_it_asks_nobody)
{
    /* Proves that a node whose turn it is to be asked does not wait for it in vain. */
    for (int proposed = 0; proposed < 2; proposed++) {
        uint32_t conn;
        struct lone *lone = settling_node(&conn, 1);
        cr_assert_not(lone->node->exchange.pairing.asks);
        say_phase(lone, conn, 'a', proposed ? PARLEY_PHASE_PROPOSED : PARLEY_PHASE_SETTLE);
        lone_run(lone, 200000);
        cr_assert_eq(lone->node->exchange.slots[INITIATOR].state != SLOT_IDLE, proposed);
        lone_free(lone);
    }
}

Test(node_settling, who_is_behind_is_helped_on_and_who_is_ahead_is_to_wait)
{
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t conn;
        struct lone *lone = settling_node(&conn, 1);
        average(lone, conn, 7);
        cr_assert_eq(is_taken(lone, conn, 8, round, MESSAGE_BY_SCHEDULE), round < 2, "%u", round);
        lone_free(lone);
    }
}

Test(node_settling, who_is_asked_by_chance_goes_by_chance)
{
    uint32_t conn;
    struct lone *lone = settling_node(&conn, 1);
    cr_assert(is_taken(lone, conn, 7, 0, MESSAGE_BY_CHANCE));
    cr_assert_not(pairing_is_kept(lone->node));
    lone_free(lone);
}

Test(node_settling, an_exchange_with_a_partner_that_is_suspected_is_not_given_up)
{
    uint32_t conns[2];
    struct lone *lone = settling_node(conns, 2);
    const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
    keep_alive(lone, conns, 2, 5); /* it should have asked, and is asked */
    uint32_t at = (uint32_t)lone->node->exchange.pairing.partner;
    struct message_exchange m = {.sequence = asks->sequence, .share = SHARE_ALONE};
    struct record silent = *record_of(lone->node, at);
    lone_say(lone, conns[at - 1], WIRE_ACCEPT, &m);
    lone_silence(lone);
    silent.state = PARLEY_MEMBER_SUSPECT;
    say_record(lone, conns[2 - at], &silent);
    cr_assert_eq(record_of(lone->node, at)->state, PARLEY_MEMBER_SUSPECT);
    cr_assert(slot_is_open(asks) && asks->sequence == m.sequence);
    lone_free(lone);
}

Test(node_settling, where_somebody_comes_the_first_sweep_is_over_as_soon_as_ever)
{
    uint32_t conns[2];
    struct lone *lone = settling_node(conns, 1);
    for (uint32_t round = 0; round < 9; round++) {
        average(lone, conns[0], 7 + round);
        pairing_sweep(lone->node);
    }
    conns[1] = accepted_peer(lone, "b", 2);
    say_phase(lone, conns[1], 'b', PARLEY_PHASE_SETTLE);
    cr_assert_not(pairing_is_swept(lone->node));
    for (uint32_t round = 0; round < 3; round++)
        average(lone, conns[lone->node->exchange.pairing.partner - 1], 20 + round);
    cr_assert(pairing_is_swept(lone->node));
    lone_free(lone);
}

/* The peer at `conn` tells of a sketch that is equal to the node's own. */
static void say_sketch(struct lone *lone, uint32_t conn, uint64_t boot, uint32_t version)
{
    uint8_t bytes[MESSAGE_BUCKETS * 4];
    memcpy(bytes, lone->node->drift.own, sizeof bytes);
    struct message_sketches message = {.sketches = {{boot, version, {bytes, sizeof bytes}}},
                                       .count = 1};
    lone_say(lone, conn, WIRE_SKETCHES, &message);
}

/* Has averaged with all once, and taken its first sketch. */
static struct lone *sketched_node(uint32_t *conns, uint32_t count)
{
    struct lone *lone = settling_node(conns, count);
    for (uint32_t i = 0; i < 9 && lone->node->drift.version == 0; i++) {
        average(lone, conns[lone->node->exchange.pairing.partner - 1], 7 + i);
        keep_alive(lone, conns, count, 1);
    }
    cr_assert_eq(lone->node->drift.version, 1);
    return lone;
}

Test(node_settling, models_that_were_near_once_are_so_by_newer_sketches_of_all)
{
    uint32_t conn;
    struct lone *lone = sketched_node(&conn, 1);
    say_sketch(lone, conn, 1, 1);
    keep_alive(lone, &conn, 1, 1);
    cr_assert(lone->node->drift.passed == 1 && lone->node->drift.version == 2);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_SETTLE);
    say_sketch(lone, conn, 1, 2);
    keep_alive(lone, &conn, 1, 1);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_PROPOSED);
    lone_free(lone);
}

Test(node_settling, who_settles_again_with_one_that_has_come_proposes_in_the_next_generation)
{
    /* Proves that what it said in the one before, and others may have counted, is not what it says
     * of another model. */
    uint32_t conns[2];
    struct lone *lone = sketched_node(conns, 1);
    for (uint32_t version = 1; version <= 2; version++) {
        say_sketch(lone, conns[0], 1, version);
        keep_alive(lone, conns, 1, 1);
    }
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_PROPOSED);
    cr_assert_eq(self_of(lone->node)->generation, 1);
    conns[1] = accepted_peer(lone, "b", 2);
    say_phase(lone, conns[1], 'b', PARLEY_PHASE_SETTLE);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_SETTLE);
    cr_assert_eq(self_of(lone->node)->generation, 2);
    lone_free(lone);
}

Test(node_settling, who_has_proposed_is_measured_by_its_newest_sketch)
{
    for (uint32_t version = 1; version <= 2; version++) {
        uint32_t conn;
        struct lone *lone = sketched_node(&conn, 1);
        record_of(lone->node, 1)->sketch = 2;
        record_of(lone->node, 1)->phase = PARLEY_PHASE_PROPOSED;
        say_sketch(lone, conn, 1, version);
        cr_assert_eq(self_of(lone->node)->measured > 0, version == 2);
        lone_free(lone);
    }
}

Test(node_settling, each_is_asked_in_turn_for_the_sketches_of_whom_no_link_leads_to)
{
    for (int i = 0; i < 2; i++) {
        uint32_t conns[2];
        struct lone *lone = sketched_node(conns, 2);
        struct record c = *record_of(lone->node, 1);
        struct message_sketches message;
        uint32_t asked = 0;
        c.boot = 3;
        c.name[0] = 'c';
        say_record(lone, conns[0], &c);
        for (int turn = 0; turn < 8; turn++) {
            lone_listen(lone, conns[i]);
            keep_alive(lone, conns, 2, 1);
            if (!lone_heard(lone, WIRE_SKETCHES, &message) || message.lacks_count == 0) continue;
            cr_assert(message.lacks_count == 1 && message.lacks[0].boot == 3);
            asked++;
        }
        cr_assert_geq(asked, 2, "%d", i);
        lone_free(lone);
    }
}

Test(node_settling, who_asks_again_for_a_sketch_gets_it_once)
{
    /* Proves that a link that is slow to tell that it has come costs no second one. */
    uint32_t conns[2];
    struct lone *lone = sketched_node(conns, 2);
    struct message_sketches lacks = {.lacks = {{2}}, .lacks_count = 1};
    say_sketch(lone, conns[1], 2, 1);
    for (int times = 0; times < 2; times++) {
        struct message_sketches sent;
        lone_listen(lone, conns[0]);
        lone_say(lone, conns[0], WIRE_SKETCHES, &lacks);
        lone_tick(lone);
        bool told = lone_heard(lone, WIRE_SKETCHES, &sent) && sent.count > 0;
        cr_assert_eq(told, times == 0);
    }
    lone_free(lone);
}
