/* coverage.h: which samples have been trained on, pass by pass, by all nodes of one machine.
 *
 * A bit a sample and pass, in memory that nodes share: threads of a simulation, or processes that
 * `parley run` started. A pass is a node's own way through its share; what a node takes over from
 * one that died it takes into the pass it is in.
 * Thread rule: coverage_mark() may be called from any thread or process at once.
 */
#ifndef PARLEY_DATA_COVERAGE_H
#define PARLEY_DATA_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COVERAGE_PASSES = 64 }; /* later ones are not looked at */

struct coverage {
    _Atomic uint64_t *words; /* coverage_bytes() of them, zero at first; borrowed */
    uint32_t samples;
};

size_t coverage_bytes(uint32_t samples);

void coverage_mark(struct coverage *coverage, uint64_t pass, uint32_t sample);

/* The part of all samples that was trained on in this pass, in [0, 1]. */
double coverage_part(const struct coverage *coverage, uint64_t pass);

/* That of each that has begun, as far as they are looked at; returns how many there are. */
uint32_t coverage_parts(const struct coverage *coverage, double epochs,
                        double parts[COVERAGE_PASSES]);

/* How many of the epochs that began the end has not cut short for anybody. `passes` are the least
 * that a node has ended. Where the data are common, one that died counts too: what it owed and
 * nobody took over before the end is missing in the last epochs, whatever the living have ended. */
uint64_t coverage_whole(const double *parts, uint32_t count, double epochs, uint64_t passes,
                        bool common);

#endif
