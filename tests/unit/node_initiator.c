/* One node, its peers played by hand: what it offers, and what becomes of that. */
#include "lone_talk.h"

Test(node_initiator, accept_and_ready_count_once)
{
    /* Proves that answers said twice, and late ones, start, decide and add one exchange. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    lone_say(lone, conn, WIRE_READY, &m);
    lone_say(lone, conn, WIRE_READY, &m);
    cr_assert(ledger(lone).started == 1 && ledger(lone).committed == 0, "no floats yet");
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    lone_done_all(lone);
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_READY, &m);
    cr_assert(!lone_heard(lone, WIRE_ABORT, NULL), "it is committed");
    struct parley_ledger after = ledger(lone);
    cr_assert(after.started == 1 && after.committed == 1 && after.applied == 1);
    lone_free(lone);
}

Test(node_initiator, an_outer_step_is_of_what_was_trained_since_the_one_before)
{
    /* Where exchanges follow each other fast, the snapshot for the next is taken as one ends. With
     * noloco that would be slow weights without a step behind them. */
    for (int outer = 0; outer < 2; outer++) {
        struct parley_config config = lone_config();
        config.strategy = outer ? PARLEY_STRATEGY_NOLOCO : PARLEY_STRATEGY_GOSSIP;
        config.mix_every = 2;
        struct lone *lone = training_node(&config);
        const struct slot *slot = &lone->node->exchange.slots[INITIATOR];
        lone_done_all(lone);
        uint32_t conn = accepted_peer(lone, "a", 1);
        struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
        to_committed(lone, conn, &m);
        lone_say(lone, conn, WIRE_APPLIED, &m);
        cr_assert_eq(ledger(lone).applied, 1);
        cr_assert_eq(slot_is_fresh(lone->node, slot), !outer);
        lone_free(lone);
    }
}

/* The offer `m` to the peer at `conn` ends: it is busy, or they average. */
static void to_ended(struct lone *lone, uint32_t conn, struct message_exchange *m, bool busy)
{
    if (busy) {
        lone_say(lone, conn, WIRE_BUSY, m);
    } else {
        to_committed(lone, conn, m);
        lone_say(lone, conn, WIRE_APPLIED, m);
    }
    cr_assert_eq(lone->node->exchange.slots[INITIATOR].state, SLOT_IDLE);
}

Test(node_initiator, a_robust_node_lets_nobody_in_before_it_has_seen_three)
{
    /* Proves that the first that come, which may be liars, add nothing to its model. */
    struct parley_config config = lone_config();
    config.robust = true;
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    lone_listen(lone, conn);
    for (int seen = 0; seen <= 3; seen++) {
        struct message_exchange m;
        to_offered(lone, conn, 1);
        cr_assert(lone_heard(lone, WIRE_OFFER, &m));
        cr_assert_eq(m.radius, seen < 3 ? 0 : 1, "after %d: %g", seen, m.radius);
        m.share = SHARE_ALONE;
        to_ended(lone, conn, &m, false);
    }
    lone_free(lone);
}

Test(node_initiator, a_snapshot_that_no_exchange_uses_serves_either_role)
{
    /* Proves that one taken as an offer of ours ends, or one for which the peer was busy, goes out
     * to who asks next at once, without another; and one taken as an answer ends is offered. */
    for (int busy = 0; busy < 2; busy++) {
        struct parley_config config = lone_config();
        config.mix_every = 2;
        struct lone *lone = training_node(&config);
        uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
        struct message_exchange m = {.sequence = to_offered(lone, a, 1), .share = SHARE_ALONE};
        const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
        to_ended(lone, a, &m, busy);
        uint32_t own = asks->own;
        lone_say(lone, b, WIRE_OFFER, &(struct message_exchange){.sequence = 7});
        cr_assert_eq(responder(lone)->state, SLOT_STREAMING);
        cr_assert_eq(responder(lone)->own, own);
        cr_assert_neq(asks->own, own);
        cr_assert_not(slot_is_fresh(lone->node, asks));
        m.sequence = 7;
        say_chunk(lone, b, WIRE_STREAM_OFFER, 7, 0, true);
        lone_done_all(lone);
        lone_say(lone, b, WIRE_COMMIT, &m);
        lone_done_all(lone);
        lone->now_us += BUSY_RETRY_US;
        say_trains(lone, b, 2);
        make_steps(lone, 2);
        cr_assert_eq(asks->state, SLOT_OFFERED);
        lone_free(lone);
    }
}

