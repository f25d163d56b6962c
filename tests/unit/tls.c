/* tls.c: two ends of a connection with a cluster key, byte by byte where it matters. */
#define _GNU_SOURCE /* memmem, RTLD_NEXT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "network/tls.h"
#include "parley/error.h"

static char path[] = "/tmp/parley-key-XXXXXX";
static char why[256];
static time_t later_s;

/* OpenSSL's clock, in place of the C library's. */
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += later_s;
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

/* Which of the suites stands first, in place of what this processor says; NULL: that. */
static const char *first_suite;

int SSL_CTX_set_ciphersuites(SSL_CTX *context, const char *suites)
{
    int (*set)(SSL_CTX *, const char *);
    char text[80];
    *(void **)&set = dlsym(RTLD_NEXT, "SSL_CTX_set_ciphersuites");
    const char *colon = strchr(suites, ':');
    cr_assert(colon, "there are two");
    if (!first_suite || strncmp(suites, first_suite, strlen(first_suite)) == 0)
        return set(context, suites);
    snprintf(text, sizeof text, "%s:%.*s", colon + 1, (int)(colon - suites), suites);
    return set(context, text);
}

/* A file of that text. */
static void write_file(const char *text)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static struct tls *key_of(char digit)
{
    char text[TLS_KEY_DIGITS + 2];
    struct tls *tls;
    memset(text, digit, TLS_KEY_DIGITS);
    strcpy(text + TLS_KEY_DIGITS, "\n");
    write_file(text);
    cr_assert_eq(tls_new(&tls, path, why, sizeof why), 0, "%s", why);
    unlink(path);
    return tls;
}

/* What `from` has to send, to the other end in pieces; the other end's last read of to[size]. */
static ssize_t carry(struct tls_end *from, struct tls_end *to, size_t piece, void *out, size_t size)
{
    uint8_t *bytes;
    size_t count = tls_take(from, &bytes), at = 0;
    ssize_t got = 0;
    while (at < count && got >= 0) {
        size_t part = count - at < piece ? count - at : piece;
        tls_feed(to, bytes + at, part);
        got = tls_read(to, out, size);
        at += part;
    }
    free(bytes);
    return got;
}

/* The dialler speaks first; each end answers the other until both are silent. */
static void shake(struct tls_end *dialler, struct tls_end *other, size_t piece)
{
    uint8_t none[16];
    (void)tls_read(dialler, none, sizeof none);
    (void)carry(dialler, other, piece, none, sizeof none);
    (void)carry(other, dialler, piece, none, sizeof none);
    (void)carry(dialler, other, piece, none, sizeof none);
}

static void end_with(struct tls_end *a, struct tls_end *b, struct tls *key, struct tls *other)
{
    tls_end_free(a);
    tls_end_free(b);
    tls_free(key);
    if (other != key) tls_free(other);
}

Test(tls, what_is_said_arrives_both_ways_and_is_not_to_be_read_between)
{
    for (size_t piece = 1; piece < 4096; piece *= 5) {
        struct tls *key = key_of('a');
        struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(key, false);
        uint8_t text[] = "a model of 13162 parameters", got[64], *sealed;
        shake(a, b, piece);
        cr_assert(tls_is_up(a) && tls_is_up(b));
        cr_assert(tls_write(a, text, sizeof text));
        size_t size = tls_take(a, &sealed);
        cr_assert(size > sizeof text && !memmem(sealed, size, text, 7));
        tls_feed(b, sealed, size);
        cr_assert_eq(tls_read(b, got, 5), 5);
        cr_assert_eq(tls_read(b, got + 5, sizeof got - 5), (ssize_t)sizeof text - 5);
        cr_assert_eq(memcmp(got, text, sizeof text), 0);
        cr_assert_eq(tls_read(b, got, sizeof got), 0);
        free(sealed);
        cr_assert(tls_write(b, text, sizeof text));
        cr_assert_eq(carry(b, a, 4096, got, sizeof got), (ssize_t)sizeof text);
        end_with(a, b, key, key);
    }
}

Test(tls, a_key_serves_many_connections_at_once)
{
    struct tls *key = key_of('b');
    struct tls_end *a[3], *b[3];
    uint8_t got[8];
    for (int i = 0; i < 3; i++) {
        a[i] = tls_end_new(key, true);
        b[i] = tls_end_new(key, false);
    }
    for (int i = 0; i < 3; i++)
        shake(a[i], b[i], 4096);
    for (int i = 0; i < 3; i++) {
        cr_assert(tls_is_up(a[i]) && tls_is_up(b[i]) && tls_write(a[i], "123", 3));
        cr_assert_eq(carry(a[i], b[i], 4096, got, sizeof got), 3);
    }
    for (int i = 0; i < 3; i++)
        end_with(a[i], b[i], i == 2 ? key : NULL, NULL);
}

