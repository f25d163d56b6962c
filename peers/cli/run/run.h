/* run.h: one `parley run` (inside of cli/run).
 *
 * One thread, one libuv loop. A child is a node process of this very binary; it tells everything by
 * JSON lines on its stdout, and obeys the lines of control.h on its stdin.
 */
#ifndef PARLEY_CLI_RUN_H
#define PARLEY_CLI_RUN_H

#include <stdio.h>
#include <uv.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "core/rng.h"
#include "parley/config.h"
#include "report/lines.h"
#include "settings/settings.h"

struct run;

/* Gathers the bytes of a pipe into lines. */
struct run_pipe {
    uv_pipe_t handle;
    char *bytes; /* owned */
    size_t size, capacity;
};

struct child {
    struct run *run;
    char name[16];
    uv_process_t process;
    struct run_pipe out, err;
    uv_pipe_t in;
    unsigned handles;        /* still open, of the four */
    bool used;               /* was started at least once */
    bool running;            /* the process is there */
    bool paused;             /* by SIGSTOP, of ours */
    bool stopped;            /* by a SIGSTOP of somebody else's */
    bool again;              /* to be started again once it is gone */
    bool killed;             /* by a planned fault: its end is no surprise */
    int status, term_signal; /* how the newest process ended */

    /* As its lines told. */
    char listen[PARLEY_ADDRESS_SIZE]; /* "": not listening */
    char phase[16];
    bool came_in;                /* its training began, or had ended before it came */
    uint64_t resumed;            /* steps of the checkpoint it brought along; 0: none */
    struct report_progress told; /* of its newest process; but for passes, epoch and live */
    uint64_t passes_before;      /* that it had begun before this run did, by its checkpoint; ... */
    bool progressed;             /* ... known once it has told of progress */
    uint64_t steps_before, bytes_before, exchanges_before; /* of the processes before */
    uint64_t bytes_trained;            /* when its training ended; 0: it has not */
    uint64_t exchanges_trained;        /* likewise */
    struct report_line agreed, ledger; /* json NULL: none */
    bool has_error;
    char code[32], message[512], hint[256];
};

/* One planned fault, and whom it hits. */
struct plan {
    const struct fault_spec *spec;
    struct rng rng; /* whom it hits */
    bool struck, ended;
    uint64_t start_us;
    double start_progress;
    uint32_t *targets; /* [count], numbers of children; owned */
    uint32_t count;
};

struct run {
    const struct settings *settings;
    uv_loop_t loop;
    uv_timer_t timer;
    uv_signal_t signals[SIGNALS_HEARD];
    struct child *children; /* [nodes]; owned */
    uint32_t nodes;
    char **forward; /* [forward_count]: arguments for every node; owned */
    size_t forward_count;
    struct json_out json;
    uint64_t start_us, train_us;    /* of the first process; when training began, 0: not yet */
    uint64_t target_us;             /* when the target was reached; 0: not */
    uint64_t stop_us;               /* when the last one ended its training; 0: none has */
    uint64_t samples, test_samples; /* of the training and test set */
    uint32_t classes;
    uint64_t spoken_us;
    unsigned drawn;     /* lines of the table that stand on the terminal */
    struct plan *plans; /* [settings->faults.count]; owned */
    struct asked asked;
    struct child *lost; /* the newest that failed; NULL: none has */
    uint64_t vain_us;   /* since when all_wait_in_vain(); 0: they do not */
    int failed;         /* PARLEY_E...: it never came to training */
    int data;           /* loaded, for all nodes: shared_data.h; -1: each loads them */
    int coverage;       /* where nodes mark samples: likewise; -1: nowhere */
    bool resumed;       /* what comes of --resume is said */
    bool spent;         /* the budget: a node has told that it stopped for that */
    bool published;     /* a node has told that the agreed model has its name */
    bool ending;        /* all children are to go now */
    int ended_by;       /* the signal after which they are; 0: none */
    uint64_t ended_us;  /* when it came */
    uint64_t gone_us;   /* when the newest process had ended, and was read to its end */
};

/* child.c */
uint64_t run_min_peers(const struct run *run); /* that a node waits for as it starts */
int child_start(struct child *child, bool again);
/* A line of control.h, without its newline. */
void child_say(struct child *child, const char *line);
void child_signal(struct child *child, int number);
/* It ends, and what it has begun to write goes; one that has not come to listen is killed. */
void child_let_go(struct child *child);
bool child_is_still(const struct child *child); /* paused or stopped */
void child_look(struct child *child);           /* whether it has been stopped or woken */

/* fault.c */
int run_faults_init(struct run *run);
void run_faults_advance(struct run *run);
void run_faults_again(struct run *run, struct child *child); /* it was started anew */
/* Whether it is not to be started again as yet. */
bool run_faults_hold(const struct run *run, const struct child *child);
/* Whether what holds it down, or still, ends though nobody trains. */
bool run_faults_pass(const struct run *run, const struct child *child);
size_t run_faults_left(const struct run *run); /* that have not struck */
void run_faults_close(struct run *run);

/* view.c */
double run_progress(const struct run *run);
void run_say(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_tell(struct run *run, struct report_line *line);
void run_relay(struct run *run, const char *line, size_t size); /* with its newline */
char *run_lost_line(void *context, uint64_t lines);             /* for the writer of --json */
void run_view_draw(struct run *run);
void run_view_clear(struct run *run);
int run_view_end(struct run *run); /* judges, says the summary; 0 or PARLEY_E... */

/* run.c: what a node that ended by itself ended with; 0 or PARLEY_E... */
int run_error_of(const struct child *child);

/* run.c: the process of a child has ended and its lines are read. */
void run_child_gone(struct child *child);

#endif
