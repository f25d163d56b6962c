/* hello.c: what two nodes say of themselves on a new link, and whether they go together.
 *
 *   PENDING -> LIVE       they are of one run, and no other live node has the name
 *   PENDING -> CLOSING    they differ, or it has: REJECT says why, in words for whoever started it
 *
 * A name belongs to the boot that had it first, as long as that lives. A newcomer may be that
 * node, started anew: so the owner is asked, and a connect waits for its answer. One at a time.
 */
#include "core/link/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/link/connection.h"
#include "core/link/seeds.h"
#include "core/membership/gossip.h"
#include "core/membership/membership.h"
#include "core/membership/merge.h"
#include "core/out.h"
#include "core/plain.h"
#include "core/state.h"
#include "core/strategy/strategy.h"
#include "core/transfer/codec.h"

enum { NAME_CHECK_US = 2000000, NAME_CHECK_INTERVAL_US = 20000 };

/* ---- Saying it ------------------------------------------------------------------------------- */

static double part_of(const struct parley_config *c)
{
    return codec_has_part(c->codec) ? c->codec_part : 0;
}

/* So that it need not say what is known here already. */
static void say_heard(const struct parley_node *node, int member, struct message_hello *hello)
{
    if (member == NONE) return;
    const struct record *r = record_of(node, (uint32_t)member);
    if (r->state != PARLEY_MEMBER_ALIVE) return;
    hello->to = r->boot;
    hello->heard = r->clock;
}

void hello_send(struct parley_node *node, struct conn *conn, bool answer)
{
    const struct parley_config *c = &node->config;
    const struct record *self = self_of(node);
    struct message_hello hello = {.run = c->run,
                                  .boot = self->boot,
                                  .model = c->model_digest,
                                  .parameters = c->parameters,
                                  .vectors = c->vectors,
                                  .codec = c->codec,
                                  .codec_part = part_of(c),
                                  .averaged = c->averaged,
                                  .robust = c->robust,
                                  .strategy = c->strategy,
                                  .streams = c->streams > 1 ? c->streams : 0,
                                  .token = answer ? conn->token : 0,
                                  .settings_count = c->settings_count};
    memcpy(hello.cluster, node->cluster, sizeof hello.cluster);
    memcpy(hello.name, self->name, sizeof hello.name);
    memcpy(hello.address, self->address, sizeof hello.address);
    memcpy(hello.settings, node->settings, sizeof hello.settings);
    say_heard(node, conn->member, &hello);
    connection_send(node, conn, WIRE_HELLO, &hello);
}

uint32_t parley_node_streams(struct parley_node *node, uint32_t id, uint64_t *token)
{
    const struct conn *conn = node->finished ? NULL : connection_find(node, id);
    if (!conn || conn->state != CONN_LIVE) return 0;
    *token = conn->token;
    return conn->streams;
}

/* ---- What keeps two nodes apart -------------------------------------------------------------- */

/* "" where it is not set. */
static const char *setting_of(const struct message_setting *settings, uint32_t count,
                              const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(settings[i].name, name) == 0) return settings[i].value;
    return "";
}

/* Each that either has: both ends come to the same, so that none counts the other as a member. */
static bool setting_differs(const struct parley_node *node, const struct message_hello *hello,
                            char *why, size_t size)
{
    uint32_t count = node->config.settings_count;
    for (uint32_t i = 0; i < count + hello->settings_count; i++) {
        const char *name = i < count ? node->settings[i].name : hello->settings[i - count].name;
        const char *ours = setting_of(node->settings, count, name);
        const char *theirs = setting_of(hello->settings, hello->settings_count, name);
        if (strcmp(theirs, ours) == 0) continue;
        snprintf(why, size, "%s is %s at %s and %s at %s", name, *ours ? ours : "not set",
                 self_of(node)->name, *theirs ? theirs : "not set", hello->name);
        return true;
    }
    return false;
}