/* Proves that a node lets others in however long it has been up: OpenSSL took the key for a session
 * that is good for five minutes. */
Test(tls, a_key_does_not_age)
{
    struct tls *key = key_of('a');
    later_s = 10 * 365 * 86400;
    struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(key, false);
    shake(a, b, 4096);
    cr_assert(tls_is_up(a) && tls_is_up(b));
    end_with(a, b, key, key);
}

Test(tls, who_has_another_key_is_not_let_in_and_hears_so)
{
    struct tls *key = key_of('a'), *other = key_of('b');
    struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(other, false);
    uint8_t none[16], *bytes;
    (void)tls_read(a, none, sizeof none);
    cr_assert_eq(carry(a, b, 4096, none, sizeof none), -1);
    size_t size = tls_take(b, &bytes);
    cr_assert(tls_is_spoken(bytes, size));
    tls_feed(a, bytes, size);
    cr_assert_eq(tls_read(a, none, sizeof none), -1);
    cr_assert(!tls_is_up(a) && !tls_is_up(b) && !tls_write(a, "1", 1) && !tls_write(b, "1", 1));
    free(bytes);
    end_with(a, b, key, other);
}

Test(tls, who_has_none_is_not_let_in_and_hears_so)
{
    struct tls *key = key_of('a');
    struct tls_end *b = tls_end_new(key, false);
    uint8_t none[16], *bytes;
    tls_feed(b, "Py\1\1 what a node without a key says", 30);
    cr_assert_eq(tls_read(b, none, sizeof none), -1);
    size_t size = tls_take(b, &bytes);
    cr_assert(tls_is_spoken(bytes, size));
    free(bytes);
    end_with(NULL, b, key, key);
}

Test(tls, nothing_is_written_before_the_key_is_proved)
{
    struct tls *key = key_of('a');
    struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(key, false);
    cr_assert(!tls_write(a, "1", 1) && !tls_write(b, "1", 1));
    shake(a, b, 4096);
    cr_assert(tls_write(a, "1", 1), "it had only to wait");
    end_with(a, b, key, key);
}

Test(tls, a_byte_that_was_changed_on_its_way_ends_the_connection)
{
    for (size_t at = 0; at < 25; at++) {
        if (at == 3 || at == 4) continue; /* its length: that of a longer one is waited for */
        struct tls *key = key_of('a');
        struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(key, false);
        uint8_t got[16], *bytes;
        shake(a, b, 4096);
        cr_assert(tls_write(a, "123", 3));
        size_t size = tls_take(a, &bytes);
        cr_assert_eq(size, 25, "a record's head, three bytes and its kind, sealed");
        bytes[at] ^= 1;
        tls_feed(b, bytes, size);
        cr_assert_eq(tls_read(b, got, sizeof got), -1, "byte %zu", at);
        free(bytes);
        end_with(a, b, key, key);
    }
}

/* Proves: OpenSSL keeps one list of errors for a thread, and what stood on it, say of an end for
 * which there was no memory, ended the next one that was read. */
Test(tls, what_went_wrong_elsewhere_ends_nobody)
{
    struct tls *key = key_of('a');
    struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(key, false);
    uint8_t none[16];
    shake(a, b, 4096);
    ERR_raise(ERR_LIB_SSL, ERR_R_MALLOC_FAILURE);
    cr_assert_eq(tls_read(a, none, sizeof none), 0);
    end_with(a, b, key, key);
}

static const char aes[] = "TLS_AES_128_GCM_SHA256", chacha[] = "TLS_CHACHA20_POLY1305_SHA256";

/* The last byte of the suite's number, in the other end's ServerHello: behind heads, version,
 * random bytes and a session's name that is empty or has 32 bytes. */
