/* One node, its peers played by hand: what it does with frames at the wrong time, in the wrong
 * order or number, and with peers that want too much. */
#include "lone.h"

enum { SEED_CONN = 1 }; /* what a node dials first */

static struct lone *training_node(struct parley_config *config)
{
    struct lone *lone = lone_new(config);
    lone_start(lone);
    lone_tick(lone);
    cr_assert_eq(record_of(lone->node, 0)->phase, PARLEY_PHASE_TRAIN);
    return lone;
}

static struct lone *plain_node(void)
{
    struct parley_config config = lone_config();
    return training_node(&config);
}

/* A floats frame: as long as the node's model, unless told otherwise. */
static void say_chunk(struct lone *lone, uint32_t conn, enum wire_stream kind, uint32_t sequence,
                      uint64_t offset, bool true_sum)
{
    static uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200];
    struct wire_chunk chunk = {.kind = (uint16_t)kind, .sequence = sequence, .offset = offset};
    wire_chunk_write(bytes, &chunk, 1200);
    wire_chunk_seal(bytes, bytes + WIRE_CHUNK_HEAD_BYTES, true_sum ? 1200 : 1196);
    lone_receive(lone, conn, bytes, sizeof bytes);
}

static const struct slot *responder(const struct lone *lone)
{
    return &lone->node->exchange.slots[RESPONDER];
}

/* A peer that trains, so that it may be exchanged with, but has as many models as it likes. */
static uint32_t training_peer(struct lone *lone, const char *name, uint64_t boot)
{
    uint32_t conn = lone_peer(lone, name, boot);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    return conn;
}

/* Brings the responder's slot to READY for sequence 7 of the peer at `conn`. */
static void to_ready(struct lone *lone, uint32_t conn)
{
    struct message_exchange m = {.sequence = 7};
    lone_say(lone, conn, WIRE_OFFER, &m);
    lone_done_all(lone);
    say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, 0, true);
    lone_done_all(lone);
    cr_assert_eq(responder(lone)->state, SLOT_READY);
}

static struct parley_ledger ledger(const struct lone *lone)
{
    struct parley_view view;
    parley_node_view(lone->node, &view);
    return view.ledger;
}

/* ---- HELLO -------------------------------------------------------------------------------------
 */

/* A node that has dialled its seed, over SEED_CONN. */
static struct lone *lone_at_seed(struct parley_config *config)
{
    static const char *const seeds[] = {"127.0.0.1:7005"};
    config->seeds = seeds;
    config->seeds_count = 1;
    struct lone *lone = lone_new(config);
    lone_start(lone);
    cr_assert_eq(lone->conns[SEED_CONN], LONE_DIALED);
    lone_connected(lone, SEED_CONN);
    return lone;
}

/* And has met b there, with boot id 2000. */
static struct lone *lone_with_seed(struct parley_config *config)
{
    struct lone *lone = lone_at_seed(config);
    struct message_hello hello = lone_hello(lone, "b", 2000);
    lone_say(lone, SEED_CONN, WIRE_HELLO, &hello);
    return lone;
}

