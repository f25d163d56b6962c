/* page.h: the report of an experiment: one file with curves, end results, topologies, and what
 * repeats it. Nothing in it comes from elsewhere; it follows the reader's light or dark.
 */
#ifndef PARLEY_SIM_PAGE_H
#define PARLEY_SIM_PAGE_H

#include <stdio.h>

#include "experiment/plan.h"
#include "run/report.h"

struct page_file {
    const char *path; /* borrowed */
    char *partial;    /* written first, then renamed; owned */
    FILE *file;
    bool svg; /* the picture alone */
};

/* Before the runs: PARLEY_EUSAGE (a name that ends neither in .html nor in .svg), PARLEY_EFAIL (it
 * can't be written), said; PARLEY_ENOMEM. To be closed after any outcome. */
PARLEY_CHECK int page_open(struct page_file *page, const char *path);

/* outcomes: [plan->count]. PARLEY_EFAIL (said), PARLEY_ENOMEM. */
PARLEY_CHECK int page_write(struct page_file *page, const struct plan *plan,
                            const struct sim_outcome *outcomes);

/* Removes what was not written to its end. */
void page_close(struct page_file *page);

#endif