Test(node_initiator, an_outer_step_uses_no_snapshot_for_which_a_peer_was_busy)
{
    /* Proves that it begins with one of its own: what is mixed is of one time. */
    struct parley_config config = lone_config();
    config.strategy = PARLEY_STRATEGY_NOLOCO;
    config.mix_every = 2;
    struct lone *lone = training_node(&config);
    lone_done_all(lone);
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1)};
    to_ended(lone, conn, &m, true);
    cr_assert_not(slot_is_fresh(lone->node, &lone->node->exchange.slots[INITIATOR]));
    lone_free(lone);
}

Test(node_initiator, who_leaves_hands_over_all_it_has_made)
{
    /* Proves that a snapshot for which a peer was busy, or that was taken as an exchange ended, is
     * not what a leaving node offers, steps later. */
    for (int busy = 0; busy < 2; busy++) {
        struct parley_config config = lone_config();
        config.mix_every = 7;
        struct lone *lone = training_node(&config);
        const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
        uint32_t a = accepted_peer(lone, "a", 1);
        say_trains(lone, a, 1);
        make_steps(lone, 7);
        lone_done_all(lone);
        struct message_exchange m = {asks->sequence, .share = SHARE_ALONE};
        to_ended(lone, a, &m, busy);
        make_steps(lone, 6);
        cr_assert(asks->state == SLOT_IDLE && slot_is_fresh(lone->node, asks));
        lone->now_us += 2 * BUSY_RETRY_US;
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_LEAVE});
        lone_done_all(lone);
        say_trains(lone, a, 1);
        lone_done_all(lone);
        cr_assert_eq(asks->state, SLOT_OFFERED);
        cr_assert_eq(asks->version, 13);
        lone_free(lone);
    }
}

static double weight_of(const struct lone *lone)
{
    struct parley_view view;
    parley_node_view(lone->node, &view);
    return view.weight;
}

/* Trains beside a peer that speaks up now and then, and takes what is pushed to it; returns what of
 * the weight that was, by the offer. */
static double pushed(struct lone *lone, uint32_t conn, uint64_t boot, int seconds)
{
    const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
    struct message_exchange m = {.sequence = 0};
    double before = weight_of(lone);
    lone_listen(lone, conn);
    for (int i = 0; asks->state != SLOT_OFFERED && i <= seconds; i++) {
        say_trains(lone, conn, boot);
        make_steps(lone, 2);
        lone_done_all(lone);
        lone->now_us += 1000000;
    }
    if (asks->state != SLOT_OFFERED) return 0;
    cr_assert(lone_heard(lone, WIRE_OFFER, &m));
    double weight = m.weight;
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    lone_say(lone, conn, WIRE_READY, &m);
    lone_done_all(lone);
    lone_say(lone, conn, WIRE_APPLIED, &m);
    cr_assert_float_eq(weight_of(lone), before - weight, 1e-12);
    return weight;
}

