/* One node, its peers played by hand: whole models, given and taken. */
#include <math.h>

#include "core/strategy/rounds.h"
#include "lone_talk.h"

/* One that keeps slow weights, and is about to make the first. */
static struct lone *new_outer_node(void)
{
    struct parley_config config = lone_config();
    config.strategy = PARLEY_STRATEGY_NOLOCO;
    config.mix_every = 2;
    return training_node(&config);
}

static struct lone *outer_node(void)
{
    struct lone *lone = new_outer_node();
    lone_done_all(lone);
    return lone;
}

/* Asks for the node's state; its snapshot is taken, and chunks of it are on their way. */
static void ask_for_state(struct lone *lone, uint32_t conn)
{
    struct message_fetch fetch = {.sequence = 1};
    lone_say(lone, conn, WIRE_FETCH, &fetch);
    if (lone->node->fetch.serving) lone_done(lone, 0);
}

/* One of the vectors of a state. */
static void say_vector(struct lone *lone, uint32_t conn, uint32_t sequence, uint16_t vector)
{
    static uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200];
    struct wire_chunk chunk = {.kind = WIRE_STREAM_FETCH, .vector = vector, .sequence = sequence};
    wire_chunk_write(bytes, &chunk, 1200);
    wire_chunk_seal(bytes, bytes + WIRE_CHUNK_HEAD_BYTES, 1200);
    lone_receive(lone, conn, bytes, sizeof bytes);
}

/* A step whose loss is not a number is told. */
static void lose_model(struct lone *lone)
{
    lone->version++;
    lone_stepped(lone, 9, 0.0 / 0.0);
}

/* Its model is lost, it is known, and another's is asked for. */
static void to_diverged(struct lone *lone)
{
    lose_model(lone);
    lone_run(lone, 200000);
}

/* The same where an offer was under way, which comes to nothing. */
static void to_asked(struct lone *lone, uint32_t conn)
{
    struct message_exchange refused = {.sequence = to_offered(lone, conn, 1)};
    lose_model(lone);
    lone_say(lone, conn, WIRE_REFUSE, &refused);
    lone_run(lone, 200000);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
}

/* What was asked for, in one chunk, of who has trained for so long. */
static void say_state_of(struct lone *lone, uint32_t conn, uint64_t trained_us)
{
    uint32_t sequence = lone->node->fetch.sequence;
    struct message_fetch fetched = {
        .sequence = sequence, .ok = 1, .vectors = 1, .trained_us = trained_us};
    lone_say(lone, conn, WIRE_FETCHED, &fetched);
    say_chunk(lone, conn, WIRE_STREAM_FETCH, sequence, 0, true);
}

static void say_state(struct lone *lone, uint32_t conn)
{
    say_state_of(lone, conn, 0);
}

/* The same of an outer node, with its slow weights and their momentum. */
static void say_kept(struct lone *lone, uint32_t conn)
{
    uint32_t sequence = lone->node->fetch.sequence;
    struct message_fetch fetched = {.sequence = sequence, .ok = 1, .vectors = 3};
    lone_say(lone, conn, WIRE_FETCHED, &fetched);
    for (uint16_t v = 0; v < 3; v++)
        say_vector(lone, conn, sequence, v);
}

Test(node_model, what_a_joiner_is_given_is_not_mixed_by_an_own_exchange)
{
    /* Proves that slow weights on their way to a joiner stay as they are: no state is given while
     * an exchange is open, and none begins while it is given. lone.h sees every write. */
    struct lone *lone = outer_node();
    uint32_t conn = accepted_peer(lone, "a", 1), joiner = accepted_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    ask_for_state(lone, joiner);
    cr_assert(!lone->node->fetch.serving);
    to_committed(lone, conn, &m);
    cr_assert_eq(ledger(lone).applied, 1);
    m.sequence = 0;
    lone_say(lone, conn, WIRE_APPLIED, &m);

    ask_for_state(lone, joiner);
    cr_assert(lone->node->fetch.serving && lone->ops_count == 2, "x and one more vector");
    make_steps(lone, 4);
    cr_assert_eq(lone->node->exchange.slots[INITIATOR].state, SLOT_IDLE);
    lone_done_all(lone);
    cr_assert(!lone->node->fetch.serving);
    lone_free(lone);
}

Test(node_model, no_state_is_taken_while_one_is_given_nor_given_while_one_is_taken)
{
    /* What it takes is written where slow weights on their way to a joiner stand. */
    struct lone *lone = outer_node();
    uint32_t joiner = accepted_peer(lone, "a", 1);
    say_trains(lone, joiner, 1);
    ask_for_state(lone, joiner);
    cr_assert(lone->node->fetch.serving);
    to_diverged(lone);
    cr_assert(lone->node->training.diverged && lone->node->fetch.state == FETCH_IDLE);

    lone_done_all(lone);
    lone_run(lone, 200000);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
    ask_for_state(lone, joiner);
    cr_assert(!lone->node->fetch.serving);
    lone_free(lone);
}

