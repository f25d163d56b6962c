/* signals.c: as what a signal counts that asks for the end. */
#include <criterion/criterion.h>
#include <signal.h>

#include <uv.h>

#include "cli/cli.h"

static uint64_t now_us;

/* In place of libuv's. */
uint64_t uv_hrtime(void)
{
    return 1000 * now_us;
}

Test(signals, the_same_one_within_half_a_second_is_still_the_first)
{
    /* At each half millisecond from the first on; another number is the second at once. */
    struct asked asked = {0};
    now_us = 12345678;
    cr_expect_eq(asked_by(&asked, SIGTERM), ASKED_FIRST);
    for (uint32_t i = 0; i < 2000; i++, now_us += 500) {
        cr_expect_eq(asked_by(&asked, SIGTERM), i < 1000 ? ASKED_STILL : ASKED_AGAIN, "%u", i);
        cr_expect_eq(asked_by(&asked, SIGINT), ASKED_AGAIN, "%u", i);
    }
}

static void the_next_is_still_the_first_after(int number)
{
    static const uint64_t later_us[] = {0, 100, 3600000000};
    for (size_t i = 0; i < sizeof later_us / sizeof *later_us; i++) {
        struct asked asked = {0};
        now_us = 12345678;
        cr_expect_eq(asked_by(&asked, number), ASKED_FIRST);
        now_us += later_us[i];
        cr_expect_eq(asked_by(&asked, SIGTERM), ASKED_STILL);
        now_us += 499999;
        cr_expect_eq(asked_by(&asked, SIGTERM), ASKED_STILL);
        cr_expect_eq(asked_by(&asked, SIGINT), ASKED_AGAIN);
        now_us++;
        cr_expect_eq(asked_by(&asked, SIGTERM), ASKED_AGAIN);
    }
}

Test(signals, the_one_after_a_hang_up_is_still_the_first_and_the_next_is_not)
{
    /* However late it comes; and it is repeated like any first one. */
    the_next_is_still_the_first_after(SIGHUP);
}

Test(signals, the_one_after_who_asked_for_an_agreement_is_still_the_first)
{
    the_next_is_still_the_first_after(SIGUSR2);
}
