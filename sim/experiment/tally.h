/* tally.h: the end results of an experiment as a table for people, and as CSV. Thread rule: pure.
 */
#ifndef PARLEY_SIM_TALLY_H
#define PARLEY_SIM_TALLY_H

#include "experiment/plan.h"
#include "run/report.h"

enum tally_column {
    TALLY_ACCURACY,
    TALLY_LOSS,
    TALLY_DRIFT,
    TALLY_EPOCHS,
    TALLY_TRAINED,
    TALLY_TARGET,    /* where a run has one: tally_shows() */
    TALLY_EXCHANGES, /* of training; none: a strategy that does without */
    TALLY_BYTES,     /* of training */
    TALLY_BYTES_ALL,
    TALLY_AGREED,
    TALLY_COLUMNS
};

const char *tally_title(enum tally_column column);
bool tally_shows(const struct plan *plan, enum tally_column column);

/* The head of a swept setting: its name, as a flag where a result is called the same. Returns out.
 */
const char *tally_axis_title(const struct plan *plan, uint32_t axis, char out[64]);

/* The cell of a group, which has at least one run: one value, or mean and standard deviation over
 * its seeds, all columns over the same ones: those whose run did not fail, if there are any. The
 * time to the target is of those that met it, with their number. Returns out. */
const char *tally_cell(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                       enum tally_column column, char out[64]);

/* Of the same over its seeds; not of TALLY_AGREED. NAN: no run has a value. */
double tally_mean(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                  enum tally_column column);

/* The least and the greatest of the same; NAN likewise. */
void tally_range(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t group,
                 enum tally_column column, double *least, double *most);

/* Whether run `i` of the plan is in the means of its group. */
bool tally_counts(const struct plan *plan, const struct sim_outcome *outcomes, uint32_t i);

/* Whether a cell has the mark "!", and what that says. */
bool tally_failed(const struct plan *plan, const struct sim_outcome *outcomes);
/* The same of "?". */
bool tally_guesses(const struct plan *plan, const struct sim_outcome *outcomes);
#define TALLY_GUESSES                                                                              \
    "a model does no better than guessing: a smaller --lr or --clip-norm 1 may help"
#define TALLY_FAILED                                                                               \
    "a run failed: its live nodes do not all hold one model, or it broke before; a mean is over "  \
    "the others, where there are any"

/* The first run of a group. */
const struct plan_run *tally_run(const struct plan *plan, uint32_t group);

/* A line a group. Freed by the caller; NULL: no memory. */
char *tally_table(const struct plan *plan, const struct sim_outcome *outcomes);

/* A row a run, the same for any number of threads: nothing of wall time is in it. Columns whose
 * names begin with -- are the swept settings. */
char *tally_csv_head(const struct plan *plan);
char *tally_csv_row(const struct plan *plan, const struct plan_run *run,
                    const struct sim_outcome *outcome);

#endif
