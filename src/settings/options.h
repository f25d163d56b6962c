/* options.h: the one table of verbs and options. Flags, help, completion, the manual page, the
 * names in environment and file, `parley check`: all are made from it.
 *
 * Thread rule: constant data.
 */
#ifndef PARLEY_SETTINGS_OPTIONS_H
#define PARLEY_SETTINGS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct text;

enum verb {
    VERB_RUN,
    VERB_NODE,
    VERB_SIM,
    VERB_STATUS,
    VERB_BENCH,
    VERB_MODEL,
    VERB_CHECK,
    VERB_TOPOLOGY,
    VERB_KEYGEN,
    VERB_HELP,
    VERB_COMPLETION,
    VERB_COUNT,
    VERB_VERSION = VERB_COUNT /* asked for by --version only */
};

#define VERB_BIT(verb) (1u << (verb))

/* What a verb wants beside its options. */
struct verb_info {
    const char *name;
    const char *operands; /* as the synopsis shows them, "" for none */
    int operands_min, operands_max;
    const char *first[16]; /* valid words of the first operand, NULL-terminated; none: any */
    const char *first_is;  /* "is not a topology" */
    const char *help;      /* one line */
    const char *more;      /* a paragraph or NULL, lines of at most 80 columns */
};

const struct verb_info *verb_info(enum verb verb);

enum option_kind {
    OPTION_FLAG,      /* bool */
    OPTION_COUNT,     /* uint64_t in [min, max] */
    OPTION_REAL,      /* double in [min, max] */
    OPTION_TIME,      /* uint64_t: microseconds, at least min */
    OPTION_PERIOD,    /* struct settings_period; steps in [min, max] */
    OPTION_DIST,      /* struct units_dist */
    OPTION_RATE,      /* uint64_t, bytes a second; 0: unset */
    OPTION_ADDRESS,   /* struct units_address */
    OPTION_SHARD,     /* struct settings_shard */
    OPTION_RANGE,     /* struct settings_range */
    OPTION_TEXT,      /* const char *: clean UTF-8 */
    OPTION_NAME,      /* const char *: 1 to 31 letters, digits, ., -, _ */
    OPTION_SPEC,      /* const char *: one of valid; those that end in ':' want more after it */
    OPTION_CHOICE,    /* int: the place in valid */
    OPTION_SEEDS,     /* struct seeds; repeatable, or commas */
    OPTION_FAULTS,    /* struct faults; repeatable, or blanks */
    OPTION_LINKS,     /* struct links; likewise */
    OPTION_STRATEGIES /* const char *: see contenders.h */
};

enum option_group {
    GROUP_SIZE,
    GROUP_NETWORK,
    GROUP_DATA,
    GROUP_TRAINING,
    GROUP_BUDGET,
    GROUP_GOSSIP,
    GROUP_SIM,
    GROUP_FAULTS,
    GROUP_STATE,
    GROUP_SAMPLE,
    GROUP_WATCHING,
    GROUP_GENERAL,
    GROUP_COUNT
};

const char *option_group_text(enum option_group group);

enum option_id {
#define O(id, ...) OPTION_ID_##id,
#include "settings/options.def"
#undef O
    OPTION_ID_COUNT
};

struct option_info {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    enum option_group group;
    unsigned verbs;          /* VERB_BITs of those that take it */
    size_t offset;           /* of its field in struct settings */
    const char *metavar;     /* NULL for flags */
    const char *fallback;    /* default as text; NULL: unset */
    unsigned fallback_verbs; /* for which the default holds */
    double min, max;         /* of counts and reals; min of times, in us */
    const char *valid[16];   /* of specs and choices, NULL-terminated */
    const char *help;        /* to most verbs: option_help() */
};

const struct option_info *option_info(enum option_id id);

/* What it is to a verb that takes it. */
const char *option_help(enum option_id id, enum verb verb);

/* The option of that name that `verb` takes, else any of that name, else OPTION_ID_COUNT. */
enum option_id option_find(const char *name, enum verb verb);

/* True if files and the environment may set it too. */
bool option_is_setting(enum option_id id);

bool option_repeats(enum option_id id);

/* True if `parley sim` takes a list or a range for it, and makes a run of each value: what is told
 * to a run can be swept, what is told to the program can't. */
bool option_sweeps(enum option_id id);

/* What stands behind the colon of a valid word: "WIDTHS" for "mlp:", "" of words without one. */
const char *option_operand(const char *valid);

/* The valid words, each with what stands behind its colon: "lenet, mlp:WIDTHS". */
void option_add_words(struct text *text, const char *const *valid);

/* "PARLEY_MIX_EVERY" for mix-every. Returns out. */
const char *option_variable(enum option_id id, char out[64]);

enum { VERBS_TEXT_BYTES = 128 };

/* "run, node and sim" for VERB_BITs; check goes without saying beside others. Returns out. */
const char *verbs_text(unsigned verbs, char out[VERBS_TEXT_BYTES]);

#endif
