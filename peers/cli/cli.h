/* cli.h: the verbs of the `parley` binary and what they share.
 *
 * A verb gets finished settings and returns the exit status; what went wrong has been said by then.
 * Talk goes to stderr, results to stdout.
 */
#ifndef PARLEY_CLI_CLI_H
#define PARLEY_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <uv.h>

#include "parley/node.h"
#include "settings/settings.h"

struct summary;
struct writer;

int run_command(const struct settings *settings);
int node_command(const struct settings *settings);
int status_command(const struct settings *settings);
int bench_command(const struct settings *settings);
int model_command(const struct settings *settings);
int check_command(const struct settings *settings);
int topology_command(const struct settings *settings);
int keygen_command(const struct settings *settings);

/* say.c: as --log-level and --log-format of these settings want it; before, errors alone, as text.
 * Call before threads start. */
void say_open(const struct settings *settings);

/* say.c: from here to say_end(), no thread waits for who reads stderr: writer.h. Where nobody does
 * for long, lines are lost but for errors, and a line tells so. 0, or the exit status for want of a
 * thread, which is said. */
int say_start(void);
void say_end(void); /* all is written then; once one thread is left */
/* To stdout, once all that was said is written, and a remark, if any, after it. */
void say_summary(const struct summary *summary);
/* What was said, also to `beside` unless it is NULL, goes out if somebody reads. */
void say_briefly(struct writer *beside);
/* Ends the process here and now, after say_briefly(). */
_Noreturn void say_exit(struct writer *beside, int status);

/* say.c: "parley: ..." and a newline on stderr, from any thread, if lines of that level are wanted;
 * errors always are. */
void say(enum parley_log level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* say.c: the line, which has no newline, as it is, whatever is wanted; "parley: " goes before a
 * warning or an error. */
void say_line(enum parley_log level, const char *line);

/* say.c: a line that stands on the terminal, as far as it fits, until the next one takes its place.
 * What is said goes above it; who writes to stdout clears it first. While stderr is behind, nothing
 * new is drawn: the newest is drawn when somebody looks again. */
void say_standing(const char *line);
void say_clear(void);

/* say.c: what is drawn on the terminal in other ways, as it is. */
void say_drawn(const char *text);
bool say_is_behind(void);

/* say.c: whether stdout lacks some of what was written to it, up to now; then it is said. A reader
 * that has gone is no failure. */
bool say_unwritten(void);

/* say.c: the exit status of `error`, whose line (or else its text) is said. */
int say_failure(int error, const char *why);

/* hint.c: what to do about what ends a node, or keeps one from starting. NULL: nothing that
 * the message does not say. */
const char *node_hint(int error, const char *message);

/* say.c: a terminal on that file descriptor that can redraw: none of TERM=dumb. */
bool say_redraws(int fd);

/* say.c: whether --progress wants something that moves, and it may be drawn in place. */
bool say_in_place(const struct settings *settings);
/* say.c: of the window on that file descriptor; 80 and 24 where it has none. */
unsigned say_columns(int fd);
unsigned say_rows(int fd);

/* say.c: whether colours are wanted on that file descriptor. */
bool say_color(const struct settings *settings, int fd);

/* Signals that ask for the end: a first one politely, a second one at once. */
struct asked {
    uint64_t since_us; /* 0: nobody has asked */
    int number;
};

enum asked_as { ASKED_FIRST, ASKED_STILL, ASKED_AGAIN };

/* signals.c: as what this one counts. The same signal soon after the first is still the first:
 * timeout(1) sends it to its child and then to the child's group. So is the one after a SIGHUP or a
 * SIGUSR2, whenever it comes: who ends a session may send both, and who has asked for an agreement
 * and then asks for the end has not said that it shall be without one. */
enum asked_as asked_by(struct asked *asked, int number);

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2. */
enum { SIGNALS_HEARD = 5 };
extern const int signals_heard[SIGNALS_HEARD];

/* signals.c: for the calling thread. Held, they wait: before somebody listens to them, and once
 * nobody does any more, each would end the process. */
void signals_hold(bool held);

/* signals.c: the main thread's, while they are held for the last time. What is left to do is done,
 * unless SIGINT or SIGTERM comes for the second time: that ends the process as it is. The others
 * ask for nothing that is still to be done. */
void signals_last(const struct asked *asked);

enum { STATUS_SIGNAL = 128 }; /* and the signal's number: the status of who is ended by one */

/* environment.c: says which BLAS kernels, threads and pages are to be used, by starting the program
 * anew once, or what it will start. Returns if there is nothing to be done. */
void environment_choose(enum verb verb, char *const *argv);
/* Before the first product: takes the memory that the BLAS works in, for so many threads.
 * PARLEY_ENOMEM, with a line in why. */
int environment_claim(uint32_t threads, char *why, size_t why_size);
const char *environment_blas(void); /* the kernels that are used */

#endif