Test(node_initiator, who_has_starved_since_a_death_pushes_smaller_weights)
{
    /* Proves that a node whose weight is the least that it keeps, as when the dead had most of it,
     * goes by half the unit after many periods and seconds, and by the whole one when it can. */
    struct parley_config config = lone_config();
    config.strategy = PARLEY_STRATEGY_PUSH_SUM;
    struct lone *lone = training_node(&config);
    uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
    cr_assert_eq(pushed(lone, a, 1, 0), 0.5);
    say_left(lone, a, 1);
    cr_assert_eq(pushed(lone, b, 2, 8), 0, "not so soon");
    make_steps(lone, 20);
    cr_assert_eq(pushed(lone, b, 2, 5), 0.25);
    cr_assert_eq(lone->weight, 0.5, "so is the rate divided");
    cr_assert_eq(pushed(lone, b, 2, 30), 0, "nobody has gone since");
    struct message_exchange m = {.sequence = 7, .weight = 1};
    lone_say(lone, b, WIRE_OFFER, &m);
    say_chunk(lone, b, WIRE_STREAM_OFFER, 7, 0, true);
    lone_done_all(lone);
    lone_say(lone, b, WIRE_COMMIT, &m);
    lone_done_all(lone);
    cr_assert_eq(weight_of(lone), 1.25);
    cr_assert_eq(pushed(lone, b, 2, 1), 0.625);
    cr_assert_eq(lone->weight, 0.625);
    lone_free(lone);
}

Test(node_initiator, steps_that_are_not_awaited_change_nothing)
{
    /* Proves that a driver may keep steps to itself until the awaited one, and no longer: that one
     * brings more steps, or begins an exchange. */
    struct parley_config config = lone_config();
    config.mix_every = 11;
    struct lone *lone = training_node(&config);
    say_trains(lone, accepted_peer(lone, "a", 1), 1);
    make_steps(lone, 1); /* tells how long one takes */
    uint32_t awaited = 0;
    for (int i = 0; i < 200; i++) {
        bool awaits = lone->version + 1 >= parley_node_awaits_steps(lone->node);
        lone->now_us += 100;
        make_steps(lone, 1);
        cr_assert_eq(lone->updates.count > 0, awaits, "step %d", (int)lone->version);
        awaited += awaits;
    }
    cr_assert(awaited >= 3 && awaited <= 20, "%u of 200", awaited);
    lone_free(lone);
}

Test(node_initiator, two_nodes_have_one_exchange_with_each_other_at_a_time)
{
    /* Proves that an offer beside an exchange with the same peer is answered BUSY, whoever began
     * it, and that none is made. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    struct message_exchange offer = {.sequence = 7};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_OFFER, &offer);
    cr_assert(lone_heard(lone, WIRE_BUSY, NULL) && !lone_heard(lone, WIRE_ACCEPT, NULL));
    lone_say(lone, conn, WIRE_ABORT, &(struct message_exchange){m.sequence, .from_responder = 1});
    lone_done_all(lone);
    lone_say(lone, conn, WIRE_OFFER, &offer);
    cr_assert(lone_heard(lone, WIRE_ACCEPT, NULL));
    make_steps(lone, 20);
    cr_assert_eq(lone->node->exchange.slots[INITIATOR].state, SLOT_IDLE);
    lone_free(lone);
}

Test(node_initiator, who_may_not_be_dialled_yet_is_not_chosen)
{
    /* Proves that the slot does not wait for a link that can't come: another might be asked. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_with_seed(&config);
    const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
    struct message_bye_frame bye = {MESSAGE_BYE_DUPLICATE};
    say_trains(lone, SEED_CONN, 2000);
    lone_tick(lone);
    cr_assert_eq(record_of(lone->node, 0)->phase, PARLEY_PHASE_TRAIN);
    lone_say(lone, SEED_CONN, WIRE_BYE, &bye);
    lone_closed(lone, SEED_CONN, PARLEY_CLOSED_LOCAL);
    make_steps(lone, 20);
    cr_assert_eq(asks->state, SLOT_IDLE);
    lone_run(lone, config.redial_min_us);
    make_steps(lone, 20);
    cr_assert_eq(asks->state, SLOT_CONNECTING);
    lone_free(lone);
}

Test(node_initiator, of_offers_that_cross_one_is_taken_back_and_the_other_weighs_all)
{
    /* Proves that who gives way says so, and that its own offer does not count as a second one:
     * with a quarter for it no sweep of averagings makes all equal. */
    struct lone *lone = plain_node();
    uint64_t boot = lone->config.boot + 1;
    uint32_t conn = accepted_peer(lone, "a", boot), sequence = to_offered(lone, conn, boot);
    struct message_exchange m = {.sequence = 0};
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_OFFER, &(struct message_exchange){.sequence = 7});
    cr_assert(lone_heard(lone, WIRE_ABORT, &m) && m.sequence == sequence && !m.from_responder);
    cr_assert(lone_heard(lone, WIRE_ACCEPT, &m) && m.sequence == 7);
    cr_assert(m.share >= SHARE_ALONE);
    lone_free(lone);
}

