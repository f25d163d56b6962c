/* settings.c: values from environment, file and defaults, and their ranks. */
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parley/node.h"
#include "report/text.h"
#include "settings/fallback.h"
#include "settings/judge.h"
#include "settings/nearest.h"
#include "settings/put.h"
#include "settings/values/value.h"
#include "settings/yaml.h"

void settings_init(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->verb = VERB_HELP;
    settings->topic = -1;
    settings->level = PARLEY_LOG_WARN; /* of verbs without --log-level */
}

/* The text to be stored: `text` itself, or added to what the same source gave before. */
static char *gather(const struct settings *settings, enum option_id id, const char *text,
                    const struct put_place *place)
{
    const struct settings_value *value = &settings->values[id];
    bool adds =
        (option_repeats(id) || place->adds) && value->text && value->origin == place->origin;
    const char *before = adds ? value->text : "";
    enum option_kind kind = option_info(id)->kind;
    const char *between = !adds                                         ? ""
                          : kind == OPTION_STRATEGIES                   ? " or "
                          : !option_repeats(id) || kind == OPTION_SEEDS ? ","
                                                                        : " ";
    size_t size = strlen(before) + strlen(between) + strlen(text) + 1;
    char *copy = malloc(size);
    if (copy) snprintf(copy, size, "%s%s%s", before, between, text);
    return copy;
}

static bool may_sweep(const struct settings *settings, enum option_id id)
{
    return settings->verb == VERB_SIM && option_sweeps(id);
}

/* Judges `text` and, with `store`, puts it into its field: a sweep's first value. */
static int take_value(struct settings *settings, enum option_id id, const char *text, bool store,
                      char *clause)
{
    struct sweep sweep = {0};
    int error = may_sweep(settings, id) ? sweep_parse(&sweep, id, text, clause)
                                        : value_parse(id, text, NULL, clause);
    bool none = sweep.count > 0 && sweep_is_none(id, sweep.values[0]);
    if (!error && store && none)
        value_clear(id, settings);
    else if (!error && store)
        error = value_parse(id, sweep.count > 0 ? sweep.values[0] : text, settings, clause);
    if (error || !store) {
        sweep_close(&sweep);
        return error;
    }
    sweep_close(&settings->sweeps[id]); /* nothing borrows of the former one any more */
    settings->sweeps[id] = sweep;
    return 0;
}

/* Whether parley sim would make a run of each of several values of it. */
static bool would_sweep(const struct settings *settings, enum option_id id, const char *text)
{
    struct sweep sweep;
    char clause[SETTINGS_WHY_BYTES];
    if (settings->verb == VERB_SIM || !option_sweeps(id) || sweep_parse(&sweep, id, text, clause))
        return false;
    bool several = sweep.count > 1;
    sweep_close(&sweep);
    return several;
}

int put_value(struct settings *settings, enum option_id id, const char *text,
              const struct put_place *place, char why[SETTINGS_WHY_BYTES])
{
    struct settings_value *value = &settings->values[id];
    char clause[SETTINGS_WHY_BYTES] = "";
    char quoted[TEXT_QUOTED_BYTES];
    bool tried = settings->verb == VERB_SIM && !option_sweeps(id) &&
                 option_info(id)->kind != OPTION_STRATEGIES &&
                 option_info(id)->kind != OPTION_RANGE && strpbrk(text, ",.") != NULL;
    int error = take_value(settings, id, text, false, clause);
    if (error) goto blame;
    bool taken = option_info(id)->verbs & VERB_BIT(settings->verb);
    if (place->origin == ORIGIN_FILE && !taken) return 0; /* one file may be for several verbs */
    if (value->origin > place->origin) return 0;
    if (id == OPTION_ID_CONFIG && value->origin == ORIGIN_FLAG) {
        snprintf(
            why, SETTINGS_WHY_BYTES,
            "%s: %s is a second file; put the settings of both into one, or give some as flags",
            place->label, text_quote(quoted, text));
        return PARLEY_EUSAGE;
    }
    char *copy = gather(settings, id, text, place);
    error = copy ? take_value(settings, id, copy, true, clause) : units_lack_memory(clause);
    if (error) {
        free(copy);
        goto blame;
    }
    free(value->text);
    *value = (struct settings_value){copy, place->origin, place->line};
    return 0;
blame:
    snprintf(why, SETTINGS_WHY_BYTES, "%s: %s %.400s%s", place->label, text_quote(quoted, text),
             clause,
             error == PARLEY_ENOMEM            ? ""
             : tried                           ? " (it can't be swept)"
             : would_sweep(settings, id, text) ? " (parley sim would try each of these)"
                                               : "");
    return error;
}

