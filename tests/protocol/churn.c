/* What nodes that come, die and come back leave behind does not wear the others down. */
#include "scene.h"

static uint32_t frames[WIRE_TYPES]; /* that were sent to others: a seed dials itself at times */

static void count_frames(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    (void)sim;
    (void)arg;
    if (!frame->arriving && frame->from != frame->to) frames[frame->type]++;
}

static uint64_t aborted(const struct parley_sim *sim, uint32_t nodes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++)
        sum += scene_view(sim, i).ledger.aborted;
    return sum;
}

Test(churn, who_was_started_anew_keeps_its_links)
{
    /* Proves that nobody goes on dialling the address of a dead process at which its successor
     * listens: that one would end the link in use for the new one, and what is under way on it. */
    uint64_t starts[] = {0, 0, PARLEY_SIM_NEVER};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 3,
                                                                .seed = 1,
                                                                .seeds = 2,
                                                                .parameters = 500000,
                                                                .latency_us = 500,
                                                                .step_us = 500000,
                                                                .bandwidth_bytes = 4000000,
                                                                .start_us = starts});
    scene_run(sim, 20 * SECOND);
    for (int i = 0; i < 4; i++) {
        parley_sim_start(sim, 2);
        scene_run(sim, 3 * SECOND);
        if (i < 3) parley_sim_kill(sim, 2, false);
        scene_run(sim, 10 * SECOND);
    }
    scene_run(sim, 60 * SECOND);
    uint64_t applied = scene_applied(sim, 3), broken = aborted(sim, 3);
    memset(frames, 0, sizeof frames);
    parley_sim_on_frame(sim, count_frames, NULL);
    scene_run(sim, 300 * SECOND);
    cr_assert_eq(frames[WIRE_HELLO], 0, "%u new links", frames[WIRE_HELLO]);
    cr_assert_eq(aborted(sim, 3), broken);
    cr_assert_gt(scene_applied(sim, 3), applied + 100);
    parley_sim_free(sim);
}

Test(churn, of_who_was_started_anew_the_fixture_tells_what_is_said_of_the_new_process)
{
    struct parley_sim *sim =
        scene(&(struct parley_sim_options){.nodes = 3, .seed = 1, .seeds = 2, .latency_us = 500});
    struct parley_member member;
    scene_run(sim, SECOND);
    parley_sim_kill(sim, 1, false);
    scene_until(sim, 3, parley_sim_converged, NULL, 10);
    cr_assert(parley_sim_member(sim, 0, 1, &member));
    cr_assert_eq(member.state, PARLEY_MEMBER_DEAD);
    parley_sim_start(sim, 1);
    scene_run(sim, 5 * SECOND);
    cr_assert(parley_sim_member(sim, 0, 1, &member));
    cr_assert_eq(member.state, PARLEY_MEMBER_ALIVE);
    parley_sim_free(sim);
}

static bool trains(struct parley_sim *sim, void *arg)
{
    const uint32_t *node = arg;
    return sim->hosts[*node].life.version > 0;
}

Test(churn, who_was_started_anew_has_nothing_of_the_process_before)
{
    /* Proves that the simulator's new process neither waits for its predecessor's operations, of a
     * second each here, nor tells its losses. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){
        .nodes = 3, .seed = 1, .seeds = 2, .rate = 0.01, .operation_us = SECOND});
    uint32_t node = 2;
    scene_run(sim, 10 * SECOND);
    const struct sim_life *life = &sim->hosts[node].life;
    cr_assert(life->computed_us > parley_sim_now(sim) && life->sound_loss > 0);
    parley_sim_kill(sim, node, false);
    parley_sim_start(sim, node);
    scene_run(sim, 1);
    cr_assert_eq(life->computed_us, 0);
    cr_assert_eq(life->sound_loss, 0);
    cr_assert_eq(life->version, 0);
    scene_until(sim, 3, trains, &node, 20);
    parley_sim_free(sim);
}

static void few_connections(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->connections_max = 10;
}

Test(churn, the_many_that_died_leave_the_links_of_the_living_alone)
{
    /* Proves that dials to forty unplugged machines, each of which takes a place for seconds, leave
     * room for the three links that a node of four needs, and that each of them is still dialled
     * now and then: one that comes back is found. */
    enum { LIVING = 4, ALL = 44 };
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = ALL,
                                                                .unchecked = true,
                                                                .seed = 3,
                                                                .seeds = 2,
                                                                .parameters = 16,
                                                                .latency_us = 500,
                                                                .step_us = 200000,
                                                                .rate = 0.01,
                                                                .configure = few_connections});
    scene_train(sim, ALL);
    for (uint32_t i = LIVING; i < ALL; i++)
        parley_sim_kill(sim, i, true);
    scene_run(sim, 120 * SECOND);
    memset(frames, 0, sizeof frames);
    parley_sim_on_frame(sim, count_frames, NULL);
    uint64_t applied = scene_applied(sim, LIVING);
    scene_run(sim, 300 * SECOND);
    cr_assert_eq(frames[WIRE_BYE], 0, "%u links ended", frames[WIRE_BYE]);
    cr_assert_gt(scene_applied(sim, LIVING), applied + 4000);
    parley_sim_free(sim);
}

