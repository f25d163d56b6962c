/* lines.c: the JSON lines, built, read by jansson, and parsed back. */
#include <criterion/criterion.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "report/lines.h"
#include "report/mass.h"

static void expect_line(const struct report_line *line, const char *expected)
{
    char *text = report_line_text(line);
    cr_assert_str_eq(text, expected);
    json_t *json = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
    cr_assert(json, "%s", text);
    json_decref(json);
    free(text);
}

Test(lines, each_event_has_its_fields_in_the_order_of_the_contract)
{
    /* The lines are a contract: scripts are written against them. */
    struct report_line line = {.event = REPORT_STARTED, .t = 0.25, .node = "n0"};
    line.as.started = (struct report_started){
        4711,          "127.0.0.1:7000", "0.1.0",    1,          "digits", 8000,
        "mlp:256,128", 235146,           UINT64_MAX, "SkylakeX", 7};
    expect_line(&line, "{\"event\":\"started\",\"t\":0.25,\"node\":\"n0\",\"pid\":4711,"
                       "\"listen\":\"127.0.0.1:7000\",\"version\":\"0.1.0\",\"protocol\":1,"
                       "\"data\":\"digits\",\"samples\":8000,\"model\":\"mlp:256,128\","
                       "\"parameters\":235146,\"seed\":18446744073709551615,"
                       "\"blas\":\"SkylakeX\",\"resumed\":7}\n");
    line = (struct report_line){.event = REPORT_PROGRESS, .t = 1, .node = "n0"};
    line.as.progress = (struct report_progress){10,      0.1, INFINITY, NAN, 0, 4, 1000.5, 7,
                                                1 << 20, 1.5, NAN,      3,   4, 5, 0.5};
    expect_line(&line, "{\"event\":\"progress\",\"t\":1,\"node\":\"n0\",\"step\":10,\"epoch\":0.1,"
                       "\"loss\":null,\"drift\":null,\"drift_age_s\":0,\"live\":4,"
                       "\"samples_per_s\":1000.5,\"exchanges\":7,\"bytes_sent\":1048576,"
                       "\"gap_max_ms\":1.5,\"turn_max_ms\":null,\"passes\":3,"
                       "\"bytes_membership\":4,\"bytes_sketches\":5,\"progress\":0.5}\n");
    line = (struct report_line){.event = REPORT_MEMBER, .t = 1, .node = "n0"};
    line.as.member = (struct report_member){"n1", "dead", "connection \"reset\"\n", "00f0"};
    expect_line(
        &line,
        "{\"event\":\"member\",\"t\":1,\"node\":\"n0\",\"peer\":\"n1\","
        "\"state\":\"dead\",\"reason\":\"connection \\\"reset\\\"\\u000a\",\"boot\":\"00f0\"}\n");
    line = (struct report_line){.event = REPORT_TAKEOVER, .t = 1, .node = "n0"};
    line.as.takeover = (struct report_takeover){20};
    expect_line(&line, "{\"event\":\"takeover\",\"t\":1,\"node\":\"n0\",\"samples\":20}\n");
    line = (struct report_line){.event = REPORT_LOST, .t = 1, .node = "n0"};
    line.as.lost = (struct report_lost){7};
    expect_line(&line, "{\"event\":\"lost\",\"t\":1,\"node\":\"n0\",\"lines\":7}\n");
    line = (struct report_line){.event = REPORT_FAULT, .t = 2};
    line.as.fault = (struct report_fault){"kill", "n2"};
    expect_line(&line, "{\"event\":\"fault\",\"t\":2,\"kind\":\"kill\",\"target\":\"n2\"}\n");
    line = (struct report_line){.event = REPORT_PHASE, .t = 2, .node = "n0"};
    line.as.phase.phase = "settle";
    expect_line(
        &line,
        "{\"event\":\"phase\",\"t\":2,\"node\":\"n0\",\"phase\":\"settle\",\"cause\":null}\n");
    line = (struct report_line){.event = REPORT_AGREED, .t = 3, .node = "n0"};
    line.as.agreed = (struct report_agreed){"sha256:00", 4, 4, 1, 1e-5, 0.9762, 0.0791, 2000};
    expect_line(&line, "{\"event\":\"agreed\",\"t\":3,\"node\":\"n0\",\"digest\":\"sha256:00\","
                       "\"held\":4,\"known\":4,\"generation\":1,\"drift_before\":1e-05,"
                       "\"test_accuracy\":0.9762,\"test_loss\":0.0791,\"test_samples\":2000}\n");
    line = (struct report_line){.event = REPORT_ERROR, .t = 3};
    line.as.error = (struct report_error){"PARLEY_ENETWORK", "caf\xc3\xa9 \xff", NULL};
    expect_line(&line, "{\"event\":\"error\",\"t\":3,\"code\":\"PARLEY_ENETWORK\","
                       "\"message\":\"caf\xc3\xa9 \xef\xbf\xbd\",\"hint\":null}\n");
}

