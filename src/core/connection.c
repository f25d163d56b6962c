/* connection.c: links to peers, from dial to BYE.
 *
 *   DIALING -> PENDING -> LIVE -> CLOSING      outgoing: HELLO goes out once connected
 *              PENDING -> LIVE -> CLOSING      incoming: HELLO is checked, then answered
 *
 * All seeds are dialled, and again for the whole run: stopping at the first splits clusters. Peers
 * are dialled on demand; beyond connections_max the least recently used link ends with BYE. Two
 * links between one pair: the one dialled by the lower boot id stays; of two dialled by the same
 * node the newer, because the dialler knew the older to be gone.
 */
#include <stdio.h>
#include <string.h>

#include "core/state.h"

enum {
    NAME_CHECK_US = 2000000,
    YOUNG_US = 100000,
    RENEW_US = 1000000, /* the kernel's first try of a dial has failed */
    PENDING_PER_HOST_MAX = 4,
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
    if (conn->state == CONN_CLOSING || conn->state == CONN_DIALING) return;
    uint8_t *bytes;
    size_t size = out_encode(node, type, message, &bytes);
    struct parley_update *update = out_add(node, PARLEY_UPDATE_SEND);
    update->send.conn = conn->id;
    update->send.bytes = bytes;
    update->send.size = size;
    conn->queued += (uint32_t)size;
    if (conn->queued > node->config.queue_bytes_max) node->next_conn_us = node->now_us;
}

void connection_goodbye(struct parley_node *node, struct conn *conn, enum message_bye reason)
{
    struct message_bye_frame bye = {reason};
    connection_send(node, conn, WIRE_BYE, &bye);
    conn->goodbye = true;
    connection_close(node, conn);
}

/* ---- Making and ending ----------------------------------------------------------------------- */

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
    for (uint32_t i = 0; i < node->outflows_count; i++)
        if (node->outflows[i].active && node->outflows[i].conn == conn->id) return true;
    for (uint32_t i = 0; i < node->strategy->inflows; i++)
        if (node->inflows[i].active && node->inflows[i].conn == conn->id) return true;
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

