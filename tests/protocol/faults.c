/* faults.c: what may happen to connections, lines, disks and honesty, and what it may not do. */
#include "scene.h"
#include "world/network/network.h"
#include "world/network/route.h"

enum { NODES = 6 };

static struct parley_sim *waiting(uint64_t seed, uint64_t parameters, uint64_t step_us)
{
    return scene_together(&(struct parley_sim_options){.nodes = NODES,
                                                       .seed = seed,
                                                       .parameters = parameters,
                                                       .seeds = 2,
                                                       .step_us = step_us,
                                                       .latency_us = 500,
                                                       .again = sim_again_hard});
}

static struct parley_sim *trained(uint64_t seed, uint64_t parameters, uint64_t step_us)
{
    struct parley_sim *sim = waiting(seed, parameters, step_us);
    scene_train(sim, NODES);
    return sim;
}

struct sums {
    uint64_t applied, aborted;
};

static struct sums sums_of(const struct parley_sim *sim)
{
    struct sums sums = {0};
    for (uint32_t i = 0; i < NODES; i++) {
        struct parley_view view = scene_view(sim, i);
        sums.applied += view.ledger.applied;
        sums.aborted += view.ledger.aborted;
    }
    return sums;
}

Test(faults, lost_messages_leave_the_mean_where_it_was)
{
    /* 30 % of all messages are lost for a minute: sent again, or their connection given up and half
     * open for a while. The mean moves by rounding only. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim = trained(seed, 64, 500000);
        for (uint32_t i = 0; i < NODES; i++)
            parley_sim_loss(sim, i, 1 - sqrt(0.7)); /* at both ends: 0.3 */
        scene_run(sim, 60 * SECOND);
        for (uint32_t i = 0; i < NODES; i++)
            parley_sim_loss(sim, i, 0);
        scene_until(sim, NODES, parley_sim_quiet, NULL, 60);
        struct sums sums = sums_of(sim);
        cr_assert_gt(sums.applied, 100);
        cr_assert_leq(parley_sim_mass_error(sim), 1e-5);
        scene_agree(sim, NODES, 0);
        parley_sim_free(sim);
    }
}

static void cut_for_a_while(struct parley_sim *sim)
{
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_cut(sim, i, 0.05);
    scene_run(sim, 5 * SECOND);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_cut(sim, i, 0);
    scene_until(sim, NODES, parley_sim_quiet, NULL, 60);
    struct sums sums = sums_of(sim);
    cr_assert_gt(sums.applied, 50);
    cr_assert_gt(sums.aborted, 10);
    cr_assert_leq(parley_sim_mass_error(sim), 1e-5);
}

Test(faults, messages_that_cut_their_connection_leave_the_mean_where_it_was)
{
    /* Every tenth message ends its connection, so that exchanges break in every state. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim = trained(seed, 64, 5000);
        cut_for_a_while(sim);
        scene_agree(sim, NODES, 0);
        parley_sim_free(sim);
    }
}

Test(faults, cut_connections_leave_the_mean_where_one_table_serves_all)
{
    /* The same, where no node is the first of the table but one: who asks for the outcome of an
     * exchange is told it, by whichever node it is of. */
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct parley_sim *sim = waiting(seed, 64, 5000);
        sim->options.shares_roster = true;
        scene_train(sim, NODES);
        cut_for_a_while(sim);
        for (uint32_t i = 0; i < NODES; i++) {
            cr_assert_eq(scene_view(sim, i).ledger.dropped, 0, "n%u, seed %llu", i,
                         (unsigned long long)seed);
        }
        parley_sim_free(sim);
    }
}

static void count_hellos(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    (void)sim;
    *(uint32_t *)arg += frame->type == WIRE_HELLO && frame->arriving;
}

