/* training.c: see training.h. */
#include "run/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/model.h"

/* ---- Steps ----------------------------------------------------------------------------------- */

static void start(void *pointer, uint32_t node, float *const *vectors)
{
    const struct sim_training *self = pointer;
    size_t bytes = trainer_parameters(self->job->trainer) * sizeof(float);
    (void)node;
    memcpy(vectors[0], self->first, bytes);
    for (uint32_t v = 0; v < trainer_state_vectors(self->job->trainer); v++)
        memset(vectors[1 + v], 0, bytes);
}

/* Who computes for the node in this thread. */
static struct trainer *trainer_for(const struct sim_training *self, uint32_t node, uint32_t thread)
{
    bool wrong = self->misled && self->mislabelled[node];
    return wrong ? self->misled[thread] : self->trainers[thread];
}

static void mislabel(void *pointer, uint32_t node, bool wrong)
{
    struct sim_training *self = pointer;
    if (self->mislabelled) self->mislabelled[node] = wrong;
}

static double step(void *pointer, uint32_t node, uint32_t thread, const float *from,
                   float *const *vectors, const struct trainer_turn *turn)
{
    struct sim_training *self = pointer;
    return trainer_step(trainer_for(self, node, thread), &self->own[node], from, vectors[0],
                        vectors + 1, turn);
}

static double gradient(void *pointer, uint32_t node, uint32_t thread, const float *x, float *to,
                       const struct trainer_turn *turn)
{
    struct sim_training *self = pointer;
    (void)turn;
    return trainer_gradient(trainer_for(self, node, thread), &self->own[node], x, to);
}

static void apply(void *pointer, uint32_t node, uint32_t thread, float *const *vectors,
                  const float *from, float factor, const struct trainer_turn *turn)
{
    struct sim_training *self = pointer;
    trainer_apply(self->trainers[thread], &self->own[node], vectors[0], vectors + 1, from, factor,
                  turn);
}

static float follow(void *pointer, uint32_t node)
{
    const struct sim_training *self = pointer;
    return trainer_follow(self->job->trainer, &self->own[node]);
}

static uint32_t samples(void *pointer, uint32_t node)
{
    const struct sim_training *self = pointer;
    return trainer_samples(self->job->trainer, &self->own[node]);
}

static void evaluate(void *pointer, uint32_t thread, const float *x, double *accuracy, double *loss)
{
    const struct sim_training *self = pointer;
    trainer_evaluate(self->trainers[thread], x, &self->job->data.test, accuracy, loss);
}

static bool reaches(void *pointer, const float *x, double accuracy)
{
    const struct sim_training *self = pointer;
    return trainer_reaches(self->job->trainer, x, &self->job->data.test, accuracy);
}

/* ---- Shares ---------------------------------------------------------------------------------- */

static void shares_close(struct sim_shares *shares)
{
    free(shares->names);
    free(shares->start);
    free(shares->samples);
    *shares = (struct sim_shares){0};
}

/* The samples of each owner in a row: a counting sort, ascending within each. */
static int group(struct sim_shares *shares, const uint32_t *owner, uint32_t count)
{
    shares->start = calloc(shares->members + (size_t)2, sizeof *shares->start);
    shares->samples = malloc(count * sizeof *shares->samples);
    if (!shares->start || !shares->samples) return PARLEY_ENOMEM;
    /* Counted two places up, so that filling leaves the starts in their places. */
    for (uint32_t i = 0; i < count; i++)
        shares->start[owner[i] + 2]++;
    for (uint32_t m = 2; m < shares->members + 2; m++)
        shares->start[m] += shares->start[m - 1];
    for (uint32_t i = 0; i < count; i++)
        shares->samples[shares->start[owner[i] + 1]++] = i;
    return 0;
}

