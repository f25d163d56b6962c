/* checkpoint.c: a node's state on disk, now and then, and taken up again.
 *
 *   --resume: the newest whole file of this node's name; damaged ones are named and passed over,
 *   and where there are no others the node ends: nobody trains anew who asked to go on
 *   at a boundary, when it is time: a copy of the vectors, which a thread writes beside the others
 *   and renames; the two newest stay
 *   as it leaves: a last one
 *   where a majority decides: beside them, what is kept of its votes (disk/vote.h)
 *
 * Files are checkpoint_files.h's. What can't be written is said, and tried again when it is time
 * for the next; what was there stays.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/node/checkpoint_files.h"
#include "cli/node/node.h"
#include "clock.h"
#include "disk/durable.h"
#include "disk/vote.h"
#include "quiet.h"

static const char *directory(const struct node *node)
{
    return node->settings->checkpoint;
}

static void path_of(const struct node *node, uint64_t number, char path[CHECKPOINT_PATH_BYTES])
{
    checkpoint_files_path(directory(node), node_name(node), number, path);
}

/* ---- Taking up again ------------------------------------------------------------------------- */

static int check_kind(const struct node *node, const struct checkpoint *checkpoint, char *why,
                      size_t why_size)
{
    const char *model = model_spec(node->job.model), *optimizer = node->settings->optimizer;
    if (strcmp(checkpoint->model, model) == 0 && strcmp(checkpoint->optimizer, optimizer) == 0 &&
        checkpoint->n == trainer_parameters(node->job.trainer) &&
        checkpoint->vectors == node->options.config.vectors)
        return 0;
    snprintf(why, why_size,
             "--resume: %s has a checkpoint of %s with %s (%" PRIu64 " parameters), these settings "
             "make %s with %s (%zu); give the same settings, or another --checkpoint",
             directory(node), checkpoint->model, checkpoint->optimizer, checkpoint->n, model,
             optimizer, trainer_parameters(node->job.trainer));
    return PARLEY_EMISMATCH;
}

/* Its place in the data, and what it knows of them, are nothing to others. */
static int check_data(const struct node *node, const struct checkpoint *checkpoint, char *why,
                      size_t why_size)
{
    if (strcmp(checkpoint->data, node->job.data.name) == 0) return 0;
    snprintf(why, why_size,
             "--resume: %s has a checkpoint that was trained on other data (%s) than these (%s); "
             "give the same --data, or another --checkpoint",
             directory(node), checkpoint->data, node->job.data.name);
    return PARLEY_EMISMATCH;
}

/* What is another now than it was: by name, with both. */
static void say_other_settings(const struct node *node, const struct checkpoint *checkpoint)
{
    char said[1024] = "";
    for (uint32_t i = 0; i < node->job.shared_count; i++) {
        const struct parley_setting *now = &node->job.shared[i];
        const char *then = "";
        for (uint32_t j = 0; j < checkpoint->settings_count; j++)
            if (strcmp(checkpoint->settings[j].name, now->name) == 0)
                then = checkpoint->settings[j].value;
        size_t at = strlen(said);
        if (strcmp(then, now->value) != 0)
            snprintf(said + at, sizeof said - at, "%s %s %s (was %s)", at ? "," : ":", now->name,
                     now->value, then[0] ? then : "not there");
    }
    say(PARLEY_LOG_INFO,
        "--resume: goes on with other settings than the checkpoint was made with%s",
        said[0] ? said : ": another --cluster");
}

static void take_up(struct node *node, const struct checkpoint *checkpoint, const uint8_t *vectors)
{
    size_t bytes = checkpoint->n * sizeof(float);
    for (uint32_t v = 0; v < checkpoint->vectors; v++)
        memcpy(node->options.vectors[v], vectors + v * bytes, bytes);
    node->resumed = *checkpoint;
    atomic_store(&node->place, checkpoint->pass * SAMPLER_SLICES + checkpoint->position);
    if (checkpoint->run != node->job.run) say_other_settings(node, checkpoint);
    node->options.config.resumed = (struct parley_resumed){
        .steps = checkpoint->steps,
        .samples = checkpoint->samples,
        .state_steps = checkpoint->state_steps,
        .samples_cluster = checkpoint->samples_cluster,
        .trained_us = checkpoint->trained_us,
    };
}

