/* simulate.h: `parley sim`, as the binary calls it: defined by the driver in sim/, which the other
 * driver must not know. */
#ifndef PARLEY_SETTINGS_SIMULATE_H
#define PARLEY_SETTINGS_SIMULATE_H

#include "data/source.h"
#include "parley/node.h"
#include "settings/settings.h"

/* Takes a line for people, without its newline. */
typedef void sim_talker(enum parley_log level, const char *line);

/* Cores that this process may run on, at least 1; of very many not all. */
uint32_t sim_cores(void);
/* As many threads as are asked for; unasked, one a core. */
uint32_t sim_threads(const struct settings *settings);

/* Results go to stdout, talk to the talker, JSON lines where the settings say. Returns 0 or the
 * error that the exit status is made from; it has been said by then. */
int sim_command(const struct settings *settings, const struct source_reader *reader,
                sim_talker *talker);

#endif
