/* contenders.c: texts cut at each `or`, names at commas, settings at blanks. */
#include "settings/contenders.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "settings/nearest.h"
#include "settings/settings.h"
#include "settings/values/value.h"

/* ---- A contender's own settings -------------------------------------------------------------- */

/* What is compared is how to train and how to average, and not other tasks. */
static bool may_be_own(enum option_id id)
{
    enum option_group group = option_info(id)->group;
    return (group == GROUP_TRAINING || group == GROUP_GOSSIP) && id != OPTION_ID_STRATEGY &&
           id != OPTION_ID_MODEL && id != OPTION_ID_SEED;
}

static int unknown_setting(const char *name, const char *quoted, char *clause)
{
    char word[TEXT_QUOTED_BYTES], hint[NEAREST_CLAUSE_BYTES];
    struct nearest nearest = nearest_start(name);
    if (option_find(name, VERB_SIM) < OPTION_ID_COUNT)
        return sweep_refuse(clause, "has %s, but --%s is the same for all that are compared",
                            quoted, name);
    for (int id = 0; id < OPTION_ID_COUNT; id++)
        if (may_be_own((enum option_id)id))
            nearest_try(&nearest, option_info((enum option_id)id)->name);
    return sweep_refuse(clause, "has %s, and %s is not a setting%s", quoted, text_quote(word, name),
                        nearest_clause(hint, nearest_take(&nearest)));
}

/* "name=value". */
static int add_own(struct contender *contender, char *own, char *clause)
{
    char quoted[TEXT_QUOTED_BYTES], inner[SETTINGS_WHY_BYTES];
    text_quote(quoted, own);
    char *equals = strchr(own, '=');
    if (!equals)
        return sweep_refuse(clause, "has %s behind a name, which is no name=value", quoted);
    *equals = '\0';
    enum option_id id = option_find(own, VERB_SIM);
    if (id == OPTION_ID_COUNT || !may_be_own(id)) return unknown_setting(own, quoted, clause);
    bool single = contender->strategy < 0;
    bool heeds =
        single ? option_info(id)->group == GROUP_TRAINING : settings_heeds(contender->strategy, id);
    if (!heeds)
        return sweep_refuse(clause, "has %s, which changes nothing for %s", quoted,
                            single ? "a single node" : contender->name);
    if (contender->own[id]) return sweep_refuse(clause, "has %s twice for one contender", own);
    int error = value_parse(id, equals + 1, NULL, inner);
    if (error) return sweep_refuse(clause, "has %s, which %.700s", quoted, inner);
    contender->own[id] = equals + 1;
    return 0;
}

/* ---- Contenders ------------------------------------------------------------------------------ */

static int unknown_strategy(const char *word, char *clause)
{
    const char *const *valid = option_info(OPTION_ID_STRATEGY)->valid;
    const char *words[sizeof option_info(0)->valid / sizeof *valid + 2];
    char quoted[TEXT_QUOTED_BYTES], inner[SETTINGS_WHY_BYTES];
    int count = 0;
    for (; valid[count]; count++)
        words[count] = valid[count];
    words[count++] = "single";
    words[count++] = "all";
    words[count] = NULL;
    int error = value_word(word, words, "is not a strategy", &count, inner);
    return error ? sweep_refuse(clause, "has %s, which %.700s", text_quote(quoted, word), inner)
                 : 0;
}

static void close_one(struct contender *contender)
{
    free(contender->text);
    free(contender->name);
    *contender = (struct contender){0};
}

static bool alike(const struct contender *a, const struct contender *b)
{
    bool same = strcmp(a->name, b->name) == 0;
    for (int id = 0; same && id < OPTION_ID_COUNT; id++)
        same = !a->own[id] == !b->own[id] && (!a->own[id] || strcmp(a->own[id], b->own[id]) == 0);
    return same;
}

/* Ends the word, and gives the one behind it, or NULL. */
static char *next_word(char *word)
{
    word += strcspn(word, " ");
    if (*word) *word++ = '\0';
    word += strspn(word, " ");
    return *word ? word : NULL;
}

