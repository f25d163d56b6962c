/* piece.h: a file that is to be written lies in memory in pieces. */
#ifndef PARLEY_FILE_PIECE_H
#define PARLEY_FILE_PIECE_H

#include <stddef.h>

struct piece {
    const void *bytes; /* borrowed; NULL where size is 0 */
    size_t size;
};

#endif