/* Whether who asks the node for its state over this link is told so at once that it gets none. */
static bool refuses_state(struct lone *lone, uint32_t conn)
{
    struct message_fetch answer;
    lone_listen(lone, conn);
    ask_for_state(lone, conn);
    return !lone->node->fetch.serving && lone_heard(lone, WIRE_FETCHED, &answer) && !answer.ok &&
           answer.sequence == 1;
}

Test(node_model, who_asks_for_a_state_that_is_not_given_now_is_told_so_at_once)
{
    /* Proves that it need not wait until time is up to ask another: where an exchange is open at
     * either end of it, and where a node has not begun to train itself. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1), joiner = accepted_peer(lone, "b", 2);
    to_ready(lone, conn);
    cr_assert(refuses_state(lone, joiner), "its slot is taken");
    lone_free(lone);

    struct parley_config config = lone_config();
    config.min_peers = 2;
    lone = lone_new(&config);
    lone_start(lone);
    joiner = lone_peer(lone, "b", 2);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_JOINING);
    cr_assert(refuses_state(lone, joiner), "it has none itself");
    lone_free(lone);
}

/* A joiner has asked for a state during an exchange, which is over by now. */
static struct lone *told_no(uint32_t *conn, uint32_t *joiner)
{
    struct lone *lone = outer_node();
    *conn = accepted_peer(lone, "a", 1);
    *joiner = accepted_peer(lone, "b", 2);
    make_steps(lone, 2);
    to_ready(lone, *conn);
    cr_assert(refuses_state(lone, *joiner));
    lone_say(lone, *conn, WIRE_COMMIT,
             &(struct message_exchange){.sequence = 7, .share = SHARE_ALONE});
    lone_done_all(lone);
    return lone;
}

Test(node_model, who_was_told_no_comes_before_the_next_exchange)
{
    /* Proves that one exchange after the other does not keep a state from who asks for it, where
     * neither may be under way with the other. */
    uint32_t conn, joiner;
    struct lone *lone = told_no(&conn, &joiner);
    struct message_exchange m = {.share = SHARE_ALONE};
    make_steps(lone, 2);
    for (m.sequence = 8; m.sequence <= 9; m.sequence++) {
        lone_listen(lone, conn);
        lone_say(lone, conn, WIRE_OFFER, &m);
        bool taken = m.sequence == 9;
        cr_assert_eq(lone_heard(lone, WIRE_BUSY, NULL), !taken);
        cr_assert_eq(responder(lone)->state != SLOT_IDLE, taken);
        lone_run(lone, 2000000); /* it has not asked again by then */
    }
    lone_free(lone);
}

Test(node_model, who_was_told_no_and_has_got_a_state_keeps_back_no_exchange)
{
    uint32_t conn, joiner;
    struct lone *lone = told_no(&conn, &joiner);
    ask_for_state(lone, joiner);
    lone_done_all(lone);
    make_steps(lone, 2);
    lone_say(lone, conn, WIRE_OFFER,
             &(struct message_exchange){.sequence = 8, .share = SHARE_ALONE});
    cr_assert_neq(responder(lone)->state, SLOT_IDLE);
    lone_free(lone);
}

Test(node_model, who_is_to_give_a_model_that_is_not_finite_takes_another_s_itself)
{
    struct lone *lone = plain_node();
    uint32_t giver = accepted_peer(lone, "a", 1), joiner = accepted_peer(lone, "b", 2);
    say_trains(lone, giver, 1);
    lone->finite = false;
    cr_assert(refuses_state(lone, joiner));
    lone->finite = true;
    lone_run(lone, 200000);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
    lone_free(lone);
}

Test(node_model, who_has_lost_its_model_asks_one_that_was_heard_just_now)
{
    enum { PEERS = 9 };
    struct lone *lone = plain_node();
    uint32_t conns[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        char name[] = {(char)('a' + i), 0};
        conns[i] = accepted_peer(lone, name, 1 + i);
        struct record r = training_a(1 + i);
        r.name[0] = name[0];
        say_record(lone, conns[i], &r);
    }
    lone_run(lone, 2000001);
    say_lives(lone, conns[PEERS / 2]);
    to_diverged(lone);
    cr_assert_eq(lone->node->fetch.conn, conns[PEERS / 2]);
    lone_free(lone);
}

Test(node_model, who_gets_nothing_of_a_state_is_waited_for_all_the_same)
{
    /* Proves that who comes late to train for a majority, and whose link broke before the first
     * float, may ask again: the budget's end waits. */
    struct parley_config config = lone_config();
    config.quorum = PARLEY_QUORUM_MAJORITY;
    config.nodes = 2;
    config.min_peers = 1;
    config.samples_budget = 100;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct record a = training_a(1);
    a.phase = PARLEY_PHASE_JOINING;
    say_record(lone, conn, &a);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_TRAIN);
    for (int second = 0; second < 11; second++) {
        say_lives(lone, conn);
        lone_run(lone, 1000000);
    }
    lone_say(lone, conn, WIRE_FETCH, &(struct message_fetch){.sequence = 1});
    cr_assert(lone->node->fetch.serving);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    lone_done_all(lone);
    lone->version = 100;
    lone_stepped(lone, 100, 1);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_TRAIN);
    lone_free(lone);
}