Test(faults, dials_that_come_twice_or_late_make_one_cluster)
{
    /* From the first dial on: half of them come twice, and all up to 5 s late, when they were given
     * up. Nodes meet, train and agree all the same. */
    uint32_t hellos = 0;
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = NODES, .seed = 4, .seeds = 2});
    parley_sim_on_frame(sim, count_hellos, &hellos);
    for (uint32_t i = 0; i < NODES; i++) {
        parley_sim_duplicate(sim, i, 0.5);
        parley_sim_reorder(sim, i, 2500000);
    }
    scene_run(sim, 60 * SECOND);
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_reorder(sim, i, 0);
    scene_until(sim, NODES, parley_sim_converged, NULL, 60);
    cr_assert_gt(hellos, 2 * (NODES - 1));
    scene_agree(sim, NODES, 0);
    cr_assert_leq(parley_sim_mass_error(sim), 1e-5);
    parley_sim_free(sim);
}

Test(faults, each_dial_comes_twice_where_that_is_so_likely)
{
    for (uint32_t twice = 0; twice < 2; twice++) {
        struct parley_sim *sim =
            scene(&(struct parley_sim_options){.nodes = 2, .seed = 4, .step_us = 20000});
        parley_sim_duplicate(sim, 1, twice);
        scene_run(sim, 3 * SECOND);
        cr_assert(parley_sim_converged(sim, NULL));
        /* That n0 dials its seed, itself, is one more. */
        cr_assert_eq(sim->hosts[0].life.conn_next / 2, 2 + twice);
        parley_sim_free(sim);
    }
}

/* Frames to n0, those of each sender in the order in which they left. */
struct queues {
    struct queue {
        uint64_t left, came;
        struct {
            uint64_t what, left_us;
        } frames[1 << 12];
    } of[NODES];
    uint64_t newest_us; /* when that left which left last of all that have come */
    uint64_t overtaken, shortest_us, longest_us;
};

static void keep_times(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct queues *queues = arg;
    struct queue *queue = &queues->of[frame->from];
    uint64_t now_us = parley_sim_now(sim), what = (uint64_t)frame->size << 8 | frame->type;
    if (frame->to != 0 || frame->from == 0) return;
    cr_assert_lt(queue->left, sizeof queue->frames / sizeof *queue->frames);
    if (!frame->arriving) {
        queue->frames[queue->left].what = what;
        queue->frames[queue->left++].left_us = now_us;
        return;
    }
    if (queue->came == 0 && queue->frames[0].what != what) return; /* it had left before */
    cr_assert_eq(queue->frames[queue->came].what, what, "one of the same connection");
    uint64_t left_us = queue->frames[queue->came++].left_us;
    queues->overtaken += left_us < queues->newest_us;
    queues->newest_us = left_us > queues->newest_us ? left_us : queues->newest_us;
    queues->shortest_us = fmin(queues->shortest_us, now_us - left_us);
    queues->longest_us = fmax(queues->longest_us, now_us - left_us);
}

Test(faults, messages_that_take_longer_overtake_those_of_other_connections)
{
    /* Up to so much more at each end; without, all take as long, and none overtakes another. */
    static struct queues queues;
    for (uint64_t more_us = 0; more_us <= 2000; more_us += 2000) {
        struct parley_sim *sim = waiting(4, 64, 20000);
        queues = (struct queues){.shortest_us = UINT64_MAX};
        scene_train(sim, NODES);
        scene_run(sim, SECOND); /* there is one link to each */
        parley_sim_on_frame(sim, keep_times, &queues);
        for (uint32_t i = 0; i < NODES; i++)
            parley_sim_reorder(sim, i, more_us);
        scene_run(sim, 5 * SECOND);
        cr_assert_eq(queues.overtaken > 0, more_us > 0, "%llu",
                     (unsigned long long)queues.overtaken);
        cr_assert_geq(queues.shortest_us, 500);
        cr_assert_leq(queues.longest_us, 500 + 2 * more_us);
        cr_assert_geq(queues.longest_us, 500 + more_us);
        parley_sim_free(sim);
    }
}

/* Frames of n0 to n1 in their order: what left, and what came. */
struct order {
    size_t left, came;
    uint64_t frames[100000]; /* type and size */
    bool overtaken;
};

static void keep_order(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    struct order *order = arg;
    uint64_t what = (uint64_t)frame->size << 8 | frame->type;
    (void)sim;
    if (frame->from != 0 || frame->to != 1) return;
    if (frame->arriving)
        order->overtaken = order->overtaken || order->frames[order->came++] != what;
    else if (order->left < sizeof order->frames / sizeof *order->frames)
        order->frames[order->left++] = what;
}

