/* try.c: `parley model eval|predict FILE`: a saved model and data to try it on.
 *
 *   eval     accuracy and loss on the test data of --test or --data
 *   predict  a line for each sample of --data: its class and how sure that is, or the number.
 *            Labels are not looked at
 *
 * Happy path: load the data as the model's were, scale them as it says, run batch after batch.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/model/model.h"
#include "cli/read_file.h"
#include "core/plain.h"
#include "data/remarks.h"
#include "kernels/mix.h"
#include "report/human.h"
#include "report/text.h"
#include "train/loss.h"
#include "train/trainer.h"

enum { BATCH = 256 };

struct trial {
    const struct opened *opened;
    bool terminal; /* is what it is printed on */
    struct dataset set;
    struct trainer *trainer;
    float *x;
};

/* ---- Model and data -------------------------------------------------------------------------- */

static int load_set(struct trial *t, const struct settings *settings, bool labelled, char *why,
                    size_t why_size)
{
    const struct model_meta *meta = &t->opened->file.meta;
    const struct source_model model = {.vocabulary = meta->vocabulary,
                                       .class_names = meta->class_names,
                                       .classes = meta->classes,
                                       .numbers = meta->numbers,
                                       .features = meta->features,
                                       .columns = meta->columns};
    if (labelled)
        return source_load_test(&t->set, &file_reader, settings->data, settings->test, &model, why,
                                why_size);
    return source_load_inputs(&t->set, &file_reader, settings->data, &model, why, why_size);
}

static int load(struct trial *t, const struct settings *settings, bool labelled, char *why,
                size_t why_size)
{
    struct remarks remarks;
    int error = load_set(t, settings, labelled, why, why_size);
    if (error) return error;
    remarks_of_test(&remarks, &t->set);
    for (uint32_t i = 0; i < remarks.count; i++)
        say(PARLEY_LOG_WARN, "%s", remarks.text[i]);
    return 0;
}

static int scale_as(struct dataset *set, const struct model_file *file, char *why, size_t why_size)
{
    uint32_t n = set->bytes ? 1 : set->features;
    bool numbers = set->targets != NULL, images = set->channels > 0;
    if (numbers != file->meta.numbers) {
        snprintf(why, why_size, "the data's labels are %s, the model's %s",
                 numbers ? "numbers" : "classes", numbers ? "classes" : "numbers");
        return PARLEY_EDATA;
    }
    if (set->features != file->meta.features) {
        snprintf(why, why_size,
                 "the data have %" PRIu32 " values a sample, the model takes %" PRIu32,
                 set->features, file->meta.features);
        return PARLEY_EDATA;
    }
    if (images != (file->meta.channels > 0) || n != file->meta.scaling) {
        snprintf(why, why_size, "the data are %s, the model takes %s",
                 images ? "images" : "a table", images ? "a table" : "images");
        return PARLEY_EDATA;
    }
    if (set->channels != file->meta.channels || set->height != file->meta.height) {
        snprintf(why, why_size,
                 "the data are images of %" PRIu32 " x %" PRIu32 " in %" PRIu32
                 " channels, the model takes %" PRIu32 " x %" PRIu32 " in %" PRIu32,
                 set->height, set->width, set->channels, file->meta.height, file->meta.width,
                 file->meta.channels);
        return PARLEY_EDATA;
    }
    set->classes = file->meta.classes;
    return dataset_scale_by(set, file->meta.shift, file->meta.scale, file->meta.label);
}

/* The inputs are scaled as the model's were. */
static int fit(struct trial *t, const struct settings *settings, char *why, size_t why_size)
{
    char model[TEXT_QUOTED_BYTES], data[TEXT_QUOTED_BYTES];
    size_t said =
        (size_t)snprintf(why, why_size, "%s on %s: ", text_quote(model, t->opened->path),
                         text_quote(data, settings->test ? settings->test : settings->data));
    int error = scale_as(&t->set, &t->opened->file, why + said, why_size - said);
    if (!why[said]) why[0] = 0;
    return error;
}

/* Who named no data is not to wonder whose they are. */
static void tell_default(const struct settings *settings, char *why, size_t why_size)
{
    size_t said = strlen(why);
    if (settings->test || settings->values[OPTION_ID_DATA].origin > ORIGIN_DEFAULT) return;
    snprintf(why + said, why_size - said, "; --data is %s unless given", settings->data);
}

/* Aligned, as the file's floats need not be. */
static int take_parameters(struct trial *t, char *why, size_t why_size)
{
    const struct model_file *file = &t->opened->file;
    if (trainer_parameters(t->trainer) != file->n) {
        snprintf(why, why_size, "%s: %zu parameters are not those of %s", t->opened->path, file->n,
                 file->meta.model);
        return PARLEY_EDATA;
    }
    t->x = malloc(file->n * sizeof *t->x);
    if (!t->x) return PARLEY_ENOMEM;
    memcpy(t->x, file->x, file->n * sizeof *t->x);
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        const struct tensor *tensor = &file->tensors[i];
        if (mix_finite(t->x + tensor->offset, tensor->count)) continue;
        snprintf(why, why_size, "%s: the model is not finite: tensor %s has a NaN or an infinity",
                 t->opened->path, tensor->name);
        return PARLEY_EDIVERGED;
    }
    return 0;
}

