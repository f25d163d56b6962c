/* model.c: from a spec to a network, and the initial parameters.
 *
 * Happy path: find the family, parse its numbers, see that it takes such data, let it put its
 * layers together.
 * Failure modes: a spec that is no model, data that it does not take, sizes past a limit of
 * model.h.
 */
#include "train/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/rng.h"
#include "train/models/models.h"

#define START_STREAM UINT64_C(0x6d6f64656c000000) /* "model", then the layer's number */

static const struct model_family *const families[] = {&model_softmax, &model_mlp,    &model_lenet,
                                                      &model_linear,  &model_resnet, &model_gpt};

enum {
    FAMILIES = sizeof families / sizeof families[0],
    PRESETS = sizeof families[0]->preset / sizeof families[0]->preset[0]
};

struct model {
    char spec[16 + 6 * MODEL_HIDDEN_MAX];
    struct network network;
};

/* A spec, taken apart. */
struct parsed {
    const struct model_family *family;
    uint32_t numbers[MODEL_HIDDEN_MAX], count;
};

static int refuse(char *why, size_t why_size, const char *spec, const char *fault)
{
    int at = snprintf(why, why_size, "model '%.64s' %s; valid:", spec, fault);

    for (int f = 0; f < FAMILIES && (size_t)at < why_size; f++)
        at +=
            snprintf(why + at, why_size - (size_t)at, "%s %s", f > 0 ? "," : "", families[f]->form);
    return PARLEY_EUSAGE;
}

/* One number at *at, which moves behind it; 0 if there is none in range. */
static uint32_t parse_number(const char **at, uint32_t max)
{
    uint64_t number = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        number = number * 10 + (uint32_t)(**at - '0');
        if (number > max) return 0;
    }
    return (uint32_t)number;
}

static const struct model_family *find_family(const char *spec, size_t length)
{
    for (int f = 0; f < FAMILIES; f++)
        if (strlen(families[f]->name) == length && strncmp(families[f]->name, spec, length) == 0)
            return families[f];
    return NULL;
}

/* NULL if the spec is good, else what is wrong with it. */
static const char *parse_spec(const char *spec, struct parsed *parsed)
{
    size_t length = strcspn(spec, ":");
    const char *at = spec + length;
    const struct model_family *family = find_family(spec, length);

    *parsed = (struct parsed){.family = family};
    if (family == NULL) return "is unknown";
    while (*at == ':' || *at == ',') {
        at++;
        if (parsed->count == family->numbers_max) return "has too many numbers";
        parsed->numbers[parsed->count] = parse_number(&at, family->number_max);
        if (parsed->numbers[parsed->count++] == 0) return "has a missing or bad number";
        if (*at != '\0' && *at != ',') return "has a missing or bad number";
    }
    while (parsed->count < PRESETS && family->preset[parsed->count] > 0) {
        parsed->numbers[parsed->count] = family->preset[parsed->count];
        parsed->count++;
    }
    return parsed->count < family->numbers_min ? "has a missing or bad number" : NULL;
}

static void write_spec(char *spec, size_t size, const struct parsed *parsed)
{
    size_t used = (size_t)snprintf(spec, size, "%s", parsed->family->name);

    for (uint32_t i = 0; i < parsed->count; i++)
        used += (size_t)snprintf(spec + used, size - used, "%c%u", i > 0 ? ',' : ':',
                                 parsed->numbers[i]);
}

static int check_data(const char *spec, unsigned takes, const struct model_data *data, char *why,
                      size_t why_size)
{
    static const char *const names[] = {"tables", "images", "text"};
    int kind = data->text ? 2 : data->channels > 0 ? 1 : 0;
    uint32_t least = data->features < data->classes ? data->features : data->classes;
    char list[64] = "";

    if (least < 1 || data->features > MODEL_FEATURES_MAX || data->classes > MODEL_WIDTH_MAX) {
        snprintf(why, why_size,
                 "model '%.64s' can't take %u features and %u classes; valid: 1 to %u and 1 to %u",
                 spec, data->features, data->classes, MODEL_FEATURES_MAX, MODEL_WIDTH_MAX);
        return PARLEY_EUSAGE;
    }
    if (!(takes & (data->numbers ? TAKES_NUMBERS : TAKES_CLASSES))) {
        snprintf(why, why_size, "model '%.64s' %s", spec,
                 data->numbers ? "takes classes as labels, not numbers; linear and mlp:256,128 "
                                 "take these"
                               : "takes numbers as labels, not classes: write \",numbers\" behind "
                                 "--data csv:, libsvm: or npy:");
        return PARLEY_EUSAGE;
    }
    if (takes & (1u << kind)) return 0;
    for (int k = 0; k < 3; k++)
        if (takes & (1u << k)) {
            size_t at = strlen(list);
            snprintf(list + at, sizeof list - at, "%s%s", at > 0 ? " and " : "", names[k]);
        }
    snprintf(why, why_size, "model '%.64s' takes %s, not %s; %s takes these", spec, list,
             names[kind], kind == 2 ? "gpt" : "mlp:256,128");
    return PARLEY_EUSAGE;
}

