/* contenders.c: what --compare names. */
#include <criterion/criterion.h>

#include <string.h>

#include "parley/config.h"
#include "settings/contenders.h"

static struct contenders contenders;
static char clause[SWEEP_CLAUSE_BYTES];

static int parse(const char *text)
{
    clause[0] = '\0';
    return contenders_parse(&contenders, text, clause);
}

static void expect_refused(const char *text, const char *says)
{
    cr_assert_eq(parse(text), PARLEY_EUSAGE, "%s was taken", text);
    cr_assert(strstr(clause, says), "%s: %s", text, clause);
    cr_assert_null(contenders.list);
}

Test(contenders, all_are_those_of_the_table)
{
    size_t count = 0;
    while (option_info(OPTION_ID_STRATEGY)->valid[count])
        count++;
    cr_assert_eq(parse("all"), 0, "%s", clause);
    cr_assert_eq(contenders.count, count);
    contenders_close(&contenders);
    cr_assert_eq(parse("single, all  or gossip lr=0.1"), 0, "%s", clause);
    cr_assert_eq(contenders.count, count + 1);
    contenders_close(&contenders);
}

Test(contenders, names_stand_between_commas)
{
    cr_assert_eq(parse("ps-ssp:2, gossip"), 0, "%s", clause);
    cr_assert_eq(contenders.count, 2);
    cr_assert_str_eq(contenders.list[0].name, "ps-ssp:2");
    cr_assert_eq(contenders.list[0].strategy, PARLEY_STRATEGY_PS_SSP);
    cr_assert_str_eq(contenders.list[1].name, "gossip");
    contenders_close(&contenders);
}

Test(contenders, the_single_node_is_there_anyway)
{
    cr_assert_eq(parse("none,single"), 0, "%s", clause);
    cr_assert_eq(contenders.count, 1);
    contenders_close(&contenders);
    cr_assert_eq(parse("none"), 0, "%s", clause);
    cr_assert_str_eq(contenders.single.name, "single");
    contenders_close(&contenders);
}

/* Proves that a value may hold a comma, and that one strategy may stand there with several. */
Test(contenders, each_may_have_settings_of_its_own)
{
    cr_assert_eq(parse("gossip,none or gossip lr=0.1  mix-every=1,8@50% or single lr=0.02"), 0,
                 "%s", clause);
    cr_assert_eq(contenders.count, 3);
    cr_assert_null(contenders.list[0].own[OPTION_ID_LR]);
    const struct contender *own = &contenders.list[2];
    cr_assert_str_eq(own->name, "gossip");
    cr_assert_str_eq(own->text, "gossip lr=0.1  mix-every=1,8@50%");
    cr_assert_str_eq(own->own[OPTION_ID_LR], "0.1");
    cr_assert_str_eq(own->own[OPTION_ID_MIX_EVERY], "1,8@50%");
    cr_assert_str_eq(contenders.single.own[OPTION_ID_LR], "0.02");
    contenders_close(&contenders);
}

Test(contenders, what_is_none_is_refused_by_name)
{
    expect_refused("ps-ssp", "has \"ps-ssp\", which lacks S: write ps-ssp:S (valid: gossip, ");
    expect_refused("gosip", "did you mean \"gossip\"?");
    expect_refused("gossip,", "an empty name");
    expect_refused("gossip or ", "an empty name");
    expect_refused("gossip,none,gossip", "has \"gossip\" twice");
    expect_refused("gossip lr=1 or gossip  lr=1", "twice");
    expect_refused("single lr=1 or single lr=2", "has \"single lr=2\" twice");
    expect_refused("all lr=0.1", "has settings for all");
}

Test(contenders, settings_that_are_not_its_own_are_refused)
{
    expect_refused("gossip fast", "which is no name=value");
    expect_refused("gossip ls=1", "did you mean \"lr\"?");
    expect_refused("gossip lr=fast", "has \"lr=fast\", which is not a number");
    expect_refused("gossip lr=1 lr=2", "has lr twice");
    expect_refused("gossip model=softmax", "--model is the same for all");
    expect_refused("gossip fault=kill:n1@50%", "--fault is the same for all");
    expect_refused("allreduce codec=int8", "changes nothing for allreduce");
    expect_refused("single codec=int8", "changes nothing for a single node");
}
