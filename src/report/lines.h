/* lines.h: the JSON lines of --json: built from small structs, and parsed back into the same.
 *
 * One object a line: `event`, `t` (seconds), for a node's lines `node`, then the event's fields in
 * fixed order. Numbers that are not finite and strings that are NULL become null, and null becomes
 * NAN and NULL again. Integers of 64 bits are exact in what is built; the parser keeps 53 bits.
 * Thread rule: pure.
 */
#ifndef PARLEY_REPORT_LINES_H
#define PARLEY_REPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/partition/coverage.h"
#include "parley/error.h"

enum report_event {
    REPORT_STARTED,
    REPORT_PROGRESS,
    REPORT_MEMBER,
    REPORT_FAULT,
    REPORT_PHASE,
    REPORT_TAKEOVER,
    REPORT_AGREED,
    REPORT_ERROR,
    REPORT_LEDGER,
    REPORT_LOST,
    REPORT_SUMMARY,
    REPORT_EVENT_COUNT
};

enum { REPORT_LINE_BYTES_MAX = 1 << 20, REPORT_LEDGER_PEERS_MAX = 4096 };

struct report_started {
    uint64_t pid;
    const char *listen, *version;
    uint64_t protocol;
    const char *data;
    uint64_t samples;
    const char *model;
    uint64_t parameters, seed;
    const char *blas;
    uint64_t resumed; /* steps of the checkpoint that it brings along; 0: none */
};

struct report_progress {
    uint64_t step; /* the node's own */
    double epoch;  /* the cluster's; what others make is reckoned until it is heard of: it may go
                      back */
    double loss;
    double drift,
        drift_age_s; /* reckoned from exchanges: on a sparse topology of neighbours only */
    uint64_t live;
    double samples_per_s;           /* over the newest two to four seconds of training: rate.h */
    uint64_t exchanges, bytes_sent; /* that it took part in, as either side */
    double gap_max_ms;              /* between two local steps, so far; not in sim */
    double turn_max_ms;             /* of the event loop, so far; not in sim */
    uint64_t passes;                /* through its share of the data that this node has ended */
    uint64_t bytes_membership, bytes_sketches; /* of bytes_sent */
    double progress; /* of the budget, in [0, 1], as the node reckons it, resumed parts too */
};

struct report_member {
    const char *peer, *state, *reason;
    const char *boot; /* hex: which process of that name */
};

struct report_fault {
    const char *kind, *target; /* as carried out */
};

/* The node has trained on the first sample of those that it took over. */
struct report_takeover {
    uint64_t samples; /* its share now */
};

/* Nobody read, and no more could wait: here lines are missing. */
struct report_lost {
    uint64_t lines;
};

struct report_phase {
    const char *phase;
    const char *cause; /* of stop: "budget", "target", ...; else NULL */
};

struct report_agreed {
    const char *digest; /* "sha256:" and hex */
    uint64_t held, known, generation;
    double drift_before; /* as it proposed: after settling */
    double test_accuracy, test_loss;
    uint64_t test_samples;
};

struct report_error {
    const char *code, *message, *hint; /* code: "PARLEY_ENETWORK" */
};

/* What a node applied from exchanges with one boot of a peer. */
struct report_ledger_peer {
    const char *boot, *name;
    uint64_t applied;
    double mass;     /* sum of <r, d> over the deltas applied */
    double mass_abs; /* sum of |<r, d>| */
};

/* A node's account at its end. */
struct report_ledger {
    const char *boot; /* hex */
    struct report_ledger_peer *peers;
    size_t peer_count;
    uint64_t started, committed, applied, aborted, dropped, in_doubt;
};

struct report_summary {
    bool ok;
    uint64_t nodes, live, agreed, known; /* agreed: the most live ones that hold one digest */
    const char *digest;                  /* NULL where there is more than one */
    const char *strategy;
    double test_accuracy, worst_accuracy, test_loss, drift_before, epochs;
    uint64_t steps, samples;
    uint64_t exchanges;         /* each once; those of settling, too */
    uint64_t exchanges_trained; /* of these, those by the moment of drift_trained */
    uint64_t exchanges_dropped;
    uint64_t bytes_sent;
    uint64_t bytes_trained; /* of bytes_sent, what was sent by that moment */
    double mass_error, mass_dropped, wall_s, time_to_target_s;
    /* Per epoch that began, of the first COVERAGE_PASSES, the part of the samples that was trained
     * on; not parsed back. */
    double coverage[COVERAGE_PASSES];
    uint32_t coverage_count; /* 0: not known */
    uint64_t epochs_whole;   /* that the end cut short for no node: coverage_whole() */
    bool sim;                /* has those below */
    double virtual_s;
    const char *run_hash;
    double node_steps_per_s;
    double trained_s, agreed_s; /* virtual: the last local step; the last live node was DONE */
    /* True relative drift when the budget was spent, or when the first node stopped, where that
     * came before. Nodes train on until they know: trained_s is later, and `epochs` has what they
     * did. Of a budget of steps it is with the last node that made its own, while the others went
     * on averaging. */
    double drift_trained;
    /* On the test data, of the models that the live nodes had then, each its own; of many nodes, of
     * MODELS_OWN_MAX of them (sim/run/models.h): mean, least and standard deviation. */
    double own_accuracy, own_accuracy_worst, own_accuracy_sd;
    const char *lr_scale; /* as given or, by default, the strategy's */
    double warmup;        /* likewise */
    const char *swept; /* of a sweep: the values of this run, as one JSON object; not parsed back */
};

struct report_line {
    enum report_event event;
    double t;
    const char *node; /* NULL where the line is about none */
    union {
        struct report_started started;
        struct report_progress progress;
        struct report_member member;
        struct report_fault fault;
        struct report_lost lost;
        struct report_phase phase;
        struct report_takeover takeover;
        struct report_agreed agreed;
        struct report_error error;
        struct report_ledger ledger;
        struct report_summary summary;
    } as;
    void *json; /* of a parsed line: owns its strings; NULL for lines to be built */
};

/* A boot id as lines have it. */
enum { REPORT_BOOT_BYTES = 17 };
void report_boot(uint64_t boot, char text[REPORT_BOOT_BYTES]);

/* The line with its newline, to be freed by the caller; NULL when out of memory. Strings that are
 * not UTF-8 have each bad byte replaced. */
char *report_line_text(const struct report_line *line);

/* Parses one line (with or without its newline) of a child process. Fields that are absent are 0,
 * NAN or NULL; unknown ones are ignored. To be closed if 0 is returned.
 * PARLEY_EMALFORMED: no object, no known event, a field of the wrong type. PARLEY_ELIMIT: a line
 * over 1 MiB, a ledger of over 4096 peers. PARLEY_ENOMEM. */
PARLEY_CHECK int report_line_parse(struct report_line *line, const char *bytes, size_t size);

void report_line_close(struct report_line *line);

/* A line of --log-format json, for stderr, to be freed by the caller; NULL when out of memory. */
char *report_talk_text(const char *time, const char *level, const char *text);

#endif
