/* vectors.c: what a trainer and a worker do to several vectors, and what a trainer says of its
 * steps (peers/compute/vectors.h, handoff.h).
 *
 *   - a snapshot of two vectors holds both, and what is not finite in either is seen
 *   - a difference of two vectors is added to both; SET sets as many as it names
 *   - a model of which a float is not finite is told to be so with its digest
 *   - a gradient of a loss that is not finite is not, though all of its floats are
 *   - a gradient in the place of a snapshot is not sent with the snapshot's sums
 *   - a boundary may tell of several steps, or of none: as many are made as were granted
 *   - how far it has come with its data is told
 *   - a worker carries out what it is given as a list one by one, and tells each once
 *
 * Plain main(); but for the last there is one thread.
 */
#include <math.h>
#include <string.h>

enum { FLOATS = 3000, STRIDE = 2 * FLOATS, BUFFERS = 3, CHUNKS = 1, AVERAGED = 2 };

#include "compute/worker.h"
#include "hand.h"

static void fill(float *to, float value)
{
    for (int i = 0; i < FLOATS; i++)
        to[i] = value + (float)(i % 5);
}

static bool holds(const float *floats, float value)
{
    for (int i = 0; i < FLOATS; i++)
        if (floats[i] != value + (float)(i % 5)) return false;
    return true;
}

static struct op op_of(enum parley_update_type type, uint32_t buffer, uint32_t wide)
{
    struct op op = {.update.type = type};
    op.update.vector.buffer = op.update.vector.buffers[0] = buffer;
    op.update.vector.vectors = 1;
    op.update.vector.wide = wide;
    op.update.vector.factor = 0.5f;
    return op;
}

static void take_two(void)
{
    float *const each[] = {x, m};
    struct op op = op_of(PARLEY_UPDATE_TAKE, 1, 2);
    fill(x, 1);
    fill(m, 7);
    vectors_carry(&vectors, &op);
    check(holds(block + STRIDE, 1) && holds(block + STRIDE + FLOATS, 7), "a snapshot holds both");
    check(op.done.done.ok && op.done.done.finite, "and is finite");
    for (int v = 0; v < 2; v++) {
        each[v][FLOATS - 1] = NAN;
        vectors_carry(&vectors, &op);
        check(!op.done.done.finite, "what is not finite in either is seen");
        each[v][FLOATS - 1] = 0;
    }
}

static void add_and_set_two(void)
{
    struct op add = op_of(PARLEY_UPDATE_ADD, 1, 2), set = op_of(PARLEY_UPDATE_SET, 1, 0);
    fill(x, 1);
    fill(m, 7);
    for (int i = 0; i < FLOATS; i++) {
        block[STRIDE + i] = 2;
        block[STRIDE + FLOATS + i] = 6;
    }
    vectors_carry(&vectors, &add);
    check(holds(x, 2) && holds(m, 10), "to each its own difference is added");
    fill(block + STRIDE, 20);
    fill(block + 2 * STRIDE, 30);
    set.update.vector.vectors = 2;
    set.update.vector.buffers[1] = 2;
    vectors_carry(&vectors, &set);
    check(holds(x, 20) && holds(m, 30), "each is set");
    fill(block + STRIDE, 21);
    set.update.vector.if_finite = true;
    vectors_carry(&vectors, &set);
    check(holds(x, 21) && set.done.done.finite, "so it is where all have to be finite");
    fill(block + STRIDE, 22);
    block[2 * STRIDE] = NAN;
    vectors_carry(&vectors, &set);
    check(holds(x, 21) && holds(m, 30) && !set.done.done.finite, "or none, where one is not");
}

static void hash(void)
{
    struct op op = op_of(PARLEY_UPDATE_HASH, 1, 0);
    fill(block + STRIDE, 1);
    vectors_carry(&vectors, &op);
    check(op.done.done.ok && op.done.done.finite, "a finite model is");
    block[STRIDE + FLOATS - 1] = -INFINITY;
    vectors_carry(&vectors, &op);
    check(op.done.done.ok && !op.done.done.finite, "one of which a float is not, is not");
}

