/* One node, its peers played by hand: the models that others propose, and what is believed of them.
 */
#include "core/agreement/quorum.h"
#include "core/agreement/said.h"
#include "lone_talk.h"

/* What lone_done() says that all models hash to, and others. */
static const uint8_t own_digest[PARLEY_DIGEST_BYTES] = {7}, other_digest[PARLEY_DIGEST_BYTES] = {9},
                     third_digest[PARLEY_DIGEST_BYTES] = {8};

/* The peer at `conn` says that it has ended training, and what it proposes. */
static void say_proposes(struct lone *lone, uint32_t conn, uint64_t boot, const uint8_t *digest)
{
    struct record r = {.boot = boot,
                       .address = "x:1",
                       .clock = 1,
                       .phase = PARLEY_PHASE_PROPOSED,
                       .stop = PARLEY_STOP_OPERATOR,
                       .stop_live = 2,
                       .generation = 1,
                       .score = (double)boot};
    snprintf(r.name, sizeof r.name, "%s", boot == 1 ? "a" : "b");
    memcpy(r.digest, digest, sizeof r.digest);
    if (boot == 2) r.distrusts[0] = 1;
    say_record(lone, conn, &r);
}

/* a goes on to say that it lives, and no more. */
static void keep_alive(struct lone *lone, uint32_t conn)
{
    say_lives(lone, conn);
    lone_run(lone, 1000000);
    lone_done_all(lone);
}

/* A node that has proposed, and has asked a, which proposes what wins, for it. */
static struct lone *asking_node(struct parley_config *config, uint32_t *conn)
{
    config->settle_timeout_us = 20000000;
    config->progress_timeout_us = 60000000;
    struct lone *lone = training_node(config);
    *conn = accepted_peer(lone, "a", 1);
    say_proposes(lone, *conn, 1, other_digest);
    for (int i = 0; i < 30 && lone->node->fetch.state != FETCH_ASKED; i++)
        keep_alive(lone, *conn);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
    return lone;
}

Test(node_agreement, who_gives_another_model_than_it_announced_is_not_trusted)
{
    /* Proves that the model is not written; and that what is proposed by one whom most do not trust
     * is not picked. */
    struct parley_config config = lone_config();
    uint32_t conn;
    struct lone *lone = asking_node(&config, &conn);
    struct message_fetch fetched = {.sequence = lone->node->fetch.sequence, .ok = 1, .vectors = 1};
    lone_say(lone, conn, WIRE_FETCHED, &fetched);
    say_chunk(lone, conn, WIRE_STREAM_FETCH, fetched.sequence, 0, true);
    cr_assert(lone->ops_count == 1 && lone->ops[0].type == PARLEY_UPDATE_HASH);
    lone_done(lone, 0);
    const struct record *self = record_of(lone->node, 0);
    cr_assert_eq(self->distrusts[MESSAGE_DISTRUSTS_MAX - 1], 1);
    cr_assert(lone->ops_count == 0 && self->phase == PARLEY_PHASE_PROPOSED, "it is not written");
    cr_assert_eq(memcmp(self->digest, own_digest, sizeof self->digest), 0);
    uint32_t b = accepted_peer(lone, "b", 2);
    lone_run(lone, 200000);
    cr_assert_neq(lone->node->fetch.state, FETCH_ASKED, "one of two is not most");
    lone_listen(lone, b);
    say_proposes(lone, b, 2, third_digest);
    lone_run(lone, 200000);
    struct message_fetch asked;
    cr_assert(lone_heard(lone, WIRE_FETCH, &asked) && asked.by_digest);
    cr_assert_eq(memcmp(asked.digest, third_digest, sizeof asked.digest), 0);
    lone_free(lone);
}

