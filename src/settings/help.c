/* help.c: two columns: the flag at the left, its meaning, valid words and default at the right. */
#include "settings/help.h"

#include <stdlib.h>
#include <string.h>

#include "report/text.h"

enum { WIDTH = 80, COLUMN = 28, HELP_BYTES_MAX = 1 << 16 };

const char help_parley[] = "nodes that train by gossip and end with one model, bit for bit";

/* Its lines end where they do behind "Exit status: ". */
const char help_statuses[] =
    "0 well; 1 failed while running; 2 usage or settings; 3 no\n"
    "agreement; 4 network set-up; 5 another cluster key; 6 unlike the cluster; 7 data\n"
    "or model unreadable; 8 diverged; 9 the model was not written; 10 (sim) an\n"
    "invariant was broken; 128+N ended at once by the second signal N";
const char help_order[] =
    "A flag beats the environment (PARLEY_MIX_EVERY for --mix-every), the environment\n"
    "beats the file, the file beats the default.";

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
    text_add(&words, "%s", option_help(id, verb));
    if (info->valid[0]) text_add(&words, ". One of ");
    option_add_words(&words, info->valid);
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
    if (VERB_BIT(verb) & option_info(OPTION_ID_CONFIG)->verbs) text_add(text, "\n%s\n", help_order);
}

char *help_text(int topic)
{
    struct text text;
    if (topic == HELP_MANUAL) return help_manual();
    text_init(&text, HELP_BYTES_MAX);
    if (topic >= 0 && topic < VERB_COUNT) {
        add_verb(&text, (enum verb)topic);
        return text_take(&text);
    }
    text_add(&text, "parley: %s\n\n", help_parley);
    text_add(&text, "  parley run                try it: 4 nodes here, a few seconds\n"
                    "  parley VERB [options]\n\n");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        text_add(&text, "  ");
        text_column(&text, verb_info((enum verb)verb)->name, 12);
        text_add(&text, "%s\n", verb_info((enum verb)verb)->help);
    }
    text_add(&text,
             "\nparley help VERB shows a verb's options, parley --version the version.\n\n"
             "Exit status: %s.\n",
             help_statuses);
    return text_take(&text);
}

char *help_version(void)
{
    struct text text;
    text_init(&text, HELP_BYTES_MAX);
    text_add(&text, "parley %s\n", PARLEY_VERSION);
    return text_take(&text);
}
