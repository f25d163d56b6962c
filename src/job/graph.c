/* graph.c: see graph.h.
 *
 * Happy path: the text is cut into pairs of names; the names are sorted, without doubles; each
 * link is noted at both its ends; from the first node all others are reached.
 */
#include "job/graph.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "core/plain.h"
#include "core/strategy/strategy.h"
#include "core/topology/topology.h"
#include "report/text.h"
#include "settings/settings.h"

enum { FILE_BYTES_MAX = 64 * 1024 * 1024, STRANGERS_BYTES = PARLEY_NAME_SIZE + 96 };

struct link {
    const char *ends[2];
};

struct reading {
    const char *file;
    char *why;
    size_t why_size;
    struct link *links; /* [count]; owned */
    size_t count;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct reading *r, size_t line,
                                                        const char *format, ...)
{
    va_list arguments;
    int length = line > 0 ? snprintf(r->why, r->why_size, "%s:%zu: ", r->file, line)
                          : snprintf(r->why, r->why_size, "%s: ", r->file);
    va_start(arguments, format);
    if ((size_t)length < r->why_size)
        vsnprintf(r->why + length, r->why_size - (size_t)length, format, arguments);
    va_end(arguments);
    return PARLEY_EDATA;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Cuts the next word off; NULL at the end of the line. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t\r");
    if (!*word || *word == '#') return NULL;
    *at = word + strcspn(word, " \t\r#");
    bool comment = **at == '#';
    if (**at) *(*at)++ = '\0';
    if (comment) *at += strlen(*at);
    return word;
}

static int read_line(struct reading *r, char *line, size_t number)
{
    char quoted[TEXT_QUOTED_BYTES];
    struct link link = {{NULL}};
    char *at = line;
    for (int end = 0; end < 2; end++) {
        link.ends[end] = next_word(&at);
        if (!link.ends[end])
            return end == 0 ? 0 : refuse(r, number, "found one name, expected two that are linked");
        size_t size = strlen(link.ends[end]);
        if (size >= PARLEY_NAME_SIZE || !plain_name(link.ends[end], size))
            return refuse(r, number, "%s is no name of a node (at most %d printable bytes)",
                          text_quote(quoted, link.ends[end]), PARLEY_NAME_SIZE - 1);
    }
    const char *more = next_word(&at);
    if (more)
        return refuse(r, number, "found %s behind two names; a line has one link",
                      text_quote(quoted, more));
    if (strcmp(link.ends[0], link.ends[1]) == 0)
        return refuse(r, number, "links %s with itself", text_quote(quoted, link.ends[0]));
    r->links[r->count++] = link;
    return 0;
}

static int read_lines(struct reading *r, char *text, size_t size)
{
    size_t lines = 1, number = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    if (memchr(text, '\0', size)) return refuse(r, 0, "is no text: it holds a zero byte");
    r->links = malloc(lines * sizeof *r->links);
    if (!r->links) return PARLEY_ENOMEM;
    int error = 0;
    for (char *line = text; !error && line; number++) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        error = read_line(r, line, number + 1);
        line = end ? end + 1 : NULL;
    }
    return !error && r->count == 0 ? refuse(r, 0, "holds no link") : error;
}

/* ---- The graph ------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int sort_names(const struct reading *r, struct parley_graph *graph)
{
    const char **names = malloc(2 * r->count * sizeof *names);
    size_t count = 0;
    if (!names) return PARLEY_ENOMEM;
    graph->names = names;
    for (size_t i = 0; i < r->count; i++)
        memcpy(&names[2 * i], r->links[i].ends, sizeof r->links[i].ends);
    qsort(names, 2 * r->count, sizeof *names, by_text);
    for (size_t i = 0; i < 2 * r->count; i++)
        if (i == 0 || strcmp(names[i], names[count - 1]) != 0) names[count++] = names[i];
    graph->nodes = (uint32_t)count;
    return count <= PARLEY_MEMBERS_MAX
               ? 0
               : refuse(r, 0, "has %zu nodes, more than %d", count, PARLEY_MEMBERS_MAX);
}

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

/* Each once at both its ends, and there in order. */
static int note_links(const struct reading *r, struct parley_graph *graph)
{
    uint32_t *first = calloc(graph->nodes + 2, sizeof *first); /* shifted by one while filling */
    uint16_t *ends = malloc(2 * r->count * sizeof *ends);
    graph->first = first;
    graph->ends = ends;
    if (!first || !ends) return PARLEY_ENOMEM;
    for (size_t i = 0; i < 2 * r->count; i++)
        first[topology_place(graph, r->links[i / 2].ends[i % 2]) + 2]++;
    for (uint32_t n = 2; n <= graph->nodes; n++)
        first[n] += first[n - 1];
    for (size_t i = 0; i < 2 * r->count; i++)
        ends[first[topology_place(graph, r->links[i / 2].ends[i % 2]) + 1]++] =
            topology_place(graph, r->links[i / 2].ends[1 - i % 2]);
    uint32_t kept = 0;
    for (uint32_t n = 0; n < graph->nodes; n++) {
        uint32_t from = first[n], end = first[n + 1];
        qsort(&ends[from], end - from, sizeof *ends, by_number);
        first[n] = kept;
        for (uint32_t i = from; i < end; i++)
            if (i == from || ends[i] != ends[i - 1]) ends[kept++] = ends[i];
    }
    first[graph->nodes] = kept;
    return 0;
}

