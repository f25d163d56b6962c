/* job.c: see job.h. */
#include "job/job.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/rng.h"
#include "core/topology/topology.h"
#include "core/transfer/codec.h"
#include "data/formats/chars.h"
#include "train/model.h"

/* The settings were judged. */
static enum parley_codec codec_of(const struct settings *s, double *part)
{
    enum parley_codec codec;
    return codec_parse(s->codec, &codec, part) ? PARLEY_CODEC_FP32 : codec;
}

/* ---- What must be equal on all nodes --------------------------------------------------------- */

/* The longest is a schedule of --mix-every. */
#define TEXT_BYTES 1024
#define VALUE_BEGIN 40 /* bytes that are kept of a text that does not fit */

__attribute__((format(printf, 3, 4))) static void share(struct job *job, const char *name,
                                                        const char *format, ...)
{
    char *value = job->values[job->shared_count], text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = strlen(text);
    if (size < sizeof job->values[0])
        memcpy(value, text, size + 1);
    else
        snprintf(value, sizeof job->values[0], "%.*s... %016" PRIx64, VALUE_BEGIN, text,
                 (uint64_t)XXH3_64bits(text, size));
    job->shared[job->shared_count++] = (struct parley_setting){name, value};
}

static const char *number(char text[40], double value)
{
    snprintf(text, 40, "%.15g", value + 0.0); /* 0 has no sign */
    return text;
}

static void share_budget(struct job *job)
{
    const struct settings *s = job->settings;
    char text[160] = "", a[40]; /* room for all four */
    size_t at = 0;
    if (s->epochs > 0)
        at += (size_t)snprintf(text, sizeof text, "%s epochs ", number(a, s->epochs));
    if (s->steps > 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "%" PRIu64 " steps ", s->steps);
    if (s->time_us > 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "%ss ",
                               number(a, (double)s->time_us / 1e6));
    if (s->accuracy > 0)
        snprintf(text + at, sizeof text - at, "accuracy %s ", number(a, s->accuracy));
    text[strlen(text) - (text[0] != 0)] = 0;
    share(job, "budget", "%s", text);
}

/* What the optimizer goes by, be it given or its own. */
static void share_numbers(struct job *job, const struct optimizer_numbers *n)
{
    char a[40];
    share(job, "momentum", "%s", number(a, n->momentum));
    share(job, "beta2", "%s", number(a, n->beta2));
    share(job, "epsilon", "%s", number(a, n->epsilon));
    share(job, "weight-decay", "%s", number(a, n->weight_decay));
    share(job, "clip-norm", "%s", number(a, n->clip_norm));
    share(job, "clip-value", "%s", number(a, n->clip_value));
}

/* Numbers behind a name or between commas are told as they were read, however they were written. */
static void share_partition(struct job *job)
{
    const struct settings *s = job->settings;
    char text[64], a[40];
    snprintf(text, sizeof text, "%s", s->partition);
    if (job->partition.kind == PARTITION_DIRICHLET)
        snprintf(text, sizeof text, "dirichlet:%s", number(a, job->partition.alpha));
    if (s->shard.count > 0) /* who draws its share by who is there leaves some to those who don't */
        share(job, "partition", "%s by --shard of %" PRIu32, text, s->shard.count);
    else
        share(job, "partition", "%s", text);
}

static void share_topology(struct job *job)
{
    const char *topology = job->settings->topology;
    enum parley_topology kind;
    char why[1]; /* the settings were judged */
    uint32_t degree;
    if (job->graph.text) /* wherever the file lies */
        share(job, "topology", "graph of %" PRIu32 " nodes, %016" PRIx64, job->graph.graph.nodes,
              graph_digest(&job->graph));
    else if (topology_parse(topology, &kind, &degree, why, sizeof why) == 0 && degree > 0)
        share(job, "topology", "%.*s:%" PRIu32, (int)strcspn(topology, ":"), topology, degree);
    else
        share(job, "topology", "%s", topology);
}

static void share_mix_every(struct job *job)
{
    const struct settings_period *every = &job->settings->mix_every;
    char text[TEXT_BYTES], a[40];
    size_t at = (size_t)snprintf(text, sizeof text, "%" PRIu32, every->steps);
    for (uint32_t i = 0; i < every->later_count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ",%" PRIu32 "@%s%%",
                               every->later[i].steps, number(a, every->later[i].from * 100));
    share(job, "mix-every", "%s", every->steered ? "auto" : text);
}

