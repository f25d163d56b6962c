/* memory_file.h: files in memory, of nobody's file system: one goes with the last process that has
 * it. Seals (fcntl's F_ADD_SEALS) say what nobody may change of it any more.
 *
 * Thread rule: any thread. */
#ifndef PARLEY_PEERS_MEMORY_FILE_H
#define PARLEY_PEERS_MEMORY_FILE_H

#include <stdbool.h>

/* Empty, to be sealed and closed by the caller; nobody may execute it. -1 with errno. */
int memory_file_new(const char *name);

/* Whether the descriptor is such a file's, with these seals at least. */
bool memory_file_has_seals(int file, int seals);

#endif
