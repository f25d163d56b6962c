/* rate.c: see rate.h. */
#include "report/rate.h"

enum { LEAST_US = 1000 };

double rate_now(struct rate *rate, uint64_t now_us, uint64_t samples, bool trains)
{
    if (!trains || rate->since_us == 0) {
        *rate = (struct rate){now_us, samples, now_us, samples, 0};
        return 0;
    }
    if (now_us >= rate->middle_us + RATE_WINDOW_US) {
        rate->since_us = rate->middle_us;
        rate->since = rate->middle;
        rate->middle_us = now_us;
        rate->middle = samples;
    }
    if (now_us > rate->since_us + LEAST_US)
        rate->value = (double)(samples - rate->since) * 1e6 / (double)(now_us - rate->since_us);
    return rate->value;
}
