/* settings.h: command line, environment and settings file as one struct, each value with its
 * origin.
 *
 *   settings_init -> settings_flags -> settings_environment -> (settings_file) -> settings_finish
 *
 * Precedence: flag, environment, file, default; the order of the calls does not matter to it. A
 * value that loses is still judged, and so is one in a file that is of other verbs and changes
 * nothing. The driver reads the file that `config` names, between two calls.
 *
 * Each call that can fail writes one line into why, which names where the value stood, the value,
 * what is valid and the nearest: `--strategy: "gosip" is not one of gossip, none; did you mean
 * "gossip"?`. Errors: PARLEY_EUSAGE, PARLEY_ENOMEM.
 * Thread rule: settings_flags uses getopt's global state: call it from one thread at a time.
 * A finished struct is read-only and may be read from any thread.
 */
#ifndef PARLEY_SETTINGS_SETTINGS_H
#define PARLEY_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"
#include "settings/options.h"
#include "settings/sweep.h"
#include "settings/values/fault.h"
#include "settings/values/link.h"
#include "settings/values/period.h"
#include "settings/values/seeds.h"
#include "settings/values/units.h"

enum { SETTINGS_WHY_BYTES = 1024, SETTINGS_VALUE_BYTES_MAX = 4096, SETTINGS_OPERANDS_MAX = 2 };

enum settings_origin { ORIGIN_UNSET, ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

/* In the order of the table's valid words, as are all enums that are named below. */
enum settings_membership { MEMBERSHIP_FULL, MEMBERSHIP_STATIC };
enum settings_when { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };
enum settings_format { FORMAT_TEXT, FORMAT_JSON };

struct settings_shard {
    uint32_t index, count; /* count 0: not given; else index < count */
};

struct settings_range {
    uint64_t first, last; /* first <= last; both 0: not given */
};

struct settings_value {
    char *text; /* as given; repeated ones joined by ',' or ' '; NULL: unset; owned */
    enum settings_origin origin;
    unsigned line; /* of ORIGIN_FILE */
};

struct settings {
    enum verb verb;
    const char *operands[SETTINGS_OPERANDS_MAX]; /* borrowed from argv; NULL past the last */
    int topic;                                   /* of help: what is asked about (help.h) */

    uint64_t nodes;   /* 0: unset (node without a majority) */
    bool quick, full; /* of bench */
    uint64_t floats;  /* of bench wire; 0: unset */

    struct units_address listen;
    struct units_address advertise; /* host "" if unset */
    const char *name, *cluster;     /* name NULL: the driver makes one */
    struct seeds join;
    const char *peers_file;   /* or NULL */
    const char *cluster_key;  /* file, or NULL */
    uint64_t join_timeout_us; /* 0: for ever */
    uint64_t min_peers;
    uint64_t streams; /* 1 to PARLEY_STREAMS_MAX */
    bool insecure, no_lane;

    const char *data, *test; /* test NULL: the data's own, or a held-out tenth */
    const char *partition;
    struct settings_shard shard;

    const char *model, *optimizer, *schedule;
    double rate, momentum;
    double beta2, epsilon, weight_decay; /* unset: the optimizer's own */
    double clip_norm, clip_value;        /* 0: none */
    double warmup;                       /* part of the budget */
    int lr_scale;                        /* enum trainer_scale (train/trainer.h) */
    int momentum_mode;                   /* enum trainer_momentum (train/trainer.h) */
    uint64_t batch, seed;

    double epochs;         /* of the cluster; 0: no such budget */
    uint64_t steps;        /* of each node; 0: no such budget */
    uint64_t time_us;      /* 0: no such budget */
    double accuracy;       /* target; 0: none */
    uint64_t eval_samples; /* of the cluster between two evaluations */

    int strategy;       /* enum parley_strategy */
    uint64_t staleness; /* of ps-ssp:S */
    uint64_t backup_workers;
    struct settings_period mix_every;
    double outer_rate, outer_momentum;
    double choco_step; /* 0: by codec */
    const char *codec, *topology;
    double tolerance;
    int quorum;     /* enum parley_quorum */
    int membership; /* enum settings_membership */
    uint64_t settle_timeout_us;
    bool robust;

    uint64_t threads; /* of sim; 0: one a core */
    struct units_dist compute, latency;
    uint64_t bandwidth_bytes; /* a second; 0: without limit */
    double loss;              /* of a packet, in [0, 1) */
    uint64_t retransmit_us;
    struct links links;
    bool swarm;
    struct settings_range seeds;
    const char *tally; /* or NULL */
    struct faults faults;
    const char *compare; /* for contenders_parse(); or NULL */

