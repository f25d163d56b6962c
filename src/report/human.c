/* human.c: three digits are enough for the eye. */
#include "report/human.h"

#include <math.h>
#include <stdio.h>

const char *human_bytes(char out[HUMAN_BYTES], uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 999.95 && unit < 6; unit++)
        value /= 1000;
    snprintf(out, HUMAN_BYTES, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}

const char *human_seconds(char out[HUMAN_BYTES], double seconds)
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e12)
        snprintf(out, HUMAN_BYTES, "-");
    else if (seconds < 9.995)
        snprintf(out, HUMAN_BYTES, "%.2f s", seconds);
    else if (seconds < 99.95)
        snprintf(out, HUMAN_BYTES, "%.1f s", seconds);
    else if (seconds < 3599.5) {
        int whole = (int)(seconds + 0.5);
        snprintf(out, HUMAN_BYTES, "%d min %02d s", whole / 60, whole % 60);
    } else {
        long long minutes = (long long)(seconds / 60 + 0.5);
        snprintf(out, HUMAN_BYTES, "%lld h %02lld min", minutes / 60, minutes % 60);
    }
    return out;
}

const char *human_loss(char out[HUMAN_BYTES], double loss)
{
    if (!isfinite(loss))
        snprintf(out, HUMAN_BYTES, "-");
    else if (fabs(loss) < 0.0005 && loss != 0)
        snprintf(out, HUMAN_BYTES, "%.1e", loss);
    else if (fabs(loss) < 9.99995)
        snprintf(out, HUMAN_BYTES, "%.4f", loss);
    else
        snprintf(out, HUMAN_BYTES, "%.4g", loss);
    return out;
}

const char *human_drift(char out[HUMAN_BYTES], double drift)
{
    if (!isfinite(drift))
        snprintf(out, HUMAN_BYTES, "-");
    else if (drift == 0)
        snprintf(out, HUMAN_BYTES, "0");
    else
        snprintf(out, HUMAN_BYTES, "%.1e", drift);
    return out;
}

const char *human_rate(char out[HUMAN_BYTES], double per_second)
{
    if (!isfinite(per_second) || per_second < 0)
        snprintf(out, HUMAN_BYTES, "-");
    else if (per_second < 999.5)
        snprintf(out, HUMAN_BYTES, "%.0f", per_second);
    else if (per_second < 999950)
        snprintf(out, HUMAN_BYTES, "%.1fk", per_second / 1e3);
    else if (per_second < 999.5e6)
        snprintf(out, HUMAN_BYTES, "%.2fM", per_second / 1e6);
    else
        snprintf(out, HUMAN_BYTES, "%.1e", per_second);
    return out;
}

double human_pause_s(double since_start_s)
{
    return since_start_s < 3 ? 1 : 5;
}
