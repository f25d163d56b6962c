/* out.h: what a step gives the driver: updates, texts and frames in the arena, operations.
 *
 * All of it lives until the next step. Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_OUT_H
#define PARLEY_CORE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/wire/wire.h"
#include "parley/node.h"

enum {
    OPS_MAX = 64, /* two exchanges and six fetches served; a strategy's come on top */
    OPS_PER_OUTFLOW = 4
};

/* Whose an operation is, and what it does there. */
enum op_kind {
    OP_FREE,
    OP_TAKE, /* for the slot */
    OP_ENCODE,
    OP_DIFF,
    OP_ADD,
    OP_CHUNK, /* for the outflow */
    OP_DOUBT_ADD,
    OP_STRATEGY, /* the strategy's number */
    OP_SKETCH_TAKE,
    OP_SKETCH,
    OP_STATE_TAKE, /* for a peer that joins */
    OP_LOOK,       /* at what the strategy keeps, of a fetched state; the number of its buffer */
    OP_ADOPT,      /* SET of a fetched state */
    OP_CANDIDATE_TAKE,
    OP_CANDIDATE_HASH,
    OP_FETCHED_HASH,
    OP_FETCHED_COPY,
    OP_FETCHED_DIFF,
    OP_WRITE,
    OP_PUBLISH
};

struct op {
    uint32_t id;
    enum op_kind kind;
    int owner; /* slot, doubt, outflow, buffer or the strategy's own */
};

/* At most UPDATES_MAX a step: what adds many asks out_room() first. */
struct parley_update *out_add(struct parley_node *node, enum parley_update_type type);
/* Whether a loop may emit one more frame; if not, it sets node->more and goes on next step. */
bool out_room(struct parley_node *node);
void out_log(struct parley_node *node, enum parley_log level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Text that lives until the next step. */
const char *out_text(struct parley_node *node, const char *text);
uint8_t *out_bytes(struct parley_node *node, size_t size);
/* Encodes a frame into the arena; returns its size. */
size_t out_encode(struct parley_node *node, enum wire_type type, const void *message,
                  uint8_t **bytes);
/* Registers an operation; node.c says whose `kind` is, and where its DONE goes. */
uint32_t out_op(struct parley_node *node, enum op_kind kind, int owner);
struct parley_update *out_vector(struct parley_node *node, enum parley_update_type type,
                                 enum op_kind kind, int owner, uint32_t buffer);
void out_finish(struct parley_node *node, int error);

#endif
