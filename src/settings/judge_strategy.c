/* judge_strategy.c: what each strategy of averaging does not go with. */
#include <stdio.h>
#include <string.h>

#include "core/topology/topology.h"
#include "core/transfer/codec.h"
#include "parley/config.h"
#include "settings/judge.h"
#include "train/trainer.h"

static bool is_served(int strategy)
{
    return strategy == PARLEY_STRATEGY_PS_BSP || strategy == PARLEY_STRATEGY_PS_ASP ||
           strategy == PARLEY_STRATEGY_PS_SSP;
}

/* Who sends models, or what there is of them, by codec; the others send fp32. */
static bool has_codecs(int strategy)
{
    return strategy == PARLEY_STRATEGY_GOSSIP || strategy == PARLEY_STRATEGY_CHOCO;
}

bool settings_heeds(int strategy, enum option_id id)
{
    bool gradients = parley_strategy_splits((enum parley_strategy)strategy);
    bool apart = strategy == PARLEY_STRATEGY_NONE;
    bool of_all =
        gradients || strategy == PARLEY_STRATEGY_LOCAL_SGD || strategy == PARLEY_STRATEGY_DILOCO;
    if (id == OPTION_ID_BACKUP_WORKERS) return strategy == PARLEY_STRATEGY_PS_BSP;
    if (id == OPTION_ID_OUTER_LR || id == OPTION_ID_OUTER_MOMENTUM)
        return strategy == PARLEY_STRATEGY_DILOCO || strategy == PARLEY_STRATEGY_NOLOCO;
    if (id == OPTION_ID_CHOCO_STEP) return strategy == PARLEY_STRATEGY_CHOCO;
    if (id == OPTION_ID_MIX_EVERY) return !gradients && !apart;
    if (id == OPTION_ID_MOMENTUM_MODE) return !apart;
    if (id == OPTION_ID_CODEC) return has_codecs(strategy);
    if (id == OPTION_ID_ROBUST) return strategy == PARLEY_STRATEGY_GOSSIP;
    return id != OPTION_ID_TOPOLOGY || (!of_all && !apart);
}

static int judge_mix_every(const struct settings *settings, char *why)
{
    const struct settings_value *every = &settings->values[OPTION_ID_MIX_EVERY];
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    bool heeds = settings_heeds(settings->strategy, OPTION_ID_MIX_EVERY);
    bool apart = settings->strategy == PARLEY_STRATEGY_NONE;
    if (every->origin > ORIGIN_DEFAULT && !heeds)
        return judge_refuse(
            why,
            "--mix-every: \"%s\" local steps, but %s averages %s; --strategy local-sgd, diloco "
            "or gossip average models so often",
            every->text, strategy, apart ? "nothing until the end" : "the gradients of every step");
    if (settings->strategy > PARLEY_STRATEGY_NONE &&
        (settings->mix_every.steered || settings->mix_every.later_count > 0))
        return judge_refuse(why,
                            "--mix-every: \"%s\" is for --strategy gossip; %s takes one number",
                            every->text, strategy);
    return 0;
}

/* A number that stands in the equations `of` some alone. */
struct number {
    enum option_id id;
    const char *of;
};

static int judge_number(const struct settings *settings, const struct number *number, bool heeds,
                        const char *chosen, char *why)
{
    const struct settings_value *value = &settings->values[number->id];
    if (heeds || value->origin <= ORIGIN_DEFAULT) return 0;
    return judge_refuse(why, "--%s: \"%s\" is of %s; %s has nothing of the kind",
                        option_info(number->id)->name, value->text, number->of, chosen);
}

static int judge_numbers(const struct settings *settings, char *why)
{
    static const struct number numbers[] = {
        {OPTION_ID_OUTER_LR, "the outer optimizer of --strategy diloco and noloco"},
        {OPTION_ID_OUTER_MOMENTUM, "the outer optimizer of --strategy diloco and noloco"},
        {OPTION_ID_CHOCO_STEP, "--strategy choco's averaging"},
    };
    int error = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !error; i++) {
        bool heeds = settings_heeds(settings->strategy, numbers[i].id);
        error = judge_number(settings, &numbers[i], heeds,
                             settings->values[OPTION_ID_STRATEGY].text, why);
    }
    return error;
}

