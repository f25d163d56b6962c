/* watch.h: looks at every event and update of a simulation, and knows what no node can know: both
 * sides of each exchange, and what all the others truly said.
 *
 * It holds, after every event of the node that had it:
 *
 *   - each side of a decided exchange adds its delta once, never before the decision, and the two
 *     deltas are each other's negatives, to the bit (of a push: what one gives is what the other
 *     gets; an outer optimizer's are its own affair);
 *   - a snapshot is named only if it holds every delta decided before, and serves one exchange;
 *   - the ledger counts what was decided and what was added;
 *   - no buffer changes while an operation still reads it;
 *   - every OFFER is answered in the very step that it comes in;
 *   - who proposes because mixing is done is, truly, near the others; and mixing gets done;
 *   - who picks a model has proposals of all it waits for, who is done has locks of them;
 *   - who joins a cluster that is further takes a model first.
 *
 * A breach ends the simulation with PARLEY_EINVARIANT. Thread rule: that of its simulation.
 */
#ifndef PARLEY_SIM_WATCH_H
#define PARLEY_SIM_WATCH_H

#include "world/cluster.h"

struct sim_watch;

/* Attaches to the simulation, before its first event. PARLEY_ENOMEM. */
PARLEY_CHECK int sim_watch_new(struct sim_watch **watch, struct parley_sim *sim);
void sim_watch_free(struct sim_watch *watch);

/* Names node, invariant and event; the simulation stands from then on. */
void sim_watch_fail(struct parley_sim *sim, uint32_t node, const char *invariant);

/* No fault disturbs what begins after this virtual time. */
void sim_watch_calm(struct sim_watch *watch, uint64_t time_us);

/* From now on nodes may mix with somebody whom others do not know to be there. */
void sim_watch_apart(struct sim_watch *watch);

/* Now and then in the calm: no exchange stands still. */
void sim_watch_stuck(struct sim_watch *watch);

/* Terms of a round that one end added, and the other has not. */
uint32_t sim_watch_lonely(const struct sim_watch *watch);

/* All is over: each decision was applied by both sides, or given up and counted. */
void sim_watch_end(struct sim_watch *watch);

#endif
