/* connection.c: links to peers, from dial to BYE.
 *
 *   DIALING -> PENDING -> LIVE -> CLOSING      outgoing: HELLO goes out once connected
 *              PENDING -> LIVE -> CLOSING      incoming: HELLO is checked, then answered
 *
 * What is said and checked while PENDING: hello.c. Peers are dialled on demand, seeds by seeds.c;
 * beyond connections_max the least recently used link ends with BYE. Two links between one pair:
 * where dials have crossed the one by the lower boot id stays; else the newer, because the dialler
 * knew the older to be gone.
 */
#include "core/link/connection.h"

#include <string.h>

#include "core/exchange/doubt.h"
#include "core/exchange/exchange.h"
#include "core/exchange/pairing.h"
#include "core/exchange/slot.h"
#include "core/link/hello.h"
#include "core/link/seeds.h"
#include "core/membership/membership.h"
#include "core/out.h"
#include "core/state.h"
#include "core/transfer/fetch.h"
#include "core/transfer/flow.h"

enum {
    YOUNG_US = 100000,
    NO_ROOM_US = 1000000, /* nobody is idle for so short a time */
    NO_ROOM_WAIT_US = 20000,
    RENEW_US = 1000000, /* the kernel's first try of a dial has failed */
    PENDING_PER_HOST_MAX = 4,
    NEWS_MAX = 10, /* lines in so long a time: */
    NEWS_US = 60000000,
    CHUNK_BYTES_FIRST = 64 * 1024
};

struct conn *connection_find(struct parley_node *node, uint32_t id)
{
    for (uint32_t i = 0; i < node->open_count; i++)
        if (node->open[i].id == id) return &node->conns[node->open[i].place];
    return NULL;
}

struct conn *connection_of(struct parley_node *node, int member)
{
    for (uint32_t i = 0; i < node->open_count; i++)
        if (node->open[i].member == member) return connection_at(node, i);
    return NULL;
}

/* ---- Sending --------------------------------------------------------------------------------- */

void connection_send(struct parley_node *node, struct conn *conn, enum wire_type type,
                     const void *message)
{
    uint8_t *bytes;
    if (conn->state == CONN_CLOSING || conn->state == CONN_DIALING) return;
    size_t size = out_encode(node, type, message, &bytes);
    connection_send_bytes(node, conn, bytes, size);
}

void connection_send_bytes(struct parley_node *node, struct conn *conn, const uint8_t *bytes,
                           size_t size)
{
    if (conn->state == CONN_CLOSING || conn->state == CONN_DIALING) return;
    struct parley_update *update = out_add(node, PARLEY_UPDATE_SEND);
    update->send.conn = conn->id;
    update->send.bytes = bytes;
    update->send.size = size;
    conn->queued += (uint32_t)size;
    if (conn->queued > node->config.queue_bytes_max) node->next_conn_us = node->now_us;
}

/* ---- Places, and who gives way --------------------------------------------------------------- */

/* Connections of the pool: all but newcomers before HELLO and those that are ending. */
static uint32_t pool_size(const struct parley_node *node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->open_count; i++) {
        const struct conn *conn = connection_at(node, i);
        bool newcomer = conn->state == CONN_PENDING && !conn->outgoing;
        count += conn->state != CONN_CLOSING && !newcomer;
    }
    return count;
}

static bool is_used(const struct parley_node *node, const struct conn *conn)
{
    for (int i = 0; i < ROLES; i++)
        if (node->exchange.slots[i].state != SLOT_IDLE && node->exchange.slots[i].conn == conn->id)
            return true;
    if (flow_uses(node, conn->id)) return true;
    for (uint32_t i = 0; i < node->strategy->inflows; i++)
        if (node->inflows[i].active && node->inflows[i].conn == conn->id) return true;
    if (node->fetch.serving && node->fetch.serve_conn == conn->id) return true;
    return node->fetch.state != FETCH_IDLE && node->fetch.conn == conn->id;
}

static struct conn *place(struct parley_node *node, uint32_t id)
{
    if (node->open_count == node->conns_count) return NULL;
    uint32_t i = 0;
    while (node->conns[i].state != CONN_FREE)
        i++;
    node->open[node->open_count++] = (struct open){id, i, NONE};
    return &node->conns[i];
}

static struct open *open_of(struct parley_node *node, const struct conn *conn)
{
    uint32_t i = 0;
    while (node->open[i].id != conn->id)
        i++;
    return &node->open[i];
}

static void vacate(struct parley_node *node, struct conn *conn)
{
    *open_of(node, conn) = node->open[--node->open_count];
    conn->state = CONN_FREE;
}

