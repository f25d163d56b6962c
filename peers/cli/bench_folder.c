/* bench_folder.c: the folder of a benchmark's files. Another process waits for the end of this one,
 * whatever ends it, and removes the folder then: an interrupted benchmark leaves nothing either.
 */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static void remove_folder(const char *folder)
{
    DIR *files = opendir(folder);
    const struct dirent *file;
    while (files && (file = readdir(files)))
        unlinkat(dirfd(files), file->d_name, 0);
    if (files) closedir(files);
    rmdir(folder);
}

/* In a process group of its own, which an interrupt at the terminal does not reach. */
static void guard(const char *folder, const int ends[2])
{
    char none;
    setpgid(0, 0);
    close(ends[1]);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    while (read(ends[0], &none, 1) < 0 && errno == EINTR)
        ;
    remove_folder(folder);
    _exit(0);
}

static int start_guard(struct bench *bench)
{
    int ends[2];
    if (pipe(ends)) return -1;
    bench->guard = fork();
    if (bench->guard == 0) guard(bench->folder, ends);
    close(ends[0]);
    bench->guarded = ends[1];
    fcntl(bench->guarded, F_SETFD, FD_CLOEXEC); /* else the nodes would have to end, too */
    return bench->guard > 0 ? 0 : -1;
}

int bench_folder(struct bench *bench)
{
    const char *under = getenv("TMPDIR");
    snprintf(bench->folder, sizeof bench->folder, "%s/parley-bench-XXXXXX",
             under && *under ? under : "/tmp");
    bool made = mkdtemp(bench->folder);
    if (made && !start_guard(bench)) return 0;
    snprintf(bench->why, BENCH_WHY_BYTES, "%s: %s", bench->folder, strerror(errno));
    if (made) rmdir(bench->folder);
    return PARLEY_EFAIL;
}

void bench_folder_end(struct bench *bench)
{
    if (bench->guard <= 0) return;
    close(bench->guarded);
    waitpid(bench->guard, NULL, 0);
}
