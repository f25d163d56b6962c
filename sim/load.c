/* load.c: reads files into memory and hands them to the parsers of src/data. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/digits.h"
#include "data/idx.h"

/* Reads DIR/name or DIR/name.gz whole; *data is the caller's to free. */
static int read_file(const char *directory, const char *name, uint8_t **data, size_t *size,
                     char *why, size_t why_size)
{
    static const char *const endings[] = {"", ".gz"};
    char path[4096];
    FILE *file = NULL;
    for (int i = 0; i < 2 && !file; i++) {
        snprintf(path, sizeof path, "%s/%s%s", directory, name, endings[i]);
        file = fopen(path, "rb");
    }
    if (!file) {
        snprintf(why, why_size, "%s/%s: %s", directory, name, strerror(errno));
        return PARLEY_EDATA;
    }
    size_t capacity = 1 << 20, used = 0, got = 1;
    uint8_t *bytes = malloc(capacity);
    while (bytes && got > 0) {
        if (used == capacity) {
            uint8_t *more = realloc(bytes, capacity *= 2);
            if (!more) free(bytes);
            bytes = more;
        }
        if (bytes) used += got = fread(bytes + used, 1, capacity - used, file);
    }
    fclose(file);
    *data = bytes;
    *size = used;
    return bytes ? 0 : PARLEY_ENOMEM;
}

static int load_idx(struct dataset *set, const char *directory, const char *prefix,
                    uint32_t classes, char *why, size_t why_size)
{
    char images[64], labels[64];
    uint8_t *image_bytes = NULL, *label_bytes = NULL;
    size_t image_size = 0, label_size = 0;
    snprintf(images, sizeof images, "%s-images-idx3-ubyte", prefix);
    snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte", prefix);
    int error = read_file(directory, images, &image_bytes, &image_size, why, why_size);
    if (!error) error = read_file(directory, labels, &label_bytes, &label_size, why, why_size);
    if (!error)
        error = idx_load(set, (struct bytes){image_bytes, image_size, images},
                         (struct bytes){label_bytes, label_size, labels}, classes, why, why_size);
    free(image_bytes);
    free(label_bytes);
    return error;
}

int sim_load(struct dataset *train, struct dataset *test, const char *data_spec,
             const char *test_spec, char *why, size_t why_size)
{
    memset(train, 0, sizeof *train);
    memset(test, 0, sizeof *test);
    snprintf(why, why_size, "out of memory");
    if (strcmp(data_spec, "digits") == 0 && (!test_spec || strcmp(test_spec, "digits") == 0))
        return digits_make(train, test, 1);
    if (strncmp(data_spec, "idx:", 4) != 0 || (test_spec && strncmp(test_spec, "idx:", 4) != 0)) {
        snprintf(why, why_size, "\"%s\" tested on \"%s\" is not possible here", data_spec,
                 test_spec ? test_spec : data_spec);
        return PARLEY_EDATA;
    }
    int error = load_idx(train, data_spec + 4, "train", 0, why, why_size);
    if (!error) error = dataset_measure(train);
    if (!error)
        error = load_idx(test, (test_spec ? test_spec : data_spec) + 4, "t10k", train->classes, why,
                         why_size);
    if (!error) error = dataset_scale_like(test, train);
    return error;
}
