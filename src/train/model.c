/* model.c: from a spec to layers and tensors, and the initial parameters.
 *
 * Happy path: parse the widths, chain the layers features -> widths -> classes, lay weight and bias
 * of each one after the other into the flat vector, name them.
 * Failure modes: a spec that is no model, or one whose size breaks a limit of model.h.
 */
#include "train/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/rng.h"

#define LAYERS_MAX (MODEL_HIDDEN_MAX + 1)
#define START_STREAM UINT64_C(0x6d6f64656c000000) /* "model", then the layer's number */

struct model {
    char spec[8 + 6 * MODEL_HIDDEN_MAX];
    uint32_t layer_count;
    struct layer layers[LAYERS_MAX];
    struct tensor tensors[2 * LAYERS_MAX];
    size_t parameters;
};

static int refuse(char *why, size_t why_size, const char *spec, const char *fault)
{
    snprintf(why, why_size,
             "model '%.64s' %s; valid: softmax, mlp:WIDTH[,WIDTH...] with 1 to %u widths from 1 "
             "to %u, as in mlp:256,128",
             spec, fault, MODEL_HIDDEN_MAX, MODEL_WIDTH_MAX);
    return PARLEY_EUSAGE;
}

/* One width at *at, which moves behind it; 0 if there is none in range. */
static uint32_t parse_width(const char **at)
{
    uint32_t width = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        width = width * 10 + (uint32_t)(**at - '0');
        if (width > MODEL_WIDTH_MAX) return 0;
    }
    return width;
}

/* widths: [MODEL_HIDDEN_MAX]. NULL if the spec is good, else what is wrong with it. */
static const char *parse_spec(const char *spec, uint32_t *widths, uint32_t *count)
{
    const char *at = spec + 4;

    *count = 0;
    if (strcmp(spec, "softmax") == 0) return NULL;
    if (strncmp(spec, "mlp:", 4) != 0) return "is unknown";
    for (;; at++) {
        if (*count == MODEL_HIDDEN_MAX) return "has too many layers";
        widths[*count] = parse_width(&at);
        if (widths[*count] == 0) return "has a missing or bad width";
        (*count)++;
        if (*at == '\0') return NULL;
        if (*at != ',') return "has a missing or bad width";
    }
}

static void write_spec(char *spec, size_t size, const uint32_t *widths, uint32_t count)
{
    size_t used = (size_t)snprintf(spec, size, "%s", count > 0 ? "mlp" : "softmax");

    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(spec + used, size - used, "%c%u", i > 0 ? ',' : ':', widths[i]);
}

static struct tensor *add_tensor(struct model *model, uint32_t number, const char *part)
{
    struct tensor *tensor = &model->tensors[2 * number + (part[0] == 'b')];

    snprintf(tensor->name, sizeof tensor->name, "layer%u.%s", number, part);
    tensor->offset = model->parameters;
    return tensor;
}

static void add_layer(struct model *model, uint32_t in, uint32_t out)
{
    uint32_t number = model->layer_count++;
    struct tensor *weight = add_tensor(model, number, "weight");
    struct tensor *bias;

    weight->rank = 2;
    weight->shape[0] = in;
    weight->shape[1] = out;
    weight->count = (size_t)in * out;
    model->parameters += weight->count;
    bias = add_tensor(model, number, "bias");
    bias->rank = 1;
    bias->shape[0] = out;
    bias->count = out;
    model->parameters += bias->count;
    model->layers[number] = (struct layer){in, out, weight->offset, bias->offset};
}

static uint64_t count_parameters(const uint32_t *widths, uint32_t count, uint32_t features,
                                 uint32_t classes)
{
    uint64_t total = 0, in = features;

    for (uint32_t i = 0; i < count; i++) {
        total += (in + 1) * widths[i];
        in = widths[i];
    }
    return total + (in + 1) * classes;
}

int model_new(struct model **model, const char *spec, uint32_t features, uint32_t classes,
              char *why, size_t why_size)
{
    uint32_t widths[MODEL_HIDDEN_MAX], count, in = features;
    const char *fault = parse_spec(spec, widths, &count);
    struct model *made;

    *model = NULL;
    if (fault != NULL) return refuse(why, why_size, spec, fault);
    if (features < 1 || features > MODEL_FEATURES_MAX || classes < 1 || classes > MODEL_WIDTH_MAX) {
        snprintf(why, why_size,
                 "model '%.64s' can't take %u features and %u classes; valid: 1 to %u and 1 to %u",
                 spec, features, classes, MODEL_FEATURES_MAX, MODEL_WIDTH_MAX);
        return PARLEY_EUSAGE;
    }
    if (count_parameters(widths, count, features, classes) > MODEL_PARAMETERS_MAX)
        return refuse(why, why_size, spec, "has more than 2^31 parameters");
    made = calloc(1, sizeof *made);
    if (made == NULL) return PARLEY_ENOMEM;
    write_spec(made->spec, sizeof made->spec, widths, count);
    for (uint32_t i = 0; i < count; i++) {
        add_layer(made, in, widths[i]);
        in = widths[i];
    }
    add_layer(made, in, classes);
    *model = made;
    return 0;
}

size_t model_parameters(const struct model *model)
{
    return model->parameters;
}

const struct tensor *model_tensors(const struct model *model, uint32_t *count)
{
    *count = 2 * model->layer_count;
    return model->tensors;
}

const struct layer *model_layers(const struct model *model, uint32_t *count)
{
    *count = model->layer_count;
    return model->layers;
}

const char *model_spec(const struct model *model)
{
    return model->spec;
}

uint64_t model_digest(const struct model *model)
{
    uint64_t digest = 0;
    char line[128];

    for (uint32_t i = 0; i < 2 * model->layer_count; i++) {
        const struct tensor *tensor = &model->tensors[i];
        int length = snprintf(line, sizeof line, "F32 %s", tensor->name);

        for (uint32_t r = 0; r < tensor->rank; r++)
            length +=
                snprintf(line + length, sizeof line - (size_t)length, " %u", tensor->shape[r]);
        digest = XXH3_64bits_withSeed(line, (size_t)length, digest);
    }
    return digest;
}

/* He et al. 2015, section 2.2: variance 2/in where a ReLU follows, 1/in where none does. Drawn
 * uniform and not normal: then there is no logarithm, which libraries round in different ways. */
void model_start(const struct model *model, uint64_t seed, float *x)
{
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct layer *layer = &model->layers[l];
        double variance = (l + 1 < model->layer_count ? 2.0 : 1.0) / layer->in;
        double bound = sqrt(3 * variance);
        struct rng rng = rng_init(seed, START_STREAM + l);
        size_t count = (size_t)layer->in * layer->out;

        for (size_t i = 0; i < count; i++)
            x[layer->weight + i] = (float)(bound * (2 * rng_unit(&rng) - 1));
        memset(x + layer->bias, 0, layer->out * sizeof *x);
    }
}

void model_free(struct model *model)
{
    free(model);
}