static void grant(uint64_t steps)
{
    struct parley_update update = {.type = PARLEY_UPDATE_TRAIN, .train = {.steps = steps}};
    handoff_grant(&handoff, &update);
}

static int boundary(uint64_t steps)
{
    struct parley_turn turn;
    struct parley_step step = {.steps = steps, .samples = 2 * steps, .loss = 1, .place = 5 * steps};
    return handoff_boundary(&handoff, &step, &turn, 0);
}

static void tell_of_steps(void)
{
    grant(3);
    check(boundary(0) == PARLEY_GO && boundary(0) == PARLEY_GO, "what was not made comes again");
    check(boundary(2) == PARLEY_GO && atomic_load(&handoff.place) == 10, "two at once leave one");
    check(boundary(1) == PARLEY_LATER, "and that is all");
    check(atomic_load(&handoff.version) == 3 && atomic_load(&handoff.samples) == 6, "three count");
}

/* All that a gradient needs is there but its loss. */
static void lose_a_gradient(double loss)
{
    struct op take = op_of(PARLEY_UPDATE_TAKE, 1, 0),
              gradient = op_of(PARLEY_UPDATE_GRADIENT, 1, 0);
    struct parley_step step = {.steps = 1, .samples = 2, .loss = loss};
    struct parley_turn turn;
    fill(x, 1);
    vectors_carry(&vectors, &take);
    check(known[1], "a snapshot's sums are known");
    mailbox_put(&handoff.box, &gradient);
    check(handoff_boundary(&handoff, NULL, &turn, 0) == PARLEY_GO &&
              turn.work == PARLEY_WORK_GRADIENT,
          "a gradient is wanted");
    check(!known[1], "the sums of what it is written over are not its own");
    fill(turn.gradient, 3);
    check(handoff_boundary(&handoff, &step, &turn, 0) == PARLEY_LATER, "it is made");
    check(mailbox_take(&answers) == &gradient && gradient.done.done.ok, "and told");
    check(gradient.done.done.finite == (bool)isfinite(loss), "with whether its loss is finite");
}

/* How many are told until `last` is, that one among them. */
static uint32_t count_told(struct mailbox *told, const struct op *last)
{
    uint32_t count = 0;
    for (bool over = false; !over;) {
        uv_mutex_lock(&told->lock);
        while (!told->first)
            uv_cond_wait(&told->arrived, &told->lock);
        struct op *op = mailbox_take_locked(told);
        uv_mutex_unlock(&told->lock);
        for (; op; op = op->next, count++)
            over |= op == last;
    }
    return count;
}

static void work_through_a_list(void)
{
    struct worker worker;
    struct mailbox told;
    struct op list[] = {op_of(PARLEY_UPDATE_TAKE, 0, 1), op_of(PARLEY_UPDATE_TAKE, 1, 1),
                        op_of(PARLEY_UPDATE_TAKE, 2, 1)},
              last = op_of(PARLEY_UPDATE_TAKE, 0, 1);
    fill(x, 4);
    list[0].next = &list[1];
    list[1].next = &list[2];
    check(!mailbox_init(&told, NULL) && !worker_init(&worker, &vectors, NULL, &told), "a worker");
    worker_put(&worker, list);
    check(count_told(&told, &list[2]) == 3, "all of a list are told");
    worker_put(&worker, &last);
    check(count_told(&told, &last) == 1, "and none of them again");
    worker_end(&worker);
    for (int b = 0; b < BUFFERS; b++)
        check(holds(block + b * STRIDE, 4), "each is carried out");
    worker_close(&worker);
    mailbox_close(&told);
}

int main(void)
{
    uv_loop_t loop;
    if (!hand_open(&loop)) return 1;
    take_two();
    add_and_set_two();
    hash();
    check(boundary(0) == PARLEY_LATER, "no step is wanted yet");
    tell_of_steps();
    lose_a_gradient(1);
    lose_a_gradient((double)NAN);
    lose_a_gradient((double)INFINITY);
    work_through_a_list();
    hand_close(&loop);
    return failures ? 1 : 0;
}
