/* memory.c: no memory for the n-th allocation, for one n after the other, in each of the lives
 * below.
 *
 * The rule: who finds no memory returns PARLEY_ENOMEM, or goes on without; nothing crashes, nothing
 * is kept. A node allocates when it is made, and a step of the core allocates nothing; so it is the
 * drivers that can lack memory later: the simulator ends with an error, a real node drops a
 * connection. Where it was a library that found none, the error may be another, but it has a line.
 *
 * memory [N]: each of the first N allocations of each life fails once (100), of the rest some.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/checkpoint.h"
#include "file/npz.h"
#include "job/job.h"
#include "lack.h"
#include "parley/node.h"
#include "parley/sim.h"
#include "report/figures.h"
#include "saved.h"
#include "settings/simulate.h"

enum { FEW = 30 };

static char why[SETTINGS_WHY_BYTES];

/* What is written where memory lacked and the writer went on, is what it writes else: the first
 * time of each kind is kept. */
static int same(int kind, const void *bytes, size_t size)
{
    static struct {
        uint8_t bytes[4096];
        size_t size;
    } first[4];
    if (first[kind].size == 0 && size <= sizeof first[kind].bytes) {
        memcpy(first[kind].bytes, bytes, size);
        first[kind].size = size;
    }
    return first[kind].size == size && memcmp(first[kind].bytes, bytes, size) == 0
               ? 0
               : PARLEY_EINVARIANT;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static int make_nodes(void)
{
    int error = 0;
    for (int strategy = 0; strategy < PARLEY_STRATEGIES && !error; strategy++) {
        struct parley_config config;
        struct parley_updates updates;
        struct parley_node *node;
        parley_config_defaults(&config);
        config.name = "n0";
        config.address = "n0:7000";
        config.boot = 1;
        config.parameters = 10;
        config.strategy = (enum parley_strategy)strategy;
        config.topology = PARLEY_TOPOLOGY_REGULAR;
        config.topology_degree = 3;
        if ((error = parley_updates_init(&updates)) != 0) break;
        error = parley_node_new(&node, &config);
        if (!error) parley_node_free(node);
        parley_updates_close(&updates);
    }
    return error;
}

static void configure(struct parley_config *config, uint32_t node, void *strategy)
{
    config->strategy = *(enum parley_strategy *)strategy;
    config->min_peers = 2;
    config->steps_budget = 20;
}

/* Three nodes start, train, lose the third, which comes back, and agree. */
static int simulate(enum parley_strategy strategy)
{
    struct parley_sim *sim;
    int error = parley_sim_new(&sim, &(struct parley_sim_options){.nodes = 3,
                                                                  .parameters = 16,
                                                                  .rate = 0.1,
                                                                  .latency_us = 500,
                                                                  .configure = configure,
                                                                  .arg = &strategy});
    if (error) return error;
    error = parley_sim_run_for(sim, 10000);
    if (!error) parley_sim_kill(sim, 2, false);
    if (!error) error = parley_sim_run_for(sim, 1000000);
    if (!error) parley_sim_start(sim, 2);
    if (!error) error = parley_sim_step_until(sim, parley_sim_agreed, NULL, 90000000);
    const char *told;
    if (error && parley_sim_error(sim, &told) == error) snprintf(why, sizeof why, "%s", told);
    parley_sim_free(sim);
    return error;
}

static int simulate_gossip(void)
{
    return simulate(PARLEY_STRATEGY_GOSSIP);
}

static int simulate_server(void)
{
    return simulate(PARLEY_STRATEGY_PS_BSP);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* Files in memory, by their paths. */
static const struct {
    const char *path, *bytes;
    size_t size;
} files[] = {
#define FILE_OF(path, text)                                                                        \
    {                                                                                              \
        path, text, sizeof(text) - 1                                                               \
    }
    FILE_OF("t.csv", "w,h,label\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n0,1,c\n2,2,c\n9,9,a\n1,1,b\n4,4,c\n"
                     "3,3,a\n2,1,b\n5,5,c\n"),
    FILE_OF("n.csv", "1,2,3\n4,5,6\n7,8,9\n1,1,2\n5,5,5\n0,1,0\n2,2,2\n9,1,8\n4,4,4\n3,3,7\n"),
    FILE_OF("t.svm", "1 1:1 2:2\n2 2:3\n1 1:4\n2 1:1\n1 2:2\n2 1:9\n1 1:3\n2 2:2\n1 1:1\n2 2:5\n"),
    FILE_OF("t.txt",
            "To be, or not to be, that is the question: whether 'tis nobler in the mind\n"),
    FILE_OF("d/train-images-idx3-ubyte",
            "\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04\x05\x06"),
    FILE_OF("d/train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x03\0\x01\x02"),
    FILE_OF("d/t10k-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x02\x01\x02"),
    FILE_OF("d/t10k-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\0"),
    FILE_OF("g.txt", "n0 n1\nn1 n2\n"),
#undef FILE_OF
};

static bool file_exists(const char *path)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].path, path) == 0) return true;
    return false;
}

