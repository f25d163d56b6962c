/* One node, its peers played by hand: peers that want too much, and too many of them. */
#include "core/agreement/quorum.h"
#include "lone_talk.h"

Test(node_limits, of_a_thousand_silent_connections_the_oldest_is_closed)
{
    /* Proves that newcomers are always let in, pending_max stay, and all are closed in the end. */
    struct lone *lone = plain_node();
    uint32_t conns[1000], open = 0;
    for (int i = 0; i < 1000; i++) {
        conns[i] = lone_incoming(lone, "127.0.0.1:1");
        cr_assert_eq(lone->conns[conns[i]], LONE_OPEN);
        if (i >= 64) {
            cr_assert_eq(lone->conns[conns[i - 64]], LONE_CLOSED);
            lone_closed(lone, conns[i - 64], PARLEY_CLOSED_LOCAL);
        }
        lone_run(lone, 1000);
    }
    struct message_hello hello = lone_hello(lone, "a", 1);
    lone_say(lone, conns[999], WIRE_HELLO, &hello);
    cr_assert(connection_find(lone->node, conns[999])->state == CONN_LIVE);
    lone_run(lone, lone->config.hello_timeout_us);
    for (int i = 0; i < 999; i++)
        open += lone->conns[conns[i]] == LONE_OPEN;
    cr_assert_eq(open, 0);
    lone_free(lone);
}

Test(node_limits, four_silent_connections_come_from_one_host)
{
    /* Proves the limit an address, loopback apart. */
    struct lone *lone = plain_node();
    for (int i = 0; i < 6; i++) {
        uint32_t conn = lone_incoming(lone, "10.1.2.3:99");
        cr_assert_eq(lone->conns[conn], i < 4 ? LONE_OPEN : LONE_CLOSED);
    }
    cr_assert_eq(lone->conns[lone_incoming(lone, "10.1.2.4:99")], LONE_OPEN);
    lone_free(lone);
}

Test(node_limits, a_host_that_has_its_share_pushes_out_nobody)
{
    /* Proves that where all places before HELLO are taken, one more dial of a host that has as many
     * as it may have costs no other its place. */
    struct parley_config config = lone_config();
    config.pending_max = 5;
    struct lone *lone = training_node(&config);
    uint32_t other = lone_incoming(lone, "10.0.0.1:5000");
    for (int i = 0; i < 5; i++)
        lone_incoming(lone, "10.1.2.3:99");
    cr_assert_eq(lone->conns[other], LONE_OPEN);
    lone_incoming(lone, "10.0.0.2:5000");
    cr_assert_eq(lone->conns[other], LONE_CLOSED, "of the others the oldest goes");
    lone_free(lone);
}

Test(node_limits, who_asks_and_never_reads_is_cut_off)
{
    /* Proves the bound of the queue, before HELLO and after it. */
    for (int live = 0; live < 2; live++) {
        struct lone *lone = plain_node();
        for (uint64_t boot = 1; boot <= 40; boot++) {
            char name[16];
            snprintf(name, sizeof name, "m%u", (unsigned)boot);
            lone_peer(lone, name, boot);
        }
        uint32_t conn = live ? lone_peer(lone, "a", 99) : lone_incoming(lone, "127.0.0.1:1");
        struct message_status status = {0};
        for (int i = 0; i < 2000 && lone->conns[conn] == LONE_OPEN; i++)
            lone_say(lone, conn, WIRE_STATUS, &status);
        cr_assert_eq(lone->conns[conn], LONE_CLOSED, "live %d", live);
        cr_assert_lt(lone->unsent[conn], 2 * PARLEY_CONTROL_BYTES_MAX);
        lone_free(lone);
    }
}

Test(node_limits, a_full_table_refuses_new_members_and_keeps_the_old)
{
    /* Proves that members_max holds against HELLO (refused in words) and against hearsay. */
    struct parley_config config = lone_config();
    config.members_max = 3;
    struct lone *lone = training_node(&config);
    uint32_t first = lone_peer(lone, "a", 1);
    lone_peer(lone, "b", 2);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    lone_listen(lone, conn);
    struct message_hello hello = lone_hello(lone, "c", 3);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    struct message_reject reject;
    cr_assert(lone_heard(lone, WIRE_REJECT, &reject) && reject.code == (uint32_t)-PARLEY_ELIMIT);
    cr_assert(!lone_heard(lone, WIRE_HELLO, &hello), "it takes itself for let in");
    struct message_members members = {.count = 1};
    members.records[0] = (struct record){.boot = 9, .name = "d", .address = "x:1", .clock = 1};
    lone_say(lone, first, WIRE_MEMBERS, &members);
    cr_assert_eq(parley_node_members(lone->node), 3);
    cr_assert_eq(lone->conns[first], LONE_OPEN);
    lone_free(lone);
}

