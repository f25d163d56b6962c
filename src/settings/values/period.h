/* period.h: --mix-every: a count, a schedule ("1,8@50%": 8 from half of the budget on) or "auto".
 *
 * Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_PERIOD_H
#define PARLEY_SETTINGS_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

#include "parley/config.h"

struct settings_period {
    uint32_t steps;                                 /* at the start */
    bool steered;                                   /* "auto"; steps is 1 */
    struct parley_period later[PARLEY_PERIODS_MAX]; /* [later_count], in order */
    uint32_t later_count;
};

/* PARLEY_EUSAGE with a clause in why[SETTINGS_WHY_BYTES]. */
PARLEY_CHECK int period_parse(struct settings_period *period, const char *text, uint64_t most,
                              char *clause);

#endif
