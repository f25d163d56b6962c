/* task.c: see task.h. */
#include "task.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/rng.h"
#include "data/partition.h"
#include "train/model.h"

/* ---- What must be equal on all nodes --------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void share(struct task *task, const char *name,
                                                        const char *format, ...)
{
    char *value = task->values[task->shared_count];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof task->values[0], format, arguments);
    va_end(arguments);
    task->shared[task->shared_count++] = (struct parley_setting){name, value};
}

static const char *number(char text[40], double value)
{
    snprintf(text, 40, "%.15g", value);
    return text;
}

static void share_budget(struct task *task)
{
    const struct settings *s = task->settings;
    char text[64] = "", a[40];
    size_t at = 0;
    if (s->epochs > 0)
        at += (size_t)snprintf(text, sizeof text, "%s epochs ", number(a, s->epochs));
    if (s->steps > 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "%" PRIu64 " steps ", s->steps);
    if (s->time_us > 0 && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at, "%ss ",
                               number(a, (double)s->time_us / 1e6));
    if (s->accuracy > 0 && at < sizeof text)
        snprintf(text + at, sizeof text - at, "accuracy %s ", number(a, s->accuracy));
    text[strlen(text) - (text[0] != 0)] = 0;
    share(task, "budget", "%s", text);
}

static void share_settings(struct task *task)
{
    const struct settings *s = task->settings;
    char a[40];
    share(task, "data", "%s", task->load.name);
    share(task, "model", "%s", model_spec(task->model));
    share(task, "partition", "%s", s->partition);
    share(task, "optimizer", "%s", s->optimizer);
    share(task, "lr", "%s", number(a, s->rate));
    share(task, "momentum", "%s", number(a, s->momentum));
    share(task, "schedule", "%s", s->schedule);
    share(task, "batch", "%" PRIu64, s->batch);
    share(task, "seed", "%" PRIu64, s->seed);
    share_budget(task);
    share(task, "strategy", "%s", s->strategy == STRATEGY_GOSSIP ? "gossip" : "none");
    share(task, "topology", "%s", s->topology);
    share(task, "mix-every", "%" PRIu64, s->mix_every);
    share(task, "tolerance", "%s", number(a, s->tolerance));
    if (s->quorum == QUORUM_MAJORITY)
        share(task, "quorum", "majority of %" PRIu64, s->nodes);
    else
        share(task, "quorum", "live");
}

static uint64_t run_id(const struct task *task)
{
    uint64_t run = XXH3_64bits(task->settings->cluster, strlen(task->settings->cluster));
    for (uint32_t i = 0; i < task->shared_count; i++)
        run = XXH3_64bits_withSeed(task->values[i], strlen(task->values[i]) + 1, run);
    return run ? run : 1;
}

/* ---- Making it ------------------------------------------------------------------------------- */

static int copy_tensors(struct task *task)
{
    const struct tensor *from = model_tensors(task->model, &task->tensor_count);
    task->tensors = calloc(task->tensor_count, sizeof *task->tensors);
    if (!task->tensors) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < task->tensor_count; i++) {
        task->tensors[i].name = from[i].name;
        task->tensors[i].rank = from[i].rank;
        memcpy(task->tensors[i].shape, from[i].shape, sizeof from[i].shape);
    }
    return 0;
}

int task_init(struct task *task, const struct settings *settings, char *why, size_t why_size)
{
    struct partition_spec spec;
    memset(task, 0, sizeof *task);
    task->settings = settings;
    struct trainer_options options = {
        .model = settings->model,
        .optimizer = settings->optimizer,
        .schedule = settings->schedule,
        .rate = settings->rate,
        .momentum = settings->momentum,
        .batch = (uint32_t)settings->batch,
        .seed = settings->seed,
    };
    int error = partition_parse(&spec, settings->partition, why, why_size);
    if (!error) error = load_data(&task->load, settings->data, settings->test, why, why_size);
    if (!error) error = trainer_new(&task->trainer, &options, &task->load.train, why, why_size);
    if (error) return error;
    task->model = trainer_model(task->trainer);
    if (settings->epochs > 0)
        task->samples_budget = (uint64_t)ceil(settings->epochs * task->load.train.count);
    share_settings(task);
    task->run = run_id(task);
    return copy_tensors(task);
}