Test(node_initiator, a_snapshot_that_is_taken_again_goes_before_a_new_exchange)
{
    /* Proves that the slot whose snapshot lacks the other one's delta need not wait for a second
     * of those: else exchanges of a step each would keep it waiting for good. */
    struct lone *lone = plain_node();
    const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
    uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, a, 1), .share = SHARE_ALONE};
    struct message_exchange offer = {.sequence = 7};
    lone_say(lone, a, WIRE_ACCEPT, &m);
    say_chunk(lone, a, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    lone_say(lone, a, WIRE_READY, &m);
    lone_say(lone, b, WIRE_OFFER, &offer);
    while (asks->state != SLOT_ADDING)
        lone_done(lone, 0);
    while (asks->state != SLOT_IDLE)
        lone_done(lone, 0);
    cr_assert(responder(lone)->state == SLOT_TAKING && lone->ops_count > 0, "taken again");
    lone_say(lone, a, WIRE_APPLIED, &m);
    make_steps(lone, 20);
    cr_assert_eq(asks->state, SLOT_IDLE);
    lone_done_all(lone);
    cr_assert_eq(responder(lone)->state, SLOT_STREAMING);
    make_steps(lone, 20);
    cr_assert_neq(asks->state, SLOT_IDLE);
    lone_free(lone);
}

Test(node_initiator, an_absurd_answer_to_an_offer_ends_it)
{
    /* Proves that a share that nobody expects aborts. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = 0.3};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    cr_assert(ledger(lone).started == 0);
    lone_free(lone);
}

Test(node_initiator, who_takes_back_an_offer_of_its_own_does_not_end_this_nodes)
{
    /* Each end counts its exchanges by itself: two offers that cross may have one number. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    const struct slot *slot = &lone->node->exchange.slots[INITIATOR];
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .from_responder = 0};
    lone_say(lone, conn, WIRE_ABORT, &m);
    cr_assert_eq(slot->state, SLOT_OFFERED);
    m.from_responder = 1;
    lone_say(lone, conn, WIRE_ABORT, &m);
    cr_assert_neq(slot->state, SLOT_OFFERED, "this one is of its offer");
    lone_free(lone);
}

Test(node_initiator, an_undecided_exchange_is_aborted_by_the_question)
{
    /* Proves that ASK before the decision decides: ABORTED, and a READY after it too. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    lone_listen(lone, conn);
    struct message_outcome_frame ask = {lone->config.boot, 1, m.sequence, 0}, outcome;
    lone_say(lone, conn, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_ABORTED);
    lone_say(lone, conn, WIRE_READY, &m);
    cr_assert(lone_heard(lone, WIRE_ABORT, NULL));
    lone_done_all(lone);
    cr_assert_eq(ledger(lone).committed, 0);
    ask.sequence = 4000;
    lone_say(lone, conn, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_UNKNOWN);
    lone_free(lone);
}

Test(node_initiator, what_another_asks_about_an_exchange_does_not_end_it)
{
    /* Proves that the question decides only where the responder asks it. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1), other = accepted_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    struct message_outcome_frame ask = {lone->config.boot, 2, m.sequence, 0}, outcome;
    lone_listen(lone, other);
    lone_say(lone, other, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_UNKNOWN);
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    lone_say(lone, conn, WIRE_READY, &m);
    lone_done_all(lone);
    cr_assert_eq(ledger(lone).committed, 1);
    lone_free(lone);
}

Test(node_initiator, a_decision_is_remembered_until_its_own_applied)
{
    /* Proves that APPLIED of another exchange, come late, does not make it forgotten: who asks
     * would give up a delta that this node has added. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    to_committed(lone, conn, &m);
    cr_assert_eq(ledger(lone).committed, 1);
    struct message_exchange earlier = {.sequence = m.sequence - 1};
    struct message_outcome_frame ask = {lone->config.boot, 1, m.sequence, 0}, outcome;
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_APPLIED, &earlier);
    lone_say(lone, conn, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_COMMITTED);
    lone_say(lone, conn, WIRE_APPLIED, &m);
    lone_say(lone, conn, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_UNKNOWN);
    lone_free(lone);
}

Test(node_initiator, who_remembers_all_the_decisions_it_can_offers_no_more)
{
    /* Proves that none is forgotten for a new one; and that the first that is heard of makes room.
     */
    struct parley_config config = lone_config();
    config.connections_max = COMMITS_MAX + 8;
    struct lone *lone = training_node(&config);
    const struct slot *slot = &lone->node->exchange.slots[INITIATOR];
    struct message_exchange m = {.share = SHARE_ALONE};
    uint32_t conns[COMMITS_MAX + 1];
    for (uint64_t boot = 1; boot <= COMMITS_MAX; boot++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", (unsigned)boot);
        conns[boot - 1] = accepted_peer(lone, name, boot);
        m.sequence = to_offered(lone, conns[boot - 1], boot);
        to_committed(lone, conns[boot - 1], &m);
    }
    cr_assert_eq(ledger(lone).applied, COMMITS_MAX);
    say_trains(lone, accepted_peer(lone, "last", 999), 999);
    make_steps(lone, 10);
    lone_run(lone, 1000000);
    lone_done_all(lone);
    cr_assert_lt(slot->state, SLOT_OFFERED);
    lone_say(lone, conns[COMMITS_MAX - 1], WIRE_APPLIED, &m);
    lone_run(lone, 100000);
    lone_done_all(lone);
    cr_assert_eq(slot->state, SLOT_OFFERED);
    lone_free(lone);
}