static void share_settings(struct job *job)
{
    const struct settings *s = job->settings;
    char a[40];
    share(job, "data", "%s", job->data.name);
    share(job, "model", "%s", model_spec(job->model));
    /* Before what follows from it: the first that differs is told. */
    if (s->strategy == PARLEY_STRATEGY_PS_SSP)
        share(job, "strategy", "ps-ssp:%" PRIu64, s->staleness);
    else
        share(job, "strategy", "%s", s->values[OPTION_ID_STRATEGY].text);
    share_partition(job);
    share(job, "optimizer", "%s", s->optimizer);
    share(job, "lr", "%s", number(a, s->rate));
    share(job, "lr-scale", "%s", s->values[OPTION_ID_LR_SCALE].text);
    share_numbers(job, trainer_numbers(job->trainer));
    share(job, "momentum-mode", "%s", s->values[OPTION_ID_MOMENTUM_MODE].text);
    share(job, "schedule", "%s", s->schedule);
    share(job, "warmup", "%s", number(a, s->warmup));
    share(job, "batch", "%" PRIu64, s->batch);
    share(job, "seed", "%" PRIu64, s->seed);
    share_budget(job);
    share(job, "backup-workers", "%" PRIu64, s->backup_workers);
    share_topology(job);
    share_mix_every(job);
    if (settings_heeds(s->strategy, OPTION_ID_OUTER_LR)) {
        share(job, "outer-lr", "%s", number(a, s->outer_rate));
        share(job, "outer-momentum", "%s", number(a, s->outer_momentum));
    }
    if (settings_heeds(s->strategy, OPTION_ID_CHOCO_STEP))
        share(job, "choco-step", "%s", s->choco_step > 0 ? number(a, s->choco_step) : "by codec");
    share(job, "tolerance", "%s", number(a, s->tolerance));
    if (s->quorum == PARLEY_QUORUM_MAJORITY)
        share(job, "quorum", "majority of %" PRIu64, s->nodes);
    else
        share(job, "quorum", "live");
}

static uint64_t run_id(const struct job *job)
{
    const char *cluster = job->settings->cluster ? job->settings->cluster : "";
    uint64_t run = XXH3_64bits(cluster, strlen(cluster));
    for (uint32_t i = 0; i < job->shared_count; i++)
        run = XXH3_64bits_withSeed(job->values[i], strlen(job->values[i]) + 1, run);
    return run ? run : 1;
}

/* Of labels that are numbers the gradient grows with the error: the first steps, with all errors
 * still large, can kill a network's units for good at a rate that suits classes. */
#define NUMBERS_CLIP_NORM 1

static double clip_norm_of(const struct job *job)
{
    const struct settings *s = job->settings;
    bool bare = s->clip_norm == 0 && s->clip_value == 0;

    return bare && job->data.train.targets ? NUMBERS_CLIP_NORM : s->clip_norm;
}

/* ---- Making it ------------------------------------------------------------------------------- */

int job_trainer(const struct job *job, struct trainer **trainer, char *why, size_t why_size)
{
    const struct settings *s = job->settings;
    double part;
    codec_of(s, &part);
    struct trainer_options options = {
        .model = s->model,
        .optimizer = s->optimizer,
        .schedule = s->schedule,
        .rate = s->rate,
        .numbers = {.momentum = s->momentum,
                    .beta2 = s->beta2,
                    .epsilon = s->epsilon,
                    .weight_decay =
                        s->values[OPTION_ID_WEIGHT_DECAY].text ? s->weight_decay : (double)NAN,
                    .clip_norm = clip_norm_of(job),
                    .clip_value = s->clip_value},
        .warmup = s->warmup,
        .scale = (enum trainer_scale)s->lr_scale,
        .momentum_mode = (enum trainer_momentum)s->momentum_mode,
        .averaged_part = part,
        .batch = (uint32_t)s->batch,
        .seed = s->seed,
    };
    return trainer_new(trainer, &options, &job->data.train, why, why_size);
}

/* What goes by classes, where labels are numbers. */
static int check_numbers(const struct job *job, char *why, size_t why_size)
{
    bool skewed =
        job->partition.kind == PARTITION_SHARDS || job->partition.kind == PARTITION_DIRICHLET;
    if (!job->data.train.targets) return 0;
    if (job->settings->accuracy > 0)
        snprintf(why, why_size,
                 "--target-accuracy needs classes; labels that are numbers have no accuracy");
    else if (skewed)
        snprintf(why, why_size,
                 "--partition: \"%.64s\" goes by classes, and labels are numbers; take iid or all",
                 job->settings->partition);
    else
        return 0;
    return PARLEY_EUSAGE;
}

