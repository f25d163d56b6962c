/* judge.c: settings that are each right and do not go together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/codec.h"
#include "core/topology.h"
#include "parley/config.h"
#include "settings/put.h"

static int judge_network(const struct settings *settings, char *why)
{
    if (!settings->insecure && !units_address_is_loopback(&settings->listen)) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--listen: \"%s\" can be reached from other machines, and there is no key yet; "
                 "--insecure allows it",
                 settings->values[OPTION_ID_LISTEN].text);
        return PARLEY_EUSAGE;
    }
    if (settings->advertise.host[0] && settings->advertise.port == 0) {
        snprintf(why, SETTINGS_WHY_BYTES, "--advertise: \"%s\" has port 0, which can't be dialled",
                 settings->values[OPTION_ID_ADVERTISE].text);
        return PARLEY_EUSAGE;
    }
    if (units_address_is_any(&settings->listen) && !settings->advertise.host[0]) {
        snprintf(
            why, SETTINGS_WHY_BYTES,
            "--listen: \"%s\" is every address of this machine; say with --advertise HOST:PORT "
            "how others reach it",
            settings->values[OPTION_ID_LISTEN].text);
        return PARLEY_EUSAGE;
    }
    if (units_address_is_any(&settings->advertise)) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--advertise: \"%s\" is no address that others can dial; give this machine's",
                 settings->values[OPTION_ID_ADVERTISE].text);
        return PARLEY_EUSAGE;
    }
    return 0;
}

static int judge_size(const struct settings *settings, char *why)
{
    if (settings->quorum == QUORUM_MAJORITY && settings->nodes == 0) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--quorum: \"majority\" needs --nodes N, the number that it is a majority of");
        return PARLEY_EUSAGE;
    }
    if (settings->nodes > 0 && settings->min_peers >= settings->nodes) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--min-peers: \"%llu\" other nodes can't be alive among %llu (--nodes)",
                 (unsigned long long)settings->min_peers, (unsigned long long)settings->nodes);
        return PARLEY_EUSAGE;
    }
    return 0;
}

/* True if `name` is one of n0 to n(nodes-1). */
static bool is_node(const char *name, uint64_t nodes)
{
    char expected[24];
    unsigned long number = name[0] == 'n' ? strtoul(name + 1, NULL, 10) : 0;
    snprintf(expected, sizeof expected, "n%lu", number);
    return number < nodes && strcmp(name, expected) == 0;
}

static int no_such_node(const struct settings *settings, const char *flag, const char *name,
                        char *why)
{
    snprintf(why, SETTINGS_WHY_BYTES, "%s: \"%s\" is not a node (n0 to n%llu)", flag, name,
             (unsigned long long)settings->nodes - 1);
    return PARLEY_EUSAGE;
}

static int judge_groups(const struct settings *settings, const char *flag, const char *groups,
                        char *why)
{
    char last[24];
    if (groups_last(groups) < settings->nodes) return 0;
    snprintf(last, sizeof last, "n%llu", (unsigned long long)groups_last(groups));
    return no_such_node(settings, flag, last, why);
}

static int judge_fault(const struct settings *settings, const struct fault_spec *fault, char *why)
{
    const char *kind = fault_kind_text(fault->kind);
    enum fault_where where = fault_kind_where(fault->kind);
    bool runs = settings->verb == VERB_RUN;
    if (where == (runs ? FAULT_IN_SIM : FAULT_IN_RUN)) {
        snprintf(why, SETTINGS_WHY_BYTES, "--fault: \"%s\" is possible in parley %s only", kind,
                 runs ? "sim" : "run");
        return PARLEY_EUSAGE;
    }
    if (fault->target == FAULT_NUMBER && fault->kind != FAULT_JOIN &&
        fault->number > settings->nodes) {
        snprintf(why, SETTINGS_WHY_BYTES, "--fault: \"%s\" of %u nodes, but there are %llu", kind,
                 (unsigned)fault->number, (unsigned long long)settings->nodes);
        return PARLEY_EUSAGE;
    }
    if (fault->target == FAULT_GROUPS) return judge_groups(settings, "--fault", fault->name, why);
    if (fault->kind == FAULT_JOIN || fault->target != FAULT_NAME) return 0;
    if (is_node(fault->name, settings->nodes)) return 0;
    return no_such_node(settings, "--fault", fault->name, why);
}

