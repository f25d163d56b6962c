/* One node, its peers played by hand: who is believed of whom, and who is asked whether it lives.
 */
#include "core/strategy/ps/server.h"
#include "core/training/stop.h"
#include "lone_talk.h"

Test(node_members, the_living_are_named_once_each_and_in_order)
{
    /* Proves that a node that was started anew, whose first process nobody has called dead yet, is
     * one name; that the dead are none; and the order, whatever that of the records is. */
    struct lone *lone = plain_node();
    uint32_t conn = lone_peer(lone, "z", 1);
    struct message_members members = {.count = 4};
    const char *const told[] = {"b", "c", "b", "a"};
    for (uint32_t i = 0; i < 4; i++) {
        members.records[i] = (struct record){.boot = 20 + i, .address = "x:1", .clock = 1};
        snprintf(members.records[i].name, sizeof members.records[i].name, "%s", told[i]);
        if (i == 1) members.records[i].state = PARLEY_MEMBER_DEAD;
    }
    lone_say(lone, conn, WIRE_MEMBERS, &members);
    cr_assert_eq(parley_node_members(lone->node), 6);
    const char *names[6], *const living[] = {"a", "b", self_of(lone->node)->name, "z"};
    cr_assert_eq(parley_node_live(lone->node, names), 4);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_str_eq(names[i], living[i]);
    lone_free(lone);
}

/* The peer at `conn` says this of b, whose boot id is 2. */
static void say_of_b(struct lone *lone, uint32_t conn, uint32_t incarnation,
                     enum parley_member_state state)
{
    struct message_members members = {.count = 1};
    members.records[0] = (struct record){
        .boot = 2, .name = "b", .address = "x:1", .incarnation = incarnation, .state = state};
    lone_say(lone, conn, WIRE_MEMBERS, &members);
}