Test(node_agreement, where_some_may_lie_who_gives_nobody_its_model_is_not_trusted)
{
    /* Proves that it is no way to keep the others from an end, and is said once; where all are
     * honest it is slow. */
    for (uint32_t robust = 0; robust < 2; robust++) {
        struct parley_config config = lone_config();
        config.robust = robust;
        uint32_t conn;
        struct lone *lone = asking_node(&config, &conn);
        const struct record *self = record_of(lone->node, 0);
        for (int i = 0; i < 100 && self->generation < 3 && !lone->finished; i++)
            keep_alive(lone, conn);
        cr_assert_eq(self->generation, 3);
        cr_assert_eq(self->distrusts[MESSAGE_DISTRUSTS_MAX - 1], robust);
        cr_assert_eq(self->distrusts[MESSAGE_DISTRUSTS_MAX - 2], 0);
        lone_free(lone);
    }
}

Test(node_agreement, who_was_picked_before_all_proposed_anew_is_trusted_while_they_are_awaited)
{
    /* Proves that in a generation in which nothing is picked yet nobody is blamed for it: b is slow
     * to propose, not a to give its model. */
    struct parley_config config = lone_config();
    config.robust = true;
    config.settle_timeout_us = 20000000;
    config.progress_timeout_us = 60000000;
    struct lone *lone = training_node(&config);
    uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
    say_proposes(lone, a, 1, other_digest);
    say_proposes(lone, b, 2, third_digest);
    const struct record *self = record_of(lone->node, 0);
    bool asked = false;
    for (int i = 0; i < 100 && self->generation < 3; i++) {
        keep_alive(lone, a);
        keep_alive(lone, b);
        if (asked || lone->node->fetch.state != FETCH_ASKED) continue;
        struct record anew = *record_of(lone->node, 1);
        anew.clock++;
        anew.generation = 2;
        say_record(lone, a, &anew);
        cr_assert(self->generation == 2 && lone->node->fetch.state == FETCH_IDLE);
        asked = true;
    }
    cr_assert_eq(self->generation, 3, "nothing moved for a while");
    cr_assert(self->phase == PARLEY_PHASE_PROPOSED && asked);
    cr_assert_eq(self->distrusts[MESSAGE_DISTRUSTS_MAX - 1], 0);
    lone_free(lone);
}

Test(node_agreement, after_a_slow_write_a_node_is_no_more_patient_than_before)
{
    /* Proves that what it could not have acted upon while it wrote its model makes it no slower to
     * see that nothing moves afterwards. */
    struct parley_config config = lone_config();
    config.settle_timeout_us = 20000000;
    config.progress_timeout_us = 60000000;
    struct lone *lone = training_node(&config);
    const struct record *self = record_of(lone->node, 0);
    uint32_t conn = accepted_peer(lone, "a", 1);
    say_proposes(lone, conn, 1, own_digest);
    for (int i = 0; i < 60; i++) {
        while (lone->ops_count > 0 && lone->ops[0].type != PARLEY_UPDATE_WRITE)
            lone_done(lone, 0);
        say_lives(lone, conn);
        lone_run(lone, 1000000);
    }
    cr_assert(lone->ops_count == 1 && lone->ops[0].type == PARLEY_UPDATE_WRITE);
    lone_done(lone, 0);
    cr_assert_eq(self->phase, PARLEY_PHASE_HELD);
    for (int i = 0; i < 12 && self->generation < 2; i++)
        keep_alive(lone, conn);
    cr_assert_eq(self->generation, 2);
    lone_free(lone);
}

Test(node_agreement, a_model_that_came_in_somewhere_for_a_while_is_not_waited_for_for_ever)
{
    /* Proves that it is said who was waited for. */
    struct parley_config config = lone_config();
    uint32_t conn;
    struct lone *lone = asking_node(&config, &conn);
    struct record a = *record_of(lone->node, 1);
    a.clock++;
    a.fetched = 1000;
    say_record(lone, conn, &a);
    for (int i = 0; i < 200 && !lone->finished; i++)
        keep_alive(lone, conn);
    cr_assert(lone->finished && lone->error == PARLEY_ENO_AGREEMENT);
    cr_assert_str_eq(lone->why, "no agreement: all 2 known nodes are here, but did not come to one "
                                "model in time; the last of them, a, is in phase proposed");
    lone_free(lone);
}

