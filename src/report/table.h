/* table.h: the live table of `parley run`, and the line that stands for it where there is no
 * terminal. Thread rule: pure.
 */
#ifndef PARLEY_REPORT_TABLE_H
#define PARLEY_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_row {
    const char *node;  /* name */
    uint64_t pid;      /* 0: not running */
    const char *state; /* joining train stop settle proposed held locked done late left dead ... */
    uint64_t step;
    double loss, drift, samples_per_s; /* NAN: unknown, shown as - */
    uint64_t live; /* nodes alive as this one sees it, itself included; 0: it sees none any more */
};

struct table {
    const struct table_row *rows;
    size_t count, rows_max; /* more rows than rows_max are counted in a last line */
    unsigned columns;       /* of the terminal; taken as 68 to 160 */
    bool color;             /* ANSI colours */
};

/* A header and a line a node, each with its newline, none wider than `columns`. Freed by the
 * caller; NULL when out of memory. */
char *table_text(const struct table *table);

struct table_plain {
    double t; /* seconds since the start */
    uint64_t live, nodes;
    double epoch, loss, drift, samples_per_s, progress;
    const char *phase; /* "joining"; NULL: it is not said, as of who trains */
    bool here;         /* the samples are one node's, not those of all */
};

/* "12.0 s  4 of 4 alive  epoch 1.82 45%  loss 0.2134  drift 3.1e-04  23.4k/s",
 * "12.0 s  1 of 4 alive, joining  epoch 0.00 ... -/s here"; no newline. Freed by the
 * caller; NULL when out of memory. */
char *table_plain_text(const struct table_plain *plain);

#endif
