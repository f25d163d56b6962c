/* strategy.h: what a node does between local steps: one table of calls a strategy, one file each.
 *
 * Membership, links, streams, trainer, budget, joining and the agreement at the end are the node's;
 * a strategy says only when steps are made and what becomes of them. It is part of the state
 * machine: it is called with the node, looks at what state.h has, and gives updates (node.h). So it
 * never waits, and names floats by buffer.
 *
 *   its state      node->strategy_state, [size], zeroed; cast it in the strategy's own file
 *   its buffers    strategy_buffer(node, 0) .. (buffers - 1), nobody else's; the first `kept` of
 *                  them travel to joiners together with x and the optimizer's vectors
 *   operations     strategy_op() gives a TAKE, SET, ADD, GRADIENT, APPLY, COMBINE, ...; ->done()
 *                  comes once for each, with the number that was given along
 *   floats         strategy_send() streams a part of a buffer to a connection; it leaves the buffer
 *                  in order and may be cut off: ->sent(). Who is to get it must have said
 *                  strategy_expect() before (so ask for floats, and expect them before you ask):
 *                  what nobody expects is dropped. Both name it by tag and part, the connection
 *                  being the third; a part that is whole and undamaged comes as ->received().
 *                  A buffer that flow_is_sent() still holds for must not be written there.
 *   small talk     connection_send(node, conn, WIRE_STRATEGY, &message_strategy); ->frame(). Frames
 *                  and floats of one connection come in the order in which they were sent. A
 *                  connection may end at any time without its peer being dead: ->closed(), later
 *                  ->live(), where what matters is said again. connection_of() has the present one,
 *                  connection_want() dials.
 *   members        live: membership_is_live(); record_of(node, i)->phase says what they do; by name
 *                  in roster->line. roster->news changes with any of that.
 *   steps          strategies that don't split are granted steps up to ->limit(); those that do ask
 *                  for GRADIENTs where training_wants(node), and count what is applied in ->steps()
 *   the end        ->stop() is asked again and again when training is to end, and says when nothing
 *                  is under way any more. Then x goes into SETTLE, whatever the strategy: pairwise
 *                  exchanges until all agree. So a strategy whose models are not those to average
 *                  (push-sum: x / w) puts them into x before it says so.
 *
 * All calls may be NULL where there is nothing to do, or nothing that would call them back. None is
 * made before begin() but live(), closed() and frame(), and adopted() of who joins with a peer's
 * state; none after the node has ended. Frames may come at any time and say anything.
 *
 * A new one: its file; a line in strategy.c's table, in enum parley_strategy (config.h) and in
 * options.def; judge_strategy.c refuses what does not go with it.
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_STRATEGY_H
#define PARLEY_CORE_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/wire/message.h"
#include "parley/node.h"

struct conn;

struct strategy {
    const char *name;
    bool offers;     /* starts pairwise exchanges while it trains (exchange.c) */
    bool answers;    /* takes part in those that peers start: x may change between any two steps */
    bool splits;     /* steps come as GRADIENT and APPLY */
    bool catches_up; /* who joins late enters TRAIN at once, and takes a state by joining_follow()
                      */
    bool sums_batches; /* a step takes the batches of all nodes: --lr is scaled, unless told not to
                        */
    bool merges_each;  /* each gradient of any node goes into the one model: record->holds tells how
                          many all have made */
    uint32_t mix_every;  /* the usual one; 0: 1 */
    uint32_t neighbours; /* that a round has room for, to PARLEY_NEIGHBOURS_MAX; 0: no rounds */
    bool pushes;         /* exchanges go one way while it trains: push_sum.c */
    bool on_ring;        /* ring.h: it needs links to 2 log2 n members at a time */
    uint32_t nodes_max;  /* no more are let in; 0: as many as the table of members has room for */
    size_t size;         /* of strategy_state */
    uint32_t buffers, kept;     /* kept: at most FLOW_KEPT_MAX */
    uint32_t inflows, outflows; /* streams expected, and sent, at a time */
    uint32_t lanes, lanes_max;  /* inflows that have a buffer, too: of large models, and of small */

    void (*begin)(struct parley_node *node); /* TRAIN has begun */
    /* After each event while in TRAIN to SETTLE: starts what may start now. */
    void (*advance)(struct parley_node *node);
    /* When it wants to be called again though nothing happens; UINT64_MAX: never. */
    uint64_t (*deadline)(const struct parley_node *node);

    /* Local steps (training.version) that may be made all told, by now. NULL: any number. */
    uint64_t (*limit)(const struct parley_node *node);
    /* Steps that x has been through: what the budget of steps and the member's record count. NULL:
     * the local ones. After a change of it call training_counted(). */
    uint64_t (*steps)(const struct parley_node *node);

    /* Exchanges while it trains (exchange.c), where they don't just average. due: whether one suits
     * now; then there is one at a time, and mix() counts for the next. mix: d, the difference of
     * both snapshots, is decided: it is in `theirs`, the own snapshot in `own` (NONE: no longer
     * there). What it returns is the factor with which `theirs` then goes into x. It may write the
     * kept buffers: there is no exchange while a joiner is being given them. */
    bool (*due)(const struct parley_node *node);
    float (*mix)(struct parley_node *node, int own, uint32_t theirs, float factor);

    void (*done)(struct parley_node *node, int number, const struct parley_event *event);
    void (*received)(struct parley_node *node, int inflow);
    void (*progress)(struct parley_node *node, int inflow); /* some of its bytes came */
    void (*sent)(struct parley_node *node, int number, bool ok);
    void (*frame)(struct parley_node *node, struct conn *conn,
                  const struct message_strategy *message);
    void (*live)(struct parley_node *node, struct conn *conn);
    void (*closed)(struct parley_node *node, uint32_t conn, int member);

    /* A peer takes this node's vectors as they are after the updates so far: what it has to know
     * beside them. And the other way round: they are in x (and in the kept buffers) now. */
    void (*give)(struct parley_node *node, struct message_fetch *answer);
    void (*adopted)(struct parley_node *node, const struct message_fetch *answer);

    bool (*stop)(struct parley_node *node);
};

