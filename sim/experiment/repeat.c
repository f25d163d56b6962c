/* repeat.c: see repeat.h. */
#include "experiment/repeat.h"

#include "report/text.h"
#include "settings/fallback.h"
#include "settings/judge.h"
#include "settings/list.h"

enum { BYTES_MAX = 1 << 20 };

/* Whether it changes a result: not where results go, nor how they are watched or computed. */
static bool counts(enum option_id id)
{
    enum option_group group = option_info(id)->group;
    return option_is_setting(id) && group != GROUP_WATCHING && group != GROUP_STATE &&
           id != OPTION_ID_THREADS;
}

static bool given(const struct settings *settings, enum option_id id)
{
    return counts(id) && settings->values[id].origin > ORIGIN_DEFAULT;
}

/* Of several strategies each may have its own: a file that gave them one would make another run.
 * What nothing heeds it would refuse. */
static bool default_holds(const struct settings *settings, enum option_id id)
{
    if (!settings_optimizer_heeds(settings->optimizer, id)) return false;
    if (id == OPTION_ID_EVAL_EVERY && settings->accuracy <= 0) return false;
    if (judge_is_of_several(settings)) return !fallback_varies(id);
    return settings_heeds(settings->strategy, id);
}

char *repeat_line(const struct settings *settings)
{
    struct text text;
    text_init(&text, BYTES_MAX);
    text_add(&text, "parley %s", verb_info(settings->verb)->name);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        if (counts(id)) settings_add_argument(&text, settings, id);
    }
    return text_take(&text);
}

/* Single quotes keep every character but themselves. */
static void add_for_yaml(struct text *text, const char *value)
{
    text_add(text, "'");
    for (; *value; value++)
        text_add(text, *value == '\'' ? "''" : "%c", *value);
    text_add(text, "'\n");
}

char *repeat_file(const struct settings *settings)
{
    struct text text;
    text_init(&text, BYTES_MAX);
    text_add(&text, "# parley %s: parley %s -c FILE\n", PARLEY_VERSION,
             verb_info(settings->verb)->name);
    for (int given_now = 1; given_now >= 0; given_now--)
        for (int i = 0; i < OPTION_ID_COUNT; i++) {
            enum option_id id = (enum option_id)i;
            const char *value = settings->values[i].text;
            if (!counts(id) || !value || given(settings, id) != given_now) continue;
            if (!given_now && !default_holds(settings, id)) continue;
            text_add(&text, "%s%s: ", given_now ? "" : "# ", option_info(id)->name);
            add_for_yaml(&text, value);
        }
    return text_take(&text);
}
