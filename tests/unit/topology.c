/* Who may average with whom, and with what weight. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "core/topology/topology.h"
#include "job/graph.h"

enum { N = 70 };

static const struct {
    enum parley_topology kind;
    uint32_t degree;
} all[] = {
    {PARLEY_TOPOLOGY_COMPLETE, 0},    {PARLEY_TOPOLOGY_RING, 0}, {PARLEY_TOPOLOGY_TORUS, 0},
    {PARLEY_TOPOLOGY_EXPONENTIAL, 0}, {PARLEY_TOPOLOGY_STAR, 0}, {PARLEY_TOPOLOGY_REGULAR, 3},
    {PARLEY_TOPOLOGY_REGULAR, 6},     {PARLEY_TOPOLOGY_BASE, 1}, {PARLEY_TOPOLOGY_BASE, 4},
};

/* Calls look() with each of the graphs at sizes to 70. */
static void with_each(void (*look)(const struct topology *))
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (uint32_t n = 2; n <= N; n += n < 20 ? 1 : 5) {
            struct topology topology;
            cr_assert_eq(topology_init(&topology, all[i].kind, all[i].degree, n, NULL), 0);
            topology_draw(&topology, n);
            look(&topology);
            topology_close(&topology);
        }
}

static void is_symmetric(const struct topology *t)
{
    for (uint32_t a = 0; a < t->n; a++)
        for (uint32_t b = 0; b < a; b++)
            cr_assert_eq(topology_linked(t, a, b), topology_linked(t, b, a), "%d: %u, %u of %u",
                         (int)t->kind, a, b, t->n);
}

Test(topology, links_go_both_ways)
{
    /* Proves symmetry: an exchange needs the consent of both. */
    with_each(is_symmetric);
}

static void finds_all(const struct topology *t)
{
    for (uint32_t a = 0; a < t->n; a++) {
        uint32_t next = topology_next(t, a, 0);
        for (uint32_t b = 0; b < t->n; b++) {
            if (b == a || !topology_linked(t, a, b)) continue;
            cr_assert_eq(next, b, "%d: after %u of %u", (int)t->kind, a, t->n);
            next = topology_next(t, a, b + 1);
        }
        cr_assert_eq(next, t->n);
    }
}

Test(topology, neighbours_are_found_one_after_the_other)
{
    /* Where there are many nodes, nobody looks at all of them: as a look at each would find them.
     */
    with_each(finds_all);
}

static void is_connected(const struct topology *t)
{
    bool reached[N] = {true};
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t a = 0; a < t->n; a++)
            for (uint32_t b = 0; b < t->n && reached[a]; b++)
                if (b != a && !reached[b] && topology_linked(t, a, b)) {
                    reached[b] = true;
                    grew = true;
                }
    }
    for (uint32_t a = 0; a < t->n; a++)
        cr_assert(reached[a], "%d: %u of %u", (int)t->kind, a, t->n);
}

Test(topology, every_graph_is_connected)
{
    /* Proves that from node 0 all others are reached, whatever the size. */
    with_each(is_connected);
}

Test(topology, degrees_are_those_of_the_graph)
{
    /* Proves the degree of each graph at sizes where it is known: n - 1, 2, 4, 2 log2(n) - 1. */
    const struct {
        enum parley_topology kind;
        uint32_t n, degree;
    } known[] = {
        {PARLEY_TOPOLOGY_COMPLETE, 16, 15}, {PARLEY_TOPOLOGY_RING, 16, 2},
        {PARLEY_TOPOLOGY_TORUS, 16, 4},     {PARLEY_TOPOLOGY_EXPONENTIAL, 16, 7},
        {PARLEY_TOPOLOGY_TORUS, 13, 2},                                    /* no grid: a ring */
        {PARLEY_TOPOLOGY_TORUS, 12, 4},     {PARLEY_TOPOLOGY_TORUS, 6, 3}, /* two rows */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct topology t = {.kind = known[i].kind, .n = known[i].n};
        for (uint32_t a = 0; a < t.n; a++)
            cr_assert_eq(topology_degree(&t, a), known[i].degree);
    }
    struct topology star = {.kind = PARLEY_TOPOLOGY_STAR, .n = 9};
    cr_assert_eq(topology_degree(&star, 0), 8);
    cr_assert_eq(topology_degree(&star, 5), 1);
}

