/* judge.c: settings that are each right and do not go together. */
#include "settings/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/record.h"
#include "parley/config.h"

int judge_refuse(char *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, SETTINGS_WHY_BYTES, format, arguments);
    va_end(arguments);
    return PARLEY_EUSAGE;
}

static int judge_network(const struct settings *settings, char *why)
{
    bool guarded = settings->cluster_key || settings->insecure;
    if (!guarded && !units_address_is_loopback(&settings->listen))
        return judge_refuse(
            why,
            "--listen: \"%s\" can be reached from other machines; give a --cluster-key "
            "(parley keygen makes one), or allow it with --insecure",
            settings->values[OPTION_ID_LISTEN].text);
    if (settings->advertise.host[0] && settings->advertise.port == 0)
        return judge_refuse(why, "--advertise: \"%s\" has port 0, which can't be dialled",
                            settings->values[OPTION_ID_ADVERTISE].text);
    if (units_address_is_any(&settings->listen) && !settings->advertise.host[0])
        return judge_refuse(
            why,
            "--listen: \"%s\" is every address of this machine; say with --advertise HOST:PORT "
            "how others reach it",
            settings->values[OPTION_ID_LISTEN].text);
    if (units_address_is_any(&settings->advertise))
        return judge_refuse(
            why, "--advertise: \"%s\" is no address that others can dial; give this machine's",
            settings->values[OPTION_ID_ADVERTISE].text);
    return 0;
}

/* In a file it may be for all nodes, of which the first has no seeds. */
static int judge_seeds(const struct settings *settings, char *why)
{
    if (settings->values[OPTION_ID_JOIN_TIMEOUT].origin != ORIGIN_FLAG) return 0;
    if (settings->join.count > 0 || settings->peers_file) return 0;
    return judge_refuse(
        why,
        "--join-timeout: \"%s\" to reach a seed, and there are none; name them with --join "
        "or --peers",
        settings->values[OPTION_ID_JOIN_TIMEOUT].text);
}

static int judge_size(const struct settings *settings, char *why)
{
    if (settings->quorum == PARLEY_QUORUM_MAJORITY && settings->nodes == 0)
        return judge_refuse(
            why, "--quorum: \"majority\" needs --nodes N, the number that it is a majority of");
    if (settings->nodes > 0 && settings->min_peers >= settings->nodes)
        return judge_refuse(
            why, "--min-peers: \"%llu\" other nodes can't be alive among %llu (--nodes)",
            (unsigned long long)settings->min_peers, (unsigned long long)settings->nodes);
    return 0;
}

static int judge_shard(const struct settings *settings, char *why)
{
    const struct settings_value *shard = &settings->values[OPTION_ID_SHARD];
    if (!shard->text || strcmp(settings->partition, "all") != 0) return 0;
    return judge_refuse(
        why,
        "--shard: \"%s\" is one share of %u, and with --partition all each node has all the data",
        shard->text, (unsigned)settings->shard.count);
}

static int no_such_node(const struct settings *settings, const char *flag, const char *name,
                        char *why)
{
    return judge_refuse(why, "%s: \"%s\" is not a node (n0 to n%llu)", flag, name,
                        (unsigned long long)settings->nodes - 1);
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
    if (where == (runs ? FAULT_IN_SIM : FAULT_IN_RUN))
        return judge_refuse(why, "--fault: \"%s\" is possible in parley %s only", kind,
                            runs ? "sim" : "run");
    if (settings->membership == MEMBERSHIP_STATIC && fault->kind == FAULT_PAUSE &&
        fault->lasting.kind == FAULT_NEVER)
        return judge_refuse(
            why, "--fault: \"pause\" has no end, and with --membership static nobody finds out who "
                 "is silent; say for how long, like pause:n1@5s+2s");
    if (fault->kind == FAULT_JOIN && fault->target != FAULT_NUMBER)
        return judge_refuse(
            why, "--fault: \"join\" takes the number of nodes that join, like join:2@20%%");
    if (fault->target == FAULT_NUMBER && fault->kind != FAULT_JOIN &&
        fault->number > settings->nodes)
        return judge_refuse(why, "--fault: \"%s\" of %u nodes, but there are %llu", kind,
                            (unsigned)fault->number, (unsigned long long)settings->nodes);
    if (fault->target == FAULT_GROUPS) return judge_groups(settings, "--fault", fault->name, why);
    if (fault->target != FAULT_NAME) return 0;
    if (settings_is_node(fault->name, settings->nodes)) return 0;
    return no_such_node(settings, "--fault", fault->name, why);
}