Test(faults, nothing_overtakes_what_a_cut_held_back)
{
    /* Proves that on a connection that lives through short cuts all comes in the order in which it
     * was sent, as by TCP: also what was on its way as the cut ended, and where another one follows
     * before all has come. */
    static struct order order;
    const uint32_t sides[] = {0, 1};
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 9, .latency_us = 60000});
    parley_sim_on_frame(sim, keep_order, &order);
    scene_train(sim, 2);
    for (int i = 0; i < 20; i++) {
        scene_run(sim, 2 * SECOND);
        parley_sim_partition(sim, sides);
        scene_run(sim, 100000 + 20000 * (uint64_t)i);
        parley_sim_heal(sim);
        scene_run(sim, 15000 * (uint64_t)(i % 5));
        parley_sim_partition(sim, sides);
        scene_run(sim, 150000);
        parley_sim_heal(sim);
    }
    scene_run(sim, 2 * SECOND);
    cr_assert(order.came > 500 && order.left < 100000, "%zu came", order.came);
    cr_assert_leq(order.left - order.came, 20);
    cr_assert_not(order.overtaken);
    parley_sim_free(sim);
}

Test(faults, a_dialer_hears_of_a_cut_before_its_connection_stands)
{
    /* Proves that a connection that was accepted and is cut before its dialer knows is no trap for
     * that one: it held the link for standing, and waited for a HELLO until its time was up. */
    struct parley_sim *sim =
        scene_together(&(struct parley_sim_options){.nodes = 2, .seed = 1, .latency_us = 100000});
    scene_run(sim, 150000);
    parley_sim_disconnect(sim, 0, 1);
    scene_until(sim, 2, parley_sim_converged, NULL, 3);
    parley_sim_free(sim);
}

Test(faults, so_much_of_a_connection_is_on_its_way_and_no_more)
{
    /* As two sockets hold it; before a narrow line as much as that carries in a quarter of a
     * second, and on its way there and back. */
    enum { FRAME = 1000, FRAMES = 2000 };
    static uint8_t bytes[FRAMES * FRAME];
    const struct {
        uint64_t bandwidth_bytes;
        size_t most;
    } cases[] = {{0, 1 << 20}, {1000000, 350000}};
    for (size_t i = 0; i < FRAMES; i++)
        wire_header_write(bytes + i * FRAME, WIRE_KEEPALIVE, FRAME - WIRE_HEADER_BYTES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct parley_sim *sim = scene_together(
            &(struct parley_sim_options){.nodes = 2,
                                         .seed = 3,
                                         .latency_us = 50000,
                                         .bandwidth_bytes = cases[i].bandwidth_bytes});
        scene_train(sim, 2);
        struct sim_end *end = &sim->links->end[0];
        sim_send(end->host, &(struct parley_update){.type = PARLEY_UPDATE_SEND,
                                                    .send = {end->conn, bytes, sizeof bytes}});
        cr_assert(end->flight_bytes <= cases[i].most && end->flight_bytes > cases[i].most - FRAME,
                  "case %zu: %zu", i, end->flight_bytes);
        parley_sim_free(sim);
    }
}

/* Bytes that come from the first half of the nodes to the second. */

static void count_crossing(struct parley_sim *sim, const struct parley_sim_frame *frame, void *arg)
{
    (void)sim;
    if (!frame->arriving || frame->from >= NODES / 2 || frame->to < NODES / 2) return;
    *(uint64_t *)arg += frame->size;
}

Test(faults, two_sites_share_the_line_between_them)
{
    /* A megabyte a second between the halves carries no more than that, whoever sends, and most of
     * that. */
    const uint32_t site[NODES] = {0, 0, 0, 1, 1, 1};
    uint64_t crossing = 0;
    struct parley_sim *sim = trained(5, 50000, 20000);
    cr_assert_eq(parley_sim_link(sim, site, 20000, 1000000), 0);
    scene_run(sim, 5 * SECOND); /* what was under way is through */
    parley_sim_on_frame(sim, count_crossing, &crossing);
    scene_run(sim, 20 * SECOND);
    cr_assert_leq(crossing, 20500000);
    cr_assert_geq(crossing, 10000000);
    parley_sim_free(sim);
}

