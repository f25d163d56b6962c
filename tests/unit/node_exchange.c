/* One node, its peers played by hand: as responder, frames at the wrong time, in the wrong order or
 * number. */
#include "lone_talk.h"

Test(node_exchange, floats_that_nobody_wants_are_read_and_dropped)
{
    /* Proves that a stream of an exchange that ended costs nothing but reading it. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    for (int kind = 0; kind <= WIRE_STREAM_STRATEGY + 1; kind++)
        say_chunk(lone, conn, (enum wire_stream)kind, 3, 0, true);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    lone_free(lone);
}

Test(node_exchange, who_waits_for_its_trainer_says_so_to_who_waits_for_it)
{
    /* Proves that a step that takes long does not look like a peer that is gone. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = 7}, alive;
    lone_say(lone, conn, WIRE_OFFER, &m);
    cr_assert_eq(responder(lone)->state, SLOT_TAKING);
    for (int i = 0; i < 3; i++) {
        lone_listen(lone, conn);
        lone_run(lone, lone->config.keepalive_us - 1);
        cr_assert(!lone_heard(lone, WIRE_KEEPALIVE, NULL), "%d", i);
        lone_run(lone, 1);
        cr_assert(lone_heard(lone, WIRE_KEEPALIVE, &alive) && alive.sequence == 7, "%d", i);
        cr_assert(alive.from_responder);
        lone_say(lone, conn, WIRE_KEEPALIVE, &m); /* it is there */
    }
    lone_free(lone);
}

Test(node_exchange, what_is_awaited_is_the_rest_of_a_wanted_chunk_and_nothing_else)
{
    /* A driver that reads floats right to their place writes where STORE would, and only then. */
    static uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200];
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "ann", 77), buffer = 99;
    uint64_t offset = 99;
    struct message_exchange m = {.sequence = 7};
    struct wire_chunk chunk = {.kind = WIRE_STREAM_OFFER, .sequence = 7};
    cr_assert_eq(parley_node_awaits(lone->node, conn, &buffer, &offset), 0);
    lone_say(lone, conn, WIRE_OFFER, &m);
    lone_done_all(lone);
    wire_chunk_write(bytes, &chunk, 1200);
    wire_chunk_seal(bytes, bytes + WIRE_CHUNK_HEAD_BYTES, 1200);
    lone_receive(lone, conn, bytes, WIRE_CHUNK_HEAD_BYTES);
    cr_assert_eq(parley_node_awaits(lone->node, conn, &buffer, &offset), 1200);
    cr_assert_eq(buffer, responder(lone)->theirs);
    cr_assert_eq(offset, 0);
    lone_receive(lone, conn, bytes + WIRE_CHUNK_HEAD_BYTES, 1000);
    cr_assert_eq(parley_node_awaits(lone->node, conn, &buffer, &offset), 200);
    cr_assert_eq(offset, 1000);
    lone_receive(lone, conn, bytes + WIRE_CHUNK_HEAD_BYTES + 1000, 200);
    cr_assert_eq(parley_node_awaits(lone->node, conn, &buffer, &offset), 0);
    /* Nobody waits for this one. */
    chunk.sequence = 8;
    wire_chunk_write(bytes, &chunk, 1200);
    lone_receive(lone, conn, bytes, WIRE_CHUNK_HEAD_BYTES);
    cr_assert_eq(parley_node_awaits(lone->node, conn, &buffer, &offset), 0);
    cr_assert_eq(parley_node_awaits(lone->node, conn + 100, &buffer, &offset), 0);
    lone_free(lone);
}