Test(node_frames, a_dial_that_crosses_an_own_one_gives_way_but_not_long_after_it)
{
    /* The node has dialled b, whose boot id is the greater: its own dial stays. Who dials though
     * there is a link since long has given that up, as after a partition: nothing may come of the
     * old one for as long as TCP goes on trying. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_with_seed(&config);
    uint32_t crossing = lone_peer(lone, "b", 2000);
    cr_assert_eq(lone->conns[SEED_CONN], LONE_OPEN);
    cr_assert_eq(lone->conns[crossing], LONE_CLOSED);
    lone_run(lone, config.hello_timeout_us + 1000);
    cr_assert_eq(lone->conns[SEED_CONN], LONE_OPEN);
    uint32_t anew = lone_peer(lone, "b", 2000);
    cr_assert_eq(lone->conns[anew], LONE_OPEN);
    cr_assert_neq(lone->conns[SEED_CONN], LONE_OPEN);
    lone_free(lone);
}

Test(node_frames, who_is_told_that_there_is_another_link_does_not_dial_at_once)
{
    /* It may be told so again and again, a thousand times a second, until the other end finds its
     * own link dead. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_with_seed(&config);
    struct message_bye_frame bye = {MESSAGE_BYE_DUPLICATE};
    lone_say(lone, SEED_CONN, WIRE_BYE, &bye);
    int b = roster_find(lone->node->roster, 2000);
    cr_assert_eq(member_of(lone->node, b)->redial_us, lone->node->now_us + config.redial_min_us);
    lone_free(lone);
}

/* How many streams a link may have to a peer that says this number, at a node that wants `ours`. */
static uint32_t streams_with(uint32_t ours, uint32_t theirs)
{
    struct parley_config config = lone_config();
    config.streams = ours;
    struct lone *lone = training_node(&config);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:50000");
    struct message_hello hello = lone_hello(lone, "b", 5), answer;
    uint64_t token = 0;
    hello.streams = theirs;
    hello.token = 99; /* who dials draws none */
    cr_assert_eq(parley_node_streams(lone->node, conn, &token), 0, "before HELLO");
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert(lone_heard(lone, WIRE_HELLO, &answer));
    cr_assert_eq(answer.streams, ours > 1 ? ours : 0);
    cr_assert_eq(answer.token, LONE_TOKEN + conn);
    uint32_t streams = parley_node_streams(lone->node, conn, &token);
    cr_assert_eq(token, LONE_TOKEN + conn);
    lone_closed(lone, conn, PARLEY_CLOSED_EOF);
    cr_assert_eq(parley_node_streams(lone->node, conn, &token), 0, "after its end");
    lone_free(lone);
    return streams;
}

Test(node_frames, a_link_may_have_as_many_streams_as_the_lesser_of_both_ends_wants)
{
    /* Proves that HELLO says it, tells the dialler the token, and that it holds while LIVE only. */
    cr_assert_eq(streams_with(8, 4), 4);
    cr_assert_eq(streams_with(4, 8), 4);
    cr_assert_eq(streams_with(64, UINT32_MAX), 64);
    cr_assert_eq(streams_with(8, 0), 0, "a peer that knows nothing of streams");
    cr_assert_eq(streams_with(8, 1), 0);
    cr_assert_eq(streams_with(1, 8), 0);
}

/* Whether the node tells its own record over a link whose other end says in HELLO that it has that
 * of `to` as of the clock that the node's own had `ago`. */
static bool tells_own(uint64_t to, uint64_t ago)
{
    struct lone *lone = plain_node();
    struct message_members told = {.count = 0};
    uint32_t conn = lone_incoming(lone, "127.0.0.1:50000");
    struct message_hello hello = lone_hello(lone, "b", 2000);
    hello.to = to;
    hello.heard = record_of(lone->node, 0)->clock - ago;
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    bool told_any = lone_heard(lone, WIRE_MEMBERS, &told) && told.count > 0;
    lone_free(lone);
    return told_any;
}

Test(node_frames, a_link_is_not_told_of_this_node_what_its_other_end_has_heard)
{
    /* The newest news of a lone node in training is that it trains: its clock is of then. */
    cr_assert(!tells_own(1000, 0));
    cr_assert(tells_own(1000, 1), "it lacks the newest");
    cr_assert(tells_own(999, 0), "what it has is of another boot");
    cr_assert(tells_own(0, 0), "it knows of none");
}

/* Whether a node lets in who says this HELLO; if not, its REJECT says `says`. */
static bool lets_in(const struct parley_config *config, const struct message_hello *hello,
                    const char *says)
{
    struct parley_config copy = *config;
    struct lone *lone = training_node(&copy);
    struct message_reject reject;
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_HELLO, hello);
    bool in = lone->conns[conn] == LONE_OPEN;
    cr_assert_eq(lone_heard(lone, WIRE_REJECT, &reject), !in, "%s", says);
    if (!in) cr_assert(strstr(reject.text, says), "%s: %s", says, reject.text);
    lone_free(lone);
    return in;
}

Test(node_frames, who_differs_in_anything_that_must_match_is_refused_by_name)
{
    /* Proves that none of it is passed over: the two would add what is no difference of theirs. */
    static const struct parley_setting batch = {"batch", "32"};
    struct parley_config config = lone_config();
    config.settings = &batch;
    config.settings_count = 1;
    struct lone from = {.config = config};
    const struct message_hello same = lone_hello(&from, "b", 2000);
    struct message_hello hello = same;
    cr_assert(!lets_in(&config, &hello, "batch is 32 at self and not set at b"));
    hello.settings_count = 1;
    strcpy(hello.settings[0].name, "batch");
    strcpy(hello.settings[0].value, "32");
    const struct message_hello alike = hello;
    cr_assert(lets_in(&config, &alike, ""));
    strcpy(hello.settings[0].value, "64");
    cr_assert(!lets_in(&config, &hello, "batch is 32 at self and 64 at b"));
    hello = alike;
    strcpy(hello.cluster, "other");
    cr_assert(!lets_in(&config, &hello, "cluster is "));
    hello = alike;
    hello.parameters++;
    cr_assert(!lets_in(&config, &hello, "300 parameters"));
    hello = alike;
    hello.vectors++;
    cr_assert(!lets_in(&config, &hello, "and 2 at b"));
    hello = alike;
    hello.averaged++;
    cr_assert(!lets_in(&config, &hello, "vectors averaged are 1 at self and 2 at b"));
    hello = alike;
    hello.robust = 1;
    cr_assert(!lets_in(&config, &hello, "--robust is given at b and not at self"));
    hello = alike;
    hello.strategy = PARLEY_STRATEGY_PUSH_SUM;
    cr_assert(!lets_in(&config, &hello, "strategy is gossip at self and push-sum at b"));
    hello = alike;
    hello.codec = PARLEY_CODEC_BF16;
    cr_assert(!lets_in(&config, &hello, "codec is fp32 at self and bf16 at b"));
    hello = alike;
    hello.codec_part = 0.5;
    cr_assert(!lets_in(&config, &hello, "codec is "));
    hello = alike;
    hello.model++;
    cr_assert(!lets_in(&config, &hello, "the model's shape is "));
    hello = alike;
    hello.run++;
    cr_assert(!lets_in(&config, &hello, "the run is "));
}

