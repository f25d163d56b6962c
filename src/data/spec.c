/* spec.c: see spec.h. A file may be called like an option: what there is decides. */
#include "data/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/chars.h"

enum { WINDOW = 64 };

static const struct {
    const char *prefix; /* with the colon, if more follows */
    enum spec_meaning meaning;
    const char *option; /* what may stand behind the file's name; ... */
    bool numbers;       /* ... and whether ",numbers" may; ",header=" may with csv */
    const char *valid;  /* all in words */
} formats[FORMATS] = {
    [DIGITS] = {"digits", NUMBERS, NULL, false, NULL},
    [IDX] = {"idx:", NUMBERS, NULL, false, NULL},
    [CSV] = {"csv:", NAMES, ",label=", true, "label=NAME, header=yes, header=no, numbers"},
    [LIBSVM] = {"libsvm:", NAMES, NULL, true, "numbers"},
    [NPY] = {"npy:", NUMBERS, NULL, true, "numbers"},
    [TEXT] = {"text:", CHARACTERS, ",window=", false, "window=N"},
};

struct parsing {
    struct spec *spec;
    const char *text;
    const struct source_reader *reader;
    char *why;
    size_t why_size;
};

static int refuse(const struct parsing *p, const char *what)
{
    return spec_refuse(p->text, what, p->why, p->why_size);
}

static int parse_format(const struct parsing *p)
{
    struct spec *spec = p->spec;
    *spec = (struct spec){.format = FORMATS, .window = WINDOW};
    for (int f = 0; f < FORMATS; f++) {
        const char *prefix = formats[f].prefix;
        bool open = prefix[strlen(prefix) - 1] == ':';
        if (open ? strncmp(p->text, prefix, strlen(prefix)) == 0 : strcmp(p->text, prefix) == 0)
            spec->format = (enum spec_format)f;
    }
    if (spec->format == FORMATS)
        return refuse(p, "not one of digits, idx:, csv:, libsvm:, npy:, text:");
    spec->meaning = formats[spec->format].meaning;
    const char *path = p->text + strlen(formats[spec->format].prefix);
    if (strlen(path) + SPEC_NAME_BYTES >= SPEC_PATH_BYTES) return refuse(p, "the path is too long");
    strcpy(spec->path, path);
    return 0;
}

/* Cuts the word off the path's end, unless that is how the file is called. Returns whether. */
static bool cut(const struct parsing *p, const char *word)
{
    struct spec *spec = p->spec;
    size_t length = strlen(spec->path), at = length - strlen(word);
    char path[SPEC_PATH_BYTES];
    if (length < strlen(word) || strcmp(spec->path + at, word) != 0) return false;
    strcpy(path, spec->path);
    if (spec_find_file(p->reader, path)) return false;
    spec->path[at] = 0;
    return true;
}

/* Words that stand at the path's end, in any order. */
static void cut_words(const struct parsing *p)
{
    struct spec *spec = p->spec;
    for (;;) {
        if (formats[spec->format].numbers && cut(p, ",numbers"))
            spec->numbers = true;
        else if (spec->format == CSV && cut(p, ",header=no"))
            spec->header = ROWS_HEADER_NO;
        else if (spec->format == CSV && cut(p, ",header=yes"))
            spec->header = ROWS_HEADER_YES;
        else
            return;
    }
}

/* Cuts off the last of the format's own option, to the path's end. */
static int cut_option(const struct parsing *p)
{
    struct spec *spec = p->spec;
    const char *option = formats[spec->format].option;
    for (char *at = option ? strstr(spec->path, option) : NULL; at; at = strstr(at + 1, option))
        spec->option = at;
    if (!spec->option) return 0;
    *spec->option = 0;
    spec->option += strlen(option);
    if (spec->option[0] == 0) return refuse(p, "nothing follows the last \"=\"");
    if (spec->format != TEXT) return 0;
    char *end;
    unsigned long window = strtoul(spec->option, &end, 10);
    spec->window = (uint32_t)window;
    if (spec->option[0] >= '0' && spec->option[0] <= '9' && *end == 0 && window >= 1 &&
        window <= CHARS_WINDOW_MAX)
        return 0;
    return refuse(p, "a window is a number of characters from 1 to 65536");
}

/* What stands behind a file's name and is none of its options. */
static int check_rest(const struct parsing *p)
{
    const struct spec *spec = p->spec;
    const char *comma = strrchr(spec->path, ','), *valid = formats[spec->format].valid;
    char path[SPEC_PATH_BYTES], what[160];
    strcpy(path, spec->path);
    if (!comma || !valid || spec_find_file(p->reader, path)) return 0;
    path[comma - spec->path] = 0;
    if (!spec_find_file(p->reader, path)) return 0;
    int length = (int)strcspn(comma + 1, "=");
    snprintf(what, sizeof what, "\"%.*s\" is unknown (valid behind the name: %s)",
             length < 80 ? length : 80, comma + 1, valid);
    return refuse(p, what);
}

int spec_parse(struct spec *spec, const char *text, const struct source_reader *reader, char *why,
               size_t why_size)
{
    const struct parsing p = {spec, text, reader, why, why_size};
    int error = parse_format(&p);
    if (error) return error;
    cut_words(&p);
    error = cut_option(&p);
    if (error) return error;
    cut_words(&p); /* they may stand before it, too */
    return check_rest(&p);
}

bool spec_takes_numbers(const struct spec *spec)
{
    return formats[spec->format].numbers;
}

bool spec_find_file(const struct source_reader *reader, char path[SPEC_PATH_BYTES])
{
    size_t length = strlen(path);
    if (reader->exists(path)) return true;
    if (length + 4 > SPEC_PATH_BYTES) return false;
    strcpy(path + length, ".gz");
    if (reader->exists(path)) return true;
    path[length] = 0;
    return false;
}

int spec_refuse(const char *text, const char *what, char *why, size_t why_size)
{
    snprintf(why, why_size, "data \"%.200s\": %s", text, what);
    return PARLEY_EUSAGE;
}