static int judge_simulation(const struct settings *settings, char *why)
{
    if (settings->latency.kind == UNITS_DIST_TRACE) {
        snprintf(why, SETTINGS_WHY_BYTES, "--latency: a trace is possible for --compute only");
        return PARLEY_EUSAGE;
    }
    int error = 0;
    for (size_t i = 0; !error && i < settings->links.count; i++)
        error = judge_groups(settings, "--link", settings->links.items[i].groups, why);
    return error;
}

/* A swarm draws by itself what a run is told. */
static int judge_swarm(const struct settings *settings, char *why)
{
    static const enum option_id only[] = {OPTION_ID_SEEDS, OPTION_ID_TALLY};
    for (size_t i = 0; !settings->swarm && i < sizeof only / sizeof *only; i++) {
        if (settings->values[only[i]].origin != ORIGIN_FLAG) continue;
        snprintf(why, SETTINGS_WHY_BYTES, "--%s: is for --swarm, which is not given",
                 option_info(only[i])->name);
        return PARLEY_EUSAGE;
    }
    if (settings->swarm && settings->seeds.last == 0) {
        snprintf(why, SETTINGS_WHY_BYTES, "--swarm: needs --seeds A..B, like --seeds 1..2000");
        return PARLEY_EUSAGE;
    }
    if (settings->swarm && settings->faults.count > 0) {
        snprintf(why, SETTINGS_WHY_BYTES, "--fault: a swarm draws its own faults (--swarm)");
        return PARLEY_EUSAGE;
    }
    return 0;
}

/* The one model of one run. */
static int judge_sim_out(const struct settings *settings, char *why)
{
    const char *many = settings->swarm ? "swarm" : settings->compare ? "compare" : NULL;
    if (!settings->out) return 0;
    for (int i = 0; i < OPTION_ID_COUNT && !many; i++)
        if (settings->sweeps[i].count > 1) many = option_info((enum option_id)i)->name;
    if (many)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--out: \"%s\" is for the model of one run, and --%s asks for several; repeat the "
                 "best of them alone with --out",
                 settings->out, many);
    else if (strncmp(settings->model, "quadratic:", strlen("quadratic:")) == 0)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--out: \"%s\" is for a model of data, and \"%s\" (--model) is none; leave --out "
                 "away",
                 settings->out, settings->model);
    else
        return 0;
    return PARLEY_EUSAGE;
}

static int judge_model(const struct settings *settings, char *why)
{
    bool quadratic = strncmp(settings->model, "quadratic:", strlen("quadratic:")) == 0;
    if (!quadratic || (settings->verb == VERB_SIM && settings->accuracy <= 0)) return 0;
    if (settings->verb == VERB_SIM)
        snprintf(why, SETTINGS_WHY_BYTES, "--target-accuracy: \"%s\" has no accuracy",
                 settings->model);
    else
        snprintf(why, SETTINGS_WHY_BYTES, "--model: \"%s\" is possible in parley sim only",
                 settings->model);
    return PARLEY_EUSAGE;
}

static bool is_served(int strategy)
{
    return strategy == PARLEY_STRATEGY_PS_BSP || strategy == PARLEY_STRATEGY_PS_ASP ||
           strategy == PARLEY_STRATEGY_PS_SSP;
}

/* Who sends models, or what there is of them, by codec; the others send fp32. */
static bool has_codecs(int strategy)
{
    return strategy <= PARLEY_STRATEGY_NONE || strategy == PARLEY_STRATEGY_CHOCO;
}

bool settings_heeds(int strategy, enum option_id id)
{
    bool gradients = strategy == PARLEY_STRATEGY_ALLREDUCE || is_served(strategy);
    bool of_all =
        gradients || strategy == PARLEY_STRATEGY_LOCAL_SGD || strategy == PARLEY_STRATEGY_DILOCO;
    if (id == OPTION_ID_BACKUP_WORKERS) return strategy == PARLEY_STRATEGY_PS_BSP;
    if (id == OPTION_ID_MIX_EVERY) return !gradients;
    if (id == OPTION_ID_CODEC) return has_codecs(strategy);
    if (id == OPTION_ID_ROBUST) return strategy == PARLEY_STRATEGY_GOSSIP;
    return id != OPTION_ID_TOPOLOGY || !of_all;
}