Test(topology, a_random_regular_graph_has_its_degree_and_follows_its_seed)
{
    /* Proves K links at every node where the ends pair up, one less at one node where they can't,
     * everybody where there are too few, the same graph for the same seed, and others for others.
     */
    for (uint32_t n = 4; n <= N; n++)
        for (uint32_t k = 3; k <= 8; k++) {
            struct topology one, two;
            uint32_t missing = 0;
            bool same = true;
            cr_assert_eq(topology_init(&one, PARLEY_TOPOLOGY_REGULAR, k, n, NULL), 0);
            cr_assert_eq(topology_init(&two, PARLEY_TOPOLOGY_REGULAR, k, n, NULL), 0);
            topology_draw(&one, 7);
            topology_draw(&two, 7);
            for (uint32_t a = 0; a < n; a++) {
                missing += (k < n ? k : n - 1) - topology_degree(&one, a);
                for (uint32_t b = 0; b < a; b++)
                    cr_assert_eq(topology_linked(&one, a, b), topology_linked(&two, a, b));
            }
            cr_assert_eq(missing, k < n - 1 && k % 2 && n % 2, "%u of %u", k, n);
            topology_draw(&two, 8);
            for (uint32_t a = 0; a < n; a++)
                for (uint32_t b = 0; b < a; b++)
                    same = same && topology_linked(&one, a, b) == topology_linked(&two, a, b);
            if (n > 16) cr_assert(!same);
            topology_close(&one);
            topology_close(&two);
        }
}

static double second_eigenvalue(const struct topology *t)
{
    /* By power iteration on (I + A/d)/2, away from the mean. */
    double v[N], w[N], size = 0;
    for (uint32_t a = 0; a < t->n; a++)
        v[a] = sin(1.7 * a);
    for (int i = 0; i < 2000; i++) {
        double mean = 0;
        size = 0;
        for (uint32_t a = 0; a < t->n; a++)
            mean += v[a] / t->n;
        for (uint32_t a = 0; a < t->n; a++) {
            w[a] = (v[a] - mean) / 2;
            for (uint32_t b = 0; b < t->n; b++)
                if (b != a && topology_linked(t, a, b)) w[a] += (v[b] - mean) / 2 / t->degree;
            size += w[a] * w[a];
        }
        for (uint32_t a = 0; a < t->n; a++)
            v[a] = w[a] / sqrt(size);
    }
    return 2 * sqrt(size) - 1;
}

Test(topology, a_random_regular_graph_mixes_as_such_graphs_do)
{
    /* Proves that the links are random, not in order: the second eigenvalue of A/4 is near
     * 2 sqrt(3)/4 = 0.87 (Friedman 2008); of the ring of next neighbours it would be 0.99. */
    struct topology t;
    cr_assert_eq(topology_init(&t, PARLEY_TOPOLOGY_REGULAR, 4, 64, NULL), 0);
    topology_draw(&t, 1);
    cr_assert_lt(second_eigenvalue(&t), 0.92, "%g", second_eigenvalue(&t));
    topology_close(&t);
}

static void sums_to_one(const struct topology *t)
{
    for (uint32_t round = 0; round < topology_rounds(t); round++)
        for (uint32_t a = 0; a < t->n; a++) {
            double sum = 0;
            for (uint32_t b = 0; b < t->n; b++) {
                if (b == a) continue;
                double w = topology_weight(t, round, a, b);
                sum += w;
                cr_assert(w >= 0 && w == topology_weight(t, round, b, a));
                cr_assert(w == 0 || topology_linked(t, a, b));
            }
            cr_assert_leq(sum, 1 + 1e-12, "%d: %u of %u", (int)t->kind, a, t->n);
        }
}

Test(topology, weights_keep_the_mean)
{
    /* Proves that weights are symmetric and leave a part of at least 0 for oneself, and so are
     * doubly stochastic, at each size and in each round. */
    with_each(sums_to_one);
}

Test(topology, base_graphs_average_exactly_with_few_partners)
{
    /* Proves that after its rounds every node has exactly 1/n of each, that nobody has more than k
     * partners a round, and that there are at most 2 log(n)/log(k + 1) + 2 rounds (Takezawa et
     * al. 2023, theorem 1). */
    for (uint32_t k = 1; k <= 5; k++)
        for (uint32_t n = 2; n <= N; n += n < 40 ? 1 : 5) {
            struct topology t = {.kind = PARLEY_TOPOLOGY_BASE, .degree = k, .n = n};
            static double x[N][N], y[N][N];
            for (uint32_t a = 0; a < n; a++)
                for (uint32_t j = 0; j < n; j++)
                    x[a][j] = a == j;
            for (uint32_t round = 0; round < topology_rounds(&t); round++) {
                memcpy(y, x, sizeof y);
                for (uint32_t a = 0; a < n; a++) {
                    uint32_t partners = 0;
                    for (uint32_t b = 0; b < n; b++) {
                        double w = a == b ? 0 : topology_weight(&t, round, a, b);
                        partners += w > 0;
                        for (uint32_t j = 0; w > 0 && j < n; j++)
                            x[a][j] += w * (y[b][j] - y[a][j]);
                    }
                    cr_assert_leq(partners, k);
                }
            }
            for (uint32_t a = 0; a < n; a++)
                for (uint32_t j = 0; j < n; j++)
                    cr_assert_lt(fabs(x[a][j] - 1.0 / n), 1e-12, "%u of %u with %u", a, n, k);
            cr_assert_leq(topology_rounds(&t), 2 * log(n) / log(k + 1) + 2);
        }
}

