/* faults.c: what a test or a fault schedule may do to nodes and network, and the hooks. */
#include <stdlib.h>
#include <string.h>

#include "world/network/network.h"

static void put(struct sim_host *host, enum sim_kind kind, uint64_t number)
{
    struct sim_item item = sim_item_for(host, kind);
    item.number = number;
    sim_put(host->sim, item);
}

void parley_sim_start(struct parley_sim *sim, uint32_t node)
{
    struct sim_host *host = &sim->hosts[node];
    if (host->state == SIM_HOST_UP) return;
    host->boots_due = host->boots + 1;
    put(host, SIM_START, 0);
}

void parley_sim_kill(struct parley_sim *sim, uint32_t node, bool silent)
{
    struct sim_host *host = &sim->hosts[node];
    if (host->state != SIM_HOST_UP) return;
    host->silent = silent;
    sim_network_end(host, silent ? SIM_NETWORK_SILENT : SIM_NETWORK_RESET);
    sim_host_stop(host);
    sim_hash(sim, sim->queue.now_us);
    sim_hash(sim, node);
}

void parley_sim_pause(struct parley_sim *sim, uint32_t node)
{
    struct sim_host *host = &sim->hosts[node];
    if (host->state != SIM_HOST_UP || host->paused) return;
    host->paused = true;
    host->paused_us = sim->queue.now_us;
}

void parley_sim_resume(struct parley_sim *sim, uint32_t node)
{
    sim_host_resume(&sim->hosts[node]);
}

void parley_sim_disconnect(struct parley_sim *sim, uint32_t a, uint32_t b)
{
    sim_network_cut(sim, a, b);
}

static bool blocks_make(struct parley_sim *sim)
{
    if (!sim->blocked) sim->blocked = calloc(sim->nodes, sim->nodes * sizeof *sim->blocked);
    if (!sim->blocked) sim_fail(sim, PARLEY_ENOMEM, "no memory for a partition");
    return sim->blocked;
}

void parley_sim_block(struct parley_sim *sim, uint32_t from, uint32_t to)
{
    if (blocks_make(sim)) sim->blocked[(size_t)from * sim->nodes + to] = true;
}

void parley_sim_unblock(struct parley_sim *sim, uint32_t from, uint32_t to)
{
    if (!sim->blocked) return;
    sim->blocked[(size_t)from * sim->nodes + to] = false;
    sim_network_release(sim);
}

void parley_sim_partition(struct parley_sim *sim, const uint32_t *group)
{
    if (!blocks_make(sim)) return;
    for (uint32_t a = 0; a < sim->nodes; a++)
        for (uint32_t b = 0; b < sim->nodes; b++)
            if (group[a] != group[b]) sim->blocked[(size_t)a * sim->nodes + b] = true;
}

void parley_sim_heal(struct parley_sim *sim)
{
    free(sim->blocked);
    sim->blocked = NULL;
    sim_network_release(sim);
}

void parley_sim_latency(struct parley_sim *sim, uint32_t node, uint64_t extra_us)
{
    sim->hosts[node].extra_us = extra_us;
}

static void set_rate(struct parley_sim *sim, double *rate, double probability, const char *refused)
{
    if (probability >= 0 && probability <= 1)
        *rate = probability;
    else
        sim_fail(sim, PARLEY_EUSAGE, refused);
}

void parley_sim_loss(struct parley_sim *sim, uint32_t node, double probability)
{
    set_rate(sim, &sim->hosts[node].loss_rate, probability,
             "parley_sim_loss: the probability is out of range");
}

void parley_sim_cut(struct parley_sim *sim, uint32_t node, double probability)
{
    set_rate(sim, &sim->hosts[node].cut_rate, probability,
             "parley_sim_cut: the probability is out of range");
}

void parley_sim_duplicate(struct parley_sim *sim, uint32_t node, double probability)
{
    set_rate(sim, &sim->hosts[node].duplicate_rate, probability,
             "parley_sim_duplicate: the probability is out of range");
}

void parley_sim_reorder(struct parley_sim *sim, uint32_t node, uint64_t longest_us)
{
    sim->hosts[node].reorder_us = longest_us;
}

void parley_sim_bandwidth(struct parley_sim *sim, uint32_t node, uint64_t bandwidth_bytes)
{
    sim->hosts[node].out.rate_bytes = sim->hosts[node].in.rate_bytes = bandwidth_bytes;
}

void parley_sim_slow(struct parley_sim *sim, uint32_t node, double factor)
{
    if (factor > 0 && factor <= PARLEY_SIM_SLOW_MAX)
        sim->hosts[node].slow = factor;
    else
        sim_fail(sim, PARLEY_EUSAGE, "parley_sim_slow: the factor is out of range");
}

void parley_sim_disk_full(struct parley_sim *sim, uint32_t node, bool full)
{
    sim->hosts[node].disk_full = full;
}

void parley_sim_spoil(struct parley_sim *sim, uint32_t node, float value)
{
    struct sim_host *host = &sim->hosts[node];
    if (!parley_sim_live(sim, node)) return;
    const float *from = parley_sim_vector(sim, node);
    struct sim_block *left = sim_x_leave(host);
    float *x = host->vectors[0] = host->blocks[0]->x;
    if (left) memcpy(x, from, sim->parameters * sizeof *x);
    x[0] = value;
    sim_block_release(sim, left);
}

void parley_sim_disk_torn(struct parley_sim *sim, uint32_t node, bool torn)
{
    sim->hosts[node].disk_torn = torn;
}

void parley_sim_disk_slow(struct parley_sim *sim, uint32_t node, uint64_t extra_us)
{
    sim->hosts[node].disk_us =
        extra_us < PARLEY_SIM_STEP_US_MAX ? extra_us : PARLEY_SIM_STEP_US_MAX;
}

void parley_sim_byzantine(struct parley_sim *sim, uint32_t node, enum parley_sim_lie lie)
{
    struct sim_host *host = &sim->hosts[node];
    const struct sim_task *task = sim->task;
    if (task->mislabel && (lie == PARLEY_SIM_LABELS) != (host->lie == PARLEY_SIM_LABELS)) {
        sim_settle(sim, node);
        task->mislabel(task->self, node, lie == PARLEY_SIM_LABELS);
    }
    host->lie = lie;
}

void parley_sim_stop(struct parley_sim *sim, uint32_t node, enum parley_stop cause)
{
    put(&sim->hosts[node], SIM_STOP, cause);
}

void parley_sim_leave(struct parley_sim *sim, uint32_t node)
{
    put(&sim->hosts[node], SIM_LEAVE, 0);
}

void parley_sim_on_frame(struct parley_sim *sim,
                         void (*callback)(struct parley_sim *, const struct parley_sim_frame *,
                                          void *),
                         void *arg)
{
    sim->on_frame = callback;
    sim->on_frame_arg = arg;
}

void parley_sim_on_line(struct parley_sim *sim, enum parley_log level,
                        void (*callback)(const char *, void *), void *arg)
{
    sim->line_level = level;
    sim->on_line = callback;
    sim->on_line_arg = arg;
}
