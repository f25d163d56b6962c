/* output.c: see output.h. */
#define _POSIX_C_SOURCE 200809L /* fileno */
#include "run/output.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "parley/error.h"

int sim_output_open(FILE **file, const char *option, const char *path)
{
    if (!path) return 0;
    *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (*file) return 0;
    fprintf(stderr, "parley: --%s: %s: %s\n", option, path, strerror(errno));
    return PARLEY_EUSAGE;
}

static bool is_pipe(FILE *file)
{
    struct stat stat;
    return fstat(fileno(file), &stat) == 0 && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode));
}

int sim_output_close(FILE *file, const char *option, const char *path)
{
    if (!file || file == stdout) return 0;
    bool excused = is_pipe(file), failed = fflush(file) == EOF || ferror(file);
    failed = fclose(file) == EOF || failed;
    if (!failed || excused) return 0;
    fprintf(stderr, "parley: --%s: %s: not all of it could be written\n", option, path);
    return PARLEY_EFAIL;
}