static int judge_faults(const struct settings *settings, char *why)
{
    int error = 0;
    for (size_t i = 0; !error && i < settings->faults.count; i++)
        error = judge_fault(settings, &settings->faults.items[i], why);
    return error;
}

static int judge_simulation(const struct settings *settings, char *why)
{
    if (settings->latency.kind == UNITS_DIST_TRACE)
        return judge_refuse(why, "--latency: a trace is possible for --compute only");
    int error = 0;
    for (size_t i = 0; !error && i < settings->links.count; i++)
        error = judge_groups(settings, "--link", settings->links.items[i].groups, why);
    return error;
}

/* A swarm draws by itself what a run is told: only who computes can be chosen, and what is said. */
static bool is_for_swarm(enum option_id id)
{
    enum option_group group = option_info(id)->group;
    return id == OPTION_ID_SWARM || id == OPTION_ID_SEEDS || id == OPTION_ID_TALLY ||
           id == OPTION_ID_THREADS || group == GROUP_GENERAL ||
           (group == GROUP_WATCHING && id != OPTION_ID_CSV && id != OPTION_ID_CURVES &&
            id != OPTION_ID_REPORT);
}

static int judge_swarm(const struct settings *settings, char *why)
{
    static const enum option_id only[] = {OPTION_ID_SEEDS, OPTION_ID_TALLY};
    for (size_t i = 0; !settings->swarm && i < sizeof only / sizeof *only; i++) {
        if (settings->values[only[i]].origin != ORIGIN_FLAG) continue;
        return judge_refuse(why, "--%s: is for --swarm, which is not given",
                            option_info(only[i])->name);
    }
    if (settings->swarm && settings->seeds.last == 0)
        return judge_refuse(why, "--swarm: needs --seeds A..B, like --seeds 1..2000");
    for (int i = 0; settings->swarm && i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        if (settings->values[id].origin <= ORIGIN_DEFAULT || is_for_swarm(id)) continue;
        return judge_refuse(
            why, "--%s: is not for --swarm, which draws clusters, settings and faults by itself",
            option_info(id)->name);
    }
    return 0;
}

bool judge_is_quadratic(const struct settings *settings)
{
    return strncmp(settings->model, "quadratic:", strlen("quadratic:")) == 0;
}

/* The one model of one run. */
static int judge_sim_out(const struct settings *settings, char *why)
{
    const char *many = settings->compare ? "compare" : NULL;
    if (!settings->out) return 0;
    for (int i = 0; i < OPTION_ID_COUNT && !many; i++)
        if (settings->sweeps[i].count > 1) many = option_info((enum option_id)i)->name;
    if (many)
        return judge_refuse(
            why,
            "--out: \"%s\" is for the model of one run, and --%s asks for several; repeat the "
            "best of them alone with --out",
            settings->out, many);
    if (judge_is_quadratic(settings))
        return judge_refuse(
            why,
            "--out: \"%s\" is for a model of data, and \"%s\" (--model) is none; leave --out "
            "away",
            settings->out, settings->model);
    return 0;
}

/* Its steps are x -= rate * gradient, and each node's minimum is drawn: only what says just that
 * may be given. */
