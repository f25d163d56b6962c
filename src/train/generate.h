/* generate.h: text from a language model, a character at a time.
 *
 * Happy path: generate_init; generate_put for each character of a prompt (at least one); then
 * generate_next and generate_put of what came; generate_close.
 * The model sees the newest characters that its window holds. Each is computed anew: no state of
 * the layers is kept from one to the next.
 * Thread rule: belongs to one thread.
 */
#ifndef PARLEY_TRAIN_GENERATE_H
#define PARLEY_TRAIN_GENERATE_H

#include "core/rng.h"
#include "train/gradient.h"
#include "train/model.h"

struct generate {
    const struct model *model; /* borrowed */
    const float *x;            /* [model_parameters()]; borrowed */
    struct workspace workspace;
    double temperature;
    struct rng rng;
    uint32_t classes, places, seen; /* seen: characters in the window */
};

/* temperature: at least 0; 1 draws as the model says, 0 takes the likeliest, larger ones even the
 * odds. PARLEY_ENOMEM. */
PARLEY_CHECK int generate_init(struct generate *generate, const struct model *model, const float *x,
                               double temperature, uint64_t seed);

/* number: below the model's classes. */
void generate_put(struct generate *generate, uint32_t number);

/* A number of the next character, drawn. PARLEY_EDIVERGED if the model's numbers are not finite. */
PARLEY_CHECK int generate_next(struct generate *generate, uint32_t *number);
void generate_close(struct generate *generate);

#endif
