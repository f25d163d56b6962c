/* prompt.h: threads that wait most of the time and should run at once when woken.
 *
 * The loop and the worker run for microseconds between long waits, next to trainers that always
 * run. Linux lets whoever runs end its time slice (about 3 ms) before a woken thread has its turn,
 * unless that one asked for a shorter slice (Linux 6.12 and later; elsewhere nothing changes). It
 * gets no larger share of the processor by that.
 */
#ifndef PARLEY_PEERS_PROMPT_H
#define PARLEY_PEERS_PROMPT_H

#include <stdint.h>

/* Asks for the calling thread, unless it has a priority of the user's: chrt, or nice. */
void prompt_thread(uint32_t slice_us);

/* The calling thread is a trainer's: where it shares a core with loops, those come first (five
 * steps of niceness). Else an exchange that a step asks for takes many steps: with 8 nodes on two
 * cores 0.2 exchanges a step came about, and 0.65 so. On a core of its own nothing changes. */
void prompt_others_first(void);

#endif