Test(node_initiator, a_decision_is_not_remembered_for_who_has_left)
{
    /* Proves that who left without APPLIED takes no place among the decisions that are kept. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1), other = accepted_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    to_committed(lone, conn, &m);
    struct message_outcome_frame ask = {lone->config.boot, 1, m.sequence, 0}, outcome;
    lone_listen(lone, other);
    lone_say(lone, other, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_COMMITTED);
    say_left(lone, conn, 1);
    lone_say(lone, other, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_UNKNOWN);
    lone_free(lone);
}

Test(node_initiator, a_question_about_what_an_earlier_boot_offered_is_answered)
{
    /* Proves that who asks a node that was started anew need not wait for news of its death. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_members members = {.count = 1};
    members.records[0] = (struct record){
        .boot = 999, .name = "self", .address = "x:1", .clock = 1, .state = PARLEY_MEMBER_DEAD};
    lone_say(lone, conn, WIRE_MEMBERS, &members);
    struct message_outcome_frame ask = {999, 1, 7, 0}, outcome;
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_RESTARTED);
    lone_free(lone);
}

Test(node_initiator, a_third_passes_on_the_question_and_the_answer)
{
    /* Proves that two that have no link with each other still learn what became of an exchange; and
     * that nobody asks in another's name. */
    struct lone *lone = plain_node();
    uint32_t asker = accepted_peer(lone, "a", 1), initiator = accepted_peer(lone, "b", 2);
    struct message_outcome_frame ask = {2, 1, 7, 0}, heard;
    lone_listen(lone, initiator);
    lone_say(lone, asker, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_ASK, &heard));
    cr_assert(heard.initiator == 2 && heard.asker == 1 && heard.sequence == 7);
    heard.outcome = MESSAGE_COMMITTED;
    lone_listen(lone, asker);
    lone_say(lone, initiator, WIRE_OUTCOME, &heard);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &ask));
    cr_assert(ask.initiator == 2 && ask.sequence == 7 && ask.outcome == MESSAGE_COMMITTED);
    ask = (struct message_outcome_frame){2, 3, 7, 0};
    lone_listen(lone, initiator);
    lone_say(lone, asker, WIRE_ASK, &ask);
    cr_assert_not(lone_heard(lone, WIRE_ASK, NULL));
    lone_free(lone);
}

