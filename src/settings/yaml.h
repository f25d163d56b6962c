/* yaml.h: a settings file: one YAML mapping from names to plain values or lists of plain values.
 *
 *   strategy: gossip
 *   join: [n0:7000, n1:7000]
 *
 * Everything else of YAML is refused by line: anchors, aliases, tags, nesting, second documents.
 *
 * Decision: libyaml's events, not libcyaml's schema. A schema would be a second table of all
 * options beside the one in options.c, and its values would go round the strict parsers and
 * messages that flags and environment get. Given up: nothing, as a settings file is flat.
 * Thread rule: pure.
 */
#ifndef PARLEY_SETTINGS_YAML_H
#define PARLEY_SETTINGS_YAML_H

#include <stddef.h>

#include "settings/values/units.h"

enum { YAML_FILE_BYTES_MAX = 1 << 20 };

/* Called for each scalar value; item: its number in a list, from 1; 0: no list. Strings live until
 * it returns. A non-zero return stops the walk and is returned; the callee has told why. */
typedef int yaml_visit(void *context, const char *key, const char *value, unsigned item,
                       unsigned line);

/* PARLEY_EUSAGE or PARLEY_ENOMEM with a clause in why and its line in *line (0: the whole file);
 * the visitor's error, with why untouched. */
PARLEY_CHECK int yaml_walk(const void *bytes, size_t size, yaml_visit *visit, void *context,
                           unsigned *line, units_why why);

#endif