static int suite_between(const char *dials, const char *answers)
{
    uint8_t none[16], *bytes;
    first_suite = dials;
    struct tls *key = key_of('a');
    first_suite = answers;
    struct tls *same = key_of('a');
    struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(same, false);
    (void)tls_read(a, none, sizeof none);
    cr_assert_eq(carry(a, b, 4096, none, sizeof none), 0);
    size_t size = tls_take(b, &bytes), at = 5 + 4 + 2 + 32;
    cr_assert_gt(size, at + 1 + 32 + 2);
    at += 1 + bytes[at];
    cr_assert_eq(bytes[at], 0x13);
    int suite = bytes[at + 1];
    tls_feed(a, bytes, size);
    cr_assert_eq(tls_read(a, none, sizeof none), 0);
    free(bytes);
    (void)carry(a, b, 4096, none, sizeof none);
    cr_assert(tls_is_up(a) && tls_is_up(b) && tls_write(b, "123", 3));
    cr_assert_eq(carry(b, a, 4096, none, sizeof none), 3);
    end_with(a, b, key, same);
    return suite;
}

/* What the kernel says of this processor: of AES itself, and of products for GCM. */
static bool kernel_names_aes(void)
{
    char line[8192];
    bool named = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file))
        named = named ||
                (strstr(line, " aes") && (strstr(line, " pclmulqdq") || strstr(line, " pmull")));
    if (file) fclose(file);
    return named;
}

Test(tls, aes_seals_where_both_processors_have_it_and_else_chacha20)
{
    cr_assert_eq(suite_between(aes, aes), 1);
    cr_assert_eq(suite_between(chacha, aes), 3);
    cr_assert_eq(suite_between(aes, chacha), 3);
    cr_assert_eq(suite_between(chacha, chacha), 3);
    cr_assert_eq(suite_between(NULL, NULL), kernel_names_aes() ? 1 : 3, "this one's own choice");
}

Test(tls, long_connections_change_their_keys)
{
    /* Proves that no key seals more records than it may, and that the other end goes along: the
     * change is a record of its own. */
    enum { RECORDS = 1000 };
    struct tls *key = key_of('a');
    cr_assert_eq(tls_set_records(key, RECORDS), 1 << 20);
    struct tls_end *a = tls_end_new(key, true), *b = tls_end_new(key, false);
    shake(a, b, 4096);
    for (uint32_t i = 0; i < 2 * RECORDS + 2; i++) {
        uint8_t got[16], *bytes;
        cr_assert(tls_write(a, "123", 3));
        size_t size = tls_take(a, &bytes);
        cr_assert_eq(size > 25, i > 0 && i % RECORDS == 0, "record %u", i);
        tls_feed(b, bytes, size);
        cr_assert_eq(tls_read(b, got, sizeof got), 3);
        cr_assert_eq(tls_read(b, got, sizeof got), 0);
        free(bytes);
    }
    end_with(a, b, key, key);
}

static void expect_refused(const char *text, const char *wanted)
{
    struct tls *tls;
    write_file(text);
    cr_assert_eq(tls_new(&tls, path, why, sizeof why), PARLEY_EUSAGE, "\"%s\"", text);
    cr_assert(!tls && strstr(why, wanted), "%s", why);
    unlink(path);
}

Test(tls, a_file_that_is_no_key_is_refused_by_name)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef";
    struct tls *tls;
    char text[80];
    expect_refused("", "not a key of 64 hexadecimal digits");
    snprintf(text, sizeof text, "%.63s\n", digits);
    expect_refused(text, "not a key");
    snprintf(text, sizeof text, "%s0\n", digits);
    expect_refused(text, "not a key");
    snprintf(text, sizeof text, "%.63sg\n", digits);
    expect_refused(text, "not a key");
    cr_assert_eq(tls_new(&tls, "/nowhere/key", why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "/nowhere/key: No such file or directory");
    cr_assert_eq(tls_new(&tls, "/", why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "/: Is a directory");
    snprintf(text, sizeof text, "%s\r\n", digits);
    write_file(text);
    cr_assert_eq(tls_new(&tls, path, why, sizeof why), 0, "%s", why);
    unlink(path);
    tls_free(tls);
}

Test(tls, a_key_comes_through_a_pipe_too)
{
    /* Proves that a key which another program says, later perhaps and in parts, is waited for. */
    char digits[TLS_KEY_DIGITS], name[32];
    struct tls *tls;
    int ends[2];
    memset(digits, 'a', sizeof digits);
    cr_assert_eq(pipe(ends), 0);
    pid_t writer = fork();
    cr_assert_geq(writer, 0);
    if (writer == 0) {
        for (size_t at = 0; at < sizeof digits; at += 16)
            (void)!write(ends[1], digits + at, 16);
        _exit(0);
    }
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    cr_assert_eq(tls_new(&tls, name, why, sizeof why), 0, "%s", why);
    cr_assert_eq(waitpid(writer, NULL, 0), writer);
    close(ends[0]);
    tls_free(tls);
}
