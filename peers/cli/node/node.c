/* node.c: `parley node`: one node, from its settings to the agreed model.
 *
 *   data and model; listen and join; then local steps, until parley_boundary() says it is over;
 *   the agreed model is tried on the test data; results to stdout
 *
 * A node that was asked to leave saves its own model beside --out and ends with 0. All else that
 * ends it early has been said, on stderr and as an `error` line, and is its exit status.
 */
#include "cli/node/node.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/read_file.h"
#include "cli/shared_data.h"
#include "clock.h"
#include "core/rng.h"
#include "core/topology/topology.h"
#include "data/remarks.h"
#include "descriptors.h"
#include "disk/durable.h"
#include "file/model_file.h"
#include "file/record.h"
#include "network/address.h"
#include "prompt.h"
#include "train/model.h"

enum { TIMER_US = 250000, TIMER_OFTEN_US = 20000 };

/* ---- Set-up ---------------------------------------------------------------------------------- */

static int make_vectors(struct node *node)
{
    node->x = trainer_vectors(node->job.trainer, node->state);
    if (!node->x) return PARLEY_ENOMEM;
    node->options.vectors[0] = node->x;
    for (uint32_t i = 0; i < trainer_state_vectors(node->job.trainer); i++)
        node->options.vectors[1 + i] = node->state[i];
    return 0;
}

static int fill_tensors(struct node *node)
{
    struct parley_options *options = &node->options;
    const struct tensor *from = model_tensors(node->job.model, &options->tensors_count);
    options->tensors = node->tensors = calloc(options->tensors_count, sizeof *node->tensors);
    if (!node->tensors) return PARLEY_ENOMEM;
    for (uint32_t i = 0; i < options->tensors_count; i++) {
        node->tensors[i].name = from[i].name;
        node->tensors[i].rank = from[i].rank;
        memcpy(node->tensors[i].shape, from[i].shape, sizeof from[i].shape);
    }
    return 0;
}

/* All that is known before the node has vectors, a name and its seeds. */
static int fill_options(struct node *node)
{
    const struct settings *s = node->settings;
    const struct dataset *set = &node->job.data.train;
    struct model_meta *meta = &node->meta;
    struct parley_options *options = &node->options;
    struct parley_config *config = &options->config;
    parley_options_defaults(options);
    job_meta(&node->job, meta);
    job_config(&node->job, config);
    config->cluster = s->cluster;
    config->name = s->name;
    config->run = node->job.run;
    config->seed = 0; /* drawn: no two nodes choose alike */
    config->min_peers = (uint32_t)s->min_peers;
    config->streams = (uint32_t)s->streams;
    if (s->join_timeout_us > 0) config->join_timeout_us = s->join_timeout_us;
    config->leave_timeout_us = s->leave_timeout_us;
    config->log_level = s->level;
    options->out = s->out;
    options->splits = true;
    options->about = (struct parley_about){
        .model = meta->model,
        .data = meta->data,
        .features = meta->features,
        .classes = meta->classes,
        .channels = meta->channels,
        .height = meta->height,
        .width = meta->width,
        .scaling = meta->scaling,
        .shift = set->shift,
        .scale = set->scale,
        .label = meta->numbers ? set->label : NULL,
        .vocabulary = meta->vocabulary,
        .class_names = meta->class_names,
        .columns = meta->columns,
    };
    return fill_tensors(node);
}

/* Whoever can read it can join. */
static void look_at_key(const char *path)
{
    struct stat status;
    if (path && !stat(path, &status) && status.st_mode & (S_IRGRP | S_IROTH))
        say(PARLEY_LOG_WARN, "--cluster-key: others on this machine can read %s: chmod 600 %s",
            path, path);
}

/* --listen, where a name has become its address: who waits for name servers can be interrupted, but
 * not in parley_open(), while signals are held. */
