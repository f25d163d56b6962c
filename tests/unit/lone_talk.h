/* lone_talk.h: what tests of a lone node often say to it.
 */
#ifndef PARLEY_TESTS_LONE_TALK_H
#define PARLEY_TESTS_LONE_TALK_H

#include "lone.h"

enum { SEED_CONN = 1 }; /* what a node dials first */

static inline struct lone *training_node(struct parley_config *config)
{
    struct lone *lone = lone_new(config);
    lone_start(lone);
    lone_tick(lone);
    cr_assert_eq(record_of(lone->node, 0)->phase, PARLEY_PHASE_TRAIN);
    return lone;
}

static inline struct lone *plain_node(void)
{
    struct parley_config config = lone_config();
    return training_node(&config);
}

/* A floats frame: as long as the node's model, unless told otherwise. */
static inline void say_chunk(struct lone *lone, uint32_t conn, enum wire_stream kind,
                             uint32_t sequence, uint64_t offset, bool true_sum)
{
    static uint8_t bytes[WIRE_CHUNK_HEAD_BYTES + 1200];
    struct wire_chunk chunk = {.kind = (uint16_t)kind, .sequence = sequence, .offset = offset};
    wire_chunk_write(bytes, &chunk, 1200);
    wire_chunk_seal(bytes, bytes + WIRE_CHUNK_HEAD_BYTES, true_sum ? 1200 : 1196);
    lone_receive(lone, conn, bytes, sizeof bytes);
}

static inline const struct slot *responder(const struct lone *lone)
{
    return &lone->node->exchange.slots[RESPONDER];
}

/* A peer whose HELLO was taken. */
static inline uint32_t accepted_peer(struct lone *lone, const char *name, uint64_t boot)
{
    uint32_t conn = lone_peer(lone, name, boot);
    cr_assert_eq(lone->conns[conn], LONE_OPEN);
    return conn;
}

static inline void say_lives(struct lone *lone, uint32_t conn)
{
    lone_say(lone, conn, WIRE_PING, &(struct message_probe){1, lone->config.boot});
}

/* Brings the responder's slot to READY for sequence 7 of the peer at `conn`. */
static inline void to_ready(struct lone *lone, uint32_t conn)
{
    struct message_exchange m = {.sequence = 7};
    lone_say(lone, conn, WIRE_OFFER, &m);
    lone_done_all(lone);
    say_chunk(lone, conn, WIRE_STREAM_OFFER, 7, 0, true);
    lone_done_all(lone);
    cr_assert_eq(responder(lone)->state, SLOT_READY);
}

static inline struct parley_ledger ledger(const struct lone *lone)
{
    struct parley_view view;
    parley_node_view(lone->node, &view);
    return view.ledger;
}

/* A node that has dialled its seed, over SEED_CONN. */
static inline struct lone *lone_at_seed(struct parley_config *config)
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
static inline struct lone *lone_with_seed(struct parley_config *config)
{
    struct lone *lone = lone_at_seed(config);
    struct message_hello hello = lone_hello(lone, "b", 2000);
    lone_say(lone, SEED_CONN, WIRE_HELLO, &hello);
    return lone;
}

/* The peer at `conn` says this of a member, and that it has told all. */
static inline void say_record(struct lone *lone, uint32_t conn, const struct record *record)
{
    struct message_members members = {.count = 1, .complete = 1};
    members.records[0] = *record;
    lone_say(lone, conn, WIRE_MEMBERS, &members);
}

/* The peer at `conn` says that it has left. */
static inline void say_left(struct lone *lone, uint32_t conn, uint64_t boot)
{
    say_record(lone, conn,
               &(struct record){.boot = boot,
                                .name = "a",
                                .address = "x:1",
                                .incarnation = 1,
                                .clock = 1,
                                .state = PARLEY_MEMBER_LEFT});
}

/* What a, in training, says of itself. */
static inline struct record training_a(uint64_t boot)
{
    return (struct record){
        .boot = boot, .name = "a", .address = "x:1", .clock = 1, .phase = PARLEY_PHASE_TRAIN};
}

/* The peer at `conn` says that it trains. */
static inline void say_trains(struct lone *lone, uint32_t conn, uint64_t boot)
{
    struct record a = training_a(boot);
    say_record(lone, conn, &a);
}

/* Makes the node offer to the peer at `conn`; returns the sequence. */
static inline uint32_t to_offered(struct lone *lone, uint32_t conn, uint64_t boot)
{
    say_trains(lone, conn, boot);
    lone->version += 2;
    lone_stepped(lone, lone->version, 1);
    lone_done_all(lone);
    cr_assert_eq(lone->node->exchange.slots[INITIATOR].state, SLOT_OFFERED);
    return lone->node->exchange.slots[INITIATOR].sequence;
}

static inline void make_steps(struct lone *lone, uint64_t steps)
{
    lone->version += steps;
    lone_stepped(lone, lone->version, 1);
}

/* The peer at `conn` takes the offer, gives its floats and is ready: the node decides, and adds. */
static inline void to_committed(struct lone *lone, uint32_t conn, const struct message_exchange *m)
{
    lone_say(lone, conn, WIRE_ACCEPT, m);
    say_chunk(lone, conn, WIRE_STREAM_ACCEPT, m->sequence, 0, true);
    lone_say(lone, conn, WIRE_READY, m);
    lone_done_all(lone);
}

#endif
