/* sample.c: `parley model sample FILE`: text from a language model.
 *
 *   the file's vocabulary -> numbers of the prompt -> a character at a time -> stdout
 *
 * Without a prompt the model begins as after a new line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/model/model.h"
#include "core/plain.h"
#include "data/formats/chars.h"
#include "train/generate.h"

struct writing {
    struct names vocabulary;
    struct model *model;
    float *x;
    struct generate generate;
    char *text; /* what was generated; for JSON */
    size_t length;
    bool terminal;
};

static int load_model(struct writing *w, const struct opened *opened, char *why, size_t why_size)
{
    const struct model_file *file = &opened->file;
    const struct model_data data = {
        .features = file->meta.features, .classes = file->meta.classes, .text = true};
    if (!file->meta.vocabulary[0]) {
        snprintf(why, why_size, "%s: %s is no model of text; gpt is, with --data text:FILE",
                 opened->path, file->meta.model[0] ? file->meta.model : "a bare vector");
        return PARLEY_EDATA;
    }
    int error = chars_read_vocabulary(&w->vocabulary, file->meta.vocabulary);
    if (!error) error = model_new(&w->model, file->meta.model, &data, why, why_size);
    if (!error && model_parameters(w->model) != file->n) {
        snprintf(why, why_size, "%s: %zu parameters are not those of %s", opened->path, file->n,
                 file->meta.model);
        error = PARLEY_EDATA;
    }
    if (error) return error == PARLEY_EUSAGE ? PARLEY_EDATA : error;
    w->x = malloc(file->n * sizeof *w->x);
    if (!w->x) return PARLEY_ENOMEM;
    memcpy(w->x, file->x, file->n * sizeof *w->x);
    return 0;
}

static int put_prompt(struct writing *w, const char *prompt, char *why, size_t why_size)
{
    uint32_t line = names_find(&w->vocabulary, "\n", 1);
    if (!prompt) {
        generate_put(&w->generate, line == NAMES_NONE ? 0 : line);
        return 0;
    }
    struct bytes text = {(const uint8_t *)prompt, strlen(prompt), "--prompt"};
    uint16_t *numbers = malloc(text.size * sizeof *numbers);
    size_t count = 0;
    int error = numbers ? 0 : PARLEY_ENOMEM;
    if (!error) error = chars_encode(&w->vocabulary, text, numbers, &count, why, why_size);
    for (size_t i = 0; !error && i < count; i++)
        generate_put(&w->generate, numbers[i]);
    free(numbers);
    return error == PARLEY_EDATA ? PARLEY_EUSAGE : error;
}

static const char *shown(const struct writing *w, const char *text)
{
    bool blank = *text == '\n' || *text == '\t';
    return w->terminal && !blank && plain_point(text, strlen(text)) == 0 ? "?" : text;
}

static int write_text(struct writing *w, uint64_t length, bool json)
{
    for (uint64_t i = 0; i < length; i++) {
        uint32_t number;
        int error = generate_next(&w->generate, &number);
        if (error) return error;
        const char *text = names_text(&w->vocabulary, number);
        generate_put(&w->generate, number);
        if (json) {
            memcpy(w->text + w->length, text, strlen(text) + 1);
            w->length += strlen(text);
        } else if (fputs(shown(w, text), stdout) == EOF) {
            return 0; /* main.c says so */
        }
    }
    if (!json) putchar('\n');
    return 0;
}

int model_sample(const struct opened *opened, const struct settings *settings, char *why,
                 size_t why_size)
{
    struct writing w = {.terminal = isatty(STDOUT_FILENO)};
    const char *prompt = settings->prompt;
    bool json = settings->json_stdout;
    int error = environment_claim(1, why, why_size);
    if (!error) error = load_model(&w, opened, why, why_size);
    if (!error)
        error = generate_init(&w.generate, w.model, w.x, settings->temperature, settings->seed);
    if (!error) error = put_prompt(&w, prompt, why, why_size);
    if (!error && json && !(w.text = calloc(4 * (size_t)settings->length + 1, 1)))
        error = PARLEY_ENOMEM;
    if (!error && !json && prompt) fputs(prompt, stdout);
    if (!error) error = write_text(&w, settings->length, json);
    if (error == PARLEY_EDIVERGED)
        snprintf(why, why_size, "%s: the model gives numbers that are not finite", opened->path);
    if (!error && json)
        error = model_print_json(
            json_pack("{s:s, s:s}", "prompt", prompt ? prompt : "", "text", w.text));
    generate_close(&w.generate);
    free(w.text);
    free(w.x);
    model_free(w.model);
    names_close(&w.vocabulary);
    return error;
}
