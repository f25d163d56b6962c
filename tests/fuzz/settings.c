/* settings.c: settings files, command lines, environments; files of links and of peers. Whatever
 * stands there, it is taken, or refused by one line; what was taken can be told to a child. */
#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "job/graph.h"

static char why[SETTINGS_WHY_BYTES];

static void check_line(int error)
{
    if (!error) return;
    FUZZ_CHECK(error == PARLEY_EUSAGE && why[0]);
    FUZZ_CHECK(strlen(why) < SETTINGS_WHY_BYTES && !strchr(why, '\n'));
}

/* What the processes of `parley run` do with their settings; all runs of a sweep alike. */
static void use(const struct settings *settings)
{
    char **arguments, origin[SETTINGS_WHY_BYTES];
    size_t count;
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        settings_origin_text(settings, (enum option_id)id, origin);
    if (settings->verb == VERB_RUN) {
        FUZZ_CHECK(settings_forward(settings, &arguments, &count) == 0);
        FUZZ_CHECK(arguments[count] == NULL);
        free(arguments);
    }
    const char *texts[OPTION_ID_COUNT] = {0};
    struct settings copy;
    int error = settings_copy(&copy, settings, texts, why);
    FUZZ_CHECK(error == 0 || settings->verb == VERB_SIM);
    settings_close(&copy);
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* The first byte: of which command. */
void fuzz_settings(const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    static char *const commands[][3] = {
        {"parley", "run"}, {"parley", "node"}, {"parley", "sim"}, {"parley", "check"}};
    struct settings settings;
    settings_init(&settings);
    why[0] = 0;
    FUZZ_CHECK(settings_flags(&settings, 2, commands[fuzz_below(&input, 4)], why) == 0);
    int error = settings_file(&settings, "x.yaml", input.at, input.left, why);
    if (!error) error = settings_finish(&settings, why);
    check_line(error);
    if (!error) use(&settings);
    settings_close(&settings);
}

static void emit_text(fuzz_emit *emit, void *context, uint8_t first, const char *text)
{
    uint8_t bytes[4096] = {first};
    memcpy(bytes + 1, text, strlen(text));
    emit(context, bytes, 1 + strlen(text));
}

void fuzz_settings_seeds(fuzz_emit *emit, void *context)
{
    /* Each setting with its default; and values of each kind. */
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        char text[512];
        if (!option_is_setting((enum option_id)id)) continue;
        snprintf(text, sizeof text, "%s: %s\n", info->name,
                 info->fallback   ? info->fallback
                 : info->valid[0] ? info->valid[0]
                                  : "1");
        emit_text(emit, context, 2, text);
    }
    static const char *const texts[] = {
        "join: [n0:7000, \"[::1]:7000\", dns:x:1]\nmix-every: 1,8@50%\n# a comment\n",
        "model: mlp:256,128\nepochs: 2.5\nlr: 1e-3\ndata: csv:t.csv,label=2\n",
        "seed: 1..5\nnodes: 4..64x2\nmodel: [softmax, \"mlp:3,4\"]\nstrategy: [gossip, ps-ssp:4]\n",
        "fault: [kill:1@50%, \"partition:n0,n1|n2@1s+2s\"]\nlatency: lognormal:5ms,0.3\n",
        "link: \"n0-n3|n4-n7:latency=50ms,bandwidth=10Mbit\"\nnodes: 8\n",
        "a: &x 1\nb: *x\n",
        "lr: !!float 1\n",
        "lr: {a: b}\n---\nlr: 1\n"};
    for (size_t i = 0; i < 4 * sizeof texts / sizeof *texts; i++)
        emit_text(emit, context, (uint8_t)(i % 4), texts[i / 4]);
}

