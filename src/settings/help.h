/* help.h: help, version and shell completion, made from the table of options.
 *
 * Each returns a string to be freed by the caller, NULL when out of memory. Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_HELP_H
#define PARLEY_SETTINGS_HELP_H

#include "settings/options.h"

/* All verbs (topic -1) or the options of one, at most 80 columns wide. */
char *help_text(int topic);

/* "parley 0.1.0". */
char *help_version(void);

/* shell: "bash", "zsh" or "fish"; NULL also for any other. */
char *help_completion(const char *shell);

#endif