Test(node_exchange, what_is_awaited_aside_is_the_rest_of_a_chunk_that_comes_so)
{
    /* A driver fetches as many floats from elsewhere, and of no other chunk. */
    static uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200];
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct wire_chunk chunk = {.kind = WIRE_STREAM_OFFER, .sequence = 7};
    for (uint32_t aside = 0; aside < 2; aside++) {
        wire_chunk_write(bytes, &chunk, 1200);
        if (aside) wire_chunk_aside(bytes);
        lone_receive(lone, conn, bytes, WIRE_CHUNK_HEAD_BYTES);
        cr_assert_eq(parley_node_awaits_aside(lone->node, conn), aside * 1200);
        lone_receive(lone, conn, bytes + WIRE_CHUNK_HEAD_BYTES, 1000);
        cr_assert_eq(parley_node_awaits_aside(lone->node, conn), aside * 200);
        lone_receive(lone, conn, bytes + WIRE_CHUNK_HEAD_BYTES + 1000, 200);
        cr_assert_eq(parley_node_awaits_aside(lone->node, conn), 0);
    }
    cr_assert_eq(parley_node_awaits_aside(lone->node, conn + 100), 0);
    lone_free(lone);
}

Test(node_exchange, without_chunk_sums_nobody_looks_at_a_sum)
{
    /* A driver that cannot flip bits seals nothing: the floats are taken as they are. */
    struct parley_config config = lone_config();
    config.chunk_sums = false;
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = 7};
    lone_say(lone, conn, WIRE_OFFER, &m);
    lone_done_all(lone);
    say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, 0, false);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    cr_assert_eq(responder(lone)->state, SLOT_DIFFING);
    lone_free(lone);
}

Test(node_exchange, a_false_offset_or_sum_ends_the_connection_and_the_exchange)
{
    /* Proves that floats are taken only in order and whole. */
    for (int false_sum = 0; false_sum < 2; false_sum++) {
        struct lone *lone = plain_node();
        uint32_t conn = accepted_peer(lone, "a", 1);
        struct message_exchange m = {.sequence = 7};
        lone_say(lone, conn, WIRE_OFFER, &m);
        cr_assert_eq(responder(lone)->state, SLOT_TAKING);
        say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, false_sum ? 0 : 4, !false_sum);
        cr_assert_eq(lone->conns[conn], LONE_CLOSED);
        lone_done_all(lone);
        cr_assert_eq(responder(lone)->state, SLOT_IDLE);
        cr_assert_eq(ledger(lone).applied, 0);
        lone_free(lone);
    }
}

Test(node_exchange, a_commit_out_of_nowhere_applies_nothing)
{
    /* Proves that COMMIT counts only for what is READY; it is acknowledged, to be forgotten. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    lone_listen(lone, conn);
    struct message_exchange m = {.sequence = 3}, answer;
    lone_say(lone, conn, WIRE_COMMIT, &m);
    cr_assert(lone_heard(lone, WIRE_APPLIED, &answer) && answer.sequence == 3);
    cr_assert(lone->ops_count == 0 && ledger(lone).applied == 0);
    lone_free(lone);
}

Test(node_exchange, a_commit_said_twice_is_applied_once)
{
    /* Proves exactly-once: while the delta is being added, after it, and over another link. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    to_ready(lone, conn);
    struct message_exchange m = {.sequence = 7}, answer;
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_COMMIT, &m);
    lone_say(lone, conn, WIRE_COMMIT, &m);
    cr_assert(!lone_heard(lone, WIRE_APPLIED, NULL), "it is not in x yet");
    lone_done_all(lone);
    cr_assert(lone_heard(lone, WIRE_APPLIED, &answer));
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    conn = accepted_peer(lone, "a", 1);
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_COMMIT, &m);
    lone_done_all(lone);
    cr_assert(lone_heard(lone, WIRE_APPLIED, &answer) && answer.sequence == 7);
    cr_assert_eq(ledger(lone).applied, 1);
    lone_free(lone);
}

Test(node_exchange, a_doubt_ends_once_however_often_it_is_answered)
{
    /* Proves that READY, a broken link, COMMIT said again and OUTCOME add the delta once. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    to_ready(lone, conn);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    cr_assert_eq(ledger(lone).in_doubt, 1);
    conn = accepted_peer(lone, "a", 1);
    lone_listen(lone, conn);
    struct message_exchange m = {.sequence = 7};
    struct message_outcome_frame outcome = {1, lone->config.boot, 7, MESSAGE_COMMITTED};
    lone_say(lone, conn, WIRE_COMMIT, &m);
    lone_say(lone, conn, WIRE_OUTCOME, &outcome);
    outcome.outcome = MESSAGE_UNKNOWN;
    lone_say(lone, conn, WIRE_OUTCOME, &outcome);
    lone_done_all(lone);
    lone_say(lone, conn, WIRE_OUTCOME, &outcome);
    struct parley_ledger after = ledger(lone);
    cr_assert(after.applied == 1 && after.in_doubt == 0 && after.dropped == 0);
    cr_assert(lone_heard(lone, WIRE_APPLIED, NULL));
    lone_free(lone);
}

Test(node_exchange, of_those_who_may_know_what_was_decided_not_the_same_is_asked_for_ever)
{
    /* Proves that one who reaches the initiator as little as the node does keeps no doubt alive
     * that another could end. */
    for (int i = 0; i < 2; i++) {
        struct lone *lone = plain_node();
        uint32_t a = accepted_peer(lone, "a", 1);
        uint32_t others[] = {accepted_peer(lone, "b", 2), accepted_peer(lone, "c", 3)};
        struct message_probe ping = {.boot = lone->config.boot};
        to_ready(lone, a);
        lone_listen(lone, others[i]);
        lone_closed(lone, a, PARLEY_CLOSED_RESET);
        for (int second = 0; second < 60; second++) {
            lone_say(lone, others[0], WIRE_PING, &ping);
            lone_say(lone, others[1], WIRE_PING, &ping);
            lone_run(lone, 1000000);
        }
        cr_assert_eq(ledger(lone).in_doubt, 1);
        cr_assert(lone_heard(lone, WIRE_ASK, NULL), "%d", i);
        lone_free(lone);
    }
}