Test(node_frames, nothing_but_hello_is_heard_before_hello)
{
    /* Proves that each other type, but what a stranger may say, ends a connection before HELLO. */
    struct lone *lone = plain_node();
    for (enum wire_type type = WIRE_REJECT; type < WIRE_CHUNK; type++) {
        uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
        static uint8_t zeroes[sizeof(struct message_report)];
        lone_say(lone, conn, type, zeroes);
        cr_assert_eq(lone->conns[conn], type == WIRE_STATUS ? LONE_OPEN : LONE_CLOSED, "%s",
                     wire_type_name(type));
    }
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    say_chunk(lone, conn, WIRE_STREAM_OFFER, 1, 0, true);
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

Test(node_frames, a_second_hello_ends_the_connection)
{
    /* Proves that the handshake can't be begun again on a LIVE connection. */
    struct lone *lone = plain_node();
    uint32_t conn = lone_peer(lone, "a", 1);
    struct message_hello hello = lone_hello(lone, "a", 1);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

Test(node_frames, a_hello_of_its_own_boot_makes_no_member)
{
    /* Proves that a node that meets itself answers, so that the dialling end knows, and no more. */
    struct lone *lone = plain_node();
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    lone_listen(lone, conn);
    struct message_hello hello = lone_hello(lone, "self", lone->config.boot), answer;
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert(lone_heard(lone, WIRE_HELLO, &answer) && answer.boot == lone->config.boot);
    cr_assert_eq(parley_node_members(lone->node), 1);
    lone_free(lone);
}

Test(node_frames, a_stranger_cannot_end_a_node_that_waits_for_its_peers)
{
    /* Proves that a HELLO with other settings is refused in words, and harms only its sender. */
    struct parley_config config = lone_config();
    config.min_peers = 1;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    lone_listen(lone, conn);
    struct message_hello hello = lone_hello(lone, "a", 1);
    hello.parameters++;
    lone_say(lone, conn, WIRE_HELLO, &hello);
    struct message_reject reject;
    cr_assert(lone_heard(lone, WIRE_REJECT, &reject) && reject.code == (uint32_t)-PARLEY_EMISMATCH);
    cr_assert(strstr(reject.text, "300") && strstr(reject.text, "301"), "%s", reject.text);
    cr_assert(!lone->finished && lone->conns[conn] == LONE_CLOSED);
    lone_free(lone);
}

Test(node_frames, a_peer_of_another_protocol_version_is_told_so)
{
    /* Proves that a frame of another version is answered by REJECT and named, not just cut. */
    struct lone *lone = plain_node();
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    lone_listen(lone, conn);
    uint8_t frame[WIRE_HEADER_BYTES];
    wire_header_write(frame, WIRE_HELLO, 0);
    frame[2] = WIRE_VERSION + 1;
    lone_receive(lone, conn, frame, sizeof frame);
    struct message_reject reject;
    cr_assert(lone_heard(lone, WIRE_REJECT, &reject) && reject.code == (uint32_t)-PARLEY_EMISMATCH);
    cr_assert_str_eq(reject.text, "the protocol has version 2 there and 1 at self");
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

Test(node_frames, a_name_check_that_outlives_the_time_for_hello_does_not_spin)
{
    /* Proves that the deadline moves on while a name is being checked: lone_tick counts. */
    struct lone *lone = plain_node();
    uint32_t first = lone_peer(lone, "a", 1);
    lone_listen(lone, first);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    lone_run(lone, lone->config.hello_timeout_us - 100000);
    struct message_hello hello = lone_hello(lone, "a", 2);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert(lone->node->name_check.active);
    lone_run(lone, 1000000);
    cr_assert_eq(lone->conns[conn], LONE_OPEN, "the check is not over");
    lone_run(lone, 1500000);
    cr_assert(!lone->node->name_check.active);
    cr_assert_eq(lone->conns[conn], LONE_OPEN, "silent for 2 s: replaced");
    cr_assert_eq(lone->conns[first], LONE_CLOSED);
    lone_free(lone);
}

Test(node_frames, while_a_name_is_checked_a_peer_may_say_a_little_more_and_not_without_end)
{
    /* Proves that what follows a HELLO whose name is being checked is kept, and heard if the name
     * is free; and that nobody can leave more with the driver than node.h says. */
    static uint8_t frames[256 * 1024];
    struct lone *lone = plain_node();
    lone_peer(lone, "a", 1);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    struct message_hello hello = lone_hello(lone, "a", 2);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    struct message_probe ping = {1, lone->config.boot};
    size_t one = message_encode(WIRE_PING, &ping, frames, sizeof frames), size = one;
    for (; size + one <= sizeof frames; size += one)
        memcpy(frames + size, frames, one);
    cr_assert_eq(lone_receive(lone, conn, frames, one), one, "it waits");
    lone_run(lone, 2500000);
    cr_assert_eq(lone_receive(lone, conn, frames, one), 0, "the name was free");

    conn = lone_incoming(lone, "127.0.0.1:1");
    hello = lone_hello(lone, "a", 3);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert(lone->node->name_check.active);
    lone_receive(lone, conn, frames, size);
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

/* ---- Too many, too much ------------------------------------------------------------------------
 */

Test(node_frames, of_a_thousand_silent_connections_the_oldest_is_closed)
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

Test(node_frames, four_silent_connections_come_from_one_host)
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

Test(node_frames, who_asks_and_never_reads_is_cut_off)
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
        cr_assert_lt(lone->unsent[conn], lone->config.queue_bytes_max + 128 * 1024);
        lone_free(lone);
    }
}

Test(node_frames, a_full_table_refuses_new_members_and_keeps_the_old)
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

Test(node_frames, who_finds_no_room_in_the_table_ends)
{
    /* Proves that a joiner does not dial for ever where there will never be a place. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_at_seed(&config);
    struct message_reject reject = {.code = (uint32_t)-PARLEY_ELIMIT, .text = "full"};
    lone_say(lone, SEED_CONN, WIRE_REJECT, &reject);
    cr_assert(lone->finished && lone->error == PARLEY_ELIMIT);
    lone_free(lone);
}

Test(node_frames, the_living_are_named_once_each_and_in_order)
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

Test(node_frames, a_flood_of_suspects_keeps_each_step_within_its_updates)
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

Test(node_frames, a_node_with_many_links_ends_within_its_updates)
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

Test(node_frames, absurd_numbers_in_records_change_nothing)
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

/* ---- Exchanges ---------------------------------------------------------------------------------
 */

/* The peer at `conn` says this of b, whose boot id is 2. */
static void say_of_b(struct lone *lone, uint32_t conn, uint32_t incarnation,
                     enum parley_member_state state)
{
    struct message_members members = {.count = 1};
    members.records[0] = (struct record){
        .boot = 2, .name = "b", .address = "x:1", .incarnation = incarnation, .state = state};
    lone_say(lone, conn, WIRE_MEMBERS, &members);
}

Test(node_frames, who_says_a_suspicion_again_confirms_it_once)
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

Test(node_frames, what_others_say_of_a_far_incarnation_is_not_believed)
{
    /* Proves that one claim near the last number does not leave a member none to refute with. */
    struct lone *lone = plain_node();
    uint32_t a = lone_peer(lone, "a", 1);
    (void)lone_peer(lone, "b", 2);
    const struct record *b = record_of(lone->node, roster_find(lone->node->roster, 2));
    say_of_b(lone, a, 1000000, PARLEY_MEMBER_DEAD);
    cr_assert(b->state == PARLEY_MEMBER_ALIVE && b->incarnation == 0);
    say_of_b(lone, a, 2, PARLEY_MEMBER_DEAD);
    cr_assert(b->state == PARLEY_MEMBER_DEAD && b->incarnation == 2);
    lone_free(lone);
}

Test(node_frames, a_members_own_word_outbids_a_lie_about_it)
{
    /* Proves that who was first heard of by a far incarnation is believed on its own link. */
    struct lone *lone = plain_node();
    say_of_b(lone, lone_peer(lone, "a", 1), 1000000, PARLEY_MEMBER_DEAD);
    uint32_t conn = lone_peer(lone, "b", 2);
    const struct record *b = record_of(lone->node, roster_find(lone->node->roster, 2));
    cr_assert_eq(b->state, PARLEY_MEMBER_DEAD);
    say_of_b(lone, conn, 1, PARLEY_MEMBER_ALIVE);
    cr_assert(b->state == PARLEY_MEMBER_ALIVE && b->incarnation == 1);
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

Test(node_frames, who_has_been_suspected_gives_others_more_time)
{
    /* Proves that a node that is itself slow to hear does not call others silent (Lifeguard). */
    uint64_t timeout_us = lone_config().probe_timeout_us;
    cr_assert_lt(asks_others_after_us(0), 2 * timeout_us);
    cr_assert_geq(asks_others_after_us(4), 3 * timeout_us);
}

Test(node_frames, floats_that_nobody_wants_are_read_and_dropped)
{
    /* Proves that a stream of an exchange that ended costs nothing but reading it. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    for (int kind = 0; kind < WIRE_STREAMS + 1; kind++)
        say_chunk(lone, conn, (enum wire_stream)kind, 3, 0, true);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    lone_free(lone);
}

Test(node_frames, what_is_awaited_is_the_rest_of_a_wanted_chunk_and_nothing_else)
{
    /* A driver that reads floats right to their place writes where STORE would, and only then. */
    static uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200];
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "ann", 77), buffer = 99;
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

Test(node_frames, without_chunk_sums_nobody_looks_at_a_sum)
{
    /* A driver that cannot flip bits seals nothing: the floats are taken as they are. */
    struct parley_config config = lone_config();
    config.chunk_sums = false;
    struct lone *lone = training_node(&config);
    uint32_t conn = training_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = 7};
    lone_say(lone, conn, WIRE_OFFER, &m);
    lone_done_all(lone);
    say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, 0, false);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    cr_assert_eq(responder(lone)->state, SLOT_DIFFING);
    lone_free(lone);
}

Test(node_frames, a_false_offset_or_sum_ends_the_connection_and_the_exchange)
{
    /* Proves that floats are taken only in order and whole. */
    for (int false_sum = 0; false_sum < 2; false_sum++) {
        struct lone *lone = plain_node();
        uint32_t conn = training_peer(lone, "a", 1);
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

Test(node_frames, a_commit_out_of_nowhere_applies_nothing)
{
    /* Proves that COMMIT counts only for what is READY; it is acknowledged, to be forgotten. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    lone_listen(lone, conn);
    struct message_exchange m = {.sequence = 3}, answer;
    lone_say(lone, conn, WIRE_COMMIT, &m);
    cr_assert(lone_heard(lone, WIRE_APPLIED, &answer) && answer.sequence == 3);
    cr_assert(lone->ops_count == 0 && ledger(lone).applied == 0);
    lone_free(lone);
}

Test(node_frames, a_commit_said_twice_is_applied_once)
{
    /* Proves exactly-once: while the delta is being added, after it, and over another link. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    to_ready(lone, conn);
    struct message_exchange m = {.sequence = 7}, answer;
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_COMMIT, &m);
    lone_say(lone, conn, WIRE_COMMIT, &m);
    cr_assert(!lone_heard(lone, WIRE_APPLIED, NULL), "it is not in x yet");
    lone_done_all(lone);
    cr_assert(lone_heard(lone, WIRE_APPLIED, &answer));
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    conn = training_peer(lone, "a", 1);
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_COMMIT, &m);
    lone_done_all(lone);
    cr_assert(lone_heard(lone, WIRE_APPLIED, &answer) && answer.sequence == 7);
    cr_assert_eq(ledger(lone).applied, 1);
    lone_free(lone);
}

Test(node_frames, a_doubt_ends_once_however_often_it_is_answered)
{
    /* Proves that READY, a broken link, COMMIT said again and OUTCOME add the delta once. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    to_ready(lone, conn);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    cr_assert_eq(ledger(lone).in_doubt, 1);
    conn = training_peer(lone, "a", 1);
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

/* The peer at `conn` says that it has left. */
static void say_left(struct lone *lone, uint32_t conn, uint64_t boot)
{
    struct message_members members = {.count = 1};
    members.records[0] = (struct record){.boot = boot,
                                         .name = "a",
                                         .address = "x:1",
                                         .incarnation = 1,
                                         .clock = 1,
                                         .state = PARLEY_MEMBER_LEFT};
    lone_say(lone, conn, WIRE_MEMBERS, &members);
}

enum end { LEAVES_IN_DOUBT, LEAVES_READY, FALLS_ILL_READY, ENDS };

Test(node_frames, what_is_undecided_as_a_node_ends_is_counted)
{
    /* Proves that no delta is lost in silence: the mean of the others may be without it. */
    for (enum end end = 0; end < ENDS; end++) {
        struct lone *lone = plain_node();
        uint32_t conn = training_peer(lone, "a", 1);
        to_ready(lone, conn);
        if (end == LEAVES_IN_DOUBT) lone_closed(lone, conn, PARLEY_CLOSED_RESET);
        if (end == FALLS_ILL_READY) {
            say_left(lone, conn, 1); /* nobody could help */
            lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                                  .stepped = {1, 9, 0.0 / 0.0}});
        } else {
            lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_LEAVE});
            lone_run(lone, lone->config.leave_timeout_us);
        }
        struct parley_ledger after = ledger(lone);
        cr_assert(lone->finished && after.dropped == 1 && after.mass_dropped > 0, "end %d", end);
        lone_free(lone);
    }
}

