/* options.c: what is meant where an option is 0, and which options are refused. */
#include <inttypes.h>
#include <stdio.h>

#include "world/cluster.h"

#define PARAMETERS_MAX (UINT64_C(1) << 32)

/* What an operation on a buffer costs at least. At no cost, settling nodes without latency would
 * exchange for ever in one moment. */
enum { OPERATION_US = 20 };

static void fill_again(struct parley_sim_again *again)
{
    if (again->least_us == 0) again->least_us = 16000;
    if (again->ways == 0) again->ways = 3;
    if (again->even == 0) again->even = 6;
    if (again->most == 0) again->most = 15;
}

void sim_options_fill(struct parley_sim_options *options)
{
    if (options->nodes == 0) options->nodes = 1;
    if (options->parameters == 0) options->parameters = 64;
    if (options->vectors == 0) options->vectors = 1;
    if (options->averaged == 0) options->averaged = 1;
    if (options->seeds == 0) options->seeds = 1;
    if (options->samples == 0) options->samples = 1;
    if (options->step_us == 0) options->step_us = 1000;
    if (options->operation_us == 0) options->operation_us = OPERATION_US;
    if (options->threads == 0) options->threads = 1;
    if (options->seeds > options->nodes) options->seeds = options->nodes;
    fill_again(&options->again);
}

static int check_counts(const struct parley_sim_options *o, char *why, size_t size)
{
    uint64_t floats =
        PARLEY_PARAMETERS_MAX < PARAMETERS_MAX ? PARLEY_PARAMETERS_MAX : PARAMETERS_MAX;
    const struct {
        const char *name;
        uint64_t value, most;
    } counts[] = {
        {"nodes", o->nodes, PARLEY_MEMBERS_MAX},
        {"parameters", o->parameters, floats},
        {"vectors", o->vectors, PARLEY_VECTORS_MAX},
        {"averaged", o->averaged, o->vectors},
        {"seeds", o->seeds, PARLEY_SEEDS_MAX},
        {"threads", o->threads, SIM_THREADS_MAX},
        {"step_us", o->step_us, PARLEY_SIM_STEP_US_MAX},
        {"operation_us", o->operation_us, PARLEY_SIM_STEP_US_MAX},
        {"latency_us", o->latency_us, PARLEY_SIM_STEP_US_MAX},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i].value <= counts[i].most) continue;
        snprintf(why, size, "%s: %" PRIu64 " is out of range (at most %" PRIu64 ")", counts[i].name,
                 counts[i].value, counts[i].most);
        return PARLEY_EUSAGE;
    }
    return 0;
}

static int check_training(const struct parley_sim_options *o, char *why, size_t size)
{
    if (o->work && o->rate > 0)
        snprintf(why, size, "rate: %g beside work, which trains by itself", o->rate);
    else if (o->begin && !o->work)
        snprintf(why, size, "begin: it is for a program's own training, and there is no work");
    else
        return 0;
    return PARLEY_EUSAGE;
}

int parley_sim_check(const struct parley_sim_options *options, char *why, size_t size)
{
    struct parley_sim_options filled = *options;
    sim_options_fill(&filled);
    int code = check_counts(&filled, why, size);
    if (code) return code;
    if (!(filled.rate >= 0 && filled.rate <= 1)) {
        snprintf(why, size, "rate: %g is out of range (0 to 1)", filled.rate);
        return PARLEY_EUSAGE;
    }
    if (!(filled.loss >= 0 && filled.loss < 1)) {
        snprintf(why, size, "loss: %g is out of range (0 to below 1)", filled.loss);
        return PARLEY_EUSAGE;
    }
    return check_training(&filled, why, size);
}
