/* summary.h: what a run says at its end, at most six lines for people. Thread rule: pure. */
#ifndef PARLEY_REPORT_SUMMARY_H
#define PARLEY_REPORT_SUMMARY_H

#include <stdint.h>

struct summary {
    uint64_t agreed, nodes; /* nodes that hold the agreed model, of how many */
    const char *digest;     /* "sha256:" and 64 hex digits; NULL: none, or more than one */
    double drift;           /* at the end: 0 where one digest is held */
    double accuracy, loss;  /* on the test data; NAN accuracy: no line */
    uint64_t test_samples;
    double target, target_s; /* an accuracy, 0: no line; when it was met, in seconds, NAN: not */
    double epochs;
    const double *coverage; /* [coverage_count]: of the first epochs, as in lines.h; 0: no line */
    uint32_t coverage_count;
    uint64_t epochs_whole; /* as in lines.h */
    uint64_t steps;
    double wall_s; /* of the run; simulated: virtual, until the last local step */
    uint64_t exchanges, bytes_sent;
    const char *path; /* the model's file; NULL: no line */
};

/* The lines, each with its newline; freed by the caller, NULL when out of memory. */
char *summary_text(const struct summary *summary);

#endif