Test(node_exchange, who_is_asked_in_vain_is_asked_ever_more_rarely)
{
    struct lone *lone = plain_node();
    uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2), asked = 0;
    to_ready(lone, a);
    lone_closed(lone, a, PARLEY_CLOSED_RESET);
    for (int second = 0; second < 60; second++) {
        lone_listen(lone, b);
        say_lives(lone, b);
        lone_run(lone, 1000000);
        asked += lone_heard(lone, WIRE_ASK, NULL);
    }
    /* Each 0.2 s at first, each 5 s in the end; here counted once a second. */
    cr_assert(asked >= 10 && asked <= 20, "%u", asked);
    lone_free(lone);
}

Test(node_exchange, whose_doubt_is_over_gives_its_place_to_a_later_start)
{
    /* Proves that a member that is gone is not taken for one in use because of a delta that is in x
     * by now. */
    struct parley_config config = lone_config();
    config.members_max = 3;
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    accepted_peer(lone, "b", 2);
    to_ready(lone, conn);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    conn = accepted_peer(lone, "a", 1);
    struct message_outcome_frame outcome = {1, lone->config.boot, 7, MESSAGE_COMMITTED};
    lone_say(lone, conn, WIRE_OUTCOME, &outcome);
    lone_done_all(lone);
    cr_assert(ledger(lone).applied == 1 && ledger(lone).in_doubt == 0);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    for (uint32_t dial = 1; dial <= lone->highest; dial += 2)
        if (lone->conns[dial] == LONE_DIALED) lone_closed(lone, dial, PARLEY_CLOSED_REFUSED);
    lone_run(lone, 600000);
    conn = lone_peer(lone, "a", 3);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    cr_assert_eq(roster_find(lone->node->roster, 1), NONE);
    lone_free(lone);
}

enum end { LEAVES_IN_DOUBT, LEAVES_READY, FALLS_ILL_READY, ENDS };

Test(node_exchange, what_is_undecided_as_a_node_ends_is_counted)
{
    /* Proves that no delta is lost in silence: the mean of the others may be without it. */
    for (enum end end = 0; end < ENDS; end++) {
        struct lone *lone = plain_node();
        uint32_t conn = accepted_peer(lone, "a", 1);
        to_ready(lone, conn);
        if (end == LEAVES_IN_DOUBT) lone_closed(lone, conn, PARLEY_CLOSED_RESET);
        if (end == FALLS_ILL_READY) {
            say_left(lone, conn, 1); /* nobody could help */
            lone->version = 1;
            lone_stepped(lone, 9, 0.0 / 0.0);
        } else {
            lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_LEAVE});
            lone_run(lone, lone->config.leave_timeout_us);
        }
        struct parley_ledger after = ledger(lone);
        cr_assert(lone->finished && after.dropped == 1 && after.mass_dropped > 0, "end %d", end);
        lone_free(lone);
    }
}

