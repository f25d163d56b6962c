/* byzantine.c: a node that lies: its own model is what it is, what it sends of it is not. Frames
 * and their checksums are as they should be. */
#include <math.h>

#include "world/cluster.h"

enum { TIMES = 100 };

void sim_byzantine(struct sim_host *host, float *x, size_t count)
{
    switch (host->lie) {
    case PARLEY_SIM_HONEST:
        break;
    case PARLEY_SIM_SIGN:
        for (size_t j = 0; j < count; j++)
            x[j] = -x[j];
        break;
    case PARLEY_SIM_SCALE:
        for (size_t j = 0; j < count; j++)
            x[j] *= TIMES;
        break;
    case PARLEY_SIM_RANDOM:
        for (size_t j = 0; j < count; j++)
            x[j] = (float)rng_normal(&host->draws);
        break;
    case PARLEY_SIM_NAN: /* one is enough, and harder to see */
        x[rng_below(&host->draws, (uint32_t)count)] = NAN;
        break;
    }
}
