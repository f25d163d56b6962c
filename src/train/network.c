/* network.c: see network.h.
 *
 * Failure modes: a layer that can't take what comes before it, too many parameters, memory.
 */
#include "train/network.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(struct network *network, int error, const char *fault)
{
    if (network->error) return;
    network->error = error;
    network->fault = fault;
}

void network_refuse(struct network *network, const char *fault)
{
    fail(network, PARLEY_EUSAGE, fault);
}

static struct layer *append(struct network *network)
{
    if (network->layer_count == network->room) {
        uint32_t room = network->room > 0 ? 2 * network->room : 8;
        struct layer *layers = realloc(network->layers, room * sizeof *layers);

        if (layers == NULL) return NULL;
        network->layers = layers;
        network->room = room;
    }
    return memset(&network->layers[network->layer_count++], 0, sizeof(struct layer));
}

static uint64_t plan_count(const struct tensor_plan *plan)
{
    uint64_t count = 1;

    for (uint32_t r = 0; r < plan->rank; r++)
        count = count <= MODEL_PARAMETERS_MAX ? count * plan->shape[r] : count;
    return count;
}

static void count_tensors(struct network *network, const struct layer *layer)
{
    for (uint32_t t = 0; t < layer->tensor_count; t++) {
        uint64_t count = plan_count(&layer->tensors[t]);

        if (count > MODEL_PARAMETERS_MAX - network->parameters)
            fail(network, PARLEY_EUSAGE,
                 SIZE_MAX > UINT32_MAX ? "has more than 2^31 parameters"
                                       : "has more than 2^24 parameters");
        else
            network->parameters += count;
    }
    network->tensor_count += layer->tensor_count;
}

uint32_t network_add(struct network *network, const struct network_layer *wanted)
{
    uint32_t number = network->layer_count;
    struct layer *layer = network->error ? NULL : append(network);
    const char *fault;

    if (layer == NULL) {
        fail(network, PARLEY_ENOMEM, NULL);
        return 0;
    }
    layer->kind = wanted->kind;
    if (wanted->name != NULL)
        snprintf(layer->name, sizeof layer->name, "%s", wanted->name);
    else
        snprintf(layer->name, sizeof layer->name, "layer%u", number);
    memcpy(layer->option, wanted->option, sizeof layer->option);
    layer->relu = wanted->relu;
    layer->in = network->out;
    layer->skip = layer->skipped_to = LAYER_NONE;
    if (wanted->residual) {
        assert(wanted->skip < number && network->layers[wanted->skip].skipped_to == LAYER_NONE);
        layer->skip = wanted->skip;
        layer->skip_in = network->layers[wanted->skip].out;
        network->layers[wanted->skip].skipped_to = number;
    }
    fault = wanted->kind->plan(layer);
    if (wanted->variance > 0) layer->tensors[0].variance = wanted->variance;
    if (fault != NULL) fail(network, PARLEY_EUSAGE, fault);
    count_tensors(network, layer);
    network->out = layer->out;
    return number;
}

/* All tensors that are statistics, or all that are none, behind what is there. */
static void lay_out(struct network *network, bool statistics, uint32_t *placed, size_t *offset)
{
    for (uint32_t l = 0; l < network->layer_count; l++) {
        struct layer *layer = &network->layers[l];

        for (uint32_t t = 0; t < layer->tensor_count; t++) {
            const struct tensor_plan *plan = &layer->tensors[t];
            struct tensor *tensor = &network->tensors[*placed];

            if (plan->statistic != statistics) continue;
            snprintf(tensor->name, sizeof tensor->name, "%s.%s", layer->name, plan->name);
            tensor->rank = plan->rank;
            memcpy(tensor->shape, plan->shape, sizeof tensor->shape);
            tensor->count = (size_t)plan_count(plan);
            tensor->offset = layer->at[t] = *offset;
            *offset += tensor->count;
            (*placed)++;
            if (network->first_trained == LAYER_NONE) network->first_trained = l;
        }
    }
}

int network_end(struct network *network)
{
    uint32_t placed = 0;
    size_t offset = 0;

    if (network->error) return network->error;
    network->tensors = calloc(network->tensor_count, sizeof *network->tensors);
    if (network->tensors == NULL) return PARLEY_ENOMEM;
    network->first_trained = LAYER_NONE;
    lay_out(network, false, &placed, &offset);
    network->trained = offset;
    lay_out(network, true, &placed, &offset);
    assert(placed == network->tensor_count && offset == network->parameters);
    return 0;
}

void network_close(struct network *network)
{
    free(network->layers);
    free(network->tensors);
    memset(network, 0, sizeof *network);
}
