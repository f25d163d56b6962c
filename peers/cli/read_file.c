/* read_file.c: see read_file.h. Read until its end, so that pipes and /dev/stdin work too. */
#include "read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int file, uint64_t bytes_max, uint8_t **bytes, size_t *size)
{
    struct stat about;
    size_t capacity = 1 << 16;
    if (fstat(file, &about)) return -1;
    if (S_ISREG(about.st_mode) && (uint64_t)about.st_size <= bytes_max)
        capacity = (size_t)about.st_size + 1;
    *size = 0;
    *bytes = malloc(capacity);
    while (*bytes) {
        ssize_t got = read(file, *bytes + *size, capacity - *size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) return 0;
        *size += (size_t)got;
        if (*size > bytes_max) {
            errno = EFBIG;
            return -1;
        }
        if (*size < capacity) continue;
        uint8_t *more = realloc(*bytes, capacity *= 2);
        if (!more) free(*bytes);
        *bytes = more;
    }
    errno = ENOMEM;
    return -1;
}

int read_file(const char *path, uint64_t bytes_max, uint8_t **bytes, size_t *size, char *why,
              size_t why_size)
{
    *bytes = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool failed = file < 0 || read_all(file, bytes_max, bytes, size);
    int cause = errno;
    if (file >= 0) close(file);
    if (!failed) return 0;
    free(*bytes);
    *bytes = NULL;
    snprintf(why, why_size, "%s: %s", path, strerror(cause));
    return cause == ENOMEM ? PARLEY_ENOMEM : PARLEY_EDATA;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const struct source_reader file_reader = {.exists = exists, .read = read_file};