/* How models are averaged. */
static bool averaging_differs(const struct parley_node *node, const struct message_hello *hello,
                              char *why, size_t size)
{
    const struct parley_config *c = &node->config;
    const char *here = self_of(node)->name;
    if (hello->averaged != c->averaged) {
        snprintf(why, size, "vectors averaged are %u at %s and %u at %s", c->averaged, here,
                 hello->averaged, hello->name);
        return true;
    }
    if (hello->robust != c->robust) {
        snprintf(why, size, "robust is set at %s and not at %s", c->robust ? here : hello->name,
                 c->robust ? hello->name : here);
        return true;
    }
    if (hello->strategy != c->strategy) {
        snprintf(why, size, "strategy is %s at %s and %s at %s", strategy_name(c->strategy), here,
                 strategy_name(hello->strategy), hello->name);
        return true;
    }
    if (hello->codec != c->codec || hello->codec_part != part_of(c)) {
        char ours[32], theirs[32];
        codec_text(c->codec, c->codec_part, ours);
        codec_text((enum parley_codec)hello->codec, hello->codec_part, theirs);
        snprintf(why, size, "codec is %s at %s and %s at %s", ours, here, theirs, hello->name);
        return true;
    }
    return false;
}

/* What keeps the two apart, in words that name both sides' values; false if nothing does. */
static bool differs(const struct parley_node *node, const struct message_hello *hello, char *why,
                    size_t size)
{
    const struct parley_config *c = &node->config;
    const char *here = self_of(node)->name;
    if (strcmp(hello->cluster, node->cluster) != 0) {
        snprintf(why, size, "cluster is \"%s\" at %s and \"%s\" at %s", node->cluster, here,
                 hello->cluster, hello->name);
        return true;
    }
    if (setting_differs(node, hello, why, size)) return true;
    if (hello->parameters != c->parameters || hello->vectors != c->vectors) {
        snprintf(why, size,
                 "the model has %" PRIu64 " parameters and %u vectors at %s, %" PRIu64
                 " and %u at %s",
                 c->parameters, c->vectors, here, hello->parameters, hello->vectors, hello->name);
        return true;
    }
    if (averaging_differs(node, hello, why, size)) return true;
    bool shapes = hello->model != c->model_digest;
    if (!shapes && hello->run == c->run) return false;
    snprintf(why, size, "%s is %016" PRIx64 " at %s and %016" PRIx64 " at %s",
             shapes ? "the model's shape" : "the run", shapes ? c->model_digest : c->run, here,
             shapes ? hello->model : hello->run, hello->name);
    return true;
}

/* ---- Refusing -------------------------------------------------------------------------------- */

static void refuse(struct parley_node *node, struct conn *conn, int error, const char *text)
{
    struct message_reject reject = {.code = (uint32_t)-error,
                                    .alone = seeds_met_nobody(node) && !seeds_only_self(node)};
    snprintf(reject.text, sizeof reject.text, "%s", text);
    while (!plain_text(reject.text, strlen(reject.text))) /* cut within a character */
        reject.text[strlen(reject.text) - 1] = 0;
    connection_send(node, conn, WIRE_REJECT, &reject);
    conn->goodbye = true;
    connection_close(node, conn);
}

static void refuse_name(struct parley_node *node, struct conn *conn, const struct record *owner)
{
    char text[MESSAGE_TEXT_SIZE];
    snprintf(text, sizeof text, "the name %s is taken by the live node at %s; choose another",
             owner->name, owner->address);
    refuse(node, conn, PARLEY_ENAME_TAKEN, text);
}

static bool has_link(const struct parley_node *node)
{
    for (uint32_t i = 0; i < node->open_count; i++)
        if (connection_at(node, i)->state == CONN_LIVE) return true;
    return false;
}

struct refusal {
    int error, seed;
    bool by_loner; /* who refuses has met nobody itself */
    bool by_met;   /* ..., is known, or has answered as that seed before */
    const char *text;
};

/* Who slept until its name was given to another would end with a model of its own beside that of
 * the cluster. It may still have links, to others that slept: it is told by one that it knows. */
static bool is_replaced(const struct parley_node *node, const struct refusal *refusal)
{
    enum parley_phase phase = phase_of(node);
    bool slept = refusal->by_met && has_slept(node);
    return refusal->error == PARLEY_ENAME_TAKEN && (slept || !has_link(node)) &&
           phase != PARLEY_PHASE_JOINING && phase != PARLEY_PHASE_DONE;
}

/* A node that dials to join and meets nobody of its kind ends; one that is in goes on, and so does
 * one that a stranger dials. One seed may stand for something else by now: others are heard out
 * first. Of two that have met nobody yet neither is the stranger: who is refused by such a one goes
 * on as long as there is another seed. */
