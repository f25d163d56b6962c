/* nearest.h: the known word that a mistyped one was most likely meant to be.
 *
 * Start, try each known word, take. Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_NEAREST_H
#define PARLEY_SETTINGS_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *typed;
    const char *word; /* the best so far; borrowed from nearest_try's caller */
    size_t distance;
};

/* Insertions, removals, replacements and swaps of neighbours that lead from a to b; words over 64
 * bytes are as far as they are long (nobody types those by slip). */
size_t nearest_distance(const char *a, const char *b);

struct nearest nearest_start(const char *typed);
void nearest_try(struct nearest *nearest, const char *word);

/* NULL if nothing is near: more than a third of the letters differ. */
const char *nearest_take(const struct nearest *nearest);

enum { NEAREST_CLAUSE_BYTES = 96 };

/* `; did you mean "WORD"?`, to be added to a message, or "" if word is NULL. Returns clause. */
const char *nearest_clause(char clause[NEAREST_CLAUSE_BYTES], const char *word);

#endif
