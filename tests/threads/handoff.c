/* handoff.c: a loop (here main) and a trainer hand each other operations and credit.
 *
 *   - the trainer makes exactly the steps it was granted, and none after HALT but the one under way
 *   - SET, ADD, TAKE are carried out in order: a snapshot holds every delta put before it
 *   - what ADD does to x, it does to the momentum as often as the newest step has said
 *   - an ADD and a TAKE in one pass do what they do in two, to the bit
 *   - the sum of a chunk that is sent is that of the floats, whatever was done to them
 *   - a grant is never used before an operation that was put earlier
 *   - a loop that sleeps is woken by the step that it awaits, not by those before
 *   - the end wakes a trainer that waits, with the end's code
 *   - a trainer that does not wait is told to come later, and has its vectors to itself until then;
 *     likewise before it comes for the first time
 *   - one that waits for as long as one can say does
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <math.h>
#include <sched.h>
#include <string.h>

#include "core/wire/wire.h"

enum { FLOATS = 66000, STRIDE = FLOATS, BUFFERS = 3, CHUNKS = 2, AVERAGED = 1 };
enum { ROUNDS = 500, INHERITED = 1000, AWAITED = 20000 };

#include "hand.h"

static int end_code;
static float least_x; /* what a step must at least find in x; guarded by the handoff's order */

/* The two halves of a step, for one node: the gradient is 4, at x or at a buffer. */
static void work(const struct parley_turn *turn, struct parley_step *step)
{
    static bool refused;
    *step = (struct parley_step){0};
    check(turn->live == 3 && turn->progress == 0.25, "work sees what its op said");
    if (turn->work == PARLEY_WORK_APPLY) {
        check(turn->state_steps == 77, "the optimizer's step count is the op's");
        check(turn->weight == 5, "what divides the rate is the op's");
        for (int i = 0; i < FLOATS; i++)
            x[i] -= turn->factor * turn->gradient[i];
        return;
    }
    refused = !refused;
    if (refused) return; /* not made: it comes again */
    for (int i = 0; i < FLOATS; i++)
        turn->gradient[i] = turn->at[i] + 4;
    *step = (struct parley_step){.steps = 1, .samples = 2, .loss = 1};
}

static void train(void *argument)
{
    struct parley_step step = {0};
    struct parley_turn turn;
    uint64_t steps = 0;
    (void)argument;
    while ((end_code = handoff_boundary(&handoff, &step, &turn, UINT64_MAX)) == PARLEY_GO) {
        if (turn.work != PARLEY_WORK_STEP) {
            work(&turn, &step);
            continue;
        }
        check(turn.averaged == (uint64_t)least_x - 1, "a step is told how often x was averaged");
        check(x[0] >= least_x && x[0] == x[FLOATS - 1],
              "a step sees what was set before its grant");
        check(turn.live == 2, "a step sees what its grant said");
        check(turn.progress == fmin(0.5 + 0.125 * (double)steps, 1), "each step has its progress");
        check(turn.state_steps == INHERITED + steps++, "steps count on from those inherited");
        step = (struct parley_step){.steps = 1, .samples = 2, .loss = x[0], .follow = -4};
    }
}

/* Until there may be news, of which the loop has told that it would sleep. */
static void doze(uv_loop_t *loop, bool news)
{
    if (!news) uv_run(loop, UV_RUN_ONCE);
    wake_up(&wake);
}

/* The next answered op; runs the loop until there is one. */
static struct op *answer(uv_loop_t *loop)
{
    static struct op *list;
    while (!list) {
        wake_sleep(&wake);
        list = mailbox_take(&answers);
        doze(loop, list != NULL);
    }
    struct op *op = list;
    list = op->next;
    return op;
}

static void fill(struct op *op, enum parley_update_type type, uint32_t buffer)
{
    memset(op, 0, sizeof *op);
    op->update.type = type;
    op->update.vector.buffer = buffer;
    op->update.vector.vectors = 1;
    op->update.vector.buffers[0] = buffer;
    op->update.vector.factor = 0.5f;
}

static void put(struct op *op, enum parley_update_type type, uint32_t buffer)
{
    fill(op, type, buffer);
    mailbox_put(&handoff.box, op);
}

