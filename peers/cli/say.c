/* say.c: talk on stderr.
 *
 * Several threads of a node talk. The line that stands on the terminal (say_standing) is theirs
 * all: stderr's own lock guards it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "report/lines.h"

static enum parley_log wanted;
static enum settings_format written_as;
static bool stands; /* a line without its end */

void say_open(const struct settings *settings)
{
    wanted = (enum parley_log)settings->level;
    written_as = (enum settings_format)settings->log_format;
}

static void clear(void)
{
    if (stands) fputs("\r\033[K", stderr);
    stands = false;
}

static char *as_json(enum parley_log level, const char *text)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    char stamp[40];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t at = strftime(stamp, sizeof stamp, "%FT%T", gmtime_r(&now.tv_sec, &utc));
    snprintf(stamp + at, sizeof stamp - at, ".%03ldZ", now.tv_nsec / 1000000);
    return report_talk_text(stamp, levels[level], text + strspn(text, " "));
}

static void put(enum parley_log level, const char *before, const char *text)
{
    char *json = written_as == FORMAT_JSON ? as_json(level, text) : NULL;
    flockfile(stderr);
    clear();
    if (json)
        fputs(json, stderr);
    else
        fprintf(stderr, "%s%s\n", before, text);
    funlockfile(stderr);
    free(json);
}

void say_line(enum parley_log level, const char *line)
{
    put(level, level <= PARLEY_LOG_WARN ? "parley: " : "", line);
}

void say(enum parley_log level, const char *format, ...)
{
    if (level > wanted) return;
    char line[2048], *longer = NULL;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(line, sizeof line, format, arguments) + 1;
    if (size > (int)sizeof line && (longer = malloc((size_t)size)))
        vsnprintf(longer, (size_t)size, format, again);
    va_end(again);
    va_end(arguments);
    put(level, "parley: ", longer ? longer : line);
    free(longer);
}

void say_standing(const char *line)
{
    unsigned columns = say_columns();
    flockfile(stderr);
    /* Short of what a terminal shows of Ctrl-C behind it. */
    fprintf(stderr, "\r\033[K%.*s", (int)(columns > 3 ? columns - 3 : 1), line);
    stands = true;
    funlockfile(stderr);
}

void say_clear(void)
{
    flockfile(stderr);
    clear();
    funlockfile(stderr);
}

bool say_unwritten(FILE *file, const char *flag, const char *name)
{
    struct stat stat;
    bool pipe = !fstat(fileno(file), &stat) && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode));
    if (!ferror(file) || pipe) return false;
    say(PARLEY_LOG_ERROR, "%s%s: not all of it could be written", flag, name);
    return true;
}

int say_failure(int error, const char *why)
{
    say(PARLEY_LOG_ERROR, "%s", why && why[0] ? why : parley_error_text(error));
    return parley_error_status(error);
}

bool say_in_place(const struct settings *settings)
{
    return settings_wants_progress(settings) && written_as == FORMAT_TEXT && isatty(STDERR_FILENO);
}

unsigned say_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0) return 80;
    return size.ws_col;
}

unsigned say_rows(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0) return 24;
    return size.ws_row;
}

bool say_color(const struct settings *settings, int fd)
{
    if (settings->color == WHEN_AUTO) return !settings->no_color && isatty(fd);
    return settings->color == WHEN_ALWAYS;
}
