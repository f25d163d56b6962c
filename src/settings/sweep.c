/* sweep.c: texts cut at their commas, ranges written out, each value judged.
 *
 * A range is counted in whole numbers where its option is (counts, and times in microseconds), so
 * that no value is off by a rounding; reals are A + i S or A F^i, printed to 12 digits.
 */
#include "settings/sweep.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "settings/values/units.h"
#include "settings/values/value.h"

enum { NUMBER_BYTES = 64 };

int sweep_refuse(char clause[SWEEP_CLAUSE_BYTES], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(clause, SWEEP_CLAUSE_BYTES, format, list);
    va_end(list);
    return PARLEY_EUSAGE;
}

static int add(struct sweep *sweep, const char *value, size_t length, char *clause)
{
    char quoted[TEXT_QUOTED_BYTES];
    if (sweep->count == SWEEP_VALUES_MAX)
        return sweep_refuse(clause, "stands for more than %d values", SWEEP_VALUES_MAX);
    char **grown = realloc(sweep->values, (sweep->count + 1) * sizeof *grown);
    if (!grown) return units_lack_memory(clause);
    sweep->values = grown;
    char *copy = malloc(length + 1);
    if (!copy) return units_lack_memory(clause);
    snprintf(copy, length + 1, "%.*s", (int)length, value);
    sweep->values[sweep->count++] = copy;
    for (size_t i = 0; i + 1 < sweep->count; i++)
        if (strcmp(sweep->values[i], copy) == 0)
            return sweep_refuse(clause, "has %s twice", text_quote(quoted, copy));
    return 0;
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

struct range {
    char first[NUMBER_BYTES], last[NUMBER_BYTES], step[NUMBER_BYTES];
    char how; /* '+', 'x', or 0: the step was not given */
};

/* Cuts A..B, A..B+S or A..BxF; false if it is none or its parts are too long. */
static bool cut(const char *text, struct range *range)
{
    const char *dots = strstr(text, "..");
    if (!dots || dots == text || strlen(text) >= NUMBER_BYTES) return false;
    const char *last = dots + 2;
    /* Not the sign of an exponent: 1e-4..1e+2. */
    const char *how = last;
    while (*how && *how != 'x' && (*how != '+' || how[-1] == 'e' || how[-1] == 'E'))
        how++;
    snprintf(range->first, NUMBER_BYTES, "%.*s", (int)(dots - text), text);
    snprintf(range->last, NUMBER_BYTES, "%.*s", (int)(how - last), last);
    range->how = *how;
    snprintf(range->step, NUMBER_BYTES, "%s", *how ? how + 1 : "1");
    return true;
}

static bool whole(const char *text, bool time, uint64_t *value)
{
    units_why why;
    return !(time ? units_time(text, value, why) : units_count(text, 0, UINT64_MAX, value, why));
}

/* A count, or a time in its largest whole unit. */
static void print_whole(char out[NUMBER_BYTES], uint64_t value, bool time)
{
    const char *unit = !time                  ? ""
                       : value == 0           ? ""
                       : value % 1000000 == 0 ? "s"
                       : value % 1000 == 0    ? "ms"
                                              : "us";
    if (unit[0] == 's') value /= 1000000;
    if (unit[0] == 'm') value /= 1000;
    snprintf(out, NUMBER_BYTES, "%llu%s", (unsigned long long)value, unit);
}

static int add_whole_range(struct sweep *sweep, const struct range *range, bool time, char *clause)
{
    uint64_t at, last, step;
    bool times = range->how == 'x';
    if (!whole(range->first, time, &at) || !whole(range->last, time, &last))
        return sweep_refuse(clause, "is not a range of %s (like %s)",
                            time ? "times" : "whole numbers",
                            time ? "1ms..16msx2" : "1..5 or 4..64x2");
    if (!whole(range->step, time && !times && range->how, &step))
        return sweep_refuse(clause, "has the step \"%s\", which is not a %s", range->step,
                            time && !times ? "time" : "whole number");
    if (time && !range->how)
        return sweep_refuse(clause, "is a range that needs a step, as in %s..%sx2 or %s..%s+1ms",
                            range->first, range->last, range->first, range->last);
    if (at > last)
        return sweep_refuse(clause, "is an empty range: %s is over %s", range->first, range->last);
    if (step < 1 + (times && 1) || (times && at == 0))
        return sweep_refuse(clause, "is a range that never ends: it goes from %s by %c%s",
                            range->first, range->how, range->step);
    for (;;) {
        char value[NUMBER_BYTES];
        print_whole(value, at, time);
        int error = add(sweep, value, strlen(value), clause);
        if (error) return error;
        if (times ? at > last / step : last - at < step) return 0;
        at = times ? at * step : at + step;
    }
}

static int add_real_range(struct sweep *sweep, const struct range *range, char *clause)
{
    double first, last, step;
    units_why why;
    bool times = range->how == 'x';
    if (units_real(range->first, -1e300, 1e300, &first, why) ||
        units_real(range->last, -1e300, 1e300, &last, why) ||
        units_real(range->step, -1e300, 1e300, &step, why))
        return sweep_refuse(clause, "is not a range of numbers (like 0.1..0.5+0.1 or 0.01..1x10)");
    if (!range->how)
        return sweep_refuse(clause, "is a range that needs a step, as in %s..%s+0.1 or %s..%sx2",
                            range->first, range->last, range->first, range->last);
    if (first > last)
        return sweep_refuse(clause, "is an empty range: %s is over %s", range->first, range->last);
    if (times ? !(step > 1 && first > 0) : !(step > 0))
        return sweep_refuse(clause, "is a range that never ends: it goes from %s by %c%s",
                            range->first, range->how, range->step);
    double reach = last + 1e-9 * (times ? last : step);
    for (uint32_t i = 0;; i++) {
        double at = times ? first * pow(step, i) : first + i * step;
        char value[NUMBER_BYTES];
        if (at > reach) return 0;
        snprintf(value, sizeof value, "%.12g", at);
        int error = add(sweep, value, strlen(value), clause);
        if (error) return error;
    }
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* One piece between commas: a value, or a range. */
static int add_piece(struct sweep *sweep, enum option_id id, const char *piece, size_t length,
                     bool alone, char *clause)
{
    struct range range;
    char text[NUMBER_BYTES], quoted[TEXT_QUOTED_BYTES], inner[SWEEP_CLAUSE_BYTES] = "";
    int error;
    snprintf(text, sizeof text, "%.*s", (int)length, piece);
    bool is_range = length < sizeof text && cut(text, &range);
    enum option_kind kind = option_info(id)->kind;
    if (is_range && (kind == OPTION_COUNT || kind == OPTION_PERIOD))
        error = add_whole_range(sweep, &range, false, inner);
    else if (is_range && (kind == OPTION_TIME || kind == OPTION_DIST))
        error = add_whole_range(sweep, &range, true, inner);
    else if (is_range && kind == OPTION_REAL)
        error = add_real_range(sweep, &range, inner);
    else
        return add(sweep, piece, length, clause);
    if (error && inner[0] && alone)
        sweep_refuse(clause, "%s", inner);
    else if (error && inner[0])
        sweep_refuse(clause, "has %s, which %.800s", text_quote(quoted, text), inner);
    return error;
}

/* Whether `value` (so far) is whole, so that a comma behind it may begin the next. */
static bool is_whole(enum option_id id, const char *value, size_t length, const char *next)
{
    const struct option_info *info = option_info(id);
    char copy[512], clause[SETTINGS_WHY_BYTES];
    /* 1,8@50% is one schedule. */
    if (info->kind == OPTION_PERIOD) return !memchr(next, '@', strcspn(next, ","));
    if (info->kind != OPTION_SPEC && info->kind != OPTION_DIST) return true;
    snprintf(copy, sizeof copy, "%.*s", (int)length, value);
    if (value_parse(id, copy, NULL, clause) != 0) return !strchr(copy, ':');
    if (info->kind == OPTION_DIST || !strchr(copy, ':')) return true;
    /* mlp:256 and what follows: a layer more, or a model more. */
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(next, ","), next);
    return value_parse(id, copy, NULL, clause) == 0;
}

static int cut_list(struct sweep *sweep, enum option_id id, const char *text, char *clause)
{
    const char *start = text;
    for (const char *at = text;; at++) {
        if (*at && (*at != ',' || !is_whole(id, start, (size_t)(at - start), at + 1))) continue;
        if (at == start) return sweep_refuse(clause, "has an empty value in its list");
        int error =
            add_piece(sweep, id, start, (size_t)(at - start), start == text && !*at, clause);
        if (error || !*at) return error;
        start = at + 1;
    }
}

bool sweep_is_none(enum option_id id, const char *value)
{
    return option_repeats(id) && strcmp(value, "none") == 0;
}

/* Of what is a list by nature: "none or kill:1@50% pause:2@10% or kill:2@50%". */
static int cut_alternatives(struct sweep *sweep, const char *text, char *clause)
{
    for (;;) {
        text += strspn(text, " ");
        const char *next = strstr(text, " or ");
        size_t length = next ? (size_t)(next - text) : strlen(text);
        while (length > 0 && text[length - 1] == ' ')
            length--;
        if (length == 0 || strncmp(text, "or ", 3) == 0)
            return sweep_refuse(clause, "has an \"or\" without something, or none, on both sides");
        int error = add(sweep, text, length, clause);
        if (error || !next) return error;
        text = next + 4;
    }
}

/* As a list of faults in a file is put together. */
static bool has_none_beside(const char *value)
{
    size_t length = strlen(value);
    return strncmp(value, "none ", 5) == 0 ||
           (length > 5 && strcmp(value + length - 5, " none") == 0) || strstr(value, " none ");
}

static int judge(const struct sweep *sweep, enum option_id id, char *clause)
{
    char inner[SETTINGS_WHY_BYTES], quoted[TEXT_QUOTED_BYTES];
    for (size_t i = 0; i < sweep->count; i++) {
        const char *value = sweep->values[i];
        if (sweep_is_none(id, value)) continue;
        if (option_repeats(id) && has_none_beside(value))
            return sweep_refuse(clause, "has none beside others in one list; write \"or\" between "
                                        "alternatives: \"none or ...\"");
        int error = value_parse(id, value, NULL, inner);
        if (!error) continue;
        size_t number = strspn(value, "0123456789.");
        bool dashed = number > 0 && value[number] == '-' && value[number + 1] != '\0';
        const char *more = strstr(value, "..") ? "; it has no ranges: list the values"
                           : dashed            ? "; a range is written like 1..5"
                                               : "";
        if (sweep->count == 1)
            sweep_refuse(clause, "%.900s%s", inner, more);
        else
            sweep_refuse(clause, "has %s, which %.700s%s", text_quote(quoted, value), inner, more);
        return error;
    }
    return 0;
}

int sweep_parse(struct sweep *sweep, enum option_id id, const char *text,
                char clause[SWEEP_CLAUSE_BYTES])
{
    *sweep = (struct sweep){0};
    if (text[0] == '\0') return sweep_refuse(clause, "is empty");
    int error = option_repeats(id) ? cut_alternatives(sweep, text, clause)
                                   : cut_list(sweep, id, text, clause);
    if (!error) error = judge(sweep, id, clause);
    if (error) sweep_close(sweep);
    return error;
}

void sweep_close(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++)
        free(sweep->values[i]);
    free(sweep->values);
    *sweep = (struct sweep){0};
}
