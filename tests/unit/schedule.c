/* schedule.c: whom a simulated fault strikes, until when, and what holds where several overlap. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "run/schedule.h"

#define SECOND UINT64_C(1000000)

static struct faults faults;
static struct sim_schedule schedule;

static char told[256];

static void on_fault(const char *kind, const char *target, void *arg)
{
    (void)arg;
    size_t length = strlen(told);
    snprintf(told + length, sizeof told - length, "%s %s, ", kind, target);
}

static struct parley_sim *scene(const struct parley_sim_options *options, const char *list)
{
    struct parley_sim *sim;
    struct parley_sim_options slow = *options; /* it is not the steps that are looked at */
    char why[256] = "";
    units_why clause = "";
    slow.step_us = SECOND / 20;
    cr_assert_eq(parley_sim_new(&sim, &slow), 0);
    cr_assert_eq(faults_add_list(&faults, list, clause), 0, "%s", clause);
    cr_assert_eq(sim_schedule_init(&schedule, sim, &faults, 1, why, sizeof why), 0, "%s", why);
    return sim;
}

static struct parley_sim *four(const char *list)
{
    return scene(&(struct parley_sim_options){.nodes = 4, .seed = 1}, list);
}

static void close_scene(struct parley_sim *sim)
{
    sim_schedule_close(&schedule);
    faults_close(&faults);
    parley_sim_free(sim);
}

static void run_until(struct parley_sim *sim, double seconds)
{
    uint64_t us = (uint64_t)(seconds * (double)SECOND);
    cr_assert_eq(parley_sim_run_for(sim, us - parley_sim_now(sim)), 0);
}

static bool blocked(const struct parley_sim *sim, uint32_t a, uint32_t b)
{
    return sim->blocked && sim->blocked[a * sim->nodes + b];
}

Test(schedule, a_short_fault_within_a_long_one_of_its_kind_leaves_that_in_force)
{
    /* Of the node that both strike; the others are not touched. */
    struct parley_sim *sim = four("slow=4:n3@0s slow=10:n3@2s+1s latency=5ms:n2@1s+4s "
                                  "latency=9ms:n2@2s+1s bandwidth=8Mbit:n1@0s "
                                  "bandwidth=80Mbit:n1@1s+1s");
    const struct sim_host *hosts = sim->hosts;
    run_until(sim, 1.5);
    cr_expect_eq(hosts[3].slow, 4);
    cr_expect_eq(hosts[2].extra_us, 5000);
    cr_expect_eq(hosts[1].out.rate_bytes, 10000000);
    run_until(sim, 2.5);
    cr_expect_eq(hosts[3].slow, 10);
    cr_expect_eq(hosts[2].extra_us, 9000);
    cr_expect_eq(hosts[1].out.rate_bytes, 1000000);
    run_until(sim, 4);
    cr_expect_eq(hosts[3].slow, 4);
    cr_expect_eq(hosts[2].extra_us, 5000);
    run_until(sim, 6);
    cr_expect_eq(hosts[3].slow, 4);
    cr_expect_eq(hosts[2].extra_us, 0);
    cr_expect_eq(hosts[0].slow, 1);
    close_scene(sim);
}

Test(schedule, where_two_overlap_the_newer_holds_to_its_own_end)
{
    struct parley_sim *sim =
        four("loss=0.5:n3@1s+2s loss=0.1:n3@2s+2s pause:n2@1s+2s pause:n2@2s+2s");
    const struct sim_host *hosts = sim->hosts;
    run_until(sim, 3.5);
    cr_expect_eq(hosts[3].loss_rate, 0.1);
    cr_expect(hosts[2].paused);
    run_until(sim, 4.5);
    cr_expect_eq(hosts[3].loss_rate, 0);
    cr_expect_not(hosts[2].paused);
    close_scene(sim);
}

Test(schedule, the_end_of_one_wall_leaves_the_others_standing)
{
    struct parley_sim *sim = four("partition:n0,n1|n2,n3@1s+4s clog:n0@2s+1s oneway:n1|n2@2s+1s");
    run_until(sim, 2.5);
    cr_expect(blocked(sim, 0, 1) && blocked(sim, 0, 2) && blocked(sim, 2, 1));
    run_until(sim, 4);
    cr_expect_not(blocked(sim, 0, 1));
    cr_expect(blocked(sim, 0, 2) && blocked(sim, 2, 0) && blocked(sim, 2, 1));
    run_until(sim, 6);
    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = 0; b < 4; b++)
            cr_expect_not(blocked(sim, a, b), "n%u to n%u", a, b);
    close_scene(sim);
}

