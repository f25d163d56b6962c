/* run.c: `parley sim --swarm --seeds A..B`: a range of seeds, on several threads.
 *
 * Which seed a thread takes next depends on the others; what a seed gives does not.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "report/lines.h"
#include "run/output.h"
#include "run/report.h"
#include "run/talk.h"
#include "settings/simulate.h"
#include "swarm/swarm.h"
#include "swarm/tally.h"

enum { PROGRESS_S = 10 };

struct crowd {
    const struct settings *settings;
    FILE *json;
    double start_s, told_s;
    pthread_mutex_t mutex; /* of all below */
    uint64_t next;
    bool all_taken;
    struct swarm_tally tally;
    int error;
};

/* ---- Telling --------------------------------------------------------------------------------- */

static void tell_failure(struct crowd *crowd, const struct swarm_result *result)
{
    char hint[128], message[320];
    snprintf(hint, sizeof hint, "parley sim --swarm --seeds %" PRIu64 "..%" PRIu64 " -v",
             result->seed, result->seed);
    snprintf(message, sizeof message, "seed %" PRIu64 " failed at %s", result->seed, result->why);
    sim_say(PARLEY_LOG_ERROR, "sim: %s", message);
    sim_say(PARLEY_LOG_ERROR, "sim: repeat it: %s", hint);
    if (!crowd->json) return;
    struct report_line line = {
        .event = REPORT_ERROR,
        .t = sim_report_wall() - crowd->start_s,
        .as.error = {.code = "PARLEY_EINVARIANT", .message = message, .hint = hint},
    };
    char *text = report_line_text(&line);
    if (text) fputs(text, crowd->json);
    fflush(crowd->json);
    free(text);
}

static void tell_progress(struct crowd *crowd)
{
    const struct swarm_tally *tally = &crowd->tally;
    double now_s = sim_report_wall();
    if (now_s < crowd->told_s + PROGRESS_S) return;
    crowd->told_s = now_s;
    sim_show("swarm: %" PRIu64 " of %" PRIu64 " seeds well, %" PRIu64
             " failed, %.1f h simulated, %.0f seeds/s",
             tally->well_count, tally->last - tally->first + 1, tally->failed_count,
             (double)tally->virtual_us / 3.6e9,
             (double)(tally->well_count - tally->earlier + tally->failed_count) /
                 (now_s - crowd->start_s));
}

static void tell_end(struct crowd *crowd)
{
    const struct swarm_tally *t = &crowd->tally;
    uint64_t seeds = t->last - t->first + 1;
    double wall_s = sim_report_wall() - crowd->start_s;
    if (crowd->json) {
        fprintf(crowd->json,
                "{\"event\":\"summary\",\"t\":%.3f,\"ok\":%s,\"first\":%" PRIu64
                ",\"last\":%" PRIu64 ",\"seeds\":%" PRIu64 ",\"well\":%" PRIu64
                ",\"earlier\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"nodes\":%" PRIu64
                ",\"agreed\":%" PRIu64 ",\"exchanges\":%" PRIu64 ",\"events\":%" PRIu64
                ",\"virtual_s\":%.3f,\"wall_s\":%.3f}\n",
                wall_s, t->well_count == seeds ? "true" : "false", t->first, t->last, seeds,
                t->well_count, t->earlier, t->failed_count, t->nodes, t->agreed, t->exchanges,
                t->events, (double)t->virtual_us / 1e6, wall_s);
        fflush(crowd->json);
    }
    if (crowd->json == stdout) return;
    printf("swarm     %" PRIu64 " of %" PRIu64 " seeds well", t->well_count, seeds);
    if (t->earlier > 0) printf(" (%" PRIu64 " of them earlier)", t->earlier);
    printf("    %" PRIu64 " failed\n", t->failed_count);
    printf("simulated %.1f h of %" PRIu64 " nodes in %.1f s    %" PRIu64 " exchanges, %" PRIu64
           " events, %" PRIu64 " agreed\n",
           (double)t->virtual_us / 3.6e9, t->nodes, wall_s, t->exchanges, t->events, t->agreed);
    fflush(stdout);
}

/* ---- Living ---------------------------------------------------------------------------------- */

static bool take(struct crowd *crowd, uint64_t *seed)
{
    struct swarm_tally *tally = &crowd->tally;
    while (!crowd->all_taken && !crowd->error) {
        *seed = crowd->next;
        crowd->all_taken = crowd->next++ == tally->last;
        if (!tally->well[*seed - tally->first]) return true;
    }
    return false;
}

static void *worker(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t seed;
    pthread_mutex_lock(&crowd->mutex);
    while (take(crowd, &seed)) {
        struct swarm_result result;
        pthread_mutex_unlock(&crowd->mutex);
        swarm_live(seed, SWARM_DRAWN, &result);
        pthread_mutex_lock(&crowd->mutex);
        int error = swarm_tally_add(&crowd->tally, &result);
        if (error) crowd->error = error;
        if (!result.well) tell_failure(crowd, &result);
        tell_progress(crowd);
    }
    pthread_mutex_unlock(&crowd->mutex);
    return NULL;
}

static uint64_t threads_of(const struct crowd *crowd)
{
    const struct swarm_tally *tally = &crowd->tally;
    uint64_t threads = sim_threads(crowd->settings), seeds = tally->last - tally->first + 1;
    if (sim_talks(PARLEY_LOG_DEBUG)) threads = 1; /* so that the lines can be read */
    return threads < seeds ? threads : seeds;
}

static void live_all(struct crowd *crowd)
{
    pthread_t threads[SIM_THREADS_MAX];
    uint64_t wanted = threads_of(crowd), started = 0;
    for (uint64_t i = 1; i < wanted; i++)
        if (pthread_create(&threads[started], NULL, worker, crowd) == 0) started++;
    worker(crowd);
    for (uint64_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

int swarm_command(const struct settings *settings)
{
    struct crowd crowd = {
        .settings = settings,
        .start_s = sim_report_wall(),
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .next = settings->seeds.first,
    };
    int error = sim_output_open(&crowd.json, "json", settings->json);
    if (error) return error;
    crowd.told_s = crowd.start_s;
    crowd.error = swarm_tally_open(&crowd.tally, settings->seeds.first, settings->seeds.last,
                                   settings->tally);
    if (!crowd.error) {
        live_all(&crowd);
        tell_end(&crowd);
    }
    int closed = sim_output_close(crowd.json, "json", settings->json);
    error = crowd.tally.failed_count > 0 ? PARLEY_EINVARIANT : crowd.error ? crowd.error : closed;
    swarm_tally_close(&crowd.tally);
    return error;
}