static void refused(struct parley_node *node, struct conn *conn, const struct refusal *refusal)
{
    int error = refusal->error;
    bool lasts = error == PARLEY_EMISMATCH || error == PARLEY_ENAME_TAKEN || error == PARLEY_ELIMIT;
    if (lasts && refusal->seed != NONE) node->seeds[refusal->seed].refused = true;
    bool all = refusal->by_loner ? seeds_refuse(node) : seeds_in_vain(node);
    bool ends =
        conn->outgoing && lasts && ((seeds_met_nobody(node) && all) || is_replaced(node, refusal));
    if (connection_is_news(node, conn))
        out_log(node, ends ? PARLEY_LOG_ERROR : PARLEY_LOG_WARN, "%s: %s", conn->address,
                refusal->text);
    if (ends) out_finish(node, error);
}

/* Each keeps away from the other. */
static void part(struct parley_node *node, struct conn *conn, const char *text)
{
    struct refusal refusal = {.error = PARLEY_EMISMATCH,
                              .seed = conn->seed, /* which goes with the link */
                              .text = text};
    refuse(node, conn, PARLEY_EMISMATCH, text);
    refused(node, conn, &refusal);
}

/* ---- Letting in ------------------------------------------------------------------------------ */

static void agree_on_streams(struct parley_node *node, struct conn *conn,
                             const struct message_hello *hello)
{
    uint32_t ours = node->config.streams, theirs = hello->streams;
    if (conn->outgoing) conn->token = hello->token;
    conn->streams = ours < theirs ? ours : theirs;
    if (conn->streams < 2 || conn->token == 0) conn->streams = 0;
}

/* Others tell that it lives. */
static bool is_in(const struct parley_node *node, uint64_t boot)
{
    int member = roster_find(node->roster, boot);
    return member != NONE && membership_is_live(node, member);
}

/* It may come again, as a place may be free then: none of the errors that end a joiner. */
static bool is_one_too_many(const struct parley_node *node, const struct message_hello *hello)
{
    uint32_t most = node->strategy->nodes_max;
    return most > 0 && live_of(node) >= most && !is_in(node, hello->boot);
}

static void admit(struct parley_node *node, struct conn *conn, const struct message_hello *hello)
{
    if (is_one_too_many(node, hello)) {
        char text[MESSAGE_TEXT_SIZE];
        strategy_say_full(node, text);
        refuse(node, conn, PARLEY_EFAIL, text);
        return;
    }
    struct record record = {.boot = hello->boot, .state = PARLEY_MEMBER_ALIVE};
    memcpy(record.name, hello->name, sizeof record.name);
    memcpy(record.address, hello->address, sizeof record.address);
    int member = merge_record(node, &record, NONE);
    if (member == NONE) {
        refuse(node, conn, PARLEY_ELIMIT,
               node->roster->shared ? "it is not on the list" : "the table of members is full");
        return;
    }
    conn->member = member;
    if (!conn->outgoing) hello_send(node, conn, true);
    if (hello->to == self_of(node)->boot) gossip_heard(node, conn, hello->heard);
    if (conn->seed != NONE) seeds_answered(node, conn->seed, hello->boot);
    agree_on_streams(node, conn, hello);
    connection_live(node, conn);
}

/* ---- Whether a name is taken ----------------------------------------------------------------- */

/* Whoever is in has its name already. Where two have one name all the same (two clusters were
 * joined, say), links between them refused would keep the cluster in pieces. */
static int owner_of(const struct parley_node *node, const struct message_hello *hello)
{
    if (strcmp(hello->name, self_of(node)->name) == 0) return node->self;
    return node->members ? roster_namesake(node->roster, hello->name, hello->boot) : NONE;
}

/* The owner of a name is asked whether it lives before a newcomer may have the name. */
static void check_name(struct parley_node *node, struct conn *conn, int member,
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
                                 .sequence = ++node->probing.sequence,
                                 .active = true,
                                 .hello = *hello};
    membership_forgive(node, member);
    connection_want(node, member);
}

bool hello_is_checked(const struct parley_node *node, const struct conn *conn)
{
    return node->name_check.active && node->name_check.conn == conn->id;
}

void hello_ack(struct parley_node *node, const struct message_probe *ack)
{
    struct name_check *check = &node->name_check;
    if (check->active && ack->sequence == check->sequence &&
        ack->boot == record_of(node, check->member)->boot)
        check->answered = true;
}