Test(schedule, one_way_is_deaf_and_can_speak_and_a_narrow_line_gets_as_wide_as_it_was)
{
    /* The first group hears nothing of the second, which hears it. */
    struct parley_sim *sim = four("oneway:n1|n2@1s+4s bandwidth=8Mbit:n3@1s+1s");
    const struct sim_host *hosts = sim->hosts;
    uint64_t before = hosts[3].out.rate_bytes;
    run_until(sim, 1.5);
    cr_expect(blocked(sim, 2, 1) && !blocked(sim, 1, 2));
    cr_expect_eq(hosts[3].out.rate_bytes, 1000000);
    run_until(sim, 2.5);
    cr_expect_eq(hosts[3].out.rate_bytes, before);
    close_scene(sim);
}

Test(schedule, a_part_of_the_budget_lasts_from_when_its_fault_struck)
{
    /* At a time as at a part; and no fault lasts beyond the budget's end. */
    struct parley_sim *sim = four("slow=2:n1@1s+20% slow=2:n2@40%+20% slow=2:n3@90%+20%");
    const struct sim_host *hosts = sim->hosts;
    sim_schedule_progress(&schedule, 0.5);
    run_until(sim, 2);
    sim_schedule_progress(&schedule, 0.55);
    cr_expect_eq(hosts[1].slow, 2);
    cr_expect_eq(hosts[2].slow, 2);
    sim_schedule_progress(&schedule, 0.65);
    cr_expect_eq(hosts[1].slow, 2);
    cr_expect_eq(hosts[2].slow, 1);
    sim_schedule_progress(&schedule, 0.95);
    cr_expect_eq(hosts[1].slow, 1);
    cr_expect_eq(hosts[3].slow, 2);
    sim_schedule_progress(&schedule, 1);
    cr_expect_eq(hosts[3].slow, 1);
    close_scene(sim);
}

Test(schedule, parts_of_a_budget_of_time_come_where_nobody_tells_of_it)
{
    /* From when it counts; also of a fault that struck before, and at a time. */
    struct parley_sim *sim = four("slow=2:n0@40%+20% slow=2:n1@0s+50% slow=2:n2@4s+20% "
                                  "slow=2:n3@90%+20%");
    const struct sim_host *hosts = sim->hosts;
    run_until(sim, 1);
    cr_assert_eq(sim_schedule_begin(&schedule, 10 * SECOND), 0);
    run_until(sim, 4.5);
    cr_expect(hosts[0].slow == 1 && hosts[1].slow == 2 && hosts[2].slow == 2);
    run_until(sim, 5.5);
    cr_expect(hosts[0].slow == 2 && hosts[1].slow == 2 && hosts[2].slow == 2);
    run_until(sim, 6.5);
    cr_expect(hosts[0].slow == 2 && hosts[1].slow == 1 && hosts[2].slow == 1);
    run_until(sim, 10.5);
    cr_expect(hosts[0].slow == 1 && hosts[3].slow == 2);
    run_until(sim, 11.5);
    cr_expect_eq(hosts[3].slow, 1);
    close_scene(sim);
}