/* All at once, or one by one as the trainer may see them. */
static void put_round(struct op *ops, bool together)
{
    fill(&ops[0], PARLEY_UPDATE_SET, 0);
    fill(&ops[1], PARLEY_UPDATE_ADD, 1);
    fill(&ops[2], PARLEY_UPDATE_TAKE, 2);
    if (together) {
        ops[0].next = &ops[1];
        ops[1].next = &ops[2];
    }
    for (int i = 0; i < (together ? 1 : 3); i++)
        mailbox_put(&handoff.box, &ops[i]);
}

static void start_values(void)
{
    for (int i = 0; i < FLOATS; i++) {
        x[i] = 1 / (float)(i + 3);
        m[i] = 1 / (float)(i + 7);
        block[STRIDE + i] = 1 / (float)(i + 11);
        block[2 * STRIDE + i] = 0;
    }
}

/* The sum in the head of a chunk is that of its floats as they stand in the buffer. */
static bool seals(uint32_t buffer, size_t from, size_t size)
{
    uint8_t head[WIRE_CHUNK_HEAD_BYTES] = {0}, wanted[WIRE_CHUNK_HEAD_BYTES] = {0};
    struct parley_update update = {.chunk = {.head = head, .buffer = buffer}};
    update.chunk.offset = from * sizeof(float);
    update.chunk.size = size * sizeof(float);
    vectors_seal(&vectors, &update);
    wire_chunk_seal(wanted, block + buffer * STRIDE + from, size * sizeof(float));
    return memcmp(head, wanted, sizeof head) == 0;
}

static bool seals_all(uint32_t buffer)
{
    enum { CHUNK = PARLEY_CHUNK_BYTES_MAX / sizeof(float) };
    return seals(buffer, 0, CHUNK) && seals(buffer, CHUNK, FLOATS - CHUNK) &&
           seals(buffer, 0, 100) && seals(buffer, 64, 1000) && seals(buffer, 64, CHUNK) &&
           seals(buffer, CHUNK, 4);
}

/* Sums that are known from the TAKE are used while its floats stand, and no longer. */
static void check_seals(void)
{
    static const enum parley_update_type writes[] = {PARLEY_UPDATE_DIFF, PARLEY_UPDATE_COMBINE,
                                                     PARLEY_UPDATE_ADD};
    float given = 3;
    struct op op;
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        fill(&op, PARLEY_UPDATE_TAKE, 2);
        start_values();
        vectors_carry(&vectors, &op);
        check(known[2] && seals_all(2), "a snapshot's chunks are sealed");
        fill(&op, writes[i], 2);
        op.update.vector.rest = true;
        op.update.vector.other = 1;
        op.update.vector.size = FLOATS * sizeof(float);
        vectors_carry(&vectors, &op);
        check(seals_all(2), "so is what was made of it");
    }
    fill(&op, PARLEY_UPDATE_TAKE, 2);
    vectors_carry(&vectors, &op);
    struct parley_update store = {.store = {.buffer = 2, .bytes = (uint8_t *)&given, .size = 4}};
    vectors_store(&vectors, &store);
    check(seals_all(2), "so is what came in");
}

/* Wherever a chunk's parts are when they come, and however they are cut: to the bit. */
static void check_store(void)
{
    static float theirs[FLOATS + 1], d[FLOATS];
    struct mix_diff_result wanted;
    struct rng rng = rng_init(1, 2);
    for (int i = 0; i < FLOATS; i++) {
        d[i] = 1 / (float)(i + 5);
        block[i] = 1 / (float)(i + 3);
    }
    mix_diff(d, block, FLOATS, vectors.run, &wanted);
    for (int round = 0; round < 100; round++) {
        /* In its place, elsewhere, or elsewhere and not on a float's edge. */
        uint8_t *from[] = {(uint8_t *)(block + STRIDE), (uint8_t *)theirs, (uint8_t *)theirs + 1};
        size_t most = round % 3 == 0 ? 1000 : 70000, begins = rng_below(&rng, 2) * FLOATS / 2;
        struct op op;
        for (size_t part, at = 0; at < FLOATS * sizeof(float); at += part) {
            uint8_t *bytes = from[rng_below(&rng, 3)] + at;
            part = rng_below(&rng, 3) ? 4 * MIX_BLOCK : 1 + rng_below(&rng, (uint32_t)most);
            if (part > FLOATS * sizeof(float) - at) part = FLOATS * sizeof(float) - at;
            for (size_t i = at; i < at + part; i++) {
                float whole = 1 / (float)(i / sizeof(float) + 5);
                bytes[i - at] = ((const uint8_t *)&whole)[i % sizeof(float)];
            }
            struct parley_update store = {
                .store = {.buffer = 1, .offset = at, .bytes = bytes, .size = part}};
            store.store.diffs = at >= begins; /* its own snapshot may come late */
            vectors_store(&vectors, &store);
        }
        fill(&op, PARLEY_UPDATE_DIFF, 1);
        vectors_carry(&vectors, &op);
        check(!memcmp(block + STRIDE, d, sizeof d), "a difference of parts is that of the whole");
        check(op.done.done.mass == wanted.mass && op.done.done.norm_sq == wanted.norm_sq &&
                  op.done.done.own_norm_sq == mix_norm_sq(block, FLOATS),
              "so are its figures");
    }
}