Test(node_limits, a_server_has_sixty_four_nodes_and_tells_the_next_so)
{
    /* Proves that who would be served by none is told so, and not let in; once another has gone it
     * may come. */
    struct parley_config config = lone_config();
    config.strategy = PARLEY_STRATEGY_PS_ASP;
    struct lone *lone = training_node(&config);
    char name[16];
    uint32_t last = 0;
    for (uint32_t i = 1; i < PARLEY_SERVED_MAX; i++) {
        snprintf(name, sizeof name, "w%u", (unsigned)i);
        last = lone_peer(lone, name, i);
    }
    for (int gone = 0; gone < 2; gone++) {
        if (gone) say_left(lone, last, PARLEY_SERVED_MAX - 1);
        uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
        lone_listen(lone, conn);
        struct message_hello hello = lone_hello(lone, "late", 100);
        lone_say(lone, conn, WIRE_HELLO, &hello);
        struct message_reject reject = {0};
        cr_assert_eq(lone_heard(lone, WIRE_REJECT, &reject), !gone);
        cr_assert(gone || strstr(reject.text, "ps-asp serves 64 nodes"), "%s", reject.text);
    }
    lone_free(lone);
}

Test(node_limits, those_who_say_hello_and_go_keep_nobody_out)
{
    /* Proves that strangers whose address refuses are dead soon, whatever goodbye they said, and
     * that their places are there for others. */
    struct parley_config config = lone_config();
    config.members_max = 6;
    struct lone *lone = training_node(&config);
    for (uint64_t boot = 1; boot <= 5; boot++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", (unsigned)boot);
        uint32_t conn = lone_peer(lone, name, boot);
        struct message_bye_frame bye = {MESSAGE_BYE_IDLE};
        lone_say(lone, conn, WIRE_BYE, &bye);
        lone_closed(lone, conn, PARLEY_CLOSED_LOCAL);
    }
    cr_assert_eq(parley_node_members(lone->node), 6);
    for (uint32_t conn = 1; conn <= lone->highest; conn += 2)
        if (lone->conns[conn] == LONE_DIALED) lone_closed(lone, conn, PARLEY_CLOSED_REFUSED);
    lone_run(lone, 600000);
    cr_assert_eq(live_of(lone->node), 1);
    uint32_t conn = lone_peer(lone, "honest", 9);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    cr_assert_eq(live_of(lone->node), 2);
    lone_free(lone);
}

Test(node_limits, strangers_do_not_fill_the_log)
{
    /* Proves that what is malformed, and what is refused, costs ten lines a minute in all. */
    struct lone *lone = plain_node();
    struct message_hello hello = lone_hello(lone, "b", 2000);
    strcpy(hello.cluster, "other");
    for (int minute = 1; minute <= 2; minute++) {
        for (int i = 0; i < 100; i++) {
            uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
            if (i % 2)
                lone_say(lone, conn, WIRE_HELLO, &hello);
            else
                lone_receive(lone, conn, "GET / HTTP/1.1\r\n\r\n", 18);
            lone_closed(lone, conn, PARLEY_CLOSED_LOCAL);
        }
        cr_assert_eq(lone->warnings, 10u * (unsigned)minute);
        lone_run(lone, 60000000);
    }
    lone_free(lone);
}

Test(node_limits, when_the_log_says_for_how_long_it_is_quiet_of_strangers_it_is)
{
    /* They come one by one; the tenth nearly a minute after the first. */
    static const uint64_t until_us[] = {6500000, 59000000, 1000000, 0};
    static const uint32_t lines[] = {9, 10, 10, 11}, strangers[] = {9, 1, 1, 1};
    struct lone *lone = plain_node();
    for (int part = 0; part < 4; part++) {
        for (uint32_t i = 0; i < strangers[part]; i++) {
            uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
            lone_receive(lone, conn, "GET / HTTP/1.1\r\n\r\n", 18);
            lone_closed(lone, conn, PARLEY_CLOSED_LOCAL);
            lone_run(lone, until_us[part]);
        }
        cr_assert_eq(lone->warnings, lines[part]);
    }
    lone_free(lone);
}

