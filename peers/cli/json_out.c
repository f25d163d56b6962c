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

/* Empties the file only once it is nobody else's: a node may write there, which a second start with
 * the same command line must not harm. File systems that have no locks do without. */
static bool claim(int fd)
{
    struct stat about;
    if (fstat(fd, &about)) return false;
    if (!S_ISREG(about.st_mode)) return true;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return false;
    return ftruncate(fd, 0) == 0;
}

/* O_APPEND: who empties the file while it is written, as logrotate's copytruncate does, gets the
 * next line at its start, not behind a hole. */
static int open_file(struct json_out *out, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), code;
    if (fd >= 0 && claim(fd)) out->file = fdopen(fd, "w");
    if (out->file) return 0;
    code = errno;
    if (fd >= 0) close(fd);
    return refuse(path, PARLEY_EUSAGE,
                  code == EWOULDBLOCK
                      ? "is being written by another process; give each a file of its own"
                      : strerror(code));
}

int json_out_open(struct json_out *out, const char *path, writer_lost lost, void *context)
{
    *out = (struct json_out){0};
    if (!path) return 0;
    if (strcmp(path, "-") == 0)
        out->file = stdout;
    else if (open_file(out, path))
        return PARLEY_EUSAGE;
    out->writer = writer_new(out->file, lost, context);
    if (out->writer) return 0;
    return refuse(path, PARLEY_EFAIL, WRITER_NONE);
}

void json_out_put(struct json_out *out, const char *line, size_t size, bool must)
{
    if (out->writer) writer_put(out->writer, line, size, must);
}

int json_out_close(struct json_out *out, const char *path)
{
    writer_free(out->writer);
    if (!out->file || out->file == stdout) return 0;
    bool lost = say_unwritten(out->file, "--json: ", path);
    fclose(out->file);
    return lost ? PARLEY_EFAIL : 0;
}