/* Those of the trainer may name what earlier ones of its own do; all others wait. */
static void check_order(void)
{
    static struct ops table;
    struct parley_update add = {.type = PARLEY_UPDATE_ADD, .vector = {.buffer = 1}},
                         diff = {.type = PARLEY_UPDATE_DIFF, .vector = {.buffer = 2, .other = 1}},
                         take = {.type = PARLEY_UPDATE_TAKE, .vector = {.vectors = 1}};
    take.vector.buffers[0] = 1;
    ops_init(&table);
    struct op *first = ops_add(&table, &add), *second = ops_add(&table, &take);
    struct op *third = ops_add(&table, &diff), *last = ops_add(&table, &take);
    check(ops_next(&table) == first && ops_next(&table) == second && !ops_next(&table),
          "a TAKE follows an ADD of its buffer, a DIFF waits for both");
    ops_remove(&table, first);
    check(!ops_next(&table), "and for the second, too");
    ops_remove(&table, second);
    check(ops_next(&table) == third && !ops_next(&table), "a TAKE waits for a DIFF of its buffer");
    ops_remove(&table, third);
    check(ops_next(&table) == last, "and is the last");
}

/* Nobody else has the vectors. `to`: a snapshot beside the difference, or over it. */
static void check_one_pass(uint32_t to)
{
    static float taken[FLOATS], followed[FLOATS];
    struct op ops[2];
    vectors.follow = 0.3f;
    for (int rest = 0; rest < 2; rest++) {
        fill(&ops[0], PARLEY_UPDATE_ADD, 1);
        fill(&ops[1], PARLEY_UPDATE_TAKE, to);
        ops[0].update.vector.rest = rest;
        start_values();
        vectors_carry(&vectors, &ops[0]);
        vectors_carry(&vectors, &ops[1]);
        memcpy(taken, block + to * STRIDE, sizeof taken);
        memcpy(followed, m, sizeof followed);
        start_values();
        check(vectors_add_take(&vectors, &ops[0], &ops[1]), "an ADD and a TAKE are one pass");
        check(ops[0].done.done.ok && ops[1].done.done.ok && ops[1].done.done.finite, "both ended");
        check(!memcmp(taken, block + to * STRIDE, sizeof taken), "a snapshot has the same bits");
        check(seals_all(to), "its chunks are sealed");
        check(!memcmp(taken, x, sizeof x) && !memcmp(followed, m, sizeof m), "so have the vectors");
    }
    block[STRIDE + FLOATS - 1] = INFINITY;
    ops[0].update.vector.rest = false;
    check(vectors_add_take(&vectors, &ops[0], &ops[1]) && !ops[1].done.done.finite,
          "what is not finite is seen");
    check(!vectors_add_take(&vectors, &ops[1], &ops[0]), "a TAKE before an ADD is not");
    ops[1].update.vector.vectors = 2;
    check(!vectors_add_take(&vectors, &ops[0], &ops[1]), "a TAKE of several is not");
}

static void put_work(struct op *op, enum parley_update_type type, uint32_t buffer)
{
    memset(op, 0, sizeof *op);
    op->update.type = type;
    op->update.vector.buffer = buffer;
    op->update.vector.factor = 0.5f;
    op->update.vector.live = 3;
    op->update.vector.progress = 0.25;
    op->update.vector.steps = 77;
    op->update.vector.weight = 5;
    mailbox_put(&handoff.box, op);
}

