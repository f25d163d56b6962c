/* repeat.h: settings written down again: as a command line and as a settings file. Thread rule:
 * pure.
 */
#ifndef PARLEY_SIM_REPEAT_H
#define PARLEY_SIM_REPEAT_H

#include "settings/settings.h"

/* "parley sim --nodes=8 --fault='kill:1@50%'": all that was given, quoted for a shell. Freed by the
 * caller; NULL: no memory. */
char *repeat_line(const struct settings *settings);

/* The same as YAML for -c, a line a setting, the defaults as comments: all that hold whatever the
 * strategy, so that the file makes the same run with them. */
char *repeat_file(const struct settings *settings);

#endif
