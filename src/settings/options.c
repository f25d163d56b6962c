/* options.c: the tables of options.def and of the verbs, and look-ups in them. */
#include "settings/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "report/text.h"
#include "settings/settings.h"

/* Counts have their limits as doubles; this one is the largest of 64 bits. */
#define SEED_MAX 18446744073709551615.0

#define RUN VERB_BIT(VERB_RUN)
#define NODE VERB_BIT(VERB_NODE)
#define SIM VERB_BIT(VERB_SIM)
#define STATUS VERB_BIT(VERB_STATUS)
#define BENCH VERB_BIT(VERB_BENCH)
#define MODEL VERB_BIT(VERB_MODEL)
#define TOPOLOGY VERB_BIT(VERB_TOPOLOGY)
#define CHECK VERB_BIT(VERB_CHECK)
#define ALL (RUN | NODE | SIM)
#define EVERY (VERB_BIT(VERB_COUNT) - 1)

/* check judges settings as node does, and takes what run, node or sim take. */
#define WITH_CHECK(verbs) ((verbs)&ALL ? (verbs) | CHECK : (verbs))
#define WITH_CHECK_LIKE_NODE(verbs) ((verbs)&NODE ? (verbs) | CHECK : (verbs))

#define NONE                                                                                       \
    {                                                                                              \
        NULL                                                                                       \
    }
#define WORDS(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

#define NUMBERS "; \",numbers\" behind csv:, libsvm: or npy: says that labels are numbers"

static const struct option_info options[] = {
#define O(id, text, letter_, kind_, group_, verbs_, field, metavar_, fallback_, fallback_verbs_,   \
          min_, max_, valid_, help_)                                                               \
    [OPTION_ID_##id] = {.name = text,                                                              \
                        .letter = letter_,                                                         \
                        .kind = OPTION_##kind_,                                                    \
                        .group = GROUP_##group_,                                                   \
                        .verbs = WITH_CHECK(verbs_),                                               \
                        .offset = offsetof(struct settings, field),                                \
                        .metavar = metavar_,                                                       \
                        .fallback = fallback_,                                                     \
                        .fallback_verbs = WITH_CHECK_LIKE_NODE(fallback_verbs_),                   \
                        .min = min_,                                                               \
                        .max = max_,                                                               \
                        .valid = valid_,                                                           \
                        .help = help_},
#include "settings/options.def"
#undef O
};

/* What an option is to some of its verbs, where that is not what it is to all others. */
static const struct {
    enum option_id id;
    unsigned verbs;
    const char *help;
} others[] = {
    {OPTION_ID_NODES, NODE | CHECK,
     "nodes of the whole cluster: --quorum majority is most of these"},
    {OPTION_ID_SEED, TOPOLOGY, "seed of a random graph"},
    {OPTION_ID_TIME, SIM, "length of training, in virtual time"},
    {OPTION_ID_OUT, SIM, "the agreed model, as safetensors (default: none is written)"},
    {OPTION_ID_MIN_PEERS, RUN, "each node trains once N others are alive (default: all)"},
    {OPTION_ID_DATA, BENCH, "what the nodes of bench run train on"},
    {OPTION_ID_DATA, MODEL, "what eval and predict try the model on" NUMBERS},
    {OPTION_ID_TEST, MODEL, "of eval: test data; else those of --data, or a fixed tenth of it"},
};

static const struct verb_info verbs[] = {
    [VERB_RUN] = {"run",
                  "",
                  0,
                  0,
                  {NULL},
                  NULL,
                  "N nodes on this machine, one agreed model",
                  "With no option at all: 4 nodes, the built-in digits, a few seconds."},
    [VERB_NODE] = {"node",
                   "",
                   0,
                   0,
                   {NULL},
                   NULL,
                   "one node of a cluster on many machines",
                   "Without --join it starts a cluster, and says the line that joins it."},
    [VERB_SIM] = {"sim",
                  "",
                  0,
                  0,
                  {NULL},
                  NULL,
                  "many nodes in virtual time, with faults",
                  "The same seed gives the same run, to the last bit. A list (1,4,16) or a range\n"
                  "(1..5, 0..60+20, 4..64x2) for a setting makes a run of each of its values; for\n"
                  "faults write --fault \"none or kill:10%@50%\"."},
    [VERB_STATUS] =
        {"status", "HOST:PORT", 0, 1, {NULL}, NULL, "a cluster as one node sees it", NULL},
    [VERB_BENCH] =
        {"bench",
         "step|mix|wire|start|run|sim",
         1,
         1,
         {"step", "mix", "wire", "start", "run", "sim", NULL},
         "is not a benchmark",
         "figures, each beside the machine's limit",
         "step is a local step, mix averaging in memory, wire an exchange over TCP, start\n"
         "processes up to their first step, run what processes come to (minutes; --data is\n"
         "its alone), sim the simulator. Ratio 1 is the limit."},
    [VERB_MODEL] =
        {"model",
         "inspect|eval|predict|verify|export|sample FILE",
         2,
         2,
         {"inspect", "eval", "predict", "verify", "export", "sample", NULL},
         "is not an action of model",
         "look into, try, verify, convert a saved model",
         "inspect prints the tensors and the digest, eval the accuracy on the test data,\n"
         "predict a line for each sample of --data (of idx and digits: of their test\n"
         "set), labelled or not: its class and the probability, or its number. verify\n"
         "recomputes the digest and the record of the agreement, export writes the\n"
         "tensors in another format, sample prints text from a model of text."},
    [VERB_CHECK] = {"check",
                    "",
                    0,
                    0,
                    {NULL},
                    NULL,
                    "settings and where each came from",
                    "Loads settings, data and model as node does, and starts nothing."},
    [VERB_TOPOLOGY] = {"topology",
                       "NAME",
                       1,
                       1,
                       {"complete", "ring", "torus", "exponential", "star",
                        "regular:", "base:", "file:", NULL},
                       "is not a topology",
                       "edges, degrees and spectral gap of a topology",
                       NULL},
    [VERB_KEYGEN] = {"keygen",
                     "FILE",
                     1,
                     1,
                     {NULL},
                     NULL,
                     "a new key for --cluster-key",
                     "Copy it to each machine of the cluster, by a way that nobody else can read.\n"
                     "Who has it may join, and say what any node may say."},
    [VERB_HELP] = {"help",
                   "[VERB|man]",
                   0,
                   1,
                   {"run", "node", "sim", "status", "bench", "model", "check", "topology", "keygen",
                    "help", "completion", "man", NULL},
                   "is not a verb",
                   "all verbs, a verb's options, or a manual page",
                   "parley help man | man -l - shows all of it as one page."},
    [VERB_COMPLETION] = {"completion",
                         "bash|zsh|fish",
                         1,
                         1,
                         {"bash", "zsh", "fish", NULL},
                         "is not a shell known here",
                         "a completion script for a shell",
                         "For bash: parley completion bash >\n"
                         "  ~/.local/share/bash-completion/completions/parley"},
};

