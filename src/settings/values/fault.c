/* fault.c: a fault's text is cut at ':', '@' and '+', and each piece is judged by itself. */
#include "settings/values/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "settings/nearest.h"

enum value_kind { NOTHING, FACTOR, PROBABILITY, TIME, RATE, LIE };

static const struct {
    const char *text;
    enum value_kind value;
    enum fault_where where;
    bool lasts;
} kinds[] = {
#define X(name, text, value, where, lasts) {text, value, FAULT_##where, lasts},
    FAULT_KINDS(X)
#undef X
};

const char *fault_kind_text(enum fault_kind kind)
{
    return kinds[kind].text;
}

enum fault_where fault_kind_where(enum fault_kind kind)
{
    return kinds[kind].where;
}

static int parse_kind(const char *text, struct fault_spec *fault, units_why why)
{
    struct nearest nearest = nearest_start(text);
    for (int kind = 0; kind < FAULT_KIND_COUNT; kind++) {
        if (strcmp(text, kinds[kind].text) == 0) {
            fault->kind = (enum fault_kind)kind;
            return 0;
        }
        nearest_try(&nearest, kinds[kind].text);
    }
    char quoted[TEXT_QUOTED_BYTES], clause[NEAREST_CLAUSE_BYTES];
    int length = snprintf(why, UNITS_WHY_BYTES, "has the unknown kind %.*s%s (valid:", 60,
                          text_quote(quoted, text), nearest_clause(clause, nearest_take(&nearest)));
    for (int kind = 0; kind < FAULT_KIND_COUNT && length < UNITS_WHY_BYTES; kind++)
        length += snprintf(why + length, (size_t)(UNITS_WHY_BYTES - length), " %s%s",
                           kinds[kind].text, kind + 1 < FAULT_KIND_COUNT ? "," : ")");
    return PARLEY_EUSAGE;
}

static int parse_lie(const char *value, struct fault_spec *fault, units_why why)
{
    static const char *const lies[] = {
#define X(name, text) text,
        FAULT_LIES(X)
#undef X
    };
    for (int lie = 0; value && lie < FAULT_LIE_COUNT; lie++) {
        fault->lie = (enum fault_lie)lie;
        if (strcmp(value, lies[lie]) == 0) return 0;
    }
    return units_blame(why, "lie", value ? value : "",
                       "is not one of sign, scale, random, nan, alie, ipm, labels");
}

static int parse_value(const char *value, struct fault_spec *fault, units_why why)
{
    units_why clause;
    switch (kinds[fault->kind].value) {
    case NOTHING:
        return value ? units_refuse(why, "has a value after '=' that its kind does not take") : 0;
    case FACTOR:
        if (!value) return units_refuse(why, "says not how slow (like slow=4)");
        if (units_real(value, 1, 10000, &fault->value, clause))
            return units_blame(why, "factor", value, clause);
        return 0;
    case PROBABILITY:
        if (!value) return units_refuse(why, "says not how often (a probability, like loss=0.3)");
        if (units_real(value, 0, 1, &fault->value, clause))
            return units_blame(why, "probability", value, clause);
        return 0;
    case TIME:
        if (!value) return units_refuse(why, "says not how long (like latency=300ms)");
        if (units_time(value, &fault->time_us, clause))
            return units_blame(why, "time", value, clause);
        return 0;
    case RATE:
        if (!value) return units_refuse(why, "says not how much (like bandwidth=10Mbit)");
        if (units_rate(value, &fault->rate_bytes, clause))
            return units_blame(why, "rate", value, clause);
        return 0;
    case LIE:
        return parse_lie(value, fault, why);
    }
    return PARLEY_EUSAGE;
}

static int parse_target(const char *text, struct fault_spec *fault, units_why why)
{
    units_why clause;
    uint64_t number;
    if (strlen(text) >= sizeof fault->name) return units_refuse(why, "has too long a target");
    snprintf(fault->name, sizeof fault->name, "%s", text);
    if (fault->kind == FAULT_PARTITION || fault->kind == FAULT_ONEWAY) {
        fault->target = FAULT_GROUPS;
        if (groups_are_sane(text)) return 0;
        return units_blame(why, "target", text, "is not a set of groups (like n0,n1|n2-n9)");
    }
    if (strchr(text, '%')) {
        fault->target = FAULT_SHARE;
        if (units_share(text, &fault->share, clause))
            return units_blame(why, "target", text, clause);
        return 0;
    }
    if (text[0] != '\0' && strspn(text, "0123456789") == strlen(text)) {
        fault->target = FAULT_NUMBER;
        if (units_count(text, 1, 1000000, &number, clause))
            return units_blame(why, "target", text, clause);
        fault->number = (uint32_t)number;
        return 0;
    }
    fault->target = FAULT_NAME;
    if (units_is_name(text)) return 0;
    return units_blame(why, "target", text,
                       "is no node's name, number of nodes or share (n3, 2, 50%)");
}

