/* stripes.c: see stripes.h. */
#include "network/stripes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "core/wire/wire.h"
#include "network/tls.h"

/* The segments and what the kernel has not sent of them (streams.c) are so small that all sockets
 * together hold no more than one connection would: what is asked behind them waits for them. */
enum { HELD_BYTES = 256 * 1024, TAIL_MOST_BYTES = 2 * STRIPES_SEGMENT_MAX };

void stripes_init(struct stripes *stripes, uint32_t most)
{
    *stripes = (struct stripes){.segment = HELD_BYTES / most};
    if (stripes->segment > STRIPES_SEGMENT_MAX) stripes->segment = STRIPES_SEGMENT_MAX;
    if (stripes->segment < STRIPES_SEGMENT_MIN) stripes->segment = STRIPES_SEGMENT_MIN;
}

void stripes_free(struct stripes *stripes)
{
    for (uint32_t i = 0; i < stripes->count; i++) {
        tls_end_free(stripes->all[i].tls);
        free(stripes->all[i].tail);
    }
    stripes->count = 0;
}

/* What has been sealed joins the tail. -ENOMEM; -EPROTO: a peer asks for new keys again and again
 * and takes none of the answers. */
static int take_sealed(struct stripe *stripe)
{
    uint8_t *sealed, *tail;
    size_t size = tls_take(stripe->tls, &sealed), left = stripe->tail_size - stripe->tail_at;
    bool fits = left + size <= TAIL_MOST_BYTES;
    if (size == 0) return 0;
    if (left > 0) { /* seldom: hands are being shaken */
        tail = fits ? malloc(left + size) : NULL;
        if (tail) {
            memcpy(tail, stripe->tail + stripe->tail_at, left);
            memcpy(tail + left, sealed, size);
        }
        free(sealed);
        if (!tail) return fits ? -ENOMEM : -EPROTO;
        sealed = tail;
    }
    free(stripe->tail);
    stripe->tail = sealed;
    stripe->tail_at = 0;
    stripe->tail_size = left + size;
    return 0;
}

/* With a key: what it says first; a dialler, after what it is, the beginning of the handshake. */
static bool begin(struct stripe *stripe, const uint8_t *first)
{
    uint8_t none;
    if (first) {
        stripe->shy = true;
        memcpy(stripe->token, first + STRIPES_CLEAR_BYTES, sizeof stripe->token);
        stripe->tail_size = STRIPES_CLEAR_BYTES;
        (void)tls_read(stripe->tls, &none, sizeof none);
        return take_sealed(stripe) == 0;
    }
    bool said = tls_write(stripe->tls, stripe->tail, stripe->tail_size);
    stripe->tail_at = stripe->tail_size;
    return take_sealed(stripe) == 0 && said;
}

struct stripe *stripes_add(struct stripes *stripes, int fd, const uint8_t *first,
                           struct tls_end *tls)
{
    static const uint8_t greeting[STRIPES_HEAD_BYTES];
    if (stripes->count == PARLEY_STREAMS_MAX) return NULL;
    struct stripe *stripe = &stripes->all[stripes->count];
    *stripe = (struct stripe){.fd = fd, .open = first == NULL, .full = true, .dry = true};
    stripe->tail = malloc(STRIPES_HEAD_BYTES + stripes->segment);
    if (!stripe->tail) return NULL;
    stripe->tail_size = first ? STRIPES_FIRST_BYTES : sizeof greeting;
    memcpy(stripe->tail, first ? first : greeting, stripe->tail_size);
    stripe->tls = tls;
    if (tls && (!tls_feed_from(tls, fd) || !begin(stripe, first))) {
        free(stripe->tail);
        return NULL;
    }
    stripes->count++;
    return stripe;
}

bool stripes_open(const struct stripes *stripes)
{
    for (uint32_t i = 0; i < stripes->count; i++)
        if (stripes->all[i].open && stripes->all[i].fd >= 0) return true;
    return false;
}

/* ---- Out ------------------------------------------------------------------------------------- */

static bool takes(const struct stripe *stripe)
{
    return stripe->fd >= 0 && stripe->open && !stripe->full;
}

