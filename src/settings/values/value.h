/* value.h: a text becomes the typed value of an option (inside of settings, not for others).
 *
 * Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_VALUE_H
#define PARLEY_SETTINGS_VALUE_H

#include "settings/settings.h"

/* Judges `text` as a value of `id` and, where settings is not NULL, stores it in its field. A text
 * kind borrows `text`, which must then live as long as the settings.
 * PARLEY_EUSAGE or PARLEY_ENOMEM with the clause that follows the quoted value. */
PARLEY_CHECK int value_parse(enum option_id id, const char *text, struct settings *settings,
                             char clause[SETTINGS_WHY_BYTES]);

/* The place of `word` among the valid ones. PARLEY_EUSAGE with a clause that lists them, and says
 * what is amiss; is_none: "is not a topology". */
PARLEY_CHECK int value_word(const char *word, const char *const *valid, const char *is_none,
                            int *place, char clause[SETTINGS_WHY_BYTES]);

/* Frees what the field owns and leaves it empty. */
void value_clear(enum option_id id, struct settings *settings);

#endif