/* What is given and changes nothing was meant for another strategy. */
int judge_strategy(const struct settings *settings, char *why)
{
    const struct settings_value *topology = &settings->values[OPTION_ID_TOPOLOGY];
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    bool apart = settings->strategy == PARLEY_STRATEGY_NONE;
    int error = judge_mix_every(settings, why);
    if (!error) error = judge_numbers(settings, why);
    if (error) return error;
    if (settings->strategy != PARLEY_STRATEGY_GOSSIP &&
        settings->momentum_mode == TRAINER_MOMENTUM_AVERAGED)
        return judge_refuse(
            why,
            "--momentum-mode: \"averaged\" is for --strategy gossip, whose exchanges carry it; "
            "%s's don't (use local)",
            strategy);
    if (topology->origin > ORIGIN_DEFAULT && strcmp(settings->topology, "complete") != 0 &&
        !settings_heeds(settings->strategy, OPTION_ID_TOPOLOGY))
        return judge_refuse(why,
                            "--topology: \"%s\" says who exchanges with whom, but %s%s%s; "
                            "--strategy gossip heeds it",
                            topology->text, apart ? "" : "the rounds of ", strategy,
                            apart ? " exchanges nothing until the end, and then with all"
                                  : " are of all nodes");
    return 0;
}

int judge_servers(const struct settings *settings, char *why)
{
    unsigned long long backups = settings->backup_workers, nodes = settings->nodes;
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    if (backups > 0 && settings->strategy != PARLEY_STRATEGY_PS_BSP)
        return judge_refuse(
            why,
            "--backup-workers: \"%llu\" of the slowest are left out of a step by --strategy "
            "ps-bsp only, not by %s",
            backups, strategy);
    if (backups > 0 && nodes > 0 && backups >= nodes)
        return judge_refuse(
            why,
            "--backup-workers: \"%llu\" leaves nobody of %llu nodes (--nodes) to make a step; "
            "at most %llu",
            backups, nodes, nodes - 1);
    if (is_served(settings->strategy) && nodes > PARLEY_SERVED_MAX)
        return judge_refuse(
            why,
            "--strategy: \"%s\" has one node that serves all, at most %d; --nodes is %llu (use "
            "gossip)",
            strategy, PARLEY_SERVED_MAX, nodes);
    return 0;
}

/* What has been thought through and tried. */
int judge_robust(const struct settings *settings, char *why)
{
    if (!settings->robust) return 0;
    if (settings->strategy != PARLEY_STRATEGY_GOSSIP)
        return judge_refuse(
            why,
            "--robust: clips what two nodes of --strategy gossip add to their models; %s has "
            "nothing of the kind",
            settings->values[OPTION_ID_STRATEGY].text);
    if (strcmp(settings->codec, "fp32") != 0)
        return judge_refuse(why,
                            "--robust: compares whole models; --codec \"%s\" sends less (use fp32)",
                            settings->codec);
    if (settings->momentum_mode == TRAINER_MOMENTUM_AVERAGED)
        return judge_refuse(
            why, "--robust: looks at models, and --momentum-mode averaged adds momenta unseen; use "
                 "quasi-global");
    return 0;
}

/* A lie takes the place of floats as they are sent, and those of liars that collude of a model: of
 * anything else it is not what it is called. */
static int judge_lie(const struct settings *settings, enum fault_lie lie, char *why)
{
    const char *colludes = lie == FAULT_LIE_ALIE ? "alie" : lie == FAULT_LIE_IPM ? "ipm" : NULL;
    bool models = settings->strategy <= PARLEY_STRATEGY_NONE ||
                  settings->strategy == PARLEY_STRATEGY_GOSSIP_SYNC ||
                  settings->strategy == PARLEY_STRATEGY_PUSH_SUM ||
                  settings->strategy == PARLEY_STRATEGY_NOLOCO;
    if (lie == FAULT_LIE_LABELS) return 0;
    if (strcmp(settings->codec, "fp32") != 0)
        return judge_refuse(
            why,
            "--fault: \"byzantine\" lies of floats, and --codec \"%s\" sends others; use fp32, or "
            "byzantine=labels",
            settings->codec);
    if (colludes && !models)
        return judge_refuse(why,
                            "--fault: \"byzantine=%s\" lies of whole models, which --strategy %s "
                            "does not send; use sign, scale, random or labels",
                            colludes, settings->values[OPTION_ID_STRATEGY].text);
    if (colludes && settings->momentum_mode == TRAINER_MOMENTUM_AVERAGED)
        return judge_refuse(
            why,
            "--fault: \"byzantine=%s\" lies of models, and --momentum-mode averaged "
            "sends momenta, too; use quasi-global",
            colludes);
    return 0;
}