/* The first byte: a file of links, or of peers. */
void fuzz_graph(const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    why[0] = 0;
    if (fuzz_below(&input, 2) == 0) {
        struct graph graph = {0};
        int error = graph_parse(&graph, "g.txt", input.at, input.left, why, sizeof why);
        FUZZ_CHECK(error == 0 || why[0]);
        for (uint32_t i = 0; !error && i < graph.graph.first[graph.graph.nodes]; i++)
            FUZZ_CHECK(graph.graph.ends[i] < graph.graph.nodes);
        if (!error) graph_digest(&graph);
        graph_close(&graph);
    } else {
        struct seeds seeds = {0};
        int error = seeds_add_file(&seeds, (const char *)input.at, input.left, why);
        FUZZ_CHECK(error == 0 || (why[0] && seeds.count == 0));
        seeds_close(&seeds);
    }
}

void fuzz_graph_seeds(fuzz_emit *emit, void *context)
{
    emit_text(emit, context, 0, "n0 n1\nn1 n2 # a comment\n\nn2\tn0\nn0 n1\n");
    emit_text(emit, context, 0, "a b\nc d\n");
    emit_text(emit, context, 1, "n0:7000\r\n # x\n[::1]:80\n127.0.0.1:1\ndns:seeds.example:7000\n");
}

/* ---- Command lines --------------------------------------------------------------------------- */

enum { WORDS_MAX = 64, LINE_BYTES_MAX = 4096 };

/* Words end with a line feed; those that begin with a tilde are of the environment. */
void fuzz_flags(const uint8_t *bytes, size_t size)
{
    if (size > LINE_BYTES_MAX) return;
    char line[LINE_BYTES_MAX + 1], *argv[WORDS_MAX + 2] = {"parley"}, *environment[WORDS_MAX + 1];
    int argc = 1, variables = 0;
    if (size > 0) memcpy(line, bytes, size);
    line[size] = 0;
    for (char *word = line, *next; word && argc < WORDS_MAX; word = next) {
        next = strchr(word, '\n');
        if (next) *next++ = 0;
        if (*word == '~' && variables < WORDS_MAX)
            environment[variables++] = word + 1;
        else
            argv[argc++] = word;
    }
    argv[argc] = environment[variables] = NULL;

    struct settings settings;
    settings_init(&settings);
    why[0] = 0;
    int error = settings_flags(&settings, argc, argv, why);
    if (!error) error = settings_environment(&settings, environment, why);
    if (!error) error = settings_finish(&settings, why);
    check_line(error);
    if (!error) use(&settings);
    settings_close(&settings);
}

void fuzz_flags_seeds(fuzz_emit *emit, void *context)
{
    static const char *const lines[] = {
        "run\n-n\n8\n--data=idx:mnist\n--model\nmlp:256,128\n--epochs\n4",
        "node\n--name\nn0\n--listen=127.0.0.1:0\n--join\na:1,[::1]:2\n--min-peers=2",
        "sim\n--nodes=4,8\n--seed=1..5\n--strategy\ngossip,ps-ssp:2\n--fault\nkill:10%@50%",
        "sim\n--swarm\n--seeds\n1..100\n--tally=t",
        "sim\n--compare=all\n--report=r.html\n--csv=x.csv\n--curves=-\n--latency=uniform:1ms,9ms",
        "status\n127.0.0.1:7000\n--json",
        "model\nverify\nm.safetensors\nr.json",
        "topology\n--topology\nbase:2\n-n\n12\n--dot",
        "bench\nwire\n--quick",
        "help\nrun",
        "run\n~PARLEY_EPOCHS=2\n~NO_COLOR=1\n~PARLEY_MIX_EVERY=auto\n~PARLEY_EPOCH=3",
        "run\n--\nx",
        "completion\nbash",
        "check\n--config=x.yaml"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        emit(context, lines[i], strlen(lines[i]));
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        char line[512];
        int verb = 0;
        while (!(info->verbs & VERB_BIT(verb)))
            verb++;
        const char *value = info->fallback ? info->fallback : info->valid[0] ? info->valid[0] : "1";
        snprintf(line, sizeof line, "%s\n--%s%s%s", verb_info((enum verb)verb)->name, info->name,
                 info->metavar ? "=" : "", info->metavar ? value : "");
        emit(context, line, strlen(line));
    }
}
