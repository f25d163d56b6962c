/* driver.c: the driver under a core of this test's own: two nodes in one process, over loopback.
 *
 * One node streams its vector to the other in chunks, two at a time, says BYE and closes.
 *   - the stream arrives whole, read to its place or copied there in turns, each chunk is DONE
 *     exactly once, and what was sent just before the close arrives before it
 *   - where the receiver closes in the middle, every chunk is still DONE once, before CLOSED
 *   - both are CLOSED once, and FINISHED wakes both trainers with its code
 *   - the caller's timer is not called any more once a step that it was first to see has FINISHED
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "check.h"
#include "core/wire/wire.h"
#include "kernels/digest.h"
#include "parley/parley.h"

enum { FLOATS = 3000000, CHUNK = PARLEY_CHUNK_BYTES_MAX, WINDOW = 2, OP_TAKE = 1, OP_HASH = 2 };
enum { TIMER_ROUNDS = 5 }; /* in nearly each of which the timer is first */
enum { OP_CHUNK = 100, CHUNKS = (FLOATS * 4 + CHUNK - 1) / CHUNK };

/* ---- A core: the sender has a seed, the receiver has none -------------------------------------
 */

struct parley_node {
    struct parley_config config;
    char seed[PARLEY_ADDRESS_SIZE];
    struct parley_updates *out;
    bool connected, taken, bye, closed;
    uint32_t conn, started, done, failed;
    bool chunk_done[CHUNKS];
    uint64_t received, left; /* bytes of the vector; of the chunk */
    uint8_t head[WIRE_CHUNK_HEAD_BYTES];
    uint8_t frame[WIRE_HEADER_BYTES];
    uint8_t digest[PARLEY_DIGEST_BYTES];
};

uint32_t parley_config_buffers(const struct parley_config *config)
{
    (void)config;
    return 6;
}

bool parley_strategy_splits(enum parley_strategy strategy)
{
    (void)strategy;
    return false;
}

/* core/strategy/strategy.h is for the real ones */
const char *strategy_name(uint32_t strategy);
uint32_t strategy_connections(const struct parley_config *config);

uint32_t strategy_connections(const struct parley_config *config)
{
    (void)config;
    return PARLEY_CONNECTIONS_MIN;
}

uint32_t strategy_nodes(const struct parley_config *config);

uint32_t strategy_nodes(const struct parley_config *config)
{
    return config->members_max;
}

const char *strategy_name(uint32_t strategy)
{
    (void)strategy;
    return "none";
}

static uint64_t cut_at; /* bytes after which the receiver closes; 0: never */

int parley_updates_init(struct parley_updates *updates)
{
    updates->list = calloc(16, sizeof *updates->list);
    return updates->list ? 0 : PARLEY_ENOMEM;
}

void parley_updates_close(struct parley_updates *updates)
{
    free(updates->list);
}

int parley_node_new(struct parley_node **node, const struct parley_config *config)
{
    *node = calloc(1, sizeof **node);
    if (!*node) return PARLEY_ENOMEM;
    (*node)->config = *config;
    if (config->seeds_count > 0) strcpy((*node)->seed, config->seeds[0]);
    return 0;
}

void parley_node_free(struct parley_node *node)
{
    free(node);
}

const char *parley_stop_name(enum parley_stop cause)
{
    (void)cause;
    return "none";
}

uint64_t parley_node_deadline(const struct parley_node *node)
{
    (void)node;
    return UINT64_MAX;
}

uint64_t parley_node_awaits_steps(const struct parley_node *node)
{
    (void)node;
    return UINT64_MAX; /* none: they are told when something else happens */
}

uint32_t parley_node_members(const struct parley_node *node)
{
    (void)node;
    return 1;
}

void parley_node_member(const struct parley_node *node, uint32_t index,
                        struct parley_member *member)
{
    (void)index;
    *member = (struct parley_member){.name = node->config.name, .state = PARLEY_MEMBER_ALIVE};
}

uint32_t parley_node_live(const struct parley_node *node, const char **names)
{
    names[0] = node->config.name;
    return 1;
}

double parley_pace_progress(const struct parley_pace *pace, uint64_t made)
{
    (void)made;
    return pace->progress;
}

void parley_node_view(const struct parley_node *node, struct parley_view *view)
{
    memset(view, 0, sizeof *view);
    memcpy(view->digest, node->digest, sizeof view->digest);
    view->held = node->done;
    view->known = node->failed;
}

static struct parley_update *add(struct parley_node *node, enum parley_update_type type)
{
    struct parley_update *update = &node->out->list[node->out->count++];
    memset(update, 0, sizeof *update);
    update->type = type;
    return update;
}