/* The peer at `conn` says every second that its answer to the newest offer is on its way, and reads
 * what it is sent, or not. */
static void put_off_for(struct lone *lone, uint32_t conn, int seconds, bool reads)
{
    for (int i = 0; i < seconds; i++) {
        const struct slot *slot = &lone->node->exchange.slots[INITIATOR];
        struct message_exchange alive = {.sequence = slot->sequence, .from_responder = 1};
        lone_say(lone, conn, WIRE_KEEPALIVE, &alive);
        say_lives(lone, conn);
        lone_run(lone, 1000000);
        while (lone->ops_count > 0 && (reads || lone->ops[0].type != PARLEY_UPDATE_SEND_CHUNK))
            lone_done(lone, 0);
    }
}

Test(node_initiator, who_only_says_that_it_will_answer_keeps_nobody_from_the_end)
{
    /* Proves that an exchange that is put off for ever ends with the time for settling. */
    struct parley_config config = lone_config();
    config.settle_timeout_us = 5000000;
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct record a = training_a(1);
    a.phase = PARLEY_PHASE_SETTLE;
    a.stop = PARLEY_STOP_OPERATOR;
    a.stop_live = 2;
    say_record(lone, conn, &a);
    lone_done_all(lone);
    put_off_for(lone, conn, 3, true);
    cr_assert_eq(lone->node->exchange.slots[INITIATOR].state, SLOT_OFFERED);
    put_off_for(lone, conn, 30, true);
    cr_assert_geq(phase_of(lone->node), PARLEY_PHASE_PROPOSED);
    lone_free(lone);
}

Test(node_initiator, nobody_is_waited_for_because_another_says_that_it_will_answer)
{
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1), other = lone_peer(lone, "b", 2);
    to_offered(lone, conn, 1);
    for (int second = 0; second < 16; second++) {
        cr_assert(second > 9 || lone->conns[conn] == LONE_OPEN, "%d", second);
        say_lives(lone, conn);
        put_off_for(lone, other, 1, true);
        make_steps(lone, 1);
    }
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

Test(node_initiator, who_does_not_answer_an_offer_is_not_asked_again_before_it_is_heard)
{
    /* Others are, meanwhile; and what it says to the one offer at last is of no exchange. */
    struct lone *lone = plain_node();
    uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
    const struct slot *slot = &lone->node->exchange.slots[INITIATOR];
    struct message_exchange m = {.sequence = to_offered(lone, a, 1), .share = SHARE_ALONE}, busy;
    lone_listen(lone, a);
    lone_run(lone, 600000);
    cr_assert(lone_heard(lone, WIRE_ABORT, NULL));
    for (int i = 0; i < 20; i++) {
        make_steps(lone, 1);
        lone_done_all(lone);
        if (slot->state != SLOT_OFFERED) continue;
        cr_assert_eq(slot->conn, b);
        busy = (struct message_exchange){.sequence = slot->sequence};
        lone_say(lone, b, WIRE_BUSY, &busy);
        lone_run(lone, 100000);
    }
    lone_say(lone, a, WIRE_ACCEPT, &m);
    cr_assert(lone_heard(lone, WIRE_ABORT, NULL));
    cr_assert_eq(ledger(lone).started, 0);
    cr_assert_eq(lone->node->exchange.answers_us, 125000, "one that was stopped says little");
    lone_run(lone, 100000);
    m.sequence = to_offered(lone, a, 1);
    uint64_t patience_us = lone->node->members[1].patience_us;
    lone_say(lone, a, WIRE_ACCEPT, &m);
    cr_assert_gt(patience_us, 0);
    cr_assert_eq(lone->node->members[1].patience_us, patience_us / 2);
    lone_free(lone);
}

