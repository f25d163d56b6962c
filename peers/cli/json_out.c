/* json_out.c: see json_out.h. */
#include "json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static int refuse(const char *path, int error, const char *why)
{
    say(PARLEY_LOG_ERROR, "--json: %s: %s", path, why);
    return error;
}

/* Nothing is in it, or JSON lines are: a file of another kind was named by mistake. */
static bool may_be_emptied(const char *path)
{
    char first = '{';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool may = fd >= 0 && read(fd, &first, 1) >= 0 && first == '{';
    if (fd >= 0) close(fd);
    return may;
}

/* Empties the file only once it is nobody else's: a node may write there, which a second start with
 * the same command line must not harm. File systems that have no locks do without. */
static int claim(int fd, const char *path)
{
    struct stat about;
    if (fstat(fd, &about)) return refuse(path, PARLEY_EUSAGE, strerror(errno));
    if (!S_ISREG(about.st_mode)) return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return refuse(path, PARLEY_EUSAGE,
                      "is being written by another process; give each a file of its own");
    if (about.st_size > 0 && !may_be_emptied(path))
        return refuse(path, PARLEY_EUSAGE,
                      "is there, and has no JSON lines to be replaced; name another file");
    return ftruncate(fd, 0) ? refuse(path, PARLEY_EUSAGE, strerror(errno)) : 0;
}

/* O_APPEND: who empties the file while it is written, as logrotate's copytruncate does, gets the
 * next line at its start, not behind a hole. */
static int open_file(const char *path, int *fd)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (*fd < 0) return refuse(path, PARLEY_EUSAGE, strerror(errno));
    int error = claim(*fd, path);
    if (error) close(*fd);
    return error;
}

int json_out_open(struct json_out *out, const char *path, writer_lost lost, void *context)
{
    *out = (struct json_out){.fd = -1};
    if (!path) return 0;
    if (strcmp(path, "-") == 0)
        out->fd = STDOUT_FILENO;
    else if (open_file(path, &out->fd))
        return PARLEY_EUSAGE;
    out->writer = writer_new(out->fd, lost, context);
    if (out->writer) return 0;
    if (out->fd != STDOUT_FILENO) close(out->fd);
    return refuse(path, PARLEY_EFAIL, WRITER_NONE);
}

void json_out_put(struct json_out *out, const char *line, size_t size, bool must)
{
    if (out->writer) writer_put(out->writer, line, size, must);
}

int json_out_close(struct json_out *out, const char *path)
{
    if (!out->writer) return 0;
    int cause = writer_free(out->writer);
    if (out->fd != STDOUT_FILENO && close(out->fd) && !cause) cause = errno;
    if (cause == 0 || cause == EPIPE) return 0; /* whose reader has gone wants no more */
    if (out->fd != STDOUT_FILENO) return refuse(path, PARLEY_EFAIL, strerror(cause));
    say(PARLEY_LOG_ERROR, "stdout: %s", strerror(cause));
    return PARLEY_EFAIL;
}