/* Leaves a note if `name` (without PARLEY_) is nearly, but not, an option's. */
static void note_variable(struct settings *settings, const char *variable, size_t length)
{
    char name[64], other[64];
    if (length >= sizeof name || settings->note[0]) return;
    snprintf(name, sizeof name, "%.*s", (int)length, variable);
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        if (!option_is_setting((enum option_id)id)) continue;
        option_variable((enum option_id)id, other);
        size_t distance = nearest_distance(name, other);
        if (distance == 0 || distance > 1 + (strlen(other) > 14)) continue;
        snprintf(settings->note, sizeof settings->note,
                 "the environment has %s, which sets nothing; did you mean %s?", name, other);
        return;
    }
}

/* Which option "NAME=value" is for, or OPTION_ID_COUNT. */
static enum option_id option_of(const char *variable)
{
    size_t length = strcspn(variable, "=");
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        char name[64];
        option_variable(id, name);
        if (strlen(name) == length && strncmp(variable, name, length) == 0 &&
            (option_is_setting(id) || id == OPTION_ID_CONFIG))
            return id;
    }
    return OPTION_ID_COUNT;
}

bool settings_is_variable(const char *variable)
{
    return option_of(variable) < OPTION_ID_COUNT;
}

static int take_variable(struct settings *settings, const char *variable, char *why)
{
    struct put_place place = {.origin = ORIGIN_ENVIRONMENT};
    const char *equals = strchr(variable, '=');
    if (strncmp(variable, "PARLEY_", 7) != 0 || !equals) return 0;
    enum option_id id = option_of(variable);
    if (id == OPTION_ID_COUNT) {
        note_variable(settings, variable, (size_t)(equals - variable));
        return 0;
    }
    if (!(option_info(id)->verbs & VERB_BIT(settings->verb))) return 0;
    option_variable(id, place.label);
    return put_value(settings, id, equals + 1, &place, why);
}

int settings_environment(struct settings *settings, char *const *variables,
                         char why[SETTINGS_WHY_BYTES])
{
    bool no_color = false;
    for (; variables && *variables; variables++) {
        int error = take_variable(settings, *variables, why);
        if (error) return error;
        if (strncmp(*variables, "NO_COLOR=", 9) == 0 && (*variables)[9] != '\0') no_color = true;
    }
    struct settings_value *color = &settings->values[OPTION_ID_COLOR];
    if (!no_color || color->origin >= ORIGIN_ENVIRONMENT) return 0;
    if (!(option_info(OPTION_ID_COLOR)->verbs & VERB_BIT(settings->verb))) return 0;
    settings->no_color = true;
    return put_value(settings, OPTION_ID_COLOR, "never",
                     &(struct put_place){.origin = ORIGIN_ENVIRONMENT, .label = "NO_COLOR"}, why);
}

struct file_walk {
    struct settings *settings;
    const char *name;
    char *why;
    bool seen[OPTION_ID_COUNT];
};

static int unknown_key(struct file_walk *walk, const char *key, unsigned line)
{
    char quoted[TEXT_QUOTED_BYTES], clause[NEAREST_CLAUSE_BYTES];
    struct nearest nearest = nearest_start(key);
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        if (option_is_setting((enum option_id)id))
            nearest_try(&nearest, option_info((enum option_id)id)->name);
    snprintf(walk->why, SETTINGS_WHY_BYTES, "%.300s:%u: %s is not a setting%s", walk->name, line,
             text_quote(quoted, key), nearest_clause(clause, nearest_take(&nearest)));
    return PARLEY_EUSAGE;
}

static int visit(void *context, const char *key, const char *value, unsigned item, unsigned line)
{
    struct file_walk *walk = context;
    enum option_id id = option_find(key, VERB_NODE);
    if (id == OPTION_ID_COUNT || !option_is_setting(id)) return unknown_key(walk, key, line);
    struct put_place place = {.origin = ORIGIN_FILE, .line = line};
    snprintf(place.label, sizeof place.label, "%.300s:%u: %s", walk->name, line, key);
    bool lists = option_repeats(id) || id == OPTION_ID_COMPARE || may_sweep(walk->settings, id);
    if (item > 0 && !lists) {
        snprintf(walk->why, SETTINGS_WHY_BYTES, "%s: takes one value, not a list%s", place.label,
                 option_sweeps(id) ? " (lists are for parley sim)" : "");
        return PARLEY_EUSAGE;
    }
    place.adds = item > 1;
    if (walk->seen[id] && item < 2) {
        snprintf(walk->why, SETTINGS_WHY_BYTES, "%s: is there twice", place.label);
        return PARLEY_EUSAGE;
    }
    walk->seen[id] = true;
    return put_value(walk->settings, id, value, &place, walk->why);
}