static int find_listen(const struct settings *s, char listen[PARLEY_ADDRESS_SIZE], char *why,
                       size_t why_size)
{
    struct address address;
    struct sockaddr_storage found;
    char host[NI_MAXHOST];
    uv_loop_t loop;
    if (address_join(listen, s->listen.host, s->listen.port)) {
        snprintf(why, why_size, "--listen: at most %d bytes", PARLEY_ADDRESS_SIZE - 1);
        return PARLEY_EUSAGE;
    }
    if (address_split(&address, listen) || address_numeric(&found, &address)) return 0;
    int error = descriptors_check(why, why_size); /* libuv's own, without which it aborts */
    if (error) return error;
    int code = uv_loop_init(&loop);
    if (!code) {
        code = address_resolve(&loop, &found, &address);
        uv_loop_close(&loop);
    }
    if (!code && (getnameinfo((struct sockaddr *)&found, sizeof found, host, sizeof host, NULL, 0,
                              NI_NUMERICHOST) ||
                  address_join(listen, host, s->listen.port)))
        code = UV_EAI_FAIL;
    if (!code) return 0;
    snprintf(why, why_size, "can't listen on %s: %s", listen, uv_strerror(code));
    return PARLEY_ENETWORK;
}

static int open_node(struct node *node, const char *listen, char *why, size_t why_size)
{
    const struct settings *s = node->settings;
    char advertise[PARLEY_ADDRESS_SIZE];
    struct parley_options *options = &node->options;
    if (address_join(advertise, s->advertise.host, s->advertise.port)) {
        snprintf(why, why_size, "--advertise: at most %d bytes", PARLEY_ADDRESS_SIZE - 1);
        return PARLEY_EUSAGE;
    }
    options->listen = listen;
    options->no_lane = s->no_lane;
    options->cluster_key = s->cluster_key;
    look_at_key(s->cluster_key);
    if (s->advertise.host[0]) options->config.address = advertise;
    options->config.seeds = node->seeds.items;
    options->config.seeds_count = node->seeds.count;
    options->on_update = node_on_update;
    options->on_timer = node_on_timer;
    options->timer_us = s->accuracy > 0 || node->controlled ? TIMER_OFTEN_US : TIMER_US;
    options->context = node;
    uv_mutex_lock(&node->start_lock); /* which callbacks take, and they are the loop's alone */
    int error = parley_open(&node->p, options, why, why_size);
    if (!error) node_report_started(node);
    uv_mutex_unlock(&node->start_lock);
    return error;
}

/* "host-3f2a": short enough for a table, and unlike another node's of the same machine. A host may
 * be called what no file and no node can. */