/* What is given and changes nothing was meant for another strategy. */
static int judge_strategy(const struct settings *settings, char *why)
{
    const struct settings_value *every = &settings->values[OPTION_ID_MIX_EVERY];
    const struct settings_value *topology = &settings->values[OPTION_ID_TOPOLOGY];
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    if (every->origin > ORIGIN_DEFAULT &&
        !settings_heeds(settings->strategy, OPTION_ID_MIX_EVERY)) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--mix-every: \"%s\" local steps, but %s averages the gradients of every step; "
                 "--strategy local-sgd, diloco or gossip average models so often",
                 every->text, strategy);
        return PARLEY_EUSAGE;
    }
    if (settings->strategy > PARLEY_STRATEGY_NONE &&
        (settings->mix_every.steered || settings->mix_every.later_count > 0)) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--mix-every: \"%s\" is for --strategy gossip; %s takes one number", every->text,
                 strategy);
        return PARLEY_EUSAGE;
    }
    if (settings->strategy > PARLEY_STRATEGY_NONE && settings->momentum_mode == MOMENTUM_AVERAGED) {
        snprintf(
            why, SETTINGS_WHY_BYTES,
            "--momentum-mode: \"averaged\" is for --strategy gossip, whose exchanges carry it; "
            "%s's don't (use local)",
            strategy);
        return PARLEY_EUSAGE;
    }
    if (topology->origin > ORIGIN_DEFAULT && strcmp(settings->topology, "complete") != 0 &&
        !settings_heeds(settings->strategy, OPTION_ID_TOPOLOGY)) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--topology: \"%s\" says who exchanges with whom, but the rounds of %s are of all "
                 "nodes; --strategy gossip heeds it",
                 topology->text, strategy);
        return PARLEY_EUSAGE;
    }
    return 0;
}

/* What has been thought through and tried. */
static int judge_robust(const struct settings *settings, char *why)
{
    if (!settings->robust) return 0;
    if (settings->strategy != PARLEY_STRATEGY_GOSSIP)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--robust: clips what two nodes of --strategy gossip add to their models; %s has "
                 "nothing of the kind",
                 settings->values[OPTION_ID_STRATEGY].text);
    else if (strcmp(settings->codec, "fp32") != 0)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--robust: compares whole models; --codec \"%s\" sends less (use fp32)",
                 settings->codec);
    else if (settings->momentum_mode == MOMENTUM_AVERAGED)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--robust: looks at models, and --momentum-mode averaged adds momenta unseen; use "
                 "quasi-global");
    else
        return 0;
    return PARLEY_EUSAGE;
}

/* `spec` of --topology, or of the verb. */
static int judge_topology(const struct settings *settings, const char *flag, const char *spec,
                          char *why)
{
    enum parley_topology kind;
    uint32_t degree;
    char clause[256];
    int error = topology_parse(spec, &kind, &degree, clause, sizeof clause);
    if (!error && settings->nodes > 1 && settings->nodes <= PARLEY_MEMBERS_MAX &&
        settings->verb != VERB_NODE)
        error = topology_suits(kind, degree, (uint32_t)settings->nodes, clause, sizeof clause);
    if (error) snprintf(why, SETTINGS_WHY_BYTES, "%s\"%.200s\" %s", flag, spec, clause);
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
static int judge_rounds(const struct settings *settings, char *why)
{
    bool choco = settings->strategy == PARLEY_STRATEGY_CHOCO;
    uint64_t limit = choco ? PARLEY_CHOCO_NEIGHBOURS_MAX : PARLEY_NEIGHBOURS_MAX;
    uint64_t most = most_neighbours(settings);
    if (choco && strncmp(settings->topology, "base:", strlen("base:")) == 0)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--topology: \"%s\" has other neighbours in each round, and choco keeps a copy of "
                 "each; take ring, torus, exponential or regular:K",
                 settings->topology);
    else if ((choco || settings->strategy == PARLEY_STRATEGY_GOSSIP_SYNC) && most > limit)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--strategy: \"%s\" averages with at most %llu neighbours a round, and --topology "
                 "%s of %llu nodes has %llu: take %s",
                 settings->values[OPTION_ID_STRATEGY].text, (unsigned long long)limit,
                 settings->topology, (unsigned long long)settings->nodes, (unsigned long long)most,
                 choco ? "ring, torus or regular:K" : "exponential, regular:K or base:K");
    else
        return 0;
    return PARLEY_EUSAGE;
}

