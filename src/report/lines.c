/* lines.c: one table of fields an event serves both ways, building and parsing.
 *
 * Decision: the text is written here, not by jansson, which has no unsigned 64-bit numbers and one
 * precision for all reals. What is read, comes from other processes, and goes through jansson.
 */
#include "report/lines.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

enum field_kind { BOOL, COUNT, REAL, STRING };

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
};

#define F(event, kind, name)                                                                       \
    {                                                                                              \
#name, kind, offsetof(struct report_##event, name)                                         \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, BOOL, 0                                                                              \
    }

static const struct field started[] = {
    F(started, COUNT, pid),      F(started, STRING, listen),    F(started, STRING, version),
    F(started, COUNT, protocol), F(started, STRING, data),      F(started, COUNT, samples),
    F(started, STRING, model),   F(started, COUNT, parameters), F(started, COUNT, seed),
    F(started, STRING, blas),    F(started, COUNT, resumed),    END};
static const struct field progress[] = {F(progress, COUNT, step),
                                        F(progress, REAL, epoch),
                                        F(progress, REAL, loss),
                                        F(progress, REAL, drift),
                                        F(progress, REAL, drift_age_s),
                                        F(progress, COUNT, live),
                                        F(progress, REAL, samples_per_s),
                                        F(progress, COUNT, exchanges),
                                        F(progress, COUNT, bytes_sent),
                                        F(progress, REAL, gap_max_ms),
                                        F(progress, REAL, turn_max_ms),
                                        F(progress, COUNT, passes),
                                        F(progress, COUNT, bytes_membership),
                                        F(progress, COUNT, bytes_sketches),
                                        F(progress, REAL, progress),
                                        END};
static const struct field member[] = {F(member, STRING, peer), F(member, STRING, state),
                                      F(member, STRING, reason), F(member, STRING, boot), END};
static const struct field fault[] = {F(fault, STRING, kind), F(fault, STRING, target), END};
static const struct field phase[] = {F(phase, STRING, phase), F(phase, STRING, cause), END};
static const struct field takeover[] = {F(takeover, COUNT, samples), END};
static const struct field lost[] = {F(lost, COUNT, lines), END};
static const struct field agreed[] = {
    F(agreed, STRING, digest),    F(agreed, COUNT, held),         F(agreed, COUNT, known),
    F(agreed, COUNT, generation), F(agreed, REAL, drift_before),  F(agreed, REAL, test_accuracy),
    F(agreed, REAL, test_loss),   F(agreed, COUNT, test_samples), END};
static const struct field error_fields[] = {F(error, STRING, code), F(error, STRING, message),
                                            F(error, STRING, hint), END};
static const struct field ledger[] = {F(ledger, STRING, boot),     F(ledger, COUNT, started),
                                      F(ledger, COUNT, committed), F(ledger, COUNT, applied),
                                      F(ledger, COUNT, aborted),   F(ledger, COUNT, dropped),
                                      F(ledger, COUNT, in_doubt),  END};
static const struct field ledger_peer[] = {
    F(ledger_peer, STRING, boot), F(ledger_peer, STRING, name),   F(ledger_peer, COUNT, applied),
    F(ledger_peer, REAL, mass),   F(ledger_peer, REAL, mass_abs), END};
static const struct field summary[] = {F(summary, BOOL, ok),
                                       F(summary, COUNT, nodes),
                                       F(summary, COUNT, live),
                                       F(summary, COUNT, agreed),
                                       F(summary, COUNT, known),
                                       F(summary, STRING, digest),
                                       F(summary, STRING, strategy),
                                       F(summary, REAL, test_accuracy),
                                       F(summary, REAL, worst_accuracy),
                                       F(summary, REAL, test_loss),
                                       F(summary, REAL, drift_before),
                                       F(summary, REAL, epochs),
                                       F(summary, COUNT, steps),
                                       F(summary, COUNT, samples),
                                       F(summary, COUNT, exchanges),
                                       F(summary, COUNT, exchanges_trained),
                                       F(summary, COUNT, exchanges_dropped),
                                       F(summary, COUNT, bytes_sent),
                                       F(summary, COUNT, bytes_trained),
                                       F(summary, REAL, mass_error),
                                       F(summary, REAL, mass_dropped),
                                       F(summary, REAL, wall_s),
                                       F(summary, REAL, time_to_target_s),
                                       END};
