/* view.c: looking at a node from outside. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/state.h"

const char *parley_member_state_name(enum parley_member_state state)
{
    static const char *const names[] = {"alive", "suspect", "dead", "left"};
    return (unsigned)state < 4 ? names[state] : "?";
}

const char *parley_phase_name(enum parley_phase phase)
{
    static const char *const names[] = {"joining", "train",  "stop", "settle", "proposed",
                                        "held",    "locked", "done", "late",   "left"};
    return (unsigned)phase < 10 ? names[phase] : "?";
}

const char *parley_stop_name(enum parley_stop cause)
{
    static const char *const names[] = {"none", "budget", "target", "deadline", "operator"};
    return (unsigned)cause < 5 ? names[cause] : "?";
}

void parley_node_view(const struct parley_node *node, struct parley_view *view)
{
    const struct record *self = &node->members[0].r;
    const struct agreement *agreement = &node->agreement;
    *view = (struct parley_view){
        .phase = (enum parley_phase)self->phase,
        .stop = (enum parley_stop)self->stop,
        .live = node->live,
        .known = agreement->known ? agreement->known : membership_known(node),
        .version = node->training.version,
        .samples_cluster = training_samples(node),
        .progress = training_progress(node),
        .drift = node->drift.value,
        .drift_us = node->drift.measured_us + node->skew_us,
        .ledger = node->ledger,
        .generation = self->generation,
        .held = agreement->held,
        .drift_before = agreement->drift_before,
        .candidate = agreement->buffer,
        .in_memory_only = agreement->failed_write,
    };
    memcpy(view->digest, self->digest, sizeof view->digest);
    view->ledger.in_doubt = 0;
    for (int i = 0; i < DOUBTS_MAX; i++)
        view->ledger.in_doubt += node->exchange.doubts[i].active;
}

uint32_t parley_node_members(const struct parley_node *node)
{
    return node->members_count;
}

void parley_node_member(const struct parley_node *node, uint32_t index,
                        struct parley_member *member)
{
    assert(index < node->members_count);
    const struct member *m = &node->members[index];
    *member = (struct parley_member){
        .name = m->r.name,
        .address = m->r.address,
        .boot = m->r.boot,
        .state = (enum parley_member_state)m->r.state,
        .phase = (enum parley_phase)m->r.phase,
        .version = m->r.version,
        .samples = m->r.samples,
        .distance = m->r.measured ? sqrt(m->r.distance_sq) : -1,
        .applied = m->applied,
        .mass = m->mass,
        .mass_abs = m->mass_abs,
    };
}

void parley_node_check(const struct parley_node *node)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < node->members_count; i++) {
        const struct member *m = &node->members[i];
        live += m->r.state == PARLEY_MEMBER_ALIVE || m->r.state == PARLEY_MEMBER_SUSPECT;
        assert(membership_find(node, m->r.boot) == (int)i);
        if (m->link != NONE) {
            const struct conn *conn = &node->conns[m->link];
            assert(conn->state == CONN_LIVE && conn->member == (int)i);
        }
    }
    assert(live == node->live);
    uint32_t buffers = parley_config_buffers(&node->config);
    bool used[16] = {false};
    for (int role = 0; role < ROLES; role++) {
        const struct slot *slot = &node->exchange.slots[role];
        uint32_t own[2 + PARLEY_VECTORS_MAX] = {slot->own, slot->theirs};
        uint32_t count = 2;
        for (uint32_t v = 2; v < node->config.vectors; v++)
            own[count++] = slot->spare[v];
        for (uint32_t i = 0; i < count; i++) {
            assert(own[i] < buffers && !used[own[i]]); /* no buffer has two owners */
            used[own[i]] = true;
        }
        if (slot->state == SLOT_IDLE) assert(slot->pending == 0 && !slot->in.active);
    }
    for (int i = 0; i < DOUBTS_MAX; i++) {
        const struct doubt *doubt = &node->exchange.doubts[i];
        assert(doubt->buffer < buffers && !used[doubt->buffer]);
        used[doubt->buffer] = true;
    }
}
