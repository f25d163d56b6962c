/* stripes.c: bytes over several sockets come out in order, however the sockets cut and delay them,
 * sealed or not, and what no sender says is refused. */
#define _GNU_SOURCE /* memmem */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "core/rng.h"
#include "network/stripes.h"
#include "network/tls.h"

enum { BYTES = 1000000, SOCKETS_MAX = 8 };

/* Two ends and, between each two sockets of theirs, a wire that carries what it is told to. */
struct scene {
    struct stripes near, far;
    uint32_t count;
    struct tls *key;           /* NULL: nothing is sealed */
    int wires[SOCKETS_MAX][2]; /* the near and the far end of each wire */
    struct rng rng;
    uint8_t *sent, *got; /* [BYTES] */
    size_t bytes;        /* that are to be carried, at most BYTES */
    size_t sent_bytes, got_bytes;
    size_t carried[SOCKETS_MAX]; /* to the far end */
};

static const uint8_t token[STRIPES_FIRST_BYTES] = "to be presented";

static struct tls *key_of_zeros(void)
{
    char path[] = "/tmp/parley-key-XXXXXX", why[256];
    struct tls *key;
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && dprintf(fd, "%064d\n", 0) == 65);
    close(fd);
    cr_assert_eq(tls_new(&key, path, why, sizeof why), 0, "%s", why);
    unlink(path);
    return key;
}

static void pair(int *end, int *wire)
{
    int fds[2], bytes = 4096;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    *end = fds[0];
    *wire = fds[1];
}

/* The dialler's first bytes, at the other end of its wire. */
static size_t hear(struct stripe *near, int wire, uint8_t *to, size_t size)
{
    cr_assert_eq(stripes_flush(near), 0);
    ssize_t got = recv(wire, to, size, 0);
    cr_assert_gt(got, 0);
    return (size_t)got;
}

/* As read.c does it, before the socket is known for a stream of a link. */
static struct tls_end *shake(struct stripes *stripes, struct stripe *near, int wire,
                             struct tls *key)
{
    struct tls_end *far = tls_end_new(key, false);
    uint8_t bytes[4096], shown[STRIPES_FIRST_BYTES], *sealed;
    size_t size = hear(near, wire, bytes, sizeof bytes);
    cr_assert_gt(size, sizeof shown);
    memcpy(shown, bytes, STRIPES_CLEAR_BYTES);
    cr_assert_not(memmem(bytes, size, token, sizeof token), "no token before the key is proved");
    tls_feed(far, bytes + STRIPES_CLEAR_BYTES, size - STRIPES_CLEAR_BYTES);
    cr_assert_eq(tls_read(far, bytes, sizeof bytes), 0);
    size = tls_take(far, &sealed);
    cr_assert_eq(send(wire, sealed, size, 0), (ssize_t)size);
    free(sealed);
    near->dry = false;
    cr_assert_eq(stripes_look(stripes, near), 0);
    size = hear(near, wire, bytes, sizeof bytes);
    tls_feed(far, bytes, size);
    size = STRIPES_FIRST_BYTES - STRIPES_CLEAR_BYTES;
    cr_assert_eq(tls_read(far, shown + STRIPES_CLEAR_BYTES, size), (ssize_t)size);
    cr_assert_arr_eq(shown, token, sizeof token);
    return far;
}

static void set_up(struct scene *scene, uint32_t count, uint64_t seed, bool sealed)
{
    *scene = (struct scene){.count = count, .bytes = BYTES, .rng = rng_init(seed, 1)};
    if (sealed) scene->key = key_of_zeros();
    stripes_init(&scene->near, count);
    stripes_init(&scene->far, count);
    scene->sent = malloc(BYTES);
    scene->got = malloc(BYTES);
    cr_assert(scene->sent && scene->got);
    for (size_t i = 0; i < BYTES; i++)
        scene->sent[i] = (uint8_t)(rng_next(&scene->rng) >> 56);
    for (uint32_t i = 0; i < count; i++) {
        int near, far;
        pair(&near, &scene->wires[i][0]);
        pair(&far, &scene->wires[i][1]);
        uint8_t shown[2 * sizeof token];
        int wire = scene->wires[i][0];
        struct tls_end *dials = sealed ? tls_end_new(scene->key, true) : NULL, *answers = NULL;
        struct stripe *stripe = stripes_add(&scene->near, near, token, dials);
        cr_assert(stripe && (!sealed || dials));
        if (sealed) {
            answers = shake(&scene->near, stripe, wire, scene->key);
        } else {
            cr_assert_eq(hear(stripe, wire, shown, sizeof shown), sizeof token);
            cr_assert_arr_eq(shown, token, sizeof token);
        }
        cr_assert(stripes_add(&scene->far, far, NULL, answers));
    }
}

