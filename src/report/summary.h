/* summary.h: what a run says at its end, at most six lines for people. Thread rule: pure. */
#ifndef PARLEY_REPORT_SUMMARY_H
#define PARLEY_REPORT_SUMMARY_H

#include "report/lines.h"

/* What the JSON line says, and beside it: */
struct summary {
    const struct report_summary *line; /* test_accuracy NAN, coverage_count 0: no such line */
    uint64_t nodes;                    /* of how many line->agreed is told */
    double drift;                      /* at the end: 0 where one digest is held */
    uint64_t test_samples;
    double target;    /* an accuracy; 0: no line */
    double trained_s; /* of a node: its own; of a run: since its start; simulated: virtual */
    const char *path; /* the model's file; NULL: no line */
    /* For the remark: */
    uint32_t classes;
    double rate; /* of learning */
};

/* The lines, each with its newline; freed by the caller, NULL when out of memory. */
char *summary_text(const struct summary *summary);

enum { SUMMARY_REMARK_BYTES = 256 };

/* Whether an epoch or more of training has come to no more than a guess. */
bool summary_guesses(const struct report_summary *line, uint32_t classes, double rate);

/* Then: what to say of it, in out; else NULL. */
const char *summary_remark(const struct summary *summary, char out[SUMMARY_REMARK_BYTES]);

#endif
