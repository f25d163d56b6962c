/* seed_list.h: the addresses to join by, from --join and --peers.
 *
 * Thread rule: a list belongs to one thread. Reading files and names blocks.
 */
#ifndef PARLEY_CLI_SEED_LIST_H
#define PARLEY_CLI_SEED_LIST_H

#include "parley/config.h"
#include "settings/values/seeds.h"

struct seed_list {
    char text[PARLEY_SEEDS_MAX][PARLEY_ADDRESS_SIZE];
    const char *items[PARLEY_SEEDS_MAX]; /* [count], into text */
    uint32_t count;
    uint32_t left_out; /* beyond those */
    bool asks_dns;     /* names were looked up: look again now and then */
};

/* A name that is not found stands in the list itself: it may be found later, and a node must not
 * take itself for the first because of it. peers_file may be NULL.
 * PARLEY_EUSAGE with a line in why: a file can't be read or has a bad line, or an address is longer
 * than PARLEY_ADDRESS_SIZE allows. PARLEY_ENOMEM. */
PARLEY_CHECK int seed_list_make(struct seed_list *list, const struct seeds *join,
                                const char *peers_file, char *why, size_t why_size);

bool seed_list_equal(const struct seed_list *a, const struct seed_list *b);

#endif
