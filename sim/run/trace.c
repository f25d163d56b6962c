/* trace.c: see trace.h. Read twice: to count each node's lines, and to put them in their places. */
#include "run/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "settings/values/units.h"

struct line {
    uint32_t node; /* trace->nodes: of all */
    uint64_t us;
};

static int blame(unsigned number, const char *text, const char *clause, char *why, size_t why_size)
{
    snprintf(why, why_size, "line %u: \"%.60s\" %.120s", number, text, clause);
    return PARLEY_EUSAGE;
}

static int parse_node(const struct sim_trace *trace, const char *name, uint32_t *node)
{
    units_why clause;
    uint64_t index;
    if (name[0] != 'n' || units_count(name + 1, 0, trace->nodes - 1, &index, clause))
        return PARLEY_EUSAGE;
    *node = (uint32_t)index;
    return 0;
}

/* The text is cut into pieces in place. */
static int parse_line(const struct sim_trace *trace, char *text, unsigned number, struct line *line,
                      char *why, size_t why_size)
{
    units_why clause;
    char *time = strchr(text, ',');
    line->node = trace->nodes;
    if (time) {
        *time++ = '\0';
        if (parse_node(trace, text, &line->node))
            return blame(number, text, "is not a node of this run", why, why_size);
    } else {
        time = text;
    }
    if (units_time(time, &line->us, clause)) return blame(number, time, clause, why, why_size);
    if (line->us == 0) return blame(number, time, "is no time for a step", why, why_size);
    return 0;
}

/* Whether it is one of those that may stand around a line's text: a zero byte is not. */
static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Without its comment and the blanks around it. False if there is nothing left. A zero byte would
 * end the text before what may be wrong in it: it becomes what no line may have. */
static bool trim(const char *from, const char *end, char text[128])
{
    const char *comment = memchr(from, '#', (size_t)(end - from));
    if (comment) end = comment;
    while (from < end && is_blank(*from))
        from++;
    while (end > from && is_blank(end[-1]))
        end--;
    size_t length = (size_t)(end - from) < 127 ? (size_t)(end - from) : 127;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(from[i] ? from[i] : '?');
    text[length] = '\0';
    return length > 0;
}

/* Counts the lines of node i in at[i + 1]; or, with times, puts them to at[i]++. */
static int read_lines(struct sim_trace *trace, const char *bytes, size_t size, uint32_t *at,
                      uint64_t *times, char *why, size_t why_size)
{
    const char *from = bytes, *stop = bytes + size;
    for (unsigned number = 1; from < stop; number++) {
        const char *end = memchr(from, '\n', (size_t)(stop - from));
        if (!end) end = stop;
        char text[128];
        struct line line;
        bool some = trim(from, end, text);
        from = end + 1;
        if (!some) continue;
        int error = parse_line(trace, text, number, &line, why, why_size);
        if (error) return error;
        if (times)
            times[at[line.node]++] = line.us;
        else
            at[line.node + 1]++;
    }
    return 0;
}

int sim_trace_init(struct sim_trace *trace, uint32_t nodes, const char *bytes, size_t size,
                   char *why, size_t why_size)
{
    *trace = (struct sim_trace){.nodes = nodes};
    uint32_t *at = NULL;
    trace->starts = calloc((size_t)nodes + 2, sizeof *trace->starts);
    if (!trace->starts) return PARLEY_ENOMEM;
    int error = read_lines(trace, bytes, size, trace->starts, NULL, why, why_size);
    if (error) return error;
    bool common = trace->starts[nodes + 1] > 0;
    for (uint32_t i = 0; i <= nodes; i++) {
        if (i < nodes && !common && trace->starts[i + 1] == 0) {
            snprintf(why, why_size, "has no line for n%u, and none for all", i);
            return PARLEY_EUSAGE;
        }
        trace->starts[i + 1] += trace->starts[i];
    }
    trace->times = malloc(trace->starts[nodes + 1] * sizeof *trace->times);
    at = malloc(((size_t)nodes + 1) * sizeof *at);
    error = trace->times && at ? 0 : PARLEY_ENOMEM;
    if (!error) memcpy(at, trace->starts, ((size_t)nodes + 1) * sizeof *at);
    if (!error) error = read_lines(trace, bytes, size, at, trace->times, why, why_size);
    free(at);
    return error;
}

void sim_trace_close(struct sim_trace *trace)
{
    free(trace->times);
    free(trace->starts);
    *trace = (struct sim_trace){0};
}

uint64_t sim_trace_us(const void *arg, uint32_t node, uint64_t step)
{
    const struct sim_trace *trace = arg;
    uint32_t own = trace->starts[node + 1] - trace->starts[node];
    if (own > 0) return trace->times[trace->starts[node] + step % own];
    uint32_t first = trace->starts[trace->nodes], all = trace->starts[trace->nodes + 1] - first;
    return trace->times[first + (rng_mix(node) + step) % all];
}
