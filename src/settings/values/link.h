/* link.h: a line between groups of nodes, GROUPS:latency=TIME,bandwidth=RATE.
 *
 *   n0-n3|n4-n7:latency=50ms,bandwidth=10Mbit   two sites and the slow line between them
 *
 * What the nodes of one group send to those of another goes through one line for each direction,
 * shared by all of them. Thread rule: pure; a list belongs to one thread.
 */
#ifndef PARLEY_SETTINGS_LINK_H
#define PARLEY_SETTINGS_LINK_H

#include <stddef.h>

#include "settings/values/groups.h"
#include "settings/values/units.h"

enum { LINKS_MAX = 64 };

struct link_spec {
    char groups[GROUPS_BYTES]; /* sane */
    bool has_latency;
    uint64_t latency_us;      /* if it has one: in place of the network's */
    uint64_t bandwidth_bytes; /* a second, in each direction; 0: without limit */
};

struct links {
    struct link_spec *items; /* owned */
    size_t count;
};

/* PARLEY_EUSAGE with a clause in why. */
PARLEY_CHECK int link_parse(const char *text, struct link_spec *link, units_why why);

/* Adds the links of `list`, separated by blanks. PARLEY_EUSAGE, PARLEY_ENOMEM: list as before. */
PARLEY_CHECK int links_add_list(struct links *links, const char *list, units_why why);

void links_close(struct links *links);

#endif
