/* One node, its peers played by hand: what two say of themselves on a new link, and what keeps them
 * apart. */
#include "lone_talk.h"

Test(node_hello, a_dial_that_crosses_an_own_one_gives_way_but_not_long_after_it)
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

Test(node_hello, who_is_told_that_there_is_another_link_does_not_dial_at_once)
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

Test(node_hello, who_breaks_the_format_is_not_dialled_at_once)
{
    /* It may do so each time: as a driver that leaves chunks unsealed where the other end sums. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_with_seed(&config);
    lone_receive(lone, SEED_CONN, "GET / HTTP/1.1\r\n\r\n", 18);
    lone_closed(lone, SEED_CONN, PARLEY_CLOSED_LOCAL);
    lone_run(lone, config.redial_min_us - 1000);
    cr_assert_eq(lone->conns[SEED_CONN + 2], 0, "not dialled yet");
    lone_run(lone, 2000);
    cr_assert_eq(lone->conns[SEED_CONN + 2], LONE_DIALED);
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

Test(node_hello, a_link_may_have_as_many_streams_as_the_lesser_of_both_ends_wants)
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

Test(node_hello, a_link_is_not_told_of_this_node_what_its_other_end_has_heard)
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

Test(node_hello, who_differs_in_anything_that_must_match_is_refused_by_name)
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
    config.settings_count = 0;
    cr_assert(!lets_in(&config, &alike, "batch is not set at self and 32 at b"));
    config.settings_count = 1;
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
    cr_assert(!lets_in(&config, &hello, "robust is set at b and not at self"));
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

Test(node_hello, who_has_the_boot_id_of_another_node_is_refused)
{
    /* Proves that it is not taken for a seed that is this node itself. */
    struct parley_config config = lone_config();
    struct lone from = {.config = config};
    struct message_hello hello = lone_hello(&from, "b", config.boot);
    cr_assert(!lets_in(&config, &hello, "self and b have one boot id"));
}

Test(node_hello, who_has_the_name_of_this_very_node_is_refused)
{
    struct parley_config config = lone_config();
    struct lone from = {.config = config};
    struct message_hello hello = lone_hello(&from, config.name, 2000);
    cr_assert(
        !lets_in(&config, &hello, "the name self is taken by the live node at 127.0.0.1:7000"));
}

Test(node_hello, nothing_but_hello_is_heard_before_hello)
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

Test(node_hello, a_second_hello_ends_the_connection)
{
    /* Proves that the handshake can't be begun again on a LIVE connection. */
    struct lone *lone = plain_node();
    uint32_t conn = lone_peer(lone, "a", 1);
    struct message_hello hello = lone_hello(lone, "a", 1);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert_eq(lone->conns[conn], LONE_CLOSED);
    lone_free(lone);
}

Test(node_hello, a_hello_of_its_own_boot_makes_no_member)
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

Test(node_hello, a_stranger_cannot_end_a_node_that_waits_for_its_peers)
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

Test(node_hello, a_peer_of_another_protocol_version_is_told_so)
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

Test(node_hello, a_name_is_taken_where_its_owner_answers_for_it)
{
    /* Proves that it is what keeps a newcomer out, and that an answer of another does not. */
    for (uint64_t boot = 1; boot <= 2; boot++) {
        struct lone *lone = plain_node();
        uint32_t a = lone_peer(lone, "a", 1), conn = lone_incoming(lone, "127.0.0.1:1");
        struct message_hello hello = lone_hello(lone, "a", 3);
        lone_listen(lone, conn);
        lone_say(lone, conn, WIRE_HELLO, &hello);
        lone_run(lone, 500000);
        cr_assert(!lone_heard(lone, WIRE_REJECT, NULL), "it is asked first");
        struct message_probe ack = {lone->node->name_check.sequence, boot};
        lone_say(lone, a, WIRE_ACK, &ack);
        lone_run(lone, 500000);
        cr_assert_eq(lone_heard(lone, WIRE_REJECT, NULL), boot == 1);
        lone_free(lone);
    }
}

Test(node_hello, a_name_check_that_outlives_the_time_for_hello_does_not_spin)
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

Test(node_hello, while_a_name_is_checked_a_peer_may_say_a_little_more_and_not_without_end)
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

Test(node_hello, a_name_that_another_got_while_it_was_checked_is_checked_again)
{
    /* Proves that two that ask for one name of a dead node do not both get it, where the second was
     * let in elsewhere while the first waited. */
    struct lone *lone = plain_node();
    uint32_t c = lone_peer(lone, "c", 9);
    lone_peer(lone, "a", 1);
    uint32_t conn = lone_incoming(lone, "127.0.0.1:1");
    struct message_hello hello = lone_hello(lone, "a", 2);
    lone_say(lone, conn, WIRE_HELLO, &hello);
    cr_assert(lone->node->name_check.active);
    struct message_members m = {.count = 1};
    m.records[0] = (struct record){.boot = 3, .name = "a", .address = "x:3", .clock = 1};
    lone_say(lone, c, WIRE_MEMBERS, &m);
    lone_run(lone, 2100000);
    cr_assert_eq(roster_find(lone->node->roster, 2), NONE, "boot 3 may live");
    cr_assert(lone->node->name_check.active);
    lone_free(lone);
}