/* What the other end would lose: a mere link, news, or the table that it needs to join, or the
 * round of averaging that both are at. Only who joins is sure to ask for a table: were every young
 * link kept for it, each would cost an old one that relays, and both ends of that a whole table
 * from somebody else. */
static int loss_of(const struct parley_node *node, const struct conn *conn)
{
    bool young = node->now_us < conn->since_us + YOUNG_US;
    bool joins = record_of(node, (uint32_t)conn->member)->phase == PARLEY_PHASE_JOINING;
    if (conn->member == pairing_partner(node)) return 2;
    if (conn->asks ? !conn->synced : young && joins) return 2;
    return conn->asks;
}

static bool goes_before(const struct parley_node *node, const struct conn *a, const struct conn *b)
{
    int loss = loss_of(node, a), other = loss_of(node, b);
    return loss != other ? loss < other : a->used_us < b->used_us;
}

static void close_least_used(struct parley_node *node)
{
    struct conn *least = NULL;
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        if (conn->state != CONN_LIVE || conn->asked || is_used(node, conn)) continue;
        if (!least || goes_before(node, conn, least)) least = conn;
    }
    if (least) connection_goodbye(node, least, MESSAGE_BYE_IDLE);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* A deadline of one more connection: at the latest that of a HELLO from now. */
static void wait_for_hello(struct parley_node *node)
{
    node->next_conn_us = earlier(node->next_conn_us, node->now_us + node->config.hello_timeout_us);
}

static struct conn *conn_open(struct parley_node *node, uint32_t id, const char *address,
                              enum conn_state state)
{
    struct conn *conn = place(node, id);
    if (!conn) return NULL;
    *conn = (struct conn){.id = id,
                          .state = state,
                          .outgoing = state == CONN_DIALING,
                          .member = NONE,
                          .seed = NONE,
                          .since_us = node->now_us,
                          .heard_us = node->now_us,
                          .used_us = node->now_us,
                          .chunk_bytes = CHUNK_BYTES_FIRST};
    strncpy(conn->address, address, sizeof conn->address - 1);
    wait_for_hello(node);
    return conn;
}

struct conn *connection_dial(struct parley_node *node, const char *address)
{
    if (pool_size(node) >= node->config.connections_max) close_least_used(node);
    if (pool_size(node) >= node->config.connections_max) return NULL;
    struct conn *conn = conn_open(node, node->next_conn, address, CONN_DIALING);
    if (!conn) return NULL;
    node->next_conn += 2;
    struct parley_update *update = out_add(node, PARLEY_UPDATE_DIAL);
    update->dial.conn = conn->id;
    update->dial.address = out_text(node, address);
    return conn;
}

struct conn *connection_want(struct parley_node *node, int member)
{
    struct conn *conn = connection_of(node, member);
    if (conn) {
        conn->used_us = node->now_us;
        return conn;
    }
    for (uint32_t i = 0; i < node->open_count; i++) {
        conn = connection_at(node, i);
        if (conn->outgoing && conn->member == member &&
            (conn->state == CONN_DIALING || conn->state == CONN_PENDING))
            return NULL;
    }
    const struct member *m = member_of(node, member);
    if (m && node->now_us < m->redial_us) return NULL;
    conn = connection_dial(node, record_of(node, member)->address);
    if (conn) conn->member = member;
    return NULL;
}

void connection_renew(struct parley_node *node, int member)
{
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        if (conn->state == CONN_DIALING && conn->member == member &&
            node->now_us - conn->since_us > RENEW_US && out_room(node)) {
            conn->member = NONE; /* its end puts nothing off */
            connection_close(node, conn);
        }
    }
}

static uint32_t host_length(const char *address)
{
    const char *colon = strrchr(address, ':');
    return colon ? (uint32_t)(colon - address) : (uint32_t)strlen(address);
}

void connection_incoming(struct parley_node *node, uint32_t id, const char *address, uint64_t token)
{
    struct conn *oldest = NULL;
    uint32_t same_host = 0, pending = 0, length = host_length(address);
    bool loopback = strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0;
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        if (conn->state != CONN_PENDING || conn->outgoing) continue;
        pending++;
        same_host +=
            host_length(conn->address) == length && strncmp(conn->address, address, length) == 0;
        if (!oldest || conn->since_us < oldest->since_us) oldest = conn;
    }
    bool welcome = loopback || same_host < PENDING_PER_HOST_MAX;
    if (welcome && pending >= node->config.pending_max) connection_close(node, oldest);
    struct conn *conn = welcome ? conn_open(node, id, address, CONN_PENDING) : NULL;
    if (!conn)
        out_add(node, PARLEY_UPDATE_CLOSE)->close.conn = id;
    else
        conn->token = token;
}