static void tear_down(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->count; i++) {
        close(scene->near.all[i].fd);
        close(scene->far.all[i].fd);
        close(scene->wires[i][0]);
        close(scene->wires[i][1]);
    }
    stripes_free(&scene->near);
    stripes_free(&scene->far);
    tls_free(scene->key);
    free(scene->sent);
    free(scene->got);
}

/* One turn of an end, as the loop makes it: every socket is looked at. */
static int turn(struct stripes *stripes)
{
    int code = 0;
    for (uint32_t i = 0; !code && i < stripes->count; i++) {
        stripes->all[i].dry = false;
        code = stripes_flush(&stripes->all[i]);
        if (!code) code = stripes_look(stripes, &stripes->all[i]);
    }
    return code;
}

/* A wire carries up to so many bytes from one side to the other. */
static void carry(struct scene *scene, uint32_t wire, int from, size_t most)
{
    uint8_t bytes[70000];
    ssize_t size = recv(scene->wires[wire][from], bytes, 1 + rng_below(&scene->rng, most),
                        MSG_PEEK | MSG_DONTWAIT);
    if (size <= 0) return;
    cr_assert(!scene->key || !memmem(bytes, (size_t)size, scene->sent, 16));
    size = send(scene->wires[wire][!from], bytes, (size_t)size, MSG_DONTWAIT);
    if (size <= 0) return;
    cr_assert_eq(recv(scene->wires[wire][from], bytes, (size_t)size, 0), size);
    if (from == 0) scene->carried[wire] += (size_t)size;
}

/* Offers and asks for pieces of any size; `skip`: every second piece is thrown away. */
static void talk(struct scene *scene, size_t most, bool skip)
{
    size_t left = scene->bytes - scene->sent_bytes;
    if (left > 2 * most) left = 1 + rng_below(&scene->rng, 2 * most);
    ssize_t sent = stripes_send(&scene->near, scene->sent + scene->sent_bytes, left);
    cr_assert_geq(sent, 0);
    scene->sent_bytes += (size_t)sent;
    size_t room = 1 + rng_below(&scene->rng, 2 * most);
    if (room > scene->bytes - scene->got_bytes) room = scene->bytes - scene->got_bytes;
    ssize_t got;
    while (room > 0 &&
           (got = stripes_receive(
                &scene->far, skip && scene->got_bytes % 2 ? NULL : scene->got + scene->got_bytes,
                room)) != 0) {
        cr_assert_gt(got, 0);
        if (skip && scene->got_bytes % 2)
            memcpy(scene->got + scene->got_bytes, scene->sent + scene->got_bytes, (size_t)got);
        scene->got_bytes += (size_t)got;
        room -= (size_t)got;
    }
}

/* Wires deliver in any order and in pieces of up to `most` bytes; returns what `slow` carried,
 * which has its turn fifty times less often. */
static size_t deliver_all(uint32_t count, size_t most, uint32_t slow, bool skip, uint64_t seed,
                          bool sealed)
{
    struct scene scene;
    set_up(&scene, count, seed, sealed);
    if (most < 1000) scene.bytes /= 10; /* it is the pieces that count */
    for (uint64_t turns = 0; scene.got_bytes < scene.bytes; turns++) {
        cr_assert_lt(turns, 100 * (uint64_t)BYTES, "nothing gets through any more");
        uint32_t wire = (uint32_t)rng_below(&scene.rng, count);
        if (wire != slow || rng_below(&scene.rng, 50) == 0) carry(&scene, wire, 0, most);
        carry(&scene, wire, 1, most);
        cr_assert_eq(turn(&scene.near), 0);
        cr_assert_eq(turn(&scene.far), 0);
        talk(&scene, most, skip);
    }
    cr_assert_eq(memcmp(scene.sent, scene.got, scene.bytes), 0);
    cr_assert_eq(scene.near.sent, scene.bytes);
    cr_assert_eq(scene.far.received, scene.bytes);
    tear_down(&scene);
    return slow < count ? scene.carried[slow] : 0;
}

static void deliver_in_pieces(bool sealed)
{
    /* From pieces far smaller than a segment's head to such that hold several segments. TLS itself
     * is given bytes one by one in tls.c. */
    const size_t pieces[] = {40, 1000, 4096, 60000};
    for (uint32_t count = 1; count <= SOCKETS_MAX; count = 2 * count + (count == 1))
        for (size_t i = sealed; i < sizeof pieces / sizeof *pieces; i++)
            deliver_all(count, pieces[i], UINT32_MAX, false, 10 * count + i, sealed);
}