Test(node_initiator, in_place_of_who_falls_silent_another_is_asked_in_this_period)
{
    /* Before it has answered, or after that, where others say that they hear nothing of it. */
    for (int answered = 0; answered < 2; answered++) {
        struct parley_config config = lone_config();
        config.mix_every = 50;
        struct lone *lone = training_node(&config);
        uint32_t conns[] = {accepted_peer(lone, "a", 1), accepted_peer(lone, "b", 2)};
        const struct slot *slot = &lone->node->exchange.slots[INITIATOR];
        struct record records[] = {training_a(1), training_a(2)};
        records[1].name[0] = 'b';
        say_record(lone, conns[0], &records[0]);
        say_record(lone, conns[1], &records[1]);
        make_steps(lone, 50);
        lone_done_all(lone);
        cr_assert_eq(slot->state, SLOT_OFFERED);
        uint32_t silent = slot->conn == conns[1];
        if (answered) {
            struct message_exchange m = {.sequence = slot->sequence, .share = SHARE_ALONE};
            lone_say(lone, conns[silent], WIRE_ACCEPT, &m);
            lone_silence(lone);
            records[silent].state = PARLEY_MEMBER_SUSPECT;
            say_record(lone, conns[!silent], &records[silent]);
        }
        lone_run(lone, 600000);
        lone_done_all(lone);
        cr_assert_eq(slot->state, SLOT_OFFERED, "%d", answered);
        cr_assert_eq(slot->conn, conns[!silent], "%d", answered);
        lone_free(lone);
    }
}

Test(node_initiator, a_link_that_takes_no_byte_is_closed_whatever_its_end_says)
{
    /* Proves that what is on its way to a peer that reads nothing, and says that it is there, does
     * not hold its buffer, and so the node, for ever. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    put_off_for(lone, conn, 55, false);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    put_off_for(lone, conn, 10, false);
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

static uint32_t dials_under_way(const struct lone *lone)
{
    uint32_t dials = 0;
    for (uint32_t conn = 1; conn < LONE_CONNS_MAX; conn++)
        dials += lone->conns[conn] == LONE_DIALED;
    return dials;
}

Test(node_initiator, of_those_that_no_dial_has_reached_few_are_dialled_at_a_time)
{
    /* Proves that dials into the void, which end late, leave the places for links to others; and
     * that those are dialled all the same. */
    enum { OTHERS = 30 };
    struct parley_config config = lone_config();
    config.probe_interval_us = 60000000; /* which dials, too */
    struct lone *lone = training_node(&config);
    uint32_t linked[] = {lone_peer(lone, "a", 1), lone_peer(lone, "b", 2), lone_peer(lone, "c", 3)};
    uint32_t most = 0;
    struct message_members members = {.count = OTHERS};
    for (uint32_t i = 0; i < OTHERS; i++) {
        struct record *r = &members.records[i];
        *r = (struct record){.boot = 100 + i, .clock = 1, .phase = PARLEY_PHASE_TRAIN};
        snprintf(r->name, sizeof r->name, "n%u", i);
        snprintf(r->address, sizeof r->address, "127.0.0.1:%u", 8000 + i);
    }
    lone_say(lone, linked[0], WIRE_MEMBERS, &members);
    for (uint32_t i = 0; i < OTHERS; i++) /* a dial of each has come to nothing */
        lone->node->members[roster_find(lone->node->roster, 100 + i)].unreached_us = lone->now_us;
    for (uint32_t i = 1; i <= 3; i++) /* and these are not asked */
        record_of(lone->node, i)->phase = PARLEY_PHASE_JOINING;
    for (uint32_t ms = 0; ms < 1000; ms++) {
        lone->version++;
        lone_stepped(lone, lone->version * 32, 1);
        lone_done_all(lone);
        lone_run(lone, 1000);
        uint32_t dials = dials_under_way(lone);
        if (dials > most) most = dials;
    }
    cr_assert(most >= 2 && most <= 4, "%u dials at a time", most);
    lone_free(lone);
}
