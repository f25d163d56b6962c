/* checkpoint_files.h: the files of a node's checkpoints: DIR/NAME-NUMBER.checkpoint.
 *
 * The number is that of the node's steps, but above all that are there: steps count from 0 again
 * where a node takes a peer's model or begins anew, and the newest file is the one with the highest
 * number all the same.
 */
#ifndef PARLEY_CLI_CHECKPOINT_FILES_H
#define PARLEY_CLI_CHECKPOINT_FILES_H

#include <stddef.h>
#include <stdint.h>

enum { CHECKPOINT_PATH_BYTES = 4096 };
#define CHECKPOINT_SUFFIX ".checkpoint"
#define CHECKPOINT_VOTE ".vote" /* DIR/NAME.vote: parley_options.vote */
/* Who starts without --resume where there are some; of the directory, and whose they are. */
#define CHECKPOINT_FILES_REPLACED                                                                  \
    "--checkpoint: %s has checkpoints of %s, which will be replaced; --resume goes on from them"

void checkpoint_files_path(const char *directory, const char *name, uint64_t number,
                           char path[CHECKPOINT_PATH_BYTES]);
/* The newest below `below`: 1. 0: there is none, and *newest stays. -1, with errno: the directory
 * is there, but can't be read through. */
int checkpoint_files_newest(const char *directory, const char *name, uint64_t below,
                            uint64_t *newest);
/* Two processes that kept them under one name would take each other's away. Locks DIR/NAME.lock,
 * which stays there, until *lock is closed: 0, also where the file system has no locks;
 * PARLEY_EUSAGE with a line in why[size]: another process has it, or it can't be made. */
int checkpoint_files_lock(const char *directory, const char *name, int *lock, char *why,
                          size_t size);
/* All but the two newest go. */
void checkpoint_files_trim(const char *directory, const char *name);

#endif