Test(faults, a_link_that_is_refused_changes_nothing)
{
    /* Proves that the nodes go on as before, and that they may have as many groups as nodes. */
    uint32_t site[NODES] = {0, PARLEY_MEMBERS_MAX};
    struct parley_sim *sim = trained(7, 100, 0);
    cr_assert_eq(parley_sim_link(sim, site, 20000, 1000), PARLEY_EUSAGE);
    site[1] = UINT32_MAX - 1;
    cr_assert_eq(parley_sim_link(sim, site, 20000, 1000), PARLEY_EUSAGE);
    cr_assert_eq(parley_sim_run_for(sim, SECOND), 0);
    for (uint32_t i = 0; i < NODES; i++)
        site[i] = i;
    cr_assert_eq(parley_sim_link(sim, site, 20000, 0), 0);
    cr_assert_eq(parley_sim_run_for(sim, SECOND), 0);
    parley_sim_free(sim);
}

Test(faults, a_slow_line_of_one_node_carries_its_rate)
{
    /* n0 at 100 kB/s in each direction: in 20 s no more than 2 MB each, and one model's less. */
    struct parley_sim *sim = trained(6, 10000, 20000);
    parley_sim_bandwidth(sim, 0, 100000);
    scene_run(sim, 5 * SECOND);
    struct parley_view before = scene_view(sim, 0);
    scene_run(sim, 20 * SECOND);
    struct parley_view after = scene_view(sim, 0);
    uint64_t models = after.ledger.applied - before.ledger.applied;
    cr_assert(models <= 50 && models >= 10, "%d exchanges of 40 kB in 20 s", (int)models);
    parley_sim_free(sim);
}

static void see_torn(const char *line, void *arg)
{
    if (strstr(line, " n1 ") && strstr(line, "held in memory")) *(bool *)arg = true;
}

static uint64_t applied_in_a_minute(void (*fault)(struct parley_sim *sim))
{
    struct parley_sim *sim = trained(8, 100, 20000);
    fault(sim);
    scene_run(sim, 10 * SECOND); /* what was under way has come, or never does */
    struct parley_view before = scene_view(sim, 0);
    scene_run(sim, 60 * SECOND);
    struct parley_view after = scene_view(sim, 0);
    parley_sim_free(sim);
    return after.ledger.applied - before.ledger.applied;
}

static void far_away(struct parley_sim *sim)
{
    parley_sim_latency(sim, 0, UINT64_MAX);
}

static void last_of_all(struct parley_sim *sim)
{
    for (uint32_t i = 0; i < NODES; i++)
        parley_sim_latency(sim, i, UINT64_MAX / 2);
}

static void on_another_site(struct parley_sim *sim)
{
    const uint32_t site[NODES] = {1};
    cr_assert_eq(parley_sim_link(sim, site, PARLEY_SIM_NEVER - 1, 0), 0);
}

Test(faults, no_delay_is_so_long_that_it_is_none)
{
    /* Proves that sums of delays don't begin anew at 0: nothing reaches n0 within a minute. */
    void (*const faults[])(struct parley_sim * sim) = {far_away, last_of_all, on_another_site};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        cr_expect_eq(applied_in_a_minute(faults[i]), 0, "fault %zu", i);
    struct parley_sim *sim;
    struct parley_sim_options options = {.latency_us = PARLEY_SIM_STEP_US_MAX + 1};
    cr_expect_eq(parley_sim_new(&sim, &options), PARLEY_EUSAGE);
    options = (struct parley_sim_options){.operation_us = PARLEY_SIM_STEP_US_MAX + 1};
    cr_expect_eq(parley_sim_new(&sim, &options), PARLEY_EUSAGE);
}

