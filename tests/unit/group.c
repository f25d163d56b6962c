/* group.c: who of several nodes agreed. */
#include <criterion/criterion.h>

#include "report/group.h"

static size_t first;

#define LARGEST(...)                                                                               \
    group_largest((const char *const[]){__VA_ARGS__},                                              \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), &first)

Test(group, the_most_that_hold_one_digest_agreed_wherever_they_stand)
{
    /* Not all that hold some digest, and not those that come first. */
    cr_assert_eq(LARGEST("a", "a", "a"), 3);
    cr_assert_eq(first, 0);
    cr_assert_eq(LARGEST("a", "b", NULL, "b", "c"), 2);
    cr_assert_eq(first, 1);
    cr_assert_eq(LARGEST(NULL, "a", "b", "b", "a", "b"), 3);
    cr_assert_eq(first, 2);
}

Test(group, of_groups_as_large_the_first_agreed)
{
    cr_assert_eq(LARGEST(NULL, "b", "a", "a", "b"), 2);
    cr_assert_eq(first, 1);
    cr_assert_eq(LARGEST("b", "a"), 1);
    cr_assert_eq(first, 0);
}

Test(group, where_nobody_holds_a_model_nobody_agreed)
{
    cr_assert_eq(LARGEST(NULL, NULL), 0);
    cr_assert_eq(group_largest(NULL, 0, &first), 0);
}
