/* list.c: three columns in the order of the table. */
#include "settings/list.h"

#include "report/text.h"

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
