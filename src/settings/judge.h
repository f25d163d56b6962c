/* judge.h: settings that are each right and do not go together (inside of settings).
 *
 * Each judge writes one line into why[SETTINGS_WHY_BYTES], which names the flags, and gives
 * PARLEY_EUSAGE; 0 if it has nothing against the settings. judge_together() asks all of them.
 */
#ifndef PARLEY_SETTINGS_JUDGE_H
#define PARLEY_SETTINGS_JUDGE_H

#include "settings/settings.h"

PARLEY_CHECK int judge_together(const struct settings *settings, char *why);

/* PARLEY_EUSAGE, with that line. */
PARLEY_CHECK __attribute__((format(printf, 2, 3))) int judge_refuse(char *why, const char *format,
                                                                    ...);

/* Whether there are several strategies: then these settings are of none of them. */
bool judge_is_of_several(const struct settings *settings);
/* Whether nothing but its accuracy ends training: nobody knows how much of it is over. */
bool judge_ends_by_target(const struct settings *settings);
/* Whether --model is parley sim's quadratic, without data. */
bool judge_is_quadratic(const struct settings *settings);

/* judge_strategy.c */
PARLEY_CHECK int judge_strategy(const struct settings *settings, char *why);
PARLEY_CHECK int judge_servers(const struct settings *settings, char *why);
PARLEY_CHECK int judge_robust(const struct settings *settings, char *why);
PARLEY_CHECK int judge_lies(const struct settings *settings, char *why);
PARLEY_CHECK int judge_topology(const struct settings *settings, char *why);
PARLEY_CHECK int judge_rounds(const struct settings *settings, char *why);
PARLEY_CHECK int judge_optimizer(const struct settings *settings, char *why);
PARLEY_CHECK int judge_training(const struct settings *settings, char *why);
PARLEY_CHECK int judge_codec(const struct settings *settings, char *why);

#endif