void connection_connected(struct parley_node *node, uint32_t id)
{
    struct conn *conn = connection_find(node, id);
    if (!conn || conn->state != CONN_DIALING) return;
    conn->state = CONN_PENDING;
    conn->since_us = node->now_us;
    wait_for_hello(node);
    hello_send(node, conn, false);
}

/* Of two links to one member: true if `conn` is the one to keep. Dials that cross come within the
 * time of one; a link that was there before that is no more at the end that dials anew, as when it
 * has given this node up. */
static bool keeps(const struct parley_node *node, const struct conn *conn, const struct conn *old)
{
    bool crossed = node->now_us <= old->since_us + node->config.hello_timeout_us;
    if (conn->outgoing == old->outgoing || !crossed) return true;
    bool own_dial_wins = self_of(node)->boot < record_of(node, conn->member)->boot;
    return conn->outgoing == own_dial_wins;
}

void connection_live(struct parley_node *node, struct conn *conn)
{
    int member = conn->member;
    struct conn *old = connection_of(node, member);
    if (old && !keeps(node, conn, old)) {
        connection_goodbye(node, conn, MESSAGE_BYE_DUPLICATE);
        return;
    }
    conn->state = CONN_LIVE;
    conn->since_us = conn->used_us = node->now_us;
    if (old) open_of(node, old)->member = NONE;
    open_of(node, conn)->member = member;
    if (old) connection_goodbye(node, old, MESSAGE_BYE_DUPLICATE);
    node->contacted = true;
    membership_contact(node, conn);
    exchange_live(node, conn);
    doubt_live(node, conn);
    fetch_live(node, conn);
    if (node->strategy->live) node->strategy->live(node, conn);
    if (pool_size(node) > node->config.connections_max) close_least_used(node);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static void put_off(struct parley_node *node, int member, uint64_t wait_us)
{
    struct member *m = member_of(node, member);
    if (m) m->redial_us = node->now_us + wait_us;
}

/* Everything that used the connection learns of its end; the record stays until CLOSED. */
static void conn_down(struct parley_node *node, struct conn *conn)
{
    bool was_live = conn->state == CONN_LIVE;
    int member = was_live ? conn->member : NONE;
    /* A dial that did not come to a LIVE link is not tried again at once. */
    if (!was_live && conn->outgoing && conn->member != NONE)
        put_off(node, conn->member, node->config.redial_min_us);
    if (conn->seed != NONE) seeds_ended(node, conn->seed, was_live);
    conn->seed = NONE;
    conn->state = CONN_CLOSING;
    conn->into = NULL;
    if (member == NONE) return;
    open_of(node, conn)->member = NONE;
    flow_closed(node, conn->id);
    exchange_closed(node, conn->id);
    fetch_closed(node, conn->id);
    if (node->strategy->closed) node->strategy->closed(node, conn->id, member);
    node->gossip.due = true;
    if (!conn->goodbye && !connection_of(node, member)) membership_lost(node, member);
}

static void close_link(struct parley_node *node, struct conn *conn, bool at_once)
{
    if (conn->state == CONN_CLOSING || conn->state == CONN_FREE) return;
    struct parley_update *update = out_add(node, PARLEY_UPDATE_CLOSE);
    update->close.conn = conn->id;
    update->close.at_once = at_once;
    conn_down(node, conn);
}

void connection_close(struct parley_node *node, struct conn *conn)
{
    close_link(node, conn, false);
}

void connection_break(struct parley_node *node, struct conn *conn)
{
    if (conn->state == CONN_LIVE) put_off(node, conn->member, node->config.redial_min_us);
    connection_close(node, conn);
}

void connection_drop(struct parley_node *node, int member)
{
    struct conn *conn = connection_of(node, member);
    if (!conn) return;
    conn->goodbye = true;
    close_link(node, conn, true);
}

/* Both ends go on without this link. Who has said so much on it lives. */
static void part(struct parley_node *node, struct conn *conn)
{
    struct member *m = conn->state == CONN_LIVE ? member_of(node, conn->member) : NULL;
    if (m) m->alive_us = conn->heard_us;
    conn->goodbye = true;
    connection_close(node, conn);
}

void connection_goodbye(struct parley_node *node, struct conn *conn, enum message_bye reason)
{
    struct message_bye_frame bye = {reason};
    connection_send(node, conn, WIRE_BYE, &bye);
    part(node, conn);
}

void connection_bye(struct parley_node *node, struct conn *conn, struct message_bye_frame *bye)
{
    /* The other end has another link: this node will, too, or else is not to ask again at once. Nor
     * is it where the other end has no room: there may be some soon. */
    bool no_room = bye->reason == MESSAGE_BYE_IDLE && node->now_us < conn->since_us + NO_ROOM_US;
    if (conn->outgoing && conn->state == CONN_LIVE && bye->reason == MESSAGE_BYE_DUPLICATE)
        put_off(node, conn->member, node->config.redial_min_us);
    else if (conn->outgoing && conn->state == CONN_LIVE && no_room)
        put_off(node, conn->member, NO_ROOM_WAIT_US);
    bool came = conn->state == CONN_LIVE && !conn->outgoing;
    int member = came && bye->reason != MESSAGE_BYE_DUPLICATE ? conn->member : NONE;
    part(node, conn);
    /* Who came, and has said no word of itself, may be nobody: it is looked for. */
    if (member != NONE && record_of(node, (uint32_t)member)->clock == 0 &&
        !connection_of(node, member))
        membership_lost(node, member);
}

void connection_stalled(struct parley_node *node, uint32_t id)
{
    struct conn *conn = connection_find(node, id);
    if (!conn || conn->state != CONN_LIVE) return;
    out_log(node, PARLEY_LOG_INFO, "nothing gets through to %s; its connection is closed",
            record_of(node, (uint32_t)conn->member)->name);
    connection_goodbye(node, conn, MESSAGE_BYE_IDLE);
}

bool connection_is_news(struct parley_node *node, const struct conn *conn)
{
    if (conn->outgoing) return true;
    if (node->now_us >= node->news_us + NEWS_US) {
        node->news_us = node->now_us;
        node->news_count = 0;
    }
    if (node->news_count >= NEWS_MAX) return false;
    if (++node->news_count < NEWS_MAX) return true;
    node->news_us = node->now_us; /* so long from this line on */
    out_log(node, PARLEY_LOG_WARN,
            "connections are closed or refused again and again, that of %s now; no more of that "
            "for %d s",
            conn->address, NEWS_US / 1000000);
    return false;
}

void connection_closed(struct parley_node *node, const struct parley_event *event)
{
    struct conn *conn = connection_find(node, event->closed.conn);
    if (!conn) return;
    bool dialled = conn->state == CONN_DIALING || (conn->state == CONN_PENDING && conn->outgoing);
    int member = conn->member, seed = conn->seed;
    bool refused = event->closed.reason == PARLEY_CLOSED_REFUSED;
    bool hung_up = conn->state == CONN_PENDING;
    if (conn->state != CONN_CLOSING) conn_down(node, conn);
    vacate(node, conn);
    if (!dialled) return;
    if (seed != NONE) {
        const char *text = event->closed.text;
        if (!text || !*text) text = "the connection ended before HELLO";
        if (event->closed.reason == PARLEY_CLOSED_KEY)
            seeds_barred(node, seed, text);
        else
            seeds_log(node, seed, text);
        if (member == NONE) member = seeds_member(node, seed);
    }
    if (member != NONE) {
        put_off(node, member, node->config.redial_min_us);
        if (refused) membership_refused(node, member);
        if (hung_up) membership_hung_up(node, member);
        const char *text = event->closed.text;
        membership_unreached(node, member, text && *text ? text : "no link");
    }
}

/* ---- Timers ---------------------------------------------------------------------------------- */

/* When a connection must be closed if nothing happens to it: it does not come about (the kernel
 * would go on for two minutes, trying ever less often), says no HELLO, or does not read what we
 * say. */
static uint64_t conn_deadline(const struct parley_node *node, const struct conn *conn)
{
    if (conn->state == CONN_CLOSING) return NEVER;
    if (conn->queued > node->config.queue_bytes_max) return node->now_us;
    if (conn->state == CONN_LIVE || hello_is_checked(node, conn)) return NEVER;
    return conn->since_us + node->config.hello_timeout_us;
}

static void give_up(struct parley_node *node, struct conn *conn)
{
    bool dials = conn->state == CONN_DIALING, waits = dials || conn->state == CONN_PENDING;
    int seed = waits ? conn->seed : NONE, member = waits ? conn->member : NONE;
    const char *why = "it says nothing (no parley node, or large packets are lost on the way?)";
    if (dials) why = "no answer";
    if (member != NONE) membership_unreached(node, member, why);
    connection_close(node, conn);
    if (seed != NONE) seeds_log(node, seed, why);
}

void connection_timers(struct parley_node *node)
{
    if (node->now_us < node->next_conn_us) return;
    node->next_conn_us = NEVER;
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        uint64_t at_us = conn_deadline(node, conn);
        if (node->now_us >= at_us && out_room(node))
            give_up(node, conn);
        else
            node->next_conn_us = earlier(node->next_conn_us, at_us);
    }
}

uint64_t connection_deadline(const struct parley_node *node)
{
    return node->next_conn_us;
}