static int open_trial(struct trial *t, const struct settings *settings, bool labelled, char *why,
                      size_t why_size)
{
    const struct model_meta *meta = &t->opened->file.meta;
    const struct trainer_options options = {
        .model = meta->model, .optimizer = "sgd", .schedule = "constant", .batch = BATCH};
    if (!meta->model[0] || meta->classes == 0) {
        snprintf(why, why_size, "%s: a bare vector can't be tried on data", t->opened->path);
        return PARLEY_EDATA;
    }
    int error = environment_claim(1, why, why_size);
    if (!error) error = load(t, settings, labelled, why, why_size);
    if (!error) error = fit(t, settings, why, why_size);
    if (error == PARLEY_EDATA) tell_default(settings, why, why_size);
    if (!error) error = trainer_new(&t->trainer, &options, &t->set, why, why_size);
    if (!error) error = take_parameters(t, why, why_size);
    return error ? error : model_check_digest(t->opened, why, why_size);
}

static void close_trial(struct trial *t)
{
    trainer_free(t->trainer);
    dataset_close(&t->set);
    free(t->x);
}

/* ---- eval ------------------------------------------------------------------------------------ */

static const char *json_number(char out[32], double value)
{
    snprintf(out, 32, isfinite(value) ? "%.15g" : "null", value);
    return out;
}

static void evaluate(const struct trial *t, bool json)
{
    double accuracy, loss;
    char one[32], other[32], text[HUMAN_BYTES];
    uint32_t count = t->set.count;
    trainer_evaluate(t->trainer, t->x, &t->set, &accuracy, &loss);
    if (json)
        printf("{\"accuracy\":%s,\"loss\":%s,\"samples\":%" PRIu32 "}\n",
               json_number(one, accuracy), json_number(other, loss), count);
    else if (isnan(accuracy))
        printf("loss  %s (mean squared error) on %" PRIu32 " test samples\n",
               human_loss(text, loss), count);
    else
        printf("accuracy  %.4f on %" PRIu32 " test samples    loss %s\n", accuracy, count,
               human_loss(text, loss));
}

int model_eval(const struct opened *opened, const struct settings *settings, char *why,
               size_t why_size)
{
    struct trial t = {.opened = opened};
    int error = open_trial(&t, settings, true, why, why_size);
    if (!error) evaluate(&t, settings->json_stdout);
    close_trial(&t);
    return error;
}

/* ---- predict --------------------------------------------------------------------------------- */

/* p: [classes] logits, in place: their softmax. Returns the likeliest. */
static uint32_t to_probabilities(float *p, uint32_t classes)
{
    uint32_t best = loss_best(p, classes);
    double sum = 0;
    float most = p[best];
    for (uint32_t c = 0; c < classes; c++)
        sum += exp((double)p[c] - most);
    for (uint32_t c = 0; c < classes; c++)
        p[c] = (float)(exp((double)p[c] - most) / sum);
    return best;
}

static int print_class_csv(const struct trial *t, const char *name, float probability)
{
    struct text line;
    text_init(&line, 8 * NAMES_BYTES_MAX);
    text_field(&line, name);
    text_add(&line, ",%.6g", (double)probability);
    char *text = text_take(&line);
    if (text && t->terminal) plain_scrub(text);
    if (text) puts(text);
    free(text);
    return text ? 0 : PARLEY_ENOMEM;
}

static int print_class_json(const char *name, const float *p, uint32_t best, uint32_t classes)
{
    json_t *all = json_array();
    for (uint32_t c = 0; c < classes; c++)
        json_array_append_new(all, json_real((double)p[c]));
    return model_print_json(json_pack("{s:s, s:f, s:o}", "class", name, "probability",
                                      (double)p[best], "probabilities", all));
}

static int print_class(const struct trial *t, const struct names *names, float *p, bool json)
{
    char number[16];
    uint32_t classes = t->set.classes, best = to_probabilities(p, classes);
    snprintf(number, sizeof number, "%" PRIu32, best);
    const char *name = best < names->count ? names_text(names, best) : number;
    return json ? print_class_json(name, p, best, classes) : print_class_csv(t, name, p[best]);
}

/* Of a number: a float's nine of what labels differ by, behind those of a mean that is larger. */
static int digits_of(const struct dataset *set)
{
    double mean = fabs((double)set->label[0]) * (double)set->label[1]; /* in deviations */
    int digits = mean > 1 ? 9 + (int)log10(mean) : 9;
    return digits < 17 ? digits : 17;
}

static int predict(const struct trial *t, const struct names *names, bool json, char *why,
                   size_t why_size)
{
    uint32_t classes = t->set.classes, rows;
    bool number = t->set.targets != NULL;
    int error = 0, digits = digits_of(&t->set);
    if (!json) puts(number ? "value" : "class,probability");
    for (uint32_t first = 0; first < t->set.count; first += rows) {
        float *out = trainer_outputs(t->trainer, t->x, &t->set, first, &rows);
        for (uint32_t row = 0; !error && row < rows; row++, out += classes) {
            double value = number ? dataset_unscale(&t->set, *out) : 0;
            if (!mix_finite(out, classes) || !isfinite(value)) {
                snprintf(why, why_size, "%s: what it makes of sample %" PRIu32 " is not finite",
                         t->opened->path, first + row + 1);
                return PARLEY_EDIVERGED;
            }
            if (number)
                printf(json ? "{\"value\":%.*g}\n" : "%.*g\n", digits, value);
            else
                error = print_class(t, names, out, json);
        }
    }
    return error;
}

int model_predict(const struct opened *opened, const struct settings *settings, char *why,
                  size_t why_size)
{
    struct trial t = {.opened = opened, .terminal = isatty(STDOUT_FILENO)};
    struct names names = {0};
    const char *class_names = opened->file.meta.class_names;
    int error = open_trial(&t, settings, false, why, why_size);
    if (!error && class_names) error = rows_read_lines(&names, class_names);
    if (!error) error = predict(&t, &names, settings->json_stdout, why, why_size);
    names_close(&names);
    close_trial(&t);
    return error;
}
