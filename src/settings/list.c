/* list.c: see list.h. */
#include "settings/list.h"

#include <stdio.h>
#include <string.h>

/* Three columns in the order of the table. */
char *settings_list_text(const struct settings *settings)
{
    struct text text;
    text_init(&text, 1 << 22);
    for (int i = 0; i < OPTION_ID_COUNT; i++) {
        enum option_id id = (enum option_id)i;
        const struct settings_value *value = &settings->values[i];
        char origin[SETTINGS_WHY_BYTES];
        if (!option_is_setting(id) && id != OPTION_ID_CONFIG) continue;
        if (!(option_info(id)->verbs & VERB_BIT(settings->verb))) continue;
        text_column(&text, option_info(id)->name, 17);
        const char *shown = value->text ? value->text : "-";
        int width = (int)text_width(shown);
        text_column(&text, shown, width > 30 ? width : 30);
        text_add(&text, "  %s\n", settings_origin_text(settings, id, origin));
    }
    return text_take(&text);
}

void settings_add_argument(struct text *text, const struct settings *settings, enum option_id id)
{
    const char *name = option_info(id)->name, *value = settings->values[id].text;
    if (settings->values[id].origin <= ORIGIN_DEFAULT) return;
    if (!option_info(id)->metavar) {
        if (strcmp(value, "true") == 0) text_add(text, " --%s", name);
        return;
    }
    char flag[64];
    snprintf(flag, sizeof flag, "--%s=", name);
    text_add(text, " ");
    text_word(text, flag, value);
}
