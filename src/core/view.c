/* view.c: looking at a node from outside. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/agreement/agreement.h"
#include "core/exchange/doubt.h"
#include "core/exchange/slot.h"
#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/state.h"
#include "core/training/training.h"

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

/* Who came when training had ended has not ended it: the others say why it did. */
static enum parley_stop stop_of(const struct parley_node *node)
{
    uint32_t stop = self_of(node)->stop;
    bool ended = phase_of(node) > PARLEY_PHASE_TRAIN;
    for (uint32_t i = 0; ended && stop == PARLEY_STOP_NONE && i < node->roster->count; i++)
        stop = record_of(node, i)->stop;
    return (enum parley_stop)stop;
}

/* Who is done is none of the living: what they have made on average says nothing then. */
static double progress_of(const struct parley_node *node)
{
    const struct training *t = &node->training;
    return phase_of(node) <= PARLEY_PHASE_TRAIN ? training_progress(node)
                                                : fmax(t->progress, t->reached);
}

static double part_here(const struct inflow *in)
{
    double each = (double)(in->end - in->from), last = (double)(in->offset - in->from);
    return in->active ? (in->vector + last / each) / in->vectors : -1;
}

static double incoming(const struct parley_node *node)
{
    double most = part_here(&node->fetch.in);
    for (int role = 0; role < ROLES; role++)
        most = fmax(most, part_here(&node->exchange.slots[role].in));
    return most;
}

void parley_node_view(const struct parley_node *node, struct parley_view *view)
{
    const struct record *self = self_of(node);
    const struct agreement *agreement = &node->agreement;
    *view = (struct parley_view){
        .phase = (enum parley_phase)self->phase,
        .stop = stop_of(node),
        .live = live_of(node),
        .known = agreement->known ? agreement->known : roster_known(node->roster),
        .version = node->training.version,
        .steps = self->version,
        .samples_cluster = training_reckoned(node),
        .trained_us = node->training.started ? training_spent_us(node) : 0,
        .weight = node->training.weight,
        .progress = progress_of(node),
        .drift = live_of(node) > 1 ? node->drift.value : -1,
        .drift_us = node->drift.measured_us + node->skew_us,
        .incoming = incoming(node),
        .ledger = node->ledger,
        .generation = self->generation,
        .held = agreement->held,
        .drift_before = agreement->drift_before,
        .candidate = agreement->buffer,
        .in_memory_only = agreement->failed_write,
        .locked = self->lock_generation > 0,
    };
    memcpy(view->digest, self->digest, sizeof view->digest);
    view->ledger.in_doubt = doubts_open(node);
}

uint64_t parley_node_turnover(const struct parley_node *node)
{
    return node->roster->turnover;
}

uint32_t parley_node_members(const struct parley_node *node)
{
    return node->roster->count;
}

void parley_node_member(const struct parley_node *node, uint32_t index,
                        struct parley_member *member)
{
    assert(index < node->roster->count);
    const struct record *r = record_of(node, index);
    const struct member *m = member_of(node, (int)index);
    *member = (struct parley_member){
        .name = r->name,
        .address = r->address,
        .boot = r->boot,
        .state = (enum parley_member_state)r->state,
        .phase = (enum parley_phase)r->phase,
        .version = r->version,
        .samples = r->samples,
        .place = r->place,
        .holds = agreement_holds(node, index),
        .applied = m ? m->applied : 0,
        .mass = m ? m->mass : 0,
        .mass_abs = m ? m->mass_abs : 0,
    };
}

uint32_t parley_node_live(const struct parley_node *node, const char **names)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *r = record_of(node, node->roster->line[i]);
        bool stands = count > 0 && strcmp(names[count - 1], r->name) == 0;
        if (record_is_live(r) && !stands) names[count++] = r->name;
    }
    return count;
}

void parley_node_check(const struct parley_node *node)
{
    uint32_t live = 0;
    uint64_t samples = node->roster->samples_forgotten + node->roster->samples_absent;
    for (uint32_t i = 0; i < node->roster->count; i++) {
        const struct record *m = record_of(node, i);
        live += record_is_live(m);
        samples += roster_samples(node->roster, (int)i);
        assert(roster_find(node->roster, m->boot) == (int)i);
    }
    assert(live == live_of(node) && samples == node->roster->samples);
    for (uint32_t i = 0; i < node->open_count; i++) {
        const struct conn *conn = connection_at(node, i);
        assert(conn->state != CONN_FREE && conn->id == node->open[i].id);
        if (node->open[i].member != NONE)
            assert(conn->state == CONN_LIVE && conn->member == node->open[i].member);
    }
    uint32_t buffers = parley_config_buffers(&node->config);
    bool used[16] = {false};
    for (int role = 0; role < ROLES; role++) {
        const struct slot *slot = &node->exchange.slots[role];
        uint32_t own[PARLEY_VECTORS_MAX], count = slot_copies(node, slot, own);
        for (uint32_t i = 0; i < count || i < 2; i++) {
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