static int file_read(const char *path, uint64_t bytes_max, uint8_t **bytes, size_t *size,
                     char *text, size_t text_size)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].path, path) != 0) continue;
        *size = files[i].size;
        if (!(*bytes = malloc(*size))) {
            snprintf(text, text_size, "%s: %s", path, parley_error_text(PARLEY_ENOMEM));
            return PARLEY_ENOMEM;
        }
        memcpy(*bytes, files[i].bytes, *size);
        return 0;
    }
    snprintf(text, text_size, "%s: is not there", path);
    return PARLEY_EDATA;
}

static const struct source_reader reader = {file_exists, file_read};

static int load_data(void)
{
    static const char *const specs[] = {"csv:t.csv", "csv:n.csv,label=1,numbers", "libsvm:t.svm",
                                        "text:t.txt,window=4", "idx:d"};
    int error = 0;
    for (size_t i = 0; i < sizeof specs / sizeof *specs && !error; i++) {
        struct source source;
        error = source_load(&source, &reader, specs[i], NULL, why, sizeof why);
        source_close(&source);
    }
    /* The files are all right: no other reason may be given. */
    return error == PARLEY_ENOMEM && strstr(why, "too few") ? PARLEY_EINVARIANT : error;
}

static int write_and_read_models(void)
{
    const float *x = saved_x;
    struct model_meta meta = saved_meta();
    struct piece pieces[MODEL_FILE_PIECES];
    uint8_t bytes[4096], *archive;
    int error = digest_model(x, SAVED_FLOATS, saved_tensors, SAVED_TENSORS, meta.run, meta.digest);
    if (!error)
        error = model_file_pieces(&meta, x, SAVED_FLOATS, saved_tensors, SAVED_TENSORS, pieces);
    if (error) return error;
    size_t size = pieces[0].size;
    error = same(0, pieces[0].bytes, size);
    memcpy(bytes, pieces[0].bytes, size);
    memcpy(bytes + size, x, sizeof saved_x);
    free((void *)pieces[0].bytes);
    struct model_file file;
    if (!error) error = model_file_open(&file, bytes, size + sizeof saved_x, why, sizeof why);
    if (error) return error;
    error = model_file_verify(&file, why, sizeof why);
    if (!error) error = npz_write(file.tensors, file.tensor_count, file.x, &archive, &size);
    if (!error) free(archive);
    model_file_close(&file);
    return error;
}

static int write_and_read_checkpoints(void)
{
    static const float vectors[14];
    static const struct checkpoint made = {
        .node = "n0",
        .model = "mlp:3",
        .optimizer = "momentum",
        .data = "digits",
        .n = 7,
        .vectors = 2,
        .settings = {{"lr", "0.05"}},
        .settings_count = 1,
    };
    struct checkpoint read;
    uint8_t *header, bytes[4096];
    const uint8_t *found;
    size_t size;
    int error = checkpoint_header(&made, &header, &size);
    if (error) return error;
    error = same(1, header, size);
    memcpy(bytes, header, size);
    memcpy(bytes + size, vectors, sizeof vectors);
    size += sizeof vectors;
    free(header);
    if (!error) error = digest_bytes(bytes, size, bytes + size);
    if (error) return error;
    return checkpoint_read(&read, &found, bytes, size + DIGEST_BYTES, why, sizeof why);
}

static int write_and_read_records(void)
{
    static struct record_member members[] = {{"n0", true, true, true, 1},
                                             {"n1", true, true, true, 2}};
    struct record made = {.run = 1,
                          .node = "n0",
                          .cause = "budget",
                          .generation = 1,
                          .held = 2,
                          .live = 2,
                          .known = 2,
                          .drift_before = 0.25,
                          .members = members,
                          .member_count = 2};
    struct record read;
    char *text;
    int error = record_encode(&made, &text);
    if (error) return error;
    error = same(2, text, strlen(text));
    if (!error) error = record_decode(&read, (uint8_t *)text, strlen(text), why, sizeof why);
    if (!error) record_close(&read);
    free(text);
    return error;
}

static int write_figures(void)
{
    static const struct figure figure = {
        .name = "a figure", .unit = "/s", .value = 2, .repeats = 5};
    char *text = figure_json(&figure, true);
    int error = text ? same(3, text, strlen(text)) : PARLEY_ENOMEM;
    free(text);
    return error;
}

/* ---- Settings, and what is made of them ------------------------------------------------------ */

static int take_settings(struct settings *settings, char *const *argv, int argc)
{
    static const char yaml[] = "lr: 0.1\nmomentum: 0.5\njoin: [a:1, b:2]\n";
    static char *const environment[] = {"PARLEY_SEED=3", "NO_COLOR=1", NULL};
    int error = settings_flags(settings, argc, argv, why);
    if (!error) error = settings_environment(settings, environment, why);
    if (!error) error = settings_file(settings, "x.yaml", yaml, sizeof yaml - 1, why);
    return error ? error : settings_finish(settings, why);
}

