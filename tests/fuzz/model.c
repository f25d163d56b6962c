/* model.c: model files, and safetensors of any kind. What opens, holds what it says: its parts lie
 * in the file, and the header that is made of it again opens too. */
#include "file/model_file.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void check_inside(const uint8_t *part, size_t floats, const uint8_t *bytes, size_t size)
{
    if (floats == 0) return;
    FUZZ_CHECK(part >= bytes && floats <= size / 4);
    FUZZ_CHECK((size_t)(part - bytes) <= size - 4 * floats);
}

void fuzz_model(const uint8_t *bytes, size_t size)
{
    char why[200] = "";
    struct safetensors plain;
    int error = safetensors_open(&plain, bytes, size, why, sizeof why);
    FUZZ_CHECK(error == 0 || why[0]);
    if (!error) {
        check_inside(plain.data, plain.floats, bytes, size);
        for (uint32_t i = 0; i < plain.tensor_count; i++)
            FUZZ_CHECK(safetensors_tensor(&plain, plain.tensors[i].name) == &plain.tensors[i]);
        safetensors_close(&plain);
    }

    struct model_file file;
    why[0] = 0;
    error = model_file_open(&file, bytes, size, why, sizeof why);
    FUZZ_CHECK(error == 0 || why[0]);
    if (error) return;
    check_inside(file.x, file.n, bytes, size);
    check_inside(file.meta.shift, file.meta.scaling, bytes, size);
    check_inside(file.meta.scale, file.meta.scaling, bytes, size);
    if (model_file_verify(&file, why, sizeof why) == 0) {
        struct piece pieces[MODEL_FILE_PIECES];
        FUZZ_CHECK(model_file_pieces(&file.meta, NULL, file.n, file.tensors, file.tensor_count,
                                     pieces) == 0);
        free((void *)pieces[0].bytes);
    }
    model_file_close(&file);
}

void fuzz_model_seeds(fuzz_emit *emit, void *context)
{
    static const struct tensor tensors[] = {{"w", 2, {2, 3}, 0, 6}, {"b", 1, {3}, 6, 3}};
    static const float data[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5f, 1, 2, 3};
    for (uint32_t kind = 0; kind < 7; kind++) {
        uint32_t count = kind % 2 ? 2 : 0, scaling = kind / 2 % 3;
        struct model_meta meta = {.model = "softmax",
                                  .data = "csv:t.csv",
                                  .features = 2,
                                  .classes = 3,
                                  .scaling = scaling,
                                  .shift = data + 9,
                                  .scale = data + 9 + scaling,
                                  .run = UINT64_C(0xfedcba9876543210)};
        struct piece pieces[MODEL_FILE_PIECES];
        uint8_t bytes[4096];
        size_t size = 0;
        if (kind == 5) strcpy(meta.vocabulary, "abc");
        if (kind == 6) meta.class_names = "a\n\"b\"\n\xe2\x82\xac";
        if (kind == 6) meta.columns = "\nv";
        FUZZ_CHECK(digest_model(data, 9, tensors, count, meta.run, meta.digest) == 0);
        FUZZ_CHECK(model_file_pieces(&meta, data, 9, tensors, count, pieces) == 0);
        for (int i = 0; i < MODEL_FILE_PIECES; i++) {
            memcpy(bytes + size, pieces[i].bytes, pieces[i].size);
            size += pieces[i].size;
        }
        free((void *)pieces[0].bytes);
        emit(context, bytes, size);
    }
}