Test(node_members, who_says_a_suspicion_again_confirms_it_once)
{
    /* Proves that the time to refute it is shortened by so many voices, not by one that is loud. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), b = lone_peer(lone, "b", 2), c = lone_peer(lone, "c", 3);
    lone_closed(lone, b, PARLEY_CLOSED_RESET);
    const struct member *suspect = &lone->node->members[roster_find(lone->node->roster, 2)];
    uint64_t alone_us = suspect->suspect_until_us;
    say_of_b(lone, a, 0, PARLEY_MEMBER_SUSPECT);
    uint64_t once_us = suspect->suspect_until_us;
    say_of_b(lone, a, 0, PARLEY_MEMBER_SUSPECT);
    cr_assert(once_us < alone_us && suspect->suspect_until_us == once_us);
    say_of_b(lone, c, 0, PARLEY_MEMBER_SUSPECT);
    cr_assert_lt(suspect->suspect_until_us, once_us);
    lone_free(lone);
}

Test(node_members, who_is_heard_is_not_dead_to_a_node_whose_clock_has_just_begun)
{
    /* A machine's clock begins as it starts, and an interval may be long. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    lone_peer(lone, "b", 2);
    cr_assert_lt(lone->node->now_us, lone->node->config.probe_interval_us);
    say_of_b(lone, a, 0, PARLEY_MEMBER_DEAD);
    cr_expect(membership_is_live(lone->node, roster_find(lone->node->roster, 2)));
    lone_free(lone);
}

/* Whether the node, told by the peer at `conn` that b is alive, tells its driver that it had been
 * suspected wrongly. */
static bool was_wrong(struct lone *lone, uint32_t conn, uint32_t incarnation)
{
    say_of_b(lone, conn, incarnation, PARLEY_MEMBER_ALIVE);
    const struct parley_update *told = NULL;
    for (uint32_t i = 0; i < lone->updates.count; i++)
        if (lone->updates.list[i].type == PARLEY_UPDATE_MEMBER) told = &lone->updates.list[i];
    cr_assert(told && told->member.boot == 2 && told->member.state == PARLEY_MEMBER_ALIVE);
    return told->member.suspected;
}

Test(node_members, a_suspicion_was_wrong_only_of_one_that_was_taken_to_live_before)
{
    /* People hear nothing of those: that one is there, or back from the dead, is news to them. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    say_of_b(lone, a, 0, PARLEY_MEMBER_SUSPECT);
    cr_expect_not(was_wrong(lone, a, 1));
    say_of_b(lone, a, 1, PARLEY_MEMBER_SUSPECT);
    cr_expect(was_wrong(lone, a, 2));
    say_of_b(lone, a, 2, PARLEY_MEMBER_DEAD);
    say_of_b(lone, a, 3, PARLEY_MEMBER_SUSPECT);
    cr_expect_not(was_wrong(lone, a, 4));
    lone_free(lone);
}

/* What the node has told of b over the link that is listened to: -1 if nothing. */
static int told_of_b(struct lone *lone)
{
    int state = -1;
    for (size_t at = 0; at < lone->sent_size;) {
        struct wire_header header;
        struct message_members told;
        cr_assert_eq(wire_header_read(lone->sent + at, &header), 0);
        at += WIRE_HEADER_BYTES;
        if (header.type == WIRE_MEMBERS) {
            cr_assert_eq(message_decode(WIRE_MEMBERS, lone->sent + at, header.size, &told,
                                        lone->updates.unpacker),
                         0);
            for (uint32_t i = 0; i < told.count; i++)
                if (told.records[i].boot == 2) state = told.records[i].state;
        }
        at += header.size;
    }
    return state;
}

Test(node_members, who_is_taken_for_silent_or_dead_hears_of_it_on_its_own_link_at_once)
{
    /* Proves that it can refute that before news has come round: where its link stands, and where
     * it makes one only then. */
    static const struct {
        enum parley_member_state state;
        bool links_first;
    } cases[] = {
        {PARLEY_MEMBER_SUSPECT, true}, {PARLEY_MEMBER_SUSPECT, false}, {PARLEY_MEMBER_DEAD, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lone *lone = plain_node();
        uint32_t a = lone_peer(lone, "a", 1),
                 b = cases[i].links_first ? lone_peer(lone, "b", 2) : 0;
        if (cases[i].links_first) lone_listen(lone, b);
        say_of_b(lone, a, 0, cases[i].state);
        if (!cases[i].links_first) {
            struct message_hello hello = lone_hello(lone, "b", 2);
            b = lone_incoming(lone, "127.0.0.1:50000");
            lone_listen(lone, b);
            lone_say(lone, b, WIRE_HELLO, &hello);
        }
        cr_assert_eq(told_of_b(lone), cases[i].state);
        lone_free(lone);
    }
}

Test(node_members, who_is_heard_is_not_dead_because_others_say_so)
{
    /* Proves that it is told of such a claim instead, but of no more than one in a while, and that
     * others are believed of one that has fallen silent. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), b = lone_peer(lone, "b", 2);
    const struct record *record = record_of(lone->node, roster_find(lone->node->roster, 2));
    for (int claims = 1; claims <= 2; claims++) {
        lone_run(lone, 1500000);
        say_of_b(lone, b, 0, PARLEY_MEMBER_ALIVE);
        lone_listen(lone, b);
        say_of_b(lone, a, 0, PARLEY_MEMBER_DEAD);
        cr_expect_eq(record->state, PARLEY_MEMBER_ALIVE);
        cr_expect_eq(told_of_b(lone), PARLEY_MEMBER_DEAD);
        lone_listen(lone, b);
        say_of_b(lone, a, 1, PARLEY_MEMBER_DEAD);
        cr_expect_eq(record->state, PARLEY_MEMBER_ALIVE);
        cr_expect_eq(told_of_b(lone), -1);
    }
    lone_run(lone, 1500000);
    say_of_b(lone, a, 1, PARLEY_MEMBER_DEAD);
    cr_expect_eq(record->state, PARLEY_MEMBER_DEAD);
    lone_free(lone);
}

Test(node_members, who_has_news_of_one_that_is_dead_here_is_told_that)
{
    /* Proves that one whom nobody asks for news is put right; and that nobody is told what it has
     * just said itself, or knows better. */
    static const struct {
        uint32_t incarnation;
        enum parley_member_state state;
        int told;
    } cases[] = {{0, PARLEY_MEMBER_ALIVE, PARLEY_MEMBER_DEAD},
                 {0, PARLEY_MEMBER_SUSPECT, PARLEY_MEMBER_DEAD},
                 {0, PARLEY_MEMBER_DEAD, -1},
                 {1, PARLEY_MEMBER_SUSPECT, -1},
                 {1, PARLEY_MEMBER_ALIVE, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lone *lone = plain_node();
        uint32_t a = lone_peer(lone, "a", 1);
        say_of_b(lone, a, 0, PARLEY_MEMBER_DEAD);
        struct message_members news = {.count = 1};
        news.records[0] = *record_of(lone->node, roster_find(lone->node->roster, 2));
        news.records[0].clock++;
        news.records[0].incarnation = cases[i].incarnation;
        news.records[0].state = cases[i].state;
        lone_listen(lone, a);
        lone_say(lone, a, WIRE_MEMBERS, &news);
        cr_expect_eq(told_of_b(lone), cases[i].told, "case %zu", i);
        lone_free(lone);
    }
}

Test(node_members, who_asks_for_all_news_is_not_told_what_it_has_said_itself)
{
    struct lone *lone = plain_node();
    struct message_members m = {.count = 1, .ask = MESSAGE_ASKS};
    uint32_t b;
    lone_peer(lone, "a", 1);
    b = lone_peer(lone, "b", 2);
    m.records[0] = training_a(2);
    lone_listen(lone, b);
    lone_say(lone, b, WIRE_MEMBERS, &m);
    lone_run(lone, 1000000);
    cr_assert(lone_heard(lone, WIRE_MEMBERS, NULL));
    cr_assert_eq(told_of_b(lone), -1);
    lone_free(lone);
}

Test(node_members, the_dead_end_no_training)
{
    /* Proves that what is heard of the end from one that is dead by now is no voice, though it saw
     * half of all; from the living it is one. c, which was cut off, has ended alone. */
    for (int dead = 0; dead < 2; dead++) {
        struct lone *lone = plain_node();
        uint32_t a = lone_peer(lone, "a", 1);
        struct record ends = {.name = "c",
                              .address = "x:2",
                              .boot = 3,
                              .incarnation = 1,
                              .clock = 1,
                              .phase = PARLEY_PHASE_STOP,
                              .stop = PARLEY_STOP_BUDGET,
                              .stop_live = 1};
        say_trains(lone, a, 1);
        say_record(lone, a, &ends);
        cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_TRAIN);
        ends.name[0] = 'b';
        ends.boot = 2;
        ends.stop_live = 2; /* of four */
        ends.state = dead ? PARLEY_MEMBER_DEAD : PARLEY_MEMBER_ALIVE;
        say_record(lone, a, &ends);
        lone_run(lone, 100000);
        cr_assert_eq(phase_of(lone->node) == PARLEY_PHASE_TRAIN, dead);
        lone_free(lone);
    }
}

Test(node_members, who_has_ended_and_left_has_one_voice_in_whether_training_ends)
{
    /* Of four that are known, while they come and go, two are half. */
    struct lone *lone = plain_node();
    uint32_t a = accepted_peer(lone, "a", 1);
    struct record b = {.boot = 2,
                       .name = "b",
                       .address = "x:2",
                       .clock = 1,
                       .state = PARLEY_MEMBER_LEFT,
                       .phase = PARLEY_PHASE_DONE,
                       .stop = PARLEY_STOP_BUDGET,
                       .stop_live = 1};
    say_record(lone, a, &b);
    lone_peer(lone, "c", 3);
    struct record ends = training_a(1);
    ends.phase = PARLEY_PHASE_STOP;
    ends.stop = PARLEY_STOP_BUDGET;
    ends.stop_live = 2;
    cr_assert_eq(phase_of(lone->node), PARLEY_PHASE_TRAIN);
    say_record(lone, a, &ends);
    cr_assert_gt(phase_of(lone->node), PARLEY_PHASE_TRAIN);
    lone_free(lone);
}

Test(node_members, a_view_that_goes_on_moving_is_waited_for_three_seconds_in_all)
{
    /* Else a budget that is spent would not end training while somebody comes each second. */
    struct lone *lone = plain_node();
    for (uint64_t boot = 1; boot <= 5; boot++) {
        lone_peer(lone, (char[]){(char)('a' + boot), 0}, boot);
        cr_assert_eq(stop_view_begins_to_move(lone->node), boot <= 3, "%d", (int)boot);
        lone_run(lone, 1000000);
    }
    lone_free(lone);
}

Test(node_members, who_asks_for_the_state_of_a_run_is_told_of_its_members_from_a_place_on)
{
    struct lone *lone = plain_node();
    lone_peer(lone, "a", 1);
    lone_peer(lone, "b", 2);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    struct message_status status = {.from = 1};
    static struct message_report report;
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_STATUS, &status);
    cr_assert(lone_heard(lone, WIRE_REPORT, &report));
    cr_assert(report.total == 3 && report.live == 3 && report.known == 3);
    cr_assert_str_eq(report.cluster, "parley");
    cr_assert(report.count == 2 && report.records[0].boot == 1 && report.records[1].boot == 2);
    lone_free(lone);
}

Test(node_members, nobody_gets_another_name_by_what_is_said_of_it)
{
    /* Proves that a name stays with the boot that it was first heard of, its own word included. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), b = lone_peer(lone, "b", 2);
    struct record claim = {.boot = 2, .name = "a", .address = "x:9", .incarnation = 1};
    for (uint32_t clock = 1; clock <= 2; clock++) {
        claim.clock = clock;
        say_record(lone, clock == 1 ? a : b, &claim);
        const struct record *r = record_of(lone->node, roster_find(lone->node->roster, 2));
        cr_assert(r->clock == clock && strcmp(r->name, "b") == 0, "%s", r->name);
    }
    lone_free(lone);
}

Test(node_members, what_others_say_of_a_far_incarnation_is_not_believed)
{
    /* Proves that one claim near the last number does not leave a member none to refute with. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    (void)lone_peer(lone, "b", 2);
    const struct record *b = record_of(lone->node, roster_find(lone->node->roster, 2));
    say_of_b(lone, a, 1000000, PARLEY_MEMBER_DEAD);
    cr_assert(b->state == PARLEY_MEMBER_ALIVE && b->incarnation == 0);
    lone_silence(lone);
    say_of_b(lone, a, 2, PARLEY_MEMBER_DEAD);
    cr_assert(b->state == PARLEY_MEMBER_DEAD && b->incarnation == 2);
    lone_free(lone);
}

Test(node_members, a_members_own_word_outbids_a_lie_about_it)
{
    /* Proves that who was first heard of by a far incarnation is believed on its own link. */
    struct lone *lone = plain_node();
    say_of_b(lone, lone_peer(lone, "a", 1), 1000000, PARLEY_MEMBER_DEAD);
    uint32_t conn = lone_peer(lone, "b", 2);
    const struct record *b = record_of(lone->node, roster_find(lone->node->roster, 2));
    cr_assert_eq(b->state, PARLEY_MEMBER_DEAD);
    say_of_b(lone, conn, 1, PARLEY_MEMBER_ALIVE);
    cr_assert(b->state == PARLEY_MEMBER_ALIVE && b->incarnation == 1);
    say_of_b(lone, conn, 1000000, PARLEY_MEMBER_ALIVE);
    cr_assert_eq(b->incarnation, 1000000, "it may have been called gone so often");
    lone_free(lone);
}

/* How long a silent peer is probed before others are asked to, by a node that has been suspected
 * so many times. */
static uint64_t asks_others_after_us(uint32_t times)
{
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    (void)lone_peer(lone, "b", 2);
    for (uint32_t i = 1; i <= times; i++) {
        struct message_members members = {.count = 1};
        members.records[0] = *record_of(lone->node, 0);
        members.records[0].state = PARLEY_MEMBER_SUSPECT;
        lone_say(lone, a, WIRE_MEMBERS, &members);
    }
    for (int i = 0; i < 10000 && !lone->node->probing.now.indirect; i++)
        lone_run(lone, 1000);
    cr_assert(lone->node->probing.now.indirect);
    uint64_t after_us = lone->now_us - lone->node->probing.now.sent_us;
    lone_free(lone);
    return after_us;
}

Test(node_members, who_has_been_suspected_gives_others_more_time)
{
    /* Proves that a node that is itself slow to hear does not call others silent (Lifeguard). */
    uint64_t timeout_us = lone_config().probe_timeout_us;
    cr_assert_lt(asks_others_after_us(0), 2 * timeout_us);
    cr_assert_geq(asks_others_after_us(4), 3 * timeout_us);
}

/* Whether a node of two peers, one of which is silent, asks over the link to that one, or over that
 * to the other, for a probe of it. */
static bool asks_for_a_probe(bool of_itself)
{
    bool heard = false;
    for (int i = 0; i < 2 && !heard; i++) {
        struct lone *lone = plain_node();
        uint32_t conns[] = {lone_peer(lone, "a", 1), lone_peer(lone, "b", 2)};
        struct message_probe probe;
        lone_listen(lone, conns[i]);
        for (int ms = 0; ms < 10000 && !lone->node->probing.now.indirect; ms++)
            lone_run(lone, 1000);
        bool is_silent = connection_of(lone->node, lone->node->probing.now.member)->id == conns[i];
        heard = is_silent == of_itself && lone_heard(lone, WIRE_PING_FOR, &probe);
        lone_free(lone);
    }
    return heard;
}

Test(node_members, others_are_asked_for_a_probe_of_who_is_silent_and_not_that_one)
{
    cr_assert(asks_for_a_probe(false));
    cr_assert(!asks_for_a_probe(true));
}

/* Members that have been suspected. */
static uint32_t suspected(const struct lone *lone)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < lone->node->roster->count; i++)
        count += record_of(lone->node, i)->state != PARLEY_MEMBER_ALIVE;
    return count;
}

