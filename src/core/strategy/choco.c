/* choco.c: CHOCO-SGD: rounds with all neighbours, of copies that compressed differences keep up.
 *
 * Koloskova, Stich, Jaggi, "Decentralized Stochastic Optimization and Gossip Algorithms with
 * Compressed Communication", ICML 2019, algorithm 2. z_i is what others know of x_i; node i has its
 * own and a copy of each neighbour's. In the rounds of rounds.h, Q being --codec:
 *
 *   q_i = Q(x_i - z_i)               what is most in need of being told
 *   z_i <- z_i + q_i                 at node i and at its neighbours, who get q_i alone
 *   x_i <- x_i + step * sum_j w_ij (z_j - z_i)
 *
 * What Q leaves out stays in x_i - z_i and comes with a later q_i: error feedback. Copies are added
 * to by the same bytes at both ends, so both have the same z to the bit, the terms of a link cancel
 * exactly, and the mean of the models is kept whatever Q loses. The drift that is told while
 * training is that of the z. A local step is made beside each round, as in D-PSGD: its gradient is
 * at x before the terms come in, where algorithm 2 has it at x after them.
 *
 *   the start, a newcomer   who has no copy of z_j as it was before q_j takes z_j whole: each link
 *                           costs a model each way when it begins
 *   a lost connection       within a round q_j is asked for again: no harm
 *   a death                 as in rounds.h; the copy is dropped with the next round. Both ends of a
 *                           link do so that missed a round of each other, for whatever reason, and
 *                           begin anew
 *   another's model taken   (late, diverged) z_i is x_i then, and all take it whole
 *
 * Buffers: 3, lanes, and one for each neighbour, of which there may be PARLEY_CHOCO_NEIGHBOURS_MAX.
 */
#include "core/strategy/rounds.h"

#define STEP_PART 1.5

enum { TELL = ROUNDS_SHORT, REST, COPIES, BUFFERS = COPIES + PARLEY_CHOCO_NEIGHBOURS_MAX };

enum { OP_TAKEN = ROUNDS_NUMBERS, OP_APART, OP_TOLD };

struct copy {
    uint64_t boot;  /* whose */
    uint64_t round; /* of the newest q in it, plus 1; 0: it holds nothing */
    int neighbour;  /* in this round; NONE: free */
};

struct choco {
    struct rounds rounds;
    uint64_t told; /* round of the newest own q, plus 1; 0: z is to be made anew */
    bool finite;
    struct copy copies[PARLEY_CHOCO_NEIGHBOURS_MAX];
};

static struct choco *choco_of(const struct parley_node *node)
{
    return node->strategy_state;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static struct copy *copy_of(const struct parley_node *node, const struct neighbour *n)
{
    struct choco *s = choco_of(node);
    struct copy *copy = s->copies;
    while (copy->neighbour != (int)(n - s->rounds.neighbours))
        copy++;
    return copy;
}

/* The neighbour of this boot in this round; NONE: it is none. */
static int place_of(const struct parley_node *node, uint64_t boot)
{
    const struct rounds *s = rounds_of(node);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->neighbours[i].boot == boot) return (int)i;
    return NONE;
}

/* One for each neighbour of this round, the one it had if there is such, and for nobody else. */
static void assign(struct parley_node *node)
{
    struct choco *s = choco_of(node);
    bool has[PARLEY_CHOCO_NEIGHBOURS_MAX] = {false};
    for (struct copy *copy = s->copies; copy < s->copies + PARLEY_CHOCO_NEIGHBOURS_MAX; copy++) {
        copy->neighbour = copy->round > 0 ? place_of(node, copy->boot) : NONE;
        if (copy->neighbour != NONE) has[copy->neighbour] = true;
    }
    struct copy *copy = s->copies;
    for (uint32_t i = 0; i < s->rounds.count; i++) {
        if (has[i]) continue;
        while (copy->neighbour != NONE)
            copy++;
        *copy = (struct copy){.neighbour = (int)i};
    }
}

static bool fits(const struct parley_node *node, const struct neighbour *n)
{
    const struct copy *copy = copy_of(node, n);
    return copy->boot == n->boot && copy->round > 0 && copy->round == n->before;
}

/* ---- What is told ---------------------------------------------------------------------------- */

static void decode(struct parley_node *node, uint32_t buffer, uint32_t other, int number)
{
    struct parley_update *update = strategy_op(node, PARLEY_UPDATE_COMBINE, buffer, number);
    update->vector.coded = true;
    update->vector.other = other;
}

