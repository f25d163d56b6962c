/* complete.h: fills in what a program's options leave open: who the node is, where it is reached.
 */
#ifndef PARLEY_PEERS_COMPLETE_H
#define PARLEY_PEERS_COMPLETE_H

#include "parley/parley.h"

struct loop;

struct complete {
    struct parley_config config; /* its texts are those below; its lists still the caller's */
    char cluster[PARLEY_NAME_SIZE];
    char name[PARLEY_NAME_SIZE];
    char address[PARLEY_ADDRESS_SIZE];
    struct parley_tensor whole; /* of options without a table of tensors */
};

/* The loop listens already; it learns the link of a link-local address. options->tensors are there
 * afterwards; the rest is in complete->config. PARLEY_EUSAGE with a line; PARLEY_EFAIL: no random
 * bytes to be had. */
int complete_options(struct complete *complete, struct parley_options *options, struct loop *loop,
                     char *why, size_t size);

/* PARLEY_EUSAGE with a line: too many, or one that nobody can dial. */
int complete_check_seeds(const char *const *seeds, uint32_t count, char *why, size_t size);

#endif
