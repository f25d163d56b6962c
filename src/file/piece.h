/* piece.h: a file that is to be written lies in memory in pieces. */
#ifndef PARLEY_FILE_PIECE_H
#define PARLEY_FILE_PIECE_H

#include <stddef.h>

#include "kernels/digest.h"

struct piece {
    const void *bytes; /* borrowed; NULL where size is 0 */
    size_t size;
};

/* Plain SHA-256 of them, one after the other. PARLEY_ENOMEM. */
PARLEY_CHECK int pieces_digest(const struct piece *pieces, size_t count, uint8_t out[DIGEST_BYTES]);

#endif
