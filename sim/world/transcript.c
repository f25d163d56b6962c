/* transcript.c: a test says which lines it expects, one below the other. */
#include <stdio.h>
#include <string.h>

#include "world/cluster.h"

struct transcript {
    const char *kinds, *next; /* next: the rest of what is expected */
    char *why;                /* a mismatch is noted here */
    size_t why_size;
    bool failed;
    void (*on_line)(const char *, void *); /* the test's own */
    void *arg;
};

/* The line without its time: past the first blank. */
static const char *past_time(const char *line)
{
    const char *blank = strchr(line, ' ');
    return blank ? blank + 1 : line;
}

/* The next of some words. */
static const char *past_word(const char *words)
{
    words += strcspn(words, " ");
    return words + strspn(words, " ");
}

/* Whether what `word` begins with is one of them. */
static bool is_among(const char *word, const char *words)
{
    size_t length = strcspn(word, " ");
    for (; *words; words = past_word(words))
        if (strcspn(words, " ") == length && strncmp(words, word, length) == 0) return true;
    return false;
}

/* "0.100s n0 phase stop" has the kind phase. */
static bool counts(const char *kinds, const char *line)
{
    return is_among(past_time(past_time(line)), kinds);
}

/* Lines of such a kind would never come. */
static int check_kinds(const char *kinds, char *why, size_t why_size)
{
    for (kinds += strspn(kinds, " "); *kinds; kinds = past_word(kinds)) {
        if (is_among(kinds, "phase member finished log")) continue;
        snprintf(why, why_size, "kinds: \"%.*s\" is none of phase, member, finished and log",
                 (int)strcspn(kinds, " "), kinds);
        return PARLEY_EUSAGE;
    }
    return 0;
}

/* Whether the line is as expected; a time that is left out is any. "..." ends a line early. */
static bool fits(const char *expected, size_t length, const char *line)
{
    size_t digits = strspn(expected, "0123456789.");
    bool timed = digits > 0 && expected[digits] == 's';
    const char *got = timed ? line : past_time(line);
    if (length >= 3 && strncmp(expected + length - 3, "...", 3) == 0)
        return strncmp(expected, got, length - 3) == 0;
    return strncmp(expected, got, length) == 0 && got[length] == '\0';
}

/* Blanks and newlines before a line are the test's layout. */
static const char *to_text(const char *at)
{
    return at + strspn(at, " \n");
}

static void on_line(const char *line, void *arg)
{
    struct transcript *t = arg;
    if (t->on_line) t->on_line(line, t->arg);
    if (t->failed || !*t->next || !counts(t->kinds, line)) return;
    size_t length = strcspn(t->next, "\n");
    if (fits(t->next, length, line)) {
        t->next = to_text(t->next + length);
        return;
    }
    t->failed = true;
    snprintf(t->why, t->why_size, "expected: %.*s\n     got: %s", (int)length, t->next, line);
}

int parley_sim_expect(struct parley_sim *sim, const char *kinds, const char *transcript,
                      uint64_t limit_us, char *why, size_t why_size)
{
    struct transcript t = {kinds,        to_text(transcript), why, why_size, false,
                           sim->on_line, sim->on_line_arg};
    uint64_t end_us = sim_later_us(sim, limit_us);
    int error = check_kinds(kinds, why, why_size);
    if (error) return error;
    sim->on_line = on_line;
    sim->on_line_arg = &t;
    if (why_size > 0) why[0] = '\0';
    while (!t.failed && *t.next && sim_queue_next_us(&sim->queue) <= end_us && parley_sim_step(sim))
        ;
    sim->on_line = t.on_line;
    sim->on_line_arg = t.arg;
    if (sim->error) {
        snprintf(why, why_size, "%s", sim->error_text);
        return sim->error;
    }
    if (*t.next && !t.failed) {
        snprintf(why, why_size, "expected: %.*s\n     got: nothing until " SIM_SECONDS "s",
                 (int)strcspn(t.next, "\n"), t.next, SIM_SECONDS_OF(end_us));
        t.failed = true;
    }
    return t.failed ? PARLEY_ENO_AGREEMENT : 0;
}
