/* trace.h: the times of local steps, measured somewhere and played again: a line each, TIME or
 * NODE,TIME (`1.2ms`, `n3,1.2ms`); '#' begins a comment.
 *
 * A node with lines of its own plays those from the first; the others play the lines without a
 * name, each from another one on. Who comes to the end begins again.
 */
#ifndef PARLEY_SIM_TRACE_H
#define PARLEY_SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

struct sim_trace {
    uint64_t *times;  /* [starts[nodes + 1]]: of n0, n1, ..., then those of all; owned */
    uint32_t *starts; /* [nodes + 2]; owned */
    uint32_t nodes;
};

/* To be closed after any outcome. PARLEY_EUSAGE with a line in why[size], PARLEY_ENOMEM. */
PARLEY_CHECK int sim_trace_init(struct sim_trace *trace, uint32_t nodes, const char *bytes,
                                size_t size, char *why, size_t why_size);
void sim_trace_close(struct sim_trace *trace);

/* Of the step-th step of a node, counted from 0. trace: a sim_trace (sim_options.step_us). */
uint64_t sim_trace_us(const void *trace, uint32_t node, uint64_t step);

#endif
