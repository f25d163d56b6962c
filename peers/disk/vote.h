/* vote.h: what is kept of a node's votes, for its next start: whether it may have held a model in
 * an agreement of this run (enum parley_earlier, parley/config.h).
 *
 *     vote_open     says what is known of earlier starts
 *     vote_held     before the node says that it holds one
 *     vote_close    where it ended with an agreement, its next start goes by what others know;
 *                   where it ended by itself and has locked none, by what was known before
 *
 * The file is one line, overwritten where it stands: that needs no room on the disk.
 * Thread rule: one thread at a time.
 */
#ifndef PARLEY_PEERS_VOTE_H
#define PARLEY_PEERS_VOTE_H

#include <stddef.h>
#include <stdint.h>

#include "parley/config.h"
#include "parley/error.h"

struct vote {
    int fd; /* 0: none is kept */
    uint64_t run;
    int before; /* what the file said of the starts before this one */
};

/* How a start ended: in some other way than the other two, without having locked a model, or with
 * an agreement. */
enum vote_end { VOTE_MAY_BE_GIVEN, VOTE_NOT_GIVEN, VOTE_AGREED };

/* path: NULL, or a file, made where there is none; one of another run is made anew. PARLEY_EUSAGE
 * with a line in why[size], also where a node has it open, and where it is a link. */
PARLEY_CHECK int vote_open(struct vote *vote, const char *path, uint64_t run,
                           enum parley_earlier *earlier, char *why, size_t size);
/* A line in why[size] where that can't be kept, and else nothing. */
void vote_held(const struct vote *vote, char *why, size_t size);
void vote_close(struct vote *vote, enum vote_end end);
/* Before vote_open(): what may have been held is to be no matter, but where others know of it. */
void vote_forget(const char *path, uint64_t run);

#endif