Test(node_model, what_a_state_is_to_overwrite_is_not_mixed_by_what_was_in_doubt)
{
    /* Proves the same of a node that takes a state: what mixing wrote there would be lost, or, if
     * it came late, would be in what was taken. */
    struct lone *lone = outer_node();
    uint32_t conn = accepted_peer(lone, "b", 2), giver = accepted_peer(lone, "a", 1);
    const struct fetch *fetch = &lone->node->fetch;
    make_steps(lone, 2);
    to_ready(lone, conn);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    cr_assert_eq(ledger(lone).in_doubt, 1);
    say_trains(lone, giver, 1);
    to_diverged(lone);
    cr_assert_eq(fetch->state, FETCH_ASKED);
    struct message_outcome_frame outcome = {
        .initiator = 2, .asker = lone->config.boot, .sequence = 7, .outcome = MESSAGE_COMMITTED};
    lone_say(lone, giver, WIRE_OUTCOME, &outcome);
    cr_assert(lone->ops_count == 0 && ledger(lone).in_doubt == 1);
    say_kept(lone, giver);
    lone_done_all(lone);
    cr_assert(fetch->state == FETCH_IDLE && ledger(lone).joins == 1);
    lone_say(lone, giver, WIRE_OUTCOME, &outcome);
    lone_done_all(lone);
    cr_assert_eq(ledger(lone).applied, 1);
    lone_free(lone);
}

Test(node_model, a_state_is_asked_for_once_what_it_is_to_overwrite_rests)
{
    /* Proves that it waits for the mixing of an exchange that was committed, and that an exchange
     * which may still be is not cut off by it. */
    struct lone *lone = outer_node();
    uint32_t conn = accepted_peer(lone, "b", 2), giver = accepted_peer(lone, "a", 1);
    struct message_exchange commit = {.sequence = 7};
    say_trains(lone, giver, 1);
    make_steps(lone, 2);
    to_ready(lone, conn);
    to_diverged(lone);
    cr_assert_eq(lone->node->fetch.state, FETCH_IDLE, "an exchange is open");
    lone_say(lone, conn, WIRE_COMMIT, &commit);
    lone_run(lone, 200000);
    cr_assert(lone->ops_count > 0 && lone->node->fetch.state == FETCH_IDLE, "it mixes");
    lone_done_all(lone);
    lone_run(lone, 200000);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
    lone_free(lone);

    lone = new_outer_node();
    say_trains(lone, accepted_peer(lone, "a", 1), 1);
    to_diverged(lone);
    cr_assert(lone->ops_count > 0 && lone->node->fetch.state == FETCH_IDLE, "it begins");
    lone_done_all(lone);
    lone_run(lone, 200000);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
    lone_free(lone);
}

Test(node_model, what_a_joiner_is_given_is_not_mixed_by_what_was_in_doubt)
{
    /* Proves that a decision heard meanwhile is asked for again, and then counts. */
    struct lone *lone = outer_node();
    uint32_t conn = accepted_peer(lone, "a", 1), joiner = accepted_peer(lone, "b", 2);
    make_steps(lone, 2);
    to_ready(lone, conn);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    cr_assert_eq(ledger(lone).in_doubt, 1);
    ask_for_state(lone, joiner);
    cr_assert(lone->node->fetch.serving);
    conn = accepted_peer(lone, "a", 1);
    struct message_outcome_frame outcome = {1, lone->config.boot, 7, MESSAGE_COMMITTED};
    lone_say(lone, conn, WIRE_OUTCOME, &outcome);
    lone_done_all(lone);
    cr_assert(!lone->node->fetch.serving && ledger(lone).applied == 0);
    lone_listen(lone, conn);
    lone_run(lone, 500000);
    cr_assert(lone_heard(lone, WIRE_ASK, NULL));
    lone_say(lone, conn, WIRE_OUTCOME, &outcome);
    lone_done_all(lone);
    cr_assert_eq(ledger(lone).applied, 1);
    lone_free(lone);
}