/* What the other end would lose: a mere link, news, or the table that it needs to join. */
static int loss_of(const struct parley_node *node, const struct conn *conn)
{
    bool young = node->now_us < conn->since_us + YOUNG_US; /* it may be about to ask */
    if (conn->asks ? !conn->synced : young) return 2;
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

/* A deadline of one more connection: at the latest that of a HELLO from now. */
static void wait_for_hello(struct parley_node *node)
{
    uint64_t at_us = node->now_us + node->config.hello_timeout_us;
    if (at_us < node->next_conn_us) node->next_conn_us = at_us;
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

static struct conn *dial(struct parley_node *node, const char *address)
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
    conn = dial(node, record_of(node, member)->address);
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

static void put_off(struct parley_node *node, int member)
{
    struct member *m = member_of(node, member);
    if (m) m->redial_us = node->now_us + node->config.redial_min_us;
}

/* A dial that did not come to a LIVE link is not tried again at once. */
static void back_off(struct parley_node *node, struct conn *conn)
{
    if (!conn->outgoing) return;
    if (conn->member != NONE) put_off(node, conn->member);
    if (conn->seed == NONE) return;
    struct seed_dial *seed = &node->seeds[conn->seed];
    seed->tried = true;
    seed->next_us = node->now_us + seed->backoff_us;
    seed->backoff_us *= 2;
    if (seed->backoff_us > node->config.redial_max_us)
        seed->backoff_us = node->config.redial_max_us;
}

/* Everything that used the connection learns of its end; the record stays until CLOSED. */
static void conn_down(struct parley_node *node, struct conn *conn)
{
    int member = conn->state == CONN_LIVE ? conn->member : NONE;
    if (conn->state != CONN_LIVE) back_off(node, conn);
    conn->state = CONN_CLOSING;
    conn->into = NULL;
    if (node->name_check.active && node->name_check.conn == conn->id)
        node->name_check.active = false;
    if (conn->seed != NONE) {
        struct seed_dial *seed = &node->seeds[conn->seed];
        seed->dialing = false;
        conn->seed = NONE;
        if (seed->next_us < node->next_seed_us) node->next_seed_us = seed->next_us;
    }
    if (member == NONE) return;
    open_of(node, conn)->member = NONE;
    flow_closed(node, conn->id);
    exchange_closed(node, conn->id, member);
    fetch_closed(node, conn->id, member);
    if (node->strategy->closed) node->strategy->closed(node, conn->id, member);
    node->gossip.due = true;
    if (!conn->goodbye && !connection_of(node, member)) membership_lost(node, member);
}

void connection_close(struct parley_node *node, struct conn *conn)
{
    if (conn->state == CONN_CLOSING || conn->state == CONN_FREE) return;
    out_add(node, PARLEY_UPDATE_CLOSE)->close.conn = conn->id;
    conn_down(node, conn);
}

void connection_stalled(struct parley_node *node, uint32_t id)
{
    struct conn *conn = connection_find(node, id);
    if (!conn || conn->state != CONN_LIVE) return;
    out_log(node, PARLEY_LOG_INFO, "nothing gets through to %s; its connection is closed",
            record_of(node, (uint32_t)conn->member)->name);
    connection_goodbye(node, conn, MESSAGE_BYE_IDLE);
}

static void log_seed(struct parley_node *node, const struct seed_dial *seed, const char *what)
{
    out_log(node, PARLEY_LOG_WARN, "seed %s: %s; next try in %.1f s", seed->address, what,
            (double)(seed->next_us - node->now_us) / 1e6);
}

void connection_closed(struct parley_node *node, const struct parley_event *event)
{
    struct conn *conn = connection_find(node, event->closed.conn);
    if (!conn) return;
    bool dialled = conn->state == CONN_DIALING || (conn->state == CONN_PENDING && conn->outgoing);
    int member = conn->member, seed = conn->seed;
    bool refused = event->closed.reason == PARLEY_CLOSED_REFUSED;
    if (conn->state != CONN_CLOSING) conn_down(node, conn);
    vacate(node, conn);
    if (!dialled) return;
    if (seed != NONE) {
        struct seed_dial *s = &node->seeds[seed];
        log_seed(node, s,
                 event->closed.text && *event->closed.text ? event->closed.text
                                                           : "the connection ended before HELLO");
        if (s->boot && member == NONE) member = roster_find(node->roster, s->boot);
    }
    if (member != NONE) {
        put_off(node, member);
        if (refused) membership_refused(node, member);
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
    if (pending >= node->config.pending_max) connection_close(node, oldest);
    struct conn *conn = !loopback && same_host >= PENDING_PER_HOST_MAX
                            ? NULL
                            : conn_open(node, id, address, CONN_PENDING);
    if (!conn)
        out_add(node, PARLEY_UPDATE_CLOSE)->close.conn = id;
    else
        conn->token = token;
}

/* ---- HELLO ----------------------------------------------------------------------------------- */

void connection_connected(struct parley_node *node, uint32_t id)
{
    struct conn *conn = connection_find(node, id);
    if (!conn || conn->state != CONN_DIALING) return;
    conn->state = CONN_PENDING;
    conn->since_us = node->now_us;
    wait_for_hello(node);
    hello_send(node, conn, false);
}

static void refuse(struct parley_node *node, struct conn *conn, int error, const char *text)
{
    struct message_reject reject = {.code = (uint32_t)-error};
    snprintf(reject.text, sizeof reject.text, "%s", text);
    connection_send(node, conn, WIRE_REJECT, &reject);
    conn->goodbye = true;
    connection_close(node, conn);
}

/* A node that dials to join and meets nobody of its kind ends; one that is in goes on, and so does
 * one that a stranger dials. */
static void refused(struct parley_node *node, struct conn *conn, int error, const char *text)
{
    bool ends = conn->outgoing && phase_of(node) == PARLEY_PHASE_JOINING && live_of(node) == 1;
    out_log(node, ends ? PARLEY_LOG_ERROR : PARLEY_LOG_WARN, "%s: %s", conn->address, text);
    if (ends && (error == PARLEY_EMISMATCH || error == PARLEY_ENAME_TAKEN)) out_finish(node, error);
}

/* Of two links to one member: true if `conn` is the one to keep. */
static bool keeps(const struct parley_node *node, const struct conn *conn, const struct conn *old)
{
    if (conn->outgoing == old->outgoing) return true;
    bool own_dial_wins = self_of(node)->boot < record_of(node, conn->member)->boot;
    return conn->outgoing == own_dial_wins;
}

static void conn_live(struct parley_node *node, struct conn *conn,
                      const struct message_hello *hello)
{
    struct record record = {.boot = hello->boot, .state = PARLEY_MEMBER_ALIVE};
    memcpy(record.name, hello->name, sizeof record.name);
    memcpy(record.address, hello->address, sizeof record.address);
    int member = membership_merge(node, &record, NONE);
    if (member == NONE) {
        refuse(node, conn, PARLEY_ELIMIT,
               node->roster->shared ? "it is not on the list" : "the table of members is full");
        return;
    }
    conn->member = member;
    if (conn->seed != NONE) {
        struct seed_dial *seed = &node->seeds[conn->seed];
        seed->boot = hello->boot;
        seed->backoff_us = node->config.redial_min_us;
        seed->next_us = node->now_us + node->config.redial_min_us;
    }
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
    hello_streams(node, conn, hello);
    membership_contact(node, conn);
    exchange_live(node, conn);
    doubt_live(node, conn);
    fetch_live(node, conn);
    if (node->strategy->live) node->strategy->live(node, conn);
    if (pool_size(node) > node->config.connections_max) close_least_used(node);
}

/* The owner of a name is asked whether it lives before a newcomer may have the name. */
static void name_check_begin(struct parley_node *node, struct conn *conn, int member,
                             const struct message_hello *hello)
{
    struct name_check *check = &node->name_check;
    if (check->active) {
        connection_close(node, conn); /* one at a time; it will dial again */
        return;
    }
    *check = (struct name_check){.conn = conn->id,
                                 .member = member,
                                 .until_us = node->now_us + NAME_CHECK_US,
                                 .sequence = ++node->probe_sequence,
                                 .active = true,
                                 .hello = *hello};
    membership_forgive(node, member);
    connection_want(node, member);
}

static void admit(struct parley_node *node, struct conn *conn, struct message_hello *hello)
{
    if (!conn->outgoing) hello_send(node, conn, true);
    conn_live(node, conn, hello);
}

static void name_check_timers(struct parley_node *node)
{
    struct name_check *check = &node->name_check;
    if (!check->active) return;
    struct conn *conn = connection_find(node, check->conn);
    const struct record *owner = record_of(node, (uint32_t)check->member);
    struct conn *link = connection_of(node, check->member);
    bool gone = member_of(node, check->member)->refused ||
                !membership_is_live(node, check->member) || node->now_us >= check->until_us;
    /* Only an answer tells: other bytes may have been under way when it died. */
    if (link && check->pinged != link->id) {
        struct message_probe ping = {check->sequence, owner->boot};
        connection_send(node, link, WIRE_PING, &ping);
        check->pinged = link->id;
    }
    if (!conn || conn->state != CONN_PENDING || (!gone && !check->answered)) {
        if (!conn || conn->state != CONN_PENDING) check->active = false;
        return;
    }
    check->active = false;
    if (check->answered) {
        char text[MESSAGE_TEXT_SIZE];
        snprintf(text, sizeof text,
                 "the name %s is taken by the live node at %s; choose another "
                 "with --name",
                 owner->name, owner->address);
        refuse(node, conn, PARLEY_ENAME_TAKEN, text);
        return;
    }
    membership_replaced(node, check->member);
    admit(node, conn, &check->hello);
}

void connection_hello(struct parley_node *node, struct conn *conn, struct message_hello *hello)
{
    const struct record *self = self_of(node);
    if (conn->state != CONN_PENDING || hello->boot == 0 || !*hello->name || !*hello->address) {
        connection_close(node, conn);
        return;
    }
    if (hello->boot == self->boot) { /* a seed that is this node itself */
        if (conn->outgoing && conn->seed != NONE) node->seeds[conn->seed].self = true;
        if (conn->outgoing)
            connection_close(node, conn);
        else
            hello_send(node, conn, true);
        return;
    }
    char text[MESSAGE_TEXT_SIZE];
    if (hello_differs(node, hello, text, sizeof text)) {
        refuse(node, conn, PARLEY_EMISMATCH, text);
        refused(node, conn, PARLEY_EMISMATCH, text);
        return;
    }
    if (conn->outgoing && conn->member != NONE &&
        record_of(node, conn->member)->boot != hello->boot) {
        /* We dialled one boot and another answers: the first is gone. */
        membership_replaced(node, conn->member);
        conn->member = NONE;
    }
    if (strcmp(hello->name, self->name) == 0) {
        snprintf(text, sizeof text,
                 "the name %s is taken by the live node at %s; choose another "
                 "with --name",
                 self->name, self->address);
        refuse(node, conn, PARLEY_ENAME_TAKEN, text);
        return;
    }
    int owner = node->members ? roster_namesake(node->roster, hello->name, hello->boot) : NONE;
    if (owner != NONE)
        name_check_begin(node, conn, owner, hello);
    else
        admit(node, conn, hello);
}

void connection_reject(struct parley_node *node, struct conn *conn, struct message_reject *reject)
{
    int error = reject->code >= 1 && reject->code <= 15 ? -(int)reject->code : PARLEY_EFAIL;
    conn->goodbye = true;
    connection_close(node, conn);
    refused(node, conn, error, reject->text);
}

void connection_foreign(struct parley_node *node, struct conn *conn, uint8_t version)
{
    char text[MESSAGE_TEXT_SIZE];
    snprintf(text, sizeof text, "the protocol has version %u there and %u at %s", version,
             WIRE_VERSION, self_of(node)->name);
    refused(node, conn, PARLEY_EMISMATCH, text);
    /* It can't read a reason, but any frame tells it of our version. */
    refuse(node, conn, PARLEY_EMISMATCH, text);
}

void connection_bye(struct parley_node *node, struct conn *conn, struct message_bye_frame *bye)
{
    conn->goodbye = true;
    connection_close(node, conn);
}

/* ---- Seeds and timers ------------------------------------------------------------------------ */

bool connection_alone(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->seeds_count; i++)
        if (!node->seeds[i].self) return false;
    return true;
}

bool connection_met_seeds(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->seeds_count && !node->roster->shared; i++) {
        const struct seed_dial *seed = &node->seeds[i];
        if (!seed->self && !seed->tried && seed->boot == 0) return false;
    }
    return true;
}

void connection_hurry(struct parley_node *node)
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

void connection_start(struct parley_node *node)
{
    connection_hurry(node);
    node->deadline_us = node->now_us;
    connection_timers(node);
}

void connection_seeds(struct parley_node *node, const char *const *seeds, uint32_t count)
{
    if (node->roster->shared) return;
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t j = 0; j < node->seeds_count; j++)
            known = known || strcmp(node->seeds[j].address, seeds[i]) == 0;
        if (known || node->seeds_count == PARLEY_SEEDS_MAX ||
            strlen(seeds[i]) >= PARLEY_ADDRESS_SIZE)
            continue;
        struct seed_dial *seed = &node->seeds[node->seeds_count++];
        *seed =
            (struct seed_dial){.backoff_us = node->config.redial_min_us, .next_us = node->now_us};
        memcpy(seed->address, seeds[i], strlen(seeds[i]) + 1);
        node->next_seed_us = node->now_us;
    }
}