/* With its data. */
static int finish(struct job *job, char *why, size_t why_size)
{
    int error = job_trainer(job, &job->trainer, why, why_size);
    if (error) return error;
    job->model = trainer_model(job->trainer);
    error = check_numbers(job, why, why_size);
    if (error) return error;
    share_settings(job);
    job->run = run_id(job);
    if (job->data.train.text) return 0;
    error = rows_write_columns(&job->data.shape, &job->columns);
    if (error) return error;
    return rows_write_lines(&job->data.shape.classes, &job->class_names);
}

static int load_graph(struct job *job, const struct source_reader *reader, char *why,
                      size_t why_size)
{
    size_t said = (size_t)snprintf(why, why_size, "--topology: ");
    int error =
        graph_load(&job->graph, job->settings->topology, reader, why + said, why_size - said);
    if (!error || !why[said]) why[0] = 0;
    return error;
}

int job_init(struct job *job, const struct settings *settings, const struct source *data,
             const struct source_reader *reader, char *why, size_t why_size)
{
    memset(job, 0, sizeof *job);
    job->settings = settings;
    job->shares_data = data != NULL;
    if (data) job->data = *data;
    int error = partition_parse(&job->partition, settings->partition, why, why_size);
    if (!error) error = load_graph(job, reader, why, why_size);
    if (!error && !data)
        error = source_load(&job->data, reader, settings->data, settings->test, why, why_size);
    return error ? error : finish(job, why, why_size);
}

int job_fits(const struct settings *settings, const struct dataset *train, char *why,
             size_t why_size)
{
    struct partition_spec spec;
    int error = partition_parse(&spec, settings->partition, why, why_size);
    if (error || spec.kind == PARTITION_ALL) return error;
    uint32_t most = train->count / (spec.kind == PARTITION_SHARDS ? 2 : 1); /* two shards a node */
    if (settings->nodes <= most) return 0;
    snprintf(why, why_size,
             "--nodes: \"%" PRIu64 "\" are too many for %" PRIu32
             " samples to train on (--partition %.64s); take %" PRIu32
             " at most, or --partition all, or more --data",
             settings->nodes, train->count, settings->partition, most);
    return PARLEY_EUSAGE;
}

void job_close(struct job *job)
{
    trainer_free(job->trainer);
    graph_close(&job->graph);
    free(job->class_names);
    free(job->columns);
    if (!job->shares_data) source_close(&job->data);
    memset(job, 0, sizeof *job);
}

/* ---- Using it -------------------------------------------------------------------------------- */

void job_meta(const struct job *job, struct model_meta *meta)
{
    const struct dataset *set = &job->data.train;
    *meta = (struct model_meta){
        .features = set->features,
        .classes = set->classes,
        .channels = set->channels,
        .height = set->height,
        .width = set->width,
        .scaling = set->bytes ? 1 : set->features,
        .shift = set->shift,
        .scale = set->scale,
        .numbers = set->targets != NULL,
        .label = {set->label[0], set->label[1]},
        .run = job->run,
        .class_names = job->class_names,
        .columns = job->columns,
    };
    snprintf(meta->model, sizeof meta->model, "%s", model_spec(job->model));
    snprintf(meta->data, sizeof meta->data, "%s", job->data.name);
    if (set->text) chars_write_vocabulary(&job->data.shape.classes, meta->vocabulary);
}

void job_config(const struct job *job, struct parley_config *config)
{
    const struct settings *s = job->settings;
    config->parameters = trainer_parameters(job->trainer);
    config->vectors = 1 + trainer_state_vectors(job->trainer);
    /* Only a momentum: a mean of squares would be negative after a rounded difference. */
    config->averaged = s->momentum_mode == TRAINER_MOMENTUM_AVERAGED ? 2 : 1;
    config->model_digest = model_digest(job->model);
    config->settings = job->shared;
    config->settings_count = job->shared_count;
    config->batch = trainer_samples(job->trainer, NULL);
    config->batch_is_shared = job_batch_is_shared(job);
    config->samples_budget = s->epochs > 0 ? (uint64_t)ceil(s->epochs * job->data.train.count) : 0;
    config->steps_budget = s->steps;
    config->time_budget_us = s->time_us;
    config->strategy = (enum parley_strategy)s->strategy;
    config->backup_workers = (uint32_t)s->backup_workers;
    config->staleness = (uint32_t)s->staleness;
    char why[1]; /* settings were judged */
    if (topology_parse(s->topology, &config->topology, &config->topology_degree, why, sizeof why))
        config->topology = PARLEY_TOPOLOGY_COMPLETE;
    config->topology_seed = s->seed;
    config->graph = job->graph.text ? &job->graph.graph : NULL;
    config->codec = codec_of(s, &config->codec_part);
    config->mix_every = s->mix_every.steps;
    config->mix_steered = s->mix_every.steered;
    config->mix_later_count = s->mix_every.later_count;
    memcpy(config->mix_later, s->mix_every.later, sizeof config->mix_later);
    config->outer_rate = s->outer_rate;
    config->outer_momentum = s->outer_momentum;
    config->choco_step = s->choco_step;
    config->robust = s->robust;
    config->tolerance = s->tolerance;
    config->settle_timeout_us = s->settle_timeout_us;
    config->quorum = (enum parley_quorum)s->quorum;
    config->nodes = s->quorum == PARLEY_QUORUM_MAJORITY ? (uint32_t)s->nodes : 0;
}

