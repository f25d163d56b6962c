/* Specs, tensors, digests and initial parameters of models. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/layer.h"
#include "train/model.h"

static const struct model_data mnist = {
    .features = 784, .channels = 1, .height = 28, .width = 28, .classes = 10};

static struct model *make(const char *spec, uint32_t features, uint32_t classes)
{
    struct model *model;
    char why[256] = "";

    cr_assert_eq(model_new(&model, spec,
                           &(struct model_data){.features = features, .classes = classes}, why,
                           sizeof why),
                 0, "%s", why);
    return model;
}

Test(train_model, a_bad_spec_is_refused_with_a_line_that_names_it)
{
    /* Proves that no malformed spec makes a model, and that the message helps. */
    static const char *const bad[] = {
        "",
        "mlp",
        "mlp:",
        "mlp:0",
        "mlp:256,,3",
        "mlp:256,",
        "mlp:,3",
        "mlp:-1",
        "mlp:65537",
        "mlp:99999999999999999999",
        "mlp:1.5",
        "mlp: 3",
        "mlp:3 ",
        "mlp:3x",
        "softmax:",
        "softmax:3",
        "Softmax",
        "letnet",
        "mlp:1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
        "mlp:65536,65536",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct model *model = (struct model *)&model;
        char why[256] = "", quoted[128];

        cr_expect_eq(model_new(&model, bad[i], &mnist, why, sizeof why), PARLEY_EUSAGE, "%s",
                     bad[i]);
        cr_expect_null(model);
        snprintf(quoted, sizeof quoted, "'%s'", bad[i]);
        cr_expect_not_null(strstr(why, quoted), "%s", why);
        cr_expect(strstr(why, "valid: softmax, mlp:") || strstr(why, "2^31 parameters"), "%s", why);
        cr_expect_null(strchr(why, '\n'));
    }
}

Test(train_model, a_long_bad_spec_and_a_short_message_buffer_are_harmless)
{
    /* Proves that the message is cut, not written past its end. */
    struct model *model;
    char spec[5000], why[16];

    memset(spec, '9', sizeof spec - 1);
    spec[sizeof spec - 1] = '\0';
    memset(why, '#', sizeof why);
    cr_expect_eq(model_new(&model, spec, &mnist, why, sizeof why - 1), PARLEY_EUSAGE);
    cr_expect_eq(strlen(why), sizeof why - 2);
    cr_expect_eq(why[sizeof why - 1], '#');
}

Test(train_model, data_without_features_or_classes_is_refused)
{
    /* Proves that sizes from the data are held to the limits too. */
    static const uint32_t bad[][2] = {
        {0, 10}, {784, 0}, {MODEL_FEATURES_MAX + 1, 10}, {784, MODEL_WIDTH_MAX + 1}};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct model *model;
        char why[256] = "";

        cr_expect_eq(model_new(&model, "softmax",
                               &(struct model_data){.features = bad[i][0], .classes = bad[i][1]},
                               why, sizeof why),
                     PARLEY_EUSAGE);
        cr_expect_not_null(strstr(why, "features"), "%s", why);
    }
}

Test(train_model, tensors_cover_the_vector_in_order_and_without_gaps)
{
    /* Proves names, shapes and offsets for the sizes of 0 to 16 hidden layers. */
    static const char *const specs[] = {"softmax", "mlp:5", "mlp:256,128",
                                        "mlp:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"};

    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        struct model *model = make(specs[s], 784, 10);
        uint32_t count, layers;
        const struct tensor *tensors = model_tensors(model, &count);
        const struct layer *layer = model_layers(model, &layers);
        size_t offset = 0;

        cr_assert_eq(count, 2 * layers);
        for (uint32_t i = 0; i < count; i++) {
            size_t product = 1;
            char name[32];

            snprintf(name, sizeof name, "layer%u.%s", i / 2, i % 2 == 0 ? "weight" : "bias");
            cr_expect_str_eq(tensors[i].name, name);
            for (uint32_t r = 0; r < tensors[i].rank; r++)
                product *= tensors[i].shape[r];
            cr_expect_eq(tensors[i].count, product);
            cr_expect_eq(tensors[i].offset, offset);
            offset += product;
        }
        for (uint32_t l = 0; l < layers; l++) {
            cr_expect_eq(layer[l].in.width, l > 0 ? layer[l - 1].out.width : 784);
            cr_expect_eq(layer[l].at[0], tensors[2 * l].offset);
            cr_expect_eq(layer[l].at[1], tensors[2 * l + 1].offset);
        }
        cr_expect_eq(layer[layers - 1].out.width, 10);
        cr_expect_eq(model_parameters(model), offset);
        cr_expect_str_eq(model_spec(model), specs[s]);
        model_free(model);
    }
}

Test(train_model, equal_models_have_equal_digests_and_others_do_not)
{
    /* Proves that nodes with unlike models notice, however the spec was written. */
    static const struct {
        const char *spec;
        uint32_t features, classes;
    } unlike[] = {{"softmax", 784, 10}, {"softmax", 10, 784}, {"softmax", 785, 10},
                  {"mlp:10", 784, 10},  {"mlp:11", 784, 10},  {"mlp:10,10", 784, 10},
                  {"mlp:12,3", 7, 5},   {"mlp:3,12", 7, 5}};
    uint64_t digests[sizeof unlike / sizeof unlike[0]];
    struct model *model;

    for (size_t i = 0; i < sizeof unlike / sizeof unlike[0]; i++) {
        model = make(unlike[i].spec, unlike[i].features, unlike[i].classes);
        digests[i] = model_digest(model);
        model_free(model);
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(digests[i], digests[k]);
    }
    model = make("mlp:012,03", 7, 5);
    cr_expect_str_eq(model_spec(model), "mlp:12,3");
    cr_expect_eq(model_digest(model), digests[6]);
    model_free(model);
}

Test(train_model, the_initial_model_is_a_function_of_the_seed_with_the_variance_of_he)
{
    /* Proves that all nodes start alike, and that signals neither die nor explode. */
    struct model *model = make("mlp:256,128", 784, 10);
    size_t bytes = model_parameters(model) * sizeof(float);
    float *x = malloc(bytes), *again = malloc(bytes);
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);

    for (uint64_t seed = 0; seed < 5; seed++) {
        model_start(model, seed + 1, again);
        model_start(model, seed, x);
        cr_expect_neq(memcmp(x, again, bytes), 0);
        model_start(model, seed, again);
        cr_expect_eq(memcmp(x, again, bytes), 0);
        for (uint32_t l = 0; l < count; l++) {
            uint32_t in = layers[l].in.width, out = layers[l].out.width;
            size_t n = (size_t)in * out;
            double sum = 0, squares = 0, wanted = (l + 1 < count ? 2.0 : 1.0) / in;

            for (size_t i = 0; i < n; i++) {
                double w = (double)x[layers[l].at[0] + i];
                sum += w;
                squares += w * w;
            }
            /* 6 standard deviations of each; that of a uniform square is 0.9 of its mean. */
            cr_expect_lt(fabs(sum / (double)n), 6 * sqrt(wanted / (double)n));
            cr_expect_lt(fabs(squares / (double)n / wanted - 1), 6 * 0.9 / sqrt((double)n));
            for (uint32_t j = 0; j < out; j++)
                cr_expect_eq(x[layers[l].at[1] + j], 0.0f);
        }
    }
    free(again);
    free(x);
    model_free(model);
}