Test(node_hello, who_was_let_in_is_not_sent_away)
{
    /* Proves that a peer that says of everybody that it has left does not end a node in the middle
     * of its training by the word that ends one that wants to join. */
    struct parley_config config = lone_config();
    struct lone *lone = lone_with_seed(&config);
    lone_run(lone, 100000);
    say_trains(lone, SEED_CONN, 2000);
    struct message_members m = {.records = {*record_of(lone->node, 1)}, .count = 1};
    m.records[0].state = PARLEY_MEMBER_LEFT;
    m.records[0].incarnation = 1;
    lone_say(lone, SEED_CONN, WIRE_MEMBERS, &m);
    cr_assert(lone->conns[SEED_CONN] == LONE_OPEN && live_of(lone->node) == 1);
    struct message_reject reject = {.code = (uint32_t)-PARLEY_ENAME_TAKEN, .text = "go"};
    lone_say(lone, SEED_CONN, WIRE_REJECT, &reject);
    cr_assert(!lone->finished);
    cr_assert_eq(lone->conns[SEED_CONN], LONE_CLOSED);
    lone_free(lone);
}

/* It dials the first of them, as SEED_CONN. */
static struct lone *joins_by(uint32_t seeds)
{
    static const char *const both[] = {"127.0.0.1:7005", "127.0.0.1:7006"};
    struct parley_config config = lone_config();
    config.seeds = both;
    config.seeds_count = seeds;
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    return lone;
}

Test(node_hello, who_finds_another_key_at_all_of_its_seeds_ends)
{
    /* Proves that it does so with the status of its own, and goes on as long as there is a seed of
     * which that is not known. */
    for (uint32_t seeds = 1; seeds <= 2; seeds++) {
        struct lone *lone = joins_by(seeds);
        lone_closed(lone, SEED_CONN, PARLEY_CLOSED_KEY);
        cr_assert_eq(lone->finished, seeds == 1);
        if (lone->finished) cr_assert_eq(lone->error, PARLEY_EKEY);
        lone_free(lone);
    }
}

Test(node_hello, who_is_in_goes_on_where_a_seed_has_another_key)
{
    struct parley_config config = lone_config();
    struct lone *lone = lone_with_seed(&config);
    lone_run(lone, 100000);
    say_trains(lone, SEED_CONN, 2000);
    lone_closed(lone, SEED_CONN, PARLEY_CLOSED_KEY);
    cr_assert(!lone->finished);
    lone_free(lone);
}

Test(node_hello, who_is_refused_by_a_loner_ends_once_no_other_seed_is_left)
{
    /* Proves that of two with one name that know of nobody but each other one ends, with its
     * status, and that one with another seed goes on. */
    for (uint32_t seeds = 1; seeds <= 2; seeds++) {
        struct lone *lone = joins_by(seeds);
        lone_connected(lone, SEED_CONN);
        struct message_reject reject = {
            .code = (uint32_t)-PARLEY_ENAME_TAKEN, .alone = 1, .text = "it is taken"};
        lone_say(lone, SEED_CONN, WIRE_REJECT, &reject);
        cr_assert_eq(lone->finished, seeds == 1);
        if (lone->finished) cr_assert_eq(lone->error, PARLEY_ENAME_TAKEN);
        lone_free(lone);
    }
}

Test(node_hello, a_seed_that_is_this_very_node_is_no_other_that_is_left)
{
    /* Proves that a list of seeds that names its reader too, as one list for all does, keeps nobody
     * waiting that has been refused by the only other. */
    struct lone *lone = joins_by(2);
    struct message_hello own = lone_hello(lone, lone->config.name, lone->config.boot);
    struct message_reject reject = {
        .code = (uint32_t)-PARLEY_ENAME_TAKEN, .alone = 1, .text = "it is taken"};
    lone_connected(lone, SEED_CONN);
    lone_say(lone, SEED_CONN, WIRE_HELLO, &own);
    lone_tick(lone);
    cr_assert_eq(lone->conns[SEED_CONN + 2], LONE_DIALED);
    lone_connected(lone, SEED_CONN + 2);
    lone_say(lone, SEED_CONN + 2, WIRE_REJECT, &reject);
    cr_assert(lone->finished && lone->error == PARLEY_ENAME_TAKEN);
    lone_free(lone);
}