Test(node_agreement, who_finds_nobody_left_who_could_send_the_model_says_that_it_goes)
{
    /* b trains and is here still; a has agreed with another, and both have gone. */
    struct lone *lone = plain_node();
    struct message_bye_frame bye;
    uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
    struct record r = training_a(1);
    r.phase = PARLEY_PHASE_DONE;
    r.state = PARLEY_MEMBER_LEFT;
    r.stop = PARLEY_STOP_OPERATOR;
    r.stop_live = r.voters = 3;
    memcpy(r.digest, other_digest, sizeof r.digest);
    lone_listen(lone, b);
    say_record(lone, a, &r);
    for (int i = 0; i < 20 && !lone->finished; i++)
        keep_alive(lone, b);
    cr_assert(lone->finished && lone->error == PARLEY_ENO_AGREEMENT);
    cr_assert(strstr(lone->why, "nobody is left who could send it"), "%s", lone->why);
    cr_assert(lone_heard(lone, WIRE_BYE, &bye) && bye.reason == MESSAGE_BYE_LEAVING);
    lone_free(lone);
}

Test(node_agreement, who_is_to_leave_as_the_agreed_model_gets_its_name_is_done)
{
    /* Proves that it does not tell of a model of its own, beside one that has its name by then, and
     * that it tells where that could not be. */
    enum { DONE, FAILED, LATE, OUTCOMES };
    for (int outcome = 0; outcome < OUTCOMES; outcome++) {
        struct lone *lone = plain_node();
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STOP,
                                              .stop = {.cause = PARLEY_STOP_OPERATOR}});
        for (int i = 0; i < 100 && lone->node->agreement.candidate != CANDIDATE_PUBLISHING; i++) {
            if (lone->ops_count > 0) lone_done(lone, 0);
            lone_run(lone, 10000);
        }
        cr_assert(lone->ops_count == 1 && lone->ops[0].type == PARLEY_UPDATE_PUBLISH);
        lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_LEAVE});
        cr_assert_not(lone->finished);
        lone->lacks = outcome == FAILED;
        if (outcome == LATE)
            lone_run(lone, lone->config.leave_timeout_us); /* no disk keeps it for ever */
        else
            lone_done(lone, 0);
        cr_assert(lone->finished);
        cr_assert_eq(lone->error, outcome == FAILED ? PARLEY_ENOT_WRITTEN : 0);
        cr_assert_eq(phase_of(lone->node), outcome == LATE ? PARLEY_PHASE_LEFT : PARLEY_PHASE_DONE);
        lone_free(lone);
    }
}

Test(node_agreement, who_was_late_counts_itself_and_the_dead_among_those_who_hold_the_model)
{
    /* Proves that when the record is made, so that it says what the screen does. b died with it,
     * and so did its next start: of a name one counts. */
    struct lone *lone = plain_node();
    uint32_t a = accepted_peer(lone, "a", 1);
    struct record r = training_a(1), b = {.boot = 2, .name = "b", .address = "x:1", .clock = 1};
    struct record dead = *record_of(lone->node, 0);
    dead.state = PARLEY_MEMBER_DEAD;
    r.phase = PARLEY_PHASE_DONE;
    r.stop = PARLEY_STOP_OPERATOR;
    r.stop_live = r.voters = 3;
    b.state = PARLEY_MEMBER_DEAD;
    b.phase = PARLEY_PHASE_HELD;
    memcpy(r.digest, own_digest, sizeof r.digest);
    memcpy(b.digest, own_digest, sizeof b.digest);
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STOP,
                                          .stop = {.cause = PARLEY_STOP_OPERATOR}});
    say_record(lone, a, &dead);
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_LATE);
    cr_assert_str_eq(lone->warned, "this node was taken for dead, a says; it is alive");
    for (; b.boot < 4; b.boot++)
        say_record(lone, a, &b);
    say_record(lone, a, &r);
    for (int i = 0; i < 30 && lone->node->fetch.state != FETCH_ASKED; i++)
        keep_alive(lone, a);
    struct message_fetch fetched = {.sequence = lone->node->fetch.sequence, .ok = 1, .vectors = 1};
    lone_say(lone, a, WIRE_FETCHED, &fetched);
    say_chunk(lone, a, WIRE_STREAM_FETCH, fetched.sequence, 0, true);
    for (int i = 0; i < 30 && lone->node->agreement.candidate != CANDIDATE_PUBLISHING; i++)
        lone_done(lone, 0);
    struct parley_view view;
    struct parley_member member;
    parley_node_view(lone->node, &view);
    cr_assert(view.phase == PARLEY_PHASE_LATE && view.held == 3 && view.known == 3, "%u of %u",
              view.held, view.known);
    for (uint32_t i = 0; i < 4; i++) {
        parley_node_member(lone->node, i, &member);
        cr_assert_eq(member.holds, member.boot != 2, "%s", member.name);
    }
    lone_free(lone);
}