static bool is_among(const struct parley_graph *graph, uint32_t n, uint64_t nodes)
{
    return nodes == 0 || settings_is_node(graph->names[n], nodes);
}

/* From the first of n0 to n(nodes-1), or with 0 of all, the others are reached by links among them;
 * else apart[] has the first and one that is not reached, and the outcome is PARLEY_EDATA. */
static int check_whole(const struct parley_graph *graph, uint64_t nodes, const char *apart[2])
{
    uint16_t *reached = malloc(graph->nodes * sizeof *reached);
    bool *seen = calloc(graph->nodes, sizeof *seen);
    uint32_t count = 0, missing = 0;
    int error = reached && seen ? 0 : PARLEY_ENOMEM;
    if (!error) {
        for (uint32_t n = graph->nodes; n-- > 0;) {
            seen[n] = !is_among(graph, n, nodes); /* who is not there leads nowhere */
            if (!seen[n]) reached[0] = (uint16_t)n;
        }
        seen[reached[count++]] = true;
        for (uint32_t done = 0; done < count; done++)
            for (uint32_t i = graph->first[reached[done]]; i < graph->first[reached[done] + 1]; i++)
                if (!seen[graph->ends[i]]) {
                    seen[graph->ends[i]] = true;
                    reached[count++] = graph->ends[i];
                }
        while (missing < graph->nodes && seen[missing])
            missing++;
    }
    if (!error && missing < graph->nodes) {
        apart[0] = graph->names[reached[0]];
        apart[1] = graph->names[missing];
        error = PARLEY_EDATA;
    }
    free(seen);
    free(reached);
    return error;
}

int graph_parse(struct graph *graph, const char *name, const uint8_t *bytes, size_t size, char *why,
                size_t why_size)
{
    struct reading reading = {.file = name, .why = why, .why_size = why_size};
    const char *apart[2] = {NULL};
    *graph = (struct graph){.text = malloc(size + 1)};
    if (!graph->text) return PARLEY_ENOMEM;
    memcpy(graph->text, bytes, size);
    graph->text[size] = '\0';
    int error = read_lines(&reading, graph->text, size);
    if (!error) error = sort_names(&reading, &graph->graph);
    if (!error) error = note_links(&reading, &graph->graph);
    if (!error) error = check_whole(&graph->graph, 0, apart);
    if (error && apart[0])
        refuse(&reading, 0, "is in pieces: no links lead from \"%s\" to \"%s\"", apart[0],
               apart[1]);
    free(reading.links);
    return error;
}

static const char *path_of(const char *topology)
{
    return strncmp(topology, "file:", 5) == 0 ? topology + 5 : NULL;
}

int graph_load(struct graph *graph, const char *topology, const struct source_reader *reader,
               char *why, size_t why_size)
{
    const char *path = path_of(topology);
    uint8_t *bytes = NULL;
    size_t size;
    *graph = (struct graph){0};
    if (!path) return 0;
    int error = reader->read(path, FILE_BYTES_MAX, &bytes, &size, why, why_size);
    if (!error) error = graph_parse(graph, path, bytes, size, why, why_size);
    free(bytes);
    return error;
}

void graph_close(struct graph *graph)
{
    free((void *)graph->graph.names);
    free((void *)graph->graph.first);
    free((void *)graph->graph.ends);
    free(graph->text);
    *graph = (struct graph){0};
}

/* "\"n9\" and 2 more that are none of n0 to n3". False where there are none. */
static bool name_strangers(const struct parley_graph *graph, uint64_t nodes, char *out, size_t size)
{
    uint32_t count = 0, first = 0;
    for (uint32_t n = graph->nodes; n-- > 0;)
        if (!is_among(graph, n, nodes)) {
            first = n;
            count++;
        }
    if (count == 0) return false;
    char more[40] = ", which is";
    if (count > 1) snprintf(more, sizeof more, " and %" PRIu32 " more that are", count - 1);
    snprintf(out, size, "\"%s\"%s none of n0 to n%" PRIu64, graph->names[first], more, nodes - 1);
    return true;
}

