/* tls.c: see tls.h.
 *
 * OpenSSL over memory: what comes in is read where it lies, or from a socket, to which OpenSSL
 * never writes; what goes out of all ends gathers in one buffer, which is taken as it is after each
 * call.
 */
#include "network/tls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#if defined(__aarch64__) || defined(__arm__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "parley/error.h"

/* The key is for suites of SHA-256 alone. Without instructions for it AES takes five times as long
 * as ChaCha20: where either end lacks them, its order decides. */
static const char suites[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
static const char suites_without_aes[] = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
static const uint8_t suite_number[2] = {0x13, 0x01}; /* any one of them */
/* A fatal alert, protocol_version: for who does not speak TLS, to whom OpenSSL says nothing. */
static const uint8_t refusal[] = {SSL3_RT_ALERT, 3, 3, 0, 2, 2, 70};
static const uint8_t identity[] = {'p', 'a', 'r', 'l', 'e', 'y'};

enum {
    RECORD_MORE = 22, /* bytes that a record adds to what is in it */
    RECORDS = 1 << 20 /* by one key: AES-GCM may seal 2^24.5, ChaCha20 all (RFC 8446, 5.5) */
};

struct tls {
    SSL_CTX *context;
    SSL_SESSION *key; /* as if an earlier connection had left it */
    BIO_METHOD *method;
    BIO *out;         /* writes to: */
    uint8_t *gathers; /* [gathered of room] */
    size_t gathered, room;
    size_t records; /* by one key */
};

struct tls_end {
    struct tls *tls;
    SSL *ssl;
    bool over;
    size_t records; /* written since the last new key */
};

/* ---- What goes out --------------------------------------------------------------------------- */

static bool make_room(struct tls *tls, size_t size)
{
    if (tls->room - tls->gathered >= size) return true;
    uint8_t *more = realloc(tls->gathers, tls->gathered + size);
    if (!more) return false;
    tls->gathers = more;
    tls->room = tls->gathered + size;
    return true;
}

static int gather(BIO *out, const char *bytes, size_t size, size_t *taken)
{
    struct tls *tls = BIO_get_data(out);
    if (!make_room(tls, size)) return 0;
    memcpy(tls->gathers + tls->gathered, bytes, size);
    tls->gathered += size;
    *taken = size;
    return 1;
}

static long control(BIO *out, int what, long number, void *argument)
{
    (void)out, (void)number, (void)argument;
    return what == BIO_CTRL_FLUSH;
}

static BIO *out_new(struct tls *tls)
{
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "parley");
    if (!tls->method || !BIO_meth_set_write_ex(tls->method, gather) ||
        !BIO_meth_set_ctrl(tls->method, control))
        return NULL;
    BIO *out = BIO_new(tls->method);
    if (!out) return NULL;
    BIO_set_data(out, tls);
    BIO_set_init(out, 1);
    return out;
}

/* ---- The key --------------------------------------------------------------------------------- */

static int refuse(const char *path, const char *what, char *why, size_t size)
{
    snprintf(why, size, "%s: %s", path, what);
    return PARLEY_EUSAGE;
}

/* A line of exactly the digits: half a key is none. */
static int read_key(uint8_t key[TLS_KEY_BYTES], const char *path, char *why, size_t size)
{
    char text[TLS_KEY_DIGITS + 3] = "";
    FILE *file = fopen(path, "re");
    if (file) setbuf(file, NULL); /* no copy of it is left behind */
    if (file) (void)!fread(text, 1, sizeof text - 1, file);
    bool failed = !file || ferror(file);
    int cause = errno;
    if (file) fclose(file);
    if (failed) return refuse(path, strerror(cause), why, size);
    text[strcspn(text, "\r\n")] = 0;
    bool is_key = strlen(text) == TLS_KEY_DIGITS &&
                  OPENSSL_hexstr2buf_ex(key, TLS_KEY_BYTES, NULL, text, '\0');
    ERR_clear_error();
    OPENSSL_cleanse(text, sizeof text);
    if (is_key) return 0;
    return refuse(path, "not a key of 64 hexadecimal digits; parley keygen makes one", why, size);
}