/* The first nodes are responders whose initiators die as READY comes: two for each. */
static void kill_who_is_told_ready(struct parley_sim *sim, const struct parley_sim_frame *frame,
                                   void *arg)
{
    uint32_t *killed = arg;
    if (frame->type != WIRE_READY || !frame->arriving || frame->from > 1 || frame->to < 2) return;
    if (killed[frame->from] == 2) return;
    killed[frame->from]++;
    parley_sim_kill(sim, frame->to, false);
}

static struct parley_sim *in_doubt(uint32_t killed[2])
{
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 10,
                                                                .seed = 3,
                                                                .seeds = 2,
                                                                .parameters = 64,
                                                                .latency_us = 500,
                                                                .step_us = 10000,
                                                                .rate = 0.01});
    scene_train(sim, 10);
    parley_sim_on_frame(sim, kill_who_is_told_ready, killed);
    scene_run(sim, 60 * SECOND);
    cr_assert(killed[0] == 2 && killed[1] == 2);
    return sim;
}

Test(churn, two_that_died_undecided_do_not_end_a_nodes_averaging)
{
    /* Proves that a node with two exchanges in doubt takes a third: the place is that of one whose
     * address refuses, which is counted as dropped. */
    uint32_t killed[2] = {0};
    struct parley_sim *sim = in_doubt(killed);
    for (uint32_t i = 2; i < 10; i++)
        if (parley_sim_live(sim, i)) parley_sim_leave(sim, i);
    scene_run(sim, 60 * SECOND);
    uint64_t applied = scene_applied(sim, 2);
    scene_run(sim, 60 * SECOND);
    cr_assert_gt(scene_applied(sim, 2), applied + 1000);
    for (uint32_t i = 0; i < 2; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert_eq(view.ledger.in_doubt + view.ledger.dropped, 2);
    }
    parley_sim_free(sim);
}

Test(churn, what_is_in_doubt_ends_where_its_process_is_started_anew_elsewhere)
{
    /* Proves that a live process of the same name ends the doubt, though nobody can be asked: at
     * the old address there is nobody. */
    uint32_t killed[2] = {0};
    struct parley_sim *sim = in_doubt(killed);
    for (uint32_t i = 2; i < 10; i++) {
        if (parley_sim_live(sim, i)) continue;
        snprintf(sim->addresses[i], sizeof sim->addresses[i], "n%u:7001", i);
        parley_sim_start(sim, i);
    }
    scene_run(sim, 30 * SECOND);
    for (uint32_t i = 0; i < 2; i++) {
        struct parley_view view = scene_view(sim, i);
        cr_assert_eq(view.ledger.in_doubt, 0);
        cr_assert_eq(view.ledger.dropped, 2);
    }
    parley_sim_free(sim);
}

static void few_members(struct parley_config *config, uint32_t node, void *arg)
{
    (void)node;
    (void)arg;
    config->members_max = 7;
}

Test(churn, a_node_that_crashes_again_and_again_shuts_the_door_on_nobody)
{
    /* Proves that earlier processes of a name give their places in the table of members to others,
     * their samples still counted (the checkers add them up), and that no name is forgotten. */
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 4,
                                                                    .seed = seed,
                                                                    .seeds = 2,
                                                                    .parameters = 64,
                                                                    .latency_us = 500,
                                                                    .step_us = 20000,
                                                                    .rate = 0.01,
                                                                    .configure = few_members});
        scene_train(sim, 4);
        for (int i = 0; i < 20; i++) {
            parley_sim_kill(sim, 3, i % 2 == 0);
            scene_run(sim, 3 * SECOND + 100000 * (uint64_t)i);
            parley_sim_start(sim, 3);
            scene_run(sim, 3 * SECOND);
        }
        parley_sim_kill(sim, 2, false);
        scene_run(sim, 5 * SECOND);
        parley_sim_start(sim, 2);
        scene_run(sim, 20 * SECOND);
        for (uint32_t i = 0; i < 4; i++) {
            cr_assert(parley_sim_live(sim, i), "seed %d: n%u was turned away", (int)seed, i);
            struct parley_view view = scene_view(sim, i);
            cr_assert(view.known == 4 && view.live == 4, "n%u knows %u, of which %u live", i,
                      view.known, view.live);
        }
        scene_agree(sim, 4, 0);
        parley_sim_free(sim);
    }
}
