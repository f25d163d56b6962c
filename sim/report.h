/* report.h: what a simulated run says while it goes and at its end. */
#ifndef PARLEY_SIM_REPORT_H
#define PARLEY_SIM_REPORT_H

#include <stdio.h>

#include "cluster.h"
#include "job/job.h"
#include "report/lines.h"

struct sim_report {
    const struct settings *settings;
    struct parley_sim *sim;
    const struct job *job;
    FILE *json;                        /* NULL: none */
    uint32_t nodes;                    /* to be started at the beginning */
    uint64_t seen_us;                  /* virtual time of the progress line before */
    uint64_t *seen_samples;            /* [sim->nodes] at that time; owned */
    double wall_start_s, wall_train_s; /* of the run; of the first local step */
    double wall_trained_s;             /* of the last local step */
    double spoken_s;                   /* wall time of the newest line for people */
    double reached_s;                  /* virtual: the target accuracy was met; negative: not */
};

double sim_report_wall(void); /* seconds, from an arbitrary start */

/* Hooks itself into the simulation. PARLEY_EFAIL when the JSON file can't be opened (said). */
PARLEY_CHECK int sim_report_init(struct sim_report *report);
void sim_report_fault(const char *kind, const char *target, void *report);
void sim_report_progress(struct sim_report *report, bool last);
/* The judgement: 0, PARLEY_ENO_AGREEMENT, PARLEY_EINVARIANT, PARLEY_EDIVERGED, ... */
int sim_report_end(struct sim_report *report);
void sim_report_close(struct sim_report *report);

#endif