Test(schedule, half_of_the_nodes_are_half_though_some_are_started_later)
{
    enum { NODES = 20 };
    uint64_t starts[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        starts[i] = i < 5 ? 0 : i * 1000;
    struct parley_sim *sim = scene(
        &(struct parley_sim_options){.nodes = NODES, .seed = 1, .seeds = 3, .start_us = starts},
        "slow=4:50%@0s kill:n19@0s");
    uint32_t slow = 0, late = 0;
    run_until(sim, 1);
    for (uint32_t i = 0; i < NODES; i++) {
        slow += sim->hosts[i].slow == 4;
        late += sim->hosts[i].slow == 4 && i >= 5;
    }
    cr_assert_eq(slow, NODES / 2);
    cr_assert_gt(late, 0);
    cr_assert_not(parley_sim_live(sim, 19));
    close_scene(sim);
}

/* What a fault of the kind changes of a node. */
static double set_of(const struct sim_host *host, enum fault_kind kind)
{
    switch (kind) {
    case FAULT_PAUSE:
        return host->paused;
    case FAULT_SLOW:
        return host->slow;
    case FAULT_LATENCY:
        return (double)host->extra_us;
    case FAULT_LOSS:
        return host->loss_rate;
    case FAULT_CUT:
        return host->cut_rate;
    case FAULT_DUPLICATE:
        return host->duplicate_rate;
    case FAULT_REORDER:
        return (double)host->reorder_us;
    case FAULT_BANDWIDTH:
        return (double)host->in.rate_bytes;
    case FAULT_DISK_FULL:
        return host->disk_full;
    case FAULT_DISK_TORN:
        return host->disk_torn;
    case FAULT_DISK_SLOW:
        return (double)host->disk_us;
    case FAULT_BYZANTINE:
        return host->lie;
    default:
        return host->state;
    }
}

Test(schedule, each_kind_sets_what_it_says_and_takes_it_back)
{
    const struct {
        const char *fault;
        double during;
    } kinds[] = {
        {"restart:n1@1s+1s", SIM_HOST_OFF},
        {"pause:n1@1s+1s", true},
        {"slow=4:n1@1s+1s", 4},
        {"latency=5ms:n1@1s+1s", 5000},
        {"loss=0.25:n1@1s+1s", 0.25},
        {"cut=0.25:n1@1s+1s", 0.25},
        {"duplicate=0.25:n1@1s+1s", 0.25},
        {"reorder=5ms:n1@1s+1s", 5000},
        {"bandwidth=8Mbit:n1@1s+1s", 1000000},
        {"disk-full:n1@1s+1s", true},
        {"disk-torn:n1@1s+1s", true},
        {"disk-slow=5ms:n1@1s+1s", 5000},
        {"byzantine=sign:n1@1s+1s", PARLEY_SIM_SIGN},
        {"byzantine=scale:n1@1s+1s", PARLEY_SIM_SCALE},
        {"byzantine=random:n1@1s+1s", PARLEY_SIM_RANDOM},
        {"byzantine=nan:n1@1s+1s", PARLEY_SIM_NAN},
        {"byzantine=alie:n1@1s+1s", PARLEY_SIM_ALIE},
        {"byzantine=ipm:n1@1s+1s", PARLEY_SIM_IPM},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct parley_sim *sim = four(kinds[i].fault);
        const struct sim_host *hosts = sim->hosts;
        enum fault_kind kind = faults.items[0].kind;
        run_until(sim, 0.5);
        double before = set_of(&hosts[1], kind);
        cr_expect_neq(before, kinds[i].during, "%s", kinds[i].fault);
        run_until(sim, 1.5);
        cr_expect_eq(set_of(&hosts[1], kind), kinds[i].during, "%s", kinds[i].fault);
        cr_expect_eq(set_of(&hosts[0], kind), before, "%s, of another", kinds[i].fault);
        run_until(sim, 2.5);
        cr_expect_eq(set_of(&hosts[1], kind), before, "%s, after it", kinds[i].fault);
        close_scene(sim);
    }
}

Test(schedule, who_has_no_labels_cannot_train_on_wrong_ones)
{
    struct parley_sim *sim;
    char why[256] = "";
    units_why clause;
    cr_assert_eq(parley_sim_new(&sim, &(struct parley_sim_options){.nodes = 2}), 0);
    cr_assert_eq(faults_add_list(&faults, "byzantine=labels:n1@0s", clause), 0);
    cr_expect_eq(sim_schedule_init(&schedule, sim, &faults, 1, why, sizeof why), PARLEY_EUSAGE);
    cr_expect_str_eq(why, "--fault: byzantine=labels needs a --model of data with labels");
    close_scene(sim);
}

/* What is told of those faults within eight seconds. */
static void expect_told(const char *list, const char *expected)
{
    struct parley_sim *sim = four(list);
    schedule.on_fault = on_fault;
    told[0] = '\0';
    run_until(sim, 8);
    cr_expect_str_eq(told, expected, "%s: %s", list, told);
    close_scene(sim);
}

Test(schedule, the_end_of_a_fault_is_told_as_run_tells_it)
{
    expect_told("pause:n0@1s+4s slow=2:n1@2s+4s restart:n2@3s+4s",
                "pause n0, slow n1, restart n2, resume n0, slow-end n1, start n2, ");
    expect_told("loss=0.1:n3@1s+2s partition:n0|n1@2s+2s",
                "loss n3, partition n0|n1, loss-end n3, partition-end n0|n1, ");
    /* What held the node before does again, and is told again. */
    expect_told("slow=2:n1@1s+3s slow=4:n1@2s+1s", "slow n1, slow n1, slow n1, slow-end n1, ");
}

Test(schedule, an_end_that_changes_nothing_is_not_told)
{
    /* Somebody who is killed wakes no more; who is held by another fault, too, goes on after it. */
    expect_told("pause:n0@1s+2s kill:n0@2s", "pause n0, kill n0, ");
    expect_told("pause:n1@1s+2s pause:n1@2s+2s", "pause n1, pause n1, resume n1, ");
    expect_told("restart:n2@1s+2s restart:n2@2s+2s", "restart n2, restart n2, start n2, ");
    /* It is up again at once. */
    expect_told("restart:n3@1s", "restart n3, ");
}

Test(schedule, nothing_strikes_and_nobody_starts_once_all_have_ended)
{
    /* n1 is to be back in a second; n0 has ended alone by then. */
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 2, .seed = 1}, "restart:n1@1s+20s kill:n0@21s "
                                                                   "restart:n0@22s");
    run_until(sim, 2);
    cr_assert_not(parley_sim_live(sim, 1));
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    run_until(sim, 20);
    cr_assert_eq(sim->hosts[0].state, SIM_HOST_ENDED);
    run_until(sim, 25);
    cr_expect_eq(sim->hosts[0].state, SIM_HOST_ENDED);
    cr_expect_eq(sim->hosts[1].state, SIM_HOST_OFF);
    cr_expect_eq(sim_schedule_left(&schedule), 2);
    close_scene(sim);
}