Test(node_model, who_asks_for_the_model_and_takes_no_byte_of_it_is_cut_off)
{
    /* Proves that the place where offers are answered, from which the model is sent, comes free
     * again where chunks do not leave, though the other end goes on asking whether we live. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_probe ping = {.sequence = 1, .boot = lone->config.boot};
    ask_for_state(lone, conn);
    cr_assert(lone->node->fetch.serving);
    for (int second = 0; second < 12 && lone->conns[conn] == LONE_OPEN; second++) {
        cr_assert_eq(responder(lone)->state, SLOT_RESERVED);
        lone_say(lone, conn, WIRE_PING, &ping);
        lone_run(lone, 1000000);
    }
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    cr_assert_eq(responder(lone)->state, SLOT_IDLE);
    lone_free(lone);
}

Test(node_model, who_takes_a_chunk_of_it_byte_by_byte_and_says_so_is_not)
{
    /* As over a line that has become so narrow that a chunk takes half a minute. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_probe alive = {.boot = 1};
    ask_for_state(lone, conn);
    for (int second = 0; second < 30; second++) {
        lone_say(lone, conn, WIRE_ACK, &alive);
        lone_run(lone, 1000000);
    }
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    cr_assert(lone->node->fetch.serving);
    lone_free(lone);
}

Test(node_model, who_waits_for_its_trainer_to_give_a_state_says_so)
{
    /* Proves that a step that takes long does not look like a peer that is gone. */
    struct lone *lone = plain_node();
    uint32_t joiner = accepted_peer(lone, "a", 1);
    struct message_fetch fetch = {.sequence = 7};
    struct message_exchange alive;
    lone_say(lone, joiner, WIRE_FETCH, &fetch);
    for (int i = 0; i < 4; i++) {
        lone_listen(lone, joiner);
        lone_run(lone, lone->config.keepalive_us - 1);
        cr_assert(!lone_heard(lone, WIRE_KEEPALIVE, NULL), "%d", i);
        lone_run(lone, 1);
        bool waits = i < 3;
        cr_assert_eq(lone_heard(lone, WIRE_KEEPALIVE, &alive), waits, "%d", i);
        cr_assert(alive.sequence == 7 && !alive.from_responder);
        if (i == 2) lone_done(lone, 0);
    }
    lone_free(lone);
}

Test(node_model, who_is_to_be_given_a_state_keeps_its_link)
{
    /* Proves that none gives way to others before its first float, where a node has too many. */
    struct parley_config config = lone_config();
    config.connections_max = PARLEY_CONNECTIONS_MIN;
    struct lone *lone = training_node(&config);
    struct message_fetch fetch = {.sequence = 7};
    uint32_t peers[3 * PARLEY_CONNECTIONS_MIN], count = sizeof peers / sizeof *peers;
    uint32_t joiner = 0, closed = 0;
    char name[] = "a";
    for (uint32_t i = 0; i < count; i++, name[0]++) {
        peers[i] = lone_peer(lone, name, 1 + i);
        lone_run(lone, 200000);
        if (joiner || connection_find(lone->node, peers[i])->asked) continue; /* for news */
        joiner = peers[i];
        lone_say(lone, joiner, WIRE_FETCH, &fetch);
    }
    for (uint32_t i = 0; i < count; i++)
        closed += lone->conns[peers[i]] == LONE_CLOSED;
    cr_assert_gt(closed, PARLEY_CONNECTIONS_MIN);
    cr_assert_eq(lone->conns[joiner], LONE_OPEN);
    lone_free(lone);
}

Test(node_model, who_hears_that_a_state_is_to_come_waits_for_it)
{
    /* Proves that it does for longer than it may be without help; and that who hears nothing, or
     * of another question, asks again, and ends. */
    for (int told = 0; told < 2; told++) {
        struct lone *lone = plain_node();
        const struct fetch *fetch = &lone->node->fetch;
        uint32_t conn = accepted_peer(lone, "a", 1);
        to_asked(lone, conn);
        uint32_t sequence = fetch->sequence;
        struct message_exchange alive = {.sequence = told ? sequence : 0};
        struct message_probe ping = {.boot = lone->config.boot};
        for (int second = 0; second < 45; second++) {
            lone_say(lone, conn, WIRE_PING, &ping); /* it is there */
            lone_say(lone, conn, WIRE_KEEPALIVE, &alive);
            lone_run(lone, 1000000);
        }
        cr_assert_eq(fetch->sequence == sequence, told);
        cr_assert_eq(lone->finished, !told);
        if (told) {
            say_state(lone, conn);
            lone_done_all(lone);
            cr_assert_eq(ledger(lone).joins, 1);
        }
        lone_free(lone);
    }
}