/* 1: the file is of no use, and that was said. */
static int resume_from(struct node *node, uint64_t number, char *why, size_t why_size)
{
    char path[CHECKPOINT_PATH_BYTES], reason[256] = "", said[CHECKPOINT_PATH_BYTES + 300];
    struct checkpoint checkpoint;
    const uint8_t *vectors;
    uint8_t *bytes;
    size_t size;
    path_of(node, number, path);
    int error = durable_read(path, &bytes, &size, reason, sizeof reason)
                    ? PARLEY_EDATA
                    : checkpoint_read(&checkpoint, &vectors, bytes, size, reason, sizeof reason);
    if (error == PARLEY_EDATA) {
        if (bytes)
            snprintf(said, sizeof said, "%s is passed over: %s", path, reason);
        else
            snprintf(said, sizeof said, "passed over: %s", reason); /* which names it */
        node_report_trouble(node, error, said);
        error = 1;
    }
    if (!error) error = check_kind(node, &checkpoint, why, why_size);
    if (!error) error = check_data(node, &checkpoint, why, why_size);
    if (!error) take_up(node, &checkpoint, vectors);
    free(bytes);
    return error;
}

/* Made where it is not there; files must go in and be found again. */
static int open_directory(const struct node *node, char *why, size_t why_size)
{
    char inside[CHECKPOINT_PATH_BYTES];
    snprintf(inside, sizeof inside, "%s/.", directory(node));
    if ((!mkdir(directory(node), 0777) || errno == EEXIST) && !access(inside, R_OK | W_OK | X_OK))
        return 0;
    snprintf(why, why_size, "--checkpoint: %s: %s; give a directory that can be written to",
             directory(node), strerror(errno));
    return PARLEY_EUSAGE;
}

static void use_vote(struct node *node)
{
    char *path = node->checkpoint.vote;
    if (node->settings->quorum != PARLEY_QUORUM_MAJORITY) return;
    snprintf(path, CHECKPOINT_PATH_BYTES, "%s/%s" CHECKPOINT_VOTE, directory(node),
             node_name(node));
    if (!node->settings->resume) vote_forget(path, node->job.run);
    node->options.vote = path;
}

int node_checkpoint_init(struct node *node, char *why, size_t why_size)
{
    bool damaged = false;
    if (!directory(node)) return 0;
    node->checkpoint.taken_us = clock_now_us();
    int error = open_directory(node, why, why_size);
    if (!error)
        error = checkpoint_files_lock(directory(node), node_name(node), &node->checkpoint.lock, why,
                                      why_size);
    if (error) return error;
    use_vote(node);
    int found = checkpoint_files_newest(directory(node), node_name(node), UINT64_MAX,
                                        &node->checkpoint.newest);
    if (!node->settings->resume) {
        if (found > 0 && !node->controlled)
            say(PARLEY_LOG_WARN, CHECKPOINT_FILES_REPLACED, directory(node), node_name(node));
        return 0;
    }
    for (uint64_t number = node->checkpoint.newest; found > 0;) {
        error = resume_from(node, number, why, why_size);
        if (error != 1) return error;
        damaged = true;
        found = checkpoint_files_newest(directory(node), node_name(node), number, &number);
    }
    if (found < 0) {
        snprintf(why, why_size, "--resume: %s can't be listed: %s", directory(node),
                 strerror(errno));
        return PARLEY_EDATA;
    }
    if (damaged) {
        snprintf(why, why_size,
                 "--resume: no file of %s/%s-*" CHECKPOINT_SUFFIX
                 " can be gone on from; move them away, or start without --resume",
                 directory(node), node_name(node));
        return PARLEY_EDATA;
    }
    say(PARLEY_LOG_INFO, "no checkpoint of %s in %s: starts with the first model, or a peer's",
        node_name(node), directory(node));
    return 0;
}

/* ---- Making one ------------------------------------------------------------------------------ */

static int write_file(const struct node *node, char *why, size_t why_size)
{
    const struct node_checkpoint *c = &node->checkpoint;
    size_t bytes = c->head.vectors * c->head.n * sizeof *c->copy;
    uint8_t digest[DIGEST_BYTES];
    char path[CHECKPOINT_PATH_BYTES], part[CHECKPOINT_PATH_BYTES + 8];
    struct piece pieces[3] = {{NULL, 0}, {c->copy, bytes}, {digest, sizeof digest}};
    uint8_t *header = NULL;
    int error = checkpoint_header(&c->head, &header, &pieces[0].size);
    if (error) return error;
    pieces[0].bytes = header;
    error = pieces_digest(pieces, 2, digest);
    path_of(node, c->number, path);
    /* One name for all steps: what a killed process left, the next one's overwrites. */
    snprintf(part, sizeof part, "%s/%s" CHECKPOINT_SUFFIX ".part", directory(node),
             node_name(node));
    if (!error) error = durable_replace_by(part, path, pieces, 3, why, why_size);
    free(header);
    return error;
}

static void say_unmade(struct node *node, int error, uint64_t steps, const char *why)
{
    char said[600];
    snprintf(said, sizeof said, "no checkpoint at step %" PRIu64 ": %s", steps, why);
    node_report_trouble(node, error, said);
}

