/* command.h: `parley sim`: one simulated run by settings, and what it says. */
#ifndef PARLEY_SIM_COMMAND_H
#define PARLEY_SIM_COMMAND_H

#include "settings/settings.h"

/* Results go to stdout, talk to stderr, JSON lines where the settings say. Returns 0 or the error
 * that the exit status is made from; it has been said by then. */
int sim_command(const struct settings *settings);

#endif