void task_close(struct task *task)
{
    trainer_free(task->trainer);
    load_close(&task->load);
    free(task->tensors);
    memset(task, 0, sizeof *task);
}

static enum parley_topology topology_of(const char *name)
{
    static const char *const names[] = {"complete", "ring", "torus", "exponential"};
    for (int t = 0; t < 4; t++)
        if (strcmp(name, names[t]) == 0) return (enum parley_topology)t;
    return PARLEY_TOPOLOGY_COMPLETE;
}

static void fill_config(const struct task *task, struct parley_config *config)
{
    const struct settings *s = task->settings;
    config->cluster = s->cluster;
    config->name = s->name;
    config->run = task->run;
    config->seed = 0; /* drawn: no two nodes choose alike */
    config->min_peers = (uint32_t)s->min_peers;
    config->parameters = trainer_parameters(task->trainer);
    config->vectors = 1 + trainer_state_vectors(task->trainer);
    config->model_digest = model_digest(task->model);
    config->settings = task->shared;
    config->settings_count = task->shared_count;
    config->batch = (uint32_t)s->batch;
    config->samples_budget = task->samples_budget;
    config->steps_budget = s->steps;
    config->time_budget_us = s->time_us;
    config->strategy =
        s->strategy == STRATEGY_GOSSIP ? PARLEY_STRATEGY_GOSSIP : PARLEY_STRATEGY_NONE;
    config->topology = topology_of(s->topology);
    config->mix_every = (uint32_t)s->mix_every;
    config->tolerance = s->tolerance;
    config->settle_timeout_us = s->settle_timeout_us;
    config->quorum = s->quorum == QUORUM_MAJORITY ? PARLEY_QUORUM_MAJORITY : PARLEY_QUORUM_LIVE;
    config->nodes = s->quorum == QUORUM_MAJORITY ? (uint32_t)s->nodes : 0;
    if (s->join_timeout_us > 0) config->join_timeout_us = s->join_timeout_us;
    config->leave_timeout_us = s->leave_timeout_us;
    config->log_level = s->level;
}

void task_options(const struct task *task, struct parley_options *options)
{
    const struct dataset *set = &task->load.train;
    parley_options_defaults(options);
    fill_config(task, &options->config);
    options->out = task->settings->out;
    options->tensors = task->tensors;
    options->tensors_count = task->tensor_count;
    options->about = (struct parley_about){
        .model = model_spec(task->model),
        .data = task->load.name,
        .features = set->features,
        .classes = set->classes,
        .channels = set->channels,
        .height = set->height,
        .width = set->width,
        .scaling = set->bytes ? 1 : set->features,
        .shift = set->shift,
        .scale = set->scale,
    };
}

int task_share(struct task *task, const char *self, const char *const *names, uint32_t names_count,
               uint32_t *samples, char *why, size_t why_size)
{
    const struct settings *s = task->settings;
    const struct dataset *set = &task->load.train;
    bool fixed = s->shard.count > 0;
    struct partition_task partition = {
        .labels = set->labels,
        .count = set->count,
        .classes = set->classes,
        .names = fixed ? NULL : names,
        .members = fixed ? s->shard.count : names_count,
        .seed = s->seed,
    };
    uint32_t *share = NULL;
    uint64_t sampler_seed = rng_mix(s->seed) ^ XXH3_64bits(self, strlen(self));
    int error = partition_parse(&partition.spec, s->partition, why, why_size);
    if (!error)
        error = partition_share(&partition, fixed ? NULL : self, s->shard.index, &share, samples,
                                why, why_size);
    if (!error) error = trainer_share(task->trainer, share, *samples, sampler_seed);
    free(share);
    return error;
}