const struct strategy *strategy_of(enum parley_strategy strategy);
/* As --strategy has it; of any number. */
const char *strategy_name(uint32_t strategy);

uint32_t strategy_buffer(const struct parley_node *node, uint32_t index);

/* The most nodes there may be. */
uint32_t strategy_nodes(const struct parley_config *config);

/* Where there are nodes_max: what the next one is told. */
void strategy_say_full(const struct parley_node *node, char text[MESSAGE_TEXT_SIZE]);

/* This node makes no steps for now, as it can't reach whom it needs for them; or does again: nobody
 * waits for it to make its budget of steps. */
void strategy_stand_aside(struct parley_node *node, bool aside);

/* The fewest that connections_max may be: half of the pool are relays. */
uint32_t strategy_connections(const struct parley_config *config);

/* Inflows that have a buffer: strategy->lanes, or as many up to lanes_max as config.lanes_bytes
 * has room for. Over a long line each takes a way there and back, and several do so together. */
uint32_t strategy_lanes(const struct parley_config *config);
uint32_t strategy_lane_buffer(const struct parley_node *node, int lane);

/* An operation on `buffer`; fill in the rest of update->vector. TAKE and SET get x alone. COMBINE
 * gets the whole vector as its part. APPLY and GRADIENT get this node's view of progress. */
struct parley_update *strategy_op(struct parley_node *node, enum parley_update_type type,
                                  uint32_t buffer, int number);

/* buffer = keep * buffer + factor * other. */
struct parley_update *strategy_combine(struct parley_node *node, uint32_t buffer, float keep,
                                       uint32_t other, float factor, int number);

/* A part of a buffer, in bytes, multiples of 4, size above 0. */
struct strategy_part {
    uint32_t tag;
    uint16_t part;
    uint32_t buffer;
    uint64_t offset, size;
};

/* False: all `outflows` places are taken. `number` comes back with sent(). */
bool strategy_send(struct parley_node *node, uint32_t conn, const struct strategy_part *part,
                   int number);
/* inflow < inflows; what it expected before is forgotten. */
void strategy_expect(struct parley_node *node, int inflow, uint32_t conn,
                     const struct strategy_part *part);
void strategy_forget(struct parley_node *node, int inflow);

/* For the node. */
void strategy_advance(struct parley_node *node);
uint64_t strategy_deadline(const struct parley_node *node);

extern const struct strategy strategy_allreduce, strategy_local_sgd, strategy_diloco;
extern const struct strategy strategy_ps_bsp, strategy_ps_asp, strategy_ps_ssp;
extern const struct strategy strategy_gossip_sync, strategy_push_sum, strategy_noloco;
extern const struct strategy strategy_choco;

#endif