const struct verb_info *verb_info(enum verb verb)
{
    return &verbs[verb];
}

const char *option_group_text(enum option_group group)
{
    static const char *const texts[GROUP_COUNT] = {
        "Size",       "Network", "Data",  "Training",          "Budget",   "Mixing and agreement",
        "Simulation", "Faults",  "State", "Export and sample", "Watching", "General"};
    return texts[group];
}

const struct option_info *option_info(enum option_id id)
{
    return &options[id];
}

const char *option_help(enum option_id id, enum verb verb)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].id == id && others[i].verbs & VERB_BIT(verb)) return others[i].help;
    return options[id].help;
}

enum option_id option_find(const char *name, enum verb verb)
{
    enum option_id any = OPTION_ID_COUNT;
    for (int id = OPTION_ID_COUNT - 1; id >= 0; id--) {
        if (strcmp(options[id].name, name) != 0) continue;
        if (options[id].verbs & VERB_BIT(verb)) return (enum option_id)id;
        any = (enum option_id)id;
    }
    return any;
}

bool option_is_setting(enum option_id id)
{
    return id != OPTION_ID_HELP && id != OPTION_ID_VERSION && id != OPTION_ID_CONFIG &&
           (options[id].verbs & ALL) != 0;
}

bool option_repeats(enum option_id id)
{
    return options[id].kind == OPTION_SEEDS || options[id].kind == OPTION_FAULTS ||
           options[id].kind == OPTION_LINKS;
}

bool option_sweeps(enum option_id id)
{
    switch (options[id].kind) {
    case OPTION_FLAG:
    case OPTION_ADDRESS:
    case OPTION_SHARD:
    case OPTION_RANGE:
    case OPTION_TEXT:
    case OPTION_NAME:
    case OPTION_SEEDS:
    case OPTION_STRATEGIES:
        return false;
    default:
        return options[id].verbs & SIM && options[id].group <= GROUP_FAULTS &&
               id != OPTION_ID_THREADS;
    }
}

const char *option_operand(const char *valid)
{
    static const char *const operands[][2] = {
        {"idx:", "DIR"},         {"csv:", "FILE"},    {"libsvm:", "FILE"},
        {"npy:", "DIR"},         {"text:", "FILE"},   {"mlp:", "WIDTHS"},
        {"resnet:", "N"},        {"quadratic:", "D"}, {"gpt:", "BLOCKS,WIDTH,HEADS"},
        {"dirichlet:", "ALPHA"}, {"ps-ssp:", "S"},    {"subset:", "P"},
        {"topk:", "P"},          {"regular:", "K"},   {"base:", "K"},
        {"file:", "PATH"},
    };
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (strcmp(valid, operands[i][0]) == 0) return operands[i][1];
    return "";
}

void option_add_words(struct text *text, const char *const *valid)
{
    for (int i = 0; valid[i]; i++)
        text_add(text, "%s%s%s", i ? ", " : "", valid[i], option_operand(valid[i]));
}

const char *option_variable(enum option_id id, char out[64])
{
    size_t length = (size_t)snprintf(out, 64, "PARLEY_%s", options[id].name);
    for (size_t i = 0; i < length; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
    return out;
}

const char *verbs_text(unsigned left, char out[VERBS_TEXT_BYTES])
{
    if (left != CHECK) left &= ~CHECK;
    size_t length = 0;
    out[0] = '\0';
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        if (!(left & VERB_BIT(verb))) continue;
        left &= ~VERB_BIT(verb);
        const char *before = length == 0 ? "" : left == 0 ? " and " : ", ";
        length += (size_t)snprintf(out + length, VERBS_TEXT_BYTES - length, "%s%s", before,
                                   verbs[verb].name);
    }
    return out;
}
