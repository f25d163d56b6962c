/* cluster.c: see cluster.h. */
#include "cli/bench/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the process has in memory; 0 if it can't be told. */
static double rss_of(uint64_t pid)
{
    char path[64], line[128];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0) kib = strtod(line + 6, NULL);
    if (file) fclose(file);
    return kib * 1024;
}

static void on_progress(struct cluster *cluster, struct cluster_node *node, double t,
                        const struct report_progress *progress)
{
    node->end_s = t;
    node->end = *progress;
    if (cluster->training < cluster->count || !node->trains) return;
    if (!node->told) {
        node->from_s = t;
        node->from = *progress;
    }
    node->told = true;
    if (t <= node->from_s + CLUSTER_NEWS_S) {
        node->calm_s = t;
        node->calm = *progress;
    }
    node->to_s = t;
    node->to = *progress;
    double rss = rss_of(node->pid);
    if (rss > node->rss_bytes) node->rss_bytes = rss;
}

/* Who stops trains no more, and ends the time in which all do. */
static void on_phase(struct cluster *cluster, struct cluster_node *node, const char *phase)
{
    if (strcmp(phase, "train") == 0) {
        node->trains = true;
        if (++cluster->training == cluster->count)
            cluster->train_s = bench_now() - cluster->start_s;
    } else
        node->trains = false;
}

static void on_line(void *context, const char *text)
{
    struct cluster *cluster = context;
    struct report_line line;
    if (report_line_parse(&line, text, strlen(text))) return;
    unsigned long number = line.node ? strtoul(line.node + 1, NULL, 10) : 0;
    struct cluster_node *node = &cluster->nodes[number < cluster->count ? number : 0];
    switch (line.event) {
    case REPORT_STARTED:
        node->pid = line.as.started.pid;
        cluster->parameters = line.as.started.parameters;
        break;
    case REPORT_PHASE:
        on_phase(cluster, node, line.as.phase.phase);
        break;
    case REPORT_PROGRESS:
        on_progress(cluster, node, line.t, &line.as.progress);
        break;
    case REPORT_SUMMARY:
        cluster->agreed = line.as.summary.agreed;
        cluster->target_s = line.as.summary.time_to_target_s;
        cluster->epochs = line.as.summary.epochs;
        break;
    default:
        break;
    }
    report_line_close(&line);
}

int cluster_run(struct bench *bench, struct cluster *cluster, uint32_t count,
                const char *const *options, const char *out)
{
    char nodes[24], to[300];
    char *argv[CLUSTER_OPTIONS_MAX + 8] = {"parley", "run", nodes, to, "-q", "--json=-"};
    size_t n = 6;
    snprintf(nodes, sizeof nodes, "--nodes=%" PRIu32, count);
    snprintf(to, sizeof to, "--out=%s", out);
    for (size_t i = 0; options[i] && i < CLUSTER_OPTIONS_MAX; i++)
        argv[n++] = (char *)(uintptr_t)options[i];
    memset(cluster, 0, sizeof *cluster);
    cluster->count = count;
    cluster->start_s = bench_now();
    int error = bench_program(bench, argv, on_line, cluster);
    if (error || (cluster->training == count && cluster->agreed == count)) return error;
    snprintf(bench->why, BENCH_WHY_BYTES, "parley run: %" PRIu64 " of %" PRIu32 " nodes agreed",
             cluster->agreed, count);
    return PARLEY_EFAIL;
}

static int too_short(struct bench *bench, const struct cluster *cluster, uint32_t node)
{
    snprintf(bench->why, BENCH_WHY_BYTES,
             "parley run: node %" PRIu32 " of %" PRIu32 " trained too shortly to be measured", node,
             cluster->count);
    return PARLEY_EFAIL;
}

int cluster_told(struct bench *bench, const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        if (node->to_s <= node->from_s || node->to.step <= node->from.step)
            return too_short(bench, cluster, i);
    }
    return 0;
}

int cluster_calmed(struct bench *bench, const struct cluster *cluster)
{
    int error = cluster_told(bench, cluster);
    for (uint32_t i = 0; !error && i < cluster->count; i++)
        if (cluster->nodes[i].to_s <= cluster->nodes[i].calm_s)
            error = too_short(bench, cluster, i);
    return error;
}

static double seconds(const struct cluster_node *node)
{
    return node->to_s - node->from_s;
}

double cluster_steps(const struct cluster_node *node)
{
    return (double)(node->to.step - node->from.step) / seconds(node);
}

double cluster_start(const struct cluster_node *node)
{
    return (double)node->calm.bytes_membership;
}

double cluster_membership(const struct cluster_node *node)
{
    double bytes = (double)(node->to.bytes_membership - node->calm.bytes_membership);
    return bytes / (node->to_s - node->calm_s);
}

double cluster_sketches(const struct cluster_node *node)
{
    return (double)node->end.bytes_sketches / (node->end_s - node->from_s);
}
