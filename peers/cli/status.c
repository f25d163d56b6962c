/* status.c: `parley status HOST:PORT`: the cluster as one node sees it.
 *
 *   connect, with a key prove it; send STATUS, read REPORT; again for the next page of members
 *   until all are there
 *
 * What comes back is judged like any bytes from outside. A node that can't be reached, or does not
 * answer within some seconds, and what is no node are errors of the network (status 4). One that is
 * watched is asked again until it answers: who was killed may be started anew at its port.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli.h"
#include "clock.h"
#include "core/membership/roster.h"
#include "network/address.h"
#include "network/tls.h"
#include "report/human.h"
#include "report/text.h"

enum { TIMEOUT_S = 5, WATCH_MS = 500, REPORT_SIZE_MAX = PARLEY_CONTROL_BYTES_MAX };

struct cluster {
    struct message_report head; /* of the first page */
    struct record *records;     /* [count]; owned */
    uint32_t count;

    int fd;
    struct tls_end *tls; /* owned; NULL: without a key */
};

static int connect_to(const char *text, char *why, size_t size)
{
    struct units_address address;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    units_why clause = "";
    char port[8], quoted[TEXT_QUOTED_BYTES];
    int fd = -1;
    if (units_address(text, &address, clause)) {
        snprintf(why, size, "status: %.*s %.*s", 110, text_quote(quoted, text), 120, clause);
        return PARLEY_EUSAGE;
    }
    snprintf(port, sizeof port, "%u", address.port);
    int code = getaddrinfo(address.host, port, &hints, &found);
    if (code) {
        snprintf(why, size, "%s: %s", text, gai_strerror(code));
        return PARLEY_ENETWORK;
    }
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd < 0) {
            snprintf(why, size, "%s: %s", text, strerror(errno));
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        while ((code = connect(fd, at->ai_addr, at->ai_addrlen)) != 0 && errno == EINTR)
            continue; /* it was stopped, and woken */
        if (code == 0) continue;
        /* The second is that of who was woken, and asked again. */
        int cause = errno == EINPROGRESS || errno == EALREADY ? ETIMEDOUT : errno;
        snprintf(why, size, "%s: %s", text,
                 cause == EINVAL ? address_error(UV_EINVAL, at->ai_addr) : strerror(cause));
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd < 0 ? PARLEY_ENETWORK : fd;
}