static void stream(struct parley_node *node)
{
    uint32_t ended = node->done + node->failed;
    /* One head at a time: the driver must have copied it by the next step. */
    if (node->started < CHUNKS && node->started - ended < WINDOW && !node->closed) {
        struct parley_update *update = add(node, PARLEY_UPDATE_SEND_CHUNK);
        uint64_t offset = (uint64_t)node->started * CHUNK;
        uint64_t rest = FLOATS * UINT64_C(4) - offset;
        update->chunk.op = OP_CHUNK + node->started++;
        update->chunk.conn = node->conn;
        update->chunk.head = node->head;
        update->chunk.head_size = sizeof node->head;
        update->chunk.offset = offset;
        update->chunk.size = rest < CHUNK ? rest : CHUNK;
        struct wire_chunk chunk = {.offset = offset};
        wire_chunk_write(node->head, &chunk, (uint32_t)update->chunk.size);
    }
    if (node->done < CHUNKS || node->bye) return;
    node->bye = true;
    wire_header_write(node->frame, WIRE_BYE, 0);
    struct parley_update *update = add(node, PARLEY_UPDATE_SEND);
    update->send.conn = node->conn;
    update->send.bytes = node->frame;
    update->send.size = sizeof node->frame;
    add(node, PARLEY_UPDATE_CLOSE)->close.conn = node->conn;
}

static void finish(struct parley_node *node, int error)
{
    add(node, PARLEY_UPDATE_FINISHED)->finished.error = error;
}

static void on_done(struct parley_node *node, const struct parley_event *event)
{
    if (event->done.op == OP_TAKE) {
        check(event->done.ok && event->done.finite, "the snapshot is taken and finite");
        node->taken = true;
    } else if (event->done.op == OP_HASH) {
        memcpy(node->digest, event->done.digest, sizeof node->digest);
        finish(node, 0);
    } else {
        bool *done = &node->chunk_done[event->done.op - OP_CHUNK];
        check(!*done, "a chunk is done once");
        check(!node->closed, "a chunk is done before its connection is closed");
        *done = true;
        if (event->done.ok)
            node->done++;
        else
            node->failed++;
    }
    if (node->connected && node->taken) stream(node);
}

/* Every second chunk may be read to its place. */
static bool is_awaited(const struct parley_node *node)
{
    return node->left > 0 && (node->received + node->left - 1) / CHUNK % 2 == 1;
}

size_t parley_node_awaits(struct parley_node *node, uint32_t conn, uint32_t *buffer,
                          uint64_t *offset)
{
    (void)conn;
    *buffer = 0;
    *offset = node->received;
    return is_awaited(node) ? node->left : 0;
}

size_t parley_node_awaits_aside(struct parley_node *node, uint32_t conn)
{
    (void)node;
    (void)conn;
    return 0;
}

uint32_t parley_node_streams(struct parley_node *node, uint32_t conn, uint64_t *token)
{
    (void)node;
    (void)conn;
    (void)token;
    return 0;
}

static size_t on_received(struct parley_node *node, const uint8_t *bytes, size_t size)
{
    if (node->left > 0) {
        /* So that something is left over. */
        if (size < node->left && !is_awaited(node)) size -= size % 4096;
        if (size == 0) return 0;
        struct parley_update *update = add(node, PARLEY_UPDATE_STORE);
        update->store.offset = node->received;
        update->store.bytes = bytes;
        update->store.size = size < node->left ? size : node->left;
        node->received += update->store.size;
        node->left -= update->store.size;
        if (cut_at > 0 && node->received >= cut_at)
            add(node, PARLEY_UPDATE_CLOSE)->close.conn = node->conn;
        return update->store.size;
    }
    struct wire_header header;
    if (size < WIRE_HEADER_BYTES) return 0;
    check(wire_header_read(bytes, &header) == 0, "frames follow one another");
    node->bye = header.type == WIRE_BYE;
    if (node->bye) return WIRE_HEADER_BYTES;
    if (size < WIRE_CHUNK_HEAD_BYTES) return 0;
    node->left = header.size - WIRE_CHUNK_BYTES;
    return WIRE_CHUNK_HEAD_BYTES;
}

static void on_closed(struct parley_node *node)
{
    check(!node->closed, "a connection is closed once");
    node->closed = true;
    if (node->seed[0] || cut_at > 0) {
        finish(node, cut_at > 0 ? PARLEY_ENO_AGREEMENT : 0);
        return;
    }
    check(node->bye, "what was sent before the close arrives before it");
    struct parley_update *update = add(node, PARLEY_UPDATE_HASH);
    update->vector.op = OP_HASH;
}