/* What an offer of the peer at `conn` gets. */
static bool offer_gets(struct lone *lone, uint32_t conn, enum wire_type type)
{
    struct message_exchange offer = {.sequence = 7};
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_OFFER, &offer);
    return lone_heard(lone, type, NULL);
}

Test(node_exchange, who_has_left_undecided_makes_room_for_another)
{
    /* Proves that two that left, and where nobody listens now, do not end a node's averaging. */
    struct lone *lone = plain_node();
    for (uint64_t boot = 1; boot <= 2; boot++) {
        uint32_t conn = accepted_peer(lone, boot == 1 ? "a" : "b", boot);
        to_ready(lone, conn);
        say_left(lone, conn, boot);
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    }
    cr_assert_eq(ledger(lone).in_doubt, 2);
    uint32_t conn = accepted_peer(lone, "c", 3);
    cr_assert(offer_gets(lone, conn, WIRE_REFUSE), "they may have gone on for a while");
    for (uint32_t dial = 1; dial <= lone->highest; dial += 2)
        if (lone->conns[dial] == LONE_DIALED) lone_closed(lone, dial, PARLEY_CLOSED_REFUSED);
    cr_assert(offer_gets(lone, conn, WIRE_ACCEPT));
    cr_assert_eq(ledger(lone).dropped, 1);
    lone_free(lone);
}

Test(node_exchange, whose_initiators_are_silent_makes_room_after_ten_minutes)
{
    /* Proves that a process which was paused for less finds its delta where it left it. */
    struct lone *lone = plain_node();
    for (uint64_t boot = 1; boot <= 2; boot++) {
        uint32_t conn = accepted_peer(lone, boot == 1 ? "a" : "b", boot);
        to_ready(lone, conn);
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    }
    for (int minute = 0; minute < 9; minute++) {
        lone_run(lone, 60 * 1000000);
        for (uint32_t dial = 1; dial <= lone->highest; dial += 2) /* given up; or places run out */
            if (lone->conns[dial] == LONE_CLOSED) lone_closed(lone, dial, PARLEY_CLOSED_LOCAL);
    }
    uint32_t conn = accepted_peer(lone, "c", 3);
    cr_assert(offer_gets(lone, conn, WIRE_REFUSE));
    for (int s = 0; s < 2 * 60; s++) {
        lone_run(lone, 1000000);
        say_trains(lone, conn, 3);
    }
    cr_assert(offer_gets(lone, conn, WIRE_ACCEPT));
    cr_assert_eq(ledger(lone).dropped, 1);
    lone_free(lone);
}

