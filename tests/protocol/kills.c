/* kills.c: nodes that die, and connections that break, at every state of the protocol. */
#include "strike.h"

static struct parley_sim *scene_struck(struct strike *strike_at, uint64_t seed)
{
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 4, .seed = seed, .latency_us = 300});
    scene_train(sim, 4);
    scene_run(sim, 100000);
    strike_at->number += parley_sim_frames(sim, strike_at->type);
    parley_sim_on_frame(sim, strike, strike_at);
    return sim;
}

static void kill_everywhere(uint8_t type)
{
    for (int way = 0; way < 3; way++) {
        struct strike at = {
            .type = type, .number = 5, .arriving = way > 0, .at_receiver = way == 1};
        struct parley_sim *sim = scene_struck(&at, 10u * type + (unsigned)way);
        scene_until(sim, 4, scene_is_set, &at.done, 20);
        scene_run(sim, 2 * SECOND);
        cr_assert_eq(parley_sim_live_count(sim), 3);
        uint32_t who = 0;
        while (!parley_sim_live(sim, who))
            who++;
        scene_agree(sim, 4, who);
        parley_sim_free(sim);
    }
}

Test(kills, a_death_at_an_offer_stops_nobody)
{
    /* Sender before it leaves, receiver before it comes, sender when it comes; all alike below. */
    kill_everywhere(WIRE_OFFER);
}

Test(kills, a_death_at_an_accept_stops_nobody)
{
    /* As above. */
    kill_everywhere(WIRE_ACCEPT);
}

Test(kills, a_death_at_a_chunk_stops_nobody)
{
    /* As above. */
    kill_everywhere(WIRE_CHUNK);
}

Test(kills, a_death_at_ready_stops_nobody)
{
    /* As above. */
    kill_everywhere(WIRE_READY);
}

Test(kills, a_death_at_commit_stops_nobody)
{
    /* As above. */
    kill_everywhere(WIRE_COMMIT);
}

Test(kills, a_death_at_applied_stops_nobody)
{
    /* As above. */
    kill_everywhere(WIRE_APPLIED);
}

Test(kills, a_cut_around_ready_and_commit_is_resolved_by_asking)
{
    /* Wherever the connection breaks after READY, both sides add their delta or neither does. */
    const uint8_t types[] = {WIRE_CHUNK, WIRE_READY, WIRE_COMMIT, WIRE_APPLIED};
    for (int t = 0; t < 4; t++)
        for (int way = 0; way < 2; way++)
            for (uint64_t seed = 1; seed <= 2; seed++) {
                struct strike at = {
                    .type = types[t], .number = 4 + seed, .arriving = way > 0, .cut = true};
                struct parley_sim *sim = scene_struck(&at, seed);
                scene_until(sim, 4, scene_is_set, &at.done, 20);
                scene_run(sim, 3 * SECOND);
                scene_until(sim, 4, parley_sim_quiet, NULL, 20);
                cr_assert_leq(parley_sim_mass_error(sim), 1e-6, "%s %d",
                              wire_type_name((enum wire_type)types[t]), way);
                parley_sim_free(sim);
            }
}

static bool somebody_in(struct parley_sim *sim, void *arg)
{
    const enum parley_phase phase = *(const enum parley_phase *)arg;
    for (uint32_t i = 0; i < 4; i++)
        if (parley_sim_live(sim, i) && scene_view(sim, i).phase >= phase) return true;
    return false;
}

Test(kills, a_death_in_the_final_agreement_leaves_one_digest)
{
    /* Killed as soon as it, or another, has come to each phase: the survivors agree all the same.
     */
    const enum parley_phase phases[] = {PARLEY_PHASE_STOP,     PARLEY_PHASE_SETTLE,
                                        PARLEY_PHASE_PROPOSED, PARLEY_PHASE_HELD,
                                        PARLEY_PHASE_LOCKED,   PARLEY_PHASE_DONE};
    for (int p = 0; p < 6; p++)
        for (uint32_t victim = 0; victim < 4; victim += 3) {
            enum parley_phase phase = phases[p];
            struct parley_sim *sim = scene_together(&(struct parley_sim_options){
                .nodes = 4, .seed = 3 + (uint64_t)p, .latency_us = 1000, .operation_us = 500});
            scene_train(sim, 4);
            scene_run(sim, 1 * SECOND);
            parley_sim_stop(sim, 1, PARLEY_STOP_OPERATOR);
            scene_until(sim, 4, somebody_in, &phase, 30);
            parley_sim_kill(sim, victim, false);
            scene_until(sim, 4, parley_sim_agreed, NULL, 90);
            scene_same(sim, 4);
            cr_assert_eq(parley_sim_live_count(sim), 3);
            parley_sim_free(sim);
        }
}

Test(kills, half_of_the_cluster_may_die_at_once)
{
    /* Four of eight die in one moment, loud or silent; the others train on and agree. */
    for (int silent = 0; silent < 2; silent++) {
        struct parley_sim *sim =
            scene_together(&(struct parley_sim_options){.nodes = 8, .seed = 8, .latency_us = 500});
        scene_train(sim, 8);
        scene_run(sim, 2 * SECOND);
        for (uint32_t i = 1; i < 8; i += 2)
            parley_sim_kill(sim, i, silent);
        scene_until(sim, 8, parley_sim_converged, NULL, 30);
        scene_agree(sim, 8, 0);
        struct parley_view view = scene_view(sim, 0);
        cr_assert_eq(view.held, 4);
        cr_assert_eq(view.known, 8);
        parley_sim_free(sim);
    }
}

