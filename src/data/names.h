/* names.h: a list of names with look-up: of classes, columns, characters.
 *
 * A zeroed list is empty. Thread rule: plain memory; a list that no longer grows may be read from
 * any thread.
 */
#ifndef PARLEY_DATA_NAMES_H
#define PARLEY_DATA_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

#define NAMES_BYTES_MAX 1024u        /* of one name */
#define NAMES_NONE UINT32_MAX        /* not a place in a list */
#define NAMES_CLASSES_MAX (1u << 16) /* what a data set's labels can tell apart */

struct names {
    char *text; /* the names, a zero byte behind each; owned */
    size_t size, capacity;
    size_t *at; /* [count], where each begins; owned */
    uint32_t count, room;
    uint32_t *slots; /* [slots_count], a hash table of places + 1; owned */
    uint32_t slots_count;
    bool by_value; /* all are numbers, in their order: names_sort(), names_look_at() */
};

/* The place of a name, or NAMES_NONE. */
uint32_t names_find(const struct names *names, const char *name, size_t size);

/* Appends, even a name that is there; of equal ones the first is found. PARLEY_ENOMEM;
 * PARLEY_ELIMIT for a name that is too long. */
PARLEY_CHECK int names_add(struct names *names, const char *name, size_t size);

const char *names_text(const struct names *names, uint32_t place);

/* Sorts distinct names: by value if all are numbers, else by their bytes; labels[count] (places)
 * are changed to match. So the order in a file does not matter. Equal numbers, as "1" and "1.0",
 * become one, by the name that stood first. PARLEY_ENOMEM. */
PARLEY_CHECK int names_sort(struct names *names, uint16_t *labels, size_t count);

/* Of a list that is to stay as it is: whether it might come from names_sort(), by value. */
void names_look_at(struct names *names);

/* The place of an equal number in a list by value, or NAMES_NONE. */
uint32_t names_find_number(const struct names *names, const char *name, size_t size);

/* Whether they are numbers, but for a few such as "NA". *whole: none has a fraction. */
bool names_are_numbers(const struct names *names, bool *whole);

/* "a, b, c" as far as they fit in out[size] (at least 16), the rest as "...". Returns out. */
const char *names_list(const struct names *names, char *out, size_t size);

void names_close(struct names *names);

#endif
