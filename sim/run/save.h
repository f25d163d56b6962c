/* save.h: the agreed model as the file that a node would write. */
#ifndef PARLEY_SIM_SAVE_H
#define PARLEY_SIM_SAVE_H

#include "job/job.h"

/* x: [parameters], of that digest, which `run` went into. PARLEY_ENOT_WRITTEN with a line
 * (talk.h), PARLEY_ENOMEM. */
PARLEY_CHECK int sim_save(const struct job *job, const float *x, const uint8_t *digest,
                          uint64_t run, const char *path);

#endif
