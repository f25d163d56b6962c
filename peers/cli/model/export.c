/* export.c: `parley model export FILE --out FILE`.
 *
 *   .npz  what numpy.load() reads: an array a tensor, the scaling of the inputs among them
 *   .f32  the model's vector alone: little-endian floats in the order that inspect lists
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/model.h"
#include "disk/durable.h"
#include "file/npz.h"

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), end_length = strlen(end);
    return length > end_length && strcmp(path + length - end_length, end) == 0;
}

static int write_npz(const struct opened *opened, const char *path, char *why, size_t why_size)
{
    const struct safetensors *file = &opened->file.file;
    struct piece whole = {NULL, 0};
    uint8_t *bytes;
    int error = npz_write(file->tensors, file->tensor_count, file->data, &bytes, &whole.size);
    if (error == PARLEY_ELIMIT)
        snprintf(why, why_size, "%s: too large for a .npz file (4 GiB); export it as .f32", path);
    if (error) return error == PARLEY_ELIMIT ? PARLEY_EUSAGE : error;
    whole.bytes = bytes;
    error = durable_replace(path, &whole, 1, why, why_size);
    free(bytes);
    return error;
}

int model_export(const struct opened *opened, const struct settings *settings, char *why,
                 size_t why_size)
{
    const char *path = settings->export_path;
    uint32_t tensors = opened->file.tensor_count;
    int error;
    if (path && ends_in(path, ".npz")) {
        error = write_npz(opened, path, why, why_size);
        tensors = opened->file.file.tensor_count;
    } else if (path && ends_in(path, ".f32")) {
        struct piece x = {opened->file.x, opened->file.n * sizeof(float)};
        error = durable_replace(path, &x, 1, why, why_size);
    } else {
        snprintf(why, why_size,
                 "--out: %s; its end says the format: .npz (for numpy) or .f32 (bare floats)",
                 path ? path : "export needs the name of a file");
        return PARLEY_EUSAGE;
    }
    if (!error && settings->json_stdout)
        printf("{\"parameters\":%zu,\"tensors\":%" PRIu32 "}\n", opened->file.n, tensors);
    else if (!error)
        printf("%s: %zu parameters, %" PRIu32 " tensors\n", path, opened->file.n, tensors);
    return error;
}