/* The first lane's buffer serves for x - z. */
static void make(struct parley_node *node)
{
    struct choco *s = choco_of(node);
    uint32_t z = strategy_buffer(node, ROUNDS_OWN), q = strategy_buffer(node, TELL);
    uint32_t apart = strategy_lane_buffer(node, 0);
    assign(node);
    s->finite = true;
    if (s->told == 0) {
        strategy_combine(node, strategy_buffer(node, REST), 0, z, 0, OP_APART);
        strategy_op(node, PARLEY_UPDATE_TAKE, z, OP_TOLD);
        return;
    }
    strategy_op(node, PARLEY_UPDATE_TAKE, apart, OP_TAKEN);
    strategy_combine(node, apart, 1, z, -1, OP_APART);
    struct parley_update *update = strategy_op(node, PARLEY_UPDATE_ENCODE, q, OP_APART);
    update->vector.at_other = true;
    update->vector.other = apart;
    decode(node, z, q, OP_TOLD);
}

static void told(struct parley_node *node, bool finite)
{
    struct choco *s = choco_of(node);
    uint64_t before = s->told;
    s->told = finite ? s->rounds.round + 1 : 0;
    rounds_made(node, finite, before);
}

/* ---- What is heard --------------------------------------------------------------------------- */

static void read(struct parley_node *node, const struct neighbour *n, bool is_short,
                 uint32_t buffer, int number)
{
    struct copy *copy = copy_of(node, n);
    uint32_t z = strategy_buffer(node, COPIES + (uint32_t)(copy - choco_of(node)->copies));
    copy->boot = n->boot;
    if (is_short) decode(node, z, buffer, number);
    strategy_combine(node, is_short ? buffer : z, 0, is_short ? z : buffer, 1, number);
}

static void mixed(struct parley_node *node, const struct neighbour *n, bool ok)
{
    copy_of(node, n)->round = ok ? rounds_of(node)->round + 1 : 0;
}

/* Many small terms: what x is too coarse for is kept for the next ones, or it would be lost at one
 * end of a link and not at the other, again and again. */
static void add(struct parley_node *node, uint32_t buffer, float factor, int number)
{
    uint32_t rest = strategy_buffer(node, REST);
    strategy_combine(node, rest, 1, buffer, factor, OP_APART);
    struct parley_update *update = strategy_op(node, PARLEY_UPDATE_ADD, rest, number);
    update->vector.rest = true;
    update->vector.factor = 1;
}

/* As far as consensus still comes about where no coordinate is before the others: the smaller k,
 * the longer a copy is behind. (Found by trying, on Gaussian vectors: on complete and exponential
 * graphs twice as much is too much; the paper's bound is far smaller.) What rounding makes of a
 * difference leaves a copy hardly behind at all. */
static float step(const struct parley_node *node)
{
    double part = node->config.codec_part;
    if (node->config.choco_step > 0) return (float)node->config.choco_step;
    if (node->config.codec != PARLEY_CODEC_TOPK) return 1;
    return part < 1 / STEP_PART ? (float)(STEP_PART * part) : 1;
}

/* ---- The table ------------------------------------------------------------------------------- */

static void begin(struct parley_node *node)
{
    static const struct rounds_use use = {
        .make = make, .step = step, .fits = fits, .read = read, .mixed = mixed, .add = add};
    rounds_begin(node, &use);
}

static void done(struct parley_node *node, int number, const struct parley_event *event)
{
    struct choco *s = choco_of(node);
    if (number < ROUNDS_NUMBERS) {
        rounds_done(node, number, event);
        return;
    }
    if (number == OP_TAKEN) s->finite = event->done.finite;
    if (number == OP_TOLD) told(node, event->done.finite && s->finite);
}

static void adopted(struct parley_node *node, const struct message_fetch *answer)
{
    uint32_t rest = strategy_buffer(node, REST); /* of the x that was lost, and lost like it */
    choco_of(node)->told = 0;
    strategy_combine(node, rest, 0, strategy_buffer(node, ROUNDS_OWN), 0, OP_APART);
    rounds_adopted(node, answer);
}

const struct strategy strategy_choco = {
    .name = "choco",
    .neighbours = PARLEY_CHOCO_NEIGHBOURS_MAX,
    .size = sizeof(struct choco),
    .buffers = BUFFERS,
    .begin = begin,
    .done = done,
    .adopted = adopted,
    ROUNDS_STRATEGY,
};