/* Each end gets a copy: one that fails marks its session as no good. */
static int use_key(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *id_size,
                   SSL_SESSION **session)
{
    struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    (void)digest; /* there is one for all suites */
    *id = identity;
    *id_size = sizeof identity;
    *session = SSL_SESSION_dup(tls->key);
    return *session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t id_size, SSL_SESSION **session)
{
    struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    bool known = id_size == sizeof identity && memcmp(id, identity, id_size) == 0;
    *session = known ? SSL_SESSION_dup(tls->key) : NULL;
    return 1;
}

/* Of processors that we don't know: no. */
static bool has_aes(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & HWCAP_AES) && (getauxval(AT_HWCAP) & HWCAP_PMULL);
#elif defined(__arm__)
    return (getauxval(AT_HWCAP2) & HWCAP2_AES) && (getauxval(AT_HWCAP2) & HWCAP2_PMULL);
#else
    return false;
#endif
}

static bool set_up(struct tls *tls, const uint8_t key[TLS_KEY_BYTES])
{
    tls->context = SSL_CTX_new(TLS_method());
    tls->key = SSL_SESSION_new();
    tls->out = out_new(tls);
    SSL_CTX *context = tls->context;
    if (!context || !tls->key || !tls->out ||
        !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(context, has_aes() ? suites : suites_without_aes) ||
        !SSL_CTX_set_num_tickets(context, 0) ||
        !SSL_CTX_set_session_id_context(context, identity, sizeof identity) ||
        !SSL_SESSION_set1_id_context(tls->key, identity, sizeof identity) ||
        !SSL_SESSION_set1_master_key(tls->key, key, TLS_KEY_BYTES) ||
        !SSL_SESSION_set_protocol_version(tls->key, TLS1_3_VERSION) ||
        !SSL_SESSION_set_timeout(tls->key, INT_MAX)) /* else it is good for five minutes */
        return false;
    SSL *ssl = SSL_new(context);
    const SSL_CIPHER *cipher = ssl ? SSL_CIPHER_find(ssl, suite_number) : NULL;
    bool made = cipher && SSL_SESSION_set_cipher(tls->key, cipher);
    SSL_free(ssl);
    SSL_CTX_set_app_data(context, tls);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL); /* no certificate is good enough */
    SSL_CTX_set_psk_use_session_callback(context, use_key);
    SSL_CTX_set_psk_find_session_callback(context, find_key);
    return made;
}

int tls_new(struct tls **out, const char *path, char *why, size_t size)
{
    uint8_t key[TLS_KEY_BYTES];
    *out = NULL;
    int error = read_key(key, path, why, size);
    if (error) return error;
    struct tls *tls = calloc(1, sizeof *tls);
    bool made = tls && set_up(tls, key);
    OPENSSL_cleanse(key, sizeof key);
    if (made) {
        tls->records = RECORDS;
        *out = tls;
        return 0;
    }
    const char *cause = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(why, size, "OpenSSL: %s", cause ? cause : "out of memory");
    ERR_clear_error();
    tls_free(tls);
    return PARLEY_EFAIL;
}

void tls_free(struct tls *tls)
{
    if (!tls) return;
    BIO_free(tls->out);
    BIO_meth_free(tls->method);
    free(tls->gathers);
    SSL_SESSION_free(tls->key);
    SSL_CTX_free(tls->context);
    free(tls);
}

size_t tls_set_records(struct tls *tls, size_t records)
{
    size_t before = tls->records;
    tls->records = records;
    return before;
}

/* ---- An end ---------------------------------------------------------------------------------- */

