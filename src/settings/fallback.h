/* fallback.h: what a setting is where nothing is said. Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_FALLBACK_H
#define PARLEY_SETTINGS_FALLBACK_H

#include "settings/settings.h"

enum { FALLBACK_BYTES = 16 };

/* Whether some strategies have a default of their own for it. */
bool fallback_varies(enum option_id id);

/* The table's, or what the strategy is meant for; text[] may be used to hold it. NULL: the verb has
 * none. Strategy and optimizer are settled, and so is what stands before `id` in the table. */
const char *fallback_of(const struct settings *settings, enum option_id id,
                        char text[FALLBACK_BYTES]);

#endif
