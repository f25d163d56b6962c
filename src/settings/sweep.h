/* sweep.h: a list or a range where a setting of `parley sim` takes one value.
 *
 *   --mix-every 1,4,16      a list
 *   --seed 1..5             a range: 1, 2, 3, 4, 5
 *   --time 10s..30s+5s      a range with a step
 *   --nodes 4..64x2         a range with a factor: 4, 8, 16, 32, 64
 *   --nodes 1,2,4..64x2     both
 *   --model softmax,mlp:256,128       a comma inside a value is told from one between two values
 *   --fault "none or kill:10%@50%"    faults are a list by nature: alternatives stand around `or`
 *
 * Every value is judged as if it stood alone.
 * Thread rule: pure; a sweep belongs to one thread.
 */
#ifndef PARLEY_SETTINGS_SWEEP_H
#define PARLEY_SETTINGS_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "parley/error.h"
#include "settings/options.h"

enum { SWEEP_VALUES_MAX = 10000, SWEEP_CLAUSE_BYTES = 1024 };

struct sweep {
    char **values; /* [count], in the order given, all different; owned */
    size_t count;
};

/* The values that `text` stands for; a single value is itself. For options that sweep only.
 * PARLEY_EUSAGE or PARLEY_ENOMEM with the clause that follows the quoted text; then there is
 * nothing to be closed. */
PARLEY_CHECK int sweep_parse(struct sweep *sweep, enum option_id id, const char *text,
                             char clause[SWEEP_CLAUSE_BYTES]);

/* Whether `value` is the word for an empty list, as in "none or kill:1@50%". */
bool sweep_is_none(enum option_id id, const char *value);

void sweep_close(struct sweep *sweep);

/* Writes the clause; PARLEY_EUSAGE (inside of settings). */
__attribute__((format(printf, 2, 3))) int sweep_refuse(char clause[SWEEP_CLAUSE_BYTES],
                                                       const char *format, ...);

#endif
