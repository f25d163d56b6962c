/* job.h: settings made into what nodes work on: data, model, trainers, the settings of a node, and
 * which of them must match across the cluster.
 *
 * Both drivers and `parley check` come by here, so that what the one accepts the others do, and a
 * simulated node trains and averages as a real one.
 * Thread rule: a finished job may be read from any thread; its trainer belongs to one.
 */
#ifndef PARLEY_JOB_JOB_H
#define PARLEY_JOB_JOB_H

#include "data/partition/partition.h"
#include "data/source.h"
#include "file/model_file.h"
#include "job/graph.h"
#include "parley/config.h"
#include "settings/settings.h"
#include "train/trainer.h"

struct job {
    const struct settings *settings; /* borrowed */
    struct source data;
    bool shares_data;  /* it is another's, who outlives the job */
    char *class_names; /* of a table, for the model's file; or NULL; owned */
    char *columns;     /* likewise, of its values */
    struct partition_spec partition;
    struct graph graph; /* of --topology file:PATH */
    struct trainer *trainer;
    const struct model *model;                         /* the trainer's */
    struct parley_setting shared[PARLEY_SETTINGS_MAX]; /* that must match across the cluster */
    char values[PARLEY_SETTINGS_MAX][64]; /* of what is longer the beginning, and a digest */
    uint32_t shared_count;
    uint64_t run; /* equal on all nodes with equal settings */
};

/* data: loaded already, and borrowed; NULL: those of the settings are loaded. To be closed after
 * any outcome. PARLEY_EUSAGE, PARLEY_EDATA with a line in why, PARLEY_ENOMEM. */
PARLEY_CHECK int job_init(struct job *job, const struct settings *settings,
                          const struct source *data, const struct source_reader *reader, char *why,
                          size_t why_size);
void job_close(struct job *job);

/* One more trainer like the job's own, for another thread: trainer_free() it before the job is
 * closed. PARLEY_ENOMEM. */
PARLEY_CHECK int job_trainer(const struct job *job, struct trainer **trainer, char *why,
                             size_t why_size);

/* Whether each of so many nodes can have a share of the training data. PARLEY_EUSAGE with a line in
 * why. */
PARLEY_CHECK int job_fits(const struct settings *settings, const struct dataset *train, char *why,
                          size_t why_size);

/* The samples of the smallest share, of nodes called n0, n1, ... that job_fits(). PARLEY_EUSAGE
 * with a line in why, PARLEY_ENOMEM. */
PARLEY_CHECK int job_smallest_share(const struct settings *settings, const struct dataset *train,
                                    uint32_t *samples, char *why, size_t why_size);

/* Overwrites in *config what settings, data and model say of a node; who and where it is, is left
 * to the driver. It borrows from the job. */
void job_config(const struct job *job, struct parley_config *config);

/* What a model file says beside the digest, the same on all nodes. It borrows from the job. */
void job_meta(const struct job *job, struct model_meta *meta);

/* Whose the data are. */
struct job_members {
    const char *const *names; /* [count], of those who live, in strcmp's order */
    uint32_t count;
    const struct partition_gone *gone; /* [gone_count], names that don't */
    uint32_t gone_count;
};

/* Gives the node the share of `self`; again when the members have changed, if job_share_moves().
 * It goes on where those stopped that are gone. PARLEY_EUSAGE, PARLEY_EDATA with a line in why,
 * PARLEY_ENOMEM. *samples: of the share. */
PARLEY_CHECK int job_share(const struct job *job, struct trainer_node *node, const char *self,
                           const struct job_members *members, uint32_t *samples, char *why,
                           size_t why_size);

/* The place from which on each sample of the share of `self` is to be visited, if it was another's:
 * partition_due(). Only if job_share_moves(). */
PARLEY_CHECK int job_due(const struct job *job, const char *self, const struct job_members *members,
                         const uint32_t *share, uint32_t share_count, uint64_t *due);

/* Whether members who come or go take over from each other: the data are in common. In the other
 * partitions each node has data of its own kind, which are gone with it. */
bool job_share_moves(const struct job *job);

/* Whether a step takes its node's part of all samples, so that the gradients of all nodes add up to
 * one of the whole set: gd, unless each node's share is that set already (the partition `all`, or
 * the one --shard of 1). */
bool job_batch_is_shared(const struct job *job);

/* The shares of all members at once: owner[training samples] is each sample's owner, by its place
 * among the names in strcmp's order. Not for the partition `all`. Errors as above. */
PARLEY_CHECK int job_owners(const struct job *job, const char *const *names, uint32_t names_count,
                            uint32_t *owner, char *why, size_t why_size);

/* By which the node called `self` visits its share: one for all where samples move. */
uint64_t job_sampler_seed(const struct job *job, const char *self);

#endif