static int judge_quadratic(const struct settings *settings, char *why)
{
    static const struct {
        enum option_id id;
        const char *is; /* NULL: nothing of the kind */
    } rule[] = {{OPTION_ID_OPTIMIZER, "sgd"},   {OPTION_ID_LR_SCALE, "none"},
                {OPTION_ID_MOMENTUM, NULL},     {OPTION_ID_MOMENTUM_MODE, "local"},
                {OPTION_ID_BETA2, NULL},        {OPTION_ID_EPSILON, NULL},
                {OPTION_ID_WEIGHT_DECAY, NULL}, {OPTION_ID_CLIP_NORM, NULL},
                {OPTION_ID_CLIP_VALUE, NULL},   {OPTION_ID_PARTITION, "iid"}};
    for (size_t i = 0; judge_is_quadratic(settings) && i < sizeof rule / sizeof *rule; i++) {
        const struct settings_value *value = &settings->values[rule[i].id];
        if (value->origin <= ORIGIN_DEFAULT) continue;
        if (rule[i].is && strcmp(value->text, rule[i].is) == 0) continue;
        return judge_refuse(why, "--%s: \"%s\" changes nothing: quadratic %s",
                            option_info(rule[i].id)->name, value->text,
                            rule[i].id == OPTION_ID_PARTITION ? "has no data to divide"
                                                              : "makes plain gradient steps");
    }
    return 0;
}

static int judge_model(const struct settings *settings, char *why)
{
    if (!judge_is_quadratic(settings)) return 0;
    if (settings->verb != VERB_SIM)
        return judge_refuse(why, "--model: \"%s\" is possible in parley sim only", settings->model);
    if (settings->accuracy > 0)
        return judge_refuse(why, "--target-accuracy: \"%s\" has no accuracy", settings->model);
    return 0;
}

bool judge_ends_by_target(const struct settings *settings)
{
    bool budget = settings->epochs > 0 || settings->steps > 0 || settings->time_us > 0;
    return settings->accuracy > 0 && !budget;
}

/* All would stay as at the start, a warm-up at the rate 0. The default schedule may be written
 * down. */
static int judge_course(const struct settings *settings, char *why)
{
    const char *schedule = settings->schedule;
    bool is_default = strcmp(schedule, option_info(OPTION_ID_SCHEDULE)->fallback) == 0;
    enum option_id id = settings->warmup > 0                  ? OPTION_ID_WARMUP
                        : settings->mix_every.later_count > 0 ? OPTION_ID_MIX_EVERY
                                                              : OPTION_ID_SCHEDULE;
    bool stays = is_default || strcmp(schedule, "constant") == 0;
    if (!judge_ends_by_target(settings) || (id == OPTION_ID_SCHEDULE && stays)) return 0;
    return judge_refuse(
        why,
        "--%s: \"%s\" goes by a budget, and --target-accuracy alone is none; give --epochs, "
        "--steps or --time too, or leave it away",
        option_info(id)->name, settings->values[id].text);
}

static int judge_target(const struct settings *settings, char *why)
{
    if (settings->accuracy > 0 || settings->values[OPTION_ID_EVAL_EVERY].origin <= ORIGIN_DEFAULT)
        return 0;
    return judge_refuse(why, "--eval-every: needs --target-accuracy A, for which it looks");
}

static int judge_checkpoint(const struct settings *settings, char *why)
{
    static const enum option_id only[] = {OPTION_ID_RESUME, OPTION_ID_CHECKPOINT_EVERY};
    for (size_t i = 0; !settings->checkpoint && i < sizeof only / sizeof *only; i++) {
        if (settings->values[only[i]].origin <= ORIGIN_DEFAULT) continue;
        return judge_refuse(why, "--%s: needs --checkpoint DIR", option_info(only[i])->name);
    }
    if (settings->verb != VERB_NODE || !settings->checkpoint || settings->name) return 0;
    return judge_refuse(why,
                        "--checkpoint: needs --name NAME, by which the node finds its files again");
}

/* A file that an option names; `path` ends after `length`. */
struct place {
    enum option_id id;
    const char *path; /* NULL: none */
    size_t length;
};

