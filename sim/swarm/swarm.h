/* swarm.h: random clusters and their random lives, each drawn from one seed, with all checkers on.
 *
 *   draw.c     size, seeds, network, costs, settings, budget, who starts when
 *   life.c     two to ninety acts: faults of every kind, starts, stops; then a calm in which
 *              the faults end and the cluster has to agree
 *   verdict.c  what must hold then; what holds after every event is in watch.h
 *   swarm.c    one life from the draw to the verdict
 *   run.c      many of them, on several threads: `parley sim --swarm`
 *   tally.c    what has come of which seed, kept in a file
 *
 * Thread rule: a life belongs to one thread; several may run in several threads.
 */
#ifndef PARLEY_SIM_SWARM_H
#define PARLEY_SIM_SWARM_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/config.h"
#include "settings/settings.h"

struct swarm_result {
    uint64_t seed;
    bool well;
    uint32_t nodes, agreed; /* how many were done, and told so */
    uint64_t virtual_us, events, exchanges;
    char why[200]; /* of one that is not well: "12.345s: n3: the invariant (event 4711)" */
};

enum { SWARM_DRAWN = -1 };

/* Lives one life, and says what happens where PARLEY_LOG_DEBUG is wanted (run/talk.h). strategy:
 * that of all nodes (enum parley_strategy), or SWARM_DRAWN. A seed's cluster and faults are the
 * same by each. */
void swarm_live(uint64_t seed, int strategy, struct swarm_result *result);

/* `parley sim --swarm`. 0, PARLEY_EINVARIANT if a seed failed, or why it could not run; it has been
 * said by then. */
int swarm_command(const struct settings *settings);

#endif
