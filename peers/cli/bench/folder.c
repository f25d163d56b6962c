/* folder.c: the folder of a benchmark's files. Another process waits for the end of this one and of
 * all that it has started, which have the same socket, whatever ends them, and removes the folder
 * then: an interrupted benchmark leaves nothing either.
 */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "core/rng.h"

enum { SIDE = 28, CLASSES = 10 };

static void remove_folder(const char *folder)
{
    DIR *files = opendir(folder);
    const struct dirent *file;
    while (files && (file = readdir(files)))
        unlinkat(dirfd(files), file->d_name, 0);
    if (files) closedir(files);
    rmdir(folder);
}

/* Makes the folder itself, so that there is none that nobody guards. In a process group of its own,
 * which an interrupt at the terminal does not reach.
 */
static void guard(struct bench *bench, int end)
{
    char none;
    setpgid(0, 0);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    if (!mkdtemp(bench->folder)) _exit(errno);
    send(end, bench->folder, sizeof bench->folder, MSG_NOSIGNAL); /* failed: the end has come */
    while (read(end, &none, 1) < 0 && errno == EINTR)
        ;
    remove_folder(bench->folder);
    _exit(0);
}

static int start_guard(struct bench *bench)
{
    int ends[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return errno;
    bench->guard = fork();
    if (bench->guard == 0) {
        close(ends[1]);
        guard(bench, ends[0]);
    }
    int error = bench->guard < 0 ? errno : 0;
    close(ends[0]);
    bench->guarded = ends[1];
    if (!error && read(bench->guarded, bench->folder, sizeof bench->folder) <= 0) {
        waitpid(bench->guard, &status, 0);
        bench->guard = 0;
        error = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
    }
    if (error) close(bench->guarded);
    return error;
}

int bench_folder(struct bench *bench)
{
    const char *under = getenv("TMPDIR");
    snprintf(bench->folder, sizeof bench->folder, "%s/parley-bench-XXXXXX",
             under && *under ? under : "/tmp");
    int error = start_guard(bench);
    if (!error) return 0;
    snprintf(bench->why, BENCH_WHY_BYTES, "%s: %s", bench->folder, strerror(error));
    return PARLEY_EFAIL;
}

void bench_folder_end(struct bench *bench)
{
    if (bench->guard <= 0) return;
    close(bench->guarded);
    waitpid(bench->guard, NULL, 0);
}

/* An array of bytes in NumPy's format 1.0, whose header is 128 bytes long. */
static bool write_npy(const char *folder, const char *name, const char *shape, uint32_t count,
                      uint32_t below)
{
    char path[512], header[129];
    struct rng rng = rng_init(1, count);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int length = snprintf(header, sizeof header,
                          "\x93NUMPY\x01%c\x76%c{'descr': '|u1', 'fortran_order': False, "
                          "'shape': (%s), }",
                          0, 0, shape);
    memset(header + length, ' ', sizeof header - 2 - (size_t)length);
    header[127] = '\n';
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool ok = fwrite(header, 128, 1, file) == 1;
    for (uint32_t i = 0; i < count && ok; i++)
        ok = putc((int)rng_below(&rng, below), file) != EOF;
    return fclose(file) == 0 && ok;
}

int bench_images(struct bench *bench, uint32_t count)
{
    char images[64], labels[64];
    snprintf(images, sizeof images, "%" PRIu32 ", %d, %d", count, SIDE, SIDE);
    snprintf(labels, sizeof labels, "%" PRIu32 ",", count);
    if (write_npy(bench->folder, "x.npy", images, count * SIDE * SIDE, 256) &&
        write_npy(bench->folder, "y.npy", labels, count, CLASSES))
        return 0;
    snprintf(bench->why, BENCH_WHY_BYTES, "%s: %s", bench->folder, strerror(errno));
    return PARLEY_EFAIL;
}