Test(node_model, a_model_that_is_not_finite_is_not_taken)
{
    /* Proves that who gives one costs the asker a second, and is not heard as who trains. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    to_asked(lone, conn);
    const struct fetch *fetch = &lone->node->fetch;
    say_state(lone, conn);
    cr_assert(lone->ops_count == 1 && lone->ops[0].type == PARLEY_UPDATE_SET);
    lone->finite = false;
    lone_done_all(lone);
    cr_assert_eq(fetch->state, FETCH_IDLE);
    cr_assert_eq(lone->steps_left, 0, "it has no model yet");
    lone->finite = true;
    lone_run(lone, 900000);
    cr_assert_eq(fetch->state, FETCH_IDLE);
    lone_run(lone, 200000);
    cr_assert_eq(fetch->state, FETCH_ASKED);
    lone_free(lone);
}

Test(node_model, nor_is_one_whose_slow_weights_are_not)
{
    /* Proves that each of what the strategy keeps is looked at before the trainer's is set. */
    for (int spoilt = 0; spoilt < 3; spoilt++) {
        struct lone *lone = outer_node();
        uint32_t giver = accepted_peer(lone, "a", 1);
        say_trains(lone, giver, 1);
        to_diverged(lone);
        cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
        say_kept(lone, giver);
        for (int i = 0; i < spoilt; i++) {
            cr_assert(lone->ops_count == 1 && lone->ops[0].type == PARLEY_UPDATE_COMBINE);
            cr_assert_eq(lone->ops[0].buffer, strategy_buffer(lone->node, (uint32_t)i));
            lone_done(lone, 0);
        }
        lone->finite = false;
        lone_done_all(lone);
        cr_assert_eq(lone->node->fetch.state, FETCH_IDLE);
        cr_assert_eq(ledger(lone).joins, 0);
        lone_free(lone);
    }
}

Test(node_model, each_step_of_a_grant_has_its_own_place_in_the_budget)
{
    /* Proves that the schedule is no staircase: within a grant, and where one comes while steps of
     * the one before are still to be made. Steps take a millisecond, and are told of after three.
     */
    enum { BUDGET = 100, STEP_US = 1000 };
    for (int kind = 0; kind < 3; kind++) {
        struct parley_config config = lone_config();
        config.batch = 32;
        config.steps_budget = kind == 0 ? BUDGET : 0;
        config.samples_budget = kind == 1 ? BUDGET * 32 : 0;
        config.time_budget_us = kind == 2 ? BUDGET * STEP_US : 0;
        struct lone *lone = training_node(&config);
        while (lone->steps_left > 0) {
            double progress = parley_pace_progress(&lone->pace, lone->version);
            double exact = fmin((double)lone->version / BUDGET, 1);
            bool measured = kind < 2 || lone->version > 3; /* how long a step takes */
            cr_assert(!measured || fabs(progress - exact) < 1e-9, "%d: %g of %g", kind, progress,
                      exact);
            lone->version++;
            lone->steps_left--;
            lone->now_us += STEP_US;
            if (lone->version % 3 && lone->steps_left > 0) continue;
            lone_stepped(lone, 32 * lone->version, 1);
        }
        cr_assert_geq(lone->version, BUDGET, "%d", kind);
        lone_free(lone);
    }
}

/* In training, of 200 steps a node. */
static struct lone *node_with_budget(void)
{
    struct parley_config config = lone_config();
    config.steps_budget = 200;
    return training_node(&config);
}

Test(node_model, of_a_budget_of_steps_progress_is_of_steps_whatever_samples_they_have)
{
    /* Proves that a node is not taken to have made eight steps for one of ours, whose step has
     * eight samples and ours one; the other way round; and so with steps that say of no samples. */
    static const uint64_t of_a_step[][2] = {{1, 8}, {8, 1}, {1, 1}, {0, 0}};
    for (size_t i = 0; i < sizeof of_a_step / sizeof *of_a_step; i++) {
        struct lone *lone = node_with_budget();
        uint32_t conn = accepted_peer(lone, "a", 1);
        lone->version = 40;
        lone_stepped(lone, 40 * of_a_step[i][0], 1);
        struct record a = training_a(1);
        a.version = 60;
        a.samples = 60 * of_a_step[i][1];
        say_record(lone, conn, &a);
        struct parley_view view;
        parley_node_view(lone->node, &view);
        cr_assert_float_eq(view.progress, 0.25, 1e-9, "%zu: %g", i, view.progress);
        lone_free(lone);
    }
}

Test(node_model, of_a_budget_of_steps_the_dead_have_no_part)
{
    /* Proves that what they had made is not taken for what the living are about to make. */
    struct lone *lone = node_with_budget();
    uint32_t conn = accepted_peer(lone, "b", 2);
    struct record b = training_a(2);
    b.name[0] = 'b';
    b.version = b.samples = 100;
    say_record(lone, conn, &b);
    b.state = PARLEY_MEMBER_DEAD;
    lone_silence(lone);
    lone_say(lone, accepted_peer(lone, "c", 3), WIRE_MEMBERS,
             &(struct message_members){.records = {b}, .count = 1});
    lone->version = 50;
    lone_stepped(lone, 50, 1);
    struct parley_view view;
    parley_node_view(lone->node, &view);
    cr_assert_eq(lone->node->roster->samples_gone, 100);
    cr_assert_float_eq(view.progress, 0.125, 1e-9, "%g: c has made none", view.progress);
    lone_free(lone);
}

