/* say.c: talk on stderr.
 *
 * Several threads of a node talk. The line that stands on the terminal (say_standing) is theirs
 * all. Between say_start() and say_end() a thread of its own writes, and none of them waits for who
 * reads stderr.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "report/lines.h"
#include "report/summary.h"
#include "report/text.h"
#include "writer.h"

#define CLEAR "\r\033[K"

static enum parley_log wanted;
static enum settings_format written_as;
static struct writer *writer; /* NULL: straight to stderr */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool stands; /* a line without its end; guarded by the lock */

void say_open(const struct settings *settings)
{
    wanted = (enum parley_log)settings->level;
    written_as = (enum settings_format)settings->log_format;
}

static void emit(const char *text, size_t size, bool must)
{
    if (writer)
        writer_put(writer, text, size, must);
    else
        fwrite(text, 1, size, stderr);
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
    char line[2304], *longer = NULL;
    char *json = written_as == FORMAT_JSON ? as_json(level, text) : NULL;
    const char *end = json ? "" : "\n";
    if (json) {
        before = "";
        text = json;
    }
    pthread_mutex_lock(&lock);
    const char *clear = stands ? CLEAR : "";
    size_t size = (size_t)snprintf(line, sizeof line, "%s%s%s%s", clear, before, text, end);
    if (size >= sizeof line && (longer = malloc(size + 1)))
        snprintf(longer, size + 1, "%s%s%s%s", clear, before, text, end);
    else if (size >= sizeof line)
        line[(size = sizeof line - 1) - 1] = '\n'; /* out of memory: what fits */
    emit(longer ? longer : line, size, level == PARLEY_LOG_ERROR);
    stands = false;
    pthread_mutex_unlock(&lock);
    free(longer);
    free(json);
}

static char *lost_text(void *unused, uint64_t lines)
{
    char text[128], *line = NULL;
    (void)unused;
    snprintf(text, sizeof text, "nobody read stderr for long: %" PRIu64 " %s lost here", lines,
             lines == 1 ? "line is" : "lines are");
    if (written_as == FORMAT_JSON) return as_json(PARLEY_LOG_WARN, text);
    size_t size = strlen(text) + sizeof "parley: \n";
    if ((line = malloc(size))) snprintf(line, size, "parley: %s\n", text);
    return line;
}

int say_start(void)
{
    writer = writer_new(STDERR_FILENO, lost_text, NULL);
    return writer ? 0 : say_failure(PARLEY_EFAIL, WRITER_NONE);
}

void say_end(void)
{
    writer_free(writer);
    writer = NULL;
}

void say_summary(const struct summary *summary)
{
    char *text = summary_text(summary), out[SUMMARY_REMARK_BYTES];
    if (writer) writer_wait(writer);
    if (text) fputs(text, stdout);
    fflush(stdout);
    free(text);
    const char *remark = summary_remark(summary, out);
    if (remark) say(PARLEY_LOG_WARN, "%s", remark);
}

void say_briefly(struct writer *beside)
{
    if (writer) writer_wait_briefly(writer);
    if (beside) writer_wait_briefly(beside);
}

void say_exit(struct writer *beside, int status)
{
    say_briefly(beside);
    _exit(status);
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
    char text[1024];
    unsigned columns = say_columns(STDERR_FILENO);
    if (say_is_behind()) return;
    /* Short of what a terminal shows of Ctrl-C behind it. */
    int size = snprintf(text, sizeof text, CLEAR "%.*s",
                        (int)text_fit(line, columns > 3 ? columns - 3 : 1), line);
    pthread_mutex_lock(&lock);
    emit(text, size < (int)sizeof text ? (size_t)size : sizeof text - 1, false);
    stands = true;
    pthread_mutex_unlock(&lock);
}

void say_clear(void)
{
    pthread_mutex_lock(&lock);
    if (stands) emit(CLEAR, strlen(CLEAR), false);
    stands = false;
    pthread_mutex_unlock(&lock);
}

void say_drawn(const char *text)
{
    pthread_mutex_lock(&lock);
    emit(text, strlen(text), false);
    pthread_mutex_unlock(&lock);
}

bool say_is_behind(void)
{
    return writer && writer_is_behind(writer);
}

bool say_unwritten(void)
{
    struct pollfd reader = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int cause = fflush(stdout) == EOF ? errno : 0;
    bool gone = poll(&reader, 1, 0) > 0 && reader.revents & (POLLERR | POLLHUP);
    if (!ferror(stdout) || gone) return false;
    say(PARLEY_LOG_ERROR, "stdout: %s", cause ? strerror(cause) : "not all of it could be written");
    return true;
}

int say_failure(int error, const char *why)
{
    say(PARLEY_LOG_ERROR, "%s", why && why[0] ? why : parley_error_text(error));
    return parley_error_status(error);
}

bool say_redraws(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && !(term && strcmp(term, "dumb") == 0);
}

bool say_in_place(const struct settings *settings)
{
    return settings_wants_progress(settings) && written_as == FORMAT_TEXT &&
           say_redraws(STDERR_FILENO);
}

unsigned say_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col == 0) return 80;
    return size.ws_col;
}

unsigned say_rows(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_row == 0) return 24;
    return size.ws_row;
}

bool say_color(const struct settings *settings, int fd)
{
    if (settings->color == WHEN_AUTO) return !settings->no_color && say_redraws(fd);
    return settings->color == WHEN_ALWAYS;
}
