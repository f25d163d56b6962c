/* library.c: the public API with the real core: nodes of one process, over loopback.
 *
 *   - two nodes, one dialled by a host's name, agree; each has the model's file and its record, one
 *     of them though it waits for its next step by and by
 *   - parley_stop() ends a run without a budget by agreement; parley_leave() ends one node alone
 *   - seeds given later are joined; who lives is known to the trainer at its first step, and to who
 *     is told of a change
 *   - a node can be closed in the middle of its run, and the others finish without it
 *   - an address in use or a bad one is refused with a line that names it (refused.c has the rest)
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "parley/parley.h"

enum { FLOATS = 20000, NODES = 3 };

struct node {
    struct parley_options options;
    struct parley *p;
    float x[FLOATS];
    char name[16], out[96];
    int stop_on;                 /* the state of a member that makes this node stop; -1: none */
    uint64_t leave_at, close_at; /* after so many steps, once all train; 0: never */
    uint64_t lost_at;            /* the loss of that step is not finite */
    bool has_more_to_do;         /* than to wait for its next step */
    uint64_t steps, laters;
    uint32_t live_at_start;
    int code;
    struct parley_result result;
    uv_thread_t thread;
};

static struct node nodes[NODES];
static int failures;
static atomic_int trains; /* nodes of this run that have begun to train */
static uv_mutex_t lock;

static void check(bool good, const char *what)
{
    if (good) return;
    uv_mutex_lock(&lock);
    fprintf(stderr, "broken: %s\n", what);
    failures++;
    uv_mutex_unlock(&lock);
}

static bool has(char live[NODES][PARLEY_NAME_SIZE], uint32_t count, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < count && i < NODES; i++)
        found |= strcmp(live[i], name) == 0;
    return found;
}

static bool knows_who_lives(struct parley *p)
{
    char live[NODES][PARLEY_NAME_SIZE];
    const char *names[NODES];
    struct parley_member self;
    parley_node_member(parley_node_of(p), 0, &self);
    uint32_t count = parley_node_live(parley_node_of(p), names);
    uint32_t told = parley_live(p, live, NODES);
    if (self.state == PARLEY_MEMBER_LEFT) return has(live, told, self.name); /* as of before */
    bool same = told == count;
    for (uint32_t i = 0; same && i < count && i < NODES; i++)
        same = strcmp(live[i], names[i]) == 0;
    return same;
}

static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    const struct node *node = context;
    if (update->type == PARLEY_UPDATE_MEMBER || update->type == PARLEY_UPDATE_PHASE)
        check(knows_who_lives(p), "who is told of a change is told who lives by now");
    if (update->type == PARLEY_UPDATE_LOG && update->log.level <= PARLEY_LOG_WARN)
        fprintf(stderr, "%s: %s\n", node->name, update->log.text);
    if (update->type == PARLEY_UPDATE_MEMBER && (int)update->member.state == node->stop_on)
        parley_stop(p, PARLEY_STOP_OPERATOR);
}

static struct node *prepare(int i, uint32_t min_peers, const char *const *seeds, uint32_t count)
{
    struct node *node = &nodes[i];
    memset(node, 0, sizeof *node);
    node->stop_on = -1;
    snprintf(node->name, sizeof node->name, "n%d", i);
    for (int j = 0; j < FLOATS; j++)
        node->x[j] = (float)(i + j % 3);
    parley_options_defaults(&node->options);
    node->options.config.name = node->name;
    node->options.config.parameters = FLOATS;
    node->options.config.min_peers = min_peers;
    node->options.config.seeds = seeds;
    node->options.config.seeds_count = count;
    node->options.vectors[0] = node->x;
    node->options.on_update = on_update;
    node->options.context = node;
    return node;
}

static bool start(struct node *node)
{
    char why[256];
    int code = parley_open(&node->p, &node->options, why, sizeof why);
    if (code) fprintf(stderr, "%s: %s\n", node->name, why);
    return code == 0;
}

static int boundary(struct node *node, const struct parley_step *step, struct parley_turn *turn)
{
    if (!node->has_more_to_do) return parley_boundary(node->p, step, turn);
    int code = parley_boundary_within(node->p, step, turn, 0);
    for (; code == PARLEY_LATER; node->laters++)
        code = parley_boundary_within(node->p, NULL, turn, 100);
    return code;
}

static void train(void *argument)
{
    struct node *node = argument;
    struct parley_turn turn;
    struct parley_step step = {0};
    char live[NODES][PARLEY_NAME_SIZE];
    while ((node->code = boundary(node, &step, &turn)) == PARLEY_GO) {
        if (turn.started) {
            node->live_at_start = parley_live(node->p, live, NODES);
            trains++;
        }
        node->steps++;
        step = (struct parley_step){.steps = 1, .samples = 1, .loss = 0};
        if (node->steps == node->lost_at) step.loss = NAN;
        /* Steps take no time here: who went at once would be gone before others had its welcome. */
        if (trains < NODES) continue;
        if (node->leave_at && node->steps >= node->leave_at) parley_leave(node->p);
        if (node->close_at && node->steps >= node->close_at) break;
    }
    parley_result(node->p, &node->result);
}