static bool send_plain(struct cluster *cluster, const uint8_t *bytes, size_t size)
{
    return size == 0 || send(cluster->fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* What the key has made of what was written, or has to say itself. */
static bool flush(struct cluster *cluster)
{
    uint8_t *bytes;
    size_t size = tls_take(cluster->tls, &bytes);
    bool sent = send_plain(cluster, bytes, size);
    free(bytes);
    return sent;
}

static bool send_all(struct cluster *cluster, const uint8_t *bytes, size_t size)
{
    if (!cluster->tls) return send_plain(cluster, bytes, size);
    errno = ENOMEM;
    return tls_write(cluster->tls, bytes, size) && flush(cluster);
}

/* One read. 0: nothing was for us; -1: errno says why there will be no more, 0 that it is closed.
 */
static ssize_t receive_some(struct cluster *cluster, uint8_t *bytes, size_t size, int flags)
{
    static uint8_t sealed[16 * 1024]; /* all that is there is read before it is filled again */
    if (cluster->tls) {
        bool was_up = tls_is_up(cluster->tls);
        ssize_t got = tls_read(cluster->tls, bytes, size);
        bool sent = flush(cluster);
        errno = EPROTO;
        if (got < 0 || !sent) return -1;
        if (got > 0 || was_up != tls_is_up(cluster->tls)) return got;
    }
    errno = 0;
    ssize_t got = cluster->tls ? recv(cluster->fd, sealed, sizeof sealed, flags)
                               : recv(cluster->fd, bytes, size, flags);
    if (got <= 0) return errno == EINTR ? 0 : -1;
    if (!cluster->tls) return got;
    tls_feed(cluster->tls, sealed, (size_t)got);
    return 0;
}

/* bytes[count] is what came of an answer. */
static int say_nothing_came(struct cluster *cluster, const uint8_t *bytes, size_t count,
                            const char *peer, char *why, size_t size)
{
    bool unproved = cluster->tls && !tls_is_up(cluster->tls);
    bool barred = unproved ? errno == EPROTO : tls_is_spoken(bytes, count);
    bool late = errno == EAGAIN || errno == EWOULDBLOCK;
    snprintf(why, size, "%s: %s", peer,
             late       ? "no answer; is this a parley node?"
             : unproved ? tls_unproved(true, barred)
             : barred   ? "it has a cluster key: say with --cluster-key which"
                        : "closed the connection: no parley node, or one that ends");
    return barred ? PARLEY_EKEY : PARLEY_ENETWORK;
}

/* Until then, however little comes at a time. Who slept that long reads what has come meanwhile. */
static int receive(struct cluster *cluster, uint8_t *bytes, size_t size, uint64_t until_us,
                   const char *peer, char *why, size_t why_size)
{
    for (size_t at = 0; at < size;) {
        int flags = clock_now_us() < until_us ? 0 : MSG_DONTWAIT;
        ssize_t got = receive_some(cluster, bytes + at, size - at, flags);
        if (got < 0) return say_nothing_came(cluster, bytes, at, peer, why, why_size);
        at += (size_t)got;
    }
    return 0;
}

/* That each has the key. */
static int prove(struct cluster *cluster, uint64_t until_us, const char *peer, char *why,
                 size_t size)
{
    uint8_t none;
    while (!tls_is_up(cluster->tls)) {
        ssize_t got = -1;
        errno = EAGAIN;
        if (clock_now_us() < until_us) got = receive_some(cluster, &none, sizeof none, 0);
        if (got < 0) return say_nothing_came(cluster, &none, 0, peer, why, size);
    }
    return 0;
}

/* The members from those on that are there. */
static int ask_page(struct cluster *cluster, struct message_report *report, const char *peer,
                    char *why, size_t size)
{
    static uint8_t bytes[WIRE_HEADER_BYTES + REPORT_SIZE_MAX];
    struct message_status status = {.from = cluster->count};
    struct wire_header header;
    uint64_t until_us = clock_now_us() + TIMEOUT_S * UINT64_C(1000000);
    size_t length = message_encode(WIRE_STATUS, &status, bytes, sizeof bytes);
    int error = cluster->tls ? prove(cluster, until_us, peer, why, size) : 0;
    if (error) return error;
    if (length == 0 || !send_all(cluster, bytes, length)) {
        snprintf(why, size, "%s: %s", peer, strerror(errno));
        return PARLEY_ENETWORK;
    }
    error = receive(cluster, bytes, WIRE_HEADER_BYTES, until_us, peer, why, size);
    if (!error) error = wire_header_read(bytes, &header);
    if (!error && (header.type != WIRE_REPORT || header.size > REPORT_SIZE_MAX))
        error = PARLEY_EMALFORMED;
    if (!error) error = receive(cluster, bytes, header.size, until_us, peer, why, size);
    void *scratch = error ? NULL : message_scratch_new();
    if (!error && !scratch) error = PARLEY_ENOMEM;
    if (!error) error = message_decode(WIRE_REPORT, bytes, header.size, report, scratch);
    message_scratch_free(scratch);
    if (error == PARLEY_EMALFORMED) {
        snprintf(why, size, "%s: answers in another protocol; is this a parley node?", peer);
        return PARLEY_ENETWORK;
    }
    if (error && !why[0]) snprintf(why, size, "%s: %s", peer, parley_error_text(error));
    return error;
}

/* *cluster is to be closed by free(records) after any outcome. */
static int ask(const char *peer, struct tls *key, struct cluster *cluster, char *why, size_t size)
{
    memset(cluster, 0, sizeof *cluster);
    cluster->fd = connect_to(peer, why, size);
    int error = cluster->fd < 0 ? cluster->fd : 0;
    if (!error && key && !(cluster->tls = tls_end_new(key, true))) error = PARLEY_ENOMEM;
    struct message_report page;
    while (!error) {
        error = ask_page(cluster, &page, peer, why, size);
        if (error) break;
        if (cluster->count == 0) cluster->head = page;
        if (page.count == 0 || cluster->count + page.count > PARLEY_MEMBERS_MAX) break;
        struct record *more =
            realloc(cluster->records, (cluster->count + page.count) * sizeof *cluster->records);
        if (!more) {
            error = PARLEY_ENOMEM;
            break;
        }
        cluster->records = more;
        memcpy(more + cluster->count, page.records, page.count * sizeof *more);
        cluster->count += page.count;
        if (cluster->count >= page.total) break;
    }
    if (cluster->fd >= 0) close(cluster->fd);
    tls_end_free(cluster->tls);
    return error;
}

static const char *state_of(const struct record *record)
{
    return record->state <= PARLEY_MEMBER_LEFT
               ? parley_member_state_name((enum parley_member_state)record->state)
               : "?";
}

/* Who stands aside trains, but makes no steps. */
static const char *phase_of(const struct record *record)
{
    if (record->phase == PARLEY_PHASE_TRAIN && record->aside) return "aside";
    return record->phase <= PARLEY_PHASE_LEFT ? parley_phase_name((enum parley_phase)record->phase)
                                              : "?";
}

/* A process that is gone, and another of its name lives, or came later: people know but one node of
 * it. */
static bool is_former(const struct cluster *cluster, uint32_t index)
{
    const struct record *record = &cluster->records[index];
    if (record_is_live(record)) return false;
    for (uint32_t i = 0; i < cluster->count; i++)
        if ((i > index || record_is_live(&cluster->records[i])) &&
            strcmp(cluster->records[i].name, record->name) == 0)
            return true;
    return false;
}

/* It may tell anything. */
static double progress_of(const struct message_report *head)
{
    return !(head->progress > 0) ? 0 : fmin(head->progress, 1);
}

static char *as_text(const struct cluster *cluster)
{
    char drift[HUMAN_BYTES], left[32] = "";
    uint32_t left_count = 0;
    struct text text;
    const struct message_report *head = &cluster->head;
    text_init(&text, 4 << 20);
    for (uint32_t i = 0; i < cluster->count; i++)
        left_count += cluster->records[i].state == PARLEY_MEMBER_LEFT && !is_former(cluster, i);
    if (left_count > 0) snprintf(left, sizeof left, ", %" PRIu32 " left", left_count);
    text_add(&text,
             "cluster %s: %" PRIu32 " live of %" PRIu32 " known%s   progress %.0f%%   drift %s\n",
             text_clean(head->cluster) ? head->cluster : "?", head->live, head->known, left,
             100 * progress_of(head), human_drift(drift, head->drift < 0 ? NAN : head->drift));
    text_add(&text, "%-16s %-8s %-9s %10s %12s  %s\n", "node", "state", "phase", "step", "samples",
             "address");
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct record *record = &cluster->records[i];
        if (is_former(cluster, i)) continue;
        text_column(&text, record->name, 16);
        text_add(&text, " %-8s %-9s %10" PRIu64 " %12" PRIu64 "  ", state_of(record),
                 record->state == PARLEY_MEMBER_LEFT ? "-" : phase_of(record), record->version,
                 record->samples);
        text_column(&text, record->address, (int)text_width(record->address));
        text_add(&text, "\n");
    }
    return text_take(&text);
}

/* Texts of a message are UTF-8 without control characters (core/plain.h). */
static void add_quoted(struct text *text, const char *name, const char *value)
{
    text_add(text, "\"%s\":\"", name);
    for (const char *c = value; *c; c++)
        text_add(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    text_add(text, "\"");
}

static char *as_json(const struct cluster *cluster)
{
    struct text text;
    const struct message_report *head = &cluster->head;
    text_init(&text, 8 << 20);
    text_add(&text, "{");
    add_quoted(&text, "cluster", head->cluster);
    text_add(&text,
             ",\"live\":%" PRIu32 ",\"known\":%" PRIu32 ",\"progress\":%.6g,\"drift\":", head->live,
             head->known, progress_of(head));
    if (head->drift >= 0 && isfinite(head->drift))
        text_add(&text, "%.6g", head->drift);
    else
        text_add(&text, "null");
    text_add(&text, ",\"nodes\":[");
    for (uint32_t i = 0; i < cluster->count; i++) {
        const struct record *record = &cluster->records[i];
        text_add(&text, "%s{", i ? "," : "");
        add_quoted(&text, "node", record->name);
        text_add(&text, ",");
        add_quoted(&text, "address", record->address);
        text_add(&text,
                 ",\"boot\":\"%016" PRIx64 "\",\"state\":\"%s\",\"phase\":\"%s\",\"step\":%" PRIu64
                 ",\"samples\":%" PRIu64 "}",
                 record->boot, state_of(record), phase_of(record), record->version,
                 record->samples);
    }
    text_add(&text, "]}\n");
    return text_take(&text);
}

/* What a window has room for: longer lines are cut, further ones counted. */
static char *in_window(const char *table, size_t columns, size_t rows)
{
    char line[256];
    size_t lines = 0, row = 0;
    struct text text;
    text_init(&text, 4 << 20);
    for (const char *at = strchr(table, '\n'); at; at = strchr(at + 1, '\n'))
        lines++;
    for (; *table && (lines < rows || row + 2 < rows); table += strcspn(table, "\n") + 1, row++) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(table, "\n"), table);
        size_t width = text_width(line);
        text_column(&text, line, (int)(width < columns ? width : columns - 1));
        text_add(&text, "\n");
    }
    if (row < lines) text_add(&text, "and %zu more\n", lines - row);
    return text_take(&text);
}