struct tls_end *tls_end_new(struct tls *tls, bool dials)
{
    struct tls_end *end = calloc(1, sizeof *end);
    BIO *in = BIO_new(BIO_s_mem());
    SSL *ssl = end && in ? SSL_new(tls->context) : NULL;
    if (!ssl || !BIO_up_ref(tls->out)) {
        SSL_free(ssl);
        BIO_free(in);
        free(end);
        return NULL;
    }
    SSL_set_bio(ssl, in, tls->out);
    if (dials)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    end->tls = tls;
    end->ssl = ssl;
    return end;
}

void tls_end_free(struct tls_end *end)
{
    if (!end) return;
    SSL_free(end->ssl);
    free(end);
}

void tls_feed(struct tls_end *end, const void *bytes, size_t size)
{
    BIO *in = size <= INT_MAX ? BIO_new_mem_buf(bytes, (int)size) : NULL;
    if (!in) {
        end->over = true;
        return;
    }
    BIO_set_mem_eof_return(in, -1); /* more may come */
    SSL_set0_rbio(end->ssl, in);
}

bool tls_feed_from(struct tls_end *end, int fd)
{
    BIO *in = BIO_new_socket(fd, BIO_NOCLOSE);
    if (!in) return false;
    SSL_set0_rbio(end->ssl, in);
    /* Else who sends one new key after the other is read for as long as it does. */
    SSL_clear_mode(end->ssl, SSL_MODE_AUTO_RETRY);
    return true;
}

bool tls_holds(const struct tls_end *end)
{
    return SSL_pending(end->ssl) > 0;
}

ssize_t tls_read(struct tls_end *end, void *to, size_t size)
{
    if (end->over) return -1;
    ERR_clear_error(); /* what went wrong elsewhere would be taken for this end's */
    int got = SSL_read(end->ssl, to, size <= INT_MAX ? (int)size : INT_MAX);
    if (got > 0) return got;
    end->over = SSL_get_error(end->ssl, got) != SSL_ERROR_WANT_READ;
    if (!end->over) return 0;
    if (!tls_is_up(end) && end->tls->gathered == 0)
        (void)BIO_write(end->tls->out, refusal, sizeof refusal);
    return -1;
}

bool tls_write(struct tls_end *end, const void *bytes, size_t size)
{
    if (end->over || size > INT_MAX || !tls_is_up(end)) return false;
    struct tls *tls = end->tls;
    size_t records = 1 + size / SSL3_RT_MAX_PLAIN_LENGTH;
    bool ready = make_room(tls, size + RECORD_MORE * records);
    end->records += records;
    if (end->records > tls->records) {
        ready = ready && SSL_key_update(end->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        end->records = records;
    }
    end->over = !ready || SSL_write(end->ssl, bytes, (int)size) != (int)size;
    if (end->over) tls->gathered = 0; /* a part of it: the peer could not go on from there */
    return !end->over;
}

size_t tls_take(struct tls_end *end, uint8_t **bytes)
{
    struct tls *tls = end->tls;
    size_t size = tls->gathered;
    *bytes = size > 0 ? tls->gathers : NULL;
    if (size == 0) return 0; /* what room there is is for the next */
    tls->gathers = NULL;
    tls->gathered = tls->room = 0;
    return size;
}

bool tls_is_up(const struct tls_end *end)
{
    return SSL_is_init_finished(end->ssl) && SSL_session_reused(end->ssl);
}

bool tls_is_spoken(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == SSL3_RT_ALERT && bytes[1] == SSL3_VERSION_MAJOR;
}

bool tls_is_asked(const uint8_t *bytes, size_t size)
{
    return size >= 2 && bytes[0] == SSL3_RT_HANDSHAKE && bytes[1] == SSL3_VERSION_MAJOR;
}

bool tls_may_begin(uint8_t first)
{
    return first == SSL3_RT_ALERT || first == SSL3_RT_HANDSHAKE;
}

const char *tls_unproved(bool keyed, bool spoken)
{
    if (!spoken) return "the connection ended in the handshake: has it no cluster key?";
    return keyed ? "it has another cluster key, or none"
                 : "it has a cluster key, and this node has none";
}
