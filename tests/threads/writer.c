/* writer.c: what is said while nobody reads.
 *
 *   - who puts lines into a full pipe goes on; what is read in the end is whole, in order, and
 * tells at its place how many lines were lost
 *   - errors have room where other lines have none any more
 *   - a short wait ends though nobody reads
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "cli/writer.h"

enum { PUTTERS = 3, LINES = 40000, BYTES = 64 };

static struct writer *writer;
static FILE *reads;
static uv_mutex_t lock; /* over these: who puts, counts */
static uint64_t kept, lost;

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
        bool fits = writer_put(writer, line, 48, false);
        uv_mutex_lock(&lock);
        kept += fits;
        lost += !fits;
        uv_mutex_unlock(&lock);
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

/* All that was kept, in order. */
static void read_kept(void)
{
    unsigned next[PUTTERS] = {0}, number, who;
    char line[BYTES];
    bool whole = true, ordered = true;
    for (uint64_t i = 0; i < kept && fgets(line, sizeof line, reads); i++) {
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

static bool put(const char *text, bool must)
{
    return writer_put(writer, text, strlen(text), must);
}

int main(void)
{
    int ends[2];
    if (pipe(ends) || uv_mutex_init(&lock)) return 1;
    FILE *writes = fdopen(ends[1], "w");
    reads = fdopen(ends[0], "r");
    if (!writes || !reads || !(writer = writer_new(writes, lost_text, "lost"))) return 1;

    size_t before = fill_pipe(ends[1]);
    fill();
    check(kept == WRITER_BYTES / 48 && kept + lost == PUTTERS * LINES, "as much waits as shall");
    writer_wait_briefly(writer);
    check(writer_is_behind(writer), "a short wait ends though nobody reads");
    check(!put("short\n", false), "a line that would fit is lost with those before it");
    check(put("error\n", true), "an error has room");
    check(!put("talk\n", false), "talk has none");
    while (before-- > 0)
        fgetc(reads);
    read_kept();
    expect("lost %" PRIu64 "\n", lost + 1, "how many are lost, where they are");
    expect("error\n", 0, "then the error");
    writer_wait(writer);
    expect("lost %" PRIu64 "\n", 1, "what came behind the error is told of without another line");
    check(put("talk\n", false), "talk has room again");
    expect("talk\n", 0, "and comes");
    writer_wait(writer); /* what has been read may not be crossed off yet */

    char *much = malloc(WRITER_BYTES);
    if (!much) return 1;
    memset(much, 'x', WRITER_BYTES);
    much[WRITER_BYTES - 1] = '\n';
    check(writer_put(writer, much, WRITER_BYTES, false), "a line as large as all room has room");
    bool same = true;
    for (size_t i = 0; same && i < WRITER_BYTES; i++)
        same = fgetc(reads) == much[i];
    check(same, "and comes whole");
    free(much);

    fclose(reads);
    put("to nobody\n", false);
    writer_free(writer);
    fclose(writes);
    uv_mutex_destroy(&lock);
    return 0;
}