Test(node_agreement, who_waits_for_a_majority_says_who_is_here_and_does_not_count)
{
    /* Proves that nobody looks for missing nodes where others, c, were but taken for dead. */
    struct parley_config config = lone_config();
    config.quorum = PARLEY_QUORUM_MAJORITY;
    config.nodes = 5;
    struct lone *lone = training_node(&config);
    char lacks[QUORUM_TEXT_BYTES];
    for (uint64_t boot = 1; boot <= 4; boot++) {
        struct record r = training_a(boot);
        *r.name += (char)(boot - 1);
        r.phase = boot == 1 ? PARLEY_PHASE_TRAIN : PARLEY_PHASE_LATE;
        r.stop = boot == 1 ? PARLEY_STOP_NONE : PARLEY_STOP_OPERATOR;
        r.stop_live = 5;
        say_record(lone, accepted_peer(lone, r.name, boot), &r);
    }
    quorum_lacks(lone->node, lacks, sizeof lacks);
    cr_assert_str_eq(lacks, "only 2 of 5 nodes are here, and a majority is 3 (not counted: 3 taken "
                            "for dead and coming back)");
    lone_free(lone);
}

Test(node_agreement, who_asks_for_a_model_that_is_not_here_is_told_so_and_given_none)
{
    struct parley_config config = lone_config();
    uint32_t conn;
    struct lone *lone = asking_node(&config, &conn);
    struct message_fetch fetch = {.sequence = 1, .by_digest = true}, answer;
    memcpy(fetch.digest, third_digest, sizeof fetch.digest);
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_FETCH, &fetch);
    cr_assert(lone_heard(lone, WIRE_FETCHED, &answer) && !answer.ok);
    cr_assert_eq(lone->ops_count, 0);
    lone_free(lone);
}

Test(node_agreement, who_asks_for_the_model_and_takes_nothing_of_it_holds_nobody_who_is_done)
{
    struct parley_config config = lone_config();
    uint32_t conn;
    struct lone *lone = asking_node(&config, &conn);
    struct message_fetch fetch = {.sequence = 1, .by_digest = true};
    memcpy(fetch.digest, own_digest, sizeof fetch.digest);
    lone_say(lone, conn, WIRE_FETCH, &fetch);
    cr_assert_eq(lone->node->outflows_active, 1);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    lone_done_all(lone);
    cr_assert_eq(lone->node->outflows_active, 0);
    cr_assert_eq(lone->node->fetch.served_us, 0);
    lone_free(lone);
}

Test(node_agreement, who_asks_for_the_model_again_and_again_keeps_no_place_from_others)
{
    /* Proves that a new question ends the answer to the one before. */
    struct parley_config config = lone_config();
    config.parameters = 1 << 24;
    uint32_t conn;
    struct lone *lone = asking_node(&config, &conn);
    struct message_fetch fetch = {.by_digest = true}, answer;
    memcpy(fetch.digest, own_digest, sizeof fetch.digest);
    for (fetch.sequence = 1; fetch.sequence <= OUTFLOWS_MAX; fetch.sequence++) {
        uint32_t under_way = lone->ops_count;
        lone_say(lone, conn, WIRE_FETCH, &fetch);
        for (uint32_t i = 0; i < under_way; i++)
            lone_done(lone, 0); /* of the model that it does not want any more */
    }
    uint32_t other = accepted_peer(lone, "b", 2);
    lone_listen(lone, other);
    lone_say(lone, other, WIRE_FETCH, &fetch);
    cr_assert(lone_heard(lone, WIRE_FETCHED, &answer) && answer.ok);
    uint32_t served = 0;
    for (uint32_t i = 0; i < lone->node->outflows_count; i++)
        served += lone->node->outflows[i].active && !lone->node->outflows[i].aborted;
    cr_assert_eq(served, 2, "another's question ends no answer");
    lone_free(lone);
}

