/* talk.c: see talk.h. */
#include "run/talk.h"

#include <stdarg.h>
#include <stdio.h>

static sim_talker *to; /* the lines of one process go to one place */
static int wanted;
static bool progress;

void sim_talk_open(const struct settings *settings, sim_talker *talker)
{
    to = talker;
    wanted = settings->level;
    progress = settings_wants_progress(settings);
}

static void pass(enum parley_log level, const char *format, va_list arguments)
{
    char line[8192];
    vsnprintf(line, sizeof line, format, arguments);
    to(level, line);
}

bool sim_talks(enum parley_log level)
{
    return to && (int)level <= wanted;
}

void sim_say(enum parley_log level, const char *format, ...)
{
    if (!sim_talks(level)) return;
    va_list arguments;
    va_start(arguments, format);
    pass(level, format, arguments);
    va_end(arguments);
}

int sim_blame(int error, const char *why)
{
    if (error) sim_say(PARLEY_LOG_ERROR, "%s", why[0] ? why : parley_error_text(error));
    return error;
}

bool sim_shows_progress(void)
{
    return to && progress;
}

void sim_show(const char *format, ...)
{
    if (!sim_shows_progress()) return;
    va_list arguments;
    va_start(arguments, format);
    pass(PARLEY_LOG_INFO, format, arguments);
    va_end(arguments);
}