int judge_lies(const struct settings *settings, char *why)
{
    int error = 0;
    for (size_t i = 0; i < settings->faults.count && !error; i++)
        if (settings->faults.items[i].kind == FAULT_BYZANTINE)
            error = judge_lie(settings, settings->faults.items[i].lie, why);
    return error;
}

int judge_topology(const struct settings *settings, char *why)
{
    bool asked = settings->verb == VERB_TOPOLOGY;
    const char *spec = asked ? settings->operands[0] : settings->topology;
    enum parley_topology kind;
    uint32_t degree;
    char clause[256];
    if (!spec) return 0;
    int error = topology_parse(spec, &kind, &degree, clause, sizeof clause);
    if (!error && settings->nodes > 1 && settings->nodes <= PARLEY_MEMBERS_MAX &&
        settings->verb != VERB_NODE)
        error = topology_suits(kind, degree, (uint32_t)settings->nodes, clause, sizeof clause);
    if (error)
        snprintf(why, SETTINGS_WHY_BYTES, "%s\"%.200s\" %s", asked ? "" : "--topology: ", spec,
                 clause);
    return error;
}

/* Of a node, at the most; 0: that is not known here. */
static uint64_t most_neighbours(const struct settings *settings)
{
    struct topology t = {.n = (uint32_t)settings->nodes};
    char why[1];
    if (settings->verb == VERB_NODE || settings->nodes > PARLEY_MEMBERS_MAX ||
        topology_parse(settings->topology, &t.kind, &t.degree, why, sizeof why) ||
        t.kind == PARLEY_TOPOLOGY_GRAPH || t.n < 2)
        return 0;
    if (t.kind == PARLEY_TOPOLOGY_REGULAR || t.kind == PARLEY_TOPOLOGY_BASE) return t.degree;
    return topology_degree(&t, 0);
}

/* Rounds have a limited number of neighbours, and copies are of those that stay. */
int judge_rounds(const struct settings *settings, char *why)
{
    bool choco = settings->strategy == PARLEY_STRATEGY_CHOCO;
    uint64_t limit = parley_strategy_neighbours((enum parley_strategy)settings->strategy);
    uint64_t most = most_neighbours(settings);
    if (choco && strncmp(settings->topology, "base:", strlen("base:")) == 0)
        return judge_refuse(
            why,
            "--topology: \"%s\" has other neighbours in each round, and choco keeps a copy of "
            "each; take ring, torus, exponential or regular:K",
            settings->topology);
    if (limit > 0 && most > limit)
        return judge_refuse(
            why,
            "--strategy: \"%s\" averages with at most %llu neighbours a round, and --topology "
            "%s of %llu nodes has %llu: take %s",
            settings->values[OPTION_ID_STRATEGY].text, (unsigned long long)limit,
            settings->topology, (unsigned long long)settings->nodes, (unsigned long long)most,
            choco ? "ring, torus or regular:K" : "exponential, regular:K or base:K");
    return 0;
}

/* Whether the momentum can do what is asked at what this strategy does to the model: the trainer is
 * told of what is added to it, not of a model that is put in its place. */
static bool is_followed(const struct settings *settings)
{
    switch (settings->strategy) {
    case PARLEY_STRATEGY_PUSH_SUM: /* which mixes, and adds nothing */
        return settings->momentum_mode != TRAINER_MOMENTUM_QUASI_GLOBAL &&
               settings->momentum_mode != TRAINER_MOMENTUM_RESET;
    case PARLEY_STRATEGY_NOLOCO:
        return settings->momentum_mode != TRAINER_MOMENTUM_QUASI_GLOBAL;
    case PARLEY_STRATEGY_GOSSIP:
    case PARLEY_STRATEGY_GOSSIP_SYNC:
    case PARLEY_STRATEGY_CHOCO:
        return true;
    default: /* the default for all strategies may be written down for each */
        return settings->momentum_mode != TRAINER_MOMENTUM_RESET;
    }
}

bool settings_optimizer_heeds(const char *optimizer, enum option_id id)
{
    bool adam = strcmp(optimizer, "adam") == 0 || strcmp(optimizer, "adamw") == 0;
    bool squares = adam || strcmp(optimizer, "rmsprop") == 0;
    bool momentum = strcmp(optimizer, "momentum") == 0 || strcmp(optimizer, "nesterov") == 0;
    if (id == OPTION_ID_MOMENTUM) return adam || momentum;
    if (id == OPTION_ID_MOMENTUM_MODE) return momentum;
    if (id == OPTION_ID_BETA2) return squares;
    return id != OPTION_ID_EPSILON || squares || strcmp(optimizer, "adagrad") == 0;
}