Test(faults, an_option_that_is_refused_is_named)
{
    static const struct {
        struct parley_sim_options options;
        const char *why;
    } refused[] = {
        {{.nodes = 20000}, "nodes: 20000 is out of range (at most 16384)"},
        {{.vectors = 2, .averaged = 3}, "averaged: 3 is out of range (at most 2)"},
        {{.threads = 257}, "threads: 257 is out of range (at most 256)"},
        {{.rate = 1.5}, "rate: 1.5 is out of range (0 to 1)"},
        {{.rate = NAN}, "rate: nan is out of range (0 to 1)"},
        {{.loss = 1}, "loss: 1 is out of range (0 to below 1)"},
    };
    char why[100];
    struct parley_sim *sim;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cr_expect_eq(parley_sim_check(&refused[i].options, why, sizeof why), PARLEY_EUSAGE);
        cr_expect_str_eq(why, refused[i].why);
        cr_expect_eq(parley_sim_new(&sim, &refused[i].options), PARLEY_EUSAGE);
    }
    cr_expect_eq(parley_sim_check(&(struct parley_sim_options){0}, why, sizeof why), 0);
}

Test(faults, how_long_a_step_takes_is_refused_out_of_its_range)
{
    struct parley_sim *other = scene(&(struct parley_sim_options){0}), *sim = other;
    struct parley_sim_options options = {.step_us = PARLEY_SIM_STEP_US_MAX + 1};
    cr_assert_eq(parley_sim_new(&sim, &options), PARLEY_EUSAGE);
    cr_assert_null(sim);
    parley_sim_free(other);
    options.step_us = PARLEY_SIM_STEP_US_MAX;
    cr_assert_eq(parley_sim_new(&sim, &options), 0);
    parley_sim_slow(sim, 0, PARLEY_SIM_SLOW_MAX);
    cr_assert_eq(parley_sim_run_for(sim, SECOND), 0);
    parley_sim_free(sim);
    const double beyond[] = {0, -1, PARLEY_SIM_SLOW_MAX * 1.001, NAN};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        const char *text;
        cr_assert_eq(parley_sim_new(&sim, &(struct parley_sim_options){0}), 0);
        parley_sim_slow(sim, 0, beyond[i]);
        cr_assert_eq(parley_sim_run_for(sim, SECOND), PARLEY_EUSAGE, "factor %g", beyond[i]);
        parley_sim_error(sim, &text);
        cr_assert(strstr(text, "parley_sim_slow: "), "%s", text);
        parley_sim_free(sim);
    }
}

Test(faults, a_step_takes_time_however_small_the_factor)
{
    /* Proves that time goes on with any factor that is allowed. */
    struct parley_sim *sim = scene(&(struct parley_sim_options){0});
    parley_sim_slow(sim, 0, 1e-300);
    cr_assert_eq(parley_sim_run_for(sim, 20000), 0);
    cr_assert_eq(parley_sim_now(sim), 20000);
    parley_sim_free(sim);
}

Test(faults, a_pause_puts_the_step_under_way_off_by_as_much)
{
    /* Wherever it begins and ends, and when a step has several of them: all are as many steps of
     * 1 s as the node was awake for. */
    static const uint64_t pauses[][4] = {/* from, to, from, to; in ms */
                                         {2100, 2900, 0, 0},
                                         {2100, 3900, 0, 0},
                                         {2100, 7300, 0, 0},
                                         {2100, 2300, 2500, 2700},
                                         {2100, 3300, 3500, 9900}};
    for (size_t p = 0; p < sizeof pauses / sizeof *pauses; p++) {
        struct parley_sim *sim = scene(&(struct parley_sim_options){.step_us = SECOND});
        uint64_t last_ms = 0, asleep_ms = 0;
        for (int i = 0; i < 4 && pauses[p][i] > 0; i++) {
            scene_run(sim, (pauses[p][i] - last_ms) * 1000);
            if (i % 2) asleep_ms += pauses[p][i] - last_ms;
            (i % 2 ? parley_sim_resume : parley_sim_pause)(sim, 0);
            last_ms = pauses[p][i];
        }
        scene_run(sim, (9000 + asleep_ms - last_ms) * 1000 - 1);
        cr_expect_eq(sim->steps, 8, "%zu", p);
        scene_run(sim, 1);
        cr_expect_eq(sim->steps, 9, "%zu", p);
        parley_sim_free(sim);
    }
}