void parley_node_step(struct parley_node *node, const struct parley_event *event,
                      struct parley_updates *updates)
{
    struct parley_update *update;
    node->out = updates;
    updates->count = 0;
    updates->consumed = 0;
    switch (event->type) {
    case PARLEY_EVENT_START:
        if (!node->seed[0]) break;
        node->conn = 1;
        update = add(node, PARLEY_UPDATE_DIAL);
        update->dial.conn = 1;
        update->dial.address = node->seed;
        update = add(node, PARLEY_UPDATE_TAKE);
        update->vector.op = OP_TAKE;
        update->vector.vectors = 1;
        break;
    case PARLEY_EVENT_INCOMING:
        node->conn = event->incoming.conn;
        break;
    case PARLEY_EVENT_CONNECTED:
        node->connected = true;
        if (node->taken) stream(node);
        break;
    case PARLEY_EVENT_RECEIVED:
        updates->consumed = on_received(node, event->received.bytes, event->received.size);
        break;
    case PARLEY_EVENT_DONE:
        on_done(node, event);
        break;
    case PARLEY_EVENT_CLOSED:
        on_closed(node);
        break;
    case PARLEY_EVENT_STEPPED:
        finish(node, 0);
        break;
    default:
        break;
    }
}

/* ---- The test ---------------------------------------------------------------------------------
 */

static struct parley *open_node(const char *name, float *x, const char *seed)
{
    struct parley_options options;
    struct parley *p = NULL;
    char why[256];
    parley_options_defaults(&options);
    options.config.name = name;
    options.config.parameters = FLOATS;
    options.config.seeds = &seed;
    options.config.seeds_count = seed ? 1 : 0;
    options.vectors[0] = x;
    int code = parley_open(&p, &options, why, sizeof why);
    if (code) fprintf(stderr, "%s: %s\n", name, why);
    return p;
}

static void run(float *x, uint64_t cut)
{
    static char address[PARLEY_ADDRESS_SIZE];
    struct parley_turn turn;
    struct parley_result sent, got;
    int want = cut > 0 ? PARLEY_ENO_AGREEMENT : PARLEY_END;
    cut_at = cut;
    struct parley *receiver = open_node("receiver", x, NULL);
    if (!receiver) exit(1);
    strcpy(address, parley_listens(receiver));
    struct parley *sender = open_node("sender", x, address);
    if (!sender) exit(1);
    check(parley_boundary(sender, NULL, &turn) == want, "the sender ends");
    check(parley_boundary(receiver, NULL, &turn) == want, "the receiver ends");
    check(parley_boundary(receiver, NULL, &turn) == want, "the end stays the end");
    parley_result(sender, &sent);
    parley_result(receiver, &got);
    if (cut == 0) {
        uint8_t digest[PARLEY_DIGEST_BYTES];
        check(digest_model(x, FLOATS, NULL, 0, parley_config_of(sender)->run, digest) == 0 &&
                  memcmp(got.view.digest, digest, sizeof digest) == 0,
              "the vector arrives whole");
        check(sent.view.held == CHUNKS, "all chunks were sent");
        check(got.stats.bytes_received == sent.stats.bytes_sent, "what was sent came in");
        check(got.stats.bytes_received > FLOATS * 4, "bytes are counted");
    } else {
        check(sent.view.held < CHUNKS && sent.view.known > 0, "the chunks cut off have failed");
    }
    parley_close(sender);
    parley_close(receiver);
}

/* What a node's callbacks have seen: the loop's thread. */
struct seen {
    uv_sem_t timer; /* was called */
    bool finished, late;
};

static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    struct seen *seen = context;
    (void)p;
    seen->finished = seen->finished || update->type == PARLEY_UPDATE_FINISHED;
}

static void on_timer(void *context, struct parley *p)
{
    struct seen *seen = context;
    (void)p;
    seen->late = seen->late || seen->finished;
    uv_sem_post(&seen->timer);
}

/* Nothing but the timer wakes this node's loop. */
static void finish_at_the_timer(float *x)
{
    struct seen seen = {0};
    struct parley_options options;
    struct parley_turn turn;
    const struct parley_step step = {.steps = 1};
    struct parley *p;
    char why[256];
    if (uv_sem_init(&seen.timer, 0)) exit(1);
    parley_options_defaults(&options);
    options.config.parameters = FLOATS;
    options.vectors[0] = x;
    options.on_update = on_update;
    options.on_timer = on_timer;
    options.timer_us = 1000;
    options.context = &seen;
    if (parley_open(&p, &options, why, sizeof why)) exit(1);
    uv_sem_wait(&seen.timer);
    check(parley_boundary(p, &step, &turn) == PARLEY_END, "the step ends the node");
    parley_close(p);
    check(seen.finished && !seen.late, "the timer is not called any more");
    uv_sem_destroy(&seen.timer);
}

int main(void)
{
    float *x = malloc(FLOATS * sizeof *x);
    if (!x) return 1;
    for (int i = 0; i < FLOATS; i++)
        x[i] = (float)(i % 1000);
    run(x, 0);
    run(x, FLOATS);
    cut_at = 0;
    for (int i = 0; i < TIMER_ROUNDS; i++)
        finish_at_the_timer(x);
    free(x);
    return failures ? 1 : 0;
}