Test(lines, the_summary_has_more_fields_in_sim)
{
    /* The last line of run and of sim. */
    struct report_line line = {.event = REPORT_SUMMARY, .t = 12.5};
    line.as.summary = (struct report_summary){
        true,  4,    4,    4, 4,  NULL, "gossip", 0.97, 0.96, 0.1, 1e-5,     4, 1000,
        32000, 1872, 1790, 1, 99, 66,   1e-17,    0,    12.5, NAN, {1, 0.5}, 2, 1,
        false, 0,    NULL, 0, 0,  0,    0,        0,    0,    0,   NULL,     0, NULL};
    static const char common[] =
        "{\"event\":\"summary\",\"t\":12.5,\"ok\":true,\"nodes\":4,\"live\":4,\"agreed\":4,"
        "\"known\":4,\"digest\":null,\"strategy\":\"gossip\",\"test_accuracy\":0.97,"
        "\"worst_accuracy\":0.96,\"test_loss\":0.1,\"drift_before\":1e-05,\"epochs\":4,"
        "\"steps\":1000,\"samples\":32000,\"exchanges\":1872,\"exchanges_trained\":1790,"
        "\"exchanges_dropped\":1,"
        "\"bytes_sent\":99,\"bytes_trained\":66,\"mass_error\":1e-17,\"mass_dropped\":0,\"wall_s\":"
        "12.5,"
        "\"time_to_target_s\":null,\"coverage\":[1,0.5],\"epochs_whole\":1";
    char expected[1024];
    snprintf(expected, sizeof expected, "%s}\n", common);
    expect_line(&line, expected);
    line.as.summary.sim = true;
    line.as.summary.virtual_s = 60;
    line.as.summary.run_hash = "00ff";
    line.as.summary.node_steps_per_s = 1e5;
    line.as.summary.trained_s = 50;
    line.as.summary.agreed_s = 59.5;
    line.as.summary.drift_trained = 0.25;
    line.as.summary.own_accuracy = 0.75;
    line.as.summary.own_accuracy_worst = 0.5;
    line.as.summary.own_accuracy_sd = NAN;
    line.as.summary.lr_scale = "none";
    line.as.summary.warmup = 0.5;
    snprintf(expected, sizeof expected,
             "%s,\"virtual_s\":60,\"run_hash\":\"00ff\",\"node_steps_per_s\":100000,"
             "\"trained_s\":50,\"agreed_s\":59.5,\"drift_trained\":0.25,\"own_accuracy\":0.75,"
             "\"own_accuracy_worst\":0.5,\"own_accuracy_sd\":null,\"lr_scale\":\"none\","
             "\"warmup\":0.5}\n",
             common);
    expect_line(&line, expected);
    size_t length = strlen(expected);
    line.as.summary.swept = "{\"nodes\":4}";
    snprintf(expected + length - 2, sizeof expected - length, ",\"swept\":{\"nodes\":4}}\n");
    expect_line(&line, expected);
}

