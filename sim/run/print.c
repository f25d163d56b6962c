/* print.c: what a simulated run says to people at its end. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "report/human.h"
#include "report/summary.h"
#include "run/report.h"
#include "run/talk.h"

static double resident_max(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (double)usage.ru_maxrss * 1024;
}

static void print_cost(const struct sim_report *report)
{
    char peak[HUMAN_BYTES], node[HUMAN_BYTES], speed[HUMAN_BYTES];
    double steps = report->outcome->summary.node_steps_per_s;
    snprintf(speed, sizeof speed, "%.0f", steps);
    uint32_t threads = report->sim->options.base.threads;
    double most = resident_max(), beyond = (most - report->resident) / report->sim->nodes;
    printf("speed     %s node-steps/s with %" PRIu32 " thread%s   memory %s at most, %s a node "
           "beyond data\n",
           isfinite(steps) ? speed : "-", threads, threads == 1 ? "" : "s",
           human_bytes(peak, (uint64_t)most), human_bytes(node, beyond > 0 ? (uint64_t)beyond : 0));
    if (report->sim->roster)
        puts("members   one list for all nodes (--membership static): nobody probes or gossips");
}

/* How it was before the final averaging. */
static void print_trained(const struct sim_report *report)
{
    const struct report_summary *s = &report->outcome->summary;
    char drift[HUMAN_BYTES], sent[HUMAN_BYTES], judged[32] = "", exchanges[64] = "";
    if (!isfinite(s->drift_trained)) return;
    printf("trained   ");
    if (report->own.judged < s->live)
        snprintf(judged, sizeof judged, " of %" PRIu32 " nodes", report->own.judged);
    if (isfinite(s->own_accuracy))
        printf("own models %.4f on average%s, %.4f at least   ", s->own_accuracy, judged,
               s->own_accuracy_worst);
    if (s->exchanges_trained > 0)
        snprintf(exchanges, sizeof exchanges, "exchanges %" PRIu64 " (%.3f a step), ",
                 s->exchanges_trained,
                 (double)s->exchanges_trained / (double)report->steps_trained);
    printf("drift %s, %s%s\n", human_drift(drift, s->drift_trained), exchanges,
           human_bytes(sent, s->bytes_trained));
}

/* Of models that all are still as they were at the start nothing is said. */
static double drift_at_end(const struct sim_report *report)
{
    const struct report_summary *s = &report->outcome->summary;
    if (s->digest) return 0;
    return s->live > 0 && s->steps > 0 ? models_drift(report->sim) : NAN;
}

void sim_report_print(const struct sim_report *report)
{
    const struct report_summary *s = &report->outcome->summary;
    char out[SUMMARY_REMARK_BYTES];
    struct summary summary = {
        .line = s,
        .nodes = s->nodes,
        .drift = drift_at_end(report),
        .test_samples = report->job->data.test.count,
        .target = report->settings->accuracy,
        .trained_s = s->steps > 0 ? s->trained_s : NAN,
        .path = report->outcome->error ? NULL : report->settings->out,
        .classes = report->job->data.train.classes,
        .rate = report->settings->rate,
    };
    char *text = summary_text(&summary);
    if (text) fputs(text, stdout);
    free(text);
    printf("simulated %.1f s in %.1f s   run hash %s\n", s->virtual_s, s->wall_s, s->run_hash);
    print_trained(report);
    print_cost(report);
    fflush(stdout);
    const char *remark = summary_remark(&summary, out);
    if (remark) sim_say(PARLEY_LOG_WARN, "%s", remark);
}
