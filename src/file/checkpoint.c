/* checkpoint.c: see checkpoint.h. */
#include "file/checkpoint.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plain.h"
#include "file/safetensors.h"
#include "file/why.h"

#define FORMAT "2"
#define PROGRESS "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
#define RUN "%016" PRIx64
/* A setting's metadata: its number, and its name and value, the first space between them. */
#define KEY "setting.%" PRIu32
enum { PROGRESS_BYTES = 160, RUN_BYTES = 17, KEY_BYTES = 24, PAIRS = 7 };
enum { SETTING_BYTES = sizeof(struct checkpoint_setting) };

static const char *const vector_names[PARLEY_VECTORS_MAX] = {"x", "state.0", "state.1"};

static void print_progress(const struct checkpoint *c, char text[PROGRESS_BYTES])
{
    snprintf(text, PROGRESS_BYTES, PROGRESS, c->steps, c->samples, c->state_steps,
             c->samples_cluster, c->trained_us, c->pass, c->position);
}

/* They are shown where a checkpoint does not fit. */
static bool texts_are_good(const struct checkpoint *c)
{
    return plain_text(c->node, strlen(c->node)) && plain_text(c->model, strlen(c->model)) &&
           plain_text(c->optimizer, strlen(c->optimizer)) && plain_text(c->data, strlen(c->data));
}

static bool settings_are_good(const struct checkpoint *c)
{
    if (c->settings_count > PARLEY_SETTINGS_MAX) return false;
    for (uint32_t i = 0; i < c->settings_count; i++) {
        const struct checkpoint_setting *s = &c->settings[i];
        bool one_word = s->name[0] && !strchr(s->name, ' ');
        if (!one_word || !plain_text(s->name, strlen(s->name)) ||
            !plain_text(s->value, strlen(s->value)))
            return false;
    }
    return true;
}

int checkpoint_header(const struct checkpoint *c, uint8_t **header, size_t *size)
{
    struct tensor tensors[PARLEY_VECTORS_MAX + 1] = {0};
    char progress[PROGRESS_BYTES], run[RUN_BYTES];
    char keys[PARLEY_SETTINGS_MAX][KEY_BYTES], settings[PARLEY_SETTINGS_MAX][SETTING_BYTES];
    if (c->n == 0 || c->n > MODEL_PARAMETERS_MAX || c->vectors == 0 ||
        c->vectors > PARLEY_VECTORS_MAX || !texts_are_good(c) || !settings_are_good(c))
        return PARLEY_EUSAGE;
    for (uint32_t v = 0; v < c->vectors; v++) {
        tensors[v] = (struct tensor){.rank = 1, .shape = {(uint32_t)c->n}, .count = c->n};
        tensors[v].offset = v * c->n;
        strcpy(tensors[v].name, vector_names[v]);
    }
    tensors[c->vectors] = (struct tensor){"digest", 1, {8}, c->vectors * c->n, 8};
    print_progress(c, progress);
    snprintf(run, sizeof run, RUN, c->run);
    struct safetensors_pair pairs[PAIRS + PARLEY_SETTINGS_MAX] = {
        {"parley-checkpoint", FORMAT}, {"node", c->node}, {"model", c->model},
        {"optimizer", c->optimizer},   {"data", c->data}, {"run", run},
        {"progress", progress}};
    for (uint32_t i = 0; i < c->settings_count; i++) {
        snprintf(keys[i], sizeof keys[i], KEY, i);
        snprintf(settings[i], sizeof settings[i], "%s %s", c->settings[i].name,
                 c->settings[i].value);
        pairs[PAIRS + i] = (struct safetensors_pair){keys[i], settings[i]};
    }
    return safetensors_header(tensors, c->vectors + 1, pairs, PAIRS + c->settings_count, header,
                              size);
}

/* Whether the last 32 bytes are the digest of the others. */
static int check_digest(const uint8_t *bytes, size_t size, char *why, size_t why_size)
{
    uint8_t digest[DIGEST_BYTES];
    if (size < DIGEST_BYTES) return why_set(PARLEY_EDATA, why, why_size, "it was cut off");
    int error = digest_bytes(bytes, size - DIGEST_BYTES, digest);
    if (error) return why_set(error, why, why_size, "out of memory");
    if (memcmp(digest, bytes + size - DIGEST_BYTES, DIGEST_BYTES) == 0) return 0;
    return why_set(PARLEY_EDATA, why, why_size, "it is damaged: its digest is another");
}