static int parse_moment(const char *text, struct fault_moment *moment, units_why why)
{
    units_why clause;
    *moment = (struct fault_moment){.kind = FAULT_TIME};
    if (strcmp(text, "0%") == 0) {
        moment->kind = FAULT_BUDGET;
        return 0;
    }
    if (strchr(text, '%')) {
        moment->kind = FAULT_BUDGET;
        if (units_share(text, &moment->share, clause))
            return units_blame(why, "moment", text, clause);
        return 0;
    }
    if (units_time(text, &moment->time_us, clause))
        return units_blame(why, "moment", text,
                           "is neither a time (5s) nor a part of the budget (40%)");
    return 0;
}

int fault_parse(const char *text, struct fault_spec *fault, units_why why)
{
    static const char form[] = "is not a fault (write KIND:TARGET@WHEN[+FOR], like kill:n3@40%)";
    char copy[2 * GROUPS_BYTES];
    *fault = (struct fault_spec){0};
    if (strlen(text) >= sizeof copy) return units_refuse(why, "is too long");
    if (!text_clean(text)) return units_refuse(why, "is not clean text");
    snprintf(copy, sizeof copy, "%s", text);
    char *target = strchr(copy, ':');
    char *when = target ? strchr(target, '@') : NULL;
    if (!when) return units_refuse(why, form);
    *target++ = '\0';
    *when++ = '\0';
    char *lasting = strchr(when, '+');
    if (lasting) *lasting++ = '\0';
    char *value = strchr(copy, '=');
    if (value) *value++ = '\0';
    int error = parse_kind(copy, fault, why);
    if (!error) error = parse_value(value, fault, why);
    if (!error) error = parse_target(target, fault, why);
    if (!error) error = parse_moment(when, &fault->when, why);
    if (error || !lasting) return error;
    if (!kinds[fault->kind].lasts)
        return units_refuse(why, "has a +FOR, but its kind does not end");
    return parse_moment(lasting, &fault->lasting, why);
}

int faults_add_list(struct faults *faults, const char *list, units_why why)
{
    size_t count = faults->count;
    for (const char *from = list + strspn(list, " "); *from; from += strspn(from, " ")) {
        char item[2 * GROUPS_BYTES];
        size_t length = strcspn(from, " ");
        if (length >= sizeof item) return units_refuse(why, "is too long");
        if (count == FAULTS_MAX) return units_refuse(why, "is one fault too many (256)");
        memcpy(item, from, length);
        item[length] = '\0';
        struct fault_spec *items = realloc(faults->items, (count + 1) * sizeof *items);
        if (!items) return units_lack_memory(why);
        faults->items = items;
        int error = fault_parse(item, &items[count], why);
        if (error) return error;
        count++;
        from += length;
    }
    if (count == faults->count) return units_refuse(why, "names no fault");
    faults->count = count;
    return 0;
}

void faults_close(struct faults *faults)
{
    free(faults->items);
    *faults = (struct faults){0};
}

/* ---- Whom it strikes ------------------------------------------------------------------------- */

struct rng fault_rng(const struct faults *faults, size_t index, uint64_t seed)
{
    uint64_t kind = faults->items[index].kind, before = 0;
    for (size_t i = 0; i < index; i++)
        before += faults->items[i].kind == kind;
    return rng_init(seed, UINT64_C(0x6661756c74) << 24 | kind << 16 | before);
}

uint32_t fault_draw(const struct fault_spec *fault, struct rng *rng, uint32_t nodes,
                    uint32_t *targets, uint32_t count)
{
    double share = fmax(round(fault->share * nodes), 1);
    uint32_t wanted = fault->target == FAULT_NUMBER ? fault->number : (uint32_t)share;
    if (wanted > count) wanted = count;
    for (uint32_t i = 0; i < wanted; i++) { /* the first steps of a Fisher-Yates shuffle */
        uint32_t other = i + rng_below(rng, count - i), kept = targets[i];
        targets[i] = targets[other];
        targets[other] = kept;
    }
    return wanted;
}
