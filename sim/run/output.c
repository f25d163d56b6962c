/* output.c: see output.h. */
#include "run/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parley/error.h"
#include "run/talk.h"

int sim_output_open(FILE **file, const char *option, const char *path)
{
    if (!path) return 0;
    *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (*file) return 0;
    sim_say(PARLEY_LOG_ERROR, "--%s: %s: %s", option, path, strerror(errno));
    return PARLEY_EUSAGE;
}

bool sim_output_takes_stdout(const struct settings *settings)
{
    const char *const paths[] = {settings->json, settings->csv, settings->curves};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (paths[i] && strcmp(paths[i], "-") == 0) return true;
    return false;
}

static bool is_pipe(FILE *file)
{
    struct stat stat;
    return fstat(fileno(file), &stat) == 0 && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode));
}

static bool is_empty(FILE *file)
{
    struct stat stat;
    return fstat(fileno(file), &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size == 0;
}

int sim_output_close(FILE *file, const char *option, const char *path)
{
    if (!file || file == stdout) return 0;
    bool excused = is_pipe(file), failed = fflush(file) == EOF || ferror(file);
    bool empty = is_empty(file);
    failed = fclose(file) == EOF || failed;
    if (!failed || excused) return 0;
    if (empty) unlink(path);
    sim_say(PARLEY_LOG_ERROR, "--%s: %s: not all of it could be written", option, path);
    return PARLEY_EFAIL;
}

static bool write_all(const char *path, const struct piece *pieces, size_t count)
{
    FILE *file = fopen(path, "w");
    if (!file) return false;
    bool written = true;
    for (size_t i = 0; i < count && written; i++)
        written = fwrite(pieces[i].bytes, 1, pieces[i].size, file) == pieces[i].size;
    return fclose(file) == 0 && written;
}

/* Where a file is made before it gets its name. */
static char *partial_of(const char *path)
{
    size_t size = strlen(path) + sizeof ".partial";
    char *partial = malloc(size);
    if (partial) snprintf(partial, size, "%s.partial", path);
    return partial;
}

int sim_output_try(const char *option, const char *path)
{
    char *partial = partial_of(path);
    if (!partial) return sim_blame(PARLEY_ENOMEM, "");
    bool done = write_all(partial, NULL, 0);
    if (!done) sim_say(PARLEY_LOG_ERROR, "--%s: %s: %s", option, path, strerror(errno));
    unlink(partial);
    free(partial);
    return done ? 0 : PARLEY_EUSAGE;
}

int sim_output_replace(const char *option, const char *path, const struct piece *pieces,
                       size_t count)
{
    char *partial = partial_of(path);
    if (!partial) return sim_blame(PARLEY_ENOMEM, "");
    bool done = write_all(partial, pieces, count) && rename(partial, path) == 0;
    if (!done) {
        sim_say(PARLEY_LOG_ERROR, "--%s: %s: %s", option, path, strerror(errno));
        unlink(partial);
    }
    free(partial);
    return done ? 0 : PARLEY_EFAIL;
}