static void grant(uint64_t steps)
{
    struct parley_update update = {.type = PARLEY_UPDATE_TRAIN,
                                   .train = {.steps = steps,
                                             .pace = {.progress = 0.5, .slope = 0.125},
                                             .live = 2,
                                             .inherited = INHERITED}};
    handoff_grant(&handoff, &update);
}

static void wait_for_steps(uv_loop_t *loop, uint64_t version)
{
    while (atomic_load(&handoff.version) < version) {
        wake_sleep(&wake);
        doze(loop, atomic_load(&handoff.version) >= version);
    }
}

static void check_lost(void)
{
    atomic_store(&handoff.awaited, UINT64_MAX);
    check(!handoff_has_news(&handoff), "steps that are not awaited are no news");
    atomic_store(&handoff.lost, true);
    check(handoff_has_news(&handoff), "a loss that is not finite is news");
    check(isnan(handoff_loss(&handoff)) && !handoff_has_news(&handoff), "once");
}

/* The end is over: what is told is counted all the same. */
static void check_counts(void)
{
    struct parley_step step = {.steps = UINT64_MAX, .samples = UINT64_MAX};
    struct parley_turn turn;
    check(handoff_boundary(&handoff, &step, &turn, 0) == end_code, "the end's code comes again");
    check(atomic_load(&handoff.version) == UINT64_MAX, "steps don't begin anew");
    check(atomic_load(&handoff.samples) == UINT64_MAX, "nor do samples");
}

/* In one thread: what is put lies there until the trainer comes, and comes again. */
static void check_later(void)
{
    static struct op op;
    struct parley_turn turn;
    block[0] = 4;
    fill(&op, PARLEY_UPDATE_SET, 0);
    handoff_put(&handoff, &op);
    check(x[0] == 0 && !mailbox_take(&answers), "before it has come x is left alone");
    check(handoff_boundary(&handoff, NULL, &turn, 0) == PARLEY_LATER, "no step is wanted");
    check(x[0] == 4 && mailbox_take(&answers) == &op, "what was put is done as it comes");
    x[0] = 0;
    block[0] = 5;
    check(handoff_boundary(&handoff, NULL, &turn, 0) == PARLEY_LATER, "no step is wanted yet");
    fill(&op, PARLEY_UPDATE_SET, 0);
    handoff_put(&handoff, &op);
    check(x[0] == 0 && !mailbox_take(&answers), "until later x is left alone");
    check(handoff_boundary(&handoff, NULL, &turn, 1000) == PARLEY_LATER, "nor after a while");
    check(x[0] == 5 && mailbox_take(&answers) == &op, "but what was put is done meanwhile");
    grant(1);
    check(handoff_boundary(&handoff, NULL, &turn, 0) == PARLEY_GO, "a step is wanted");
    handoff_halt(&handoff);
    check(handoff_boundary(&handoff, NULL, &turn, 0) == PARLEY_LATER, "and is not any more");
    check(atomic_load(&handoff.version) == 0, "none was made");
}

static void grant_to_who_waits(void *unused)
{
    (void)unused;
    while (uv_sem_trywait(&handoff.boundary))
        sched_yield();
    uv_sem_post(&handoff.boundary);
    sched_yield();
    grant(1);
}

static void check_long(void)
{
    static const uint64_t times_us[] = {INT64_MAX, UINT64_MAX / 1000 + 1, UINT64_MAX - 1};
    struct parley_turn turn;
    uv_thread_t thread;
    for (size_t i = 0; i < sizeof times_us / sizeof *times_us; i++) {
        uv_thread_create(&thread, grant_to_who_waits, NULL);
        check(handoff_boundary(&handoff, NULL, &turn, times_us[i]) == PARLEY_GO, "it waits long");
        uv_thread_join(&thread);
        handoff_halt(&handoff);
        check(handoff_boundary(&handoff, NULL, &turn, 0) == PARLEY_LATER, "and no longer");
    }
}

