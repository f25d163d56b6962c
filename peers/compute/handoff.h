/* handoff.h: between the loop and the trainer: operations and training credit one way, steps and
 * results the other.
 *
 * The happy path: the loop grants steps and puts ops; the trainer's boundary carries the ops out in
 * order, then goes on while it has credit, else waits. The end wakes it for good.
 *
 * GRADIENT and APPLY are the program's: the boundary returns with them as its turn's work, and they
 * have ended when it is entered again. What was put behind them waits.
 *
 * A grant is never seen before an op that was put earlier: credit is only looked at after the
 * mailbox was emptied, under one lock.
 * Thread rule: each function says whose it is.
 */
#ifndef PARLEY_PEERS_HANDOFF_H
#define PARLEY_PEERS_HANDOFF_H

#include "compute/mailbox.h"
#include "compute/vectors.h"
#include "kernels/moved.h"
#include "parley/parley.h"

/* Larger vectors take longer than a turn of the loop should. */
enum { HANDOFF_LENT_FLOATS_MAX = 1 << 20 };

struct handoff {
    /* Taken by the trainer while it makes a step, and by whoever works on its vectors. Between two
     * steps the trainer may be waiting for its core: the loop then does what is due by itself. A
     * semaphore, since one thread may close what another has left in the middle of a step. */
    uv_sem_t boundary;
    bool lends;

    struct mailbox box;           /* to the trainer; its lock guards the next six */
    uint64_t granted;             /* steps not yet seen by the trainer */
    bool halted;                  /* forget what is left; before `granted` */
    struct parley_turn next;      /* what the newest grant says of the steps to come, ... */
    struct parley_pace next_pace; /* ... and of the progress at each */
    bool ended;
    int error; /* the end's: what the boundary returns */

    struct mailbox *answers; /* to the loop */

    /* The trainer's own. */
    struct vectors *vectors;
    uint64_t credit;
    struct parley_turn turn; /* the newest grant's that was seen, ... */
    struct parley_pace pace; /* ... likewise */
    bool started;            /* a step was ever allowed */
    bool going;              /* one is allowed and not yet reported */
    bool later;   /* none was, in time, or ever yet: the boundary is held until it asks */
    bool stepped; /* it follows upon a step */
    struct op *first, **last; /* seen and not carried out yet; guarded by the boundary */
    struct op *work;          /* the GRADIENT or APPLY that the program does */
    bool over;                /* the end was seen */
    uint64_t step_end_us;     /* when the boundary was entered, first */
    bool measures;            /* how far steps move x */
    struct moved moved;

    /* Written by the loop: the version of which it is to hear at once. */
    _Atomic uint64_t awaited;

    /* Written by the trainer, read by anyone. */
    _Atomic uint64_t version, samples, place, gap_max_us;
    _Atomic double loss, moved_sq;
    _Atomic bool lost; /* the loss of a step was not finite; until the loop takes it */
};

/* Vectors and answers are borrowed. 0 or PARLEY_EFAIL. */
int handoff_init(struct handoff *handoff, struct vectors *vectors, struct mailbox *answers);
void handoff_close(struct handoff *handoff);

/* The loop's. The ops of a list are carried out at once if the trainer is at a boundary, else at
 * its next. */
void handoff_put(struct handoff *handoff, struct op *list);
void handoff_grant(struct handoff *handoff, const struct parley_update *update); /* a TRAIN */
void handoff_halt(struct handoff *handoff);
void handoff_end(struct handoff *handoff, int error);
/* There is what the trainer rings for: a step that is awaited, or one whose loss is not finite. */
bool handoff_has_news(struct handoff *handoff);
/* Of the newest step; not finite where that of any was since this was last asked. */
double handoff_loss(struct handoff *handoff);

/* The trainer's: as parley_boundary_within() says. */
int handoff_boundary(struct handoff *handoff, const struct parley_step *step,
                     struct parley_turn *turn, uint64_t timeout_us);

#endif