static int draw(struct sim_training *self)
{
    struct sim_shares *shares = &self->shares;
    uint32_t count = self->job->data.train.count;
    if (self->job->partition.kind == PARTITION_ALL) return 0;
    uint32_t *owner = malloc(count * sizeof *owner);
    int error = owner ? job_owners(self->job, shares->names, shares->members, owner, self->why,
                                   sizeof self->why)
                      : PARLEY_ENOMEM;
    if (!error) error = group(shares, owner, count);
    free(owner);
    return error;
}

/* names: [count], this node's own among them. */
static int shares_of(struct sim_training *self, const char *const *names, uint32_t count)
{
    struct sim_shares *shares = &self->shares;
    if (shares->names && shares->members == count &&
        memcmp(names, shares->names, count * sizeof *names) == 0)
        return 0;
    shares_close(shares);
    shares->names = malloc(count * sizeof *shares->names);
    if (!shares->names) return PARLEY_ENOMEM;
    memcpy(shares->names, names, count * sizeof *names);
    shares->members = count;
    int error = draw(self);
    if (error) shares_close(shares);
    return error;
}

/* Those of the member called `name`; *samples NULL: all there are. */
static int share_of(const struct sim_training *self, const char *name, const uint32_t **samples,
                    uint32_t *count)
{
    const struct sim_shares *shares = &self->shares;
    uint32_t rank = partition_rank(shares->names, shares->members, name);
    if (rank == UINT32_MAX) return PARLEY_EDATA;
    *samples = NULL;
    *count = self->job->data.train.count;
    if (!shares->start) return 0;
    *samples = shares->samples + shares->start[rank];
    *count = shares->start[rank + 1] - shares->start[rank];
    return 0;
}

static int begin(struct sim_training *self, struct trainer_node *own, const char *name,
                 const uint32_t *samples, uint32_t count, uint64_t samples_cluster)
{
    sampler_close(&own->sampler);
    *own = (struct trainer_node){0};
    int error = sampler_init(&own->sampler, samples, count, job_sampler_seed(self->job, name));
    if (error) return error;
    own->sampler.coverage = &self->coverage;
    sampler_seek(&own->sampler, samples_cluster / self->job->data.train.count * SAMPLER_SLICES);
    return 0;
}

/* With what is left to do of those who are gone. */
static int go_on(struct sim_training *self, struct trainer_node *own, const char *name,
                 const struct job_members *members, const uint32_t *samples, uint32_t count)
{
    uint64_t *due = malloc(count * sizeof *due);
    int error = due ? job_due(self->job, name, members, samples, count, due) : PARLEY_ENOMEM;
    if (!error) error = sampler_share(&own->sampler, samples, count, due);
    free(due);
    return error;
}

static uint64_t place(void *pointer, uint32_t node)
{
    const struct sim_training *self = pointer;
    const struct sampler *sampler = &self->own[node].sampler;
    return sampler->order ? sampler_place(sampler) : 0; /* 0: it never came to training */
}

static int share(void *pointer, uint32_t node, const struct job_members *members, bool first,
                 uint64_t samples_cluster, char *why, size_t why_size)
{
    struct sim_training *self = pointer;
    const uint32_t *samples;
    uint32_t samples_count;
    char name[16];
    snprintf(name, sizeof name, "n%u", node);
    if (!first && !job_share_moves(self->job)) return 0;
    int error = shares_of(self, members->names, members->count);
    if (error) {
        snprintf(why, why_size, "%s", self->why);
        return error;
    }
    error = share_of(self, name, &samples, &samples_count);
    if (error) return error;
    struct trainer_node *own = &self->own[node];
    return first ? begin(self, own, name, samples, samples_count, samples_cluster)
                 : go_on(self, own, name, members, samples, samples_count);
}

/* ---- Making and freeing ---------------------------------------------------------------------- */

