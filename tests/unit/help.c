/* help.c: help, manual page and completion hold every option of the table, help in 80 columns. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "report/text.h"
#include "settings/help.h"

static void expect_narrow(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        cr_assert_leq(length, 80, "%.*s", (int)length, text);
        cr_assert(length == 0 || text[length - 1] != ' ', "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

Test(help, every_verb_shows_all_of_its_options_and_no_others_in_80_columns)
{
    /* The table, not a second list, makes the help. */
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        char *text = help_text(verb);
        expect_narrow(text);
        for (int id = 0; id < OPTION_ID_COUNT; id++) {
            const struct option_info *info = option_info((enum option_id)id);
            char start[64];
            if (option_find(info->name, (enum verb)verb) != (enum option_id)id) continue;
            snprintf(start, sizeof start, "--%s%s%s ", info->name, info->metavar ? " " : "",
                     info->metavar ? info->metavar : "");
            char *end = strrchr(start, ' ');
            if (info->metavar) *end = '\0';
            bool shown = strstr(text, start) != NULL;
            bool taken = (info->verbs & VERB_BIT(verb)) != 0 && id != OPTION_ID_VERSION;
            cr_assert_eq(shown, taken, "%s in %s", start, verb_info((enum verb)verb)->name);
        }
        free(text);
    }
}

Test(help, an_option_is_told_as_its_verb_takes_it)
{
    /* What it is to another verb stands there, and where all of them are. */
    static const struct {
        const char *words;
        unsigned verbs;
    } told[] = {{"number of nodes, n0 to n(N-1)",
                 VERB_BIT(VERB_RUN) | VERB_BIT(VERB_SIM) | VERB_BIT(VERB_TOPOLOGY)},
                {"nodes of the whole cluster", VERB_BIT(VERB_NODE) | VERB_BIT(VERB_CHECK)},
                {"training data", VERB_BIT(VERB_RUN) | VERB_BIT(VERB_NODE) | VERB_BIT(VERB_SIM) |
                                      VERB_BIT(VERB_CHECK)},
                {"what the nodes of bench run train on", VERB_BIT(VERB_BENCH)},
                {"what eval and predict try the model on", VERB_BIT(VERB_MODEL)},
                {"each node trains once N others are", VERB_BIT(VERB_RUN)}};
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        char *text = help_text(verb);
        for (size_t i = 0; i < sizeof told / sizeof *told; i++)
            cr_assert_eq(strstr(text, told[i].words) != NULL, (told[i].verbs & VERB_BIT(verb)) != 0,
                         "%s in %s", told[i].words, verb_info((enum verb)verb)->name);
        free(text);
    }
}

Test(help, the_overview_names_every_verb)
{
    /* And how to go on from there. */
    char *text = help_text(-1);
    expect_narrow(text);
    for (int verb = 0; verb < VERB_COUNT; verb++)
        cr_assert(strstr(text, verb_info((enum verb)verb)->help));
    cr_assert(strstr(text, "parley help VERB"));
    free(text);
    text = help_version();
    cr_assert_str_eq(text, "parley " PARLEY_VERSION "\n");
    free(text);
}

/* `before`, and `words` as troff takes them literally. */
static void expect_in_manual(const char *text, const char *before, const char *words)
{
    char line[1024];
    size_t length = (size_t)snprintf(line, sizeof line, "%s", before);
    for (; *words; words++) {
        const char itself[] = {*words, '\0'};
        const char *named = *words == '-' ? "\\-" : *words == '\'' ? "\\(aq" : itself;
        length += (size_t)snprintf(line + length, sizeof line - length, "%s", named);
    }
    cr_assert(strstr(text, line), "%s", line);
}

Test(help, the_manual_page_holds_all_that_help_does)
{
    /* And nothing in the tables becomes a request of troff's: all that are there are the page's. */
    char *text = help_text(HELP_MANUAL);
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        expect_in_manual(text, "\n.TP\n\\fB", verb_info((enum verb)verb)->name);
        expect_in_manual(text, "\n", verb_info((enum verb)verb)->help);
    }
    for (int id = 0; id < OPTION_ID_COUNT; id++) {
        const struct option_info *info = option_info((enum option_id)id);
        expect_in_manual(text, "\\fB\\-\\-", info->name);
        expect_in_manual(text, "", info->help);
        for (int verb = 0; verb < VERB_COUNT; verb++)
            expect_in_manual(text, "", option_help((enum option_id)id, (enum verb)verb));
    }
    expect_in_manual(text, "(node) ",
                     "where to listen; port 0 takes a free one (default 127.0.0.1:0).");
    expect_in_manual(text, "\n(run, node, sim, bench and model) ", "training data");
    expect_in_manual(text, ", dirichlet:\\fI", "ALPHA");
    expect_in_manual(text, "\n.TP\n.B 3\n", "no\nagreement.");
    static const char *const requests[] = {".TH ", ".nh\n", ".ad ", ".SH ", ".SS ", ".TP\n", ".B "};
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        bool plain = !strchr(". '\n", *line);
        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
            plain = plain || strncmp(line, requests[i], strlen(requests[i])) == 0;
        cr_assert(plain, "%.20s", line);
    }
    free(text);
}