static void write_one(void *pointer)
{
    struct node *node = pointer;
    char why[512] = "";
    int error = write_file(node, why, sizeof why);
    struct node_checkpoint *c = &node->checkpoint;
    if (error) {
        say_unmade(node, error, c->head.steps, why[0] ? why : parley_error_text(error));
    } else {
        c->newest = c->number;
        checkpoint_files_trim(directory(node), node_name(node));
    }
    atomic_store(&c->busy, false);
}

static void copy_state(struct node *node)
{
    struct node_checkpoint *c = &node->checkpoint;
    uint64_t place = sampler_place(&node->own.sampler);
    size_t n = trainer_parameters(node->job.trainer);
    /* Of steps that all make in common a node may have made few, or some that went to no model.
     * Those since the driver's last look went to it. */
    uint64_t known = node->steps_known, since = node->steps - node->steps_then;
    bool common = parley_strategy_splits(node->options.config.strategy) && known > 0;
    c->head = (struct checkpoint){
        .run = node->job.run,
        .n = n,
        .vectors = node->options.config.vectors,
        .steps = common ? known + since : node->resumed.steps + node->steps,
        .samples = node->resumed.samples + atomic_load(&node->samples),
        .state_steps = node->state_steps,
        .samples_cluster = atomic_load(&node->samples_cluster),
        .trained_us = atomic_load(&node->trained_us),
        .pass = place / SAMPLER_SLICES,
        .position = place % SAMPLER_SLICES,
    };
    c->number = c->head.steps > c->newest ? c->head.steps : c->newest + 1;
    snprintf(c->head.node, sizeof c->head.node, "%s", node_name(node));
    snprintf(c->head.model, sizeof c->head.model, "%s", model_spec(node->job.model));
    snprintf(c->head.optimizer, sizeof c->head.optimizer, "%s", node->settings->optimizer);
    snprintf(c->head.data, sizeof c->head.data, "%s", node->job.data.name);
    for (uint32_t i = 0; i < node->job.shared_count; i++) {
        struct checkpoint_setting *setting = &c->head.settings[c->head.settings_count++];
        snprintf(setting->name, sizeof setting->name, "%s", node->job.shared[i].name);
        snprintf(setting->value, sizeof setting->value, "%s", node->job.shared[i].value);
    }
    for (uint32_t v = 0; v < c->head.vectors; v++)
        memcpy(c->copy + v * n, node->options.vectors[v], n * sizeof *c->copy);
    /* The optimizer's are of another model, which this node served once. */
    if (c->head.state_steps == 0)
        memset(c->copy + n, 0, (c->head.vectors - 1) * n * sizeof *c->copy);
}

/* Once no other is under way. False: there is no memory for it. */
static bool begin(struct node *node)
{
    struct node_checkpoint *c = &node->checkpoint;
    size_t floats = node->options.config.vectors * trainer_parameters(node->job.trainer);
    if (c->started) uv_thread_join(&c->thread);
    c->started = false;
    if (!c->copy) c->copy = malloc(floats * sizeof *c->copy);
    if (!c->copy) return false;
    copy_state(node);
    atomic_store(&c->busy, true);
    return true;
}

static const char no_means[] = "no memory or thread for it";

void node_checkpoint_step(struct node *node)
{
    struct node_checkpoint *c = &node->checkpoint;
    uint64_t now_us = directory(node) ? clock_now_us() : 0;
    bool asked = atomic_load_explicit(&c->asked, memory_order_relaxed);
    if (!directory(node) || node->steps == 0 || atomic_load(&c->busy)) return;
    if (!asked && now_us < c->taken_us + node->settings->checkpoint_every_us) return;
    c->taken_us = now_us;
    atomic_store(&c->asked, false);
    if (begin(node)) c->started = quiet_thread_start(&c->thread, write_one, node) == 0;
    if (c->started) return;
    atomic_store(&c->busy, false);
    say_unmade(node, PARLEY_ENOMEM, node->steps, no_means);
}

void node_checkpoint_last(struct node *node)
{
    const struct node_checkpoint *c = &node->checkpoint;
    if (!directory(node) || node->steps == 0) return;
    if (!begin(node)) {
        say_unmade(node, PARLEY_ENOMEM, node->steps, no_means);
        return;
    }
    write_one(node);
    char path[CHECKPOINT_PATH_BYTES];
    path_of(node, c->number, path);
    if (c->newest == c->number)
        say(PARLEY_LOG_INFO, "a last checkpoint, of step %" PRIu64 ", is %s", c->head.steps, path);
}

void node_checkpoint_close(struct node *node)
{
    if (node->checkpoint.started) uv_thread_join(&node->checkpoint.thread);
    if (node->checkpoint.lock > 0) close(node->checkpoint.lock);
    free(node->checkpoint.copy);
}
