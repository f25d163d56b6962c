/* manual.c: the same tables as a manual page, in the macros of man(7). */
#include <string.h>

#include "report/text.h"
#include "settings/help.h"

enum { MANUAL_BYTES_MAX = 1 << 17 };

/* Whose options most are. */
#define USUAL (VERB_BIT(VERB_RUN) | VERB_BIT(VERB_NODE) | VERB_BIT(VERB_SIM) | VERB_BIT(VERB_CHECK))

/* Words as they stand. Bare, a backslash is an escape, and -'`^~ become typographic characters; a
 * dot that begins a line makes it a request, a blank breaks it. */
static void add_words(struct text *text, const char *words, size_t length)
{
    static const char special[] = "\\-'`^~";
    static const char *const names[] = {"e", "-", "(aq", "(ga", "(ha", "(ti"};
    for (size_t i = 0; i < length; i++) {
        bool starts = text->length > 0 && text->bytes[text->length - 1] == '\n';
        const char *found = strchr(special, words[i]);
        if (starts && words[i] == ' ') continue;
        if (starts && words[i] == '.') text_add(text, "\\&");
        if (found)
            text_add(text, "\\%s", names[found - special]);
        else
            text_add(text, "%c", words[i]);
    }
}

static void add(struct text *text, const char *words)
{
    add_words(text, words, strlen(words));
}

/* In bold (B) or italics (I). */
static void add_in(struct text *text, char font, const char *words)
{
    text_add(text, "\\f%c", font);
    add(text, words);
    text_add(text, "\\fR");
}

static void add_verb(struct text *text, const struct verb_info *info)
{
    text_add(text, ".TP\n");
    add_in(text, 'B', info->name);
    text_add(text, info->operands[0] ? " " : "");
    add(text, info->operands);
    text_add(text, "\n");
    add(text, info->help);
    text_add(text, ".\n");
    if (info->more) add(text, info->more);
    if (info->more) text_add(text, "\n");
}

static void add_option(struct text *text, enum option_id id)
{
    const struct option_info *info = option_info(id);
    const char letter[3] = {'-', info->letter, '\0'};
    char verbs[VERBS_TEXT_BYTES];
    text_add(text, ".TP\n");
    if (info->letter) add_in(text, 'B', letter);
    text_add(text, "%s\\fB\\-\\-", info->letter ? ", " : "");
    add(text, info->name);
    text_add(text, "\\fR%s", info->metavar ? " " : "");
    if (info->metavar) add_in(text, 'I', info->metavar);
    text_add(text, "\n");
    if (info->verbs != USUAL && info->group != GROUP_GENERAL)
        text_add(text, "(%s) ", verbs_text(info->verbs, verbs));
    add(text, info->help);
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        const char *help = option_help(id, (enum verb)verb);
        if (help == info->help || verb == VERB_CHECK) continue; /* which is as node */
        text_add(text, ". Of %s: ", verb_info((enum verb)verb)->name);
        add(text, help);
    }
    for (int i = 0; info->valid[i]; i++) {
        text_add(text, "%s", i ? ", " : ". One of ");
        add(text, info->valid[i]);
        add_in(text, 'I', option_operand(info->valid[i]));
    }
    if (info->fallback) {
        text_add(text, " (default ");
        add(text, info->fallback);
        if (info->fallback_verbs != info->verbs)
            text_add(text, " of %s", verbs_text(info->fallback_verbs, verbs));
        text_add(text, ")");
    }
    text_add(text, ".\n");
}

static void add_options(struct text *text)
{
    for (int group = 0; group < GROUP_COUNT; group++) {
        text_add(text, ".SS ");
        add(text, option_group_text((enum option_group)group));
        text_add(text, "\n");
        for (int id = 0; id < OPTION_ID_COUNT; id++) {
            const struct option_info *info = option_info((enum option_id)id);
            if ((int)info->group == group) add_option(text, (enum option_id)id);
        }
    }
}

/* "0 well; 1 failed": an entry each. */
static void add_statuses(struct text *text)
{
    for (const char *at = help_statuses; *at; at += strspn(at, "; ")) {
        size_t length = strcspn(at, ";"), number = strcspn(at, " ");
        text_add(text, ".TP\n.B %.*s\n", (int)number, at);
        add_words(text, at + number + 1, length - number - 1);
        text_add(text, ".\n");
        at += length;
    }
}

static void add_example(struct text *text, const char *line, const char *does)
{
    text_add(text, ".TP\n");
    add_in(text, 'B', line);
    text_add(text, "\n%s\n", does);
}

char *help_manual(void)
{
    struct text text;
    text_init(&text, MANUAL_BYTES_MAX);
    text_add(&text,
             ".TH PARLEY 1 \"\" \"parley %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\nparley \\- ",
             PARLEY_VERSION);
    add(&text, help_parley);
    text_add(&text,
             "\n.SH SYNOPSIS\n"
             "\\fBparley\\fR \\fIverb\\fR [\\fIoperand\\fR ...] [\\fIoption\\fR ...]\n"
             ".SH DESCRIPTION\n"
             "Each node holds a model, trains it on its share of the data, and now and then\n"
             "averages its parameters with a neighbour drawn at random, over TCP.\n"
             "There is no server.\n"
             "Any node may die at any time: the others train on, and at the end all that live\n"
             "hold one model, bit for bit.\n"
             ".SH VERBS\n");
    for (int verb = 0; verb < VERB_COUNT; verb++)
        add_verb(&text, verb_info((enum verb)verb));
    text_add(&text,
             ".SH OPTIONS\n"
             "They are of run, node, sim and check where nothing else is named, \\-\\-help and\n"
             "\\-\\-version of all verbs.\n");
    add(&text, help_order);
    text_add(&text, "\n");
    add_options(&text);
    text_add(&text, ".SH EXIT STATUS\n");
    add_statuses(&text);
    text_add(&text, ".SH EXAMPLES\n");
    add_example(&text, "parley run", "Four nodes here, on built-in data, in a few seconds.");
    add_example(&text, "parley run --epochs 20 --fault kill:1@50%", "One of them dies half way.");
    add_example(&text, "parley node --name a --listen 127.0.0.1:7000",
                "A cluster begins; say its address at another node:");
    add_example(&text, "parley node --name b --join 127.0.0.1:7000", "Joins it.");
    add_example(&text, "parley sim --nodes 64 --latency 5ms --fault kill:30%@50%",
                "The same with many nodes, in virtual time.");
    add_example(&text, "parley model verify parley-model.safetensors",
                "Whether the model is what the nodes agreed on.");
    return text_take(&text);
}
