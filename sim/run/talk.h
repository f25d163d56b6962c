/* talk.h: what the simulator says to people, a line at a time; who started it shows it.
 *
 * Nothing is said before sim_talk_open(). Thread rule: open before threads start; then any thread.
 */
#ifndef PARLEY_SIM_TALK_H
#define PARLEY_SIM_TALK_H

#include <stdbool.h>

#include "settings/simulate.h"

void sim_talk_open(const struct settings *settings, sim_talker *talker);

/* Whether the settings want lines of that level. */
bool sim_talks(enum parley_log level);

/* One, if so. */
void sim_say(enum parley_log level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `why`, or if it is empty what the error is; nothing for 0. Returns the error. */
int sim_blame(int error, const char *why);

/* A line of progress, which --progress rules. */
bool sim_shows_progress(void);
void sim_show(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
