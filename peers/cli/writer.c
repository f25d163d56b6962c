/* writer.c: text on its way to a file that perhaps nobody reads just now.
 *
 * The file stays as we got it: O_NONBLOCK would be set for all who share it, such as the shell.
 */
#include "writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quiet.h"

enum { RING_BYTES = WRITER_BYTES + WRITER_BYTES_MUST, BRIEFLY_US = 100000, BRIEFLY_TIMES = 50 };
#define AGAIN_NS UINT64_C(1000000000)

struct writer {
    int fd;
    writer_lost lost_text;
    void *context;
    uv_thread_t thread;
    uv_mutex_t lock; /* over all below */
    uv_cond_t changed;
    size_t start, size; /* what waits, in the ring */
    uint64_t lost;      /* lines, behind what waits */
    int error;          /* the errno of the last write; 0: it went well */
    bool ends;
    char ring[RING_BYTES];
};

static void append(struct writer *writer, const char *text, size_t size)
{
    size_t at = (writer->start + writer->size) % RING_BYTES;
    size_t first = size < RING_BYTES - at ? size : RING_BYTES - at;
    memcpy(writer->ring + at, text, first);
    memcpy(writer->ring, text + first, size - first);
    writer->size += size;
    uv_cond_broadcast(&writer->changed);
}

/* True if there is one more line now. */
static bool tell_lost(struct writer *writer)
{
    char *text = writer->lost > 0 ? writer->lost_text(writer->context, writer->lost) : NULL;
    size_t size = text ? strlen(text) : 0;
    bool told = text && size <= RING_BYTES - writer->size;
    if (told) {
        append(writer, text, size);
        writer->lost = 0;
    }
    free(text);
    return told;
}

void writer_put(struct writer *writer, const char *text, size_t size, bool must)
{
    uv_mutex_lock(&writer->lock);
    if (must || writer->size == 0) tell_lost(writer);
    size_t room = must ? RING_BYTES : WRITER_BYTES;
    if (writer->lost == 0 && writer->size <= room && size <= room - writer->size)
        append(writer, text, size);
    else
        writer->lost++;
    uv_mutex_unlock(&writer->lock);
}

bool writer_is_behind(struct writer *writer)
{
    uv_mutex_lock(&writer->lock);
    bool behind = writer->size > 0;
    uv_mutex_unlock(&writer->lock);
    return behind;
}

static void wait_for(struct writer *writer, uint64_t most_us)
{
    uint64_t start_ns = uv_hrtime(), past_ns = 0;
    uv_mutex_lock(&writer->lock);
    while (!writer->error && (writer->size > 0 || tell_lost(writer)) && past_ns / 1000 < most_us) {
        if (most_us == UINT64_MAX)
            uv_cond_wait(&writer->changed, &writer->lock);
        else
            uv_cond_timedwait(&writer->changed, &writer->lock, most_us * 1000 - past_ns);
        past_ns = uv_hrtime() - start_ns;
    }
    uv_mutex_unlock(&writer->lock);
}

void writer_wait(struct writer *writer)
{
    wait_for(writer, UINT64_MAX);
}

void writer_wait_briefly(struct writer *writer)
{
    struct pollfd file = {.fd = writer->fd, .events = POLLOUT};
    for (int i = 0; i < BRIEFLY_TIMES; i++) {
        wait_for(writer, BRIEFLY_US);
        if (!writer_is_behind(writer)) return;
        if (poll(&file, 1, 0) < 1 || !(file.revents & POLLOUT)) return;
    }
}

/* Whole lines, unless one is longer: a pipe takes so much in one piece, and what somebody else
 * writes to it comes between lines. */
static size_t look(const struct writer *writer, char chunk[PIPE_BUF])
{
    size_t size = writer->size < PIPE_BUF ? writer->size : PIPE_BUF;
    size_t first = size < RING_BYTES - writer->start ? size : RING_BYTES - writer->start;
    memcpy(chunk, writer->ring + writer->start, first);
    memcpy(chunk + first, writer->ring, size - first);
    for (size_t end = size; end > 0; end--)
        if (chunk[end - 1] == '\n') return end;
    return size;
}

/* Negated: an errno. Who shares the file may have set O_NONBLOCK. */
static ssize_t write_some(int fd, const char *chunk, size_t size)
{
    struct pollfd file = {.fd = fd, .events = POLLOUT};
    for (;;) {
        ssize_t written = write(fd, chunk, size);
        if (written >= 0) return written;
        if (errno == EAGAIN)
            (void)poll(&file, 1, -1);
        else if (errno != EINTR)
            return -errno;
    }
}

static void write_all(void *argument)
{
    struct writer *writer = argument;
    char chunk[PIPE_BUF];
    uv_mutex_lock(&writer->lock);
    for (;;) {
        while (writer->size == 0 && !writer->ends)
            uv_cond_wait(&writer->changed, &writer->lock);
        if (writer->size == 0 && !tell_lost(writer)) break;
        size_t size = look(writer, chunk);
        uv_mutex_unlock(&writer->lock);
        ssize_t written = write_some(writer->fd, chunk, size);
        uv_mutex_lock(&writer->lock);
        writer->error = written < 0 ? (int)-written : 0;
        if (written > 0) {
            writer->size -= (size_t)written;
            /* From its start again: where nobody lags, little of the ring is ever touched. */
            writer->start = writer->size > 0 ? (writer->start + (size_t)written) % RING_BYTES : 0;
        }
        if (writer->size == 0 || writer->error) uv_cond_broadcast(&writer->changed);
        if (writer->error && writer->ends) break;
        if (writer->error) uv_cond_timedwait(&writer->changed, &writer->lock, AGAIN_NS);
    }
    uv_mutex_unlock(&writer->lock);
}

struct writer *writer_new(int fd, writer_lost lost, void *context)
{
    struct writer *writer = malloc(sizeof *writer);
    if (!writer) return NULL;
    writer->fd = fd;
    writer->lost_text = lost;
    writer->context = context;
    writer->start = writer->size = 0;
    writer->lost = 0;
    writer->error = 0;
    writer->ends = false;
    if (uv_mutex_init(&writer->lock)) goto no_lock;
    if (uv_cond_init(&writer->changed)) goto no_cond;
    if (quiet_thread_start(&writer->thread, write_all, writer)) goto no_thread;
    return writer;
no_thread:
    uv_cond_destroy(&writer->changed);
no_cond:
    uv_mutex_destroy(&writer->lock);
no_lock:
    free(writer);
    return NULL;
}

int writer_free(struct writer *writer)
{
    if (!writer) return 0;
    writer_wait(writer);
    uv_mutex_lock(&writer->lock);
    writer->ends = true;
    uv_cond_broadcast(&writer->changed);
    uv_mutex_unlock(&writer->lock);
    uv_thread_join(&writer->thread);
    uv_cond_destroy(&writer->changed);
    uv_mutex_destroy(&writer->lock);
    int error = writer->error;
    free(writer);
    return error;
}