Test(stripes, bytes_come_out_in_order_whatever_pieces_the_sockets_make)
{
    deliver_in_pieces(false);
}

Test(stripes, sealed_ones_do_so_too)
{
    deliver_in_pieces(true);
}

Test(stripes, bytes_that_nobody_wants_are_passed_over)
{
    deliver_all(4, 5000, UINT32_MAX, true, 1, false);
    deliver_all(4, 5000, UINT32_MAX, true, 1, true);
}

Test(stripes, a_slow_socket_is_given_less)
{
    /* Of four, one carries a fiftieth: in turns it would have had a quarter of the bytes. */
    for (int sealed = 0; sealed < 2; sealed++) {
        size_t carried = deliver_all(4, 4096, 0, false, 3, sealed);
        cr_assert_lt(carried, BYTES / 4, "%zu of %d", carried, BYTES);
    }
}

Test(stripes, nothing_is_sent_before_the_greeting)
{
    struct scene scene;
    set_up(&scene, 2, 4, false);
    cr_assert_not(stripes_open(&scene.near));
    cr_assert_eq(stripes_send(&scene.near, scene.sent, BYTES), 0);
    cr_assert_eq(turn(&scene.far), 0);
    carry(&scene, 1, 1, 64);
    while (!scene.near.all[1].open) {
        cr_assert_eq(turn(&scene.near), 0);
        carry(&scene, 1, 1, 64);
    }
    cr_assert_gt(stripes_send(&scene.near, scene.sent, BYTES), 0);
    cr_assert_not(scene.near.all[0].open);
    tear_down(&scene);
}

/* A socket with room is always ready: a loop that watched it in vain would turn without end. */
Test(stripes, room_is_wanted_only_where_it_is_of_use)
{
    struct scene scene;
    set_up(&scene, 1, 1, false);
    struct stripe *near = &scene.near.all[0], *far = &scene.far.all[0];
    cr_assert(stripes_wants_room(far, false)); /* its greeting */
    cr_assert_not(stripes_wants_room(near, true));
    cr_assert_eq(turn(&scene.far), 0);
    cr_assert_not(stripes_wants_room(far, false));
    cr_assert(stripes_wants_room(far, true));
    while (!near->open) {
        carry(&scene, 0, 1, STRIPES_HEAD_BYTES);
        cr_assert_eq(turn(&scene.near), 0);
    }
    cr_assert(stripes_wants_room(near, true));
    cr_assert_not(stripes_wants_room(near, false));
    tear_down(&scene);
}

/* What the first of two sockets says by itself, in place of its sender. */
static int hears(uint64_t offset, uint32_t size, uint64_t received, bool accepted)
{
    struct stripes stripes;
    uint8_t head[STRIPES_HEAD_BYTES], byte;
    int fds[2], other[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)(offset >> (8 * i));
    for (int i = 0; i < 4; i++)
        head[8 + i] = (uint8_t)(size >> (8 * i));
    stripes_init(&stripes, 2);
    stripes_add(&stripes, fds[0], accepted ? NULL : token, NULL);
    stripes.received = received;
    cr_assert_eq(send(fds[1], head, sizeof head, 0), (ssize_t)sizeof head);
    stripes.all[0].dry = false;
    int code = stripes_look(&stripes, &stripes.all[0]);
    if (!code && accepted) code = (int)stripes_receive(&stripes, &byte, 1);
    stripes_free(&stripes);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(other[i]);
    }
    return code;
}

Test(stripes, what_no_sender_says_is_refused)
{
    cr_assert_eq(hears(100, 10, 100, true), 0, "its bytes are to follow");
    cr_assert_eq(hears(100, 0, 100, true), -EPROTO, "a segment without bytes");
    cr_assert_eq(hears(100, STRIPES_SEGMENT_MAX + 1, 100, true), -EPROTO, "too large a one");
    cr_assert_eq(hears(99, 10, 100, true), -EPROTO, "one that was there before");
    cr_assert_eq(hears(UINT64_MAX, 10, 100, true), -EPROTO, "one beyond the end");
    cr_assert_eq(hears(110, 10, 100, true), -EPROTO, "one after which the next can't come");
    cr_assert_eq(hears(0, 0, 0, false), 0, "a greeting");
    cr_assert_eq(hears(0, 10, 0, false), -EPROTO, "bytes before the greeting");
}

