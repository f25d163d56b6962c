/* folder.c: the folder of a benchmark's files. Another process waits for the end of this one and of
 * all that it has started, which have the same socket, whatever ends them, and removes the folder
 * then: an interrupted benchmark leaves nothing either.
 */
#define _DEFAULT_SOURCE /* mkdtemp */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/bench/bench.h"

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
