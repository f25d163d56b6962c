/* checkpoint_files.c: see checkpoint_files.h. */
#include "cli/node/checkpoint_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parley/error.h"

enum { KEPT = 2 };
#define NUMBER_MAX INT64_MAX /* there is room above it */

/* Whether it is a file of this node's, and which. */
static bool is_own(const char *name, const char *file, uint64_t *number)
{
    size_t length = strlen(name);
    char *end;
    if (strncmp(file, name, length) != 0 || file[length] != '-') return false;
    if (!isdigit((unsigned char)file[length + 1])) return false; /* of "a" is not "a--7" of "a-" */
    *number = strtoull(file + length + 1, &end, 10);
    return *number <= NUMBER_MAX && strcmp(end, CHECKPOINT_SUFFIX) == 0;
}

void checkpoint_files_path(const char *directory, const char *name, uint64_t number,
                           char path[CHECKPOINT_PATH_BYTES])
{
    snprintf(path, CHECKPOINT_PATH_BYTES, "%s/%s-%" PRIu64 CHECKPOINT_SUFFIX, directory, name,
             number);
}

int checkpoint_files_newest(const char *directory, const char *name, uint64_t below,
                            uint64_t *newest)
{
    int found = 0;
    uint64_t number;
    const struct dirent *entry;
    DIR *dir = opendir(directory);
    if (!dir) return errno == ENOENT ? 0 : -1;
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        if (!is_own(name, entry->d_name, &number) || number >= below) continue;
        if (!found || number > *newest) *newest = number;
        found = 1;
    }
    int cause = errno;
    closedir(dir);
    errno = cause;
    return cause ? -1 : found;
}

int checkpoint_files_lock(const char *directory, const char *name, int *lock, char *why,
                          size_t size)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, other = whole;
    snprintf(path, sizeof path, "%s/%s.lock", directory, name);
    /* Neither made where another's link leads, nor waited for where it is another's pipe. */
    *lock = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (*lock < 0) {
        snprintf(why, size, "--checkpoint: %s: %s; give a directory that can be written to", path,
                 strerror(errno));
        return PARLEY_EUSAGE;
    }
    if (!fcntl(*lock, F_SETLK, &whole) || (errno != EAGAIN && errno != EACCES)) return 0;
    char holder[32] = "another process"; /* one that has ended since, or of another machine */
    if (!fcntl(*lock, F_GETLK, &other) && other.l_type != F_UNLCK && other.l_pid > 0)
        snprintf(holder, sizeof holder, "process %ld", (long)other.l_pid);
    snprintf(why, size,
             "--checkpoint: %s keeps checkpoints of %s in %s; end it, or give another directory or "
             "--name",
             holder, name, directory);
    return PARLEY_EUSAGE;
}

void checkpoint_files_trim(const char *directory, const char *name)
{
    char path[CHECKPOINT_PATH_BYTES];
    uint64_t number = UINT64_MAX;
    for (int kept = 0; checkpoint_files_newest(directory, name, number, &number) > 0; kept++) {
        if (kept < KEPT) continue;
        checkpoint_files_path(directory, name, number, path);
        unlink(path);
    }
}