/* How much of head and bytes went out: less than all means that the socket is full. */
static ssize_t put(const struct stripe *stripe, const uint8_t *head, size_t head_size,
                   const uint8_t *bytes, size_t size)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)head, head_size},
                             {(void *)(uintptr_t)bytes, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = size > 0 ? 2 : 1};
    ssize_t sent;
    while ((sent = sendmsg(stripe->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 &&
           errno == EINTR)
        continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    return sent;
}

int stripes_flush(struct stripe *stripe)
{
    stripe->full = false;
    if (stripe->tail_at == stripe->tail_size) return 0;
    ssize_t sent =
        put(stripe, stripe->tail + stripe->tail_at, stripe->tail_size - stripe->tail_at, NULL, 0);
    if (sent < 0) return (int)sent;
    stripe->tail_at += (size_t)sent;
    stripe->full = stripe->tail_at < stripe->tail_size;
    return 0;
}

/* Before its greeting nothing is sent on it but what it says first. */
bool stripes_wants_room(const struct stripe *stripe, bool sends)
{
    return stripe->tail_at < stripe->tail_size || (sends && stripe->open);
}

static void keep(struct stripe *stripe, const uint8_t *head, const uint8_t *bytes, size_t size,
                 size_t sent)
{
    size_t of_head = sent < STRIPES_HEAD_BYTES ? STRIPES_HEAD_BYTES - sent : 0;
    size_t of_bytes = sent < STRIPES_HEAD_BYTES ? 0 : sent - STRIPES_HEAD_BYTES;
    memcpy(stripe->tail, head + STRIPES_HEAD_BYTES - of_head, of_head);
    memcpy(stripe->tail + of_head, bytes + of_bytes, size - of_bytes);
    stripe->tail_at = 0;
    stripe->tail_size = of_head + size - of_bytes;
}

/* Its memory is the tail: what the socket does not take of it waits there. */
static int send_sealed(struct stripe *stripe, const uint8_t *head, const uint8_t *bytes,
                       size_t size)
{
    bool said =
        tls_write(stripe->tls, head, STRIPES_HEAD_BYTES) && tls_write(stripe->tls, bytes, size);
    int code = take_sealed(stripe);
    if (code) return code;
    return said ? stripes_flush(stripe) : -EPROTO;
}

/* One segment to one socket: its bytes, 0 if that takes nothing, or what is wrong. */
static ssize_t send_segment(struct stripes *stripes, struct stripe *stripe, const uint8_t *bytes,
                            size_t size)
{
    uint8_t head[STRIPES_HEAD_BYTES];
    if (size > stripes->segment) size = stripes->segment;
    wire_put(head, stripes->sent, 8);
    wire_put(head + 8, size, 4);
    if (stripe->tls) {
        int code = send_sealed(stripe, head, bytes, size);
        if (code) return code;
    } else {
        ssize_t sent = put(stripe, head, sizeof head, bytes, size);
        if (sent < 0) return sent;
        stripe->full = (size_t)sent < sizeof head + size;
        if (sent == 0) return 0;
        if (stripe->full) keep(stripe, head, bytes, size, (size_t)sent);
    }
    stripes->sent += size;
    return (ssize_t)size;
}

ssize_t stripes_send(struct stripes *stripes, const void *bytes, size_t size)
{
    size_t at = 0;
    for (uint32_t passed = 0; at < size && passed < stripes->count;) {
        struct stripe *stripe = &stripes->all[stripes->turn];
        stripes->turn = (stripes->turn + 1) % stripes->count;
        ssize_t sent = 0;
        if (takes(stripe))
            sent = send_segment(stripes, stripe, (const uint8_t *)bytes + at, size - at);
        if (sent < 0) return sent;
        at += (size_t)sent;
        passed = sent > 0 ? 0 : passed + 1;
    }
    return (ssize_t)at;
}

/* ---- In -------------------------------------------------------------------------------------- */

static bool holds(const struct stripe *stripe)
{
    return stripe->fd >= 0 && stripe->tls && tls_holds(stripe->tls);
}

bool stripes_hold(const struct stripes *stripes)
{
    for (uint32_t i = 0; i < stripes->count; i++)
        if (holds(&stripes->all[i])) return true;
    return false;
}

/* Nothing of it can be read now. */
static bool is_dry(const struct stripe *stripe)
{
    return stripe->dry && !holds(stripe);
}

static ssize_t get_sealed(struct stripe *stripe, void *to, size_t size)
{
    ssize_t got = tls_read(stripe->tls, to, size);
    if (got >= 0 && stripe->shy && tls_is_up(stripe->tls)) {
        stripe->shy = false;
        (void)tls_write(stripe->tls, stripe->token, sizeof stripe->token);
    }
    int code = take_sealed(stripe);
    if (code) return code;
    stripe->dry = got == 0;
    if (got >= 0) return got;
    uint8_t next; /* TLS says no more than that it is over */
    return recv(stripe->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ? -ECONNRESET : -EPROTO;
}

/* Bytes read, 0 where there are none yet, or what is wrong: the end, too. */
static ssize_t get(struct stripe *stripe, void *to, size_t size)
{
    ssize_t got;
    if (stripe->tls) return get_sealed(stripe, to, size);
    while ((got = recv(stripe->fd, to, size, MSG_DONTWAIT)) < 0 && errno == EINTR)
        continue;
    if (got == 0) return -ECONNRESET;
    if (got > 0) return got;
    stripe->dry = errno == EAGAIN || errno == EWOULDBLOCK;
    return stripe->dry ? 0 : -errno;
}

static int read_head(const struct stripes *stripes, struct stripe *stripe)
{
    uint64_t offset = wire_get(stripe->head, 8);
    uint32_t size = (uint32_t)wire_get(stripe->head + 8, 4);
    if (!stripe->open) { /* must be the greeting */
        stripe->open = offset == 0 && size == 0;
        stripe->head_got = 0;
        return stripe->open ? 0 : -EPROTO;
    }
    if (size == 0 || size > STRIPES_SEGMENT_MAX || offset < stripes->received ||
        offset > UINT64_MAX - size)
        return -EPROTO;
    stripe->offset = offset;
    stripe->left = size;
    return 0;
}

int stripes_look(struct stripes *stripes, struct stripe *stripe)
{
    while (!is_dry(stripe) && stripe->head_got < STRIPES_HEAD_BYTES) {
        ssize_t got =
            get(stripe, stripe->head + stripe->head_got, STRIPES_HEAD_BYTES - stripe->head_got);
        if (got < 0) return (int)got;
        stripe->head_got += (size_t)got;
        int code = stripe->head_got == STRIPES_HEAD_BYTES ? read_head(stripes, stripe) : 0;
        if (code) return code;
    }
    return 0;
}

/* The socket whose segment is next. NULL: its head has not come yet, or *code says what is wrong.
 */
static struct stripe *next_of(struct stripes *stripes, int *code)
{
    bool waits = false;
    *code = 0;
    for (uint32_t i = 0; i < stripes->count; i++) {
        struct stripe *stripe = &stripes->all[i];
        if (stripe->fd < 0) continue;
        if (stripe->open && (*code = stripes_look(stripes, stripe))) return NULL;
        bool has_head = stripe->head_got == STRIPES_HEAD_BYTES;
        if (has_head && stripe->offset == stripes->received) return stripe;
        if (has_head && stripe->offset < stripes->received) *code = -EPROTO;
        if (*code) return NULL;
        waits = waits || !has_head;
    }
    if (!waits) *code = -EPROTO; /* all sockets have gone past it */
    return NULL;
}

ssize_t stripes_receive(struct stripes *stripes, void *to, size_t size)
{
    int code;
    struct stripe *stripe = next_of(stripes, &code);
    if (!stripe) return code;
    uint8_t waste[STRIPES_SEGMENT_MIN];
    if (is_dry(stripe)) return 0;
    if (size > stripe->left) size = stripe->left;
    if (!to && size > sizeof waste) size = sizeof waste;
    ssize_t got = get(stripe, to ? to : waste, size);
    if (got <= 0) return got;
    stripes->received += (uint64_t)got;
    stripe->offset += (uint64_t)got;
    stripe->left -= (uint32_t)got;
    if (stripe->left == 0) stripe->head_got = 0;
    return got;
}
