/* piece.c: see piece.h. */
#include "file/piece.h"

int pieces_digest(const struct piece *pieces, size_t count, uint8_t out[DIGEST_BYTES])
{
    struct digest digest;
    int error = digest_init(&digest);
    for (size_t i = 0; i < count && !error; i++)
        error = digest_add(&digest, pieces[i].bytes, pieces[i].size);
    if (!error) error = digest_end(&digest, out);
    digest_close(&digest);
    return error;
}