    const char *out;        /* NULL: no file */
    const char *checkpoint; /* a directory; NULL: no checkpoints */
    uint64_t checkpoint_every_us;
    bool resume;
    uint64_t leave_timeout_us;

    const char *prompt; /* of model sample; or NULL */
    uint64_t length;    /* characters */
    double temperature;
    const char *export_path; /* of model export; or NULL */

    const char *json;         /* file, "-" or NULL */
    const char *csv, *curves; /* of sim: as json */
    const char *report;       /* of sim; or NULL */
    bool json_stdout;         /* of status, bench and model */
    bool watch, dot;          /* of status; of topology */
    int progress, color;      /* enum settings_when; NO_COLOR is heeded */
    int level;                /* enum parley_log, -q and -v heeded */
    int log_format;           /* enum settings_format */
    bool quiet, verbose;

    const char *config; /* the file to be read, or NULL */
    bool help, version;
    bool no_color; /* colour is off by NO_COLOR */

    const char *file_name; /* for origins; borrowed from settings_file's caller */
    char note[256];        /* a warning for the user, or "" */
    struct settings_value values[OPTION_ID_COUNT];
    /* Of sim: count over 1 where a list or a range was given; the field holds the first value. */
    struct sweep sweeps[OPTION_ID_COUNT];
};

void settings_init(struct settings *settings);

/* argv[0] is the program; argv is not reordered and must outlive the settings. */
PARLEY_CHECK int settings_flags(struct settings *settings, int argc, char *const *argv,
                                char why[SETTINGS_WHY_BYTES]);

/* NULL-terminated "NAME=value"s. Variables that look like a mistyped one leave a note only: other
 * programs (container managers, say) make PARLEY_ names too. */
PARLEY_CHECK int settings_environment(struct settings *settings, char *const *variables,
                                      char why[SETTINGS_WHY_BYTES]);

/* Whether "NAME=value" would set an option of some verb. */
bool settings_is_variable(const char *variable);

/* The bytes of the YAML file called `name`, which must outlive the settings. */
PARLEY_CHECK int settings_file(struct settings *settings, const char *name, const void *bytes,
                               size_t size, char why[SETTINGS_WHY_BYTES]);

/* Fills in defaults and judges the settings together. */
PARLEY_CHECK int settings_finish(struct settings *settings, char why[SETTINGS_WHY_BYTES]);

/* Once the command line or the environment was refused: finds --log-format or its variable behind
 * the place that reading has stopped at. A value that is none changes nothing. */
void settings_hear_format(struct settings *settings, int argc, char *const *argv,
                          char *const *variables);

/* "default", "flag", "environment PARLEY_LR", "file x.yaml:12" or "unset". Returns out. */
const char *settings_origin_text(const struct settings *settings, enum option_id id,
                                 char out[SETTINGS_WHY_BYTES]);

/* Of one process, and not for another that trains with it: names, addresses, files, its screen. */
bool settings_is_own(enum option_id id);

/* The arguments ("--lr=0.1") of all that was given, not defaulted, and that `node` takes, too;
 * those of the process itself are left to the caller. *arguments: NULL-terminated, in one block
 * that free() releases. PARLEY_ENOMEM. */
PARLEY_CHECK int settings_forward(const struct settings *settings, char ***arguments,
                                  size_t *count);

/* The settings of one run of a sweep: those of `base`, finished, with the values of texts[id] where
 * that is not NULL; "" leaves the default. `texts` may go, `base` must outlive the copy. To be
 * closed after any outcome. Errors as above: values that do not go together are named. */
PARLEY_CHECK int settings_copy(struct settings *copy, const struct settings *base,
                               const char *const texts[OPTION_ID_COUNT],
                               char why[SETTINGS_WHY_BYTES]);

/* Whether --progress wants lines, or a table, that show it. */
bool settings_wants_progress(const struct settings *settings);

/* Whether the option changes what the strategy (enum parley_strategy) does. */
bool settings_heeds(int strategy, enum option_id id);

/* Whether the option changes what a step of this optimizer does. */
bool settings_optimizer_heeds(const char *optimizer, enum option_id id);

/* Whether it is one of n0 to n(nodes - 1). */
bool settings_is_node(const char *name, uint64_t nodes);

void settings_close(struct settings *settings);

#endif