Test(faults, a_probability_is_refused_out_of_its_range)
{
    void (*const faults[])(struct parley_sim *, uint32_t,
                           double) = {parley_sim_loss, parley_sim_cut, parley_sim_duplicate};
    static const char *const names[] = {
        "parley_sim_loss: ", "parley_sim_cut: ", "parley_sim_duplicate: "};
    const double beyond[] = {-1, 2, NAN, INFINITY};
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < 4; i++) {
            const char *text;
            struct parley_sim *sim = scene(&(struct parley_sim_options){0});
            faults[f](sim, 0, 1);
            faults[f](sim, 0, 0);
            cr_assert_eq(parley_sim_run_for(sim, SECOND), 0);
            faults[f](sim, 0, beyond[i]);
            cr_assert_eq(parley_sim_run_for(sim, SECOND), PARLEY_EUSAGE, "%g", beyond[i]);
            parley_sim_error(sim, &text);
            cr_assert(strstr(text, names[f]), "%s", text);
            parley_sim_free(sim);
        }
}

static void configure_badly(struct parley_config *config, uint32_t node, void *arg)
{
    if (node != 1) return;
    if (arg)
        config->mix_every = 0;
    else
        config->vectors = 2;
}

Test(faults, a_node_that_can_not_be_made_is_told_with_the_reason)
{
    /* Proves that who configures badly learns of which node, and of which setting. */
    const char *const says[] = {"n1: parameters, vectors and averaged are not for configure",
                                "n1: mix_every: 0 is out of range"};
    for (int i = 0; i < 2; i++) {
        const char *text;
        struct parley_sim *sim = scene(&(struct parley_sim_options){
            .nodes = 2, .configure = configure_badly, .arg = i ? &i : NULL});
        cr_assert_eq(parley_sim_run_for(sim, SECOND), PARLEY_EUSAGE);
        parley_sim_error(sim, &text);
        cr_assert(strstr(text, says[i]), "%s", text);
        parley_sim_free(sim);
    }
}

Test(faults, a_torn_write_is_found_at_read_back_and_never_published)
{
    /* n1 reads back other bytes than it wrote: it holds the model in memory only, ends so, and the
     * others have their files. */
    struct parley_sim *sim = trained(7, 64, 20000);
    int error = 0;
    bool told = false;
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, see_torn, &told);
    parley_sim_disk_torn(sim, 1, true);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, NODES, parley_sim_agreed, NULL, 60);
    scene_run(sim, 30 * SECOND);
    for (uint32_t i = 0; i < NODES; i++) {
        cr_assert(parley_sim_finished(sim, i, &error));
        cr_assert_eq(error, i == 1 ? PARLEY_ENOT_WRITTEN : 0, "n%u: %s", i,
                     parley_error_name(error));
        cr_assert_eq(parley_sim_file(sim, i) == NULL, i == 1);
    }
    cr_assert(told);
    parley_sim_free(sim);
}

Test(faults, a_slow_disk_delays_the_end_and_no_more)
{
    /* A write of 8 s at n2: nobody gives up, all publish one model. */
    struct parley_sim *sim = trained(8, 64, 20000);
    parley_sim_disk_slow(sim, 2, 8 * SECOND);
    uint64_t from = parley_sim_now(sim);
    scene_agree(sim, NODES, 0);
    cr_assert_geq(parley_sim_now(sim), from + 8 * SECOND);
    parley_sim_free(sim);
}

Test(faults, a_disk_that_is_slower_than_all_wait_for_costs_its_own_node_the_agreement_alone)
{
    /* n1 would write for half an hour: it ends without an agreement, and says that it is the one.
     * The others, who have waited for it, agree then. */
    struct scene_lines gives_up = {
        .text = "n1 log no agreement: this node has not hashed and written the model in time"};
    struct parley_sim *sim = trained(8, 64, 20000);
    int error = 0;
    parley_sim_on_line(sim, PARLEY_LOG_ERROR, scene_count, &gives_up);
    parley_sim_disk_slow(sim, 1, 1800 * SECOND);
    parley_sim_stop(sim, 0, PARLEY_STOP_OPERATOR);
    scene_until(sim, NODES, scene_all_ended, NULL, 400);
    for (uint32_t i = 0; i < NODES; i++) {
        cr_assert(parley_sim_finished(sim, i, &error));
        cr_assert_eq(error, i == 1 ? PARLEY_ENO_AGREEMENT : 0, "n%u: %s", i,
                     parley_error_name(error));
        cr_assert_eq(parley_sim_file(sim, i) == NULL, i == 1);
    }
    cr_assert_eq(gives_up.count, 1);
    parley_sim_free(sim);
}