/* Cuts a contender's text: a name, and its own settings. */
static int cut(struct contender *contender, char *clause)
{
    char inner[SETTINGS_WHY_BYTES];
    struct settings of_one = {0};
    const char *name = contender->name;
    char *own = next_word(contender->name), *next;
    bool single = strcmp(name, "single") == 0;
    if (own && strcmp(name, "all") == 0)
        return sweep_refuse(clause, "has settings for all; give them as options (--lr 0.1)");
    if (!single && value_parse(OPTION_ID_STRATEGY, name, &of_one, inner))
        return unknown_strategy(name, clause);
    int error = 0;
    contender->strategy = single ? -1 : of_one.strategy;
    for (; own && !error; own = next) {
        next = next_word(own);
        error = add_own(contender, own, clause);
    }
    return error;
}

/* Leaves out the blanks around; returns the length of the rest. */
static size_t trim(const char **text, size_t length)
{
    for (; length > 0 && **text == ' '; length--)
        ++*text;
    while (length > 0 && (*text)[length - 1] == ' ')
        length--;
    return length;
}

static int add(struct contenders *contenders, const char *text, size_t length, char *clause)
{
    char quoted[TEXT_QUOTED_BYTES];
    length = trim(&text, length);
    if (length == 0) return sweep_refuse(clause, "has an empty name in its list");
    struct contender *grown =
        realloc(contenders->list, (contenders->count + 1) * sizeof *contenders->list);
    if (!grown) return units_lack_memory(clause);
    contenders->list = grown;
    struct contender one = {.text = strndup(text, length), .name = strndup(text, length)};
    int error = one.text && one.name ? cut(&one, clause) : units_lack_memory(clause);
    bool single = !error && one.strategy < 0;
    bool twice = single && contenders->single.text;
    for (size_t i = 0; !error && !twice && i < contenders->count; i++)
        twice = alike(&grown[i], &one);
    if (twice) error = sweep_refuse(clause, "has %s twice", text_quote(quoted, one.text));
    if (error)
        close_one(&one);
    else if (single)
        contenders->single = one;
    else
        grown[contenders->count++] = one;
    return error;
}

/* Each with some argument where it needs one. */
static int add_all(struct contenders *contenders, char *clause)
{
    const char *const *valid = option_info(OPTION_ID_STRATEGY)->valid;
    int error = 0;
    for (int i = 0; valid[i] && !error; i++) {
        char word[64];
        bool open = valid[i][strlen(valid[i]) - 1] == ':';
        snprintf(word, sizeof word, "%s%s", valid[i], open ? "4" : "");
        error = add(contenders, word, strlen(word), clause);
    }
    return error;
}

static int add_name(struct contenders *contenders, const char *text, size_t length, char *clause)
{
    length = trim(&text, length);
    bool all = length == 3 && strncmp(text, "all", 3) == 0;
    return all ? add_all(contenders, clause) : add(contenders, text, length, clause);
}

/* Names between commas: what is left of a text up to `or`. */
static int add_names(struct contenders *contenders, const char *text, size_t length, char *clause)
{
    for (const char *end = text + length;; text++) {
        size_t comma = strcspn(text, ",");
        size_t name = comma < (size_t)(end - text) ? comma : (size_t)(end - text);
        int error = add_name(contenders, text, name, clause);
        text += name;
        if (error || text == end) return error;
    }
}

int contenders_parse(struct contenders *contenders, const char *text,
                     char clause[SWEEP_CLAUSE_BYTES])
{
    int error = 0;
    *contenders = (struct contenders){0};
    for (const char *next; !error && text; text = next) {
        const char *end = strstr(text, " or ");
        next = end ? end + 4 : NULL;
        size_t length = end ? (size_t)(end - text) : strlen(text);
        bool settings = memchr(text, '=', length) != NULL;
        error = settings ? add(contenders, text, length, clause)
                         : add_names(contenders, text, length, clause);
    }
    if (!error && !contenders->single.text) error = add(contenders, "single", 6, clause);
    if (error) contenders_close(contenders);
    return error;
}

void contenders_close(struct contenders *contenders)
{
    for (size_t i = 0; i < contenders->count; i++)
        close_one(&contenders->list[i]);
    close_one(&contenders->single);
    free(contenders->list);
    *contenders = (struct contenders){0};
}
