/* human.h: figures as people read them, written into out, which is returned; and how often they
 * want to. Thread rule: pure. */
#ifndef PARLEY_REPORT_HUMAN_H
#define PARLEY_REPORT_HUMAN_H

#include <stdint.h>

enum { HUMAN_BYTES = 32 };

/* "812 B", "1.5 GB" (powers of 1000). */
const char *human_bytes(char out[HUMAN_BYTES], uint64_t bytes);

/* "0.31 s", "12.4 s", "3 min 12 s", "2 h 05 min"; "-" for what is not finite or negative. */
const char *human_seconds(char out[HUMAN_BYTES], double seconds);

/* "0.2134" and such: a loss in six columns; "-" for what is not finite. */
const char *human_loss(char out[HUMAN_BYTES], double loss);

/* "0", "3.1e-04"; "-" for what is not finite. */
const char *human_drift(char out[HUMAN_BYTES], double drift);

/* "950", "23.4k", "1.20M"; "-" for what is not finite or negative. */
const char *human_rate(char out[HUMAN_BYTES], double per_second);

/* Seconds from one line of progress to the next, so long after the start: soon at first, when
 * people want to see that all is well. */
double human_pause_s(double since_start_s);

#endif