Test(node_limits, the_dead_keep_their_places_but_for_former_lives_of_a_name)
{
    /* Proves that a name that was a member's counts as known for ever, however full the table; and
     * that who gets that place may have locked a model before, whatever it says of itself. */
    struct parley_config config = lone_config();
    config.members_max = 3;
    struct lone *lone = training_node(&config);
    const struct parley_roster *roster = lone->node->roster;
    uint32_t a = lone_peer(lone, "a", 1), c = lone_incoming(lone, "127.0.0.1:1");
    struct record dead = {.boot = 2, .name = "b", .address = "x:1", .clock = 1, .incarnation = 1};
    dead.state = PARLEY_MEMBER_DEAD;
    say_record(lone, a, &dead);
    struct message_hello hello = lone_hello(lone, "c", 3);
    lone_say(lone, c, WIRE_HELLO, &hello);
    cr_assert(roster_find(roster, 3) == NONE && roster_find(roster, 2) != NONE);
    uint32_t b = lone_peer(lone, "b", 4);
    int later = roster_find(roster, 4);
    cr_assert(later != NONE && roster_find(roster, 2) == NONE);
    cr_assert(quorum_has_forgotten(lone->node, later));
    struct record says = dead;
    says.boot = 4;
    says.state = PARLEY_MEMBER_ALIVE;
    say_record(lone, b, &says);
    cr_assert_eq(record_of(lone->node, (uint32_t)later)->clock, 1);
    cr_assert(quorum_has_forgotten(lone->node, later));
    lone_free(lone);
}

Test(node_limits, who_finds_no_room_in_the_table_ends)
{
    /* Proves that a joiner does not dial for ever where there will never be a place. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_at_seed(&config);
    struct message_reject reject = {.code = (uint32_t)-PARLEY_ELIMIT, .text = "full"};
    lone_say(lone, SEED_CONN, WIRE_REJECT, &reject);
    cr_assert(lone->finished && lone->error == PARLEY_ELIMIT);
    lone_free(lone);
}

Test(node_limits, a_flood_of_suspects_keeps_each_step_within_its_updates)
{
    /* Proves that frames full of new suspects, each of them dialled, never overflow the list. */
    struct parley_config config = lone_config();
    config.members_max = 2000;
    config.connections_max = 300;
    config.pending_max = 1024;
    struct lone *lone = training_node(&config);
    for (uint64_t boot = 1; boot < 300; boot++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", (unsigned)boot);
        lone_peer(lone, name, boot);
    }
    lone->now_us++;
    uint32_t conn = lone_peer(lone, "a", 300); /* of all links the one that is closed last */
    static uint8_t bytes[64 * 1024];
    size_t size = 0;
    static struct message_members members;
    for (uint32_t f = 0; f < 12; f++) {
        members.count = f == 3 ? MESSAGE_RECORDS_MAX - 1 : MESSAGE_RECORDS_MAX;
        for (uint32_t i = 0; i < members.count; i++) {
            struct record *r = &members.records[i];
            *r = (struct record){.boot = 10000 + f * MESSAGE_RECORDS_MAX + i, .address = "x:1"};
            r->state = f < 4 ? PARLEY_MEMBER_DEAD : PARLEY_MEMBER_SUSPECT; /* 127 dead first */
            snprintf(r->name, sizeof r->name, "m%u", (unsigned)r->boot);
        }
        size += message_encode(WIRE_MEMBERS, &members, bytes + size, sizeof bytes - size);
    }
    cr_assert_eq(lone_receive(lone, conn, bytes, size), 0);
    cr_assert_eq(parley_node_members(lone->node), 300 + 12 * MESSAGE_RECORDS_MAX);
    cr_assert_lt(lone->updates_most, 512 - 64, "room for what timers say");
    lone_run(lone, 20000000); /* all of them die */
    cr_assert_lt(lone->updates_most, 512);
    lone_free(lone);
}