Test(kills, the_seed_may_die_after_all_have_joined)
{
    /* The cluster does not hang on the node by which it was joined. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 5, .seed = 9, .latency_us = 500});
    scene_train(sim, 5);
    parley_sim_kill(sim, 0, false);
    scene_run(sim, 5 * SECOND);
    scene_agree(sim, 5, 4);
    parley_sim_free(sim);
}

Test(kills, who_is_left_alone_tells_no_drift)
{
    /* It told for as long as it was alone how far it had been from those that are dead. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 4, .latency_us = 500});
    scene_train(sim, 2);
    scene_run(sim, 2 * SECOND);
    cr_assert_geq(scene_view(sim, 0).drift, 0);
    parley_sim_kill(sim, 1, false);
    scene_run(sim, 2 * SECOND);
    cr_assert_eq(scene_view(sim, 0).live, 1);
    cr_assert_lt(scene_view(sim, 0).drift, 0);
    parley_sim_free(sim);
}

Test(kills, a_simulation_is_quiet_and_at_one_again_after_a_new_start)
{
    /* The predicates count what an ended process had applied, and a start that is to come. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 4, .seed = 3, .latency_us = 500});
    scene_train(sim, 4);
    scene_run(sim, 1 * SECOND);
    scene_until(sim, 4, parley_sim_quiet, NULL, 3);
    parley_sim_kill(sim, 3, false);
    scene_until(sim, 4, parley_sim_converged, NULL, 3);
    parley_sim_start(sim, 3);
    scene_until(sim, 4, parley_sim_converged, NULL, 3);
    cr_assert_eq(parley_sim_live_count(sim), 4);
    scene_until(sim, 4, parley_sim_quiet, NULL, 3);
    parley_sim_free(sim);
}

Test(kills, a_death_is_suspected_then_known_and_a_new_start_takes_its_place)
{
    /* What the others say of a killed process: suspect at the moment its connection breaks, dead
     * half a second later as its address refuses; and of its next boot. */
    struct parley_sim *sim = scene_together(
        &(struct parley_sim_options){.nodes = 3, .seed = 1, .step_us = 1000, .latency_us = 200});
    scene_train(sim, 3);
    scene_run(sim, 2 * SECOND - parley_sim_now(sim));
    parley_sim_kill(sim, 2, false);
    scene_expect(sim, "member phase", 3,
                 "2.001s n0 member n2 suspect: its connection broke\n"
                 "2.001s n1 member n2 suspect: its connection broke\n"
                 "2.503s n0 member n2 dead: its connection broke and its address refuses\n"
                 "2.503s n1 member n2 dead: its connection broke and its address refuses\n");
    parley_sim_start(sim, 2);
    scene_expect(sim, "member phase", 3,
                 "n2 member n2 alive: this node\n"
                 "n0 member n2 alive: it connected\n"
                 "n2 member n0 alive: it connected\n"
                 "n2 member n1 alive: a peer told of it\n"
                 "n2 phase train\n"
                 "n1 member n2 alive: it connected\n");
    scene_agree(sim, 3, 0);
    parley_sim_free(sim);
}

Test(kills, a_transcript_that_breaks_off_shows_both_lines)
{
    /* The fixture's own: the line expected and the one that came; the same where none came. */
    char why[300];
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 1, .latency_us = 200});
    scene_train(sim, 2);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    cr_assert_eq(parley_sim_expect(sim, "phase", "n0 phase stop\nn0 phase settled\n", 10 * SECOND,
                                   why, sizeof why),
                 PARLEY_ENO_AGREEMENT);
    cr_assert_not_null(strstr(why, "expected: n0 phase settled\n     got: 0."), "%s", why);
    cr_assert_not_null(strstr(why, "s n0 phase settle"), "%s", why);
    scene_until(sim, 2, parley_sim_agreed, NULL, 30);
    cr_assert_eq(parley_sim_expect(sim, "phase", "n0 phase train", SECOND, why, sizeof why),
                 PARLEY_ENO_AGREEMENT);
    cr_assert_not_null(strstr(why, "got: nothing until"), "%s", why);
    parley_sim_free(sim);
}

Test(kills, a_transcript_ends_with_its_last_line_whatever_else_comes_of_the_same_event)
{
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 1, .latency_us = 200});
    scene_train(sim, 2);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_expect(sim, "phase", 10, "n0 phase stop"); /* and settle */
    parley_sim_free(sim);
}

Test(kills, a_transcript_hears_all_that_is_logged_and_of_known_kinds_alone)
{
    /* The fixture's own: without parley_sim_on_line(), too; with it, up to its level. */
    char why[300];
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 1, .latency_us = 200});
    cr_assert_eq(parley_sim_expect(sim, "phase logs", "n0 phase stop", SECOND, why, sizeof why),
                 PARLEY_EUSAGE);
    cr_assert_str_eq(why, "kinds: \"logs\" is none of phase, member, finished and log");
    scene_train(sim, 2);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_expect(sim, " log ", 10, "n0 log ...");
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, NULL, NULL);
    cr_assert_eq(parley_sim_expect(sim, "log", "n0 log ...", 10 * SECOND, why, sizeof why),
                 PARLEY_ENO_AGREEMENT);
    cr_assert_not_null(strstr(why, "got: nothing until"), "%s", why);
    parley_sim_free(sim);
}