Test(stripes, two_sockets_that_say_the_same_segment_are_refused)
{
    struct stripes stripes;
    const uint8_t head[STRIPES_HEAD_BYTES + 1] = {[8] = 1};
    int fds[2][2];
    uint8_t byte;
    stripes_init(&stripes, 2);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        stripes_add(&stripes, fds[i][0], NULL, NULL);
        cr_assert_eq(send(fds[i][1], head, sizeof head, 0), (ssize_t)sizeof head);
        stripes.all[i].dry = false;
        cr_assert_eq(stripes_look(&stripes, &stripes.all[i]), 0);
    }
    cr_assert_eq(stripes_receive(&stripes, &byte, 1), 1);
    cr_assert_eq(stripes_receive(&stripes, &byte, 1), -EPROTO);
    stripes_free(&stripes);
    for (int i = 0; i < 4; i++)
        close(fds[i / 2][i % 2]);
}

Test(stripes, the_end_of_a_socket_is_the_end)
{
    struct scene scene;
    set_up(&scene, 2, 5, false);
    shutdown(scene.wires[1][1], SHUT_RDWR);
    cr_assert_eq(turn(&scene.far), -EPIPE);
    scene.far.all[1].dry = false;
    cr_assert_eq(stripes_look(&scene.far, &scene.far.all[1]), -ECONNRESET);
    tear_down(&scene);
}

/* The near end's socket has been greeted. */
static void open_sealed(struct scene *scene)
{
    set_up(scene, 1, 6, true);
    while (!scene->near.all[0].open) {
        cr_assert_eq(turn(&scene->far), 0);
        carry(scene, 0, 1, 64);
        cr_assert_eq(turn(&scene->near), 0);
    }
}

/* So many bytes, a segment, on their way to the far end. */
static void send_some(struct scene *scene, size_t size)
{
    cr_assert_eq(stripes_send(&scene->near, scene->sent, size), (ssize_t)size);
    for (int i = 0; i < 100; i++)
        carry(scene, 0, 0, 4096);
    scene->far.all[0].dry = false;
}

/* Proves that what is left of a record is had without waiting for the socket, which has no more. */
Test(stripes, what_is_left_of_a_record_is_not_waited_for)
{
    struct scene scene;
    open_sealed(&scene);
    send_some(&scene, 1000);
    cr_assert_not(stripes_hold(&scene.far));
    cr_assert_eq(stripes_receive(&scene.far, scene.got, 100), 100);
    cr_assert(stripes_hold(&scene.far));
    scene.far.all[0].dry = true;
    cr_assert_eq(stripes_receive(&scene.far, scene.got + 100, 1000), 900);
    cr_assert_not(stripes_hold(&scene.far));
    cr_assert_arr_eq(scene.got, scene.sent, 1000);
    tear_down(&scene);
}

Test(stripes, a_sealed_byte_that_was_changed_ends_the_socket_and_so_does_its_end)
{
    for (int cut = 0; cut < 2; cut++) {
        struct scene scene;
        uint8_t bytes[2048];
        open_sealed(&scene);
        cr_assert_eq(stripes_send(&scene.near, scene.sent, 1000), 1000);
        ssize_t size = recv(scene.wires[0][0], bytes, sizeof bytes, 0);
        bytes[size - 1] ^= 1;
        if (cut) size--;
        cr_assert_eq(send(scene.wires[0][1], bytes, (size_t)size, 0), size);
        if (cut) shutdown(scene.wires[0][1], SHUT_WR);
        scene.far.all[0].dry = false;
        cr_assert_eq(stripes_receive(&scene.far, scene.got, 1000), cut ? -ECONNRESET : -EPROTO);
        tear_down(&scene);
    }
}

/* Two records a segment, and a new key after so many: nobody notices. */
Test(stripes, sealed_sockets_that_last_change_their_keys)
{
    enum { RECORDS = 1000 };
    struct scene scene;
    uint64_t longer = 0;
    open_sealed(&scene);
    (void)tls_set_records(scene.key, RECORDS);
    for (uint32_t i = 0; i < RECORDS / 2 + 2; i++) {
        uint8_t bytes[256];
        cr_assert_eq(stripes_send(&scene.near, scene.sent, 1), 1);
        ssize_t size = recv(scene.wires[0][0], bytes, sizeof bytes, 0);
        longer += size > 2 * 22 + STRIPES_HEAD_BYTES + 1;
        cr_assert_eq(send(scene.wires[0][1], bytes, (size_t)size, 0), size);
        ssize_t got;
        do
            scene.far.all[0].dry = false;
        while ((got = stripes_receive(&scene.far, scene.got, 1)) == 0);
        cr_assert_eq(got, 1);
    }
    cr_assert_eq(longer, 1);
    tear_down(&scene);
}

