/* say.c: talk on stderr. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static void say(const char *format, va_list arguments)
{
    char line[2048];
    vsnprintf(line, sizeof line, format, arguments);
    fprintf(stderr, "parley: %s\n", line);
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

void say_unwritten(FILE *file, const char *name)
{
    struct stat stat;
    bool pipe = !fstat(fileno(file), &stat) && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode));
    if (ferror(file) && !pipe) say_error("%s: not all of it could be written", name);
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
