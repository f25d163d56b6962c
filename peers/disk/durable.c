/* durable.c: see durable.h. */
#include "disk/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptors.h"
#include "parley/error.h"

enum { READ_BYTES = 64 << 10 }; /* at once, beside what they are compared with */

/* Of a long path the end is shown, so that there is room for what went wrong. */
static int tell(const char *path, const char *what, char *why, size_t size)
{
    size_t length = strlen(path), room = size > 100 ? size - 100 : 0;
    const char *shown = length > room ? path + length - room : path;
    snprintf(why, size, "%s%s%s", shown == path ? "" : "...", shown, what);
    return PARLEY_ENOT_WRITTEN;
}

static int complain(const char *path, const char *what, char *why, size_t size)
{
    char failed[96];
    snprintf(failed, sizeof failed, ": can't %s: %s", what, strerror(errno));
    return tell(path, failed, why, size);
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

/* In a folder where others may make files what stands there may be theirs, or lead to one of ours
 * elsewhere: it is neither followed nor written into. */
static int create(const char *path)
{
    if (unlink(path) && errno != ENOENT) return -1;
    return descriptors_open(path, O_WRONLY | O_CREAT | O_EXCL);
}

int durable_write(const char *path, const struct piece *pieces, size_t count, char *why,
                  size_t size)
{
    int fd = create(path);
    if (fd < 0) return complain(path, "create", why, size);
    int code = PARLEY_OK;
    for (size_t i = 0; !code && i < count; i++)
        if (write_all(fd, &pieces[i])) code = complain(path, "write", why, size);
    if (!code && fsync(fd)) code = complain(path, "fsync", why, size);
    if (descriptors_close(fd) && !code) code = complain(path, "close", why, size);
    if (code) unlink(path);
    return code;
}

bool durable_folder(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash - path) + 1 : 0;
    if (size >= PATH_MAX) return false;
    memcpy(folder, path, size);
    strcpy(folder + size, slash ? "" : ".");
    return true;
}

/* The directory's own entry must be on disk, too. Some file systems can't fsync one: let them. */
static int sync_directory(const char *path, char *why, size_t size)
{
    char folder[PATH_MAX];
    int code = PARLEY_OK, fd = -1;
    if (durable_folder(path, folder)) fd = descriptors_open(folder, O_RDONLY | O_DIRECTORY);
    if (fd >= 0 && fsync(fd) && errno != EINVAL && errno != ENOSYS && errno != EROFS)
        code = complain(folder, "fsync", why, size);
    if (fd >= 0) descriptors_close(fd);
    return code;
}

int durable_rename(const char *from, const char *to, char *why, size_t size)
{
    if (rename(from, to)) return complain(to, "rename a new file to this name", why, size);
    return sync_directory(to, why, size);
}

int durable_replace_by(const char *part, const char *path, const struct piece *pieces, size_t count,
                       char *why, size_t size)
{
    int code = durable_write(part, pieces, count, why, size);
    if (!code && (code = durable_rename(part, path, why, size)) != 0) unlink(part);
    return code;
}

int durable_replace(const char *path, const struct piece *pieces, size_t count, char *why,
                    size_t size)
{
    static const char end[] = DURABLE_PART;
    size_t length = strlen(path);
    char *part = malloc(length + sizeof end);
    if (!part) return complain(path, "write", why, size);
    memcpy(part, path, length);
    memcpy(part + length, end, sizeof end);
    int code = durable_replace_by(part, path, pieces, count, why, size);
    free(part);
    return code;
}

/* To be read from disk and not from memory, where the system can. Where a pipe has been put nobody
 * waits for who would write to it: it is empty. -1: failed. */
static int open_again(const char *path, size_t *bytes, char *why, size_t size)
{
    struct stat status;
    int fd = descriptors_open(path, O_RDONLY | O_NONBLOCK);
    if (fd >= 0) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (fd >= 0 && !fstat(fd, &status)) {
        *bytes = (size_t)status.st_size;
        return fd;
    }
    complain(path, "read back", why, size);
    if (fd >= 0) descriptors_close(fd);
    return -1;
}

/* Files are not mapped: there a bad sector, or a file that is cut meanwhile, is a SIGBUS, and here
 * a line. */
static int read_all(int fd, const char *path, uint8_t *bytes, size_t left, char *why, size_t size)
{
    while (left > 0) {
        ssize_t got = read(fd, bytes, left);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return complain(path, "read back", why, size);
        if (got == 0) return tell(path, " was cut short while it was read", why, size);
        bytes += got;
        left -= (size_t)got;
    }
    return PARLEY_OK;
}

static int compare_piece(int fd, const char *path, const struct piece *piece, uint8_t *room,
                         char *why, size_t size)
{
    const uint8_t *bytes = piece->bytes;
    for (size_t part, left = piece->size; left > 0; left -= part, bytes += part) {
        part = left < READ_BYTES ? left : READ_BYTES;
        int code = read_all(fd, path, room, part, why, size);
        if (code) return code;
        if (memcmp(room, bytes, part) != 0)
            return tell(path, " does not read back as it was written", why, size);
    }
    return PARLEY_OK;
}

int durable_compare(const char *path, const struct piece *pieces, size_t count, char *why,
                    size_t size)
{
    size_t found, written = 0;
    int fd = open_again(path, &found, why, size);
    if (fd < 0) return PARLEY_ENOT_WRITTEN;
    uint8_t *room = malloc(READ_BYTES);
    int code = room ? PARLEY_OK : complain(path, "read back", why, size);
    for (size_t i = 0; i < count; i++) {
        if (!code) code = compare_piece(fd, path, &pieces[i], room, why, size);
        written += pieces[i].size;
    }
    if (!code && found != written)
        code = tell(path, " is not as long as it was written", why, size);
    free(room);
    descriptors_close(fd);
    return code;
}

int durable_read(const char *path, uint8_t **bytes, size_t *count, char *why, size_t size)
{
    *bytes = NULL;
    int fd = open_again(path, count, why, size);
    if (fd < 0) return PARLEY_ENOT_WRITTEN;
    int code = PARLEY_OK;
    if (*count == 0)
        code = tell(path, " is empty", why, size);
    else if (!(*bytes = malloc(*count)))
        code = complain(path, "read back", why, size);
    else
        code = read_all(fd, path, *bytes, *count, why, size);
    if (code) free(*bytes);
    if (code) *bytes = NULL;
    descriptors_close(fd);
    return code;
}