int settings_file(struct settings *settings, const char *name, const void *bytes, size_t size,
                  char why[SETTINGS_WHY_BYTES])
{
    struct file_walk walk = {.settings = settings, .name = name, .why = why};
    units_why clause;
    clause[0] = '\0';
    settings->file_name = name;
    unsigned line;
    int error = yaml_walk(bytes, size, visit, &walk, &line, clause);
    if (error && clause[0] && line > 0)
        snprintf(why, SETTINGS_WHY_BYTES, "%.300s:%u: %s", name, line, clause);
    else if (error && clause[0])
        snprintf(why, SETTINGS_WHY_BYTES, "%.300s: %s", name, clause);
    return error;
}

static int put_default(struct settings *settings, enum option_id id, const char *text, char *why)
{
    struct put_place place = {.origin = ORIGIN_DEFAULT};
    snprintf(place.label, sizeof place.label, "default of --%s", option_info(id)->name);
    return settings->values[id].text ? 0 : put_value(settings, id, text, &place, why);
}

/* What is said is asked by three options: those of a lower rank than another lose. */
static void drop_outranked(struct settings *settings)
{
    static const enum option_id asked[] = {OPTION_ID_LOG_LEVEL, OPTION_ID_QUIET, OPTION_ID_VERBOSE};
    const struct settings_value *values = settings->values;
    enum settings_origin highest = values[OPTION_ID_LOG_LEVEL].origin;
    if (settings->quiet && values[OPTION_ID_QUIET].origin > highest)
        highest = values[OPTION_ID_QUIET].origin;
    if (settings->verbose && values[OPTION_ID_VERBOSE].origin > highest)
        highest = values[OPTION_ID_VERBOSE].origin;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct settings_value *value = &settings->values[asked[i]];
        if (!value->text || value->origin >= highest) continue;
        value_clear(asked[i], settings);
        free(value->text);
        *value = (struct settings_value){0};
    }
}

static void settle_level(struct settings *settings)
{
    if (settings->values[OPTION_ID_LOG_LEVEL].origin > ORIGIN_DEFAULT) return;
    if (settings->quiet) settings->level = PARLEY_LOG_ERROR;
    if (settings->verbose) settings->level = PARLEY_LOG_DEBUG;
}

bool settings_wants_progress(const struct settings *settings)
{
    if (settings->progress == WHEN_AUTO) return settings->level >= PARLEY_LOG_INFO;
    return settings->progress == WHEN_ALWAYS;
}

/* What a strategy's name says after its colon. */
static int put_staleness(struct settings *settings, char *why)
{
    const char *text = settings->values[OPTION_ID_STRATEGY].text;
    bool one = settings->sweeps[OPTION_ID_STRATEGY].count <= 1;
    const char *colon = text && one ? strchr(text, ':') : NULL;
    units_why clause;
    if (!colon || !units_count(colon + 1, 0, 1000000, &settings->staleness, clause)) return 0;
    snprintf(why, SETTINGS_WHY_BYTES,
             "--strategy: \"%.64s\": the steps that a node may be ahead of the slowest are a whole "
             "number from 0 to 1000000, like ps-ssp:4",
             text);
    return PARLEY_EUSAGE;
}

int settings_finish(struct settings *settings, char why[SETTINGS_WHY_BYTES])
{
    unsigned bit = VERB_BIT(settings->verb);
    drop_outranked(settings);
    for (int pass = 0; pass < 2; pass++) /* what others go by is settled first */
        for (int i = 0; i < OPTION_ID_COUNT; i++) {
            enum option_id id = (enum option_id)i;
            char text[FALLBACK_BYTES];
            if (pass == 0 && id != OPTION_ID_STRATEGY && id != OPTION_ID_OPTIMIZER) continue;
            const char *fallback = fallback_of(settings, id, text);
            int error = fallback ? put_default(settings, id, fallback, why) : 0;
            if (error) return error;
        }
    bool budget = settings->epochs > 0 || settings->steps > 0 || settings->time_us > 0 ||
                  settings->accuracy > 0;
    if (!budget && (option_info(OPTION_ID_EPOCHS)->verbs & bit)) {
        int error = put_default(settings, OPTION_ID_EPOCHS, "4", why);
        if (error) return error;
    }
    settle_level(settings);
    int error = put_staleness(settings, why);
    return error ? error : judge_together(settings, why);
}

