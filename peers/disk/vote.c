/* vote.c: see vote.h. */
#define _DEFAULT_SOURCE /* LOCK_EX */
#include "disk/vote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LINE_BYTES = 64 };
enum { NONE_HELD, SOME_HELD, NOT_KNOWN, NEW, FOREIGN };

/* Of one length. Once it is not known it stays so: who has forgotten may have voted. */
static const char *const words[] = {"none held", "some held", "not known"};

static int line_of(char line[LINE_BYTES], uint64_t run, int state)
{
    return snprintf(line, LINE_BYTES, "parley: run %016" PRIx64 ": %s\n", run, words[state]);
}

static int put(const struct vote *vote, int state)
{
    char line[LINE_BYTES];
    int length = line_of(line, vote->run, state);
    return pwrite(vote->fd, line, (size_t)length, 0) == length && !fdatasync(vote->fd) ? 0 : -1;
}

static int get(const struct vote *vote)
{
    char text[LINE_BYTES] = "", line[LINE_BYTES];
    uint64_t run = 0;
    if (pread(vote->fd, text, sizeof text - 1, 0) == 0) return NEW;
    (void)sscanf(text, "parley: run %" SCNx64, &run);
    for (int state = NONE_HELD; state < NEW; state++) {
        line_of(line, run, state);
        if (strcmp(text, line) == 0) return run == vote->run ? state : NEW;
    }
    return FOREIGN;
}

/* Neither another's file where a link of theirs leads to, nor waited for where it is their pipe. */
static int open_file(const char *path, int flags)
{
    return open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0666);
}

int vote_open(struct vote *vote, const char *path, uint64_t run, enum parley_earlier *earlier,
              char *why, size_t size)
{
    *vote = (struct vote){.run = run};
    if (!path) return PARLEY_OK;
    int fd = vote->fd = open_file(path, O_CREAT);
    bool taken = fd > 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    int state = fd > 0 ? get(vote) : NEW;
    *earlier = state == NONE_HELD   ? PARLEY_EARLIER_NEVER_HELD
               : state == SOME_HELD ? PARLEY_EARLIER_HELD
                                    : PARLEY_EARLIER_UNKNOWN;
    vote->before = state == NEW ? NONE_HELD : state;
    bool good = fd > 0 && !taken && state != FOREIGN;
    if (good && (state != NEW || !put(vote, NONE_HELD))) return PARLEY_OK;
    if (taken)
        snprintf(why, size, "vote: %.300s is another node's, which has it open; give each its own",
                 path);
    else if (state == FOREIGN)
        snprintf(why, size, "vote: %.300s is something else; move it away", path);
    else
        snprintf(why, size, "vote: %.300s: %s; give a file that can be written to", path,
                 strerror(errno));
    vote_close(vote, VOTE_MAY_BE_GIVEN);
    return PARLEY_EUSAGE;
}

void vote_held(const struct vote *vote, char *why, size_t size)
{
    if (vote->fd <= 0 || !put(vote, SOME_HELD)) return;
    snprintf(why, size,
             "that this node holds a model could not be kept: %s; do not start it again in this "
             "run",
             strerror(errno));
}

void vote_close(struct vote *vote, enum vote_end end)
{
    if (vote->fd <= 0) return;
    /* Where that fails some are held, which is no less true. */
    if (end == VOTE_NOT_GIVEN) (void)put(vote, vote->before);
    if (end == VOTE_AGREED) (void)put(vote, NOT_KNOWN);
    (void)flock(vote->fd, LOCK_UN); /* a child that was forked may have it open, too */
    close(vote->fd);
    vote->fd = 0;
}

void vote_forget(const char *path, uint64_t run)
{
    struct vote vote = {.fd = open_file(path, 0), .run = run};
    bool some = vote.fd > 0 && get(&vote) == SOME_HELD;
    vote_close(&vote, some ? VOTE_AGREED : VOTE_MAY_BE_GIVEN);
}