/* How many of six that ask at once for the model, of so many floats, are given it. */
static uint32_t served_of_six(uint64_t parameters)
{
    struct parley_config config = lone_config();
    config.parameters = parameters;
    uint32_t conns[6], given = 0;
    struct lone *lone = asking_node(&config, &conns[0]);
    struct message_fetch fetch = {.sequence = 1, .by_digest = true}, answer;
    memcpy(fetch.digest, own_digest, sizeof fetch.digest);
    for (uint32_t i = 1; i < 6; i++)
        conns[i] = accepted_peer(lone, (char[]){(char)('a' + i), 0}, i + 1);
    for (uint32_t i = 0; i < 6; i++) {
        lone_listen(lone, conns[i]);
        lone_say(lone, conns[i], WIRE_FETCH, &fetch);
        given += lone_heard(lone, WIRE_FETCHED, &answer) && answer.ok;
    }
    lone_free(lone);
    return given;
}

Test(node_agreement, a_large_model_is_given_to_two_at_a_time_a_small_one_to_more)
{
    /* Proves that there are soon others to ask: six at once share the line, and none of them has
     * the whole model, to give it on, before all have. */
    cr_assert_eq(served_of_six(1 << 20), 2);
    cr_assert_eq(served_of_six(1000), 6);
}

/* A lock on a model that its owner has. */
struct locked {
    uint32_t voters, generation;
};

/* Whether b's lock is picked, where a has another. */
static bool picks_b(enum parley_quorum quorum, struct locked a, struct locked b)
{
    struct parley_config config = lone_config();
    if (quorum == PARLEY_QUORUM_MAJORITY) config.nodes = 3;
    config.quorum = quorum;
    uint32_t conn;
    struct lone *lone = asking_node(&config, &conn);
    for (uint64_t boot = 1; boot <= 2; boot++) {
        struct locked lock = boot == 1 ? a : b;
        struct record r = *record_of(lone->node, 1);
        r.boot = boot;
        r.clock = 9;
        r.name[0] = boot == 1 ? 'a' : 'b';
        r.lock_voters = lock.voters;
        r.lock_generation = lock.generation;
        memcpy(r.digest, boot == 1 ? other_digest : third_digest, sizeof r.digest);
        memcpy(r.lock_digest, r.digest, sizeof r.digest);
        say_record(lone, conn, &r);
    }
    struct pick pick = said_pick(lone->node);
    cr_assert_not_null(pick.digest);
    bool is_b = pick.proposer == 2;
    cr_assert(said_same(pick.digest, is_b ? third_digest : other_digest));
    lone_free(lone);
    return is_b;
}

Test(node_agreement, of_two_locks_the_higher_is_picked)
{
    /* Proves that more voters count for more where the live decide, the newer lock where a majority
     * does; and that of equal ones all pick the same. */
    cr_assert(picks_b(PARLEY_QUORUM_LIVE, (struct locked){2, 2}, (struct locked){3, 1}));
    cr_assert(!picks_b(PARLEY_QUORUM_LIVE, (struct locked){3, 1}, (struct locked){2, 2}));
    cr_assert(picks_b(PARLEY_QUORUM_LIVE, (struct locked){2, 1}, (struct locked){2, 2}));
    cr_assert(!picks_b(PARLEY_QUORUM_LIVE, (struct locked){2, 2}, (struct locked){2, 1}));
    cr_assert(!picks_b(PARLEY_QUORUM_MAJORITY, (struct locked){2, 2}, (struct locked){3, 1}));
    cr_assert(picks_b(PARLEY_QUORUM_MAJORITY, (struct locked){3, 1}, (struct locked){2, 2}));
    cr_assert(picks_b(PARLEY_QUORUM_LIVE, (struct locked){2, 1}, (struct locked){2, 1}));
}
