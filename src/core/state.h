/* state.h: the whole state of one node, which is what its modules keep, side by side.
 *
 * One file a concept. Its header has the module's own part of the state and what it offers the
 * others; its .c sees the whole node, through this file. So no header of a module whose part lies
 * in the node includes this one.
 *
 *   wire/        frames, and what is in them            exchange/   pairwise averaging
 *   link/        links: whom to dial, who is let in     drift/      how far models are apart
 *   transfer/    streams of floats, whole models        strategy/   what else than gossip there is
 *   membership/  records, SWIM                          training/   joining, local steps, budget
 *   topology/    who may average with whom              agreement/  the end
 *
 * node.c dispatches, wire/frames.c what comes over links; out.c is what a step gives. All time
 * below is node time: the driver's clock less what this process slept through (node.c), so that
 * waking up late expires nothing.
 */
#ifndef PARLEY_CORE_STATE_H
#define PARLEY_CORE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/agreement/agreement.h"
#include "core/drift/drift.h"
#include "core/exchange/exchange.h"
#include "core/exchange/robust.h"
#include "core/link/connection.h"
#include "core/link/hello.h"
#include "core/link/seeds.h"
#include "core/membership/gossip.h"
#include "core/membership/membership.h"
#include "core/membership/probe.h"
#include "core/membership/roster.h"
#include "core/out.h"
#include "core/rng.h"
#include "core/strategy/strategy.h"
#include "core/training/training.h"
#include "core/transfer/fetch.h"
#include "core/transfer/flow.h"
#include "core/wire/message.h"
#include "parley/node.h"

#define NEVER UINT64_MAX

/* Of two times. */
static inline uint64_t earlier(uint64_t a_us, uint64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

struct parley_node {
    struct parley_config config;
    char cluster[PARLEY_NAME_SIZE];
    struct message_setting settings[PARLEY_SETTINGS_MAX];
    struct rng rng;

    uint64_t now_us, skew_us; /* node time; driver's time less node time */
    uint64_t deadline_us;
    bool more; /* something was left for the next step: it wants to come at once */
    bool finished;
    struct parley_updates *out;

    struct conn *conns; /* [conns_count = config.connections_max + config.pending_max] */
    struct open *open;  /* [open_count of conns_count], those not FREE, in no order */
    uint32_t conns_count, open_count;
    uint32_t next_conn;
    uint64_t news_us; /* since when news_count lines were about connections dialled by others */
    uint32_t news_count;
    uint64_t next_conn_us;   /* no connection's deadline is before that */
    struct seed_dial *seeds; /* [seeds_room()] */
    uint32_t seeds_count;    /* places used so far, those that are free again among them */
    uint64_t next_seed_us;
    bool contacted; /* some peer has let us in */
    bool met_all;   /* that peer's whole table has come */
    struct name_check name_check;

    struct parley_roster *roster; /* own, or shared */
    struct parley_roster own_roster;
    int self;               /* this node's place in it; 0 in an own one */
    struct member *members; /* [roster->max]; NULL where the roster is shared */
    struct gossip gossip;
    uint64_t next_suspicion_us, next_redial_us;
    struct probing probing;

    struct op *ops; /* [ops_count] */
    uint32_t ops_count, next_op;
    struct outflow *outflows; /* [outflows_count] */
    uint32_t outflows_count, outflows_active;
    struct inflow *inflows; /* [strategy->inflows] */
    const struct strategy *strategy;
    void *strategy_state;

    struct exchange exchange;
    struct robust robust;
    struct drift drift;
    struct fetch fetch;
    struct agreement agreement;
    struct training training;
    struct parley_ledger ledger;
    bool leaving;
    uint64_t leave_us;
    uint64_t start_us;
};

static inline struct record *record_of(const struct parley_node *node, uint32_t member)
{
    return &node->roster->records[member];
}

static inline struct record *self_of(const struct parley_node *node)
{
    return record_of(node, (uint32_t)node->self);
}

/* NULL where the roster is shared. */
static inline struct member *member_of(const struct parley_node *node, int member)
{
    return node->members ? &node->members[member] : NULL;
}

/* The i-th connection that is not FREE, i < open_count. */
static inline struct conn *connection_at(const struct parley_node *node, uint32_t i)
{
    return &node->conns[node->open[i].place];
}

/* Of a vector's floats. */
static inline uint64_t vector_bytes(const struct parley_node *node)
{
    return node->config.parameters * sizeof(float);
}

/* Alive or suspect, this node included. */
static inline uint32_t live_of(const struct parley_node *node)
{
    return node->roster->counts[ROSTER_LIVE];
}

/* It has stood still, once or in all, for so long that others may have gone on without it. */
static inline bool has_slept(const struct parley_node *node)
{
    const uint64_t long_us = 1000000;
    return node->skew_us >= long_us;
}

static inline enum parley_phase phase_of(const struct parley_node *node)
{
    return (enum parley_phase)self_of(node)->phase;
}

/* Bytes of a kind that may have so many a second: *paid_us is when all that went out is paid for.
 */
static inline void charge(const struct parley_node *node, uint64_t *paid_us, uint64_t bytes,
                          uint64_t bytes_a_second)
{
    if (*paid_us < node->now_us) *paid_us = node->now_us;
    *paid_us += bytes * 1000000 / bytes_a_second;
}

/* Every move between phases goes through here. */
void node_phase(struct parley_node *node, enum parley_phase phase);

#endif
