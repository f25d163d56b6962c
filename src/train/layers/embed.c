/* embed.c: a row of parameters for each character and one for each place in the text:
 * y[place][width] = token[the character's number][width] + position[place][width].
 *
 * in: [1][1][places], numbers of characters; out: [1][places][width].
 * Initial deviation 0.02, as in GPT-2 (Radford et al. 2019, and its code).
 */
#include <string.h>

#include "kernels/mix.h"
#include "train/layers/layers.h"

enum { TOKEN, POSITION };

static const char *plan(struct layer *layer)
{
    uint32_t places = layer->in.width, width = layer->option[EMBED_WIDTH];
    uint32_t vocabulary = layer->option[EMBED_VOCABULARY];

    layer->out = (struct shape){1, places, width};
    layer->scratch = ((size_t)vocabulary + places) * width;
    layer->tensor_count = 2;
    layer->tensors[TOKEN] = (struct tensor_plan){
        .name = "token", .rank = 2, .shape = {vocabulary, width}, .variance = 0.02 * 0.02};
    layer->tensors[POSITION] = (struct tensor_plan){
        .name = "position", .rank = 2, .shape = {places, width}, .variance = 0.02 * 0.02};
    return NULL;
}

static void forward(const struct layer *layer, const struct layer_pass *pass)
{
    size_t places = layer->out.height, width = layer->out.width;
    const float *number = pass->input, *token = pass->x + layer->at[TOKEN];
    const float *position = pass->x + layer->at[POSITION];
    float *y = pass->output;

    for (uint32_t row = 0; row < pass->rows; row++) {
        for (size_t place = 0; place < places; place++, number++, y += width) {
            const float *what = token + (size_t)*number * width, *where = position + place * width;
            for (size_t j = 0; j < width; j++)
                y[j] = what[j] + where[j];
        }
    }
}

/* The tokens are what the data says: there is no loss by them. */
static void backward(const struct layer *layer, const struct layer_pass *pass,
                     const struct gradient_sink *sink)
{
    size_t places = layer->out.height, width = layer->out.width;
    size_t tokens = layer->option[EMBED_VOCABULARY] * width;
    const float *number = pass->input, *delta = pass->delta;
    float *token = pass->scratch, *position = pass->scratch + tokens;

    memset(pass->scratch, 0, layer->scratch * sizeof *pass->scratch);
    for (uint32_t row = 0; row < pass->rows; row++) {
        for (size_t place = 0; place < places; place++, number++, delta += width) {
            mix_add(token + (size_t)*number * width, delta, 1, width);
            mix_add(position + place * width, delta, 1, width);
        }
    }
    sink_add(sink, layer->at[TOKEN], token, tokens);
    sink_add(sink, layer->at[POSITION], position, places * width);
}

const struct layer_kind layer_embed = {"embed", plan, forward, backward};
