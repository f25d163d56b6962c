/* bench.h: what the benchmarks of `parley bench` share (inside of cli/bench).
 *
 * Each is a function that measures something and its limit in turns, and adds rows, which are
 * printed as they come. What it says on the way goes to stderr. Failures: PARLEY_E..., with a line
 * in why. Thread rule: one at a time.
 */
#ifndef PARLEY_CLI_BENCH_H
#define PARLEY_CLI_BENCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "report/figures.h"
#include "settings/settings.h"
#include "train/trainer.h"

enum { BENCH_WHY_BYTES = 512, BENCH_BATCH = 32 /* --batch by default, too */ };

struct bench {
    bool quick, full; /* small sizes and few repeats; sizes that take minutes */
    const char *data; /* --data */
    size_t floats;    /* --floats; 0: unset */
    bool json;        /* --json */
    size_t count;     /* of rows */
    int unwritten;    /* an errno: not all of them could be printed */
    char folder[256]; /* as bench_folder() made it */
    int guarded;      /* folder.c: closed by the end of this process, which */
    pid_t guard;      /* waits for; 0: there is no folder */
    char why[BENCH_WHY_BYTES];
};

int bench_step(struct bench *bench);
int bench_mix(struct bench *bench);
int bench_wire(struct bench *bench);
int bench_start(struct bench *bench);
int bench_run(struct bench *bench);
int bench_sim(struct bench *bench);

/* One call of each is one piece of work. */
struct bench_pair {
    void (*work)(void *context);
    void (*limit)(void *context);
    void *context;
    double us;   /* shortest sample: fast pieces are repeated within it */
    double unit; /* a row's: divided by seconds a piece if more is better, else times them */
};

/* Samples of both in turns, as a row. */
void bench_pair(struct bench *bench, const char *name, const char *unit, enum figure_sense sense,
                const struct bench_pair *pair, size_t repeats);

/* Says on a terminal what is measured now, until the next call or row. round: from 0, below
 * rounds; not said where that is at most 1. */
void bench_round(const char *what, size_t round, size_t rounds);

/* A row of values measured elsewhere; as figure_of(). */
void bench_row(struct bench *bench, const char *name, const char *unit, enum figure_sense sense,
               const double *values, const double *limits, size_t repeats);

/* Runs this program anew with these arguments (argv[0] is its name) and calls `line` for each line
 * of its stdout, without the newline. PARLEY_EFAIL with a line in why: it could not be started, or
 * failed. */
int bench_program(struct bench *bench, char *const *argv, void (*line)(void *, const char *),
                  void *context);

/* Makes a folder for the files of this benchmark. It goes with them when this process ends, however
 * it ends; _end() is for bench.c alone. PARLEY_EFAIL with a line in why. */
int bench_folder(struct bench *bench);
void bench_folder_end(struct bench *bench);

/* Writes so many images of MNIST's shape there, of noise, and their labels: "npy:" and the folder
 * is the --data of that. PARLEY_EFAIL with a line in why. */
int bench_images(struct bench *bench, uint32_t count);

double bench_now(void); /* seconds, monotonic */

/* Of all samples of the set, by BENCH_BATCH; to be freed after any outcome, where it is not NULL.
 * node: zeroed; its sampler is to be closed likewise. */
int bench_trainer(struct bench *bench, const char *model, const char *optimizer, double rate,
                  const struct dataset *set, struct trainer **trainer, struct trainer_node *node);

/* Some floats, aligned for every kernel, which the caller frees; NULL: no memory. */
float *bench_vector(size_t count);

#endif