static void seeds_timers(struct parley_node *node)
{
    if (node->now_us < node->next_seed_us) return;
    node->next_seed_us = NEVER;
    for (uint32_t i = 0; i < node->seeds_count; i++) {
        struct seed_dial *seed = &node->seeds[i];
        if (seed->self || seed->dialing || node->leaving) continue;
        if (node->now_us >= seed->next_us) {
            int member = seed->boot ? roster_find(node->roster, seed->boot) : NONE;
            if (member != NONE && membership_is_live(node, member)) {
                seed->next_us = node->now_us + 10 * node->config.redial_min_us;
            } else {
                struct conn *conn = out_room(node) ? dial(node, seed->address) : NULL;
                seed->next_us = node->now_us + node->config.redial_min_us;
                if (conn) {
                    conn->seed = (int)i;
                    seed->dialing = true;
                    continue;
                }
            }
        }
        if (seed->next_us < node->next_seed_us) node->next_seed_us = seed->next_us;
    }
}

static uint64_t join_deadline(const struct parley_node *node)
{
    bool waits = phase_of(node) == PARLEY_PHASE_JOINING && !node->contacted &&
                 node->config.join_timeout_us != NEVER && !connection_alone(node);
    return waits ? node->start_us + node->config.join_timeout_us : NEVER;
}