Test(node_members, who_does_not_answer_itself_is_not_asked_for_a_probe_of_others)
{
    /* Proves that a node that one alone reaches finds that one, once it has pinged the others in
     * vain, and calls nobody silent of whom that one hears. */
    enum { SILENT = 5, LEARNT_S = 3, END_S = 9 };
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), before = 0, asked = 0;
    char name[] = "b";
    for (uint64_t boot = 2; boot < 2 + SILENT; boot++, name[0]++)
        lone_peer(lone, name, boot);
    for (uint64_t ms = 0; ms < END_S * 1000; ms += 100) {
        struct message_probe probe = {0}, alive = {0, 1};
        if (ms == LEARNT_S * 1000) before = suspected(lone);
        lone_listen(lone, a);
        lone_run(lone, 100000);
        lone_say(lone, a, WIRE_ACK, &alive);
        if (!lone_heard(lone, WIRE_PING_FOR, &probe)) continue;
        lone_say(lone, a, WIRE_ACK, &probe);
        asked += ms >= LEARNT_S * 1000;
    }
    cr_assert_gt(asked, 3, "%u", asked);
    cr_assert_eq(suspected(lone), before);
    lone_free(lone);
}

/* b says that a lives, however long the link to a is silent. After how long that link is closed;
 * 0: it stays. */