Test(lines, every_line_parses_back_into_what_it_was_built_from)
{
    /* Building the parsed struct anew gives the same bytes; reals come back to the last bit. */
    struct report_ledger_peer peers[] = {{"0a", "n1", 3, 0.1 + 0.2, 1.0 / 3},
                                         {"0b", "n2", 1, -1e-300, 5e-324}};
    for (int event = 0; event < REPORT_EVENT_COUNT; event++) {
        struct report_line line = {.event = (enum report_event)event, .t = 1.0 / 7, .node = "n0"};
        if (event == REPORT_STARTED) line.as.started.model = "mlp:1";
        if (event == REPORT_PROGRESS) line.as.progress.loss = NAN;
        if (event == REPORT_SUMMARY) line.as.summary.sim = true;
        if (event == REPORT_LEDGER)
            line.as.ledger = (struct report_ledger){"0c", peers, 2, 9, 8, 7, 6, 5, 4};
        char *one = report_line_text(&line);
        struct report_line parsed;
        cr_assert_eq(report_line_parse(&parsed, one, strlen(one)), 0, "%s", one);
        cr_assert_eq(parsed.t, line.t, "%s", one);
        char *two = report_line_text(&parsed);
        cr_assert_str_eq(one, two);
        report_line_close(&parsed);
        free(one);
        free(two);
    }
}

Test(lines, counts_are_read_however_large_they_are)
{
    /* Proves that a run's sums do not lose what a node has sent in a day, or its seed. */
    const uint64_t counts[] = {0, 1, 999999999999, UINT64_C(1) << 53, UINT64_C(1) << 63};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct report_line parsed,
            line = {.event = REPORT_PROGRESS, .as.progress.bytes_sent = counts[i]};
        char *text = report_line_text(&line);
        cr_assert_eq(report_line_parse(&parsed, text, strlen(text)), 0, "%s", text);
        cr_assert_eq(parsed.as.progress.bytes_sent, counts[i], "%s", text);
        report_line_close(&parsed);
        free(text);
    }
}

Test(lines, what_is_no_line_of_ours_is_refused)
{
    /* Wrong JSON, unknown events, wrong types, too long: an error each, and nothing leaks. */
    const char *bad[] = {"",
                         "\n",
                         "x",
                         "[]",
                         "{}",
                         "{\"event\":3}",
                         "{\"event\":\"nothing\"}",
                         "{\"event\":\"progress\",\"step\":\"3\"}",
                         "{\"event\":\"progress\",\"step\":-1}",
                         "{\"event\":\"progress\",\"step\":1e300}",
                         "{\"event\":\"progress\",\"t\":\"now\"}",
                         "{\"event\":\"phase\",\"phase\":[]}",
                         "{\"event\":\"phase\",\"event\":\"phase\"}",
                         "{\"event\":\"ledger\",\"peers\":3}",
                         "{\"event\":\"ledger\",\"peers\":[3]}",
                         "{\"event\":\"ledger\",\"peers\":[{\"mass\":\"x\"}]}",
                         "{\"event\":\"phase\"} trailing",
                         "{\"event\":\"phase\",\"phase\":\"\xff\"}"};
    struct report_line line;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(report_line_parse(&line, bad[i], strlen(bad[i])), PARLEY_EMALFORMED, "%s",
                     bad[i]);
    size_t size = REPORT_LINE_BYTES_MAX + 1;
    char *large = malloc(size);
    memset(large, '[', size);
    cr_assert_eq(report_line_parse(&line, large, size), PARLEY_ELIMIT);
    cr_assert_eq(report_line_parse(&line, large, size - 1), PARLEY_EMALFORMED);
    free(large);
    static const char absent[] = "{\"event\":\"progress\",\"more\":[1]}";
    cr_assert_eq(report_line_parse(&line, absent, strlen(absent)), 0);
    cr_assert(line.as.progress.step == 0 && isnan(line.as.progress.loss) && !line.node);
    report_line_close(&line);
}

