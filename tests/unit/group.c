/* group.c: who of several nodes agreed. */
#include <criterion/criterion.h>
#include <string.h>

#include "report/group.h"

static uint32_t first;

/* context: digests, a node's each; NULL: it holds none. */
static bool alike(void *context, uint32_t a, uint32_t b)
{
    const char *const *digests = context;
    return digests[a] && digests[b] && strcmp(digests[a], digests[b]) == 0;
}

#define LARGEST(...)                                                                               \
    group_largest(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), alike,                   \
                  (const char *[]){__VA_ARGS__}, &first)

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
    cr_assert_eq(group_largest(0, alike, NULL, &first), 0);
}
