/* bytes.h: a borrowed view of a file's bytes, with the name that messages call it by.
 *
 * The parsers read no files; a driver reads them and hands over views. The owner of the memory
 * outlives the call it is given to, no longer.
 */
#ifndef PARLEY_DATA_BYTES_H
#define PARLEY_DATA_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of a file, inflated, and of what is kept of it: 4 GiB, on 32-bit machines a quarter of that. */
#define BYTES_MAX (UINT64_C(1) << (SIZE_MAX > UINT32_MAX ? 32 : 30))

struct bytes {
    const uint8_t *data;
    size_t size;
    const char *name; /* "train-images-idx3-ubyte" */
};

/* Where its text begins: behind the mark of UTF-8 that some programs write before it. */
static inline const char *bytes_text(struct bytes file)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *text = (const char *)file.data;
    return file.size >= 3 && memcmp(text, mark, 3) == 0 ? text + 3 : text;
}

#endif