static struct place place_of(enum option_id id, const char *path)
{
    while (path && strncmp(path, "./", 2) == 0)
        path += 2;
    return (struct place){id, path, path ? strlen(path) : 0};
}

/* Of csv:FILE,label=y the file; digits is none. */
static struct place place_of_spec(enum option_id id, const char *spec)
{
    const char *kind = spec ? strchr(spec, ':') : NULL;
    struct place place = place_of(id, kind ? kind + 1 : NULL);
    if (kind) place.length = strcspn(place.path, ",");
    return place;
}

/* A device keeps nothing, and "-" is stdout for --json, --csv and --curves, which --out never
 * writes to. */
static bool is_same(const struct place *one, const struct place *other)
{
    if (!one->path || !other->path || one->length != other->length) return false;
    bool apart = one->id == OPTION_ID_OUT && strcmp(other->path, "-") == 0;
    return !apart && strncmp(one->path, "/dev/", strlen("/dev/")) != 0 &&
           strncmp(one->path, other->path, one->length) == 0;
}

/* What is written would take the place of what was read, or of what another option has written. */
static int judge_outputs(const struct settings *s, char *why)
{
    char record[1024] = "";
    if (s->out) snprintf(record, sizeof record, "%s" RECORD_SUFFIX, s->out);
    const struct place read[] = {
        place_of(OPTION_ID_CONFIG, s->config),    place_of(OPTION_ID_CLUSTER_KEY, s->cluster_key),
        place_of(OPTION_ID_PEERS, s->peers_file), place_of_spec(OPTION_ID_DATA, s->data),
        place_of_spec(OPTION_ID_TEST, s->test),   place_of_spec(OPTION_ID_TOPOLOGY, s->topology)};
    const struct place written[] = {
        place_of(OPTION_ID_OUT, s->out),       place_of(OPTION_ID_OUT, record),
        place_of(OPTION_ID_JSON, s->json),     place_of(OPTION_ID_CSV, s->csv),
        place_of(OPTION_ID_CURVES, s->curves), place_of(OPTION_ID_REPORT, s->report),
        place_of(OPTION_ID_TALLY, s->tally)};
    if (s->out && strcmp(s->out, "-") == 0)
        return judge_refuse(
            why, "--out: \"-\": a model is not written to stdout; name a file (./- is one)");
    for (size_t b = 0; b < sizeof written / sizeof *written; b++) {
        const char *name = option_info(written[b].id)->name;
        const char *text = s->values[written[b].id].text;
        for (size_t a = 0; a < sizeof read / sizeof *read; a++)
            if (is_same(&read[a], &written[b]))
                return judge_refuse(why, "--%s: \"%.400s\" is read, by --%s; name another file",
                                    name, text, option_info(read[a].id)->name);
        for (size_t a = 0; a < b; a++)
            if (is_same(&written[a], &written[b]))
                return judge_refuse(
                    why, "--%s and --%s: both write to \"%.400s\"; give each a name of its own",
                    option_info(written[a].id)->name, name, text);
    }
    return 0;
}

static int judge_loudness(const struct settings *settings, char *why)
{
    if (!settings->quiet || !settings->verbose) return 0;
    return judge_refuse(why, "--quiet and --verbose exclude each other");
}

/* Flags of a verb that are of some of the things it does: the others would not heed them. In the
 * environment they are for whoever does. */
struct part {
    enum option_id id;
    const char *of[2];
};

static int judge_parts(const struct settings *settings, const struct part *parts, size_t count,
                       char *why)
{
    const char *verb = verb_info(settings->verb)->name, *does = settings->operands[0];
    for (size_t i = 0; i < count; i++) {
        const char *const *of = parts[i].of;
        if (settings->values[parts[i].id].origin != ORIGIN_FLAG) continue;
        if (strcmp(does, of[0]) == 0 || (of[1] && strcmp(does, of[1]) == 0)) continue;
        return judge_refuse(why, "--%s is of %s %s%s%s, not of %s %s%s",
                            option_info(parts[i].id)->name, verb, of[0], of[1] ? " and " : "",
                            of[1] ? of[1] : "", verb, does,
                            parts[i].id == OPTION_ID_EXPORT_OUT ? ", which prints to stdout" : "");
    }
    return 0;
}