static int allocate(struct sim_training *self)
{
    const struct trainer *like = self->job->trainer;
    float *state[2] = {NULL, NULL};
    size_t parameters = trainer_parameters(like);
    uint32_t samples = self->job->data.train.count;
    self->trainers = calloc(self->threads, sizeof *self->trainers);
    self->own = calloc(self->nodes, sizeof *self->own);
    self->first = malloc(parameters * sizeof *self->first);
    self->coverage = (struct coverage){calloc(1, coverage_bytes(samples)), samples};
    int error =
        self->trainers && self->own && self->first && self->coverage.words ? 0 : PARLEY_ENOMEM;
    for (uint32_t v = 0; v < trainer_state_vectors(like) && !error; v++) {
        state[v] = malloc(parameters * sizeof *state[v]);
        if (!state[v]) error = PARLEY_ENOMEM;
    }
    if (!error) trainer_start(like, self->first, state);
    free(state[0]);
    free(state[1]);
    for (uint32_t t = 0; t < self->threads && !error; t++)
        error = job_trainer(self->job, &self->trainers[t], self->why, sizeof self->why);
    return error;
}

static bool asks_for_wrong_labels(const struct settings *settings)
{
    for (size_t i = 0; i < settings->faults.count; i++)
        if (settings->faults.items[i].kind == FAULT_BYZANTINE &&
            settings->faults.items[i].lie == FAULT_LIE_LABELS)
            return true;
    return false;
}

/* Class c is taken for class (classes - 1 - c), as in the experiments of He, Karimireddy, Jaggi
 * 2022. */
static int mislead(struct sim_training *self)
{
    struct dataset *set = &self->wrong.data.train;
    self->wrong = *self->job;
    uint16_t *labels = malloc(set->count * sizeof *labels);
    for (uint32_t i = 0; labels && i < set->count; i++)
        labels[i] = (uint16_t)(set->classes - 1 - set->labels[i]);
    set->labels = labels;
    self->mislabelled = calloc(self->nodes, sizeof *self->mislabelled);
    self->misled = calloc(self->threads, sizeof *self->misled);
    int error = labels && self->mislabelled && self->misled ? 0 : PARLEY_ENOMEM;
    for (uint32_t t = 0; t < self->threads && !error; t++)
        error = job_trainer(&self->wrong, &self->misled[t], self->why, sizeof self->why);
    return error;
}

int sim_training_init(struct sim_training *training, struct sim_task *task, const struct job *job,
                      uint32_t nodes, uint32_t threads)
{
    *training = (struct sim_training){.job = job, .nodes = nodes, .threads = threads};
    const struct dataset *set = &job->data.train;
    bool labels = !set->targets && !set->text;
    int error = allocate(training);
    if (!error && labels && asks_for_wrong_labels(job->settings)) error = mislead(training);
    if (error) return error;
    *task = (struct sim_task){
        .self = training,
        .parameters = trainer_parameters(job->trainer),
        .vectors = 1 + trainer_state_vectors(job->trainer),
        .batch = trainer_samples(job->trainer, NULL),
        .batch_is_shared = job_batch_is_shared(job),
        .alike = true,
        .model_digest = model_digest(job->model),
        .start = start,
        .share = share,
        .place = place,
        .step = step,
        .gradient = gradient,
        .apply = apply,
        .samples = samples,
        .follow = follow,
        .mislabel = labels ? mislabel : NULL,
        .evaluate = evaluate,
        .reaches = set->targets ? NULL : reaches,
    };
    task->tensors = model_tensors(job->model, &task->tensors_count);
    return 0;
}

void sim_training_close(struct sim_training *training)
{
    for (uint32_t t = 0; training->trainers && t < training->threads; t++)
        trainer_free(training->trainers[t]);
    for (uint32_t i = 0; training->own && i < training->nodes; i++)
        sampler_close(&training->own[i].sampler);
    for (uint32_t t = 0; training->misled && t < training->threads; t++)
        trainer_free(training->misled[t]);
    free(training->wrong.data.train.labels);
    free(training->misled);
    free(training->mislabelled);
    free(training->trainers);
    free(training->own);
    free(training->first);
    free((void *)training->coverage.words);
    shares_close(&training->shares);
}