int main(void)
{
    uv_loop_t loop;
    uv_thread_t thread;
    static struct op ops[4];
    uint64_t granted = 0;
    if (!hand_open(&loop)) return 1;
    check_later();
    check_long();
    uv_thread_create(&thread, train, NULL);

    for (int round = 1; round <= ROUNDS; round++) {
        /* The trainer has no credit here: nobody else looks at buffers or least_x. */
        least_x = (float)round + 1;
        for (int i = 0; i < FLOATS; i++) {
            block[i] = (float)round; /* set to this, */
            block[STRIDE + i] = 2;   /* then half of this is added */
        }
        put_round(ops, round % 2);
        grant(3);
        granted += 3;
        for (int i = 0; i < 3; i++)
            check(answer(&loop) == &ops[i], "answers come in order");
        check(block[2 * STRIDE] == (float)round + 1, "a snapshot holds what was added before it");
        check(ops[2].done.done.finite && ops[2].done.done.ok, "a snapshot is finite");
        check(m[FLOATS - 1] == -4.0f * (float)(round - 1), "a momentum follows what is added to x");
        wait_for_steps(&loop, granted);
        check(atomic_load(&handoff.version) == granted, "no step beyond those granted");
    }
    uv_run(&loop, UV_RUN_NOWAIT); /* what it was woken for before */
    atomic_store(&handoff.awaited, granted + AWAITED);
    wake_sleep(&wake);
    grant(UINT64_MAX / 2);
    uv_run(&loop, UV_RUN_ONCE);
    wake_up(&wake);
    check(atomic_load(&handoff.version) >= granted + AWAITED, "steps not awaited wake nobody");
    atomic_store(&handoff.awaited, 0);
    handoff_halt(&handoff);
    put(&ops[0], PARLEY_UPDATE_TAKE, 2); /* when it is answered, the trainer has seen the halt */
    check(answer(&loop) == &ops[0], "an idle trainer goes on applying");
    uint64_t version = ops[0].done.done.version;
    put(&ops[0], PARLEY_UPDATE_TAKE, 2);
    answer(&loop);
    check(ops[0].done.done.version == version, "no step after a halt was seen");
    check(atomic_load(&handoff.samples) == 2 * version, "samples are counted with the steps");

    /* A step in two halves: both are the program's, in the order of the ops around them. */
    for (int i = 0; i < FLOATS; i++)
        block[i] = 10;
    put(&ops[0], PARLEY_UPDATE_SET, 0);
    put_work(&ops[1], PARLEY_UPDATE_GRADIENT, 1);
    put_work(&ops[2], PARLEY_UPDATE_APPLY, 1);
    put(&ops[3], PARLEY_UPDATE_TAKE, 2);
    for (int i = 0; i < 4; i++)
        check(answer(&loop) == &ops[i], "work ends in order");
    check(atomic_load(&handoff.version) == version + 1 && ops[1].done.done.version == version + 1,
          "a gradient is a step");
    check(ops[1].done.done.finite && block[STRIDE] == 14, "a gradient stands in its buffer");
    check(block[2 * STRIDE] == 3 && block[STRIDE] == 14, "a snapshot holds what was applied");
    ops[1].update.vector.at_other = true; /* at the snapshot, handed over while the trainer waits */
    ops[1].update.vector.other = 2;
    ops[1].next = &ops[0];
    ops[0].next = NULL;
    handoff_put(&handoff, &ops[1]);
    check(answer(&loop) == &ops[1] && answer(&loop) == &ops[0], "what is lent waits for work, too");
    check(block[STRIDE] == 7 && x[0] == 10, "a gradient is that at the buffer it was asked for");
    block[FLOATS - 1] = INFINITY; /* whatever the loss is */
    put(&ops[0], PARLEY_UPDATE_SET, 0);
    put_work(&ops[1], PARLEY_UPDATE_GRADIENT, 1);
    check(answer(&loop) == &ops[0] && answer(&loop) == &ops[1] && !ops[1].done.done.finite,
          "a gradient of which a part is not finite is not");

    handoff_end(&handoff, PARLEY_ENO_AGREEMENT);
    uv_thread_join(&thread);
    check(end_code == PARLEY_ENO_AGREEMENT, "the end's code comes out");
    check_lost();
    check_counts();
    check_one_pass(2);
    check_one_pass(1);
    check_store();
    check_order();
    check_seals();
    hand_close(&loop);
    return failures ? 1 : 0;
}