Test(node_model, of_a_budget_of_steps_those_of_former_lives_are_not_taken_for_news)
{
    /* Proves that a peer that was started anew, with its former steps and none of their samples, is
     * taken to have made as many since it was heard of as this node, and not of each former one as
     * many again. */
    struct lone *lone = node_with_budget();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct record a = training_a(1);
    a.version = 100;
    say_record(lone, conn, &a);
    lone->version = 10;
    lone_stepped(lone, 10, 1);
    struct parley_view view;
    parley_node_view(lone->node, &view);
    cr_assert_float_eq(view.progress, 0.3, 1e-9, "%g", view.progress);
    lone_free(lone);
}

enum { MANY = 13 }; /* too many to count by what each says */

/* The others train, and have made so many samples. */
static void say_made(struct lone *lone, const uint32_t *conns, uint32_t clock, uint64_t samples)
{
    for (uint32_t i = 0; i < MANY; i++) {
        struct record r = training_a(1 + i);
        r.name[0] = (char)('a' + i);
        r.clock = clock;
        r.samples = samples;
        say_record(lone, conns[i], &r);
    }
}

static struct lone *node_among_many(uint32_t *conns, enum parley_strategy strategy)
{
    struct parley_config config = lone_config();
    config.samples_budget = 100000;
    config.strategy = strategy;
    struct lone *lone = training_node(&config);
    for (uint32_t i = 0; i < MANY; i++)
        conns[i] = accepted_peer(lone, (char[]){(char)('a' + i), 0}, 1 + i);
    say_made(lone, conns, 1, 0);
    return lone;
}

Test(node_model, among_many_whoever_was_slower_is_reckoned_to_go_on_so)
{
    uint32_t conns[MANY];
    struct lone *lone = node_among_many(conns, PARLEY_STRATEGY_NONE);
    lone_stepped(lone, 100, 1);
    say_made(lone, conns, 2, 10);
    lone_stepped(lone, 2100, 1);
    struct parley_view view;
    parley_node_view(lone->node, &view);
    cr_assert(view.progress > 0.025 && view.progress < 0.05, "%g", view.progress);
    lone_free(lone);
}

Test(node_model, among_many_who_was_there_first_does_not_take_its_samples_for_everybodys)
{
    uint32_t conns[MANY];
    struct lone *lone = node_among_many(conns, PARLEY_STRATEGY_GOSSIP);
    lone_stepped(lone, 1000, 1);
    to_ready(lone, conns[0]); /* who has made none */
    lone_say(lone, conns[0], WIRE_COMMIT, &(struct message_exchange){.sequence = 7});
    lone_done_all(lone);
    cr_assert_eq(lone->node->training.part, 500);
    struct parley_view view;
    parley_node_view(lone->node, &view);
    cr_assert_float_eq(view.progress * 100000, 1000, 1, "%g", view.progress);
    lone_free(lone);
}

Test(node_model, training_goes_on_after_the_model_was_replaced)
{
    /* Proves that a step that ends after HALT does not keep the node from being granted more. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    to_offered(lone, conn, 1);
    lose_model(lone);
    cr_assert_eq(lone->steps_left, 0, "HALT");
    lone->version++; /* it was under way */
    lone_stepped(lone, 9, 1);
    struct message_exchange busy = {.sequence = lone->node->exchange.slots[INITIATOR].sequence};
    lone_say(lone, conn, WIRE_REFUSE, &busy);
    lone_run(lone, 200000);
    const struct fetch *fetch = &lone->node->fetch;
    cr_assert_eq(fetch->state, FETCH_ASKED);
    say_state(lone, conn);
    lone_done_all(lone);
    cr_assert_gt(lone->steps_left, 0);
    lone_free(lone);
}

Test(node_model, who_loses_its_model_again_long_after_it_took_one_is_helped_again)
{
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    for (int times = 1; times <= 2; times++) {
        to_asked(lone, conn);
        say_state(lone, conn);
        lone_done_all(lone);
        cr_assert_eq(ledger(lone).joins, times);
        cr_assert_gt(lone->steps_left, 0);
        for (int second = 0; second < 40; second++) {
            say_lives(lone, conn);
            lone_run(lone, 1000000);
        }
    }
    lone_free(lone);
}

Test(node_model, nothing_of_a_lost_model_is_left_where_another_was_taken)
{
    /* Neither a snapshot of it, which an exchange would still use, nor how far its steps went, nor
     * that this node began later than the giver. */
    for (int lost = 0; lost < 2; lost++) {
        struct parley_config config = lone_config();
        config.time_budget_us = 100000000;
        config.mix_every = 2;
        struct lone *lone = training_node(&config);
        uint32_t conn = accepted_peer(lone, "a", 1);
        struct message_exchange m = {.sequence = 7, .share = SHARE_ALONE};
        say_trains(lone, conn, 1);
        to_ready(lone, conn);
        lone_say(lone, conn, WIRE_COMMIT, &m);
        lone_done_all(lone);
        lone_step(lone,
                  (struct parley_event){.type = PARLEY_EVENT_STEPPED, .stepped = {.moved_sq = 4}});
        if (lost) to_diverged(lone);
        if (lost) say_state_of(lone, conn, 50000000);
        lone_done_all(lone);
        m.sequence = 8;
        lone_say(lone, conn, WIRE_OFFER, &m);
        cr_assert_eq(responder(lone)->state, lost ? SLOT_TAKING : SLOT_STREAMING);
        cr_assert_eq(lone->node->training.moved_sq, lost ? 0 : 4);
        struct parley_view view;
        parley_node_view(lone->node, &view);
        cr_assert_float_eq(view.progress, lost ? 0.5 : 0, 0.01, "%g", view.progress);
        lone_free(lone);
    }
}

