/* route.c: see route.h. */
#include "world/network/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLINGS_MAX = 8 };

const struct parley_sim_again sim_again_hard = {
    .least_us = 200000, .ways = 1, .even = 1, .most = 5};

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Nothing is on the line until the next message's first byte. */
static void rest(struct sim_line *line, uint64_t until_us)
{
    if (line->idles == SIM_IDLES)
        memmove(line->idle, line->idle + 1, --line->idles * sizeof *line->idle);
    line->idle[line->idles++] = (struct sim_idle){line->free_us, until_us};
    line->free_us = until_us;
}

/* What is left of a message's time on the line when it has used what others left since first_us,
 * the newest first. */
static uint64_t fill(struct sim_line *line, uint64_t first_us, uint64_t takes_us)
{
    while (line->idles > 0 && takes_us > 0) {
        struct sim_idle *idle = &line->idle[line->idles - 1];
        if (idle->to_us <= first_us) break;
        uint64_t from_us = idle->from_us > first_us ? idle->from_us : first_us;
        uint64_t used_us = idle->to_us - from_us < takes_us ? idle->to_us - from_us : takes_us;
        takes_us -= used_us;
        idle->to_us -= used_us;
        if (idle->to_us > idle->from_us) break; /* of which it can use no more */
        line->idles--;
    }
    return takes_us;
}

uint64_t sim_line_us(struct sim_line *line, uint64_t now_us, size_t size, uint64_t *span_us)
{
    if (line->rate_bytes == 0) /* of what came while it had a limit, some may still be on it */
        return line->free_us > now_us ? line->free_us : now_us;
    uint64_t takes_us = (uint64_t)((double)size * 1e6 / (double)line->rate_bytes);
    uint64_t first_us = *span_us < now_us ? now_us - *span_us : 0; /* the first byte was here */
    if (takes_us > *span_us) *span_us = takes_us;
    if (first_us > line->free_us) rest(line, first_us);
    line->free_us += fill(line, first_us, takes_us);
    bool had_room = line->idles > 0 && line->idle[line->idles - 1].to_us > first_us;
    return !had_room && line->free_us > now_us ? line->free_us : now_us;
}

/* The newest link whose groups part the two, or NULL. */
static struct sim_site_link *site_link(const struct parley_sim *sim, const struct sim_host *from,
                                       const struct sim_host *to)
{
    for (uint32_t i = sim->site_links_count; i > 0; i--) {
        struct sim_site_link *link = &sim->site_links[i - 1];
        uint32_t a = link->group[from->index], b = link->group[to->index];
        if (a != b && a != UINT32_MAX && b != UINT32_MAX) return link;
    }
    return NULL;
}

uint64_t sim_site_line_us(struct parley_sim *sim, const struct sim_host *from,
                          const struct sim_host *to, size_t size, uint64_t *span_us)
{
    struct sim_site_link *link = site_link(sim, from, to);
    uint64_t now_us = sim->queue.now_us;
    if (!link) return now_us;
    uint32_t line = link->group[from->index] * link->groups + link->group[to->index];
    return sim_line_us(&link->lines[line], now_us, size, span_us);
}

static uint64_t narrower_bytes(uint64_t one, uint64_t other)
{
    return other == 0 || (one > 0 && one < other) ? one : other;
}

uint64_t sim_narrowest_bytes(const struct sim_host *from, const struct sim_host *to)
{
    const struct sim_site_link *link = site_link(from->sim, from, to);
    uint64_t rate = narrower_bytes(from->out.rate_bytes, to->in.rate_bytes);
    return link ? narrower_bytes(rate, link->lines[0].rate_bytes) : rate;
}

/* ---- Latency and loss ------------------------------------------------------------------------ */

/* So that sums of what a caller gave don't begin anew at 0. */
static uint64_t at_most_us(uint64_t us)
{
    return us < PARLEY_SIM_STEP_US_MAX ? us : PARLEY_SIM_STEP_US_MAX;
}

static uint64_t draw_way_us(struct parley_sim *sim, const struct sim_host *from,
                            const struct sim_host *to)
{
    const struct sim_site_link *link = site_link(sim, from, to);
    uint64_t us =
        at_most_us(link && link->has_latency ? link->latency_us
                                             : sim_draw_us(&sim->draws, &sim->options.latency));
    us += at_most_us(from->extra_us) + at_most_us(to->extra_us);
    uint64_t reorder_us = at_most_us(from->reorder_us) + at_most_us(to->reorder_us);
    if (reorder_us > 0) us += (uint64_t)(rng_unit(&sim->draws) * (double)reorder_us);
    return us;
}

