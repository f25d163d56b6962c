/* flags.c: the command line, by getopt_long with a table made from options.def.
 *
 * The verb comes first; then flags and operands in any order; `--` ends the flags. Refused: an
 * abbreviated flag (getopt_long would take it), a flag of another verb, a missing value.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "settings/help.h"
#include "settings/nearest.h"
#include "settings/put.h"
#include "settings/values/value.h"

enum { LONG_BASE = 256 }; /* getopt's return values: LONG_BASE + option id */

static int find_verb(struct settings *settings, const char *word, char *why)
{
    struct nearest nearest = nearest_start(word);
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        if (strcmp(word, verb_info(verb)->name) == 0) {
            settings->verb = (enum verb)verb;
            return 0;
        }
        nearest_try(&nearest, verb_info(verb)->name);
    }
    char quoted[TEXT_QUOTED_BYTES], clause[NEAREST_CLAUSE_BYTES];
    if (word[0] == '-')
        snprintf(why, SETTINGS_WHY_BYTES, "%s: write the verb first, as in parley run %s",
                 text_quote(quoted, word), "--epochs 2");
    else
        snprintf(why, SETTINGS_WHY_BYTES, "%s is not a verb%s (parley help lists them)",
                 text_quote(quoted, word), nearest_clause(clause, nearest_take(&nearest)));
    return PARLEY_EUSAGE;
}

/* Long options for getopt: one a name, that of the verb where a name has two. */
static void make_table(enum verb verb, struct option longs[OPTION_ID_COUNT + 1],
                       char shorts[2 * OPTION_ID_COUNT + 3])
{
    size_t count = 0, length = 0;
    shorts[length++] = '-'; /* operands come in place, as 1 */
    shorts[length++] = ':'; /* a missing value is ':', not '?' */
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        if (option_find(info->name, verb) != (enum option_id)id) continue;
        int has_value = info->metavar ? required_argument : no_argument;
        longs[count++] = (struct option){info->name, has_value, NULL, LONG_BASE + id};
        if (!info->letter) continue;
        shorts[length++] = info->letter;
        if (has_value) shorts[length++] = ':';
    }
    longs[count] = (struct option){0};
    shorts[length] = '\0';
}

