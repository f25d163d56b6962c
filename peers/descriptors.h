/* descriptors.h: whether the process has the descriptors that a node starts with, and one of them
 * kept back for its files: where links have taken all others, the agreed model can be written.
 *
 * Thread rule: any thread. */
#ifndef PARLEY_PEERS_DESCRIPTORS_H
#define PARLEY_PEERS_DESCRIPTORS_H

#include <stddef.h>

#include "parley/error.h"

/* PARLEY_EFAIL, with a line in why[size]: a standard file is closed, or too few are left. */
PARLEY_CHECK int descriptors_check(char *why, size_t size);

/* One is kept back for all nodes of the process, from the first of these calls until the last. */
void descriptors_keep(void);
void descriptors_keep_no_more(void);

/* open(), 0666, by the one that was kept back where there is no other; -1 with errno. To be closed
 * soon, by descriptors_close(), which keeps one back again. */
int descriptors_open(const char *path, int flags);
int descriptors_close(int fd);

#endif
