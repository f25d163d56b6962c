/* swarm.c: random lives of random clusters, as `parley sim --swarm` lives them (sim/swarm/swarm.h).
 * More of them, by hand: parley sim --swarm --seeds 1..20000 --tally FILE; what happens in one:
 * parley sim --swarm --seeds 17..17 -v. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "../../sim/swarm/swarm.h"
#include "../../sim/swarm/tally.h"
#include "parley/config.h"

static bool goes_well_by(int strategy, uint64_t seed)
{
    struct swarm_result result;
    swarm_live(seed, strategy, &result);
    if (!result.well)
        fprintf(stderr, "FAILED strategy %d seed %llu at %s\n", strategy, (unsigned long long)seed,
                result.why);
    return result.well;
}

Test(swarm, random_lives_end_in_one_model)
{
    /* Proves what stands at the head of sim/swarm/watch.h and sim/swarm/verdict.c for 100
     * clusters. */
    uint32_t failed = 0;
    for (uint64_t seed = 1; seed <= 100; seed++)
        failed += !goes_well_by(SWARM_DRAWN, seed);
    cr_assert_eq(failed, 0, "%u seeds failed", failed);
}

Test(swarm, random_lives_by_parameter_servers_do_so_too)
{
    /* The same for 60 clusters in which one node serves; 600 wrote a sum that was still being read.
     */
    uint32_t failed = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        failed += !goes_well_by(PARLEY_STRATEGY_PS_BSP, seed);
        failed += !goes_well_by(PARLEY_STRATEGY_PS_ASP, 100 + seed);
        failed += !goes_well_by(PARLEY_STRATEGY_PS_SSP, 200 + seed);
    }
    failed += !goes_well_by(PARLEY_STRATEGY_PS_BSP, 600);
    cr_assert_eq(failed, 0, "%u seeds failed", failed);
}

Test(swarm, one_seed_is_one_life)
{
    /* Twice the same seed: the same events in the same virtual time. */
    struct swarm_result first, second;
    swarm_live(3, PARLEY_STRATEGY_GOSSIP, &first);
    swarm_live(3, PARLEY_STRATEGY_GOSSIP, &second);
    cr_assert_eq(first.events, second.events);
    cr_assert_eq(first.virtual_us, second.virtual_us);
    cr_assert_eq(first.exchanges, second.exchanges);
    cr_assert_gt(first.events, 0);
}