static void draw_name(char name[PARLEY_NAME_SIZE])
{
    char host[64] = "";
    uint16_t drawn = 0;
    if (gethostname(host, sizeof host - 1)) strcpy(host, "node");
    host[strcspn(host, ".")] = 0;
    for (char *c = host; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') *c = '-';
    if (!isalnum((unsigned char)host[0])) host[0] = 'n';
    uv_random(NULL, NULL, &drawn, sizeof drawn, 0, NULL);
    snprintf(name, PARLEY_NAME_SIZE, "%.20s-%04x", host, drawn);
}

/* Data that `parley run` has loaded are mapped as they are. */
static int make_job(struct node *node, char *why, size_t why_size)
{
    struct source source;
    bool mapped = node->controlled && shared_data_map(CONTROL_DATA, &source);
    return job_init(&node->job, node->settings, mapped ? &source : NULL, &file_reader, why,
                    why_size);
}

static int prepare(struct node *node, char *why, size_t why_size)
{
    struct remarks remarks;
    char listen[PARLEY_ADDRESS_SIZE];
    int error = seed_list_make(&node->seeds, &node->settings->join, node->settings->peers_file, why,
                               why_size);
    if (!error) error = environment_claim(1, why, why_size);
    if (!error) error = make_job(node, why, why_size);
    if (error) return error;
    remarks_of(&remarks, &node->job.data);
    for (uint32_t i = 0; !node->controlled && i < remarks.count; i++)
        say(PARLEY_LOG_WARN, "%s", remarks.text[i]);
    if (node->seeds.left_out > 0)
        say(PARLEY_LOG_WARN, "%u seeds are left out: at most %d are dialled", node->seeds.left_out,
            PARLEY_SEEDS_MAX);
    if ((error = fill_options(node))) return error;
    if (!node->settings->name) {
        draw_name(node->name);
        node->options.config.name = node->name;
    }
    const char *name = node_name(node);
    snprintf(node->own_path, sizeof node->own_path, "%s.%s", node->settings->out, name);
    if (node->job.graph.text && topology_place(&node->job.graph.graph, name) == TOPOLOGY_NOWHERE) {
        snprintf(why, why_size, "--topology: \"%s\" has no link of this node, \"%s\" (--name)",
                 node->settings->topology, name);
        return PARLEY_EUSAGE;
    }
    error = make_vectors(node);
    if (!error && node->controlled)
        (void)shared_coverage_map(CONTROL_COVERAGE, node->job.data.train.count, &node->coverage);
    if (!error) error = node_checkpoint_init(node, why, why_size);
    if (!error) error = find_listen(node->settings, listen, why, why_size);
    if (error) return error;
    /* Until control.c hears them: who has joined leaves, and does not just die. */
    signals_hold(true);
    error = open_node(node, listen, why, why_size);
    if (error) signals_hold(false);
    return error;
}

/* ---- Training -------------------------------------------------------------------------------- */

/* Names and places of those that are gone, their names borrowed from *block; both for the caller to
 * free. */
static int gone_members(struct node *node, struct parley_gone **block, struct partition_gone **list,
                        uint32_t *count)
{
    uint32_t room = node->options.config.members_max;
    *block = malloc(room * sizeof **block);
    *list = malloc(room * sizeof **list);
    if (!*block || !*list) return PARLEY_ENOMEM;
    *count = parley_gone(node->p, *block, room);
    for (uint32_t i = 0; i < *count; i++)
        (*list)[i] = (struct partition_gone){(*block)[i].name, (*block)[i].place};
    return 0;
}

/* The names of the members that live; the caller frees the block. */
static char (*live_names(struct node *node, uint32_t *count))[PARLEY_NAME_SIZE]
{
    uint32_t room = node->options.config.members_max;
    char(*names)[PARLEY_NAME_SIZE] = malloc(room * sizeof *names);
    if (names) *count = parley_live(node->p, names, room);
    return names;
}

/* The share of the data among those who live now. */
static int take_share(struct node *node, bool first, char *why, size_t why_size)
{
    uint32_t count = 0, samples = 0;
    char(*names)[PARLEY_NAME_SIZE] = live_names(node, &count);
    const char **list = names ? malloc(count * sizeof *list) : NULL;
    struct parley_gone *gone = NULL;
    struct partition_gone *places = NULL;
    struct job_members members = {.names = list, .count = count};
    int error = list ? gone_members(node, &gone, &places, &members.gone_count) : PARLEY_ENOMEM;
    if (!error) {
        for (uint32_t i = 0; i < count; i++)
            list[i] = names[i];
        members.gone = places;
        error =
            job_share(&node->job, &node->own, node_name(node), &members, &samples, why, why_size);
    }
    node->share = samples;
    free(places);
    free(gone);
    if (!error && !node->controlled)
        say(PARLEY_LOG_INFO, "%" PRIu32 " of %" PRIu32 " samples are this node's share%s%s",
            samples, node->job.data.train.count, first ? "" : " now",
            samples < trainer_samples(node->job.trainer, &node->own)
                ? ", fewer than a batch: they are cycled"
                : "");
    free(list);
    free(names);
    return error;
}

static int begin(struct node *node, const struct parley_turn *turn, char *why, size_t why_size)
{
    bool resumes = node->resumed.steps > 0 && turn->state_steps == node->resumed.state_steps;
    if (!resumes) {
        /* A peer's model is in its place; the steps of its budget are made. */
        node->resumed = (struct checkpoint){.steps = node->resumed.steps};
        uint64_t passes = atomic_load(&node->samples_cluster) / node->job.data.train.count;
        atomic_store(&node->place, passes * SAMPLER_SLICES);
    }
    int error = take_share(node, true, why, why_size);
    if (error) return error;
    node->own.sampler.coverage = node->coverage.words ? &node->coverage : NULL;
    sampler_seek(&node->own.sampler, atomic_load(&node->place));
    return 0;
}

/* Whether this node is the one to look at the accuracy for the index-th time. All nodes that see
 * the same members choose the same one. */
static bool is_chosen(struct node *node, uint64_t index)
{
    uint32_t count = 0;
    char(*names)[PARLEY_NAME_SIZE] = live_names(node, &count);
    const char *best = NULL;
    uint64_t best_draw = 0;
    for (uint32_t i = 0; names && i < count; i++) {
        uint64_t draw = rng_mix(index);
        for (const char *c = names[i]; *c; c++)
            draw = rng_mix(draw ^ (uint8_t)*c);
        if (best && draw >= best_draw) continue;
        best = names[i];
        best_draw = draw;
    }
    bool chosen = best && strcmp(best, node_name(node)) == 0;
    free(names);
    return chosen;
}

static void look_at_target(struct node *node, uint64_t *looked)
{
    const struct settings *s = node->settings;
    uint64_t index = atomic_load(&node->samples_cluster) / s->eval_samples;
    if (s->accuracy <= 0 || index <= *looked) return;
    *looked = index;
    if (!is_chosen(node, index)) return;
    if (trainer_reaches(node->job.trainer, node->x, &node->job.data.test, s->accuracy))
        parley_stop(node->p, PARLEY_STOP_TARGET);
}

/* Under a planned fault: as if this machine were slower. */
static void be_slow(struct node *node, uint64_t step_us)
{
    double factor = atomic_load_explicit(&node->slow, memory_order_relaxed);
    uint64_t pause_us = atomic_load_explicit(&node->sleep_us, memory_order_relaxed);
    if (factor > 1) pause_us += (uint64_t)((double)step_us * (factor - 1));
    if (pause_us == 0) return;
    struct timespec pause = {.tv_sec = (time_t)(pause_us / 1000000),
                             .tv_nsec = (long)(pause_us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

/* Returns the loss of the batch it took, if it took one. */
static double work(struct node *node, const struct parley_turn *turn)
{
    struct trainer *trainer = node->job.trainer;
    struct trainer_turn now = {turn->progress, turn->state_steps, turn->live, turn->averaged,
                               turn->weight};
    if (turn->work == PARLEY_WORK_GRADIENT)
        return trainer_gradient(trainer, &node->own, turn->at, turn->gradient);
    if (turn->work == PARLEY_WORK_STEP)
        return trainer_step(trainer, &node->own, node->x, node->x, node->state, &now);
    trainer_apply(trainer, &node->own, node->x, node->state, turn->gradient, turn->factor, &now);
    return 0;
}

static int train(struct node *node, char *why, size_t why_size)
{
    struct parley_turn turn;
    struct parley_step step = {0};
    uint64_t looked = 0, turnover = 0;
    int code, error = 0;
    prompt_others_first();
    while ((code = node_leave_boundary(node, &step, &turn)) == PARLEY_GO) {
        if (turn.started)
            error = begin(node, &turn, why, why_size);
        else if (turn.turnover != turnover && job_share_moves(&node->job))
            error = take_share(node, false, why, why_size);
        if (error) return error;
        turnover = turn.turnover;
        look_at_target(node, &looked);
        node->state_steps = turn.state_steps;
        node_checkpoint_step(node);
        uint64_t before_us = clock_now_us();
        uint32_t samples = trainer_samples(node->job.trainer, &node->own);
        double loss = work(node, &turn);
        if (turn.work != PARLEY_WORK_GRADIENT) node->state_steps++;
        step = (struct parley_step){0};
        if (turn.work == PARLEY_WORK_APPLY) continue;
        double smooth = atomic_load_explicit(&node->loss, memory_order_relaxed);
        smooth = isfinite(smooth) ? 0.95 * smooth + 0.05 * loss : loss;
        atomic_store_explicit(&node->loss, smooth, memory_order_relaxed);
        be_slow(node, clock_now_us() - before_us);
        step = (struct parley_step){.steps = 1,
                                    .samples = samples,
                                    .loss = loss,
                                    .follow = trainer_follow(node->job.trainer, &node->own),
                                    .place = sampler_place(&node->own.sampler)};
        node->steps++;
        atomic_store_explicit(&node->place, step.place, memory_order_relaxed);
        if (node->own.sampler.taken > node->taken) node_report_takeover(node);
        node->taken = node->own.sampler.taken;
        atomic_fetch_add_explicit(&node->samples, step.samples, memory_order_relaxed);
    }
    return code == PARLEY_END ? 0 : code;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* What stood there may have been agreed on, in another run (disk/files.h): its record would stand
 * beside a model that nobody has agreed on. */
static void drop_record(const struct node *node)
{
    char path[sizeof node->own_path + sizeof RECORD_SUFFIX];
    snprintf(path, sizeof path, "%s" RECORD_SUFFIX, node->own_path);
    unlink(path);
}

/* A node that leaves keeps what it has, apart from --out: that name is for what was agreed. */
static int save_own(struct node *node, char *why, size_t why_size)
{
    struct model_meta *meta = &node->meta;
    struct piece pieces[MODEL_FILE_PIECES] = {{NULL, 0}};
    uint32_t count;
    const struct tensor *tensors = model_tensors(node->job.model, &count);
    size_t n = trainer_parameters(node->job.trainer);
    int error = digest_model(node->x, n, tensors, count, node->job.run, meta->digest);
    if (!error) error = model_file_pieces(meta, node->x, n, tensors, count, pieces);
    node_control_saves(node);
    if (!error) error = durable_replace(node->own_path, pieces, MODEL_FILE_PIECES, why, why_size);
    if (!error) drop_record(node);
    if (!error) atomic_store(&node->model, node->own_path);
    free((void *)pieces[0].bytes);
    return error;
}

/* It is as any node begins: no steps, nobody's state, no average, no file that it went on from. */
static bool is_first_model(const struct node *node, const struct parley_view *view)
{
    return node->steps == 0 && view->ledger.joins == 0 && view->ledger.applied == 0 &&
           node->options.config.resumed.steps == 0;
}

/* Of a node that was asked to leave, or found nobody to agree with. A model of before is not to
 * give way to one of no training. */
static int keep_own(struct node *node, const struct parley_view *view, bool left, char *why,
                    size_t why_size)
{
    const char *ended = left ? "left" : "no agreement";
    if (is_first_model(node, view)) {
        say(PARLEY_LOG_INFO, "%s before it had trained: no model is saved", ended);
        return 0;
    }
    int error = save_own(node, why, why_size);
    if (!error)
        say(left ? PARLEY_LOG_INFO : PARLEY_LOG_WARN, "%s; this node's own model is in %s", ended,
            node->own_path);
    return error;
}

/* Nothing of hours of training is lost where they end without an agreement. */
static int keep(struct node *node, const struct parley_view *view, int error, char *why,
                size_t why_size)
{
    char cause[512] = "";
    bool left = error == PARLEY_OK;
    if (!left && error != PARLEY_ENO_AGREEMENT) return error;
    node_checkpoint_last(node);
    if (left && node->controlled) return error;
    int unsaved = keep_own(node, view, left, cause, sizeof cause);
    if (!unsaved) return error;
    if (!left) {
        say(PARLEY_LOG_WARN, "this node's own model is not saved: %s", cause);
        return error;
    }
    snprintf(why, why_size, "%s", cause);
    return unsaved;
}

static int finish(struct node *node, int error, char *why, size_t why_size)
{
    struct parley_result result;
    double accuracy = NAN, loss = NAN;
    parley_result(node->p, &result);
    if (result.aside && !result.view.in_memory_only) atomic_store(&node->model, node->own_path);
    if (result.agreed)
        trainer_evaluate(node->job.trainer, node->x, &node->job.data.test, &accuracy, &loss);
    if (result.agreed && !error && result.view.in_memory_only) error = PARLEY_ENOT_WRITTEN;
    if (!result.agreed) error = keep(node, &result.view, error, why, why_size);
    node_report_end(node, &result, accuracy, loss);
    return error;
}

static int live(struct node *node, char *why, size_t why_size)
{
    int error = node_control_start(node, why, why_size);
    signals_hold(false);
    if (error) return error;
    error = train(node, why, why_size);
    error = finish(node, error, why, why_size);
    node_control_end(node);
    return error;
}

int node_command(const struct settings *settings)
{
    char why[512] = "";
    struct node *node = calloc(1, sizeof *node);
    int status = node ? say_start() : say_failure(PARLEY_ENOMEM, NULL);
    if (status) {
        free(node);
        return status;
    }
    node->settings = settings;
    node->options.config.name = settings->name;
    atomic_init(&node->loss, NAN);
    atomic_init(&node->slow, 1);
    node_control_init(node);
    int error = node_report_init(node);
    if (!error) {
        error = prepare(node, why, sizeof why);
        if (!error) error = live(node, why, sizeof why);
        if (error) node_report_error(node, error, why);
        parley_close(node->p);
        node_checkpoint_close(node); /* who writes one may have something to say */
        int closed = node_report_close(node);
        if (!error) error = closed;
    }
    if (node->coverage.words)
        munmap((void *)node->coverage.words, coverage_bytes(node->coverage.samples));
    sampler_close(&node->own.sampler);
    job_close(&node->job);
    free(node->tensors);
    free(node->x);
    free(node);
    say_end();
    return parley_error_status(error);
}
