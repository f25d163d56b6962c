/* descriptors.h: whether the process has the descriptors that a node starts with. Any thread. */
#ifndef PARLEY_PEERS_DESCRIPTORS_H
#define PARLEY_PEERS_DESCRIPTORS_H

#include <stddef.h>

#include "parley/error.h"

/* PARLEY_EFAIL, with a line in why[size]: a standard file is closed, or too few are left. */
PARLEY_CHECK int descriptors_check(char *why, size_t size);

#endif