/* ---- Who has the key, and says what no sender of ours says ----------------------------------- */

static int use_zeros(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *id_size,
                     SSL_SESSION **session)
{
    static const uint8_t key[TLS_KEY_BYTES], suite[2] = {0x13, 0x01};
    (void)digest;
    *session = SSL_SESSION_new();
    *id = (const unsigned char *)"parley";
    *id_size = 6;
    return SSL_SESSION_set1_master_key(*session, key, sizeof key) &&
           SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, suite)) &&
           SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
}

/* It has shaken hands over fds[1] with an end for fds[0]. */
static SSL *stranger_with_key(SSL_CTX *context, struct tls_end *end, int *fds)
{
    uint8_t bytes[4096], *sealed;
    SSL_CTX_set_psk_use_session_callback(context, use_zeros);
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, fds[1]);
    SSL_set_connect_state(ssl);
    while (!tls_is_up(end)) {
        (void)SSL_do_handshake(ssl);
        ssize_t size = recv(fds[0], bytes, sizeof bytes, 0);
        cr_assert_gt(size, 0);
        tls_feed(end, bytes, (size_t)size);
        cr_assert_eq(tls_read(end, bytes, sizeof bytes), 0);
        size = (ssize_t)tls_take(end, &sealed);
        cr_assert_eq(send(fds[0], sealed, (size_t)size, 0), size);
        free(sealed);
    }
    return ssl;
}

static bool ask_for_new_keys(SSL *ssl)
{
    return SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) && SSL_do_handshake(ssl) == 1;
}

/* A socket of ours, sealed, and a stranger at its other end. */
struct asked {
    int fds[2];
    struct stripes stripes;
    struct stripe *stripe;
    struct tls *key;
    SSL_CTX *context;
    SSL *ssl;
};

static void open_asked(struct asked *asked)
{
    asked->key = key_of_zeros();
    struct tls_end *end = tls_end_new(asked->key, false);
    asked->context = SSL_CTX_new(TLS_method());
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, asked->fds), 0);
    asked->ssl = stranger_with_key(asked->context, end, asked->fds);
    stripes_init(&asked->stripes, 2);
    asked->stripe = stripes_add(&asked->stripes, asked->fds[0], NULL, end);
}

static int look_on(struct asked *asked)
{
    asked->stripe->dry = false;
    return stripes_look(&asked->stripes, asked->stripe);
}

static void close_asked(struct asked *asked)
{
    stripes_free(&asked->stripes);
    SSL_free(asked->ssl);
    SSL_CTX_free(asked->context);
    tls_free(asked->key);
    for (int i = 0; i < 2; i++)
        close(asked->fds[i]);
}

/* Proves that who asks for new keys without end does not hold up who reads: it is answered one
 * question at a time. */
Test(stripes, of_records_without_bytes_one_is_read_at_a_time)
{
    enum { QUESTIONS = 10 };
    struct asked asked;
    open_asked(&asked);
    for (int i = 0; i < QUESTIONS; i++)
        cr_assert(ask_for_new_keys(asked.ssl));
    for (int i = 0; i < QUESTIONS; i++) {
        size_t before = asked.stripe->tail_size;
        cr_assert_eq(look_on(&asked), 0);
        size_t said = asked.stripe->tail_size - before;
        cr_assert(asked.stripe->dry && said < 2 * 22, "%zu bytes", said);
    }
    cr_assert_gt(asked.stripe->tail_size, STRIPES_HEAD_BYTES + 22);
    close_asked(&asked);
}

/* Proves that answers which nobody takes end the socket, long before they fill the memory: two
 * segments may wait, of which here most do already. */
Test(stripes, who_asks_for_new_keys_without_end_and_takes_no_answer_is_cut_off)
{
    enum { WAIT = 2 * STRIPES_SEGMENT_MAX - 1000 };
    struct asked asked;
    int code = 0;
    open_asked(&asked);
    free(asked.stripe->tail);
    asked.stripe->tail = calloc(1, WAIT);
    asked.stripe->tail_size = WAIT;
    cr_assert(asked.stripe->tail);
    for (int i = 0; i < 100 && code == 0; i++) {
        if (i % 2 == 0) cr_assert(ask_for_new_keys(asked.ssl));
        code = look_on(&asked); /* the second answers */
    }
    cr_assert_eq(code, -EPROTO);
    cr_assert_gt(asked.stripe->tail_size, WAIT + 500, "a few more may wait");
    close_asked(&asked);
}