Test(node_model, who_dies_while_it_is_dialled_for_its_model_is_not_waited_for)
{
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "b", 2);
    struct record a = training_a(1);
    say_record(lone, conn, &a);
    to_diverged(lone);
    cr_assert_eq(lone->node->fetch.state, FETCH_CONNECTING);
    a.state = PARLEY_MEMBER_DEAD;
    lone_silence(lone);
    say_record(lone, conn, &a);
    lone_tick(lone);
    cr_assert_eq(lone->node->fetch.state, FETCH_IDLE);
    lone_free(lone);
}

Test(node_model, a_link_over_which_no_answer_and_nothing_else_came_is_closed)
{
    /* Proves that the next question goes over another. */
    for (int heard = 0; heard < 2; heard++) {
        struct parley_config config = lone_config();
        config.progress_timeout_us = 500000;
        struct lone *lone = training_node(&config);
        uint32_t conn = accepted_peer(lone, "a", 1);
        to_asked(lone, conn);
        lone_run(lone, 100000);
        if (heard) say_lives(lone, conn);
        lone_run(lone, 500000);
        cr_assert_eq(lone->conns[conn], heard ? LONE_OPEN : LONE_CLOSED);
        lone_free(lone);
    }
}

Test(node_model, a_state_is_given_with_the_samples_that_all_have_used)
{
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "b", 2), joiner = accepted_peer(lone, "a", 1);
    struct record b = training_a(2);
    b.name[0] = 'b';
    b.samples = 500;
    say_record(lone, conn, &b);
    lone_stepped(lone, 100, 1);
    lone_listen(lone, joiner);
    ask_for_state(lone, joiner);
    struct message_fetch answer;
    cr_assert(lone_heard(lone, WIRE_FETCHED, &answer));
    cr_assert_eq(answer.samples, 500 + 100 + 100, "%d", (int)answer.samples);
    lone_free(lone);
}

Test(node_model, floats_without_a_word_of_what_they_are_become_nobodys_model)
{
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    to_asked(lone, conn);
    const struct fetch *fetch = &lone->node->fetch;
    uint32_t sequence = fetch->sequence;
    say_chunk(lone, conn, WIRE_STREAM_FETCH, sequence, 0, true);
    for (uint32_t i = 0; i < lone->ops_count; i++)
        cr_assert_neq(lone->ops[i].type, PARLEY_UPDATE_SET);
    lone_run(lone, 200000);
    cr_assert_gt(fetch->sequence, sequence, "it asks again");
    lone_free(lone);
}

Test(node_model, another_is_asked_at_once_where_the_link_to_who_gives_its_model_breaks)
{
    /* Proves that nobody waits for an answer, or for the rest of a model, until time is up. */
    for (int answered = 0; answered < 2; answered++) {
        struct lone *lone = plain_node();
        const struct fetch *fetch = &lone->node->fetch;
        uint32_t conn = accepted_peer(lone, "a", 1);
        to_asked(lone, conn);
        struct message_fetch fetched = {.sequence = fetch->sequence, .ok = 1, .vectors = 1};
        if (answered) lone_say(lone, conn, WIRE_FETCHED, &fetched);
        cr_assert_eq(fetch->state, answered ? FETCH_STREAMING : FETCH_ASKED);
        lone_closed(lone, accepted_peer(lone, "c", 3), PARLEY_CLOSED_RESET);
        cr_assert_neq(fetch->state, FETCH_IDLE, "another link is none of its");
        uint32_t other = accepted_peer(lone, "b", 2);
        say_trains(lone, other, 2);
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
        lone_listen(lone, other);
        lone_run(lone, 200000);
        cr_assert(lone_heard(lone, WIRE_FETCH, NULL));
        lone_free(lone);
    }
}

Test(node_model, who_resumes_does_not_reckon_its_former_steps_to_others)
{
    /* Proves that what a node had made before it was started anew is its own alone: the cluster has
     * not gone on meanwhile. */
    struct parley_config config = lone_config();
    config.min_peers = 2;
    config.samples_budget = 1600;
    config.resumed = (struct parley_resumed){
        .steps = 300, .samples = 600, .state_steps = 300, .samples_cluster = 1200};
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct record a = training_a(1);
    a.version = 300;
    a.samples = a.kept = 600; /* it goes on from a file, too */
    a.kept_all = 1200;
    say_record(lone, conn, &a);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_JOINING);
    say_trains(lone, lone_peer(lone, "b", 2), 2);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_TRAIN);
    struct parley_view view;
    parley_node_view(lone->node, &view);
    cr_assert_float_eq(view.progress, 0.75, 0.01, "%g", view.progress);
    lone_free(lone);
}

