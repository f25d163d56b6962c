/* seeds.h: where a node looks for its cluster: the items of --join and the lines of --peers.
 *
 * An item is `host:port`, `[v6]:port`, `dns:name:port` (every address of the name) or `@FILE` (one
 * item a line, `#` comments). Files are read by the driver and parsed here.
 * Thread rule: pure; a list belongs to one thread.
 */
#ifndef PARLEY_SETTINGS_SEEDS_H
#define PARLEY_SETTINGS_SEEDS_H

#include <stddef.h>

#include "settings/values/units.h"

enum { SEEDS_MAX = 4096, SEEDS_PATH_BYTES = 256, SEEDS_FILE_BYTES_MAX = 1 << 20 };

struct seed {
    enum seed_kind { SEED_ADDRESS, SEED_DNS, SEED_FILE } kind;
    struct units_address address; /* not of SEED_FILE */
    char path[SEEDS_PATH_BYTES];  /* of SEED_FILE */
};

struct seeds {
    struct seed *items; /* owned */
    size_t count;
};

/* Adds the items of `list`, separated by commas. On an error the list is as before.
 * PARLEY_EUSAGE with why naming the item, PARLEY_ENOMEM. */
PARLEY_CHECK int seeds_add_list(struct seeds *seeds, const char *list, units_why why);

/* Adds the lines of a file's bytes (CR LF allowed, blanks around items ignored, no @FILE inside).
 * On an error the list is as before. PARLEY_EUSAGE with why naming the line, PARLEY_ENOMEM. */
PARLEY_CHECK int seeds_add_file(struct seeds *seeds, const char *bytes, size_t size, units_why why);

void seeds_close(struct seeds *seeds);

#endif