Test(node_exchange, who_is_in_the_middle_of_a_chunk_for_long_says_that_it_lives)
{
    /* Proves that whoever sends it hears so, though what it asks comes behind the chunk. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_exchange offer = {.sequence = 7};
    lone_say(lone, conn, WIRE_OFFER, &offer);
    lone_done_all(lone);
    uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200] = {0};
    struct wire_chunk chunk = {.kind = WIRE_STREAM_OFFER, .sequence = 7};
    struct message_probe alive = {.sequence = 1};
    wire_chunk_write(bytes, &chunk, 1200);
    lone_receive(lone, conn, bytes, WIRE_CHUNK_HEAD_BYTES + 400);
    for (size_t at = 400; at < 800; at += 100) {
        lone_listen(lone, conn);
        lone_run(lone, 400000);
        lone_receive(lone, conn, bytes + WIRE_CHUNK_HEAD_BYTES + at, 100);
        cr_assert_eq(lone_heard(lone, WIRE_ACK, &alive), at == 600, "%zu", at);
    }
    cr_assert_eq(alive.sequence, 0);
    lone_free(lone);
}

Test(node_exchange, what_is_being_added_makes_no_room)
{
    /* Proves that a delta that was decided is not given up for a new exchange, though its initiator
     * is gone. */
    struct lone *lone = plain_node();
    for (uint64_t boot = 1; boot <= 2; boot++) {
        uint32_t conn = accepted_peer(lone, boot == 1 ? "a" : "b", boot);
        to_ready(lone, conn);
        if (boot == 1) say_left(lone, conn, boot);
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    }
    for (uint32_t dial = 1; dial <= lone->highest; dial += 2)
        if (lone->conns[dial] == LONE_DIALED) lone_closed(lone, dial, PARLEY_CLOSED_REFUSED);
    uint32_t c = accepted_peer(lone, "c", 3);
    struct message_outcome_frame outcome = {1, lone->config.boot, 7, MESSAGE_COMMITTED};
    lone_say(lone, c, WIRE_OUTCOME, &outcome);
    struct message_exchange offer = {.sequence = 7};
    lone_listen(lone, c);
    lone_say(lone, c, WIRE_OFFER, &offer);
    cr_assert(lone_heard(lone, WIRE_REFUSE, NULL) && ledger(lone).dropped == 0);
    lone_done_all(lone);
    cr_assert_eq(ledger(lone).applied, 1);
    lone_free(lone);
}

Test(node_exchange, what_a_replaced_node_left_undecided_is_given_up)
{
    /* Proves that the link to a process that died, and whose name another has by now, leaves no
     * doubt as it breaks: two of those would end a node's averaging for minutes. */
    struct lone *lone = plain_node();
    struct message_members news = {.count = 1};
    struct record *r = &news.records[0];
    uint32_t a = accepted_peer(lone, "a", 1), c = accepted_peer(lone, "c", 3);
    to_ready(lone, a);
    *r = (struct record){.boot = 1, .name = "a", .address = "x:1", .incarnation = 1, .clock = 1};
    r->state = PARLEY_MEMBER_DEAD;
    lone_silence(lone);
    lone_say(lone, c, WIRE_MEMBERS, &news);
    r->boot = 11;
    r->state = PARLEY_MEMBER_ALIVE;
    r->phase = PARLEY_PHASE_TRAIN;
    lone_say(lone, c, WIRE_MEMBERS, &news);
    if (lone->conns[a] == LONE_OPEN) lone_closed(lone, a, PARLEY_CLOSED_RESET);
    cr_assert(ledger(lone).in_doubt == 0 && ledger(lone).dropped == 1);
    lone_free(lone);
}

Test(node_exchange, what_was_decided_does_not_go_with_who_decided_it)
{
    /* Proves that of a node that is started anew neither the answers that were heard are taken
     * back, nor what is in doubt with another. */
    for (uint32_t committed = 0; committed < 2; committed++) {
        struct lone *lone = plain_node();
        uint32_t conns[] = {accepted_peer(lone, "a", 1), accepted_peer(lone, "b", 2)};
        for (int i = 0; i < 2; i++) {
            to_ready(lone, conns[i]);
            lone_closed(lone, conns[i], PARLEY_CLOSED_RESET);
        }
        cr_assert_eq(ledger(lone).in_doubt, 2);
        struct message_outcome_frame outcome = {1, lone->config.boot, 7, MESSAGE_ABORTED};
        if (committed) outcome.outcome = MESSAGE_COMMITTED;
        uint32_t c = accepted_peer(lone, "c", 3);
        lone_say(lone, c, WIRE_OUTCOME, &outcome);
        struct record a = {.boot = 1, .name = "a", .address = "x:1", .incarnation = 1, .clock = 1};
        a.state = PARLEY_MEMBER_DEAD;
        say_record(lone, c, &a);
        accepted_peer(lone, "a", 11);
        lone_done_all(lone);
        struct parley_ledger after = ledger(lone);
        cr_assert(after.dropped == 0 && after.in_doubt == 1 && after.applied == committed);
        lone_free(lone);
    }
}