static void run(int count)
{
    trains = 0;
    for (int i = 0; i < count; i++)
        uv_thread_create(&nodes[i].thread, train, &nodes[i]);
    for (int i = 0; i < count; i++) {
        uv_thread_join(&nodes[i].thread);
        if (nodes[i].close_at > 0) {
            parley_close(nodes[i].p);
            nodes[i].p = NULL;
        }
    }
    for (int i = 0; i < count; i++)
        parley_close(nodes[i].p);
}

static bool alike(const struct node *a, const struct node *b)
{
    return a->result.agreed && b->result.agreed && a->code == PARLEY_END &&
           memcmp(a->result.view.digest, b->result.view.digest, PARLEY_DIGEST_BYTES) == 0 &&
           memcmp(a->x, b->x, sizeof a->x) == 0;
}

static void agree_on_files(void)
{
    char folder[] = "/tmp/parley-library-XXXXXX", address[PARLEY_ADDRESS_SIZE], path[128];
    const char *seed = address;
    if (!mkdtemp(folder)) exit(1);
    for (int i = 0; i < 2; i++) {
        struct node *node = prepare(i, 1, &seed, (uint32_t)i);
        snprintf(node->out, sizeof node->out, "%s/model-%d", folder, i);
        node->options.out = node->out;
        node->options.config.steps_budget = 30;
        node->has_more_to_do = i == 1;
        if (!start(node)) exit(1);
        snprintf(address, sizeof address, "localhost%s", strrchr(parley_listens(node->p), ':'));
    }
    run(2);
    check(alike(&nodes[0], &nodes[1]), "two nodes agree");
    check(nodes[1].laters > 0, "who has more to do is told to come later");
    check(nodes[0].steps == 30 && nodes[1].steps == 30, "each makes the steps of its budget");
    check(nodes[0].live_at_start == 2, "the trainer knows who lives when it starts");
    for (int i = 0; i < 2; i++) {
        check(unlink(nodes[i].out) == 0, "the model's file is there");
        snprintf(path, sizeof path, "%s.agreement.json", nodes[i].out);
        check(unlink(path) == 0, "the record is there");
    }
    check(rmdir(folder) == 0, "and nothing else");
}

static void stop_and_leave(void)
{
    char address[PARLEY_ADDRESS_SIZE];
    const char *seed = address;
    for (int i = 0; i < NODES; i++) {
        struct node *node = prepare(i, NODES - 1, NULL, 0);
        if (i == 0) node->stop_on = PARLEY_MEMBER_LEFT;
        if (i == 2) node->options.config.seeds = &seed, node->options.config.seeds_count = 1;
        if (!start(node)) exit(1);
        if (i == 0) strcpy(address, parley_listens(node->p));
        if (i == 1) check(parley_seeds(node->p, &seed, 1) == 0, "seeds are taken");
    }
    nodes[1].leave_at = 20;
    run(NODES);
    check(alike(&nodes[0], &nodes[2]), "a stop ends in an agreement");
    check(nodes[0].result.view.stop == PARLEY_STOP_OPERATOR, "its cause is kept");
    check(nodes[2].result.view.stop == PARLEY_STOP_OPERATOR, "its cause travels");
    check(nodes[1].code == PARLEY_END && !nodes[1].result.agreed, "who leaves agrees on nothing");
    check(nodes[0].result.view.known == 2, "who left is not counted");
}

static void close_midway(void)
{
    char address[PARLEY_ADDRESS_SIZE];
    const char *seed = address;
    for (int i = 0; i < NODES; i++) {
        struct node *node = prepare(i, NODES - 1, &seed, i > 0);
        if (i == 1) node->stop_on = PARLEY_MEMBER_DEAD;
        if (!start(node)) exit(1);
        if (i == 0) strcpy(address, parley_listens(node->p));
    }
    nodes[0].close_at = 20;
    run(NODES);
    check(alike(&nodes[1], &nodes[2]), "the others agree without the one that was closed");
    check(nodes[1].result.view.known == 3 && nodes[1].result.view.held == 2, "held 2 of 3 known");
}

/* Steps are short, and more than one is made before the loop looks. */
static void lose_the_model(void)
{
    for (int i = 0; i < 20; i++) {
        struct node *node = prepare(0, 0, NULL, 0);
        node->options.config.steps_budget = 2000;
        node->lost_at = 50;
        if (!start(node)) exit(1);
        run(1);
        check(node->code == PARLEY_EDIVERGED, "a loss that is not finite is heard of");
    }
}