static const struct field summary_sim[] = {
    F(summary, REAL, virtual_s),        F(summary, STRING, run_hash),
    F(summary, REAL, node_steps_per_s), F(summary, REAL, trained_s),
    F(summary, REAL, agreed_s),         F(summary, REAL, drift_trained),
    F(summary, REAL, own_accuracy),     F(summary, REAL, own_accuracy_worst),
    F(summary, REAL, own_accuracy_sd),  F(summary, STRING, lr_scale),
    F(summary, REAL, warmup),           END};

static const struct {
    const char *text;
    const struct field *fields;
} events[REPORT_EVENT_COUNT] = {
    [REPORT_STARTED] = {"started", started},  [REPORT_PROGRESS] = {"progress", progress},
    [REPORT_MEMBER] = {"member", member},     [REPORT_FAULT] = {"fault", fault},
    [REPORT_PHASE] = {"phase", phase},        [REPORT_AGREED] = {"agreed", agreed},
    [REPORT_ERROR] = {"error", error_fields}, [REPORT_LEDGER] = {"ledger", ledger},
    [REPORT_SUMMARY] = {"summary", summary},  [REPORT_TAKEOVER] = {"takeover", takeover},
    [REPORT_LOST] = {"lost", lost},
};

static void add_string(struct text *text, const char *value)
{
    if (!value) {
        text_add(text, "null");
        return;
    }
    text_add(text, "\"");
    while (*value) {
        char point[5] = {0};
        size_t bytes = text_point(value, point);
        unsigned char first = (unsigned char)point[0];
        if (first == '"' || first == '\\')
            text_add(text, "\\%c", first);
        else if (bytes == 1 && first < 0x20)
            text_add(text, "\\u%04x", first);
        else
            text_add(text, "%s", point);
        value += bytes;
    }
    text_add(text, "\"");
}

/* The shortest of 15 and 17 digits that reads back as the same number. */
static void add_real(struct text *text, double value)
{
    char digits[40];
    if (!isfinite(value)) {
        text_add(text, "null");
        return;
    }
    snprintf(digits, sizeof digits, "%.15g", value);
    if (strtod(digits, NULL) != value) snprintf(digits, sizeof digits, "%.17g", value);
    text_add(text, "%s", digits);
}

static void add_fields(struct text *text, const struct field *field, const void *from)
{
    for (; field->name; field++) {
        const char *at = (const char *)from + field->offset;
        text_add(text, "\"%s\":", field->name);
        switch (field->kind) {
        case BOOL:
            text_add(text, "%s", *(const bool *)at ? "true" : "false");
            break;
        case COUNT:
            text_add(text, "%llu", (unsigned long long)*(const uint64_t *)at);
            break;
        case REAL:
            add_real(text, *(const double *)at);
            break;
        case STRING:
            add_string(text, *(const char *const *)at);
            break;
        }
        if (field[1].name) text_add(text, ",");
    }
}

static void add_ledger_peers(struct text *text, const struct report_ledger *from)
{
    text_add(text, ",\"peers\":[");
    for (size_t i = 0; i < from->peer_count; i++) {
        text_add(text, i ? ",{" : "{");
        add_fields(text, ledger_peer, &from->peers[i]);
        text_add(text, "}");
    }
    text_add(text, "]");
}

static void add_coverage(struct text *text, const struct report_summary *from)
{
    if (from->coverage_count == 0) return;
    text_add(text, ",\"coverage\":[");
    for (uint32_t i = 0; i < from->coverage_count; i++) {
        if (i > 0) text_add(text, ",");
        add_real(text, from->coverage[i]);
    }
    text_add(text, "],\"epochs_whole\":%llu", (unsigned long long)from->epochs_whole);
}

void report_boot(uint64_t boot, char text[REPORT_BOOT_BYTES])
{
    snprintf(text, REPORT_BOOT_BYTES, "%016" PRIx64, boot);
}

char *report_line_text(const struct report_line *line)
{
    struct text text;
    text_init(&text, REPORT_LINE_BYTES_MAX);
    text_add(&text, "{\"event\":\"%s\",\"t\":", events[line->event].text);
    add_real(&text, line->t);
    if (line->node) {
        text_add(&text, ",\"node\":");
        add_string(&text, line->node);
    }
    text_add(&text, ",");
    add_fields(&text, events[line->event].fields, &line->as);
    if (line->event == REPORT_LEDGER) add_ledger_peers(&text, &line->as.ledger);
    if (line->event == REPORT_SUMMARY) add_coverage(&text, &line->as.summary);
    if (line->event == REPORT_SUMMARY && line->as.summary.sim) {
        text_add(&text, ",");
        add_fields(&text, summary_sim, &line->as.summary);
        if (line->as.summary.swept) text_add(&text, ",\"swept\":%s", line->as.summary.swept);
    }
    text_add(&text, "}\n");
    return text_take(&text);
}

