/* cluster.h: one `parley run`, and what its nodes tell of it (inside of cli/bench: run.c, start.c).
 *
 * Figures of a node are of the time in which all nodes train: from its first progress line in it to
 * its last. It is calm after CLUSTER_NEWS_S of that: then what the start had to tell is told.
 * Failures: PARLEY_EFAIL with a line in bench->why: the run failed, or was too short to tell.
 */
#ifndef PARLEY_CLI_BENCH_CLUSTER_H
#define PARLEY_CLI_BENCH_CLUSTER_H

#include "cli/bench/bench.h"
#include "report/lines.h"

enum { CLUSTER_NODES_MAX = 64, CLUSTER_OPTIONS_MAX = 9, CLUSTER_NEWS_S = 3 };

struct cluster_node {
    uint64_t pid;
    bool trains, told;
    double from_s, calm_s, to_s, end_s;
    struct report_progress from, calm, to, end; /* numbers only; end: after the agreement */
    double rss_bytes;                           /* at most, at its lines while all train */
};

struct cluster {
    uint32_t count, training; /* nodes; those that train */
    double start_s;           /* on bench_now(): of the first process */
    double train_s;           /* after that: the last node began to train */
    uint64_t agreed, parameters;
    double target_s, epochs; /* of the summary; target_s: NAN if it was not reached */
    struct cluster_node nodes[CLUSTER_NODES_MAX];
};

/* options: up to CLUSTER_OPTIONS_MAX and then NULL, as `parley run` takes them; out: where the
 * model goes. */
int cluster_run(struct bench *bench, struct cluster *cluster, uint32_t count,
                const char *const *options, const char *out);

/* PARLEY_EFAIL: some node told too little for the figures below. */
int cluster_told(struct bench *bench, const struct cluster *cluster);
/* The same of cluster_membership(), which leaves out what the start costs. */
int cluster_calmed(struct bench *bench, const struct cluster *cluster);

/* Of its own window. */
double cluster_steps(const struct cluster_node *node);      /* a second */
double cluster_start(const struct cluster_node *node);      /* bytes of membership until calm */
double cluster_membership(const struct cluster_node *node); /* bytes a second since then */
double cluster_sketches(const struct cluster_node *node);   /* bytes a second, to its end */

#endif