static struct shape data_shape(const struct model_data *data)
{
    if (data->channels == 0) return (struct shape){1, 1, data->features};
    return (struct shape){data->channels, data->height, data->width};
}

int model_new(struct model **model, const char *spec, const struct model_data *data, char *why,
              size_t why_size)
{
    struct parsed parsed;
    const char *fault = parse_spec(spec, &parsed);
    struct model *made;
    int error;

    *model = NULL;
    if (fault != NULL) return refuse(why, why_size, spec, fault);
    error = check_data(spec, parsed.family->takes, data, why, why_size);
    if (error) return error;
    made = calloc(1, sizeof *made);
    if (made == NULL) return PARLEY_ENOMEM;
    write_spec(made->spec, sizeof made->spec, &parsed);
    made->network.data = *data;
    made->network.out = data_shape(data);
    parsed.family->build(&made->network, parsed.numbers, parsed.count);
    error = network_end(&made->network);
    if (error == PARLEY_EUSAGE && data->channels > 0)
        snprintf(why, why_size, "model '%.64s' %s; the data's images are %u x %u in %u channels",
                 spec, made->network.fault, data->height, data->width, data->channels);
    else if (error == PARLEY_EUSAGE)
        snprintf(why, why_size, "model '%.64s' %s", spec, made->network.fault);
    if (error) {
        model_free(made);
        return error;
    }
    *model = made;
    return 0;
}

size_t model_parameters(const struct model *model)
{
    return model->network.parameters;
}

size_t model_trained(const struct model *model)
{
    return model->network.trained;
}

const struct tensor *model_tensors(const struct model *model, uint32_t *count)
{
    *count = model->network.tensor_count;
    return model->network.tensors;
}

const struct layer *model_layers(const struct model *model, uint32_t *count)
{
    *count = model->network.layer_count;
    return model->network.layers;
}

uint32_t model_first_trained(const struct model *model)
{
    return model->network.first_trained;
}

const char *model_spec(const struct model *model)
{
    return model->spec;
}

uint32_t model_places(const struct model *model)
{
    return model->network.out.height;
}

uint64_t model_digest(const struct model *model)
{
    uint64_t digest = 0;
    char line[128];

    for (uint32_t i = 0; i < model->network.tensor_count; i++) {
        const struct tensor *tensor = &model->network.tensors[i];
        int length = snprintf(line, sizeof line, "F32 %s", tensor->name);

        for (uint32_t r = 0; r < tensor->rank; r++)
            length +=
                snprintf(line + length, sizeof line - (size_t)length, " %u", tensor->shape[r]);
        digest = XXH3_64bits_withSeed(line, (size_t)length, digest);
    }
    return digest;
}

/* Drawn uniform and not normal: then there is no logarithm, which libraries round in different
 * ways. */
static void start_tensor(const struct tensor_plan *plan, struct rng *rng, float *x)
{
    double bound = sqrt(3 * plan->variance);
    size_t count = 1;

    for (uint32_t r = 0; r < plan->rank; r++)
        count *= plan->shape[r];
    for (size_t i = 0; i < count; i++)
        x[i] = plan->variance > 0 ? plan->value + (float)(bound * (2 * rng_unit(rng) - 1))
                                  : plan->value;
}

void model_start(const struct model *model, uint64_t seed, float *x)
{
    for (uint32_t l = 0; l < model->network.layer_count; l++) {
        const struct layer *layer = &model->network.layers[l];
        struct rng rng = rng_init(seed, START_STREAM + l);

        for (uint32_t t = 0; t < layer->tensor_count; t++)
            start_tensor(&layer->tensors[t], &rng, x + layer->at[t]);
    }
}

void model_free(struct model *model)
{
    if (model == NULL) return;
    network_close(&model->network);
    free(model);
}
