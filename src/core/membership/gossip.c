/* gossip.c: which member records go out on which links, and when.
 *
 *   - own record: news at once on all links, but for a new one whose other end has heard
 *   - news of others (state, phase): now and then, on the links that asked for it
 *   - a link that asks is sent the whole table first, page by page: that is anti-entropy and join
 *   - progress: as much as PROGRESS_BYTES a second allow on all links together, so that it costs as
 *     much however many nodes and links there are. The links take turns; each is told the own one,
 *     and one in each round, if it asks, a page of what others have made.
 *   - only near the end of the budget is more owed: all links are told at once of own samples that
 *     are many beside what is left. So what nobody has heard of yet stays a part of what is left.
 *
 * A node asks RELAYS of its links, so it hears of each change that often and no more, however many
 * nodes there are. The first are who it joined by, like all others; so it chooses again as it has
 * more links, and in an order of its own: else a few would tell everybody everything, and what is
 * told to others would go no further. With fewer than three the nodes would fall apart into groups
 * that hear nothing of each other; so half of the smallest pool of links are relays. Each record
 * goes out once a change and link; the roster's numbers order them.
 */
#include "core/membership/gossip.h"

#include <string.h>

#include "core/link/connection.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/training/training.h"

enum {
    RELAYS = 4,
    LINKS_LEAST = 3,
    CHOICES_APART = 3, /* times as many links as before */
    WANT_INTERVAL_US = 100000,
    NEWS_INTERVAL_US = 5000,    /* news of others; times 1 + n / 8, up to 64 nodes */
    PROGRESS_BYTES = 1200,      /* a second */
    TURN_BYTES = 40,            /* that a turn costs on top: where nothing is new, too */
    PROGRESS_DEBT_US = 3000000, /* near the end, what so much time brings may be spent before it */
    SPURT_INTERVAL_US = 20000,  /* between two times that all are told */
    UNTOLD_PART = 2,            /* of what is left of the budget: more is told at once */
    PAGE = MESSAGE_RECORDS_MAX - 1 /* and the own one */
};

/* Whose newest change is the first after `since`. That was of `at`, unless it has changed again:
 * mostly one page follows another. */
static int first_after(const struct parley_roster *roster, enum roster_list list, uint64_t since,
                       int at)
{
    const struct roster_place *places = roster->places;
    if (places[at].change[list] == since) return places[at].newer[list];
    int first = NONE;
    for (int i = roster->newest[list]; i != NONE && places[i].change[list] > since;
         i = places[i].older[list])
        first = i;
    return first;
}

/* Adds a page of what has changed since the one before, oldest change first. True if that was all.
 */
static bool add_others(const struct parley_node *node, struct conn *conn, enum roster_list list,
                       struct message_members *message)
{
    const struct roster_place *places = node->roster->places;
    uint32_t count = 0;
    int i = first_after(node->roster, list, conn->sent[list], conn->sent_of[list]);
    for (; i != NONE && count < PAGE; i = places[i].newer[list]) {
        /* A member need not hear what it said of itself; but what others say of it. */
        bool itself = i == conn->member && record_of(node, i)->state == PARLEY_MEMBER_ALIVE;
        if (i == node->self || itself) continue;
        message->records[message->count++] = *record_of(node, i);
        conn->sent[list] = places[i].change[list];
        conn->sent_of[list] = i;
        count++;
    }
    bool all = count < PAGE;
    if (all) conn->sent[list] = node->roster->change;
    return all;
}

/* What is due now on every link. */
struct due {
    bool own, news, any;
};

static void add_own(struct parley_node *node, struct conn *conn, bool progress,
                    struct message_members *message)
{
    const struct roster_place *self = &node->roster->places[node->self];
    bool due = self->change[ROSTER_NEWS] > conn->own_sent ||
               (progress && self->change[ROSTER_ANY] > conn->own_sent);
    if (!due) return;
    message->records[message->count++] = *self_of(node);
    conn->own_sent = self->change[ROSTER_ANY];
}

/* Of one step: the message that went out before, and its frame. */
struct told {
    struct message_members message;
    uint8_t *bytes; /* in the arena; NULL: none yet */
    size_t size;
};