Test(node_limits, a_node_with_many_links_ends_within_its_updates)
{
    /* Proves that goodbyes to more peers than one step has room for take several steps. */
    struct parley_config config = lone_config();
    config.connections_max = 600;
    config.members_max = 1000;
    struct lone *lone = training_node(&config);
    uint32_t closed = 0;
    for (uint64_t boot = 1; boot <= 500; boot++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", (unsigned)boot);
        lone_peer(lone, name, boot);
    }
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_LEAVE});
    lone_run(lone, 20000000);
    cr_assert(lone->finished && lone->error == 0);
    for (uint32_t id = 1; id <= lone->highest; id++)
        closed += lone->conns[id] == LONE_CLOSED;
    cr_assert_eq(closed, 500);
    lone_free(lone);
}

Test(node_limits, a_trainer_that_counts_to_absurd_numbers_ends_the_node)
{
    /* Proves that the node itself says so: peers would take no more frames of it. */
    const uint64_t absurd = UINT64_C(1000000000000000000);
    const struct {
        uint64_t version, samples;
        bool ends;
    } told[] = {{absurd - 1, absurd - 1, false}, {absurd, 1, true}, {1, absurd, true}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        struct parley_config config = lone_config();
        struct lone *lone = lone_at_seed(&config);
        lone->version = told[i].version;
        lone_stepped(lone, told[i].samples, 1);
        cr_expect_eq(lone->finished, told[i].ends);
        cr_expect_eq(lone->error, told[i].ends ? PARLEY_EUSAGE : 0);
        lone_free(lone);
    }
}

Test(node_limits, absurd_numbers_in_records_change_nothing)
{
    /* Proves that records with NaN, infinities, unknown states or no name are not believed. */
    struct lone *lone = plain_node();
    uint32_t conn = lone_peer(lone, "a", 1);
    const struct record good = {.boot = 5, .name = "e", .address = "x:1", .clock = 1};
    for (int i = 0; i < 11; i++) {
        struct message_members members = {.count = 1};
        struct record *r = &members.records[0];
        *r = good;
        if (i == 0) r->score = 0.0 / 0.0;
        if (i == 1) r->distance_sq = 1.0 / 0.0;
        if (i == 2) r->mean_sq = -1;
        if (i == 3) r->state = PARLEY_MEMBER_LEFT + 1;
        if (i == 4) r->phase = PARLEY_PHASE_LEFT + 1;
        if (i == 5) r->stop = PARLEY_STOP_OPERATOR + 1;
        if (i == 6) r->name[0] = 0;
        if (i == 7) r->boot = 0;
        if (i == 8) r->incarnation = UINT32_MAX;
        if (i == 9) r->generation = UINT32_MAX;
        if (i == 10) r->lock_generation = UINT32_MAX;
        lone_say(lone, conn, WIRE_MEMBERS, &members);
        cr_assert_eq(parley_node_members(lone->node), 2, "case %d", i);
    }
    lone_free(lone);
}

Test(node_limits, nobody_is_led_to_the_last_generation_and_who_joins_takes_what_is)
{
    /* Proves that one word takes those who are in 1,024 generations further at most, as all follow,
     * and that a newcomer hears those who have come that far. */
    for (uint32_t joins = 0; joins < 2; joins++) {
        struct parley_config config = lone_config();
        config.min_peers = 5 * joins;
        struct lone *lone = lone_new(&config);
        lone_start(lone);
        lone_tick(lone);
        uint32_t conn = lone_peer(lone, "a", 1);
        struct record a = training_a(1);
        a.generation = 5000;
        a.lock_generation = 4000;
        say_record(lone, conn, &a);
        say_record(lone, conn,
                   &(struct record){.boot = 2,
                                    .name = "b",
                                    .address = "x:2",
                                    .clock = 1,
                                    .phase = PARLEY_PHASE_TRAIN,
                                    .lock_generation = 1000});
        const struct record *kept = record_of(lone->node, 1);
        cr_assert_eq(kept->clock, 1);
        cr_assert_eq(kept->generation, joins ? 5000 : 1025, "%u", kept->generation);
        cr_assert_eq(kept->lock_generation, joins ? 4000 : 0);
        cr_assert_eq(record_of(lone->node, 2)->lock_generation, 1000, "a lock within it is kept");
        lone_free(lone);
    }
}