/* ---- From files ------------------------------------------------------------------------------ */

Test(topology, a_graph_is_read_whatever_the_order_of_its_lines)
{
    /* Proves links by names, comments, doubles, and that equal graphs have equal digests. */
    const char *one = "# four\nn0 n1\nn1\tn10 # a comment\n\nn10 n2\r\n";
    const char *two = "n2 n10\nn1 n0\nn10 n1\nn0 n1";
    struct graph a, b;
    char why[256] = "";
    cr_assert_eq(graph_parse(&a, "one", (const uint8_t *)one, strlen(one), why, sizeof why), 0,
                 "%s", why);
    cr_assert_eq(graph_parse(&b, "two", (const uint8_t *)two, strlen(two), why, sizeof why), 0);
    cr_assert_eq(graph_digest(&a), graph_digest(&b));
    cr_assert_eq(a.graph.nodes, 4);
    struct topology t;
    cr_assert_eq(topology_init(&t, PARLEY_TOPOLOGY_GRAPH, 0, 4, &a.graph), 0);
    const char *names[] = {"n0", "n1", "n10", "n2"};
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(topology_place(&a.graph, names[i]), i);
    cr_assert_eq(topology_place(&a.graph, "n3"), TOPOLOGY_NOWHERE);
    cr_assert(topology_linked(&t, 0, 1) && topology_linked(&t, 2, 1) && topology_linked(&t, 2, 3));
    cr_assert(!topology_linked(&t, 0, 2) && !topology_linked(&t, 1, 3));
    t.table[3] = TOPOLOGY_NOWHERE;
    cr_assert(!topology_linked(&t, 2, 3), "not in the graph");
    topology_close(&t);
    graph_close(&a);
    graph_close(&b);
}

static uint64_t digest_of(const char *text)
{
    struct graph graph;
    char why[256] = "";
    cr_assert_eq(graph_parse(&graph, "g", (const uint8_t *)text, strlen(text), why, sizeof why), 0,
                 "%s", why);
    uint64_t digest = graph_digest(&graph);
    graph_close(&graph);
    return digest;
}

Test(topology, graphs_that_differ_in_one_link_or_one_name_have_other_digests)
{
    /* By it nodes of other graphs are turned away. */
    uint64_t path = digest_of("a b\nb c\nc d");
    cr_expect_neq(digest_of("a b\nb c\nb d"), path, "another link");
    cr_expect_neq(digest_of("a b\nb c\nc d\nd a"), path, "one link more");
    cr_expect_neq(digest_of("a b\nb c\nc e"), path, "another name");
}

static void expect_refused(const char *text, size_t size, const char *expected)
{
    struct graph graph;
    char why[256] = "";
    cr_expect_eq(graph_parse(&graph, "g", (const uint8_t *)text, size, why, sizeof why),
                 PARLEY_EDATA, "%s", expected);
    cr_expect_str_eq(why, expected);
    graph_close(&graph);
}

