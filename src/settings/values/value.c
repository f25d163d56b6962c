/* value.c: one case a kind. */
#include "settings/values/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "settings/contenders.h"
#include "settings/nearest.h"
#include "settings/options.h"

enum { RANGE_MAX = 100000000 };

union value {
    bool flag;
    int choice;
    uint64_t count;
    double real;
    const char *text;
    struct settings_period period;
    struct units_dist dist;
    struct units_address address;
    struct settings_shard shard;
    struct settings_range range;
    struct seeds seeds;
    struct faults faults;
    struct links links;
};

static size_t size_of(enum option_kind kind)
{
    static const size_t sizes[] = {
        [OPTION_FLAG] = sizeof(bool),
        [OPTION_COUNT] = sizeof(uint64_t),
        [OPTION_REAL] = sizeof(double),
        [OPTION_TIME] = sizeof(uint64_t),
        [OPTION_PERIOD] = sizeof(struct settings_period),
        [OPTION_DIST] = sizeof(struct units_dist),
        [OPTION_RATE] = sizeof(uint64_t),
        [OPTION_ADDRESS] = sizeof(struct units_address),
        [OPTION_SHARD] = sizeof(struct settings_shard),
        [OPTION_RANGE] = sizeof(struct settings_range),
        [OPTION_TEXT] = sizeof(const char *),
        [OPTION_NAME] = sizeof(const char *),
        [OPTION_SPEC] = sizeof(const char *),
        [OPTION_CHOICE] = sizeof(int),
        [OPTION_SEEDS] = sizeof(struct seeds),
        [OPTION_FAULTS] = sizeof(struct faults),
        [OPTION_LINKS] = sizeof(struct links),
        [OPTION_STRATEGIES] = sizeof(const char *),
    };
    return sizes[kind];
}

/* Whether `word` is the valid word, or begins with a valid word that ends in ':' and goes on. */
static bool word_fits(const char *word, const char *valid)
{
    size_t length = strlen(valid);
    if (valid[length - 1] != ':') return strcmp(word, valid) == 0;
    return strncmp(word, valid, length) == 0 && word[length] != '\0';
}

int value_word(const char *word, const char *const *valid, const char *is_none, int *place,
               char clause[SETTINGS_WHY_BYTES])
{
    char head[64], hint[NEAREST_CLAUSE_BYTES];
    snprintf(head, sizeof head, "%.*s", (int)strcspn(word, ":"), word);
    struct nearest nearest = nearest_start(head);
    for (int i = 0; valid[i]; i++) {
        if (word_fits(word, valid[i])) {
            *place = i;
            return 0;
        }
        char plain[32];
        snprintf(plain, sizeof plain, "%.*s", (int)strcspn(valid[i], ":"), valid[i]);
        size_t before = nearest.distance;
        nearest_try(&nearest, plain);
        if (nearest.distance < before) nearest.word = valid[i];
    }
    struct text text;
    text_init(&text, SETTINGS_WHY_BYTES - 1);
    const char *near = nearest_take(&nearest);
    for (int i = 0; valid[i]; i++) /* "gpt:" may be gpt or gpt:... */
        if (strncmp(valid[i], head, strlen(head)) == 0 && strcmp(valid[i] + strlen(head), ":") == 0)
            near = valid[i];
    if (near && nearest.distance == 0 && strchr(near, ':'))
        text_add(&text, "lacks %s: write %s%s", option_operand(near), near, option_operand(near));
    else if (near && nearest.distance == 0)
        text_add(&text, "is more than \"%s\"", near);
    else
        text_add(&text, "%s", is_none);
    if (nearest.distance > 0) text_add(&text, "%s", nearest_clause(hint, near));
    text_add(&text, " (valid: ");
    option_add_words(&text, valid);
    text_add(&text, ")");
    char *bytes = text_take(&text);
    snprintf(clause, SETTINGS_WHY_BYTES, "%s", bytes ? bytes : "is not valid");
    free(bytes);
    return PARLEY_EUSAGE;
}

static int parse_word(const struct option_info *option, const char *word, int *place, char *clause)
{
    char is_none[64];
    bool is_data = strcmp(option->name, "data") == 0 || strcmp(option->name, "test") == 0;
    const char *what = is_data ? "kind of data" : option->name;
    snprintf(is_none, sizeof is_none, "is not %s %s", strchr("aeiou", what[0]) ? "an" : "a", what);
    return value_word(word, option->valid, is_none, place, clause);
}

static int parse_flag(const char *text, bool *flag, char *clause)
{
    *flag = strcmp(text, "true") == 0;
    if (*flag || strcmp(text, "false") == 0) return 0;
    return units_refuse(clause, "is neither true nor false");
}