Test(node_frames, who_has_left_undecided_makes_room_for_another)
{
    /* Proves that two that left, and where nobody listens now, do not end a node's averaging. */
    struct lone *lone = plain_node();
    for (uint64_t boot = 1; boot <= 2; boot++) {
        uint32_t conn = training_peer(lone, boot == 1 ? "a" : "b", boot);
        to_ready(lone, conn);
        say_left(lone, conn, boot);
        lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    }
    cr_assert_eq(ledger(lone).in_doubt, 2);
    struct message_exchange offer = {.sequence = 7};
    uint32_t conn = training_peer(lone, "c", 3);
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_OFFER, &offer);
    cr_assert(lone_heard(lone, WIRE_REFUSE, NULL), "they may have gone on for a while");
    for (uint32_t dial = 1; dial <= lone->highest; dial += 2)
        if (lone->conns[dial] == LONE_DIALED) lone_closed(lone, dial, PARLEY_CLOSED_REFUSED);
    lone_say(lone, conn, WIRE_OFFER, &offer);
    cr_assert(lone_heard(lone, WIRE_ACCEPT, NULL));
    cr_assert_eq(ledger(lone).dropped, 1);
    lone_free(lone);
}

Test(node_frames, a_broken_link_at_any_point_frees_the_responders_slot)
{
    /* Proves that neither an exchange nor a state being served keeps the slot after its link. */
    for (int point = 0; point < 5; point++) {
        struct lone *lone = plain_node();
        uint32_t conn = training_peer(lone, "a", 1);
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

/* ---- As initiator ------------------------------------------------------------------------------
 */

/* The peer at `conn` says that it trains. */
static void say_trains(struct lone *lone, uint32_t conn, uint64_t boot)
{
    struct message_members members = {.count = 1, .complete = 1};
    members.records[0] = (struct record){
        .boot = boot, .name = "a", .address = "x:1", .clock = 1, .phase = PARLEY_PHASE_TRAIN};
    lone_say(lone, conn, WIRE_MEMBERS, &members);
}

/* Makes the node offer to the peer at `conn`; returns the sequence. */
static uint32_t to_offered(struct lone *lone, uint32_t conn, uint64_t boot)
{
    say_trains(lone, conn, boot);
    lone->version += 2;
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                          .stepped = {lone->version, lone->version, 1}});
    lone_done_all(lone);
    cr_assert_eq(lone->node->exchange.slots[INITIATOR].state, SLOT_OFFERED);
    return lone->node->exchange.slots[INITIATOR].sequence;
}

