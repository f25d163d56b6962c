/* sketches.h: whose sketches tell the drift (drift.c), which of them are here, and how they travel.
 *
 * There are at most SKETCHES_MAX: of more nodes, those with the least hash are the sample. The
 * table is the roster's.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_SKETCHES_H
#define PARLEY_CORE_SKETCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/membership/roster.h"
#include "core/wire/message.h"
#include "parley/node.h"

struct conn;

const struct roster_sample *sketches_sample(const struct parley_node *node);
bool sketches_samples(const struct parley_node *node, int member);

/* That of a boot which is here; or NULL. */
struct sketch *sketches_of(struct parley_node *node, uint64_t boot);
/* Unless a newer one is here, or there is no place for it. */
void sketches_put(struct parley_node *node, uint64_t boot, uint32_t version, const float *buckets);
/* Of the whole sample there is a sketch; and if so, each counts (drift.stale). */
bool sketches_are_complete(struct parley_node *node);
bool sketches_are_fresh(struct parley_node *node);

/* What has been sent is paid for in time. Once nobody far is met, two tables are likely to be the
 * last: they are paid for afterwards. */
bool sketches_affordable(const struct parley_node *node);
/* In which what was asked of another is likely to be here: on long lines, as an exchange takes. */
uint64_t sketches_interval_us(const struct parley_node *node);
void sketches_received(struct parley_node *node, struct conn *conn,
                       const struct message_sketches *message);
void sketches_pump(struct parley_node *node);

#endif
