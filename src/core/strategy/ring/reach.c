/* reach.c: links with the members, and two that don't reach each other. */
#include "core/link/redial.h"
#include "core/membership/probe.h"
#include "core/strategy/ring/ring_state.h"

/* ---- Links ----------------------------------------------------------------------------------- */

/* A peer that is gone need not get what it was being sent, and its buffer is wanted. */
void ring_drop_dead_links(struct parley_node *node)
{
    for (uint32_t i = 0; i < node->outflows_count; i++) {
        const struct outflow *out = &node->outflows[i];
        if (!out->active || out->slot != FLOW_STRATEGY) continue;
        struct conn *conn = connection_find(node, out->conn);
        if (conn && conn->member != NONE && !membership_is_live(node, conn->member))
            connection_close(node, conn);
    }
}

/* Those to the left: the others dial this node. */
void ring_dial_peers(struct parley_node *node)
{
    struct ring *ring = ring_of(node);
    ring->unlinked = false;
    for (uint32_t k = 0; k < ring->stages / 2; k++)
        if (!connection_want(node, ring->peers[k])) ring->unlinked = true;
}

/* ---- Two that don't reach each other --------------------------------------------------------- */

/* Of the members before this one in the line. Who stands aside would need any of them. */
static int out_of_reach(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    const uint32_t *line = node->roster->line;
    for (uint32_t i = 0; (int)line[i] != node->self; i++) {
        bool needed = ring_is_aside(node) || ring_is_among(ring->peers, ring->stages, (int)line[i]);
        if (needed && ring_is_member(node, line[i]) && membership_is_unreached(node, (int)line[i]))
            return (int)line[i];
    }
    return NONE;
}

/* The left one, as long as that is one. */
static int member_in_reach(struct parley_node *node)
{
    int left = ring_of(node)->left;
    if (left != NONE && ring_is_member(node, (uint32_t)left) && connection_of(node, left))
        return left;
    for (uint32_t i = 0; i < node->open_count; i++) {
        int member = node->open[i].member;
        if (member != NONE && ring_is_member(node, (uint32_t)member)) return member;
    }
    return NONE;
}

/* What it has in hand goes into no sum. */
static void stand_aside(struct parley_node *node, int lost)
{
    struct ring *ring = ring_of(node);
    int left = member_in_reach(node);
    if (left == NONE) return;
    if (!ring_is_aside(node)) {
        out_log(node, PARLEY_LOG_WARN,
                "stands aside until it reaches %s: takes the sums of the others' rounds from %s, "
                "and adds nothing to them",
                record_of(node, (uint32_t)lost)->name, record_of(node, (uint32_t)left)->name);
        ring->made = false;
        ring_parts_abandon(node);
        strategy_stand_aside(node, true);
    }
    ring->left = left;
}

/* Nothing may have been said over a link since it died. */
void ring_mind_links(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    bool waits = ring->stage == RING_RESTING || ring->stage == RING_PULLING;
    bool tries = ring->made && ring_tries(ring);
    if (phase_of(node) != PARLEY_PHASE_TRAIN || !waits || ring->left == NONE) return;
    if (!tries) probe_awaited(node, ring->left);
    for (uint32_t stage = 0; tries && stage < ring->stages; stage++)
        if (ring_lacks(node) & ring_bit(stage)) probe_awaited(node, ring->peers[stage]);
}

/* A round of two that don't reach each other would wait for their link for ever. */
void ring_mind_reach(struct parley_node *node)
{
    const struct ring *ring = ring_of(node);
    /* Perhaps for a first word of who is on its left, or for the model of one. */
    bool waits = ring->stage == RING_RESTING || ring->stage == RING_FOLLOWING;
    if (phase_of(node) != PARLEY_PHASE_TRAIN || !(waits || ring_is_aside(node))) return;
    int lost = out_of_reach(node);
    if (lost != NONE) {
        redial_unreached(node, lost);
        stand_aside(node, lost);
    } else if (ring_is_aside(node)) {
        out_log(node, PARLEY_LOG_INFO, "takes part in the rounds again");
        strategy_stand_aside(node, false);
    }
}