static bool is_same(const struct message_members *a, const struct message_members *b)
{
    return a->count == b->count && a->complete == b->complete && a->ask == b->ask &&
           memcmp(a->records, b->records, a->count * sizeof *a->records) == 0;
}

/* Most links are told just what the one before them was: that is encoded once. */
static void tell(struct parley_node *node, struct conn *conn, const struct message_members *message,
                 struct told *told)
{
    if (!told->bytes || !is_same(message, &told->message)) {
        told->message.count = message->count;
        told->message.complete = message->complete;
        told->message.ask = message->ask;
        memcpy(told->message.records, message->records, message->count * sizeof *message->records);
        told->size = out_encode(node, WIRE_MEMBERS, message, &told->bytes);
    }
    connection_send_bytes(node, conn, told->bytes, told->size);
}

static void pump(struct parley_node *node, struct conn *conn, struct due due, struct told *told)
{
    struct message_members message;
    message.count = message.complete = message.ask = 0;
    add_own(node, conn, due.own, &message);
    if (conn->wanted != conn->asked)
        message.ask = conn->wanted ? MESSAGE_ASKS : MESSAGE_ASKS_NO_MORE;
    conn->asked = conn->wanted;
    bool all = true;
    if (conn->asks && (!conn->synced || due.any)) {
        all = add_others(node, conn, ROSTER_ANY, &message);
        message.complete = all && !conn->synced;
        conn->synced = conn->synced || all;
        if (all) conn->sent[ROSTER_NEWS] = conn->sent[ROSTER_ANY];
        all = conn->synced; /* of progress a page will do */
    } else if (conn->asks && due.news && node->roster->news > conn->sent[ROSTER_NEWS]) {
        all = add_others(node, conn, ROSTER_NEWS, &message);
    }
    if (!all) node->gossip.due = node->more = true; /* a frame full: the rest in the next step */
    if (message.count == 0 && !message.complete && !message.ask) return;
    uint32_t queued = conn->queued;
    tell(node, conn, &message, told);
    if (due.own) charge(node, &node->gossip.paid_us, conn->queued - queued, PROGRESS_BYTES);
}

static bool is_stranger(struct parley_node *node, int member)
{
    return !connection_of(node, member);
}

/* Who is suspected may be the other side of a cut, with all that it would tell. */
static bool may_relay(const struct parley_node *node, const struct conn *conn)
{
    return record_of(node, (uint32_t)conn->member)->state == PARLEY_MEMBER_ALIVE;
}

/* The link that is to be asked next: each node has another order of the others. */
static struct conn *next_relay(struct parley_node *node)
{
    struct conn *least = NULL;
    uint64_t least_rank = 0;
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        if (node->open[i].member == NONE || conn->wanted || !may_relay(node, conn)) continue;
        uint64_t boot = record_of(node, (uint32_t)conn->member)->boot;
        uint64_t rank = rng_mix(self_of(node)->boot ^ rng_mix(boot));
        if (least && rank >= least_rank) continue;
        least = conn;
        least_rank = rank;
    }
    return least;
}

/* Whom this node asks is open again. */
static void choose_anew(struct parley_node *node, uint32_t links)
{
    node->gossip.choose_at = CHOICES_APART * links;
    for (uint32_t i = 0; i < node->open_count; i++)
        if (connection_at(node, i)->asked) connection_at(node, i)->wanted = false;
}

/* Asks further links for news, as long as they are too few, and dials somebody where there are
 * hardly any: averaging makes links too, but not for who joins, or has few neighbours. */
static void want(struct parley_node *node)
{
    uint32_t most = node->config.connections_max / 2, wanted = 0, links = 0;
    if (most > RELAYS) most = RELAYS;
    for (uint32_t i = 0; i < node->open_count; i++)
        links += node->open[i].member != NONE;
    if (links >= 2 * RELAYS && links >= node->gossip.choose_at) choose_anew(node, links);
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        if (node->open[i].member == NONE) continue;
        conn->wanted = conn->wanted && may_relay(node, conn);
        wanted += conn->wanted;
    }
    for (struct conn *conn; wanted < most && (conn = next_relay(node)); wanted++)
        conn->wanted = true;
    if (links >= LINKS_LEAST || links + 1 >= live_of(node) || node->leaving ||
        node->now_us < node->gossip.want_us)
        return;
    int peer = membership_pick(node, is_stranger);
    if (peer != NONE) connection_want(node, peer);
    node->gossip.want_us = node->now_us + WANT_INTERVAL_US;
}