const char *settings_origin_text(const struct settings *settings, enum option_id id,
                                 char out[SETTINGS_WHY_BYTES])
{
    char name[64];
    const struct settings_value *value = &settings->values[id];
    const struct option_info *info = option_info(id);
    bool own;
    switch (value->origin) {
    case ORIGIN_UNSET:
        snprintf(out, SETTINGS_WHY_BYTES, "unset");
        break;
    case ORIGIN_DEFAULT:
        own = info->fallback && strcmp(value->text, info->fallback) != 0;
        snprintf(out, SETTINGS_WHY_BYTES, "default%s%.64s", own ? " of " : "",
                 own ? settings->values[OPTION_ID_STRATEGY].text : "");
        break;
    case ORIGIN_FILE:
        snprintf(out, SETTINGS_WHY_BYTES, "file %.900s:%u", settings->file_name, value->line);
        break;
    case ORIGIN_ENVIRONMENT:
        snprintf(out, SETTINGS_WHY_BYTES, "environment %s",
                 id == OPTION_ID_COLOR && settings->no_color ? "NO_COLOR"
                                                             : option_variable(id, name));
        break;
    case ORIGIN_FLAG:
        snprintf(out, SETTINGS_WHY_BYTES, "flag");
        break;
    }
    return out;
}

bool settings_is_node(const char *name, uint64_t nodes)
{
    char expected[24];
    uint64_t number = name[0] == 'n' ? strtoull(name + 1, NULL, 10) : nodes;
    snprintf(expected, sizeof expected, "n%" PRIu64, number);
    return number < nodes && strcmp(name, expected) == 0;
}

bool settings_is_own(enum option_id id)
{
    switch (id) {
    case OPTION_ID_NODES:
    case OPTION_ID_LISTEN:
    case OPTION_ID_ADVERTISE:
    case OPTION_ID_NAME:
    case OPTION_ID_JOIN:
    case OPTION_ID_PEERS:
    case OPTION_ID_SHARD:
    case OPTION_ID_OUT:
    case OPTION_ID_JSON:
    case OPTION_ID_PROGRESS:
    case OPTION_ID_LOG_FORMAT:
    case OPTION_ID_COLOR:
        return true;
    default:
        return !option_is_setting(id);
    }
}

int settings_forward(const struct settings *settings, char ***arguments, size_t *count)
{
    size_t bytes = (OPTION_ID_COUNT + 1) * sizeof(char *);
    bool passes[OPTION_ID_COUNT];
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        const struct option_info *info = option_info((enum option_id)i);
        const struct settings_value *value = &settings->values[i];
        unsigned both = VERB_BIT(settings->verb) | VERB_BIT(VERB_NODE);
        passes[i] = value->origin > ORIGIN_DEFAULT && (info->verbs & both) == both &&
                    !settings_is_own((enum option_id)i) &&
                    (info->metavar || strcmp(value->text, "true") == 0);
        if (passes[i]) bytes += strlen(info->name) + strlen(value->text) + 4;
    }
    char **list = malloc(bytes);
    if (!list) return PARLEY_ENOMEM;
    char *at = (char *)(list + OPTION_ID_COUNT + 1);
    *count = 0;
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        if (!passes[i]) continue;
        const struct option_info *info = option_info((enum option_id)i);
        list[(*count)++] = at;
        const char *text = settings->values[i].text;
        size_t room = strlen(info->name) + strlen(text) + 4;
        at += snprintf(at, room, info->metavar ? "--%s=%s" : "--%s", info->name, text) + 1;
    }
    list[*count] = NULL;
    *arguments = list;
    return 0;
}

int settings_copy(struct settings *copy, const struct settings *base,
                  const char *const texts[OPTION_ID_COUNT], char why[SETTINGS_WHY_BYTES])
{
    settings_init(copy);
    copy->verb = base->verb;
    copy->topic = base->topic;
    copy->file_name = base->file_name;
    copy->no_color = base->no_color;
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        const struct settings_value *value = &base->values[i];
        const char *text = value->origin > ORIGIN_DEFAULT ? value->text : "";
        struct put_place place = {.origin = value->origin, .line = value->line};
        if (texts[i]) text = texts[i];
        if (place.origin <= ORIGIN_DEFAULT) place.origin = ORIGIN_FLAG;
        snprintf(place.label, sizeof place.label, "--%s", option_info((enum option_id)i)->name);
        if (!text[0]) continue;
        int error = put_value(copy, (enum option_id)i, text, &place, why);
        if (error) return error;
    }
    return settings_finish(copy, why);
}

void settings_close(struct settings *settings)
{
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        sweep_close(&settings->sweeps[id]);
        value_clear((enum option_id)id, settings);
        free(settings->values[id].text);
    }
    memset(settings, 0, sizeof *settings);
}