static struct partition_task task_on(struct partition_spec spec, const struct dataset *train,
                                     uint64_t seed, const char *const *names, uint32_t members)
{
    return (struct partition_task){
        .spec = spec,
        .labels = train->labels,
        .count = train->count,
        .classes = train->classes,
        .names = names,
        .members = members,
        .seed = seed,
    };
}

static struct partition_task partition_task(const struct job *job, const char *const *names,
                                            uint32_t members)
{
    return task_on(job->partition, &job->data.train, job->settings->seed, names, members);
}

int job_smallest_share(const struct settings *settings, const struct dataset *train,
                       uint32_t *samples, char *why, size_t why_size)
{
    struct partition_spec spec;
    uint32_t nodes = (uint32_t)settings->nodes;
    int error = partition_parse(&spec, settings->partition, why, why_size);
    *samples = train->count;
    if (error || spec.kind == PARTITION_ALL) return error;
    char(*texts)[PARLEY_NAME_SIZE] = malloc(nodes * sizeof *texts);
    const char **names = malloc(nodes * sizeof *names);
    uint32_t *owner = malloc(train->count * sizeof *owner), *has = calloc(nodes, sizeof *has);
    error = texts && names && owner && has ? 0 : PARLEY_ENOMEM;
    for (uint32_t i = 0; !error && i < nodes; i++) {
        snprintf(texts[i], sizeof texts[i], "n%" PRIu32, i);
        names[i] = texts[i];
    }
    if (!error) {
        struct partition_task task = task_on(spec, train, settings->seed, names, nodes);
        error = partition_owners(&task, owner, why, why_size);
    }
    for (uint32_t i = 0; !error && i < train->count; i++)
        has[owner[i]]++;
    for (uint32_t i = 0; !error && i < nodes; i++)
        if (has[i] < *samples) *samples = has[i];
    free(texts);
    free(names);
    free(owner);
    free(has);
    return error;
}

uint64_t job_sampler_seed(const struct job *job, const char *self)
{
    uint64_t seed = rng_mix(job->settings->seed);
    return job_share_moves(job) ? seed : seed ^ XXH3_64bits(self, strlen(self));
}

int job_due(const struct job *job, const char *self, const struct job_members *members,
            const uint32_t *share, uint32_t share_count, uint64_t *due)
{
    struct partition_task partition = partition_task(job, members->names, members->count);
    return partition_due(&partition, self, members->gone, members->gone_count, share, share_count,
                         due);
}

int job_share(const struct job *job, struct trainer_node *node, const char *self,
              const struct job_members *members, uint32_t *samples, char *why, size_t why_size)
{
    const struct settings *s = job->settings;
    bool fixed = s->shard.count > 0;
    struct partition_task partition =
        partition_task(job, fixed ? NULL : members->names, fixed ? s->shard.count : members->count);
    uint32_t *share = NULL;
    uint64_t *due = NULL;
    int error = partition_share(&partition, fixed ? NULL : self, s->shard.index, &share, samples,
                                why, why_size);
    if (!error && job_share_moves(job)) {
        due = malloc(*samples * sizeof *due);
        error = due ? job_due(job, self, members, share, *samples, due) : PARLEY_ENOMEM;
    }
    if (!error)
        error =
            trainer_share(job->trainer, node, share, *samples, due, job_sampler_seed(job, self));
    free(due);
    free(share);
    return error;
}

bool job_share_moves(const struct job *job)
{
    return job->partition.kind == PARTITION_IID && job->settings->shard.count == 0;
}

bool job_batch_is_shared(const struct job *job)
{
    bool whole = job->partition.kind == PARTITION_ALL || job->settings->shard.count == 1;
    return trainer_is_full_batch(job->trainer) && !whole;
}

int job_owners(const struct job *job, const char *const *names, uint32_t names_count,
               uint32_t *owner, char *why, size_t why_size)
{
    struct partition_task partition = partition_task(job, names, names_count);
    return partition_owners(&partition, owner, why, why_size);
}
