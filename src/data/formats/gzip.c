/* gzip.c: inflates gzip files with zlib.
 *
 * Happy path: one member, inflated into the caller's buffer, its checksum right.
 * Failure: the file ends inside a member; a damaged member; bytes behind the last member that are
 * neither another member nor padding with zeros.
 */
#include "data/formats/gzip.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

/* Window bits for zlib: the largest window, and a gzip header only. */
#define GZIP_WINDOW (15 + 16)

bool gzip_is(struct bytes file)
{
    return file.size >= 2 && file.data[0] == 0x1f && file.data[1] == 0x8b;
}

static uInt part(size_t size)
{
    return size < UINT_MAX ? (uInt)size : UINT_MAX;
}

static bool is_padding(struct bytes rest)
{
    for (size_t i = 0; i < rest.size; i++)
        if (rest.data[i] != 0) return false;
    return true;
}

/* What stands behind a member: nothing or padding ends the file (1), another member goes on (0). */
static int after_member(struct bytes file, size_t at, char *why, size_t why_size)
{
    struct bytes rest = {file.data + at, file.size - at, file.name};
    if (is_padding(rest)) return 1;
    if (gzip_is(rest)) return 0;
    snprintf(why, why_size, "%s: other bytes follow the gzip data, at byte %zu", file.name, at);
    return PARLEY_EDATA;
}

int gzip_inflate(struct bytes file, uint8_t *out, size_t size, size_t *got, char *why,
                 size_t why_size)
{
    z_stream z = {0};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return PARLEY_ENOMEM;
    int error = 0;
    size_t in_at = 0, out_at = 0;
    while (out_at < size) {
        z.next_in = (Bytef *)(uintptr_t)(file.data + in_at); /* zlib's type has no const */
        z.avail_in = part(file.size - in_at);
        z.next_out = out + out_at;
        z.avail_out = part(size - out_at);
        int status = inflate(&z, Z_NO_FLUSH);
        in_at = (size_t)(z.next_in - file.data);
        out_at = (size_t)(z.next_out - out);
        if (status == Z_STREAM_END) {
            int next = after_member(file, in_at, why, why_size);
            if (next < 0) error = next;
            if (next != 0) break;
            inflateReset(&z);
        } else if (status == Z_MEM_ERROR) {
            error = PARLEY_ENOMEM;
            break;
        } else if (status == Z_BUF_ERROR || (status == Z_OK && in_at == file.size && z.avail_out)) {
            snprintf(why, why_size, "%s: the gzip data is cut short, at byte %zu (%zu inflated)",
                     file.name, in_at, out_at);
            error = PARLEY_EDATA;
            break;
        } else if (status != Z_OK) {
            snprintf(why, why_size, "%s: damaged gzip data at byte %zu (%s)", file.name, in_at,
                     z.msg ? z.msg : "no reason given");
            error = PARLEY_EDATA;
            break;
        }
    }
    inflateEnd(&z);
    *got = out_at;
    return error;
}

/* The length in the last member's trailer (RFC 1952, section 2.3.1): a hint, and only of 32 bits.
 */
static size_t stated_size(struct bytes file)
{
    const uint8_t *end = file.data + file.size;
    if (file.size < 18) return 0; /* header and trailer */
    return end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

int gzip_expand(struct bytes file, size_t size_max, uint8_t **out, size_t *size, char *why,
                size_t why_size)
{
    size_t room = stated_size(file), most = size_max;
    if (file.size <= most / GZIP_RATIO_MAX) most = file.size * GZIP_RATIO_MAX;
    if (room > most) room = most;
    for (;; room = room > most / 2 ? most : 2 * room) {
        /* One byte more shows whether that was all. */
        uint8_t *block = malloc(room + 1);
        if (!block) return PARLEY_ENOMEM;
        int error = gzip_inflate(file, block, room + 1, size, why, why_size);
        if (!error && *size <= room) {
            *out = block;
            return 0;
        }
        free(block);
        if (error) return error;
        if (room == most) break;
        if (room < 4096) room = 4096;
    }
    snprintf(why, why_size, "%s: inflates to more than %zu bytes, the limit", file.name, most);
    return PARLEY_EDATA;
}
