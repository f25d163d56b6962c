/* writer.c: what is said while nobody reads.
 *
 *   - who puts lines into a full pipe goes on; what is read in the end is whole, in order, and
 * tells at its place how many lines were lost
 *   - errors have room where other lines have none any more
 *   - a short wait ends though nobody reads
 *   - a file that takes no more for a while, of another process' O_NONBLOCK or a full disk, has all
 * of it in the end
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <uv.h>

#include "cli/writer.h"

enum { PUTTERS = 3, LINES = 40000, BYTES = 64, KEPT = WRITER_BYTES / 48 };

static struct writer *writer;
static FILE *reads;

static void check(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "broken: %s\n", what);
    _exit(1); /* what waits for a reader stays */
}

static char *lost_text(void *context, uint64_t lines)
{
    char *text = malloc(BYTES);
    if (text) snprintf(text, BYTES, "%s %" PRIu64 "\n", (const char *)context, lines);
    return text;
}

/* "NUMBER of WHO" and dots, up to 48 bytes. */
static void put_all(void *argument)
{
    char line[BYTES];
    for (unsigned i = 0; i < LINES; i++) {
        int at = snprintf(line, sizeof line, "%u of %u ", i, *(unsigned *)argument);
        snprintf(line + at, sizeof line - (size_t)at, "%.*s\n", 47 - at,
                 "................................................");
        writer_put(writer, line, 48, false);
    }
}

/* Returns how many bytes it took. */
static size_t fill_pipe(int end)
{
    size_t bytes = 0;
    fcntl(end, F_SETFL, O_NONBLOCK);
    while (write(end, "", 1) == 1)
        bytes++;
    fcntl(end, F_SETFL, 0);
    return bytes;
}

static void fill(void)
{
    uv_thread_t threads[PUTTERS];
    unsigned who[PUTTERS];
    for (unsigned i = 0; i < PUTTERS; i++) {
        who[i] = i;
        if (uv_thread_create(&threads[i], put_all, &who[i])) exit(1);
    }
    for (unsigned i = 0; i < PUTTERS; i++)
        uv_thread_join(&threads[i]);
}

/* As much as shall be kept, in order. */
static void read_kept(void)
{
    unsigned next[PUTTERS] = {0}, number, who;
    char line[BYTES];
    bool whole = true, ordered = true;
    for (uint64_t i = 0; i < KEPT && fgets(line, sizeof line, reads); i++) {
        whole = whole && strlen(line) == 48 && line[46] == '.' &&
                sscanf(line, "%u of %u ", &number, &who) == 2 && who < PUTTERS;
        if (!whole) break;
        ordered = ordered && number >= next[who];
        next[who] = number + 1;
    }
    check(whole, "lines are whole");
    check(ordered, "the lines of a thread are in order");
}

static void expect(const char *format, uint64_t count, const char *what)
{
    char line[BYTES] = "", expected[BYTES];
    snprintf(expected, sizeof expected, format, count);
    check(fgets(line, sizeof line, reads) && strcmp(line, expected) == 0, what);
}

static void put(const char *text, bool must)
{
    writer_put(writer, text, strlen(text), must);
}

static void let_files_grow(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "there is a limit");
}

/* As on a disk that is full for a while. */
static void write_to_file(void)
{
    static const char lines[] = "of two lines the first\nand the second\n";
    char read[sizeof lines + 1] = "";
    FILE *file = tmpfile();
    signal(SIGXFSZ, SIG_IGN);
    let_files_grow(5);
    if (!file || !(writer = writer_new(fileno(file), lost_text, "lost"))) exit(1);
    put(lines, false);
    writer_wait(writer);
    check(writer_is_behind(writer), "what the file does not take waits");
    let_files_grow(RLIM_INFINITY);
    check(writer_free(writer) == 0, "and is taken in the end");
    rewind(file);
    check(fread(read, 1, sizeof read, file) == sizeof lines - 1 && strcmp(read, lines) == 0,
          "whole");
    let_files_grow(5);
    if (!(writer = writer_new(fileno(file), lost_text, "lost"))) exit(1);
    put("more\n", false);
    check(writer_free(writer) == EFBIG, "or it is told why not");
    let_files_grow(RLIM_INFINITY);
    fclose(file);
}

int main(void)
{
    int ends[2];
    if (pipe(ends) || !(reads = fdopen(ends[0], "r"))) return 1;
    if (!(writer = writer_new(ends[1], lost_text, "lost"))) return 1;

    size_t before = fill_pipe(ends[1]);
    fill();
    writer_wait_briefly(writer);
    check(writer_is_behind(writer), "a short wait ends though nobody reads");
    put("short\n", false); /* would fit, and is lost with those before it */
    put("error\n", true);
    put("talk\n", false); /* has no room */
    while (before-- > 0)
        fgetc(reads);
    read_kept();
    expect("lost %" PRIu64 "\n", PUTTERS * LINES - KEPT + 1, "how many are lost, where they are");
    expect("error\n", 0, "then the error");
    writer_wait(writer);
    expect("lost %" PRIu64 "\n", 1, "what came behind the error is told of without another line");
    put("talk\n", false);
    expect("talk\n", 0, "talk has room again");
    writer_wait(writer); /* what has been read may not be crossed off yet */

    char *much = malloc(WRITER_BYTES);
    if (!much) return 1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK); /* as whoever shares it may */
    memset(much, 'x', WRITER_BYTES);
    much[WRITER_BYTES - 1] = '\n';
    writer_put(writer, much, WRITER_BYTES, false);
    bool same = true;
    for (size_t i = 0; same && i < WRITER_BYTES; i++)
        same = fgetc(reads) == much[i];
    check(same, "a line as large as all room has room, and comes whole");
    free(much);

    fclose(reads);
    signal(SIGPIPE, SIG_IGN);
    put("to nobody\n", false);
    check(writer_free(writer) == EPIPE, "that nobody reads any more is told at the end");
    close(ends[1]);
    write_to_file();
    return 0;
}
