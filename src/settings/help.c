/* help.c: two columns: the flag at the left, its meaning, valid words and default at the right. */
#include "settings/help.h"

#include <stdlib.h>
#include <string.h>

#include "report/text.h"

enum { WIDTH = 80, COLUMN = 28, HELP_BYTES_MAX = 1 << 16 };

/* Adds words at COLUMN, wrapped at WIDTH; the text stands at column `at`. */
static void add_wrapped(struct text *text, const char *words, size_t at)
{
    if (at >= COLUMN) {
        text_add(text, "\n");
        at = 0;
    }
    text_add(text, "%*s", (int)(COLUMN - at), "");
    at = COLUMN;
    while (*words) {
        size_t length = strcspn(words, " ");
        if (at > COLUMN && at + 1 + length > WIDTH) {
            text_add(text, "\n%*s", COLUMN, "");
            at = COLUMN;
        }
        text_add(text, "%s%.*s", at > COLUMN ? " " : "", (int)length, words);
        at += length + (at > COLUMN);
        words += length + strspn(words + length, " ");
    }
    text_add(text, "\n");
}

static void add_option(struct text *text, enum option_id id, enum verb verb)
{
    const struct option_info *info = option_info(id);
    size_t start = text->length;
    char letter[5] = {'-', info->letter, ',', ' ', '\0'};
    text_add(text, "  %s--%s%s%s", info->letter ? letter : "    ", info->name,
             info->metavar ? " " : "", info->metavar ? info->metavar : "");
    size_t at = text->length - start;
    struct text words;
    text_init(&words, HELP_BYTES_MAX);
    text_add(&words, "%s", info->help);
    for (int i = 0; info->valid[i]; i++) {
        const char *valid = info->valid[i];
        const char *more = "";
        if (strcmp(valid, "idx:") == 0) more = "DIR";
        if (strcmp(valid, "mlp:") == 0) more = "WIDTHS";
        if (strcmp(valid, "resnet:") == 0) more = "N";
        if (strcmp(valid, "dirichlet:") == 0) more = "ALPHA";
        if (strcmp(valid, "quadratic:") == 0) more = "D";
        if (strcmp(valid, "ps-ssp:") == 0) more = "S";
        if (strcmp(valid, "regular:") == 0 || strcmp(valid, "base:") == 0) more = "K";
        if (strcmp(valid, "file:") == 0) more = "PATH";
        text_add(&words, "%s%s%s", i ? ", " : ": ", valid, more);
    }
    if (info->fallback && info->fallback_verbs & VERB_BIT(verb))
        text_add(&words, " (default %s)", info->fallback);
    char *joined = text_take(&words);
    if (joined)
        add_wrapped(text, joined, at);
    else
        text->failed = true;
    free(joined);
}

static void add_verb(struct text *text, enum verb verb)
{
    const struct verb_info *info = verb_info(verb);
    text_add(text, "parley %s: %s\n\n  parley %s%s%s [options]\n", info->name, info->help,
             info->name, info->operands[0] ? " " : "", info->operands);
    if (info->more) text_add(text, "\n%s\n", info->more);
    for (int group = 0; group < GROUP_COUNT; group++) {
        bool headed = false;
        for (int i = 0; i < OPTION_ID_COUNT; i++) {
            const struct option_info *option = option_info((enum option_id)i);
            if ((int)option->group != group || !(option->verbs & VERB_BIT(verb))) continue;
            if (i == OPTION_ID_VERSION) continue;
            if (!headed) text_add(text, "\n%s\n", option_group_text((enum option_group)group));
            headed = true;
            add_option(text, (enum option_id)i, verb);
        }
    }
    if (VERB_BIT(verb) & option_info(OPTION_ID_CONFIG)->verbs)
        text_add(text, "\nA flag beats the environment (PARLEY_MIX_EVERY for --mix-every), the "
                       "environment\nbeats the file, the file beats the default.\n");
}

char *help_text(int topic)
{
    struct text text;
    text_init(&text, HELP_BYTES_MAX);
    if (topic >= 0 && topic < VERB_COUNT) {
        add_verb(&text, (enum verb)topic);
        return text_take(&text);
    }
    text_add(&text, "parley: nodes that train by gossip and end with one model, bit for bit\n\n");
    text_add(&text, "  parley run                try it: 4 nodes here, a few seconds\n"
                    "  parley VERB [options]\n\n");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        text_add(&text, "  ");
        text_column(&text, verb_info((enum verb)verb)->name, 12);
        text_add(&text, "%s\n", verb_info((enum verb)verb)->help);
    }
    text_add(&text, "\nparley help VERB shows a verb's options, parley --version the version.\n");
    return text_take(&text);
}

char *help_version(void)
{
    struct text text;
    text_init(&text, HELP_BYTES_MAX);
    text_add(&text, "parley %s\n", PARLEY_VERSION);
    return text_take(&text);
}
