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
