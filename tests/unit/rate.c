/* rate.c: samples a second, as lines say it. */
#include <criterion/criterion.h>

#include "report/rate.h"

enum { LINE_US = 250000 };

Test(rate, of_steps_that_are_longer_than_a_line_is_apart_each_line_says_how_many_there_are)
{
    /* Proves that 32 samples every 700 ms are about 46 a second in each line, not 0 or 128. */
    struct rate rate = {0};
    uint64_t start_us = 5000000;
    cr_assert_eq(rate_now(&rate, start_us, 0, true), 0);
    for (uint64_t t = LINE_US; t < 20000000; t += LINE_US) {
        double value = rate_now(&rate, start_us + t, t / 700000 * 32, true);
        if (t >= RATE_WINDOW_US) cr_assert(value > 27 && value < 65, "%g at %g s", value, t / 1e6);
    }
}

Test(rate, what_was_long_ago_does_not_count)
{
    struct rate rate = {0};
    uint64_t t = LINE_US, samples = 0;
    double value = 0;
    for (; t < 10000000; t += LINE_US)
        value = rate_now(&rate, t, samples += 250, true);
    cr_assert_float_eq(value, 1000, 1e-9);
    for (uint64_t end = t + 2 * RATE_WINDOW_US; t <= end; t += LINE_US)
        value = rate_now(&rate, t, samples += 25, true);
    cr_assert_float_eq(value, 100, 1e-9);
}

Test(rate, who_waits_or_settles_makes_none_and_is_not_judged_by_that_time)
{
    struct rate rate = {0};
    uint64_t t = LINE_US, resumed = 7000;
    for (; t < 30000000; t += LINE_US)
        cr_assert_eq(rate_now(&rate, t, resumed, false), 0);
    uint64_t start_us = t - LINE_US;
    cr_assert_float_eq(rate_now(&rate, t, resumed + 50, true), 200, 1e-9);
    double later = rate_now(&rate, t + LINE_US, resumed + 50, true);
    cr_assert_float_eq(later, 50e6 / (double)(t + LINE_US - start_us), 1e-9);
    cr_assert_eq(rate_now(&rate, t + 2 * LINE_US, resumed + 90, false), 0);
}