/* How far apart the honest ones (all but n1) are; not finite if one of them is not. */
static double honest_spread(const struct parley_sim *sim, uint64_t parameters)
{
    double squares = 0;
    for (uint64_t j = 0; j < parameters; j++)
        for (uint32_t i = 2; i < NODES; i++) {
            double gap = parley_sim_vector(sim, i)[j] - parley_sim_vector(sim, 0)[j];
            squares += gap * gap;
        }
    return sqrt(squares);
}

Test(faults, what_is_not_finite_is_applied_by_nobody)
{
    /* One value of each chunk that n1 sends is NaN: its exchanges come to nothing, at no great
     * cost, the others mix and agree on a finite model. */
    struct parley_sim *sim = trained(9, 64, 20000);
    double before = honest_spread(sim, 64);
    parley_sim_byzantine(sim, 1, PARLEY_SIM_NAN);
    struct parley_view start = scene_view(sim, 1);
    for (int part = 0; part < 50; part++) {
        scene_run(sim, SECOND / 10);
        cr_assert(isfinite(honest_spread(sim, 64)), "at %d", part);
    }
    struct parley_view view = scene_view(sim, 1);
    cr_assert_leq(view.ledger.applied, start.ledger.applied + 2); /* what was under way */
    cr_assert_gt(view.ledger.aborted, start.ledger.aborted);
    cr_assert_lt(view.ledger.aborted, 100);
    cr_assert_lt(honest_spread(sim, 64), 1e-3 * before);
    scene_agree(sim, NODES, 0);
    for (int j = 0; j < 64; j++)
        cr_assert(isfinite(parley_sim_agreed_vector(sim, 0)[j]));
    parley_sim_free(sim);
}

Test(faults, a_lie_is_as_large_as_is_told)
{
    float x[] = {3, -2};
    struct parley_sim *sim = scene(&(struct parley_sim_options){.nodes = 2});
    parley_sim_byzantine(sim, 1, PARLEY_SIM_SCALE);
    sim_byzantine(&sim->hosts[1], x, 0, 2);
    cr_assert(x[0] == 300 && x[1] == -200);
    parley_sim_byzantine(sim, 1, PARLEY_SIM_SIGN);
    sim_byzantine(&sim->hosts[1], x, 0, 2);
    cr_assert(x[0] == -300 && x[1] == 200);
    parley_sim_free(sim);
}

Test(faults, a_lie_moves_the_mean_and_the_checker_sees_it)
{
    /* Sign, scale, noise: what n1 says is not what it has, so the two deltas do not cancel. */
    const enum parley_sim_lie lies[] = {PARLEY_SIM_SIGN, PARLEY_SIM_SCALE, PARLEY_SIM_RANDOM};
    for (int k = 0; k < 3; k++) {
        struct parley_sim *sim = trained(10, 64, 20000);
        parley_sim_byzantine(sim, 1, lies[k]);
        scene_run(sim, SECOND / 10);
        cr_assert_gt(parley_sim_mass_error(sim), 1e-3, "lie %d", k);
        parley_sim_free(sim);
    }
}

Test(faults, who_sends_over_a_narrow_line_is_heard_all_the_while)
{
    /* A chunk takes six seconds there, but TCP brings the bytes as they come. */
    struct scene_lines silent = {.text = "suspect"};
    struct parley_sim *sim = scene_together(&(struct parley_sim_options){.nodes = 2,
                                                                         .parameters = 100000,
                                                                         .seed = 1,
                                                                         .latency_us = 500,
                                                                         .bandwidth_bytes = 10000,
                                                                         .step_us = SECOND / 2,
                                                                         .rate = 0.01});
    parley_sim_on_line(sim, PARLEY_LOG_INFO, scene_count, &silent);
    scene_train(sim, 2);
    scene_run(sim, 120 * SECOND);
    cr_expect_eq(silent.count, 0, "%u", silent.count);
    cr_expect_gt(scene_view(sim, 0).ledger.applied, 0);
    parley_sim_free(sim);
}
