/* report.h: what a simulated run says while it goes and at its end. */
#ifndef PARLEY_SIM_REPORT_H
#define PARLEY_SIM_REPORT_H

#include <stdio.h>

#include "job/job.h"
#include "kernels/digest.h"
#include "report/lines.h"
#include "report/rate.h"
#include "run/curve.h"
#include "run/models.h"
#include "world/cluster.h"

enum sim_fate { SIM_FATE_NEVER, SIM_FATE_LIVE, SIM_FATE_DEAD }; /* never: it was not started */

/* What is left of a run when its simulation is gone. */
struct sim_outcome {
    int error;
    struct report_summary summary; /* its strings are those below, and constants */
    char digest[DIGEST_TEXT_BYTES], hash[20];
    uint64_t parameters;
    bool guesses; /* summary_guesses() */
    struct curve curve;
    uint8_t *fates; /* [sim_run_nodes()], enum sim_fate; the caller's, or NULL */
};

struct sim_report {
    const struct settings *settings;
    struct parley_sim *sim;
    const struct job *job;
    const struct coverage *coverage;   /* of what it trains on; NULL: there are no samples */
    struct sim_outcome *outcome;       /* borrowed; zeroed */
    bool silent;                       /* one of many runs: it says only what broke it */
    FILE *json;                        /* NULL: none */
    struct rate *rates;                /* [sim->nodes] of the progress lines, virtual; owned */
    double wall_start_s, wall_train_s; /* of the run; of the first local step's beginning */
    double wall_trained_s;             /* of the end of training, its steps all made */
    uint64_t steps_trained;            /* of all nodes, until then */
    double resident;                   /* bytes in memory before the nodes */
    double spoken_s;                   /* wall time of the newest line for people */
    uint64_t trained_us, agreed_us;    /* virtual: the last local step; the newest DONE */
    bool trained;         /* the budget has ended, or a node has stopped before: then were ... */
    double drift_trained; /* ... this (see models.h), ... */
    uint64_t exchanges_trained, bytes_trained; /* ... these, ... */
    struct models_own own;                     /* ... and those */
    double reached_s; /* virtual: a look found the target accuracy; negative: none did */
};

double sim_report_wall(void); /* seconds, from an arbitrary start */

/* Hooks itself into the simulation. PARLEY_EUSAGE when the JSON file can't be opened (said),
 * PARLEY_ENOMEM. */
PARLEY_CHECK int sim_report_init(struct sim_report *report);
void sim_report_fault(const char *kind, const char *target, void *report);
void sim_report_stepped(struct sim_report *report); /* a local step has ended */
/* The budget is reached: training ends now. */
void sim_report_trained(struct sim_report *report);
void sim_report_progress(struct sim_report *report); /* JSON lines of all that live */
/* A line for people, where the newest is some seconds old: a virtual second may take a minute.
 * progress: of the budget; negative: there is none. */
void sim_report_speak(struct sim_report *report, double progress);
void sim_report_print(const struct sim_report *report); /* the summary; in print.c */
/* The judgement: 0, PARLEY_ENO_AGREEMENT, PARLEY_EINVARIANT, PARLEY_EDIVERGED, ... */
int sim_report_end(struct sim_report *report);
int sim_report_close(struct sim_report *report); /* as sim_output_close() */

#endif