static int judge_training(const struct settings *settings, char *why)
{
    const struct settings_value *mode = &settings->values[OPTION_ID_MOMENTUM_MODE];
    bool momentum = strcmp(settings->optimizer, "momentum") == 0 ||
                    strcmp(settings->optimizer, "nesterov") == 0;
    if (settings->momentum_mode != MOMENTUM_LOCAL && !momentum && mode->origin != ORIGIN_DEFAULT) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--momentum-mode: \"%s\" needs --optimizer momentum or nesterov; %s keeps what it "
                 "has local",
                 mode->text, settings->optimizer);
        return PARLEY_EUSAGE;
    }
    bool follows = settings->strategy != PARLEY_STRATEGY_NOLOCO &&
                   settings->strategy != PARLEY_STRATEGY_PUSH_SUM;
    if (settings->momentum_mode == MOMENTUM_QUASI_GLOBAL && !follows &&
        mode->origin != ORIGIN_DEFAULT) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--momentum-mode: \"%s\" follows averaging, and --strategy %s does more than "
                 "that; use local",
                 mode->text, settings->values[OPTION_ID_STRATEGY].text);
        return PARLEY_EUSAGE;
    }
    if (strcmp(settings->optimizer, "gd") != 0 || settings->lr_scale == LR_SCALE_NONE) return 0;
    snprintf(why, SETTINGS_WHY_BYTES,
             "--lr-scale: \"%s\" counts samples of a batch, and gd takes its whole share; use "
             "--lr-scale none, or another --optimizer",
             settings->values[OPTION_ID_LR_SCALE].text);
    return PARLEY_EUSAGE;
}

static int judge_codec_of(const struct settings *settings, enum parley_codec codec, char *why)
{
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    bool choco = settings->strategy == PARLEY_STRATEGY_CHOCO;
    if (codec == PARLEY_CODEC_FP32 || (choco && codec != PARLEY_CODEC_SUBSET)) return 0;
    if (choco)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--codec: \"%s\" is drawn without a look at what choco's copies are behind in; "
                 "use topk:P, int8, fp16, bf16 or fp32",
                 settings->codec);
    else if (!has_codecs(settings->strategy))
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--codec: \"%s\" is for models that --strategy gossip averages, and for choco; %s "
                 "sends fp32",
                 settings->codec, strategy);
    else if (codec == PARLEY_CODEC_TOPK)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--codec: \"%s\" sends differences to a copy that each neighbour keeps, and "
                 "--strategy %s meets others at random; use fp32, bf16, fp16, int8 or subset%s, or "
                 "--strategy choco",
                 settings->codec, strategy, settings->codec + strlen("topk"));
    else
        return 0;
    return PARLEY_EUSAGE;
}

static int judge_codec(const struct settings *settings, char *why)
{
    enum parley_codec codec;
    double part;
    if (codec_parse(settings->codec, &codec, &part) == 0)
        return settings->compare ? 0 : judge_codec_of(settings, codec, why); /* compare: each run */
    bool topk = strncmp(settings->codec, "topk:", strlen("topk:")) == 0;
    snprintf(why, SETTINGS_WHY_BYTES,
             "--codec: \"%s\" has no part above 0 and at most %s, like %s:0.01", settings->codec,
             topk ? "0.5" : "1", topk ? "topk" : "subset");
    return PARLEY_EUSAGE;
}

static int judge_checkpoint(const struct settings *settings, char *why)
{
    static const enum option_id only[] = {OPTION_ID_RESUME, OPTION_ID_CHECKPOINT_EVERY};
    for (size_t i = 0; !settings->checkpoint && i < sizeof only / sizeof *only; i++) {
        if (settings->values[only[i]].origin <= ORIGIN_DEFAULT) continue;
        snprintf(why, SETTINGS_WHY_BYTES, "--%s: needs --checkpoint DIR",
                 option_info(only[i])->name);
        return PARLEY_EUSAGE;
    }
    if (settings->verb != VERB_NODE || !settings->checkpoint || settings->name) return 0;
    snprintf(why, SETTINGS_WHY_BYTES,
             "--checkpoint: needs --name NAME, by which the node finds its files again");
    return PARLEY_EUSAGE;
}

static int judge_servers(const struct settings *settings, char *why)
{
    unsigned long long backups = settings->backup_workers, nodes = settings->nodes;
    const char *strategy = settings->values[OPTION_ID_STRATEGY].text;
    if (backups > 0 && settings->strategy != PARLEY_STRATEGY_PS_BSP)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--backup-workers: \"%llu\" of the slowest are left out of a step by --strategy "
                 "ps-bsp only, not by %s",
                 backups, strategy);
    else if (backups > 0 && nodes > 0 && backups >= nodes)
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--backup-workers: \"%llu\" leaves nobody of %llu nodes (--nodes) to make a step; "
                 "at most %llu",
                 backups, nodes, nodes - 1);
    else if (is_served(settings->strategy) && nodes > PARLEY_SERVED_MAX)
        snprintf(
            why, SETTINGS_WHY_BYTES,
            "--strategy: \"%s\" has one node that serves all, at most %d; --nodes is %llu (use "
            "gossip)",
            strategy, PARLEY_SERVED_MAX, nodes);
    else
        return 0;
    return PARLEY_EUSAGE;
}

