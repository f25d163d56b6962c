/* link_spec.c: the writing of groups, of links between them, and of traces. */
#include <criterion/criterion.h>

#include <string.h>

#include "run/trace.h"
#include "settings/values/link.h"

Test(groups, nodes_and_runs_of_nodes_are_found_in_their_group)
{
    /* Single nodes and runs; who is not named is in none. */
    const char *groups = "n0,n4-n9|n1|n10-n11,n3";
    const int of[] = {0, 1, GROUPS_NONE, 2, 0, 0, 0, 0, 0, 0, 2, 2, GROUPS_NONE};
    cr_assert(groups_are_sane(groups));
    for (uint64_t n = 0; n < 13; n++)
        cr_assert_eq(groups_find(groups, n), of[n], "n%d", (int)n);
    cr_assert_eq(groups_last(groups), 11);
    const char *bad[] = {"",        "n0",     "n0,n1",    "|n0",      "n0|",
                         "n0||n1",  "n0,|n1", "n0|n0",    "n0-n4|n2", "a|b",
                         "n|n1",    "n01|n2", "n4-n2|n9", "n0|n1-",   "n0|n1 ",
                         "n0-5|n9", "n0;n1",  "n0|n1|",   "n0|n-1",   "n0|n1234567890"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(!groups_are_sane(bad[i]), "%s", bad[i]);
}

Test(links, a_link_has_groups_and_one_property_or_two)
{
    /* Either part may be left out, not both; what is wrong is named. */
    struct link_spec link;
    units_why why;
    cr_assert_eq(link_parse("n0|n1-n3:latency=50ms,bandwidth=8Mbit", &link, why), 0);
    cr_assert_str_eq(link.groups, "n0|n1-n3");
    cr_assert(link.has_latency && link.latency_us == 50000 && link.bandwidth_bytes == 1000000);
    cr_assert_eq(link_parse("n0|n1:bandwidth=1Gbit", &link, why), 0);
    cr_assert(!link.has_latency && link.bandwidth_bytes == 125000000);
    cr_assert_eq(link_parse("n0|n1:latency=0", &link, why), 0);
    cr_assert(link.has_latency && link.latency_us == 0 && link.bandwidth_bytes == 0);
    const struct {
        const char *text, *names;
    } bad[] = {{"", "GROUPS:"},
               {"n0|n1", "GROUPS:"},
               {"n0|n1:", "neither latency"},
               {"n0,n1:latency=1ms", "groups"},
               {"n0|n1:latency=1", "latency"},
               {"n0|n1:bandwidth=0", "nothing through"},
               {"n0|n1:bandwidth=10", "rate"},
               {"n0|n1:latency=1ms,latency=2ms", "once"},
               {"n0|n1:speed=1Mbit", "\"speed=1Mbit\""},
               {"n0|n1:\xff", "clean"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(link_parse(bad[i].text, &link, why), PARLEY_EUSAGE, "%s", bad[i].text);
        cr_assert(strstr(why, bad[i].names), "%s: %s", bad[i].text, why);
    }
    struct links links = {0};
    cr_assert_eq(links_add_list(&links, "n0|n1:latency=1ms n2|n3:latency=2ms", why), 0);
    cr_assert_eq(links.count, 2);
    cr_assert_eq(links_add_list(&links, "n0|n1:latency=1ms n2", why), PARLEY_EUSAGE);
    cr_assert_eq(links.count, 2);
    links_close(&links);
}

Test(trace, nodes_play_their_own_lines_or_those_of_all)
{
    /* n1 has lines of its own; the others go round those without a name. */
    static const char text[] = "# measured\n1ms\r\nn1,7ms\n 2ms # slow\n\nn1,8ms";
    struct sim_trace trace;
    char why[256];
    cr_assert_eq(sim_trace_init(&trace, 3, text, strlen(text), why, sizeof why), 0, "%s", why);
    for (uint64_t step = 0; step < 6; step++) {
        cr_assert_eq(sim_trace_us(&trace, 1, step), step % 2 ? 8000 : 7000);
        uint64_t this = sim_trace_us(&trace, 2, step), next = sim_trace_us(&trace, 2, step + 1);
        cr_assert((this == 1000 && next == 2000) || (this == 2000 && next == 1000));
    }
    sim_trace_close(&trace);
    const struct {
        const char *text, *names;
    } bad[] = {{"1ms\nn3,1ms\n", "line 2: \"n3\""}, {"x,1ms", "\"x\""}, {"1", "time"},
               {"0", "no time for a step"},         {"n0,1ms\n", "n1"}, {"", "no line for n0"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int error = sim_trace_init(&trace, 3, bad[i].text, strlen(bad[i].text), why, sizeof why);
        cr_assert_eq(error, PARLEY_EUSAGE, "%s", bad[i].text);
        cr_assert(strstr(why, bad[i].names), "%s: %s", bad[i].text, why);
        sim_trace_close(&trace);
    }
    static const char zero[] = "5ms\0junk";
    cr_assert_eq(sim_trace_init(&trace, 3, zero, sizeof zero - 1, why, sizeof why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "\"5ms?junk\""), "%s", why);
    sim_trace_close(&trace);
    cr_assert_eq(sim_trace_init(&trace, 3, zero, 4, why, sizeof why), PARLEY_EUSAGE);
    sim_trace_close(&trace);
}