/* The peer at `conn` tells of a dead process of this node's name, which had made so many samples.
 */
static void say_former_life(struct lone *lone, uint32_t conn, uint64_t samples)
{
    struct record former = {.boot = 999,
                            .name = "self",
                            .address = "x:2",
                            .clock = 1,
                            .samples = samples,
                            .state = PARLEY_MEMBER_DEAD};
    say_record(lone, conn, &former);
}

Test(node_model, who_has_much_more_in_its_file_than_others_count_brings_it_from_elsewhere)
{
    for (int counted = 0; counted < 2; counted++) {
        struct parley_config config = lone_config();
        config.min_peers = 1;
        config.resumed = (struct parley_resumed){
            .steps = 300, .samples = 600, .state_steps = 300, .samples_cluster = 600};
        struct lone *lone = lone_new(&config);
        lone_start(lone);
        uint32_t conn = accepted_peer(lone, "a", 1);
        say_former_life(lone, conn, counted ? 350 : 250);
        say_trains(lone, conn, 1);
        cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_TRAIN);
        cr_assert_eq(self_of(lone->node)->samples, counted ? 0 : 600);
        lone_free(lone);
    }
}

Test(node_model, who_takes_back_what_others_count_is_reckoned_as_if_it_had_never_told_of_it)
{
    /* Proves that its part of the cluster's samples goes down with them, and that a peer is taken
     * to have made as many since it was heard of as this node, and not none until this one has made
     * again what its file told of. */
    struct parley_config config = lone_config();
    config.samples_budget = 8000;
    config.resumed = (struct parley_resumed){
        .steps = 300, .samples = 600, .state_steps = 300, .samples_cluster = 600};
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    say_trains(lone, conn, 1);
    say_former_life(lone, conn, 600);
    lone->version = 50;
    lone_stepped(lone, 100, 1);
    cr_assert_eq(self_of(lone->node)->samples, 100);
    struct parley_view view;
    parley_node_view(lone->node, &view);
    cr_assert_float_eq(view.progress, 0.1, 1e-9, "%g: 600 + 100 + 100", view.progress);
    cr_assert_float_eq(lone->node->training.part, 100, 1e-9);
    lone_free(lone);
}

Test(node_model, who_has_but_said_hello_is_heard_out_before_training_and_not_for_ever)
{
    /* It may have trained for long, or hold the model of one that has: a first model is not to be
     * averaged with its. */
    for (int speaks = 0; speaks < 3; speaks++) {
        struct parley_config config = lone_config();
        config.min_peers = 1;
        struct lone *lone = lone_new(&config);
        lone_start(lone);
        uint32_t conn = accepted_peer(lone, "a", 1);
        struct message_probe ping = {.boot = self_of(lone->node)->boot};
        struct record a = training_a(1);
        *(speaks == 1 ? &a.version : &a.holds) = 5000;
        lone_run(lone, 1000000);
        lone_say(lone, conn, WIRE_PING, &ping); /* it lives */
        cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_JOINING);
        lone_listen(lone, conn);
        if (speaks)
            say_record(lone, conn, &a);
        else
            lone_run(lone, 2000000);
        cr_assert_eq(phase_of(lone->node), speaks ? PARLEY_PHASE_JOINING : PARLEY_PHASE_TRAIN);
        cr_assert_eq(lone_heard(lone, WIRE_FETCH, NULL), speaks > 0);
        lone_free(lone);
    }
}

Test(node_model, who_is_far_ahead_and_gives_no_state_stops_nobody)
{
    /* Proves that in rounds a node that was told of one far off, and asks for its state in vain,
     * goes on with its own after a while. */
    struct parley_config config = lone_config();
    config.strategy = PARLEY_STRATEGY_GOSSIP_SYNC;
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    say_trains(lone, conn, 1);
    struct message_strategy far = {.what = 1, .round = 1, .stamp = UINT64_C(1) << 62};
    lone_say(lone, conn, WIRE_STRATEGY, &far);
    make_steps(lone, 1);
    const struct rounds *s = lone->node->strategy_state;
    for (int i = 0; i < 120; i++) {
        struct message_fetch no = {.sequence = lone->node->fetch.sequence};
        lone_run(lone, 100000);
        lone_done_all(lone);
        lone_say(lone, conn, WIRE_FETCHED, &no);
        say_lives(lone, conn);
        if (i == 50) cr_assert(s->follows && lone->node->fetch.sequence > 5, "it asks");
    }
    cr_assert(!s->follows && s->stage != ROUNDS_RESTING, "a round of its own");
    lone_free(lone);
}
