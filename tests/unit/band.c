/* band.c: the mean of runs whose points lie elsewhere in each. */
#include <criterion/criterion.h>

#include <math.h>

#include "experiment/band.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9)

static struct band band;

static void expect_point(uint32_t p, double x, double mean, double low, double high)
{
    cr_expect(NEAR(band.x[p], x) && NEAR(band.mean[p], mean) && NEAR(band.low[p], low) &&
                  NEAR(band.high[p], high),
              "%u: %g: %g, %g to %g", p, band.x[p], band.mean[p], band.low[p], band.high[p]);
}

Test(band, runs_are_read_at_the_same_places_from_where_all_have_begun)
{
    /* y = x from 0 to 4, and 3 at any x from 1 to 11: after 4 the first one stays as it ended. */
    const double x[] = {0, 4}, y[] = {0, 4}, at[] = {1, 2, 3, 11}, is[] = {3, 3, NAN, 3};
    const struct band_run runs[] = {{x, y, 2, 1}, {at, is, 4, 1}};
    band_fill(&band, runs, 2, AXIS_LINEAR, INFINITY);
    cr_assert_eq(band.count, BAND_POINTS);
    cr_expect(!band.goes_on);
    expect_point(0, 1, 2, 1, 3);
    expect_point(10, 2, 2.5, 2, 3);
    expect_point(20, 3, 3, 3, 3);
    expect_point(50, 6, 3.5, 3, 4);
    expect_point(100, 11, 3.5, 3, 4);
    /* No further than asked for. */
    band_fill(&band, runs, 2, AXIS_LINEAR, 3);
    cr_expect(band.goes_on);
    expect_point(50, 2, 2.5, 2, 3);
    expect_point(100, 3, 3, 3, 3);
    /* Evenly on a logarithmic axis. */
    band_fill(&band, runs, 2, AXIS_LOG, INFINITY);
    expect_point(50, sqrt(11), (sqrt(11) + 3) / 2, 3, sqrt(11));
}

Test(band, one_run_keeps_its_points)
{
    /* But those that are not known, and those past where it is to end: there it has one more. */
    const double x[] = {0, 1, 1, 2, 4}, y[] = {NAN, 5, 6, NAN, 3};
    const struct band_run run = {x, y, 5, 1};
    band_fill(&band, &run, 1, AXIS_LINEAR, INFINITY);
    cr_assert_eq(band.count, 3);
    expect_point(0, 1, 5, 5, 5);
    expect_point(1, 1, 6, 6, 6);
    expect_point(2, 4, 3, 3, 3);
    band_fill(&band, &run, 1, AXIS_LINEAR, 3);
    cr_assert_eq(band.count, 3);
    expect_point(2, 3, 4, 4, 4);
    cr_expect(band.goes_on);
}

Test(band, runs_without_a_point_are_left_out)
{
    /* All of them give no band, and nothing is divided by their number. */
    const double x[] = {0, 1}, y[] = {NAN, NAN}, z[] = {2, 4};
    const struct band_run runs[] = {{x, y, 2, 1}, {x, y, 0, 1}, {x, z, 2, 1}};
    band_fill(&band, runs, 2, AXIS_LINEAR, INFINITY);
    cr_expect_eq(band.count, 0);
    band_fill(&band, runs, 0, AXIS_LINEAR, INFINITY);
    cr_expect_eq(band.count, 0);
    band_fill(&band, runs, 3, AXIS_LINEAR, INFINITY);
    cr_assert_eq(band.count, BAND_POINTS);
    expect_point(50, 0.5, 3, 3, 3);
    /* Those that begin where the others are to have ended. */
    band_fill(&band, runs, 3, AXIS_LINEAR, -1);
    cr_expect_eq(band.count, 0);
}
