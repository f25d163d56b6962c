/* fault.h: one planned fault, KIND[=VALUE]:TARGET@WHEN[+FOR].
 *
 *   kill:n3@5s   pause:1@40%+2s   slow=4:50%@0s   partition:n0,n1|n2-n9@10s+5s   loss=0.3:2@10%
 *
 * Only the writing is judged here; who `50%` are is drawn when the fault strikes.
 * Thread rule: pure; a list belongs to one thread.
 */
#ifndef PARLEY_SETTINGS_FAULT_H
#define PARLEY_SETTINGS_FAULT_H

#include <stddef.h>

#include "core/rng.h"
#include "settings/values/groups.h"
#include "settings/values/units.h"

enum fault_where { FAULT_ANYWHERE, FAULT_IN_SIM, FAULT_IN_RUN };

/* X(NAME, text, what stands after '=', where, may last) */
#define FAULT_KINDS(X)                                                                             \
    X(KILL, "kill", NOTHING, ANYWHERE, false)                                                      \
    X(PAUSE, "pause", NOTHING, ANYWHERE, true)                                                     \
    X(RESTART, "restart", NOTHING, ANYWHERE, true)                                                 \
    X(SLOW, "slow", FACTOR, ANYWHERE, true)                                                        \
    X(SLEEP, "sleep", TIME, IN_RUN, true)                                                          \
    X(PARTITION, "partition", NOTHING, IN_SIM, true)                                               \
    X(ONEWAY, "oneway", NOTHING, IN_SIM, true)                                                     \
    X(LOSS, "loss", PROBABILITY, IN_SIM, true)                                                     \
    X(LATENCY, "latency", TIME, IN_SIM, true)                                                      \
    X(CUT, "cut", PROBABILITY, IN_SIM, true)                                                       \
    X(DUPLICATE, "duplicate", PROBABILITY, IN_SIM, true)                                           \
    X(REORDER, "reorder", TIME, IN_SIM, true)                                                      \
    X(BANDWIDTH, "bandwidth", RATE, IN_SIM, true)                                                  \
    X(CLOG, "clog", NOTHING, IN_SIM, true)                                                         \
    X(DISK_FULL, "disk-full", NOTHING, IN_SIM, true)                                               \
    X(DISK_TORN, "disk-torn", NOTHING, IN_SIM, true)                                               \
    X(DISK_SLOW, "disk-slow", TIME, IN_SIM, true)                                                  \
    X(BYZANTINE, "byzantine", LIE, IN_SIM, true)                                                   \
    X(JOIN, "join", NOTHING, IN_SIM, false)

enum fault_kind {
#define X(name, text, value, where, lasts) FAULT_##name,
    FAULT_KINDS(X)
#undef X
        FAULT_KIND_COUNT
};

/* What a Byzantine node sends in place of its floats, or does (sim/world/byzantine.c); X(NAME,
 * text). */
#define FAULT_LIES(X)                                                                              \
    X(SIGN, "sign")     /* their negatives */                                                      \
    X(SCALE, "scale")   /* a hundred times as much */                                              \
    X(RANDOM, "random") /* draws of a normal distribution */                                       \
    X(NAN, "nan")       /* one of them is not a number */                                          \
    X(ALIE, "alie")     /* the honest nodes' mean, less 1.5 of their deviations */                 \
    X(IPM, "ipm")       /* the honest nodes' mean times -0.1 */                                    \
    X(LABELS, "labels") /* its own model, trained on wrong labels */

enum fault_lie {
#define X(name, text) FAULT_LIE_##name,
    FAULT_LIES(X)
#undef X
        FAULT_LIE_COUNT
};

/* A point or span of the run. */
struct fault_moment {
    enum fault_moment_kind { FAULT_NEVER, FAULT_TIME, FAULT_BUDGET } kind;
    uint64_t time_us; /* of FAULT_TIME */
    double share;     /* of FAULT_BUDGET: fraction of the budget, in [0, 1] */
};

enum { FAULTS_MAX = 256 };

struct fault_spec {
    enum fault_kind kind;
    double value; /* slow: times slower, 1 or more; loss, cut, duplicate: probability in [0, 1] */
    uint64_t time_us;    /* of sleep (in each local step), latency, reorder, disk-slow */
    uint64_t rate_bytes; /* a second, of bandwidth */
    enum fault_lie lie;  /* of byzantine */
    enum fault_target { FAULT_NAME, FAULT_NUMBER, FAULT_SHARE, FAULT_GROUPS } target;
    char name[GROUPS_BYTES]; /* the name; or the groups as written: "n0,n1|n2-n9" */
    uint32_t number;         /* nodes, at least 1 */
    double share;            /* of the nodes at the start, in (0, 1] */
    struct fault_moment when;
    struct fault_moment lasting; /* FAULT_NEVER: it never ends */
};

struct faults {
    struct fault_spec *items; /* owned */
    size_t count;
};

/* What is said in the end, where some came too late: how many, of how many. */
#define FAULTS_LEFT "%zu of %zu faults did not strike: the run was over before"

const char *fault_kind_text(enum fault_kind kind);
enum fault_where fault_kind_where(enum fault_kind kind);

/* PARLEY_EUSAGE with a clause in why. */
PARLEY_CHECK int fault_parse(const char *text, struct fault_spec *fault, units_why why);

/* Adds the faults of `list`, separated by blanks. PARLEY_EUSAGE, PARLEY_ENOMEM: list as before. */
PARLEY_CHECK int faults_add_list(struct faults *faults, const char *list, units_why why);

void faults_close(struct faults *faults);

/* What the fault at `index` draws by. Each has a stream of its own, named by its kind and how many
 * of that kind stand before it: whom it strikes is the same with faults of other kinds beside it.
 */
struct rng fault_rng(const struct faults *faults, size_t index, uint64_t seed);

/* Whom a fault with FAULT_NUMBER or FAULT_SHARE (of `nodes`) strikes of targets[count]: they come
 * to the front. How many they are: at least one, where there is one. */
uint32_t fault_draw(const struct fault_spec *fault, struct rng *rng, uint32_t nodes,
                    uint32_t *targets, uint32_t count);

#endif