/* Whose turn it is to be told of progress: one of the links in each round gets that of others. */
static struct conn *next_in_turn(struct parley_node *node, bool *others)
{
    for (uint32_t i = 0; i < node->open_count; i++) {
        uint64_t turn = node->gossip.turn++;
        uint32_t at = (uint32_t)(turn % node->open_count);
        *others = turn / node->open_count % node->open_count == at;
        if (node->open[at].member != NONE) return connection_at(node, at);
    }
    return NULL;
}

/* Whether others, who count what they have heard of, would train for long on what they have not. */
static bool is_awaited(const struct parley_node *node)
{
    const struct gossip *gossip = &node->gossip;
    uint64_t budget = node->config.samples_budget, heard = node->roster->samples;
    if (!budget || phase_of(node) != PARLEY_PHASE_TRAIN || !training_counts_heard(node))
        return false;
    uint64_t untold = self_of(node)->samples - gossip->told, left = budget - heard;
    return untold > 0 && (heard >= budget || untold * live_of(node) * UNTOLD_PART >= left) &&
           node->now_us >= gossip->spurt_us && gossip->paid_us <= node->now_us + PROGRESS_DEBT_US;
}

static void schedule(struct parley_node *node, bool news)
{
    struct gossip *gossip = &node->gossip;
    uint64_t n = live_of(node);
    if (news && !gossip->due) { /* else some link has not got all of it yet */
        gossip->news_us = node->now_us + NEWS_INTERVAL_US * (1 + (n < 64 ? n : 64) / 8);
        gossip->news_sent = node->roster->news;
    }
    gossip->next_us = gossip->paid_us;
    if (gossip->spurt_us > node->now_us)
        gossip->next_us = earlier(gossip->next_us, gossip->spurt_us);
    if (node->roster->news > gossip->news_sent)
        gossip->next_us = earlier(gossip->next_us, gossip->news_us);
    if (gossip->want_us > node->now_us) gossip->next_us = earlier(gossip->next_us, gossip->want_us);
}

void gossip_pump(struct parley_node *node)
{
    struct gossip *gossip = &node->gossip;
    if (node->roster->shared) return;
    bool news = node->roster->news > gossip->news_sent && node->now_us >= gossip->news_us;
    bool spurt = is_awaited(node);
    if (!gossip->due && !news && !spurt && node->now_us < gossip->next_us) return;
    if (node->open_count == 0 && live_of(node) <= 1) { /* nobody to talk to yet */
        gossip->next_us = NEVER;
        return;
    }
    bool others = false, paid = node->now_us >= gossip->paid_us;
    struct conn *turn = paid ? next_in_turn(node, &others) : NULL;
    if (paid) charge(node, &gossip->paid_us, TURN_BYTES, PROGRESS_BYTES);
    gossip->due = false;
    want(node);
    struct told told;
    told.bytes = NULL;
    for (uint32_t i = 0; i < node->open_count; i++) {
        if (node->open[i].member == NONE) continue;
        if (!out_room(node)) {
            gossip->due = true;
            return;
        }
        struct conn *conn = connection_at(node, i);
        pump(node, conn, (struct due){spurt || conn == turn, news, others && conn == turn}, &told);
    }
    if (spurt) {
        gossip->told = self_of(node)->samples;
        gossip->spurt_us = node->now_us + SPURT_INTERVAL_US;
    }
    schedule(node, news);
}

void gossip_heard(struct parley_node *node, struct conn *conn, uint64_t clock)
{
    if (clock >= node->gossip.own_news)
        conn->own_sent = node->roster->places[node->self].change[ROSTER_NEWS];
}

void gossip_flush(struct parley_node *node, struct conn *conn)
{
    struct told told;
    told.bytes = NULL;
    do {
        node->gossip.due = false;
        if (!node->roster->shared) pump(node, conn, (struct due){.own = true, .news = true}, &told);
    } while (node->gossip.due && out_room(node));
}
