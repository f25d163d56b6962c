/* control.h: what `parley run` says to a node that it started, a line each, on the node's stdin.
 *
 *   seeds ADDRESS...   dial these from now on
 *   stop               the operator wants the end: settle and agree
 *   checkpoint         the operator wants one now
 *   slow FACTOR        each step takes so many times longer (a planned fault)
 *   sleep US           each step sleeps so many microseconds (a planned fault)
 *
 * The end of the pipe is the end of `parley run`: the node ends too.
 */
#ifndef PARLEY_CLI_CONTROL_H
#define PARLEY_CLI_CONTROL_H

/* In the node's environment: the microsecond, on the monotonic clock, that `t` counts from. */
#define CONTROL_VARIABLE "PARLEY_CONTROL"

/* The descriptor of the file that all nodes mark their samples in: data/partition/coverage.h. */
#define CONTROL_COVERAGE 3

/* That of the data, loaded: shared_data.h. Where it is not there, the node loads them. */
#define CONTROL_DATA 4

#define CONTROL_SEEDS "seeds "
#define CONTROL_STOP "stop"
#define CONTROL_CHECKPOINT "checkpoint"
#define CONTROL_SLOW "slow "
#define CONTROL_SLEEP "sleep "

#endif
