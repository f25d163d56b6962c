/* durable.c: see durable.h. */
#include "durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parley/error.h"

/* Of a long path the end is shown, so that there is room for what went wrong. */
static void tell(const char *path, const char *what, char *why, size_t size)
{
    size_t length = strlen(path), room = size > 100 ? size - 100 : 0;
    const char *shown = length > room ? path + length - room : path;
    snprintf(why, size, "%s%s%s", shown == path ? "" : "...", shown, what);
}

static int complain(const char *path, const char *what, char *why, size_t size)
{
    char failed[96];
    snprintf(failed, sizeof failed, ": can't %s: %s", what, strerror(errno));
    tell(path, failed, why, size);
    return PARLEY_ENOT_WRITTEN;
}

static int write_all(int fd, const struct piece *piece)
{
    const char *bytes = piece->bytes;
    size_t left = piece->size;
    while (left > 0) {
        ssize_t written = write(fd, bytes, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return -1;
        bytes += written;
        left -= (size_t)written;
    }
    return 0;
}

int durable_write(const char *path, const struct piece *pieces, size_t count, char *why,
                  size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return complain(path, "create", why, size);
    int code = PARLEY_OK;
    for (size_t i = 0; !code && i < count; i++)
        if (write_all(fd, &pieces[i])) code = complain(path, "write", why, size);
    if (!code && fsync(fd)) code = complain(path, "fsync", why, size);
    if (close(fd) && !code) code = complain(path, "close", why, size);
    if (code) unlink(path);
    return code;
}

/* The directory's own entry must be on disk, too. Some file systems can't fsync one: let them. */
static int sync_directory(const char *path, char *why, size_t size)
{
    char *directory = strdup(path);
    if (!directory) return complain(path, "fsync the directory of", why, size);
    char *slash = strrchr(directory, '/');
    if (slash && slash != directory)
        *slash = 0;
    else
        strcpy(directory, slash ? "/" : ".");
    int code = PARLEY_OK;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fsync(fd) && errno != EINVAL && errno != ENOSYS && errno != EROFS)
        code = complain(directory, "fsync", why, size);
    if (fd >= 0) close(fd);
    free(directory);
    return code;
}

int durable_rename(const char *from, const char *to, char *why, size_t size)
{
    if (rename(from, to)) return complain(to, "rename a new file to this name", why, size);
    return sync_directory(to, why, size);
}

int durable_replace(const char *path, const struct piece *pieces, size_t count, char *why,
                    size_t size)
{
    static const char end[] = ".part";
    size_t length = strlen(path);
    char *part = malloc(length + sizeof end);
    if (!part) return complain(path, "write", why, size);
    memcpy(part, path, length);
    memcpy(part + length, end, sizeof end);
    int code = durable_write(part, pieces, count, why, size);
    if (!code && (code = durable_rename(part, path, why, size)) != 0) unlink(part);
    free(part);
    return code;
}

const void *durable_map(const char *path, size_t *bytes, char *why, size_t size)
{
    void *map = MAP_FAILED;
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    bool known = fd >= 0 && !fstat(fd, &stat), empty = known && stat.st_size == 0;
    if (known && !empty) {
        *bytes = (size_t)stat.st_size;
        map = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (empty)
        tell(path, " is empty", why, size);
    else if (map == MAP_FAILED)
        complain(path, "read back", why, size);
    if (fd >= 0) close(fd);
    return map == MAP_FAILED ? NULL : map;
}

void durable_unmap(const void *map, size_t bytes)
{
    munmap((void *)map, bytes);
}