/* Who has the name may be known by now, or be another. */
static void decide_name(struct parley_node *node, struct conn *conn,
                        const struct message_hello *hello)
{
    int owner = is_in(node, hello->boot) ? NONE : owner_of(node, hello);
    if (owner == node->self)
        refuse_name(node, conn, self_of(node));
    else if (owner != NONE)
        check_name(node, conn, owner, hello);
    else
        admit(node, conn, hello);
}

void hello_timers(struct parley_node *node)
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
    bool waits = conn && conn->state == CONN_PENDING;
    if (waits && !gone && !check->answered) return;
    check->active = false;
    if (!waits) return;
    if (check->answered) {
        refuse_name(node, conn, owner);
        return;
    }
    membership_replaced(node, check->member);
    struct message_hello hello = check->hello;
    decide_name(node, conn, &hello);
}

uint64_t hello_deadline(const struct parley_node *node)
{
    return node->name_check.active ? node->now_us + NAME_CHECK_INTERVAL_US : NEVER;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* We dialled one boot, and this is another. Of the same name, or where the first lives no more, it
 * is gone, as if none had answered; else it gives an address that is not its own. */
static void another_answers(struct parley_node *node, struct conn *conn,
                            const struct message_hello *hello)
{
    const struct record *r = record_of(node, conn->member);
    struct member *m = member_of(node, conn->member);
    membership_refused(node, conn->member);
    if (strcmp(r->name, hello->name) == 0 || !record_is_live(r)) {
        membership_replaced(node, conn->member);
    } else {
        out_log(node, PARLEY_LOG_WARN,
                "%s says that it is at %s, where %s answers: which address "
                "do others reach it at?",
                r->name, r->address, hello->name);
        if (m) {
            m->redial_us = node->now_us + node->config.redial_max_us;
            m->unreached_us = NEVER;
        }
    }
    conn->member = NONE;
}

void hello_received(struct parley_node *node, struct conn *conn, const struct message_hello *hello)
{
    const struct record *self = self_of(node);
    if (conn->state != CONN_PENDING || hello->boot == 0 || !*hello->name || !*hello->address) {
        connection_close(node, conn);
        return;
    }
    char text[MESSAGE_TEXT_SIZE];
    if (hello->boot == self->boot && strcmp(hello->name, self->name) != 0) {
        snprintf(text, sizeof text, "%s and %s have one boot id, %016" PRIx64 ": it is to be drawn",
                 self->name, hello->name, self->boot);
        part(node, conn, text);
        return;
    }
    if (hello->boot == self->boot) { /* a seed that is this node itself, or a peer's address is */
        if (conn->outgoing && conn->seed != NONE) seeds_is_self(node, conn->seed);
        if (conn->outgoing && conn->member != NONE) another_answers(node, conn, hello);
        if (conn->outgoing)
            connection_close(node, conn);
        else
            hello_send(node, conn, true);
        return;
    }
    if (differs(node, hello, text, sizeof text)) {
        part(node, conn, text);
        return;
    }
    if (conn->outgoing && conn->member != NONE &&
        record_of(node, conn->member)->boot != hello->boot)
        another_answers(node, conn, hello);
    decide_name(node, conn, hello);
}

static bool is_met(const struct parley_node *node, int seed)
{
    return seed != NONE && seeds_member(node, seed) != NONE;
}

void hello_rejected(struct parley_node *node, struct conn *conn,
                    const struct message_reject *reject)
{
    bool known = reject->code >= 1 && reject->code <= PARLEY_ERRORS_COUNT;
    /* This node was let in: by this it is not sent away again. */
    if (conn->outgoing && conn->state != CONN_PENDING) {
        connection_close(node, conn);
        return;
    }
    struct refusal refusal = {.error = known ? -(int)reject->code : PARLEY_EFAIL,
                              .seed = conn->seed,
                              .by_loner = reject->alone,
                              .by_met = conn->member != NONE || is_met(node, conn->seed),
                              .text = reject->text};
    conn->goodbye = true;
    connection_close(node, conn);
    refused(node, conn, &refusal);
}

void hello_foreign(struct parley_node *node, struct conn *conn, uint8_t version)
{
    char text[MESSAGE_TEXT_SIZE];
    snprintf(text, sizeof text, "the protocol has version %u there and %u at %s", version,
             WIRE_VERSION, self_of(node)->name);
    part(node, conn, text); /* it can't read a reason, but any frame tells it of our version */
}