uint64_t sim_again_us(const struct parley_sim_again *again, uint64_t way_us, uint32_t losses)
{
    bool longest = again->ways > 0 && way_us > PARLEY_SIM_STEP_US_MAX / again->ways;
    uint64_t us = longest ? PARLEY_SIM_STEP_US_MAX : again->ways * way_us;
    if (us < again->least_us) us = at_most_us(again->least_us);
    uint32_t doublings = losses < again->even ? 0 : losses - again->even + 1;
    return us << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
}

/* How much later so many packets arrive for what is lost of them. Of what goes again a part is lost
 * again, as if that were always the mean. */
static uint64_t resent_us(struct parley_sim *sim, const struct sim_host *from,
                          const struct sim_host *to, const struct parley_sim_again *again,
                          uint64_t way_us, double packets, bool *broken)
{
    double arrives = (1 - from->loss_rate) * (1 - to->loss_rate) * (1 - sim->options.base.loss);
    uint64_t us = 0;
    uint32_t losses = 0;
    while (arrives < 1 && losses < again->most &&
           rng_unit(&sim->draws) >= pow(arrives, fmax(1, packets))) {
        us += sim_again_us(again, way_us, losses++);
        packets *= 1 - arrives;
    }
    *broken = losses == again->most;
    return us;
}

uint64_t sim_message_us(struct parley_sim *sim, const struct sim_host *from,
                        const struct sim_host *to, size_t size, bool *broken)
{
    *broken = false;
    if (from == to) return 0;
    double packets = ceil((double)size / SIM_PACKET_BYTES);
    uint64_t way_us = draw_way_us(sim, from, to);
    return way_us + resent_us(sim, from, to, &sim->options.base.again, way_us, packets, broken);
}

/* How long the way is, nobody knows yet. */
uint64_t sim_handshake_us(struct parley_sim *sim, const struct sim_host *from,
                          const struct sim_host *to)
{
    bool broken;
    if (from == to) return 0;
    uint64_t way_us = draw_way_us(sim, from, to);
    return way_us + resent_us(sim, from, to, &sim_again_hard, 0, 1, &broken);
}

/* ---- Sites ----------------------------------------------------------------------------------- */

static int site_link_init(struct sim_site_link *link, const uint32_t *group, uint32_t nodes)
{
    *link = (struct sim_site_link){.group = malloc(nodes * sizeof *group)};
    if (!link->group) return PARLEY_ENOMEM;
    memcpy(link->group, group, nodes * sizeof *group);
    for (uint32_t i = 0; i < nodes; i++)
        if (group[i] != UINT32_MAX && group[i] >= link->groups) link->groups = group[i] + 1;
    if (link->groups > PARLEY_MEMBERS_MAX) return PARLEY_EUSAGE;
    link->lines = calloc((size_t)link->groups * link->groups + 1, sizeof *link->lines);
    return link->lines ? 0 : PARLEY_ENOMEM;
}

int parley_sim_link(struct parley_sim *sim, const uint32_t *group, uint64_t latency_us,
                    uint64_t bandwidth_bytes)
{
    struct sim_site_link *links =
        realloc(sim->site_links, (sim->site_links_count + 1) * sizeof *links);
    if (!links) return PARLEY_ENOMEM;
    sim->site_links = links;
    struct sim_site_link *link = &links[sim->site_links_count];
    int error = site_link_init(link, group, sim->nodes);
    if (error) {
        free(link->group);
        return error;
    }
    sim->site_links_count++;
    link->has_latency = latency_us != PARLEY_SIM_NEVER;
    link->latency_us = latency_us;
    for (uint32_t i = 0; i < link->groups * link->groups; i++)
        link->lines[i].rate_bytes = bandwidth_bytes;
    return 0;
}

void sim_site_links_free(struct parley_sim *sim)
{
    for (uint32_t i = 0; i < sim->site_links_count; i++) {
        free(sim->site_links[i].group);
        free(sim->site_links[i].lines);
    }
    free(sim->site_links);
}