Test(lines, what_is_said_on_stderr_is_one_object)
{
    char *text = report_talk_text("2026-11-24T12:00:00.000Z", "error", "a \"b\"\n\\ \xff");
    cr_assert_str_eq(text, "{\"time\":\"2026-11-24T12:00:00.000Z\",\"level\":\"error\","
                           "\"text\":\"a \\\"b\\\"\\u000a\\\\ \xef\xbf\xbd\"}\n");
    free(text);
}

Test(lines, no_cut_or_flipped_byte_breaks_the_parser)
{
    /* A child may die in the middle of a line. */
    static const char text[] = "{\"event\":\"ledger\",\"t\":1.5,\"node\":\"n0\",\"boot\":\"0c\","
                               "\"started\":9,\"peers\":[{\"boot\":\"0a\",\"mass\":1e-3}]}";
    for (size_t i = 0; i < sizeof text; i++) {
        for (int bit = -1; bit < 8; bit++) {
            char copy[sizeof text];
            memcpy(copy, text, sizeof text);
            if (bit >= 0) copy[i] = (char)(copy[i] ^ (1 << bit));
            struct report_line line;
            size_t size = bit < 0 ? i : sizeof text - 1;
            if (report_line_parse(&line, copy, size) == 0) report_line_close(&line);
        }
    }
}

enum { NODES = 4 };

/* Ledgers of four nodes after `exchanges` random exchanges; every one_sided-th is not applied by
 * its responder (0: never). */
static struct mass_account simulate(uint64_t seed, int exchanges, int one_sided, size_t given)
{
    static const char *const boots[NODES] = {"a0", "a1", "a2", "a3"};
    struct report_ledger_peer peers[NODES][NODES] = {{{0}}};
    struct report_ledger ledgers[NODES];
    const struct report_ledger *list[NODES];
    struct rng rng = rng_init(seed, 1);
    for (int i = 0; i < NODES; i++) {
        ledgers[i] =
            (struct report_ledger){.boot = boots[i], .peers = peers[i], .peer_count = NODES};
        list[i] = &ledgers[i];
        for (int j = 0; j < NODES; j++)
            peers[i][j].boot = boots[j];
    }
    for (int k = 1; k <= exchanges; k++) {
        uint32_t a = rng_below(&rng, NODES), b = (a + 1 + rng_below(&rng, NODES - 1)) % NODES;
        double mass = rng_normal(&rng);
        peers[a][b].mass += mass;
        peers[a][b].mass_abs += fabs(mass);
        if (one_sided && k % one_sided == 0) continue;
        peers[b][a].mass -= mass;
        peers[b][a].mass_abs += fabs(mass);
    }
    return mass_account(list, given);
}

Test(mass, exchanges_that_both_ends_applied_cancel)
{
    /* The error is rounding only, for several seeds. */
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct mass_account account = simulate(seed, 2000, 0, NODES);
        cr_assert_lt(account.error, 1e-14);
        cr_assert_gt(account.judged, 0);
        cr_assert_eq(account.skipped, 0);
    }
}

Test(mass, exchanges_that_one_end_alone_applied_show)
{
    /* Above 1e-3 where one side never applies. */
    int above = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        above += simulate(seed, 2000, 1, NODES).error > 1e-3;
    cr_assert_geq(above, 18);
}

Test(mass, exchanges_with_a_node_that_is_gone_are_left_out)
{
    /* Its ledger is missing: what the others applied with it is skipped, not counted as error. */
    struct mass_account account = simulate(1, 2000, 0, NODES - 1);
    cr_assert_lt(account.error, 1e-14);
    cr_assert_gt(account.skipped, 0);
    account = mass_account(NULL, 0);
    cr_assert_eq(account.error, 0);
}