Test(swarm, what_was_found_once_stays_mended)
{
    /* Each of these lives ended badly once: two models, a live node refused for its own old name, a
     * model far from the mean. */
    static const struct {
        int strategy;
        uint64_t seed;
        const char *what;
    } found[] = {
        {PARLEY_STRATEGY_GOSSIP, 134,
         "two nodes, each half of the known, decided without dialling each other"},
        {PARLEY_STRATEGY_GOSSIP, 179,
         "of the simulator: what was sent to a process that had ended was never let go"},
        {PARLEY_STRATEGY_GOSSIP, 220,
         "the last bytes of a dead process were taken for an answer to who has its name"},
        {PARLEY_STRATEGY_GOSSIP, 257, "a node that was stopped while it joined agreed with itself"},
        {PARLEY_STRATEGY_GOSSIP, 378, "the same, with two"},
        {PARLEY_STRATEGY_GOSSIP, 435,
         "nodes that had settled proposed without a newcomer, who could not settle any more"},
        {PARLEY_STRATEGY_GOSSIP, 513, "as 220, with another role"},
        {PARLEY_STRATEGY_GOSSIP, 746, "as 257"},
        {PARLEY_STRATEGY_GOSSIP, 1066, "as 378"},
        {PARLEY_STRATEGY_GOSSIP, 1080, "as 257"},
        {PARLEY_STRATEGY_GOSSIP, 2625,
         "of the verdict: two clusters formed while a link was cut, and ended apart"},
        {PARLEY_STRATEGY_GOSSIP, 102216,
         "of the verdict: a seed came back, knew nobody, and was stopped before it was met"},
        {PARLEY_STRATEGY_GOSSIP, 306621,
         "of the simulator: what waited behind lost messages, closed already, was never let go"},
        {PARLEY_STRATEGY_GOSSIP, 308348, "as 306621"},
        {PARLEY_STRATEGY_GOSSIP, 308201,
         "stopped before the first step, all late, and each waited for one that had trained"},
        {PARLEY_STRATEGY_GOSSIP, 303469,
         "in step, one stood each time where the others had stood when they measured"},
        {PARLEY_STRATEGY_GOSSIP, 307734,
         "the same, by what two of three had decided and one had yet to add"},
        {PARLEY_STRATEGY_GOSSIP, 401631,
         "a sketch was taken while an exchange was open that moved the model later"},
        {PARLEY_STRATEGY_GOSSIP, 401159,
         "who trained on while the others proposed, out of patience, could not settle any more"},
        {PARLEY_STRATEGY_PS_ASP, 309856, "as 306621"},
        {PARLEY_STRATEGY_ALLREDUCE, 301837, "as 308201"},
        {PARLEY_STRATEGY_LOCAL_SGD, 300102,
         "exchanges that overlapped took a part below 0, which no peer would believe"},
        {SWARM_DRAWN, 804820, "who was back mixed on with one that had locked"},
        {SWARM_DRAWN, 813342, "of the verdict: who joined when all had locked is not in the model"},
        {SWARM_DRAWN, 807599, "of the verdict: nobody counts holders that it takes for dead"},
        {SWARM_DRAWN, 825913,
         "who held the agreed model, mixed again, and took what it mixed for that model"},
        {SWARM_DRAWN, 814902,
         "of the checker: of equal models all terms are 0, and it paired wrong ones"},
        {SWARM_DRAWN, 876736,
         "of the verdict: what is lost in a short cut is sent again seconds after it"},
        {SWARM_DRAWN, 955977,
         "told to stop as it came in through a seed that knew nobody, one agreed alone"},
        {SWARM_DRAWN, 1075075,
         "a link that one end had given up kept the other from taking a new one"},
        {SWARM_DRAWN, 1070535,
         "of the verdict: who was told to stop had given up when the only other one came"},
        {SWARM_DRAWN, 1113242,
         "a state was given to a joiner while one from others took its place"},
        {SWARM_DRAWN, 1029239,
         "one trained on while all who were told to stop had come too late to train"},
        {SWARM_DRAWN, 1016835,
         "two clusters had begun, were stopped, and ended before their seeds had met"},
        {SWARM_DRAWN, 1003591, "a delta that went with a node that gave up was counted nowhere"},
        {SWARM_DRAWN, 1008269,
         "of the verdict: one was started when all that could let it in had ended"},
        {SWARM_DRAWN, 972562,
         "of the verdict: in one short cut after the other all that is sent again may be lost"},
        {SWARM_DRAWN, 817170,
         "who had settled through a cut gave up soon after it, and left the others apart"},
        {SWARM_DRAWN, 1180381,
         "one taken for dead by a node with a link to it never heard so, and could not refute"},
        {SWARM_DRAWN, 1182095, "the same"},
        {SWARM_DRAWN, 1184805,
         "of the verdict: two had never met, and all who could have told them had left"},
        {SWARM_DRAWN, 1441551,
         "one waited in training for the steps of one that had stopped before it had made them"},
        {SWARM_DRAWN, 1451804,
         "one was stopped as it met a latecomer alone, and agreed before that had met the others"},
        {SWARM_DRAWN, 3570701,
         "a snapshot was taken elsewhere, and what came in went where noloco still read"},
        {PARLEY_STRATEGY_NOLOCO, 10072,
         "all that were due asked each other at once, again and again"},
        {PARLEY_STRATEGY_NOLOCO, 22005, "who had made its steps met nobody who still made some"},
        {PARLEY_STRATEGY_PS_ASP, 20958,
         "a server that had been alone waited until the others had made as many steps"},
        {SWARM_DRAWN, 3766644,
         "of the simulator: what left before a cut ended overtook what the cut had held back"},
        {SWARM_DRAWN, 3753992, "of the verdict: a seed came back, and ended before it was found"},
        {PARLEY_STRATEGY_PS_ASP, 35990,
         "a worker had begun to end for a stop whose asker died, and neither ended nor trained"},
        {PARLEY_STRATEGY_NOLOCO, 32936,
         "who is always at an exchange never gave its state to one whose model was lost"},
        {SWARM_DRAWN, 4301893,
         "two models under a majority: who had locked one forgot it as it came back late"},
        {SWARM_DRAWN, 5978,
         "what choco owed to a lost model spoilt the one that came in its place"},
        {PARLEY_STRATEGY_DILOCO, 35025,
         "a joiner asked for good for a state that was not finite, and all waited for it"},
        {SWARM_DRAWN, 4272100,
         "of the simulator: what arrived just as what a cut had held back overtook it"},
        {SWARM_DRAWN, 4253114, "of the verdict: a snapshot that follows a new model holds it"},
        {SWARM_DRAWN, 4169683, "of the verdict: who proposes anew what it held still holds it"},
        {SWARM_DRAWN, 3793293, "the same, with a newcomer that it let in"},
        {SWARM_DRAWN, 4150534,
         "two doubts on processes that others had replaced kept a node from averaging for minutes"},
        {SWARM_DRAWN, 3793678,
         "a worker that had given up the last model put it into x as that was averaged"},
        {SWARM_DRAWN, 4522635,
         "a server waited for a gradient that its worker had given up as it was told to send it"},
        {SWARM_DRAWN, 4600203, "of the verdict: the seed that one missed came back, and too late"},
        {SWARM_DRAWN, 4381404,
         "of the verdict: who lives behind losses or a pause may be taken for dead by all"},
        {SWARM_DRAWN, 4514181, "the same"},
        {SWARM_DRAWN, 4554023, "the same, of two that met each other again"},
        {SWARM_DRAWN, 4649417,
         "of the simulator: a chunk found a gap on its line, and overtook what announced it"},
        {SWARM_DRAWN, 4735700,
         "who had served alone said that its model was of whom it had followed before"},
        {PARLEY_STRATEGY_PS_BSP, 4775771,
         "of the simulator: what one cut held back was overtaken as a second one followed"},
        {PARLEY_STRATEGY_PS_SSP, 4787181,
         "a worker that was to get a snapshot was told that it had it, as another was taken"},
        {PARLEY_STRATEGY_CHOCO, 4795728,
         "who had lost its model asked again and again over a link that was dead one way"},
        {PARLEY_STRATEGY_CHOCO, 4800825,
         "of the simulator: a dialer did not hear that the connection was cut as it began"},
        {PARLEY_STRATEGY_LOCAL_SGD, 4891614,
         "a part for a link that was closing kept its buffer for good"},
        {PARLEY_STRATEGY_PS_SSP, 5174371,
         "at the end no model kept the bound for one, and was taken again and again"},
        {SWARM_DRAWN, 4816558,
         "two that met after each had proposed took each other for liars, for five minutes"},
        {PARLEY_STRATEGY_GOSSIP, 5184660,
         "who had locked alone was done before those that were back had followed it"},
        {PARLEY_STRATEGY_GOSSIP, 5183125,
         "of the watch: who comes late may adopt the older of two agreements"},
        {SWARM_DRAWN, 5062681, "of the verdict: two groups were done before a second dial"},
        {SWARM_DRAWN, 5082872, "of the verdict: the only seed was paused until one gave up"},
        {PARLEY_STRATEGY_GOSSIP_SYNC, 5210165,
         "one waited for a round with one that was about to train, and came too late"},
        {SWARM_DRAWN, 659, "all waited until one that had been cut off had made as many steps"},
        {SWARM_DRAWN, 5267817,
         "where some may lie one of two did not believe the other, who was done by itself"},
        {SWARM_DRAWN, 9100709, "of the verdict: who was cut off from its only helper gave up"},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        cr_expect(goes_well_by(found[i].strategy, found[i].seed), "%s", found[i].what);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(swarm, a_tally_adds_up_over_its_parts)
{
    /* A range lived in parts: what was well counts once, what failed or was cut off is not known to
     * be well, and what is added later is there the next time. */
    char path[] = "/tmp/parley-tally-XXXXXX";
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    write_text(path, "well 7: 4 nodes, 3 agreed, 1000 us, 50 events, 6 exchanges\n"
                     "FAILED 8: 1.000s: n0: something (event 3)\n"
                     "well 99: 4 nodes, 3 agreed, 1000 us, 50 events, 6 exchanges\n"
                     "well 7: 4 nodes, 3 agreed, 1000 us, 50 events, 6 exchanges\n"
                     "we");
    struct swarm_tally tally;
    cr_assert_eq(swarm_tally_open(&tally, 5, 10, path), 0);
    cr_assert_eq(tally.well_count, 1);
    cr_assert_eq(tally.events, 50);
    cr_assert(tally.well[2] && !tally.well[3] && !tally.well[4]);
    struct swarm_result result = {.seed = 9, .well = true, .nodes = 2, .events = 70};
    cr_assert_eq(swarm_tally_add(&tally, &result), 0);
    swarm_tally_close(&tally);
    cr_assert_eq(swarm_tally_open(&tally, 5, 10, path), 0);
    cr_assert_eq(tally.well_count, 2);
    cr_assert_eq(tally.earlier, 2);
    cr_assert_eq(tally.nodes, 6);
    cr_assert_eq(tally.events, 120);
    swarm_tally_close(&tally);
    static const char *const others[] = {"something else\n", "something", "well 7: 4 nod\n"};
    for (int i = 0; i < 3; i++) {
        write_text(path, others[i]);
        cr_assert_eq(swarm_tally_open(&tally, 5, 10, path), PARLEY_EUSAGE, "%s", others[i]);
        swarm_tally_close(&tally);
    }
    unlink(path);
    cr_assert_eq(swarm_tally_open(&tally, 5, 10, "/dev/zero"), PARLEY_EUSAGE);
    swarm_tally_close(&tally);
}