static uint64_t closes_silent_link_after_us(uint64_t silent_us)
{
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), b = lone_peer(lone, "b", 2);
    uint64_t from_us = lone->now_us, heard_us = from_us;
    struct message_probe probe;
    while (lone->now_us < from_us + 40 * UINT64_C(1000000)) {
        struct message_probe alive = {0, 2};
        lone_listen(lone, b);
        lone_run(lone, 100000);
        lone_say(lone, b, WIRE_ACK, &alive);
        if (lone_heard(lone, WIRE_PING_FOR, &probe)) {
            alive = (struct message_probe){probe.sequence, probe.boot};
            lone_say(lone, b, WIRE_ACK, &alive);
        }
        if (lone->now_us >= heard_us + silent_us) {
            heard_us = lone->now_us;
            alive = (struct message_probe){0, 1};
            lone_say(lone, a, WIRE_ACK, &alive);
        }
        const struct conn *link = connection_find(lone->node, a);
        if (!link || link->state != CONN_LIVE) break;
    }
    uint64_t after_us = lone->now_us - from_us;
    cr_expect_eq(record_of(lone->node, 1)->state, PARLEY_MEMBER_ALIVE);
    lone_free(lone);
    return after_us < 40 * UINT64_C(1000000) ? after_us : 0;
}