static int show(const struct settings *settings, const struct cluster *cluster, bool redraw,
                char *why, size_t size)
{
    char *text = settings->json_stdout ? as_json(cluster) : as_text(cluster);
    if (text && redraw) {
        char *all = text;
        text = in_window(all, say_columns(STDOUT_FILENO), say_rows(STDOUT_FILENO));
        free(all);
    }
    if (!text) return PARLEY_ENOMEM;
    if (redraw) fputs("\033[H\033[J", stdout);
    fputs(text, stdout);
    free(text);
    if (fflush(stdout) != EOF) return 0;
    snprintf(why, size, "stdout: %s", strerror(errno));
    clearerr(stdout); /* it is said */
    return PARLEY_EFAIL;
}

static int watch(const struct settings *settings, const char *peer, struct tls *key)
{
    bool redraw = settings->watch && !settings->json_stdout && say_redraws(STDOUT_FILENO);
    bool shown = false, silent = false;
    for (;;) {
        struct cluster cluster;
        char why[256] = "";
        int error = ask(peer, key, &cluster, why, sizeof why);
        if (!error) error = show(settings, &cluster, redraw, why, sizeof why);
        free(cluster.records);
        bool waits = error == PARLEY_ENETWORK && shown;
        if (waits && !silent) say(PARLEY_LOG_ERROR, "%s; it is asked again", why);
        silent = waits;
        if (error && !waits) return say_failure(error, why);
        if (!settings->watch) return 0;
        shown = true;
        poll(NULL, 0, WATCH_MS);
    }
}

int status_command(const struct settings *settings)
{
    const char *peer = settings->operands[0];
    struct tls *key = NULL;
    if (!peer)
        return say_failure(PARLEY_EUSAGE, "status: which node? Give its HOST:PORT; each says it "
                                          "at its start");
    if (settings->cluster_key) {
        char cause[200], why[256];
        int error = tls_new(&key, settings->cluster_key, cause, sizeof cause);
        if (error) {
            snprintf(why, sizeof why, "--cluster-key: %s", cause);
            return say_failure(error, why);
        }
    }
    int status = watch(settings, peer, key);
    tls_free(key);
    return status;
}