/* Of several optimizers each run leaves out what is of the others (plan.c). */
int judge_optimizer(const struct settings *settings, char *why)
{
    static const struct number numbers[] = {
        {OPTION_ID_MOMENTUM, "--optimizer momentum, nesterov, adam and adamw"},
        {OPTION_ID_BETA2, "--optimizer rmsprop, adam and adamw"},
        {OPTION_ID_EPSILON, "--optimizer adagrad, rmsprop, adam and adamw"},
    };
    bool several = settings->sweeps[OPTION_ID_OPTIMIZER].count > 1;
    int error = 0;
    for (size_t i = 0; !several && i < sizeof numbers / sizeof *numbers && !error; i++) {
        bool none = numbers[i].id == OPTION_ID_MOMENTUM && settings->momentum == 0; /* is true */
        bool heeds = none || settings_optimizer_heeds(settings->optimizer, numbers[i].id);
        error = judge_number(settings, &numbers[i], heeds, settings->optimizer, why);
    }
    return error;
}

int judge_training(const struct settings *settings, char *why)
{
    const struct settings_value *mode = &settings->values[OPTION_ID_MOMENTUM_MODE];
    bool heeds = settings_optimizer_heeds(settings->optimizer, OPTION_ID_MOMENTUM_MODE) ||
                 settings->sweeps[OPTION_ID_OPTIMIZER].count > 1;
    if (settings->momentum_mode != TRAINER_MOMENTUM_LOCAL && !heeds &&
        mode->origin != ORIGIN_DEFAULT)
        return judge_refuse(
            why,
            "--momentum-mode: \"%s\" needs --optimizer momentum or nesterov; %s keeps what it "
            "has local",
            mode->text, settings->optimizer);
    if (mode->origin != ORIGIN_DEFAULT && !judge_is_of_several(settings) && !is_followed(settings))
        return judge_refuse(
            why,
            "--momentum-mode: \"%s\" follows averaging with neighbours, and --strategy "
            "%s does something else; use local",
            mode->text, settings->values[OPTION_ID_STRATEGY].text);
    if (strcmp(settings->optimizer, "gd") != 0 || settings->lr_scale == TRAINER_SCALE_NONE)
        return 0;
    return judge_refuse(
        why,
        "--lr-scale: \"%s\" counts samples of a batch, and gd takes its whole share; use "
        "--lr-scale none, or another --optimizer",
        settings->values[OPTION_ID_LR_SCALE].text);
}

static int judge_codec_of(const struct settings *settings, enum parley_codec codec, char *why)
{
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    bool choco = settings->strategy == PARLEY_STRATEGY_CHOCO;
    if (codec == PARLEY_CODEC_FP32 || (choco && codec != PARLEY_CODEC_SUBSET)) return 0;
    if (choco)
        return judge_refuse(
            why,
            "--codec: \"%s\" is drawn without a look at what choco's copies are behind in; "
            "use topk:P, int8, fp16, bf16 or fp32",
            settings->codec);
    if (!has_codecs(settings->strategy))
        return judge_refuse(
            why,
            "--codec: \"%s\" is for models that --strategy gossip averages, and for choco; %s "
            "sends fp32",
            settings->codec, strategy);
    if (codec == PARLEY_CODEC_TOPK)
        return judge_refuse(
            why,
            "--codec: \"%s\" sends differences to a copy that each neighbour keeps, and "
            "--strategy %s meets others at random; use fp32, bf16, fp16, int8 or subset%s, or "
            "--strategy choco",
            settings->codec, strategy, settings->codec + strlen("topk"));
    return 0;
}

int judge_codec(const struct settings *settings, char *why)
{
    enum parley_codec codec;
    double part;
    if (codec_parse(settings->codec, &codec, &part) == 0)
        return judge_is_of_several(settings) ? 0 : judge_codec_of(settings, codec, why);
    bool topk = strncmp(settings->codec, "topk:", strlen("topk:")) == 0;
    return judge_refuse(why, "--codec: \"%s\" has no part above 0 and at most %s, like %s:0.01",
                        settings->codec, topk ? "0.5" : "1", topk ? "topk" : "subset");
}