/* When a connection must be closed if nothing happens to it: it does not come about (the kernel
 * would go on for two minutes, trying ever less often), says no HELLO, or does not read what we
 * say. */
static uint64_t conn_deadline(const struct parley_node *node, const struct conn *conn)
{
    if (conn->state == CONN_CLOSING) return NEVER;
    if (conn->queued > node->config.queue_bytes_max) return node->now_us;
    bool is_checked = node->name_check.active && node->name_check.conn == conn->id;
    if (conn->state == CONN_LIVE || is_checked) return NEVER;
    return conn->since_us + node->config.hello_timeout_us;
}

static void give_up(struct parley_node *node, struct conn *conn)
{
    int seed = conn->state == CONN_DIALING ? conn->seed : NONE;
    connection_close(node, conn);
    if (seed != NONE) log_seed(node, &node->seeds[seed], "no answer");
}

static void conn_timers(struct parley_node *node)
{
    if (node->now_us < node->next_conn_us) return;
    node->next_conn_us = NEVER;
    for (uint32_t i = 0; i < node->open_count; i++) {
        struct conn *conn = connection_at(node, i);
        uint64_t at_us = conn_deadline(node, conn);
        if (node->now_us >= at_us && out_room(node))
            give_up(node, conn);
        else if (at_us < node->next_conn_us)
            node->next_conn_us = at_us;
    }
}

void connection_timers(struct parley_node *node)
{
    seeds_timers(node);
    name_check_timers(node);
    conn_timers(node);
    if (join_deadline(node) <= node->now_us) {
        out_log(node, PARLEY_LOG_ERROR, "no seed was reached within %.1f s; is one of them up?",
                (double)node->config.join_timeout_us / 1e6);
        out_finish(node, PARLEY_ENO_SEED);
    }
}

uint64_t connection_deadline(const struct parley_node *node)
{
    uint64_t at = node->next_seed_us < node->next_conn_us ? node->next_seed_us : node->next_conn_us;
    if (node->name_check.active && node->now_us + 20000 < at) at = node->now_us + 20000;
    uint64_t join_at = join_deadline(node);
    return join_at < at ? join_at : at;
}