char *report_talk_text(const char *time, const char *level, const char *text)
{
    struct text line;
    text_init(&line, REPORT_LINE_BYTES_MAX);
    text_add(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"text\":", time, level);
    add_string(&line, text);
    text_add(&line, "}\n");
    return text_take(&line);
}

/* One field's value, absent or null included; false if it is of another type. */
static bool read_field(const struct field *field, const json_t *value, char *at)
{
    bool none = !value || json_is_null(value);
    double number = json_number_value(value);
    switch (field->kind) {
    case BOOL:
        *(bool *)at = json_is_true(value);
        return none || json_is_boolean(value);
    case COUNT:
        *(uint64_t *)at = number >= 0 && number < 1.8e19 ? (uint64_t)number : 0;
        return none || (json_is_number(value) && number >= 0 && number <= 1.8446744073709552e19);
    case REAL:
        *(double *)at = none ? NAN : number;
        return none || json_is_number(value);
    case STRING:
        *(const char **)at = json_string_value(value);
        return none || json_is_string(value);
    }
    return false;
}

static bool read_fields(const struct field *field, const json_t *object, void *into)
{
    if (!json_is_object(object)) return false;
    for (; field->name; field++)
        if (!read_field(field, json_object_get(object, field->name), (char *)into + field->offset))
            return false;
    return true;
}

static int read_ledger_peers(const json_t *list, struct report_ledger *into)
{
    size_t count = json_array_size(list);
    if (!list || json_is_null(list)) return 0;
    if (!json_is_array(list)) return PARLEY_EMALFORMED;
    if (count > REPORT_LEDGER_PEERS_MAX) return PARLEY_ELIMIT;
    into->peers = calloc(count ? count : 1, sizeof *into->peers);
    if (!into->peers) return PARLEY_ENOMEM;
    into->peer_count = count;
    for (size_t i = 0; i < count; i++)
        if (!read_fields(ledger_peer, json_array_get(list, i), &into->peers[i]))
            return PARLEY_EMALFORMED;
    return 0;
}

static int read_line(struct report_line *line, const json_t *object)
{
    static const struct field head[] = {{"t", REAL, offsetof(struct report_line, t)},
                                        {"node", STRING, offsetof(struct report_line, node)},
                                        END};
    const char *event = json_string_value(json_object_get(object, "event"));
    if (!event || !read_fields(head, object, line)) return PARLEY_EMALFORMED;
    int known = 0;
    while (known < REPORT_EVENT_COUNT && strcmp(event, events[known].text) != 0)
        known++;
    if (known == REPORT_EVENT_COUNT) return PARLEY_EMALFORMED;
    line->event = (enum report_event)known;
    if (!read_fields(events[known].fields, object, &line->as)) return PARLEY_EMALFORMED;
    if (line->event == REPORT_LEDGER)
        return read_ledger_peers(json_object_get(object, "peers"), &line->as.ledger);
    if (line->event == REPORT_SUMMARY) {
        line->as.summary.sim = json_object_get(object, "run_hash") != NULL;
        if (!read_fields(summary_sim, object, &line->as.summary)) return PARLEY_EMALFORMED;
    }
    return 0;
}

int report_line_parse(struct report_line *line, const char *bytes, size_t size)
{
    json_error_t why;
    memset(line, 0, sizeof *line);
    if (size > REPORT_LINE_BYTES_MAX) return PARLEY_ELIMIT;
    /* As reals: a seed past 2^63 must not make a line unreadable. */
    json_t *object =
        json_loadb(bytes, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    if (!object)
        return json_error_code(&why) == json_error_out_of_memory ? PARLEY_ENOMEM
                                                                 : PARLEY_EMALFORMED;
    line->json = object;
    int error = read_line(line, object);
    if (error) report_line_close(line);
    return error;
}

void report_line_close(struct report_line *line)
{
    if (line->json && line->event == REPORT_LEDGER) free(line->as.ledger.peers);
    json_decref(line->json);
    memset(line, 0, sizeof *line);
}
