/* npz.c: see npz.h.
 *
 *   each member: local header | name | NPY header | floats
 *   then the directory, an entry a member, and its end
 */
#include "file/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    NPY_BYTES = 128, /* of a member's header: rank 4 with ten digits a dimension fits */
    NPY_MAGIC_BYTES = 10,
    NAME_BYTES = 40,
    VERSION = 20,        /* 2.0: what is needed to extract */
    DATE = (1 << 5) | 1, /* 1980-01-01 */
    MEMBERS_MAX = 65535
};

struct member {
    char name[NAME_BYTES];
    size_t name_size;
    uint8_t npy[NPY_BYTES];
    const uint8_t *floats;
    size_t floats_size;
    uint32_t sum;
    uint32_t at; /* of the local header in the archive */
};

static uint8_t *put(uint8_t *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static uint8_t *put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
    return to + 2;
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
    return put16(put16(to, value & 0xffff), value >> 16);
}

static void npy_header(uint8_t npy[NPY_BYTES], const struct tensor *tensor)
{
    char shape[64] = "";
    for (uint32_t i = 0, at = 0; i < tensor->rank; i++)
        at += (uint32_t)snprintf(shape + at, sizeof shape - at, "%" PRIu32 ", ", tensor->shape[i]);
    memset(npy, ' ', NPY_BYTES);
    put16(put(npy, "\x93NUMPY\x01\x00", 8), NPY_BYTES - NPY_MAGIC_BYTES);
    int length = snprintf((char *)npy + NPY_MAGIC_BYTES, NPY_BYTES - NPY_MAGIC_BYTES,
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%s)}", shape);
    npy[NPY_MAGIC_BYTES + length] = ' ';
    npy[NPY_BYTES - 1] = '\n';
}

static void fill(struct member *m, const struct tensor *tensor, const uint8_t *data)
{
    m->name_size = (size_t)snprintf(m->name, sizeof m->name, "%s.npy", tensor->name);
    npy_header(m->npy, tensor);
    m->floats = data + tensor->offset * sizeof(float);
    m->floats_size = tensor->count * sizeof(float);
}

/* What a local header and a directory entry have in common: from "version" to the name's length. */
static uint8_t *put_common(uint8_t *to, const struct member *m)
{
    uint32_t size = (uint32_t)(NPY_BYTES + m->floats_size);
    to = put16(put16(put16(to, VERSION), 0), 0); /* flags; stored */
    to = put16(put16(to, 0), DATE);
    return put16(put32(put32(put32(to, m->sum), size), size), (uint32_t)m->name_size);
}

static uint8_t *put_member(uint8_t *to, const struct member *m)
{
    to = put16(put_common(put(to, "PK\x03\x04", 4), m), 0);
    to = put(put(to, m->name, m->name_size), m->npy, NPY_BYTES);
    return put(to, m->floats, m->floats_size);
}

static uint8_t *put_entry(uint8_t *to, const struct member *m)
{
    static const uint8_t none[12]; /* extra field, comment, disk, attributes */
    to = put_common(put16(put(to, "PK\x01\x02", 4), VERSION), m);
    to = put32(put(to, none, sizeof none), m->at);
    return put(to, m->name, m->name_size);
}

static void write_all(uint8_t *bytes, struct member *members, uint32_t count)
{
    uint8_t *at = bytes, *directory;
    for (uint32_t i = 0; i < count; i++) {
        struct member *m = &members[i];
        m->at = (uint32_t)(at - bytes);
        m->sum = (uint32_t)crc32(crc32(0, m->npy, NPY_BYTES), m->floats, (uInt)m->floats_size);
        at = put_member(at, m);
    }
    directory = at;
    for (uint32_t i = 0; i < count; i++)
        at = put_entry(at, &members[i]);
    uint32_t length = (uint32_t)(at - directory);
    at = put32(put(at, "PK\x05\x06", 4), 0); /* one disk */
    at = put32(put16(put16(at, count), count), length);
    put16(put32(at, (uint32_t)(directory - bytes)), 0);
}

int npz_write(const struct tensor *tensors, uint32_t tensor_count, const uint8_t *data,
              uint8_t **bytes, size_t *size)
{
    *bytes = NULL;
    if (tensor_count > MEMBERS_MAX) return PARLEY_ELIMIT;
    struct member *members = calloc((size_t)tensor_count + 1, sizeof *members);
    if (!members) return PARLEY_ENOMEM;
    uint64_t total = END_BYTES;
    for (uint32_t i = 0; i < tensor_count; i++) {
        fill(&members[i], &tensors[i], data);
        total += LOCAL_BYTES + ENTRY_BYTES + 2 * members[i].name_size + NPY_BYTES;
        total += members[i].floats_size;
    }
    int error = total > NPZ_BYTES_MAX ? PARLEY_ELIMIT : 0;
    if (!error && !(*bytes = malloc((size_t)total))) error = PARLEY_ENOMEM;
    if (!error) write_all(*bytes, members, tensor_count);
    *size = (size_t)total;
    free(members);
    return error;
}