Test(node_frames, accept_and_ready_count_once)
{
    /* Proves that answers said twice, and late ones, start, decide and add one exchange. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
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

static void make_steps(struct lone *lone, uint64_t steps)
{
    lone->version += steps;
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                          .stepped = {lone->version, lone->version, 1}});
}

Test(node_frames, steps_that_are_not_awaited_change_nothing)
{
    /* Proves that a driver may keep steps to itself until the awaited one, and no longer: that one
     * brings more steps, or begins an exchange. */
    struct parley_config config = lone_config();
    config.mix_every = 11;
    struct lone *lone = training_node(&config);
    say_trains(lone, training_peer(lone, "a", 1), 1);
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

Test(node_frames, two_nodes_have_one_exchange_with_each_other_at_a_time)
{
    /* Proves that an offer beside an exchange with the same peer is answered BUSY, whoever began
     * it, and that none is made. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
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

Test(node_frames, who_may_not_be_dialled_yet_is_not_chosen)
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

Test(node_frames, of_offers_that_cross_one_is_taken_back_and_the_other_weighs_all)
{
    /* Proves that who gives way says so, and that its own offer does not count as a second one:
     * with a quarter for it no sweep of averagings makes all equal. */
    struct lone *lone = plain_node();
    uint64_t boot = lone->config.boot + 1;
    uint32_t conn = training_peer(lone, "a", boot), sequence = to_offered(lone, conn, boot);
    struct message_exchange m = {.sequence = 0};
    lone_listen(lone, conn);
    lone_say(lone, conn, WIRE_OFFER, &(struct message_exchange){.sequence = 7});
    cr_assert(lone_heard(lone, WIRE_ABORT, &m) && m.sequence == sequence && !m.from_responder);
    cr_assert(lone_heard(lone, WIRE_ACCEPT, &m) && m.sequence == 7);
    cr_assert(m.share >= SHARE_ALONE);
    lone_free(lone);
}

Test(node_frames, a_snapshot_that_is_taken_again_goes_before_a_new_exchange)
{
    /* Proves that the slot whose snapshot lacks the other one's delta need not wait for a second
     * of those: else exchanges of a step each would keep it waiting for good. */
    struct lone *lone = plain_node();
    const struct slot *asks = &lone->node->exchange.slots[INITIATOR];
    uint32_t a = training_peer(lone, "a", 1), b = training_peer(lone, "b", 2);
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

Test(node_frames, an_absurd_answer_to_an_offer_ends_it)
{
    /* Proves that a share that nobody expects aborts, and that a busy peer waits a second at
     * most, whatever it asks for. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = 0.3};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    cr_assert(ledger(lone).started == 0);
    lone_free(lone);

    lone = plain_node();
    conn = training_peer(lone, "a", 1);
    m = (struct message_exchange){.sequence = to_offered(lone, conn, 1), .retry_us = UINT32_MAX};
    lone_say(lone, conn, WIRE_BUSY, &m);
    cr_assert_leq(lone->node->members[1].busy_us, lone->now_us + 1000000);
    lone_free(lone);
}

Test(node_frames, an_undecided_exchange_is_aborted_by_the_question)
{
    /* Proves that ASK before the decision decides: ABORTED, and a READY after it too. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
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

Test(node_frames, what_another_asks_about_an_exchange_does_not_end_it)
{
    /* Proves that the question decides only where the responder asks it. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1), other = training_peer(lone, "b", 2);
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

Test(node_frames, a_decision_is_remembered_until_its_own_applied)
{
    /* Proves that APPLIED of another exchange, come late, does not make it forgotten: who asks
     * would give up a delta that this node has added. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    lone_say(lone, conn, WIRE_READY, &m);
    lone_done_all(lone);
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

Test(node_frames, a_decision_is_not_remembered_for_who_has_left)
{
    /* Proves that who left without APPLIED takes no place among the decisions that are kept. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1), other = training_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    lone_say(lone, conn, WIRE_READY, &m);
    lone_done_all(lone);
    struct message_outcome_frame ask = {lone->config.boot, 1, m.sequence, 0}, outcome;
    lone_listen(lone, other);
    lone_say(lone, other, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_COMMITTED);
    say_left(lone, conn, 1);
    lone_say(lone, other, WIRE_ASK, &ask);
    cr_assert(lone_heard(lone, WIRE_OUTCOME, &outcome) && outcome.outcome == MESSAGE_UNKNOWN);
    lone_free(lone);
}

Test(node_frames, a_question_about_what_an_earlier_boot_offered_is_answered)
{
    /* Proves that who asks a node that was started anew need not wait for news of its death. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
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

Test(node_frames, a_third_passes_on_the_question_and_the_answer)
{
    /* Proves that two that have no link with each other still learn what became of an exchange. */
    struct lone *lone = plain_node();
    uint32_t asker = training_peer(lone, "a", 1), initiator = training_peer(lone, "b", 2);
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
    lone_free(lone);
}

/* One that keeps slow weights. */
static struct lone *outer_node(void)
{
    struct parley_config config = lone_config();
    config.strategy = PARLEY_STRATEGY_NOLOCO;
    config.mix_every = 2;
    struct lone *lone = training_node(&config);
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

Test(node_frames, what_a_joiner_is_given_is_not_mixed_by_an_own_exchange)
{
    /* Proves that slow weights on their way to a joiner stay as they are: no state is given while
     * an exchange is open, and none begins while it is given. lone.h sees every write. */
    struct lone *lone = outer_node();
    uint32_t conn = training_peer(lone, "a", 1), joiner = training_peer(lone, "b", 2);
    struct message_exchange m = {.sequence = to_offered(lone, conn, 1), .share = SHARE_ALONE};
    ask_for_state(lone, joiner);
    cr_assert(!lone->node->fetch.serving);
    lone_say(lone, conn, WIRE_ACCEPT, &m);
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m.sequence, 0, true);
    lone_say(lone, conn, WIRE_READY, &m);
    lone_done_all(lone);
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

Test(node_frames, no_state_is_taken_while_one_is_given_nor_given_while_one_is_taken)
{
    /* What it takes is written where slow weights on their way to a joiner stand. */
    struct lone *lone = outer_node();
    uint32_t joiner = training_peer(lone, "a", 1);
    say_trains(lone, joiner, 1);
    ask_for_state(lone, joiner);
    cr_assert(lone->node->fetch.serving);
    lone->version++;
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                          .stepped = {lone->version, 9, 0.0 / 0.0}});
    lone_run(lone, 200000);
    cr_assert(lone->node->training.diverged && lone->node->fetch.state == FETCH_IDLE);

    lone_done_all(lone);
    lone_run(lone, 200000);
    cr_assert_eq(lone->node->fetch.state, FETCH_ASKED);
    ask_for_state(lone, joiner);
    cr_assert(!lone->node->fetch.serving);
    lone_free(lone);
}

Test(node_frames, what_a_joiner_is_given_is_not_mixed_by_what_was_in_doubt)
{
    /* Proves that a decision heard meanwhile is asked for again, and then counts. */
    struct lone *lone = outer_node();
    uint32_t conn = training_peer(lone, "a", 1), joiner = training_peer(lone, "b", 2);
    make_steps(lone, 2);
    to_ready(lone, conn);
    lone_closed(lone, conn, PARLEY_CLOSED_RESET);
    cr_assert_eq(ledger(lone).in_doubt, 1);
    ask_for_state(lone, joiner);
    cr_assert(lone->node->fetch.serving);
    conn = training_peer(lone, "a", 1);
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

Test(node_frames, who_asks_for_the_model_and_takes_no_byte_of_it_is_cut_off)
{
    /* Proves that the place where offers are answered, from which the model is sent, comes free
     * again where chunks do not leave, though the other end goes on asking whether we live. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
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

/* ---- Steps and time ----------------------------------------------------------------------------
 */

Test(node_frames, training_goes_on_after_the_model_was_replaced)
{
    /* Proves that a step that ends after HALT does not keep the node from being granted more. */
    struct lone *lone = plain_node();
    uint32_t conn = training_peer(lone, "a", 1);
    to_offered(lone, conn, 1);
    lone->version++;
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                          .stepped = {lone->version, 9, 0.0 / 0.0}});
    cr_assert_eq(lone->steps_left, 0, "HALT");
    lone->version++; /* it was under way */
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                          .stepped = {lone->version, 9, 1}});
    struct message_exchange busy = {.sequence = lone->node->exchange.slots[INITIATOR].sequence};
    lone_say(lone, conn, WIRE_REFUSE, &busy);
    lone_run(lone, 200000);
    const struct fetch *fetch = &lone->node->fetch;
    cr_assert_eq(fetch->state, FETCH_ASKED);
    struct message_fetch fetched = {.sequence = fetch->sequence, .ok = 1, .vectors = 1};
    lone_say(lone, conn, WIRE_FETCHED, &fetched);
    say_chunk(lone, conn, WIRE_STREAM_FETCH, fetch->sequence, 0, true);
    lone_done_all(lone);
    cr_assert_gt(lone->steps_left, 0);
    lone_free(lone);
}

