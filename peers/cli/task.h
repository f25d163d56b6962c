/* task.h: settings made into what a node works on: data, model, trainer, and what it tells peers.
 *
 * `parley node` and `parley check` both come by here, so that what the one accepts the other does.
 * Thread rule: belongs to one thread.
 */
#ifndef PARLEY_CLI_TASK_H
#define PARLEY_CLI_TASK_H

#include "load.h"
#include "parley/config.h"
#include "parley/parley.h"
#include "settings/settings.h"
#include "train/trainer.h"

struct task {
    const struct settings *settings;
    struct load load;
    struct trainer *trainer;
    const struct model *model;                         /* the trainer's */
    struct parley_setting shared[PARLEY_SETTINGS_MAX]; /* that must match across the cluster */
    char values[PARLEY_SETTINGS_MAX][64];
    uint32_t shared_count;
    struct parley_tensor *tensors; /* [tensor_count]; owned */
    uint32_t tensor_count;
    uint64_t run;            /* equal on all nodes with equal settings */
    uint64_t samples_budget; /* 0: none */
};

/* To be closed after any outcome. PARLEY_EUSAGE, PARLEY_EDATA with a line in why, PARLEY_ENOMEM. */
PARLEY_CHECK int task_init(struct task *task, const struct settings *settings, char *why,
                           size_t why_size);

/* The options of a node but for its vectors, seeds and callbacks; they borrow from the task. */
void task_options(const struct task *task, struct parley_options *options);

/* Gives the trainer its share among the members called `names`. PARLEY_EUSAGE, PARLEY_EDATA with a
 * line in why, PARLEY_ENOMEM. *samples: of the share. */
PARLEY_CHECK int task_share(struct task *task, const char *self, const char *const *names,
                            uint32_t names_count, uint32_t *samples, char *why, size_t why_size);

void task_close(struct task *task);

#endif
