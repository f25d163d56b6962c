/* tally.h: what has come of which seed, kept in a file so that a long range can be lived in
 * parts: one line a seed, appended as it ends,
 *
 *     well 17: 4 nodes, 4 agreed, 31234567 us, 56789 events, 1234 exchanges
 *     FAILED 18: 12.345s: n3: a delta is added twice (event 4711)
 *
 * Seeds that were well are not lived again; those that failed are. A last line that was cut off
 * counts as none. Files may be joined by `cat`. Thread rule: one thread at a time.
 */
#ifndef PARLEY_SIM_SWARM_TALLY_H
#define PARLEY_SIM_SWARM_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "parley/error.h"
#include "swarm/swarm.h"

struct swarm_tally {
    uint64_t first, last;
    bool *well;                                            /* [last - first + 1]; owned */
    uint64_t well_count, failed_count, earlier;            /* earlier: well by what the file said */
    uint64_t nodes, agreed, virtual_us, events, exchanges; /* sums over those that were well */
    FILE *file;                                            /* or NULL */
    const char *path;                                      /* borrowed */
};

/* path: NULL for none. PARLEY_EUSAGE (the file can't be read or written, said on stderr),
 * PARLEY_ENOMEM. */
PARLEY_CHECK int swarm_tally_open(struct swarm_tally *tally, uint64_t first, uint64_t last,
                                  const char *path);
/* PARLEY_EFAIL: the file can't be written any more; said on stderr. */
PARLEY_CHECK int swarm_tally_add(struct swarm_tally *tally, const struct swarm_result *result);
void swarm_tally_close(struct swarm_tally *tally);

#endif
