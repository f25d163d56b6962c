/* seeds.c: the addresses a node starts from, and when each is dialled.
 *
 * All seeds are dialled, and again for the whole run: stopping at the first splits clusters. What
 * does not come about is tried again after a while that doubles each time. Where a live member is
 * known to be there is nothing to dial for. Where this node itself answers another may do so later:
 * a name may have many addresses, and who forwards a dial back to its sender goes away.
 */
#include "core/link/seeds.h"

#include <string.h>

#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"

/* ---- Which there are ------------------------------------------------------------------------- */

uint32_t seeds_room(const struct parley_config *config)
{
    return PARLEY_SEEDS_MAX + config->connections_max;
}

/* Its place may be given to another. */
static bool is_free(const struct seed_dial *seed)
{
    return seed->off && !seed->dialing;
}

static bool is_listed(const char *address, const char *const *seeds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(address, seeds[i]) == 0) return true;
    return false;
}

static bool is_known(const struct parley_node *node, const char *address)
{
    for (uint32_t i = 0; i < node->seeds_count; i++)
        if (!is_free(&node->seeds[i]) && strcmp(node->seeds[i].address, address) == 0) return true;
    return false;
}

/* Those that are not free keep their places: connections name them. False: none is left, or it is
 * no address. */
static bool add(struct parley_node *node, const char *address)
{
    uint32_t i = 0;
    while (i < node->seeds_count && !is_free(&node->seeds[i]))
        i++;
    if (i == seeds_room(&node->config) || strlen(address) >= PARLEY_ADDRESS_SIZE) return false;
    if (i == node->seeds_count) node->seeds_count++;
    struct seed_dial *seed = &node->seeds[i];
    *seed = (struct seed_dial){.backoff_us = node->config.redial_min_us, .next_us = node->now_us};
    memcpy(seed->address, address, strlen(address) + 1);
    return true;
}

void seeds_set(struct parley_node *node, const char *const *seeds, uint32_t count)
{
    uint32_t left = 0;
    if (node->roster->shared) return;
    for (uint32_t i = 0; i < node->seeds_count; i++) {
        struct seed_dial *seed = &node->seeds[i];
        seed->off = is_free(seed) || !is_listed(seed->address, seeds, count);
    }
    for (uint32_t i = 0; i < count; i++)
        if (!is_known(node, seeds[i]) && !add(node, seeds[i])) left++;
    node->next_seed_us = node->now_us;
    if (left > 0)
        out_log(node, PARLEY_LOG_WARN, "%u of %u seeds were not taken: too many, or too long", left,
                count);
}

bool seeds_only_self(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->seeds_count; i++)
        if (!node->seeds[i].self && !node->seeds[i].off) return false;
    return true;
}

bool seeds_met(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->seeds_count && !node->roster->shared; i++) {
        const struct seed_dial *seed = &node->seeds[i];
        if (!seed->self && !seed->off && !seed->tried && seed->boot == 0) return false;
    }
    return true;
}

bool seeds_met_nobody(const struct parley_node *node)
{
    return phase_of(node) == PARLEY_PHASE_JOINING && live_of(node) == 1;
}

bool seeds_refuse(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->seeds_count; i++) {
        const struct seed_dial *seed = &node->seeds[i];
        if (!seed->self && !seed->off && !seed->refused) return false;
    }
    return true;
}

/* Who is down may be about to start: it is dialled three times, or as often as the wait grows. */
static bool is_in_vain(const struct parley_node *node, const struct seed_dial *seed)
{
    const struct parley_config *config = &node->config;
    uint64_t thrice_us = 8 * config->redial_min_us; /* doubled each time */
    if (thrice_us > config->redial_max_us) thrice_us = config->redial_max_us;
    return seed->tried && seed->backoff_us >= thrice_us;
}

bool seeds_in_vain(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->seeds_count; i++) {
        const struct seed_dial *seed = &node->seeds[i];
        if (!seed->self && !seed->off && !seed->refused && !is_in_vain(node, seed)) return false;
    }
    return true;
}

int seeds_member(const struct parley_node *node, int index)
{
    uint64_t boot = node->seeds[index].boot;
    return boot ? roster_find(node->roster, boot) : NONE;
}

/* ---- What became of a dial ------------------------------------------------------------------- */

void seeds_answered(struct parley_node *node, int index, uint64_t boot)
{
    struct seed_dial *seed = &node->seeds[index];
    seed->boot = boot;
    seed->self = false;
    seed->refused = false;
    seed->backoff_us = node->config.redial_min_us;
    seed->next_us = node->now_us + node->config.redial_min_us;
}

