/* units.c: numbers, times, sizes, rates, shares, distributions, addresses: strict, with reasons. */
#include <criterion/criterion.h>

#include <string.h>

#include "settings/values/units.h"

Test(units, times_are_taken_with_every_unit_and_refused_without)
{
    /* Each unit has its factor; what is not wholly a time is refused with a reason. */
    const struct {
        const char *text;
        uint64_t us;
    } good[] = {{"0", 0},           {"1us", 1},
                {"500ms", 500000},  {"10s", 10000000},
                {"1.5s", 1500000},  {"5m", 300000000},
                {"2h", 7200000000}, {"0.1ms", 100},
                {"1e3ms", 1000000}, {"8784h", UNITS_TIME_MAX_US}};
    const char *bad[] = {"",     "5",   "s",     "5 s",    " 5s",   "5s ", "-5s",
                         "5sec", "+5s", "0x5s",  "infs",   "nans",  "5S",  "1..s",
                         ".5s",  "5es", "8785h", "1e300s", "1e999s"};
    uint64_t us;
    units_why why;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(units_time(good[i].text, &us, why), 0, "%s", good[i].text);
        cr_assert_eq(us, good[i].us, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = '\0';
        cr_assert_eq(units_time(bad[i], &us, why), PARLEY_EUSAGE, "%s", bad[i]);
        cr_assert_neq(why[0], '\0');
    }
}

Test(units, whole_numbers_are_exact_to_the_last_of_64_bits)
{
    /* 2^64-1 is taken, 2^64 and what is not a whole number are not. */
    uint64_t value;
    units_why why;
    cr_assert_eq(units_count("18446744073709551615", 0, UINT64_MAX, &value, why), 0);
    cr_assert_eq(value, UINT64_MAX);
    const char *bad[] = {"18446744073709551616",
                         "99999999999999999999999",
                         "-1",
                         "+1",
                         "1.0",
                         "1e3",
                         "",
                         " 1",
                         "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(units_count(bad[i], 0, UINT64_MAX, &value, why), PARLEY_EUSAGE, "%s", bad[i]);
    cr_assert_eq(units_count("11", 1, 10, &value, why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "is out of range (1 to 10)");
    cr_assert_eq(units_count("-1", 1, 10, &value, why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "is out of range (1 to 10)");
}

Test(units, decimals_are_finite_and_in_range)
{
    /* Neither hex nor inf nor nan nor a trailing letter passes for a number. */
    double value;
    units_why why;
    cr_assert_eq(units_real("1e-4", 0, 1, &value, why), 0);
    cr_assert_eq(value, 1e-4);
    cr_assert_eq(units_real(".5", 0, 1, &value, why), 0);
    const char *bad[] = {"inf", "nan", "0x1p3", "1e", "1,5", "", "-", ".", "2", "-0.1", "0.5f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(units_real(bad[i], 0, 1, &value, why), PARLEY_EUSAGE, "%s", bad[i]);
    char digits[300];
    memset(digits, '0', sizeof digits);
    digits[sizeof digits - 1] = '\0';
    cr_assert_eq(units_real(digits, 0, 1, &value, why), PARLEY_EUSAGE);
}

Test(units, shares_are_parts_of_one)
{
    /* A percent sign is needed, and a value from above 0 to 100. */
    double share;
    units_why why;
    cr_assert_eq(units_share("50%", &share, why), 0);
    cr_assert_eq(share, 0.5);
    cr_assert_eq(units_share("101%", &share, why), PARLEY_EUSAGE);
    cr_assert_eq(units_share("0%", &share, why), PARLEY_EUSAGE);
    cr_assert_eq(units_share("50", &share, why), PARLEY_EUSAGE);
}

Test(units, distributions_of_time_have_three_forms)
{
    /* A constant, a lognormal with median and sigma, a uniform that does not run backwards. */
    struct units_dist dist;
    units_why why;
    cr_assert_eq(units_dist("5ms", &dist, why), 0);
    cr_assert(dist.kind == UNITS_DIST_CONSTANT && dist.low_us == 5000 && dist.high_us == 5000);
    cr_assert_eq(units_dist("lognormal:5ms,0.3", &dist, why), 0);
    cr_assert(dist.kind == UNITS_DIST_LOGNORMAL && dist.low_us == 5000 && dist.sigma == 0.3);
    cr_assert_eq(units_dist("uniform:1ms,9ms", &dist, why), 0);
    cr_assert(dist.kind == UNITS_DIST_UNIFORM && dist.low_us == 1000 && dist.high_us == 9000);
    const char *bad[] = {"uniform:9ms,1ms",  "uniform:1ms",         "lognormal:5ms",
                         "lognormal:,0.3",   "lognormal:5ms,-1",    "gamma:1ms,2",
                         "uniform:1ms,2ms,", "lognormal:5ms,0.3,1", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(units_dist(bad[i], &dist, why), PARLEY_EUSAGE, "%s", bad[i]);
}

Test(units, addresses_are_names_v4_or_bracketed_v6)
{
    /* A bare IPv6 address is told about brackets; ports end at 65535. */
    struct units_address address;
    units_why why;
    cr_assert_eq(units_address("host-1.example:7000", &address, why), 0);
    cr_assert(strcmp(address.host, "host-1.example") == 0 && address.port == 7000 && !address.v6);
    cr_assert_eq(units_address("[fe80::1%eth0]:0", &address, why), 0);
    cr_assert(strcmp(address.host, "fe80::1%eth0") == 0 && address.port == 0 && address.v6);
    cr_assert_eq(units_address("::1:7000", &address, why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "brackets"));
    char name[400];
    memset(name, 'a', sizeof name);
    strcpy(name + sizeof name - 5, ":700");
    const char *bad[] = {"",       "host",  ":7000",   "host:",     "host:65536", "host:-1", name,
                         "[]:1",   "[::1]", "[::1]7",  "[::1:7",    "[g::]:7",    "a b:7",   "-a:7",
                         "a/b:70", "h:7 ",  "\xff:70", "[::1%]:70", "[",          ":"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(units_address(bad[i], &address, why), PARLEY_EUSAGE, "%s", bad[i]);
}

Test(units, loopback_is_127_and_the_v6_one_and_localhost)
{
    /* What decides whether --insecure is needed. */
    const char *yes[] = {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"};
    const char *no[] = {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "127.0.0.1.example:1",
                        "[::ffff:1.2.3.4]:1"};
    struct units_address address;
    units_why why;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        cr_assert_eq(units_address(yes[i], &address, why), 0);
        cr_assert(units_address_is_loopback(&address), "%s", yes[i]);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        cr_assert_eq(units_address(no[i], &address, why), 0);
        cr_assert_not(units_address_is_loopback(&address), "%s", no[i]);
    }
}

Test(units, every_address_is_known_however_it_is_written)
{
    /* What decides whether --advertise is needed. */
    const char *yes[] = {"0.0.0.0:1", "[::]:1", "[0:0:0:0:0:0:0:0]:1", "[0::0]:1"};
    const char *no[] = {"127.0.0.1:1", "0.0.0.1:1", "[::1]:1", "localhost:1"};
    struct units_address address;
    units_why why;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        cr_assert_eq(units_address(yes[i], &address, why), 0);
        cr_assert(units_address_is_any(&address), "%s", yes[i]);
        cr_assert_eq(units_address(no[i], &address, why), 0);
        cr_assert_not(units_address_is_any(&address), "%s", no[i]);
    }
}