Test(node_members, a_link_over_which_nothing_comes_from_one_that_lives_is_closed)
{
    /* All of a ring waited for it, until TCP gave it up. */
    uint64_t timeout_us = lone_config().progress_timeout_us;
    uint64_t after_us = closes_silent_link_after_us(UINT64_MAX / 2);
    cr_assert(after_us >= timeout_us && after_us < 2 * timeout_us, "%d us", (int)after_us);
    cr_assert_eq(closes_silent_link_after_us(timeout_us - 1000000), 0);
}

Test(node_members, who_wakes_late_reads_before_it_judges)
{
    /* Proves that a suspect whose time ran out during a long sleep is not declared dead at the
     * first tick, but only once time has passed in which it was not heard. */
    struct lone *lone = plain_node();
    lone_peer(lone, "a", 1);
    lone_closed(lone, 2, PARLEY_CLOSED_RESET);
    cr_assert_eq(record_of(lone->node, 1)->state, PARLEY_MEMBER_SUSPECT);
    lone_run(lone, lone->node->members[1].suspect_until_us - lone->now_us - 1);
    lone->now_us += 60000000;
    lone_tick(lone);
    cr_assert_eq(record_of(lone->node, 1)->state, PARLEY_MEMBER_SUSPECT);
    lone_peer(lone, "a", 1);
    struct message_members members = {.count = 1};
    members.records[0] =
        (struct record){.boot = 1, .name = "a", .address = "x:1", .incarnation = 5, .clock = 1};
    lone_say(lone, lone->next_incoming - 2, WIRE_MEMBERS, &members);
    lone_run(lone, 500000);
    cr_assert_eq(record_of(lone->node, 1)->state, PARLEY_MEMBER_ALIVE);
    lone_free(lone);
}