static int read_settings(void)
{
    static char *const argv[] = {"parley",
                                 "sim",
                                 "--nodes=4..16x2",
                                 "--strategy=gossip,ps-bsp",
                                 "--fault=kill:1@50% or join:1@20%",
                                 "--link=n0|n1:latency=5ms"};
    struct settings settings, copy;
    const char *texts[OPTION_ID_COUNT] = {0};
    char **arguments;
    size_t count;
    settings_init(&settings);
    int error = take_settings(&settings, argv, 6);
    if (!error) error = settings_forward(&settings, &arguments, &count);
    if (!error) free(arguments);
    if (!error) {
        error = settings_copy(&copy, &settings, texts, why);
        settings_close(&copy);
    }
    settings_close(&settings);
    return error;
}

static int train_a_job(void)
{
    static char *const argv[] = {"parley",           "sim",
                                 "--data=csv:t.csv", "--model=mlp:4",
                                 "--batch=2",        "--topology=file:g.txt",
                                 "--nodes=3",        "--optimizer=adam"};
    static const char *const names[] = {"n0", "n1", "n2"};
    struct settings settings;
    settings_init(&settings);
    int error = take_settings(&settings, argv, 8);
    struct job job;
    if (!error) {
        uint32_t samples;
        struct trainer_node node = {0};
        error = job_init(&job, &settings, NULL, &reader, why, sizeof why);
        struct partition_gone gone = {"n3", 7};
        struct job_members members = {names, 3, &gone, 1};
        for (int times = 0; times < 2 && !error; times++)
            error = job_share(&job, &node, "n1", &members, &samples, why, sizeof why);
        sampler_close(&node.sampler);
        job_close(&job);
    }
    settings_close(&settings);
    return error;
}

static int words; /* of errors */

static void count_words(enum parley_log level, const char *line)
{
    (void)line;
    words += level == PARLEY_LOG_ERROR;
}

/* It says what has gone wrong itself. */
static int experiment(void)
{
    static char *const argv[] = {"parley",
                                 "sim",
                                 "--data=csv:t.csv",
                                 "--model=softmax",
                                 "--batch=2",
                                 "--nodes=2",
                                 "--threads=1",
                                 "--epochs=20",
                                 "--json=/dev/null",
                                 "--csv=/dev/null",
                                 "--curves=/dev/null",
                                 "--report=failing-memory.svg"};
    struct settings settings;
    settings_init(&settings);
    int error = settings_flags(&settings, 12, argv, why);
    if (!error) error = settings_finish(&settings, why);
    if (!error) {
        words = 0;
        error = sim_command(&settings, &reader, count_words);
        remove(settings.report);
        if (error && words == 0) {
            printf("an experiment ends without a word: %s\n", parley_error_name(error));
            error = PARLEY_EINVARIANT;
        }
    }
    settings_close(&settings);
    return error;
}

/* ---- Failing --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*live)(void);
} lives[] = {
    {"nodes of each strategy", make_nodes},
    {"a simulation of gossip", simulate_gossip},
    {"a simulation of ps-bsp", simulate_server},
    {"data", load_data},
    {"models", write_and_read_models},
    {"checkpoints", write_and_read_checkpoints},
    {"records", write_and_read_records},
    {"figures", write_figures},
    {"settings", read_settings},
    {"a job", train_a_job},
    {"an experiment", experiment},
};

/* The n-th allocation fails; true if that went well. 0: none does. */
static bool fail(const char *name, int (*live)(void), uint64_t n, bool *went_on)
{
    int64_t kept = lack_kept();
    why[0] = '\0';
    lack_start(n);
    int error = live();
    kept = lack_kept() - kept;
    bool failed = lack_failed();
    size_t said = strlen(why);
    *went_on = failed && error == 0;
    bool right = error == 0 || (failed && error == PARLEY_ENOMEM) ||
                 (lack_in_library() && error != PARLEY_EINVARIANT && why[0]);
    bool reason = error == 0 || said == 0 || why[said - 1] != ' '; /* behind what lacked it */
    if (kept == 0 && right && reason) return true;
    fprintf(stderr, "%s, allocation %llu: %s (%s), %lld blocks kept\n", name, (unsigned long long)n,
            parley_error_name(error), why, (long long)kept);
    return false;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    int broken = 0;
    lack_init();
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        uint64_t tries = 0, ends = 0;
        bool went_on;
        /* Twice: what a library fetches but once is no part of a life. */
        for (int pass = 0; pass < 2; pass++)
            broken += !fail(lives[i].name, lives[i].live, 0, &went_on) && pass == 1;
        uint64_t all = lack_made();
        for (uint64_t n = 1; n <= all; n += n < first ? 1 : 1 + (all - first) / FEW) {
            broken += !fail(lives[i].name, lives[i].live, n, &went_on);
            tries++;
            ends += !went_on;
        }
        printf("%-24s %6llu allocations, %5llu failed: %5llu times an error, else went on\n",
               lives[i].name, (unsigned long long)all, (unsigned long long)tries,
               (unsigned long long)ends);
        fflush(stdout);
    }
    return broken > 0;
}