static void refuse_seeds_later(struct parley *p)
{
    const char *bad[] = {"127.0.0.1:7400", "127.0.0.1:0"};
    check(parley_seeds(p, bad, 1) == PARLEY_OK, "a seed that can be dialled");
    check(parley_seeds(p, bad, 2) == PARLEY_EUSAGE, "one that can't");
    bad[1] = "a-host-name-of-sixty-eight-bytes-which-leaves-no-room-for-a-port.org:12345";
    check(parley_seeds(p, bad, 2) == PARLEY_EUSAGE, "one that is too long");
    bad[1] = "a\nb:1";
    check(parley_seeds(p, bad, 2) == PARLEY_EUSAGE, "one with a line's end in it");
    check(parley_seeds(p, NULL, 1) == PARLEY_EUSAGE, "none, where there should be one");
    const char *all[PARLEY_SEEDS_MAX + 1];
    for (uint32_t i = 0; i <= PARLEY_SEEDS_MAX; i++)
        all[i] = "127.0.0.1:7400";
    check(parley_seeds(p, all, PARLEY_SEEDS_MAX) == PARLEY_OK, "as many as there may be");
    check(parley_seeds(p, all, PARLEY_SEEDS_MAX + 1) == PARLEY_EUSAGE, "one too many");
}

/* Each meets a first one of its own: ThreadSanitizer does not see how a running one's descriptors
 * close, and takes the next node's check of those that are free for a race. */
static void refuse_tensors(const struct parley_tensor *tensors, uint32_t count, const char *what)
{
    static const struct parley_tensor halves[] = {{"a", 1, {FLOATS / 2}}, {"b", 1, {FLOATS / 2}}};
    char address[PARLEY_ADDRESS_SIZE];
    const char *seed = address;
    struct parley_turn turn;
    struct node *first = prepare(0, 0, NULL, 0);
    first->options.tensors = halves;
    first->options.tensors_count = 2;
    if (!start(first)) {
        check(false, "a lone node");
        return;
    }
    snprintf(address, sizeof address, "%s", parley_listens(first->p));
    struct node *other = prepare(1, 1, &seed, 1);
    other->options.tensors = tensors;
    other->options.tensors_count = count;
    if (start(other)) {
        check(parley_boundary(other->p, NULL, &turn) == PARLEY_EMISMATCH, what);
        parley_close(other->p);
    }
    parley_close(first->p);
}

/* They would write files that differ. */
static void refuse_other_tensors(void)
{
    static const struct parley_tensor turned[] = {{"b", 1, {FLOATS / 2}}, {"a", 1, {FLOATS / 2}}},
                                      parts[] = {{"a", 1, {FLOATS / 4}},
                                                 {"b", 1, {FLOATS - FLOATS / 4}}};
    refuse_tensors(NULL, 0, "another number of tensors");
    refuse_tensors(turned, 2, "tensors of other names");
    refuse_tensors(parts, 2, "tensors of other shapes");
}

static void refuse(void)
{
    struct parley *p;
    char why[256];
    struct node *node = prepare(0, 0, NULL, 0);
    if (!start(node)) exit(1);
    struct parley_options options = node->options;
    options.listen = parley_listens(node->p);
    check(parley_open(&p, &options, why, sizeof why) == PARLEY_ENETWORK, "a port in use");
    check(!p && strstr(why, options.listen) && strstr(why, "in use"), why);
    const char *bad[] = {"nowhere", "1.2.3.4", "[::1", ":80", "127.0.0.1:70000", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.listen = bad[i];
        check(parley_open(&p, &options, why, sizeof why) == PARLEY_EUSAGE, "a bad address");
        check(strstr(why, bad[i] ? bad[i] : "listen: \"\"") != NULL, why);
    }
    options.listen = "0.0.0.0:0";
    check(parley_open(&p, &options, why, sizeof why) == PARLEY_EUSAGE,
          "no address to be reached at");
    options = node->options;
    options.config.mix_every = 0;
    check(parley_open(&p, &options, why, sizeof why) == PARLEY_EUSAGE && strstr(why, "mix_every"),
          why);
    options = node->options;
    options.config.seeds_count = 1;
    check(parley_open(&p, &options, why, sizeof why) == PARLEY_EUSAGE && strstr(why, "seeds: NULL"),
          why);
    options = node->options;
    options.vectors[0] = NULL;
    check(parley_open(&p, &options, why, sizeof why) == PARLEY_EUSAGE, "no vector");
    refuse_seeds_later(node->p);
    parley_close(node->p);
    parley_close(NULL);
}

int main(void)
{
    uv_mutex_init(&lock);
    agree_on_files();
    stop_and_leave();
    close_midway();
    lose_the_model();
    refuse();
    refuse_other_tensors();
    uv_mutex_destroy(&lock);
    return failures ? 1 : 0;
}
