/* say.c: talk on stderr.
 *
 * Several threads of a node talk. The line that stands on the terminal (say_standing) is theirs
 * all: stderr's own lock guards it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static bool stands; /* a line without its end */

static void clear(void)
{
    if (stands) fputs("\r\033[K", stderr);
    stands = false;
}

static void say(const char *format, va_list arguments)
{
    char line[2048], *longer = NULL;
    va_list again;
    va_copy(again, arguments);
    int size = vsnprintf(line, sizeof line, format, arguments) + 1;
    if (size > (int)sizeof line && (longer = malloc((size_t)size)))
        vsnprintf(longer, (size_t)size, format, again);
    va_end(again);
    flockfile(stderr);
    clear();
    fprintf(stderr, "parley: %s\n", longer ? longer : line);
    funlockfile(stderr);
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

void say_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void say_talk(const struct settings *settings, const char *format, ...)
{
    if (settings->level < LEVEL_INFO) return;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

bool say_unwritten(FILE *file, const char *flag, const char *name)
{
    struct stat stat;
    bool pipe = !fstat(fileno(file), &stat) && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode));
    if (!ferror(file) || pipe) return false;
    say_error("%s%s: not all of it could be written", flag, name);
    return true;
}

int say_failure(int error, const char *why)
{
    say_error("%s", why && why[0] ? why : parley_error_text(error));
    return parley_error_status(error);
}

bool say_progress(const struct settings *settings)
{
    if (settings->progress == WHEN_AUTO) return settings->level >= LEVEL_INFO;
    return settings->progress == WHEN_ALWAYS;
}

bool say_in_place(const struct settings *settings)
{
    return say_progress(settings) && isatty(STDERR_FILENO);
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

uint64_t say_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