static int unknown_flag(enum verb verb, const char *token, char *why)
{
    char quoted[TEXT_QUOTED_BYTES], clause[NEAREST_CLAUSE_BYTES] = "";
    char name[66];
    const char *start = token + strspn(token, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    struct nearest nearest = nearest_start(name);
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        if (option_info((enum option_id)id)->verbs & VERB_BIT(verb))
            nearest_try(&nearest, option_info((enum option_id)id)->name);
    /* An abbreviation is far in letters and near in meaning. */
    const char *near = nearest_take(&nearest);
    for (int id = 0; !near && name[0] && id < OPTION_ID_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        if (strncmp(info->name, name, strlen(name)) == 0 && info->verbs & VERB_BIT(verb))
            near = info->name;
    }
    /* Not nearest_clause(): a flag stands without quotes, as it is typed. */
    if (near) snprintf(clause, sizeof clause, "; did you mean --%s?", near);
    snprintf(why, SETTINGS_WHY_BYTES, "%s is not an option of %s%s (parley help %s lists them)",
             text_quote(quoted, token), verb_info(verb)->name, clause, verb_info(verb)->name);
    return PARLEY_EUSAGE;
}

static enum option_id by_letter(int letter, enum verb verb)
{
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        if (letter > 1 && option_info((enum option_id)id)->letter == letter)
            return option_find(option_info((enum option_id)id)->name, verb);
    return OPTION_ID_COUNT;
}

/* True if the token spells the option's name in full, with or without a value. */
static bool is_exact(const char *token, const char *name)
{
    size_t length = strlen(name);
    return strncmp(token, "--", 2) == 0 && strncmp(token + 2, name, length) == 0 &&
           (token[2 + length] == '\0' || token[2 + length] == '=');
}

/* Options of one name, of other verbs each, are one to who reads of it. */
static int check_verb(const struct settings *settings, enum option_id id, char *why)
{
    const struct option_info *info = option_info(id);
    char text[VERBS_TEXT_BYTES];
    unsigned verbs = 0;
    if (info->verbs & VERB_BIT(settings->verb)) return 0;
    for (int other = 0; other < OPTION_ID_COUNT; other++)
        if (strcmp(option_info((enum option_id)other)->name, info->name) == 0)
            verbs |= option_info((enum option_id)other)->verbs;
    snprintf(why, SETTINGS_WHY_BYTES, "--%s is an option of %s, not of %s", info->name,
             verbs_text(verbs, text), verb_info(settings->verb)->name);
    return PARLEY_EUSAGE;
}

static int missing_value(enum option_id id, char *why)
{
    snprintf(why, SETTINGS_WHY_BYTES, "--%s: needs a value, %s", option_info(id)->name,
             option_info(id)->metavar);
    return PARLEY_EUSAGE;
}

static int needless_value(enum option_id id, char *why)
{
    snprintf(why, SETTINGS_WHY_BYTES, "--%s takes no value", option_info(id)->name);
    return PARLEY_EUSAGE;
}

/* getopt takes the next word for the value, whatever it is: of `--json -q` it would make a file
 * "-q". Numbers have their own say on what begins with a minus sign. */
static int check_swallowed(enum option_id id, const char *value, char *why)
{
    const struct option_info *info = option_info(id);
    if (info->kind != OPTION_TEXT || value[0] != '-' || value[1] == '\0') return 0;
    char quoted[TEXT_QUOTED_BYTES];
    snprintf(why, SETTINGS_WHY_BYTES,
             "--%s: needs a value, %s, and %s begins as a flag does; --%s=%s if it is the value",
             info->name, info->metavar, text_quote(quoted, value), info->name, value);
    return PARLEY_EUSAGE;
}

static int take_flag(struct settings *settings, enum option_id id, const char *value, char *why)
{
    const struct option_info *info = option_info(id);
    struct put_place place = {.origin = ORIGIN_FLAG};
    snprintf(place.label, sizeof place.label, "--%s", info->name);
    return put_value(settings, id, info->metavar ? value : "true", &place, why);
}

static int take_operand(struct settings *settings, int *count, const char *word, char *why)
{
    const struct verb_info *info = verb_info(settings->verb);
    char quoted[TEXT_QUOTED_BYTES], clause[SETTINGS_WHY_BYTES];
    int place;
    text_quote(quoted, word);
    if (*count == info->operands_max) {
        snprintf(why, SETTINGS_WHY_BYTES, "%s: parley %s takes %s%s", quoted, info->name,
                 info->operands_max ? "only " : "no operands; flags begin with --", info->operands);
        return PARLEY_EUSAGE;
    }
    settings->operands[(*count)++] = word;
    if (*count > 1 || !info->first[0] ||
        value_word(word, info->first, info->first_is, &place, clause) == 0) {
        if (word[0] != '\0') return 0;
        snprintf(clause, sizeof clause, "is empty: parley %s takes %s", info->name, info->operands);
    }
    snprintf(why, SETTINGS_WHY_BYTES, "%s %.700s", quoted, clause);
    return PARLEY_EUSAGE;
}

/* The token that getopt has just judged: the one before a separate value, else the last. */
static const char *judged_token(char *const *argv, bool separate_value)
{
    return argv[optind - (separate_value ? 2 : 1)];
}

/* Whose getopt's number for a flag is: a long one, or a letter. */
static enum option_id id_of(int flag, enum verb verb)
{
    return flag >= LONG_BASE ? (enum option_id)(flag - LONG_BASE) : by_letter(flag, verb);
}

/* getopt knows no such flag, or one of that name that takes no value. */
static int blame_flag(const struct settings *settings, const char *token, char *why)
{
    if (optopt >= LONG_BASE) {
        enum option_id id = id_of(optopt, settings->verb);
        if (!is_exact(token, option_info(id)->name))
            return unknown_flag(settings->verb, token, why);
        int error = check_verb(settings, id, why);
        return error ? error : needless_value(id, why);
    }
    char letter[3] = {'-', (char)optopt, '\0'};
    return unknown_flag(settings->verb, optopt > 0 ? letter : token, why);
}

/* Nothing stands where the value should. */
static int blame_value(const struct settings *settings, const char *token, char *why)
{
    enum option_id id = id_of(optopt, settings->verb);
    if (optopt >= LONG_BASE && !is_exact(token, option_info(id)->name))
        return unknown_flag(settings->verb, token, why);
    int error = check_verb(settings, id, why);
    return error ? error : missing_value(id, why);
}

static int take_found(struct settings *settings, int flag, char *const *argv, char *why)
{
    enum option_id id = id_of(flag, settings->verb);
    bool separate = optarg && optarg == argv[optind - 1];
    const char *token = judged_token(argv, separate);
    if (flag >= LONG_BASE && !is_exact(token, option_info(id)->name))
        return unknown_flag(settings->verb, token, why);
    int error = check_verb(settings, id, why);
    if (!error && separate) error = check_swallowed(id, optarg, why);
    return error ? error : take_flag(settings, id, optarg, why);
}

static int take_all(struct settings *settings, int argc, char *const *argv, char *why)
{
    struct option longs[OPTION_ID_COUNT + 1];
    char shorts[2 * OPTION_ID_COUNT + 3];
    int operands = 0, found, error = 0;
    make_table(settings->verb, longs, shorts);
    opterr = 0;
    optind = 0; /* glibc: start anew */
    while (!error && (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (found == 1)
            error = take_operand(settings, &operands, optarg, why);
        else if (found == '?')
            error = blame_flag(settings, judged_token(argv, false), why);
        else if (found == ':')
            error = blame_value(settings, judged_token(argv, false), why);
        else
            error = take_found(settings, found, argv, why);
    }
    /* What follows "--". */
    for (; !error && optind < argc; optind++)
        error = take_operand(settings, &operands, argv[optind], why);
    return error;
}

/* --help and --version, wherever they stand, turn any verb into theirs. */
static int settle_verb(struct settings *settings, char *why)
{
    const struct verb_info *info = verb_info(settings->verb);
    if (settings->version)
        settings->verb = VERB_VERSION;
    else if (settings->help) {
        settings->topic = settings->verb == VERB_HELP ? -1 : (int)settings->verb;
        settings->verb = VERB_HELP;
    } else if (settings->verb == VERB_HELP && settings->operands[0]) {
        const char *word = settings->operands[0];
        bool manual = strcmp(word, "man") == 0;
        int error = manual ? 0 : find_verb(settings, word, why);
        if (error) return error;
        settings->topic = manual ? HELP_MANUAL : (int)settings->verb;
        settings->verb = VERB_HELP;
    } else {
        int count = 0;
        while (count < SETTINGS_OPERANDS_MAX && settings->operands[count])
            count++;
        if (count < info->operands_min) {
            snprintf(why, SETTINGS_WHY_BYTES, "parley %s needs %s", info->name, info->operands);
            return PARLEY_EUSAGE;
        }
    }
    return 0;
}

int settings_flags(struct settings *settings, int argc, char *const *argv,
                   char why[SETTINGS_WHY_BYTES])
{
    why[0] = '\0';
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        settings->verb = VERB_HELP;
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        settings->verb = VERB_VERSION;
        if (argc == 2) return 0;
        char quoted[TEXT_QUOTED_BYTES];
        snprintf(why, SETTINGS_WHY_BYTES, "%s: --version takes nothing behind it",
                 text_quote(quoted, argv[2]));
        return PARLEY_EUSAGE;
    }
    int error = find_verb(settings, argv[1], why);
    if (error) return error;
    /* The verb takes the place of the program's name. */
    error = take_all(settings, argc - 1, argv + 1, why);
    return error ? error : settle_verb(settings, why);
}

void settings_hear_format(struct settings *settings, int argc, char *const *argv,
                          char *const *variables)
{
    struct put_place place = {.origin = ORIGIN_FLAG};
    const char *text = NULL;
    char why[SETTINGS_WHY_BYTES], variable[64];
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *equals = strchr(argv[i], '=');
        if (is_exact(argv[i], option_info(OPTION_ID_LOG_FORMAT)->name))
            text = equals ? equals + 1 : argv[i + 1];
    }
    option_variable(OPTION_ID_LOG_FORMAT, variable);
    size_t length = strlen(variable);
    for (; !text && variables && *variables; variables++)
        if (strncmp(*variables, variable, length) == 0 && (*variables)[length] == '=')
            text = *variables + length + 1;
    if (text && put_value(settings, OPTION_ID_LOG_FORMAT, text, &place, why))
        return; /* it is the one that was refused, or would have been the next */
}
