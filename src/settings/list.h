/* list.h: settings as text: with value and origin, as `parley check` prints them, and as arguments
 * to be pasted. Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_LIST_H
#define PARLEY_SETTINGS_LIST_H

#include "report/text.h"
#include "settings/settings.h"

/* A line a setting that the verb takes: name, value, origin; freed by the caller, NULL when out of
 * memory. */
char *settings_list_text(const struct settings *settings);

/* Adds " --name=value" as one word of a shell; nothing for what was not given. */
void settings_add_argument(struct text *text, const struct settings *settings, enum option_id id);

#endif