Test(topology, a_bad_graph_is_refused_with_its_line)
{
    /* Proves each message; and that none of them leaks. */
    const struct {
        const char *text, *why;
    } bad[] = {
        {"", "g: holds no link"},
        {"n0\n", "g:1: found one name, expected two that are linked"},
        {"n0 n1\nn1 n2 n3\n", "g:2: found \"n3\" behind two names; a line has one link"},
        {"n0 n0", "g:1: links \"n0\" with itself"},
        {"n0 n1\nn2 n3", "g: is in pieces: no links lead from \"n0\" to \"n2\""},
        {"n0 a-name-that-is-longer-than-31-bytes\n",
         "g:1: \"a-name-that-is-longer-than-31-bytes\" is no name of a node (at most 31 "
         "printable bytes)"},
        {"n0 n1\nn1 \33[2J\n",
         "g:2: \"\\x1b[2J\" is no name of a node (at most 31 printable bytes)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(bad[i].text, strlen(bad[i].text), bad[i].why);
    expect_refused("n0 n1\0\n", sizeof "n0 n1\0\n" - 1, "g: is no text: it holds a zero byte");
}

Test(topology, a_graph_has_no_more_nodes_than_a_cluster)
{
    static char star[(PARLEY_MEMBERS_MAX + 1) * sizeof "n0 n16384"];
    size_t size = 0;
    struct graph graph;
    char why[256] = "";
    for (int leaf = 1; leaf < PARLEY_MEMBERS_MAX; leaf++)
        size += (size_t)sprintf(star + size, "n0 n%d\n", leaf);
    cr_expect_eq(graph_parse(&graph, "g", (const uint8_t *)star, size, why, sizeof why), 0, "%s",
                 why);
    graph_close(&graph);
    size += (size_t)sprintf(star + size, "n0 more\n");
    expect_refused(star, size, "g: has 16385 nodes, more than 16384");
}

Test(topology, links_of_who_is_not_there_join_nobody)
{
    /* Proves that the nodes there must be one piece among themselves, and what is said of others.
     */
    const struct {
        const char *text;
        uint64_t nodes;
        int error;
        const char *why, *strangers;
    } graphs[] = {
        {"n0 n1\nn1 n2\n", 3, 0, "", NULL},
        {"n0 n1\nn1 n2\n", 4, PARLEY_EDATA, "g: has no link of \"n3\"; the nodes are n0 to n3",
         NULL},
        {"n0 n9\nn9 n1\nn1 n2\n", 3, PARLEY_EDATA,
         "g: is in pieces without \"n9\", which is none of n0 to n2: no links among these lead "
         "from "
         "\"n0\" to \"n1\"",
         NULL},
        {"n0 n9\nn0 n1\nn1 n2\nn2 m\n", 3, 0, "",
         "g: has links of \"m\" and 1 more that are none of n0 to n2: these links are left out"},
        {"n0 n1\nn1 n01\n", 2, 0, "",
         "g: has links of \"n01\", which is none of n0 to n1: these links are left out"},
        {"n0 n1\n", 1, 0, "",
         "g: has links of \"n1\", which is none of n0 to n0: these links are left out"},
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        const char *text = graphs[i].text;
        struct graph graph;
        char why[256] = "", remark[256] = "";
        cr_assert_eq(graph_parse(&graph, "g", (const uint8_t *)text, strlen(text), why, sizeof why),
                     0);
        cr_expect_eq(graph_covers(&graph, "file:g", graphs[i].nodes, why, sizeof why),
                     graphs[i].error, "%zu: %s", i, why);
        cr_expect_str_eq(why, graphs[i].why);
        if (!graphs[i].error)
            cr_expect_eq(graph_strangers(&graph, "file:g", graphs[i].nodes, remark, sizeof remark),
                         graphs[i].strangers != NULL);
        cr_expect_str_eq(remark, graphs[i].strangers ? graphs[i].strangers : "");
        graph_close(&graph);
    }
}

Test(topology, what_cannot_be_linked_so_is_refused_with_what_can)
{
    /* Proves the clauses for bad names and for numbers of nodes that don't suit. */
    char why[256];
    enum parley_topology kind;
    uint32_t degree;
    cr_assert_eq(topology_parse("regular:4", &kind, &degree, why, sizeof why), 0);
    cr_assert(kind == PARLEY_TOPOLOGY_REGULAR && degree == 4);
    cr_assert_eq(topology_parse("regular:2", &kind, &degree, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "needs a number of neighbours from 3 to 64, like regular:4");
    cr_assert_eq(topology_parse("base:1x", &kind, &degree, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_eq(topology_parse("rings", &kind, &degree, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_eq(topology_suits(PARLEY_TOPOLOGY_TORUS, 0, 7, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why, "needs a grid, and 7 nodes make none: take 6 or 8 nodes, or ring, "
                          "exponential or regular:4");
    cr_assert_eq(topology_suits(PARLEY_TOPOLOGY_REGULAR, 3, 7, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_str_eq(why,
                     "has an odd number of ends with 7 nodes: take 6 or 8 nodes, or regular:4");
    cr_assert_eq(topology_suits(PARLEY_TOPOLOGY_REGULAR, 8, 8, why, sizeof why), PARLEY_EUSAGE);
    cr_assert_eq(topology_suits(PARLEY_TOPOLOGY_TORUS, 0, 12, why, sizeof why), 0);
}