bool graph_strangers(const struct graph *graph, const char *topology, uint64_t nodes, char *remark,
                     size_t size)
{
    char who[STRANGERS_BYTES];
    if (!path_of(topology) || !name_strangers(&graph->graph, nodes, who, sizeof who)) return false;
    snprintf(remark, size, "%s: has links of %s: these links are left out", path_of(topology), who);
    return true;
}

int graph_covers(const struct graph *graph, const char *topology, uint64_t nodes, char *why,
                 size_t why_size)
{
    const char *apart[2] = {NULL};
    char who[STRANGERS_BYTES] = "";
    if (!path_of(topology)) return 0;
    for (uint64_t n = 0; n < nodes; n++) {
        char name[24];
        snprintf(name, sizeof name, "n%" PRIu64, n);
        if (topology_place(&graph->graph, name) != TOPOLOGY_NOWHERE) continue;
        snprintf(why, why_size, "%s: has no link of \"%s\"; the nodes are n0 to n%" PRIu64,
                 path_of(topology), name, nodes - 1);
        return PARLEY_EDATA;
    }
    /* The whole is in one piece: it takes who is not there to part it. */
    int error = check_whole(&graph->graph, nodes, apart);
    if (apart[0] && name_strangers(&graph->graph, nodes, who, sizeof who))
        snprintf(why, why_size,
                 "%s: is in pieces without %s: no links among these lead from \"%s\" to \"%s\"",
                 path_of(topology), who, apart[0], apart[1]);
    return error;
}

/* Of those nodes. */
static uint32_t neighbours_of(const struct parley_graph *g, uint32_t n, uint64_t nodes)
{
    uint32_t count = 0;
    if (!settings_is_node(g->names[n], nodes)) return 0;
    for (uint32_t i = g->first[n]; i < g->first[n + 1]; i++)
        count += settings_is_node(g->names[g->ends[i]], nodes);
    return count;
}

static int check_room(const struct graph *graph, const struct settings *settings, uint64_t nodes,
                      char *why, size_t why_size)
{
    const struct parley_graph *g = &graph->graph;
    enum parley_strategy strategy = (enum parley_strategy)settings->strategy;
    uint32_t room = parley_strategy_neighbours(strategy);
    for (uint32_t n = 0; room > 0 && n < g->nodes; n++) {
        uint32_t neighbours = neighbours_of(g, n, nodes);
        if (neighbours <= room) continue;
        snprintf(why, why_size,
                 "%s: \"%s\" has %" PRIu32
                 " neighbours, and --strategy %s averages with at most %" PRIu32
                 " a round; take a graph with fewer",
                 path_of(settings->topology), g->names[n], neighbours, strategy_name(strategy),
                 room);
        return PARLEY_EDATA;
    }
    return 0;
}

int graph_fits(const struct graph *graph, const struct settings *settings, uint64_t nodes,
               char *why, size_t why_size)
{
    int error = graph_covers(graph, settings->topology, nodes, why, why_size);
    return error ? error : check_room(graph, settings, nodes, why, why_size);
}

int graph_topology(const struct graph *graph, const char *spec, uint32_t nodes, uint64_t seed,
                   struct topology *topology, char *why, size_t why_size)
{
    const struct parley_graph *g = path_of(spec) ? &graph->graph : NULL;
    enum parley_topology kind;
    uint32_t degree, place = 0;
    *topology = (struct topology){0};
    int error = topology_parse(spec, &kind, &degree, why, why_size);
    if (!error) error = topology_init(topology, kind, degree, nodes ? nodes : g->nodes, g);
    if (error) return error;
    topology_draw(topology, seed);
    for (uint32_t n = 0; g && n < g->nodes; n++) /* places are in the order of names, too */
        if (is_among(g, n, nodes)) topology->table[place++] = (uint16_t)n;
    return 0;
}

uint64_t graph_digest(const struct graph *graph)
{
    const struct parley_graph *g = &graph->graph;
    uint64_t digest = g->nodes;
    for (uint32_t n = 0; n < g->nodes; n++) {
        digest = XXH3_64bits_withSeed(g->names[n], strlen(g->names[n]) + 1, digest);
        for (uint32_t i = g->first[n]; i < g->first[n + 1]; i++)
            digest = XXH3_64bits_withSeed(&g->ends[i], sizeof g->ends[i], digest);
    }
    return digest;
}