Test(help, each_shell_gets_each_verb_and_option)
{
    /* Completion comes from the same table; an unknown shell gets nothing. */
    const char *shells[] = {"bash", "zsh", "fish"};
    for (int shell = 0; shell < 3; shell++) {
        char *text = help_completion(shells[shell]);
        for (int verb = 0; verb < VERB_COUNT; verb++)
            cr_assert(strstr(text, verb_info((enum verb)verb)->name));
        for (int id = 0; id < OPTION_ID_COUNT; id++) {
            char flag[64];
            snprintf(flag, sizeof flag, shell == 2 ? "-l %s" : "--%s",
                     option_info((enum option_id)id)->name);
            cr_assert(strstr(text, flag), "%s: %s", shells[shell], flag);
        }
        free(text);
    }
    cr_assert_null(help_completion("tcsh"));
}

Test(help, zsh_takes_a_word_apart_where_bash_has_several)
{
    /* A value behind --option=, a path behind idx:, and no blank behind the colon of what goes on.
     */
    char *text = help_completion("zsh");
    cr_assert(strstr(text, "prev=${PREFIX%%=*}\n    compset -P '*='\n"));
    cr_assert(strstr(text, "if compset -P '*:'; then\n    _files\n"));
    cr_assert(strstr(text, "compadd -S '' -- ${(M)@:#*:}\n  compadd -- ${@:#*:}\n"));
    cr_assert(strstr(text, "--codec) _parley_words fp32 "));
    free(text);
}

Test(options, the_table_is_sound)
{
    /* One option a name and verb, one a letter, help for each, words for each choice. */
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        const struct option_info *one = option_info((enum option_id)i);
        cr_assert(one->help && one->help[0] && one->verbs);
        cr_assert_eq(one->kind == OPTION_FLAG, one->metavar == NULL);
        if (one->kind == OPTION_CHOICE || one->kind == OPTION_SPEC) cr_assert(one->valid[0]);
        for (int j = i + 1; j < OPTION_ID_COUNT; j++) {
            const struct option_info *two = option_info((enum option_id)j);
            if (strcmp(one->name, two->name) == 0) cr_assert_eq(one->verbs & two->verbs, 0);
            if (one->letter) cr_assert_neq(one->letter, two->letter);
        }
    }
}

Test(text, columns_count_code_points_and_cut_with_an_ellipsis)
{
    /* Names from elsewhere may be long, wide or hostile. */
    struct text text;
    text_init(&text, 100);
    text_column(&text, "ab", 4);
    text_column(&text, "ab", -4);
    text_column(&text, "abcdef", 4);
    text_column(&text, "éé", 3);
    text_column(&text, "a\x1b", 2);
    char *bytes = text_take(&text);
    cr_assert_str_eq(bytes, "ab    ababc…éé a?");
    free(bytes);
}

Test(text, a_text_over_its_maximum_fails_for_good)
{
    /* The first failure sticks, and take gives NULL. */
    struct text text;
    text_init(&text, 8);
    text_add(&text, "12345678");
    cr_assert_not(text.failed);
    text_add(&text, "9");
    text_add(&text, "%s", "");
    cr_assert_null(text_take(&text));
}

Test(text, only_well_formed_utf8_without_controls_is_clean)
{
    /* RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF. */
    const char *good[] = {"", "abc", "é", "…", "\xf0\x9f\x8c\x8d"};
    const char *bad[] = {"\xff", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                         "\xc3", "a\n",      "\x7f",         "\xc2\x9b",     "\xf0\x9f\x8c"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(text_clean(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char scrubbed[8];
        cr_assert_not(text_clean(bad[i]), "%zu", i);
        plain_scrub(strcpy(scrubbed, bad[i]));
        cr_assert(text_clean(scrubbed) && strlen(scrubbed) == strlen(bad[i]), "%zu", i);
    }
    char mixed[] = "a\n\xc2\x9b é\xff…";
    plain_scrub(mixed);
    cr_assert_str_eq(mixed, "a??? é?…");
}