static const char *without_dot(const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

/* Each would overwrite what the other has written; a device keeps nothing, and "-" is stdout for
 * --json and --csv, which --out never writes to. */
static int judge_outputs(const struct settings *settings, char *why)
{
    const struct {
        enum option_id id;
        const char *path;
    } outputs[] = {{OPTION_ID_OUT, settings->out},
                   {OPTION_ID_JSON, settings->json},
                   {OPTION_ID_CSV, settings->csv},
                   {OPTION_ID_REPORT, settings->report},
                   {OPTION_ID_TALLY, settings->tally}};
    if (settings->out && strcmp(settings->out, "-") == 0) {
        snprintf(why, SETTINGS_WHY_BYTES,
                 "--out: \"-\": a model is not written to stdout; name a file (./- is one)");
        return PARLEY_EUSAGE;
    }
    for (size_t b = 1; b < sizeof outputs / sizeof *outputs; b++)
        for (size_t a = 0; a < b; a++) {
            const char *one = outputs[a].path, *other = outputs[b].path;
            bool apart = outputs[a].id == OPTION_ID_OUT && other && strcmp(other, "-") == 0;
            if (!one || !other || apart || strncmp(one, "/dev/", strlen("/dev/")) == 0 ||
                strcmp(without_dot(one), without_dot(other)) != 0)
                continue;
            snprintf(why, SETTINGS_WHY_BYTES,
                     "--%s and --%s: both write to \"%.400s\"; give each a name of its own",
                     option_info(outputs[a].id)->name, option_info(outputs[b].id)->name, other);
            return PARLEY_EUSAGE;
        }
    return 0;
}

static int judge_bench(const struct settings *settings, char *why)
{
    const char *what = settings->operands[0];
    if (settings->floats == 0 || strcmp(what, "wire") == 0) return 0;
    snprintf(why, SETTINGS_WHY_BYTES, "--floats is of bench wire; bench %s has its own sizes",
             what);
    return PARLEY_EUSAGE;
}

int judge_together(const struct settings *settings, char why[SETTINGS_WHY_BYTES])
{
    int error = 0;
    if (settings->quiet && settings->verbose) {
        snprintf(why, SETTINGS_WHY_BYTES, "--quiet and --verbose exclude each other");
        return PARLEY_EUSAGE;
    }
    switch (settings->verb) {
    case VERB_NODE:
    case VERB_CHECK:
        error = judge_outputs(settings, why);
        if (!error) error = judge_model(settings, why);
        if (!error) error = judge_codec(settings, why);
        if (!error) error = judge_network(settings, why);
        if (!error) error = judge_size(settings, why);
        if (!error) error = judge_strategy(settings, why);
        if (!error) error = judge_robust(settings, why);
        if (!error) error = judge_checkpoint(settings, why);
        if (!error) error = judge_servers(settings, why);
        if (!error) error = judge_topology(settings, "--topology: ", settings->topology, why);
        if (!error) error = judge_rounds(settings, why);
        return error ? error : judge_training(settings, why);
    case VERB_RUN:
    case VERB_SIM:
        error = judge_outputs(settings, why);
        if (!error) error = judge_model(settings, why);
        if (!error) error = judge_codec(settings, why);
        if (!error) error = judge_size(settings, why);
        if (!error && !settings->compare) error = judge_strategy(settings, why);
        if (!error && !settings->compare) error = judge_servers(settings, why);
        if (!error) error = judge_robust(settings, why);
        if (!error) error = judge_training(settings, why);
        if (!error) error = judge_checkpoint(settings, why);
        if (!error) error = judge_topology(settings, "--topology: ", settings->topology, why);
        if (!error) error = judge_rounds(settings, why);
        if (!error) error = judge_simulation(settings, why);
        if (!error && settings->verb == VERB_SIM) error = judge_swarm(settings, why);
        if (!error && settings->verb == VERB_SIM) error = judge_sim_out(settings, why);
        for (size_t i = 0; !error && i < settings->faults.count; i++)
            error = judge_fault(settings, &settings->faults.items[i], why);
        return error;
    case VERB_BENCH:
        return judge_bench(settings, why);
    case VERB_TOPOLOGY:
        return settings->operands[0] ? judge_topology(settings, "", settings->operands[0], why) : 0;
    default:
        return 0;
    }
}
