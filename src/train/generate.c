/* generate.c: see generate.h. The window lies in the workspace's inputs. */
#include "train/generate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "train/layer.h"
#include "train/loss.h"

#define DRAW_STREAM UINT64_C(0x74657874) /* apart from the other streams of one seed */

int generate_init(struct generate *generate, const struct model *model, const float *x,
                  double temperature, uint64_t seed)
{
    uint32_t count;
    const struct layer *layers = model_layers(model, &count);
    int error;

    *generate = (struct generate){.model = model,
                                  .x = x,
                                  .temperature = temperature,
                                  .rng = rng_init(seed, DRAW_STREAM),
                                  .classes = layers[count - 1].out.width,
                                  .places = model_places(model)};
    error = workspace_init(&generate->workspace, model, 1);
    if (error) return error;
    for (uint32_t i = 0; i < generate->places; i++)
        generate->workspace.inputs[i] = 0; /* what no place looks at yet must be a character */
    return 0;
}

void generate_put(struct generate *generate, uint32_t number)
{
    float *window = generate->workspace.inputs;

    assert(number < generate->classes);
    if (generate->seen == generate->places) {
        memmove(window, window + 1, (generate->places - 1) * sizeof *window);
        generate->seen--;
    }
    window[generate->seen++] = (float)number;
}

int generate_next(struct generate *generate, uint32_t *number)
{
    assert(generate->seen > 0);
    const float *logits =
        gradient_forward(generate->model, &generate->workspace, generate->x, 1, false) +
        (size_t)(generate->seen - 1) * generate->classes;
    uint32_t best = loss_best(logits, generate->classes);
    double sum = 0, left;

    for (uint32_t c = 0; c < generate->classes; c++) {
        if (!isfinite(logits[c])) return PARLEY_EDIVERGED;
        if (generate->temperature > 0)
            sum += exp(((double)logits[c] - (double)logits[best]) / generate->temperature);
    }
    *number = best;
    left = rng_unit(&generate->rng) * sum;
    for (uint32_t c = 0; left > 0 && c < generate->classes; c++) {
        left -= exp(((double)logits[c] - (double)logits[best]) / generate->temperature);
        if (left <= 0) *number = c;
    }
    return 0;
}

void generate_close(struct generate *generate)
{
    workspace_close(&generate->workspace);
}
