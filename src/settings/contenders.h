/* contenders.h: what --compare names: strategies, each perhaps with settings of its own.
 *
 *   gossip,none                                  names
 *   all                                          every strategy
 *   gossip or choco lr=0.1 codec=topk:0.01       alternatives stand around `or`; those of training
 *                                                and mixing may be a contender's own
 *   gossip or single lr=0.02                     a node alone, which is always there
 *
 * Every value is judged as if it stood alone.
 * Thread rule: pure; a list belongs to one thread.
 */
#ifndef PARLEY_SETTINGS_CONTENDERS_H
#define PARLEY_SETTINGS_CONTENDERS_H

#include <stddef.h>

#include "parley/error.h"
#include "settings/options.h"
#include "settings/sweep.h"

struct contender {
    char *text;                       /* as given: "choco lr=0.1"; owned */
    char *name;                       /* "choco"; "single"; owned, with the own values behind it */
    int strategy;                     /* enum parley_strategy; of single below 0 */
    const char *own[OPTION_ID_COUNT]; /* NULL: as for all */
};

struct contenders {
    struct contender *list; /* [count], in the order given, all different, none of them single */
    size_t count;
    struct contender single;
};

/* PARLEY_EUSAGE or PARLEY_ENOMEM with the clause that follows the quoted text; then there is
 * nothing to be closed. */
PARLEY_CHECK int contenders_parse(struct contenders *contenders, const char *text,
                                  char clause[SWEEP_CLAUSE_BYTES]);
void contenders_close(struct contenders *contenders);

#endif
