/* writer.h: text on its way to a file that perhaps nobody reads just now: a terminal that is held,
 * a pipe that is full.
 *
 * Who puts text never waits. A thread of the writer's own writes, in the order of the puts, and
 * waits for the reader as long as it takes. What a file does not take, as its disk is full, is
 * tried again, until the end. If WRITER_BYTES wait already, what comes is lost, until all those are
 * written: then a line tells how many were lost, at the place where they would be.
 */
#ifndef PARLEY_CLI_WRITER_H
#define PARLEY_CLI_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WRITER_BYTES = 1 << 20,
    WRITER_BYTES_MUST = 1 << 16 /* beside them, for what must not be lost */
};

/* The line that tells so, with its newline, to be freed; NULL when out of memory. Called by whoever
 * puts or waits; must not call the writer. */
typedef char *(*writer_lost)(void *context, uint64_t lines);

struct writer;

/* What there is to say where writer_new() says NULL. */
#define WRITER_NONE                                                                                \
    "can't start a thread that writes: memory (ulimit -v) or threads (ulimit -u) are at their "    \
    "limit"

/* The descriptor is borrowed, and the writer's alone until writer_free(). NULL: no memory, or no
 * thread. */
struct writer *writer_new(int fd, writer_lost lost, void *context);

/* A line with its newline, or what is drawn on a terminal. must: one of the few that matter at an
 * end, such as an error. Any thread. */
void writer_put(struct writer *writer, const char *text, size_t size, bool must);

/* Whether some of it is still to be written. */
bool writer_is_behind(struct writer *writer);

/* Waits until all is written or the file takes no more, for as long as nobody reads. */
void writer_wait(struct writer *writer);

/* The same where somebody reads, or need not: gives up a tenth of a second after the file takes no
 * more, and after five seconds, which only a very busy machine takes. */
void writer_wait_briefly(struct writer *writer);

/* Waits for that, then ends the thread. NULL is fine. Once nobody puts any more. 0, or the errno by
 * which not all could be written. */
int writer_free(struct writer *writer);

#endif
