/* graph.c: see graph.h. */
#include "experiment/graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/topology/topology.h"
#include "experiment/chart.h"
#include "job/graph.h"
#include "report/places.h"
#include "run/run.h"

enum { RADIUS = 116, NAME_DISTANCE = 18, NAMES_MAX = 32, NODES_MAX = 1024 };
enum { LATE_RADIUS = 40, LATE_NAMES_MAX = 8, LABEL_MAX = 44 };

struct place {
    char name[16];
    uint32_t node;
    double x, y;
};

/* [n], n <= NODES_MAX, in the order of the names, the first at the top. */
static void lay_out(struct place *places, uint32_t n, double x, double y)
{
    const double turn = 6.283185307179586;
    uint32_t nodes[NODES_MAX];
    places_by_name(nodes, n);
    for (uint32_t i = 0; i < n; i++) {
        places[i].node = nodes[i];
        snprintf(places[i].name, sizeof places[i].name, "n%" PRIu32, nodes[i]);
        places[i].x = x + RADIUS * sin(turn * i / n);
        places[i].y = y - RADIUS * cos(turn * i / n);
    }
}

static uint64_t count_links(const struct topology *topology)
{
    uint64_t count = 0;
    for (uint32_t a = 0; a < topology->n; a++)
        for (uint32_t b = a + 1; b < topology->n; b++)
            count += topology_linked(topology, a, b);
    return count;
}

/* The more links, the fainter each, so that a few hundred are no blot. */
static void draw_links(struct text *svg, const struct topology *topology,
                       const struct place *places, uint64_t count)
{
    text_add(svg, "<path class=\"edge\" style=\"opacity:%.2f\" d=\"",
             fmax(0.06, fmin(0.7, 40.0 / (double)(count + 1))));
    for (uint32_t a = 0; a < topology->n; a++)
        for (uint32_t b = a + 1; b < topology->n; b++)
            if (topology_linked(topology, a, b))
                text_add(svg, "M%.1f %.1fL%.1f %.1f", places[a].x, places[a].y, places[b].x,
                         places[b].y);
    text_add(svg, "\"/>\n");
}

static void draw_node(struct text *svg, const struct place *place, const char *class, double radius,
                      double x, double y, bool named)
{
    text_add(svg,
             "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>%s</title></circle>",
             class, place->x, place->y, radius, place->name);
    if (strcmp(class, "dead") == 0)
        text_add(svg, "<path class=\"dead\" d=\"M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f\"/>",
                 place->x - radius * 0.7, place->y - radius * 0.7, radius * 1.4, radius * 1.4,
                 -radius * 1.4, -radius * 1.4, radius * 1.4);
    if (named)
        text_add(svg, "<text class=\"dim middle\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                 x + (place->x - x) * (1 + (NAME_DISTANCE + 4.0) / RADIUS),
                 y + (place->y - y) * (1 + (double)NAME_DISTANCE / RADIUS) + 4, place->name);
    text_add(svg, "\n");
}

/* What doesn't fit is cut off; a longer list of faults stands in the table. */
static void draw_label(struct text *svg, const char *label, double x, double y)
{
    char shown[LABEL_MAX + 1];
    snprintf(shown, sizeof shown, "%s", label);
    text_add(svg, "<text class=\"dim middle\" x=\"%.1f\" y=\"%.1f\">", x, y);
    chart_text(svg, shown);
    text_add(svg, "%s</text>\n", strlen(label) > LABEL_MAX ? "…" : "");
}

static uint32_t count_late(const struct settings *settings, const struct sim_outcome *outcome)
{
    uint32_t count = 0;
    for (uint32_t i = (uint32_t)settings->nodes; i < sim_run_nodes(settings); i++)
        count += outcome->fates[i] != SIM_FATE_NEVER;
    return count;
}