Test(node_frames, another_is_asked_at_once_where_the_link_to_who_gives_its_model_breaks)
{
    /* Proves that nobody waits for the rest of a model until time is up. */
    struct lone *lone = plain_node();
    const struct fetch *fetch = &lone->node->fetch;
    uint32_t conn = training_peer(lone, "a", 1);
    struct message_exchange refused = {.sequence = to_offered(lone, conn, 1)};
    lone->version++;
    lone_step(lone, (struct parley_event){.type = PARLEY_EVENT_STEPPED,
                                          .stepped = {lone->version, 9, 0.0 / 0.0}});
    lone_say(lone, conn, WIRE_REFUSE, &refused);
    lone_run(lone, 200000);
    cr_assert_eq(fetch->state, FETCH_ASKED);
    struct message_fetch fetched = {.sequence = fetch->sequence, .ok = 1, .vectors = 1};
    lone_say(lone, conn, WIRE_FETCHED, &fetched);
    cr_assert_eq(fetch->state, FETCH_STREAMING);
    conn = training_peer(lone, "b", 2);
    say_trains(lone, conn, 2);
    lone_closed(lone, 2, PARLEY_CLOSED_RESET);
    lone_listen(lone, conn);
    lone_run(lone, 200000);
    cr_assert(lone_heard(lone, WIRE_FETCH, NULL));
    lone_free(lone);
}

Test(node_frames, who_wakes_late_reads_before_it_judges)
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

Test(node_frames, who_asks_for_a_probe_hears_of_one_that_had_to_be_dialled)
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

Test(node_frames, who_has_no_room_for_a_link_to_be_probed_in_is_not_suspected)
{
    /* b answers each dial by HELLO and, as it has links enough, BYE. */
    const struct message_bye_frame bye = {MESSAGE_BYE_IDLE};
    struct lone *lone = plain_node();
    lone_say(lone, lone_peer(lone, "b", 2000), WIRE_BYE, &bye);
    uint32_t answers = 0;
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