static bool read_text(const struct safetensors *file, const char *key, char *to, size_t size)
{
    const char *text = safetensors_metadata(file, key);
    if (!text || strlen(text) >= size) return false;
    strcpy(to, text);
    return true;
}

static bool read_progress(const struct safetensors *file, struct checkpoint *c)
{
    char text[PROGRESS_BYTES], again[PROGRESS_BYTES], *at = text;
    uint64_t *const numbers[] = {&c->steps,      &c->samples, &c->state_steps, &c->samples_cluster,
                                 &c->trained_us, &c->pass,    &c->position};
    if (!read_text(file, "progress", text, sizeof text)) return false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = strtoull(at, &at, 10);
    print_progress(c, again);
    return strcmp(text, again) == 0;
}

static bool read_run(const struct safetensors *file, struct checkpoint *c)
{
    char text[RUN_BYTES], again[RUN_BYTES];
    if (!read_text(file, "run", text, sizeof text)) return false;
    c->run = strtoull(text, NULL, 16);
    snprintf(again, sizeof again, RUN, c->run);
    return strcmp(text, again) == 0;
}

static bool read_settings(const struct safetensors *file, struct checkpoint *c)
{
    char key[KEY_BYTES], text[SETTING_BYTES];
    for (;; c->settings_count++) {
        snprintf(key, sizeof key, KEY, c->settings_count);
        if (!safetensors_metadata(file, key)) return settings_are_good(c);
        if (c->settings_count == PARLEY_SETTINGS_MAX || !read_text(file, key, text, sizeof text))
            return false;
        struct checkpoint_setting *s = &c->settings[c->settings_count];
        size_t name = strcspn(text, " ");
        if (name >= sizeof s->name || !text[name] || strlen(text + name + 1) >= sizeof s->value)
            return false;
        memcpy(s->name, text, name);
        strcpy(s->value, text + name + 1);
    }
}

static bool read_vectors(const struct safetensors *file, struct checkpoint *c)
{
    c->vectors = file->tensor_count - 1;
    if (file->tensor_count < 2 || c->vectors > PARLEY_VECTORS_MAX) return false;
    c->n = file->tensors[0].count;
    for (uint32_t v = 0; v < c->vectors; v++)
        if (strcmp(file->tensors[v].name, vector_names[v]) != 0 || file->tensors[v].count != c->n)
            return false;
    return file->tensors[c->vectors].count == 8;
}

int checkpoint_read(struct checkpoint *c, const uint8_t **vectors, const uint8_t *bytes,
                    size_t size, char *why, size_t why_size)
{
    struct safetensors file;
    memset(c, 0, sizeof *c);
    int error = check_digest(bytes, size, why, why_size);
    if (!error) error = safetensors_open(&file, bytes, size, why, why_size);
    if (error) return error;
    const char *format = safetensors_metadata(&file, "parley-checkpoint");
    if (!format)
        error = why_set(PARLEY_EDATA, why, why_size, "it is no checkpoint of parley's");
    else if (strcmp(format, FORMAT) != 0)
        error = why_set(PARLEY_EDATA, why, why_size, "its format is %.8s; this parley reads %s",
                        format, FORMAT);
    else if (!read_text(&file, "node", c->node, sizeof c->node) ||
             !read_text(&file, "model", c->model, sizeof c->model) ||
             !read_text(&file, "optimizer", c->optimizer, sizeof c->optimizer) ||
             !read_text(&file, "data", c->data, sizeof c->data) || !texts_are_good(c) ||
             !read_run(&file, c) || !read_progress(&file, c) || !read_settings(&file, c) ||
             !read_vectors(&file, c))
        error = why_set(PARLEY_EDATA, why, why_size, "a part is missing or no plain text");
    *vectors = file.data;
    safetensors_close(&file);
    return error;
}
