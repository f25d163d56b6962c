/* help.h: help, manual page, version and shell completion, made from the table of options.
 *
 * Each returns a string to be freed by the caller, NULL when out of memory. Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_HELP_H
#define PARLEY_SETTINGS_HELP_H

#include "settings/options.h"

enum { HELP_MANUAL = VERB_COUNT };

/* All verbs (topic -1) or the options of one, at most 80 columns wide; or help_manual(). */
char *help_text(int topic);

/* All of it as a page for man(1). */
char *help_manual(void);

/* "parley 0.1.0". */
char *help_version(void);

/* shell: "bash", "zsh" or "fish"; NULL also for any other. */
char *help_completion(const char *shell);

/* What both help and manual say: what parley is; statuses and what they mean, with "; " between
 * two; which of a setting's origins wins. */
extern const char help_parley[], help_statuses[], help_order[];

#endif