static int judge_bench(const struct settings *settings, char *why)
{
    static const struct part parts[] = {
        {OPTION_ID_FLOATS, {"wire"}}, {OPTION_ID_FULL, {"sim"}}, {OPTION_ID_DATA, {"run"}}};
    int error = judge_parts(settings, parts, sizeof parts / sizeof *parts, why);
    if (error || !settings->quick || !settings->full) return error;
    return judge_refuse(why, "--quick and --full exclude each other");
}

static int judge_saved(const struct settings *settings, char *why)
{
    static const struct part parts[] = {
        {OPTION_ID_DATA, {"eval", "predict"}}, {OPTION_ID_TEST, {"eval"}},
        {OPTION_ID_EXPORT_OUT, {"export"}},    {OPTION_ID_PROMPT, {"sample"}},
        {OPTION_ID_LENGTH, {"sample"}},        {OPTION_ID_TEMPERATURE, {"sample"}},
        {OPTION_ID_SAMPLE_SEED, {"sample"}},
    };
    return judge_parts(settings, parts, sizeof parts / sizeof *parts, why);
}

bool judge_is_of_several(const struct settings *settings)
{
    bool compares = settings->verb == VERB_SIM && settings->compare; /* check takes it, as node */
    return compares || settings->sweeps[OPTION_ID_STRATEGY].count > 1;
}

/* In this order: of several faults the first is told. */
static const struct {
    int (*judge)(const struct settings *settings, char *why);
    unsigned verbs;
    bool alone; /* of several strategies it is for each of the runs */
} judges[] = {
#define NODE (VERB_BIT(VERB_NODE) | VERB_BIT(VERB_CHECK))
#define RUN (VERB_BIT(VERB_RUN) | VERB_BIT(VERB_SIM))
    {judge_loudness, ~0u, false},
    {judge_outputs, NODE | RUN, false},
    {judge_model, NODE | RUN, false},
    {judge_quadratic, VERB_BIT(VERB_SIM), false},
    {judge_codec, NODE | RUN, false},
    {judge_network, NODE, false},
    {judge_seeds, NODE, false},
    {judge_size, NODE | RUN, false},
    {judge_shard, NODE, false},
    {judge_strategy, NODE | RUN, true},
    {judge_servers, NODE | RUN, true},
    {judge_robust, NODE | RUN, true},
    {judge_optimizer, NODE | RUN, false},
    {judge_training, NODE | RUN, false},
    {judge_course, NODE | RUN, false},
    {judge_target, NODE | RUN, false},
    {judge_checkpoint, NODE | RUN, false},
    {judge_topology, NODE | RUN | VERB_BIT(VERB_TOPOLOGY), false},
    {judge_rounds, NODE | RUN, false},
    {judge_simulation, RUN, false},
    {judge_swarm, VERB_BIT(VERB_SIM), false},
    {judge_sim_out, VERB_BIT(VERB_SIM), false},
    {judge_faults, RUN, false},
    {judge_lies, VERB_BIT(VERB_SIM), true},
    {judge_bench, VERB_BIT(VERB_BENCH), false},
    {judge_saved, VERB_BIT(VERB_MODEL), false},
#undef NODE
#undef RUN
};

int judge_together(const struct settings *settings, char *why)
{
    int error = 0;
    for (size_t i = 0; !error && i < sizeof judges / sizeof *judges; i++) {
        bool asked = judges[i].verbs & VERB_BIT(settings->verb);
        if (asked && !(judges[i].alone && judge_is_of_several(settings)))
            error = judges[i].judge(settings, why);
    }
    return error;
}