static int parse_shard(const char *text, struct settings_shard *shard, char *clause)
{
    char left[16];
    units_why why;
    uint64_t index, count;
    const char *slash = strchr(text, '/');
    if (!slash || slash - text >= (int)sizeof left)
        return units_refuse(clause, "is not a share (write I/N, like 0/4)");
    snprintf(left, sizeof left, "%.*s", (int)(slash - text), text);
    if (units_count(left, 0, UINT32_MAX, &index, why) ||
        units_count(slash + 1, 1, 100000, &count, why))
        return units_refuse(clause, "is not a share (write I/N, like 0/4)");
    if (index >= count)
        return units_refuse(clause, "names a share past the last (I runs from 0 to N-1)");
    *shard = (struct settings_shard){(uint32_t)index, (uint32_t)count};
    return 0;
}

static int parse_range(const char *text, struct settings_range *range, char *clause)
{
    char left[24];
    units_why why;
    const char *dots = strstr(text, "..");
    if (!dots || dots - text >= (int)sizeof left)
        return units_refuse(clause, "is not a range (write A..B, like 1..2000)");
    snprintf(left, sizeof left, "%.*s", (int)(dots - text), text);
    if (units_count(left, 1, UINT64_MAX, &range->first, why) ||
        units_count(dots + 2, 1, UINT64_MAX, &range->last, why))
        return units_refuse(clause, "is not a range of counts from 1 (write A..B, like 1..2000)");
    if (range->first > range->last) return units_refuse(clause, "ends before it begins");
    if (range->last - range->first >= RANGE_MAX)
        return units_refuse(clause, "is too long (at most 100000000)");
    return 0;
}

static int parse_name(const char *text, char *clause)
{
    if (units_is_name(text)) return 0;
    return units_refuse(clause, "is not a name (1 to 31 letters, digits, '.', '_', '-')");
}

/* `min`: the least, in microseconds. */
static int parse_time(const char *text, double min, uint64_t *us, char *clause)
{
    int error = units_time(text, us, clause);
    if (!error && (double)*us < min) return units_refuse(clause, "is out of range (above 0)");
    return error;
}

static int parse_strategies(const char *text, char *clause)
{
    struct contenders contenders;
    int error = contenders_parse(&contenders, text, clause);
    if (!error) contenders_close(&contenders);
    return error;
}

static int parse(const struct option_info *option, const char *text, union value *value,
                 char clause[SETTINGS_WHY_BYTES])
{
    int place;
    uint64_t max = option->max < 1.8e19 ? (uint64_t)option->max : UINT64_MAX;
    switch (option->kind) {
    case OPTION_FLAG:
        return parse_flag(text, &value->flag, clause);
    case OPTION_COUNT:
        return units_count(text, (uint64_t)option->min, max, &value->count, clause);
    case OPTION_REAL:
        return units_real(text, option->min, option->max, &value->real, clause);
    case OPTION_TIME:
        return parse_time(text, option->min, &value->count, clause);
    case OPTION_PERIOD:
        return period_parse(&value->period, text, max, clause);
    case OPTION_DIST:
        return units_dist(text, &value->dist, clause);
    case OPTION_RATE:
        return units_rate(text, &value->count, clause);
    case OPTION_ADDRESS:
        return units_address(text, &value->address, clause);
    case OPTION_SHARD:
        return parse_shard(text, &value->shard, clause);
    case OPTION_RANGE:
        return parse_range(text, &value->range, clause);
    case OPTION_TEXT:
        value->text = text;
        return 0;
    case OPTION_NAME:
        value->text = text;
        return parse_name(text, clause);
    case OPTION_SPEC:
        value->text = text;
        return parse_word(option, text, &place, clause);
    case OPTION_CHOICE:
        return parse_word(option, text, &value->choice, clause);
    case OPTION_SEEDS:
        return seeds_add_list(&value->seeds, text, clause);
    case OPTION_FAULTS:
        return faults_add_list(&value->faults, text, clause);
    case OPTION_LINKS:
        return links_add_list(&value->links, text, clause);
    case OPTION_STRATEGIES:
        value->text = text;
        return parse_strategies(text, clause);
    }
    return PARLEY_EUSAGE;
}

static void close_field(enum option_kind kind, void *field)
{
    if (kind == OPTION_SEEDS) seeds_close(field);
    if (kind == OPTION_FAULTS) faults_close(field);
    if (kind == OPTION_LINKS) links_close(field);
}

int value_parse(enum option_id id, const char *text, struct settings *settings,
                char clause[SETTINGS_WHY_BYTES])
{
    const struct option_info *option = option_info(id);
    union value value;
    memset(&value, 0, sizeof value);
    if (text[0] == '\0') return units_refuse(clause, "is empty");
    if (!option_repeats(id)) {
        if (strlen(text) > SETTINGS_VALUE_BYTES_MAX) return units_refuse(clause, "is too long");
        if (!text_clean(text))
            return units_refuse(clause, "is not clean text (UTF-8 without control characters)");
    }
    int error = parse(option, text, &value, clause);
    if (!error && settings) {
        value_clear(id, settings);
        memcpy((char *)settings + option->offset, &value, size_of(option->kind));
    } else
        close_field(option->kind, &value);
    return error;
}

void value_clear(enum option_id id, struct settings *settings)
{
    void *field = (char *)settings + option_info(id)->offset;
    close_field(option_info(id)->kind, field);
    memset(field, 0, size_of(option_info(id)->kind));
}