Test(node_exchange, where_either_has_another_exchange_open_a_quarter_is_mixed)
{
    /* Proves that it is the node's own other exchange too, and not only its peer's. */
    for (uint32_t own = 0; own < 2; own++) {
        for (uint32_t open = 0; open < 2; open++) {
            struct lone *lone = plain_node();
            uint32_t a = accepted_peer(lone, "a", 1), b = accepted_peer(lone, "b", 2);
            struct message_exchange m = {.share = SHARE_ALONE}, answer;
            if (own) {
                m.sequence = to_offered(lone, a, 1);
                lone_say(lone, a, WIRE_ACCEPT, &m);
            }
            m = (struct message_exchange){.sequence = 7, .open = open};
            lone_listen(lone, b);
            lone_say(lone, b, WIRE_OFFER, &m);
            cr_assert(lone_heard(lone, WIRE_ACCEPT, &answer));
            cr_assert_eq(answer.share, own || open ? SHARE_TWO_AT_ONCE : SHARE_ALONE, "%u %u", own,
                         open);
            lone_free(lone);
        }
    }
}

Test(node_exchange, a_broken_link_at_any_point_frees_the_responders_slot)
{
    /* Proves that neither an exchange nor a state being served keeps the slot after its link. */
    for (int point = 0; point < 5; point++) {
        struct lone *lone = plain_node();
        uint32_t conn = accepted_peer(lone, "a", 1);
        struct message_exchange m = {.sequence = 7};
        struct message_fetch fetch = {.sequence = 7};
        if (point < 3) lone_say(lone, conn, WIRE_OFFER, &m);
        if (point >= 3) lone_say(lone, conn, WIRE_FETCH, &fetch);
        if (point == 1 || point == 4) lone_done(lone, 0); /* the snapshot */
        if (point == 2) say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, 0, true);
        cr_assert_neq(responder(lone)->state, SLOT_IDLE);
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
        lone_done_all(lone);
        cr_assert_eq(responder(lone)->state, SLOT_IDLE, "point %d", point);
        lone_free(lone);
    }
}

Test(node_exchange, a_connection_where_a_chunk_failed_is_gone_before_the_driver_says_so)
{
    /* Proves that what failed is not sent there again, to fail again, with no end. */
    struct lone *lone = plain_node();
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_fetch fetch = {.sequence = 7};
    lone_say(lone, conn, WIRE_FETCH, &fetch);
    lone_done(lone, 0); /* the snapshot */
    cr_assert_eq(lone_chunks_fail(lone, conn), 1);
    cr_assert_eq(responder(lone)->state, SLOT_IDLE);
    cr_assert_null(connection_of(lone->node, roster_find(lone->node->roster, 1)));
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    lone_free(lone);
}

/* All that is under way ends but what goes out, which the peer leaves in its socket. */
static void done_but_chunks(struct lone *lone)
{
    for (uint32_t i = 0; i < lone->ops_count;)
        if (lone->ops[i].type == PARLEY_UPDATE_SEND_CHUNK)
            i++;
        else
            lone_done(lone, i);
}

Test(node_exchange, whom_a_node_draws_once_has_one_say_in_its_radius)
{
    /* Proves that who takes the offer of a node, breaks off, and offers itself while the first
     * exchange is not yet let go of, does not count twice among the distances seen. */
    struct parley_config config = lone_config();
    config.robust = true;
    struct lone *lone = training_node(&config);
    const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
    uint32_t conn = accepted_peer(lone, "a", 1);
    accepted_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    done_but_chunks(lone);
    cr_assert_eq(lone->node->robust.count, 1);
    m.from_responder = 1;
    lone_say(lone, conn, WIRE_ABORT, &m);
    cr_assert_eq(asks->state, SLOT_ENDING);
    lone_say(lone, conn, WIRE_OFFER, &(struct message_exchange){.sequence = 7});
    done_but_chunks(lone);
    say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, 0, true);
    done_but_chunks(lone);
    cr_assert_eq(responder(lone)->state, SLOT_READY);
    cr_assert_eq(lone->node->robust.count, 1);
    lone_free(lone);
}