void seeds_is_self(struct parley_node *node, int index)
{
    struct seed_dial *seed = &node->seeds[index];
    seed->self = true;
    seed->backoff_us = node->config.redial_max_us;
}

void seeds_ended(struct parley_node *node, int index, bool was_live)
{
    struct seed_dial *seed = &node->seeds[index];
    if (!was_live) {
        seed->tried = true;
        seed->next_us = node->now_us + seed->backoff_us;
        seed->backoff_us *= 2;
        if (seed->backoff_us > node->config.redial_max_us)
            seed->backoff_us = node->config.redial_max_us;
    }
    seed->dialing = false;
    node->next_seed_us = earlier(node->next_seed_us, seed->next_us);
}

void seeds_log(struct parley_node *node, int index, const char *what)
{
    struct seed_dial *seed = &node->seeds[index];
    if (seed->off) return;
    uint64_t wait_us = seed->next_us - node->now_us;
    /* Of who was met there it is told that it is dead. */
    bool news = wait_us != seed->said_us && seed->boot == 0;
    enum parley_log level = news ? PARLEY_LOG_WARN : PARLEY_LOG_DEBUG;
    seed->said_us = wait_us;
    out_log(node, level, "seed %s: %s; next try in %.1f s%s", seed->address, what,
            (double)wait_us / 1e6, wait_us < node->config.redial_max_us ? "" : ", and so on");
}

void seeds_barred(struct parley_node *node, int index, const char *why)
{
    struct seed_dial *seed = &node->seeds[index];
    seed->refused = true;
    if (!seeds_met_nobody(node) || !seeds_refuse(node)) {
        seeds_log(node, index, why);
        return;
    }
    out_log(node, PARLEY_LOG_ERROR, "seed %s: %s", seed->address, why);
    out_finish(node, PARLEY_EKEY);
}

/* ---- Dialling -------------------------------------------------------------------------------- */

void seeds_hurry(struct parley_node *node)
{
    node->next_seed_us = NEVER;
    if (node->roster->shared) return; /* all that there are stand in it */
    for (uint32_t i = 0; i < node->seeds_count; i++) {
        node->seeds[i].backoff_us = node->config.redial_min_us;
        node->seeds[i].next_us = node->now_us;
        node->seeds[i].tried = false;
    }
    node->next_seed_us = node->now_us;
}

/* True if the seed is being dialled now. */
static bool dial(struct parley_node *node, int index)
{
    struct seed_dial *seed = &node->seeds[index];
    struct conn *conn = out_room(node) ? connection_dial(node, seed->address) : NULL;
    seed->next_us = node->now_us + node->config.redial_min_us;
    if (!conn) return false;
    conn->seed = index;
    seed->dialing = true;
    return true;
}

void seeds_timers(struct parley_node *node)
{
    if (node->now_us < node->next_seed_us) return;
    node->next_seed_us = NEVER;
    for (uint32_t i = 0; i < node->seeds_count; i++) {
        struct seed_dial *seed = &node->seeds[i];
        if (seed->off || seed->dialing || node->leaving) continue;
        if (node->now_us >= seed->next_us) {
            int member = seeds_member(node, (int)i);
            if (member != NONE && membership_is_live(node, member))
                seed->next_us = node->now_us + 10 * node->config.redial_min_us;
            else if (dial(node, (int)i))
                continue;
        }
        node->next_seed_us = earlier(node->next_seed_us, seed->next_us);
    }
}

static uint64_t join_deadline(const struct parley_node *node)
{
    bool waits = phase_of(node) == PARLEY_PHASE_JOINING && !node->contacted &&
                 node->config.join_timeout_us != NEVER && !seeds_only_self(node);
    return waits ? node->start_us + node->config.join_timeout_us : NEVER;
}

void seeds_give_up(struct parley_node *node)
{
    bool refused = false;
    if (node->now_us < join_deadline(node)) return;
    for (uint32_t i = 0; i < node->seeds_count; i++)
        refused = refused || node->seeds[i].refused;
    out_log(node, PARLEY_LOG_ERROR, "no seed %s within %.1f s%s",
            refused ? "has let this node in" : "was reached",
            (double)node->config.join_timeout_us / 1e6, refused ? "" : "; is one of them up?");
    out_finish(node, PARLEY_ENO_SEED);
}

uint64_t seeds_deadline(const struct parley_node *node)
{
    return earlier(join_deadline(node), node->next_seed_us);
}