/* b, of whom the node was told by a, and which says HELLO over the link that the node dials. */
static uint32_t dialled(struct lone *lone)
{
    uint32_t conn = 1;
    while (lone->conns[conn] != LONE_DIALED && conn <= lone->highest)
        conn += 2;
    if (lone->conns[conn] != LONE_DIALED) return 0;
    struct message_hello hello = lone_hello(lone, "b", 2000);
    lone_connected(lone, conn);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    return conn;
}

/* The newest dial that has not ended; 0: there is none. */
static uint32_t under_way(const struct lone *lone)
{
    for (uint32_t conn = lone->highest; conn > 0; conn--)
        if (lone->conns[conn] == LONE_DIALED) return conn;
    return 0;
}

Test(node_members, who_dies_as_it_takes_a_dial_is_dialled_again_soon)
{
    /* Proves that a listener that outlives its process's links by a moment does not double the time
     * until the death is known; and that who goes on hanging up is not dialled all the time. */
    struct lone *lone = plain_node();
    lone_closed(lone, lone_peer(lone, "a", 1), PARLEY_CLOSED_RESET);
    uint64_t lost_us = lone->now_us;
    uint32_t first = under_way(lone);
    lone_connected(lone, first);
    lone_closed(lone, first, PARLEY_CLOSED_RESET);
    cr_assert_eq(under_way(lone), 0);
    lone_run(lone, 20000);
    cr_assert_neq(under_way(lone), 0);
    lone_closed(lone, under_way(lone), PARLEY_CLOSED_REFUSED);
    lone_run(lone, lone_config().broken_suspicion_us);
    cr_assert_eq(record_of(lone->node, 1)->state, PARLEY_MEMBER_DEAD);
    cr_assert_lt(lone->now_us, lost_us + 600000);
    lone_free(lone);

    uint32_t dials = 0;
    lone = plain_node();
    lone_closed(lone, lone_peer(lone, "a", 1), PARLEY_CLOSED_RESET);
    for (int ms = 0; ms < 1000; ms++) {
        uint32_t conn = under_way(lone);
        if (conn > 0) {
            dials++;
            lone_connected(lone, conn);
            lone_closed(lone, conn, PARLEY_CLOSED_RESET);
        }
        lone_run(lone, 1000);
    }
    cr_assert(dials >= 2 && dials <= 13, "%u dials in a second", dials);
    lone_free(lone);
}

Test(node_members, who_takes_a_dial_and_says_nothing_is_not_reached)
{
    /* Where large packets are lost on the way, say. Whoever had drawn it for an exchange waited for
     * it, at each draw. a goes on saying that it lives. */
    struct lone *lone = plain_node();
    struct message_members members = {.count = 1};
    members.records[0] = (struct record){.boot = 2000, .name = "b", .address = "x:1", .clock = 1};
    uint32_t a = lone_peer(lone, "a", 1), dial = 0;
    uint64_t tries = 2 * lone_config().hello_timeout_us / 100000;
    bool reached = true;
    for (uint64_t tenth = 0; tenth < tries + 100 && reached; tenth++) {
        members.records[0].incarnation++;
        lone_say(lone, a, WIRE_MEMBERS, &members);
        if (dial == 0 && (dial = under_way(lone)) != 0) lone_connected(lone, dial);
        lone_run(lone, 100000);
        reached = lone->node->members[2].unreached_us == 0;
    }
    cr_assert_neq(dial, 0);
    cr_assert(!reached);
    lone_free(lone);
}

