/* axis.c: ticks at 1, 2 and 5 times powers of ten. */
#include "experiment/axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/human.h"

/* 1 itself stands where an accuracy with this error would: a decade above 0.9999. */
#define ERROR_MIN 1e-5

/* Of a logarithmic axis the high end is at least so many times the low one. */
#define NARROW 1.25

/* ---- Where a value stands -------------------------------------------------------------------- */

/* The value on a scale that is drawn evenly. */
static double even(enum axis_scale scale, double value)
{
    if (scale == AXIS_LOG) return log10(fmax(value, 1e-300));
    if (scale == AXIS_ACCURACY) return -log10(fmax(1 - value, ERROR_MIN));
    return value;
}

double axis_reach(const struct axis *axis, double value)
{
    double low = even(axis->scale, axis->low), high = even(axis->scale, axis->high);
    return (even(axis->scale, value) - low) / (high - low);
}

double axis_place(const struct axis *axis, double value)
{
    double place = axis_reach(axis, value);
    return !(place > 0) ? 0 : place > 1 ? 1 : place;
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

static void add_tick(struct axis *axis, double value)
{
    if (axis->count < AXIS_TICKS_MAX) axis->ticks[axis->count++] = value;
}

/* 1, 2 or 5 times a power of ten, so that about `parts` of them make `span`. */
static double nice_step(double span, double parts)
{
    double raw = span / parts, power = pow(10, floor(log10(raw))), head = raw / power;
    return power * (head < 1.5 ? 1 : head < 3.5 ? 2 : head < 7.5 ? 5 : 10);
}

static void fit_linear(struct axis *axis)
{
    if (axis->high <= axis->low) {
        double room = fmax(fabs(axis->low) * 0.1, 1e-9);
        axis->low -= room;
        axis->high += room;
    }
    double step = nice_step((axis->high - axis->low) / axis->divisor, 5) * axis->divisor;
    double first = floor(axis->low / step + 1e-9), last = ceil(axis->high / step - 1e-9);
    axis->low = first * step;
    axis->high = last * step;
    for (double i = first; i <= last + 0.5; i++)
        add_tick(axis, i * step);
}

static void fit_log(struct axis *axis)
{
    double ratio = axis->high / axis->low;
    if (ratio < NARROW) { /* what hardly differs is to look so, and its ticks to have few digits */
        axis->low /= sqrt(NARROW / ratio);
        axis->high *= sqrt(NARROW / ratio);
    }
    double low = log10(axis->low), high = log10(axis->high), every = ceil((high - low) / 7);
    if (high - low >= 2) {
        for (double power = ceil(low / every) * every; power <= high + 1e-9; power += every)
            add_tick(axis, pow(10, power));
        if (axis->count >= 3) return;
        axis->count = 0;
    }
    for (double power = floor(low); power <= high; power++)
        for (int i = 0; i < 3; i++) {
            double value = pow(10, power) * (i == 0 ? 1 : i == 1 ? 2 : 5);
            if (value >= axis->low * 0.999 && value <= axis->high * 1.001) add_tick(axis, value);
        }
    if (axis->count >= 3) return;
    axis->count = 0; /* all lies between two of those: steps as on a linear axis */
    double step = nice_step(axis->high - axis->low, 4);
    for (double i = ceil(axis->low / step - 1e-9); i * step <= axis->high * 1.001; i++)
        add_tick(axis, i * step);
}

static void fit_accuracy(struct axis *axis)
{
    static const double marks[] = {0,    0.2,  0.4,   0.6,   0.8,   0.9,    0.95,
                                   0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1};
    enum { MARKS = sizeof marks / sizeof *marks };
    int first = MARKS - 1, last = 0;
    while (first > 0 && marks[first] > axis->low + 1e-12)
        first--;
    while (last < MARKS - 1 && marks[last] < axis->high - 1e-12)
        last++;
    if (last <= first) last = first + 1;
    if (last > MARKS - 1) first = MARKS - 2, last = MARKS - 1;
    axis->low = marks[first];
    axis->high = marks[last];
    for (int i = first; i <= last; i++)
        add_tick(axis, marks[i]);
}

static void choose_unit(struct axis *axis)
{
    static const struct unit {
        double from, divisor;
        const char *text;
    } times[] = {{7200, 3600, "h"}, {180, 60, "min"}, {0.3, 1, "s"}, {0, 1e-3, "ms"}},
      sizes[] = {
          {1e12, 1e12, "TB"}, {1e9, 1e9, "GB"}, {1e6, 1e6, "MB"}, {1e3, 1e3, "kB"}, {0, 1, "B"}};
    axis->divisor = 1;
    axis->unit_text = "";
    if (axis->unit == AXIS_PLAIN || axis->scale != AXIS_LINEAR) return;
    const struct unit *unit = axis->unit == AXIS_SECONDS ? times : sizes;
    while (unit->from > 0 && axis->high < unit->from)
        unit++;
    axis->divisor = unit->divisor;
    axis->unit_text = unit->text;
}

struct axis axis_fit(enum axis_scale scale, enum axis_unit unit, double low, double high)
{
    struct axis axis = {.scale = scale, .unit = unit, .low = low, .high = high};
    if (!(low <= high) || (scale == AXIS_LOG && high <= 0)) { /* no value at all */
        axis.low = scale == AXIS_LOG ? 0.1 : 0;
        axis.high = 1;
    }
    if (scale == AXIS_LINEAR && low == 0 && high == 0) axis.high = 1; /* nothing is less than 0 */
    if (scale == AXIS_LOG && axis.low <= 0) axis.low = axis.high * 1e-9;
    choose_unit(&axis);
    if (scale == AXIS_LOG)
        fit_log(&axis);
    else if (scale == AXIS_ACCURACY)
        fit_accuracy(&axis);
    else
        fit_linear(&axis);
    return axis;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* "10⁻⁴"; nothing else is as short. */
static void power_label(int power, char out[AXIS_LABEL_BYTES])
{
    static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    int size = abs(power);
    snprintf(out, AXIS_LABEL_BYTES, "10%s%s%s", power < 0 ? "⁻" : "",
             size >= 10 ? digits[size / 10 % 10] : "", digits[size % 10]);
}

/* "100 kB", where other figures would be "100.0 kB". */
static void bytes_label(double value, char out[AXIS_LABEL_BYTES])
{
    char text[HUMAN_BYTES];
    human_bytes(text, (uint64_t)(value + 0.5));
    const char *unit = strchr(text, ' '), *zero = strstr(text, ".0 ");
    snprintf(out, AXIS_LABEL_BYTES, "%.*s%s", (int)((zero ? zero : unit) - text), text, unit);
}

const char *axis_label(const struct axis *axis, double value, char out[AXIS_LABEL_BYTES])
{
    double power = log10(fmax(fabs(value), 1e-300));
    if (axis->scale != AXIS_LOG)
        snprintf(out, AXIS_LABEL_BYTES, "%.6g", value == 0 ? 0 : value / axis->divisor);
    else if (axis->unit == AXIS_BYTES)
        bytes_label(value, out);
    else if (axis->unit == AXIS_SECONDS && value < 0.9999)
        snprintf(out, AXIS_LABEL_BYTES, "%.3g ms", value * 1e3);
    else if (fabs(power - round(power)) < 1e-6 && (power < -2.5 || power > 3.5))
        power_label((int)round(power), out);
    else
        snprintf(out, AXIS_LABEL_BYTES, "%.3g%s", value, axis->unit == AXIS_SECONDS ? " s" : "");
    return out;
}
