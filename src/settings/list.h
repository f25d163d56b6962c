/* list.h: each setting with its value and origin, as `parley check` prints them. Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_LIST_H
#define PARLEY_SETTINGS_LIST_H

#include "settings/settings.h"

/* A line a setting that the verb takes: name, value, origin; freed by the caller, NULL when out of
 * memory. */
char *settings_list_text(const struct settings *settings);

#endif