Test(node_members, a_link_that_is_silent_since_its_end_died_is_none_to_dial_it_again)
{
    /* What a divided network has swallowed TCP would say again ever less often. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), b = lone_peer(lone, "b", 2);
    lone_silence(lone);
    say_of_b(lone, a, 0, PARLEY_MEMBER_DEAD);
    cr_assert_eq(lone->conns[b], LONE_OPEN);
    for (int second = 0; second < 10 && under_way(lone) == 0; second++) {
        say_lives(lone, a);
        lone_run(lone, 1000000);
    }
    cr_assert(lone->conns[b] == LONE_CLOSED && under_way(lone) != 0);
    lone_free(lone);
}

Test(node_members, of_the_dead_at_one_address_the_last_is_dialled)
{
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    struct record dead = {
        .name = "b", .address = "x:1", .boot = 2, .state = PARLEY_MEMBER_DEAD, .clock = 1};
    say_record(lone, a, &dead);
    dead.name[0] = 'c';
    dead.boot = 3;
    say_record(lone, a, &dead);
    for (int second = 0; second < 10; second++) {
        say_lives(lone, a);
        lone_run(lone, 1000000);
        for (uint32_t i = 0; i < lone->node->open_count; i++)
            cr_assert_neq(connection_at(lone->node, i)->member, 2);
    }
    cr_assert_gt(lone->dials, 0);
    lone_free(lone);
}

Test(node_members, the_link_of_a_suspect_ends_as_others_say_that_it_is_dead)
{
    /* What waits for that waits no longer. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1), b = lone_peer(lone, "b", 2);
    for (int tenth = 0; tenth < 50 && record_of(lone->node, 2)->state == PARLEY_MEMBER_ALIVE;
         tenth++) {
        say_lives(lone, a);
        lone_run(lone, 100000);
    }
    cr_assert_eq(record_of(lone->node, 2)->state, PARLEY_MEMBER_SUSPECT);
    cr_assert_eq(lone->conns[b], LONE_OPEN);
    say_of_b(lone, a, 0, PARLEY_MEMBER_DEAD);
    cr_assert_eq(lone->conns[b], LONE_CLOSED);
    lone_free(lone);
}

/* a says again and again that b lives, which no dial of this node reaches. */
static void go_on_unreached(struct lone *lone, uint32_t a, uint32_t seconds)
{
    static uint32_t incarnation;
    for (uint32_t tenth = 0; tenth < 10 * seconds; tenth++) {
        say_of_b(lone, a, ++incarnation, PARLEY_MEMBER_ALIVE);
        uint32_t dial = under_way(lone);
        if (dial > 0) lone_closed(lone, dial, PARLEY_CLOSED_UNREACHED);
        lone_run(lone, 100000);
    }
}

Test(node_members, who_lives_and_is_not_reached_is_told_of_once_until_it_was)
{
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    for (uint32_t times = 1; times <= 2; times++) {
        go_on_unreached(lone, a, 8);
        cr_assert_eq(lone->warnings, times - 1);
        go_on_unreached(lone, a, 20);
        cr_assert_eq(lone->warnings, times);
        lone_closed(lone, lone_peer(lone, "b", 2), PARLEY_CLOSED_RESET);
    }
    lone_free(lone);
}

Test(node_members, who_asks_for_a_probe_hears_of_one_that_had_to_be_dialled)
{
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    struct message_members members = {.count = 1};
    members.records[0] =
        (struct record){.boot = 2000, .name = "b", .address = "x:1", .incarnation = 1, .clock = 1};
    lone_say(lone, a, WIRE_MEMBERS, &members);
    struct message_probe probe = {.sequence = 77, .boot = 2000}, ack = {0};
    lone_listen(lone, a);
    lone_say(lone, a, WIRE_PING_FOR, &probe);
    cr_assert(!lone_heard(lone, WIRE_ACK, NULL));
    cr_assert_neq(dialled(lone), 0);
    cr_assert(lone_heard(lone, WIRE_ACK, &ack));
    cr_assert_eq(ack.sequence, 77);
    cr_assert_eq(ack.boot, 2000);
    lone_free(lone);
}

Test(node_members, who_has_no_room_for_a_link_to_be_probed_in_is_not_suspected)
{
    /* b answers each dial by HELLO and, as it has links enough, BYE. */
    const struct message_bye_frame bye = {MESSAGE_BYE_IDLE};
    struct lone *lone = plain_node();
    uint32_t b = lone_peer(lone, "b", 2000), answers = 0;
    say_trains(lone, b, 2000);
    lone_say(lone, b, WIRE_BYE, &bye);
    for (int i = 0; i < 2000; i++) {
        lone_run(lone, 10000);
        uint32_t conn = dialled(lone);
        if (conn == 0) continue;
        lone_say(lone, conn, WIRE_BYE, &bye);
        lone_closed(lone, conn, PARLEY_CLOSED_LOCAL);
        cr_assert_eq(record_of(lone->node, 1)->state, PARLEY_MEMBER_ALIVE);
        answers++;
    }
    cr_assert_gt(answers, 5);
    lone_free(lone);
}

Test(node_members, the_dead_that_are_not_dialled_are_looked_at_no_more_than_once_an_event)
{
    /* Proves that the shortest pauses that may be set are pauses: of a name that a live one has
     * there is none to dial. */
    struct parley_config config = lone_config();
    config.redial_min_us = config.redial_max_us = 1;
    struct lone *lone = training_node(&config);
    uint32_t conn = accepted_peer(lone, "a", 1);
    struct message_members m = {.count = 2};
    m.records[0] = (struct record){
        .boot = 5, .name = "z", .address = "z:1", .clock = 1, .state = PARLEY_MEMBER_DEAD};
    m.records[1] = (struct record){.boot = 6, .name = "z", .address = "z:2", .clock = 1};
    lone_say(lone, conn, WIRE_MEMBERS, &m);
    cr_assert(record_of(lone->node, 2)->state == PARLEY_MEMBER_DEAD);
    lone_run(lone, 2500000); /* or it would not return */
    lone_free(lone);
}

Test(node_members, where_the_driver_tells_who_died_a_new_boot_at_an_address_does_not)
{
    struct parley_roster *roster;
    cr_assert_eq(parley_roster_new(&roster, 4, 0), 0);
    struct parley_config config = lone_config(), other = lone_config();
    config.roster = other.roster = roster;
    other.name = "b";
    other.boot = 2;
    struct lone *b = lone_new(&other);
    lone_start(b);
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    int member = roster_find(roster, 2);
    lone->node->out = &lone->updates;
    lone->updates.count = 0;
    connection_want(lone->node, member);
    lone_carry_out(lone, &lone->updates.list[0]);
    lone_connected(lone, lone->highest);
    struct message_hello hello = lone_hello(lone, "b", 3);
    lone_say(lone, lone->highest, WIRE_HELLO, &hello);
    cr_assert_eq(record_of(lone->node, (uint32_t)member)->state, PARLEY_MEMBER_ALIVE);
    parley_roster_dead(roster, 3); /* of whom nobody has heard */
    cr_assert_eq(live_of(lone->node), 2);
    parley_roster_dead(roster, 2);
    cr_assert_eq(record_of(lone->node, (uint32_t)member)->state, PARLEY_MEMBER_DEAD);
    cr_assert_eq(live_of(lone->node), 1);
    lone_free(lone);
    lone_free(b);
    parley_roster_free(roster);
}

/* A node that trains with a, and with b's boot `before`; then b is started anew, and its new boot
 * gets the place of the old, in one frame. */
static struct lone *node_with_a_restart(enum parley_strategy strategy,
                                        void (*between)(struct lone *))
{
    struct parley_config config = lone_config();
    config.members_max = 3;
    config.strategy = strategy;
    struct lone *lone = training_node(&config);
    uint32_t a = accepted_peer(lone, "a", 1);
    struct record b = {.boot = 2, .name = "b", .address = "x:2", .phase = PARLEY_PHASE_TRAIN};
    struct message_members m = {.count = 1, .complete = 1};
    b.clock = 1;
    m.records[0] = b;
    lone_say(lone, a, WIRE_MEMBERS, &m);
    between(lone);
    m.count = 2;
    m.records[0].state = PARLEY_MEMBER_DEAD;
    m.records[1] = b;
    m.records[1].boot = 3;
    lone_say(lone, a, WIRE_MEMBERS, &m);
    cr_assert_eq(roster_find(lone->node->roster, 2), NONE);
    cr_assert_eq(roster_find(lone->node->roster, 3), 2);
    return lone;
}

static void muster(struct lone *lone)
{
    crew_muster(lone->node);
}

Test(node_members, who_gets_anothers_place_is_not_taken_for_it_by_who_serves)
{
    struct lone *lone = node_with_a_restart(PARLEY_STRATEGY_PS_BSP, muster);
    struct server *s = lone->node->strategy_state;
    crew_muster(lone->node);
    cr_assert_null(crew_find(s, 2));
    cr_assert_not_null(crew_find(s, 3));
    lone_free(lone);
}

static void dials_b(struct lone *lone)
{
    lone->node->out = &lone->updates;
    lone->updates.count = 0;
    connection_want(lone->node, 2);
    for (uint32_t i = 0; i < lone->updates.count; i++)
        lone_carry_out(lone, &lone->updates.list[i]);
    cr_assert_neq(under_way(lone), 0);
}

Test(node_members, who_gets_anothers_place_is_not_taken_for_it_by_a_dial_under_way)
{
    /* Proves that such a dial keeps no place, and that who answers it after all, the old boot here,
     * is not heard as that the new one is gone. */
    struct lone *lone = node_with_a_restart(PARLEY_STRATEGY_GOSSIP, dials_b);
    struct message_hello hello = lone_hello(lone, "b", 2);
    uint32_t conn = under_way(lone);
    lone_connected(lone, conn);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert_eq(record_of(lone->node, 2)->boot, 3);
    cr_assert_eq(record_of(lone->node, 2)->state, PARLEY_MEMBER_ALIVE);
    lone_free(lone);
}