/* Who joins takes a place in the order then; here it stands in the middle. */
static void draw_late(struct text *svg, const struct settings *settings,
                      const struct sim_outcome *outcome, double radius, double x, double y)
{
    uint32_t count = count_late(settings, outcome), drawn = 0;
    for (uint32_t i = (uint32_t)settings->nodes; drawn < count; i++) {
        if (outcome->fates[i] == SIM_FATE_NEVER) continue;
        double turn = 6.283185307179586 * drawn++ / count, reach = count > 1 ? LATE_RADIUS : 0;
        struct place late = {.x = x + reach * sin(turn), .y = y - reach * cos(turn)};
        snprintf(late.name, sizeof late.name, "n%" PRIu32, i);
        draw_node(svg, &late, outcome->fates[i] == SIM_FATE_LIVE ? "later" : "dead", radius, x, y,
                  false);
        if (count <= LATE_NAMES_MAX) draw_label(svg, late.name, late.x, late.y + radius + 12);
    }
}

/* `links`: what to say of them. */
static void draw_title(struct text *svg, const struct settings *settings,
                       const struct sim_outcome *outcome, const char *links, double x, double y)
{
    uint32_t dead = 0, later = count_late(settings, outcome);
    for (uint32_t i = 0; i < sim_run_nodes(settings); i++)
        dead += outcome->fates[i] == SIM_FATE_DEAD;
    text_add(svg, "<text class=\"title middle\" x=\"%.1f\" y=\"%.1f\">", x, y);
    chart_text(svg, settings->topology);
    text_add(svg, ", %" PRIu64 " nodes</text>", settings->nodes);
    text_add(svg, "<text class=\"dim middle\" x=\"%.1f\" y=\"%.1f\">", x, y + 16);
    text_add(svg, "%s", links);
    if (dead > 0) text_add(svg, "; %" PRIu32 " dead at the end", dead);
    if (later > 0) text_add(svg, "; %" PRIu32 " joined later", later);
    text_add(svg, "</text>\n");
}

/* Links at the start, and what to say of them. */
static int draw_topology(struct text *svg, const struct settings *settings,
                         const struct source_reader *reader, const struct place *places, uint32_t n,
                         char links[64])
{
    const char *spec = settings->topology;
    struct topology topology;
    struct graph file;
    char why[512];
    int error = graph_load(&file, spec, reader, why, sizeof why);
    if (!error) error = graph_covers(&file, spec, n, why, sizeof why);
    if (error == PARLEY_EDATA) { /* it could be read as the runs began */
        snprintf(links, 64, "links from a file that has changed, not drawn");
        graph_close(&file);
        return 0;
    }
    if (!error) error = graph_topology(&file, spec, n, settings->seed, &topology, why, sizeof why);
    if (!error) {
        uint64_t edges = count_links(&topology);
        if (edges <= GRAPH_EDGES_MAX) draw_links(svg, &topology, places, edges);
        snprintf(links, 64, "%" PRIu64 " links%s", edges,
                 edges > GRAPH_EDGES_MAX ? ", not drawn" : "");
        topology_close(&topology);
    }
    graph_close(&file);
    return error;
}

int graph_draw(struct text *svg, const struct settings *settings, const struct sim_outcome *outcome,
               const struct source_reader *reader, const char *label, double left, double top)
{
    double x = left + GRAPH_WIDTH / 2.0, y = top + GRAPH_HEIGHT / 2.0 + 28;
    uint32_t n = (uint32_t)settings->nodes;
    char links[64];
    if (n > NODES_MAX || !outcome->fates) {
        text_add(svg, "<text class=\"dim middle\" x=\"%.1f\" y=\"%.1f\">", x, y);
        chart_text(svg, settings->topology);
        text_add(svg, ", %" PRIu32 " nodes: too many to draw</text>\n", n);
        return 0;
    }
    struct place *places = calloc(n, sizeof *places);
    if (!places) return PARLEY_ENOMEM;
    lay_out(places, n, x, y);
    int error = draw_topology(svg, settings, reader, places, n, links);
    if (!error) draw_title(svg, settings, outcome, links, x, top + 14);
    if (label) draw_label(svg, label, x, top + 46);
    double radius = fmax(2, fmin(6, 260.0 / n));
    for (uint32_t i = 0; !error && i < n; i++)
        draw_node(svg, &places[i],
                  outcome->fates[places[i].node] == SIM_FATE_LIVE ? "node" : "dead", radius, x, y,
                  n <= NAMES_MAX);
    if (!error) draw_late(svg, settings, outcome, radius, x, y);
    free(places);
    return error;
}
