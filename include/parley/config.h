/* parley/config.h: what a node is told before it starts, and every limit in one table.
 *
 * Fill with parley_config_defaults(), change what you need, check with parley_config_check(). That
 * wants all that a node needs: for what parley_open() would choose itself (name, address and boot,
 * parley.h) put something there first.
 * All strings and arrays are copied by parley_node_new() unless said otherwise; durations are
 * microseconds, at most 2^48 (nine years).
 * Thread rule: plain data.
 */
#ifndef PARLEY_CONFIG_H
#define PARLEY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits that are part of the wire format or bound memory. Sizes with their zero byte. */
enum {
    PARLEY_NAME_SIZE = 32,    /* a node's or cluster's name */
    PARLEY_ADDRESS_SIZE = 72, /* "host:port" or "[v6]:port" */
    PARLEY_VECTORS_MAX = 3,   /* parameters and up to two optimizer vectors */
    PARLEY_PERIODS_MAX = 8,   /* changes of mix_every */
    PARLEY_SEEDS_MAX = 256,   /* addresses dialled for the whole run */
    PARLEY_SETTINGS_MAX = 32, /* name and value pairs that must match across the cluster */
    PARLEY_CONTROL_BYTES_MAX = 64 * 1024, /* payload of a control frame */
    PARLEY_CHUNK_BYTES_MAX = 256 * 1024,  /* floats of one tensor frame, in bytes */
    PARLEY_MEMBERS_MAX = 16384,           /* upper bound of members_max */
    PARLEY_INDIRECT_PROBES_MAX = 8,       /* upper bound of indirect_probes */
    PARLEY_CONNECTIONS_MIN = 6,           /* lower bound of connections_max: half are relays */
    PARLEY_CONNECTIONS_MAX = 1024,        /* upper bound of connections_max */
    PARLEY_STREAMS_MAX = 64,              /* upper bound of streams */
    PARLEY_DEGREE_MAX = 64,               /* neighbours of a random regular graph */
    PARLEY_NEIGHBOURS_MAX = 64,           /* of a node, in gossip-sync; else a sample of them */
    PARLEY_CHOCO_NEIGHBOURS_MAX = 16,     /* likewise, in choco */
    PARLEY_SERVED_MAX = 64,               /* nodes, where one of them is a parameter server: others
                                             wait until they are let in; who was all the same, as
                                             many came at once, ends with PARLEY_ELIMIT */
    PARLEY_SKETCH_BUCKETS = 256,          /* doubles in one sketch */
    PARLEY_DIGEST_BYTES = 32              /* SHA-256 */
};
/* A few dozen buffers of as many floats have to have addresses. */
#define PARLEY_PARAMETERS_MAX (UINT64_C(1) << (SIZE_MAX > UINT32_MAX ? 40 : 24))

enum parley_topology {
    PARLEY_TOPOLOGY_COMPLETE,
    PARLEY_TOPOLOGY_RING,
    PARLEY_TOPOLOGY_TORUS,
    PARLEY_TOPOLOGY_EXPONENTIAL,
    PARLEY_TOPOLOGY_STAR,
    PARLEY_TOPOLOGY_REGULAR, /* random, with topology_degree neighbours */
    PARLEY_TOPOLOGY_BASE,    /* Base-(k+1), k = topology_degree partners a round */
    PARLEY_TOPOLOGY_GRAPH    /* of `graph` */
};

/* What is done between local steps. */
enum parley_strategy {
    PARLEY_STRATEGY_GOSSIP,    /* asynchronous pairwise averaging */
    PARLEY_STRATEGY_NONE,      /* no averaging while training; the end still agrees on one model */
    PARLEY_STRATEGY_ALLREDUCE, /* gradients averaged over all live nodes each step */
    PARLEY_STRATEGY_LOCAL_SGD, /* mix_every local steps, then the mean of all models */
    PARLEY_STRATEGY_DILOCO,    /* the same with an outer Nesterov */
    PARLEY_STRATEGY_PS_BSP,    /* parameter server: a step is the mean of all workers' gradients */
    PARLEY_STRATEGY_PS_ASP,    /* ... each gradient is one, as it comes */
    PARLEY_STRATEGY_PS_SSP,    /* ... likewise, but see `staleness` */
    PARLEY_STRATEGY_GOSSIP_SYNC, /* rounds of averaging with all neighbours: D-PSGD */
    PARLEY_STRATEGY_PUSH_SUM,    /* weighted models, pushed one way: SGP */
    PARLEY_STRATEGY_NOLOCO,      /* pairwise steps of an outer optimizer */
    PARLEY_STRATEGY_CHOCO,       /* rounds as GOSSIP_SYNC's, of copies that differences keep up */
    PARLEY_STRATEGIES
};

/* What models look like on the network while they are averaged; the end is always fp32. */
enum parley_codec {
    PARLEY_CODEC_FP32,
    PARLEY_CODEC_BF16,
    PARLEY_CODEC_FP16,
    PARLEY_CODEC_INT8,
    PARLEY_CODEC_SUBSET, /* of the floats, the part codec_part, another one in each exchange */
    PARLEY_CODEC_TOPK    /* the largest, codec_part of all: of differences, so CHOCO's alone */
};

enum parley_quorum {
    PARLEY_QUORUM_LIVE,    /* the live view decides */
    PARLEY_QUORUM_MAJORITY /* more than half of `nodes`, or of all that are known, if more */
};

/* What is known of earlier starts of this node, if there were any. One that has held a model may
 * have agreed on it. */
enum parley_earlier {
    /* Nothing: where anybody knows of an earlier start, this one counts for no majority. */
    PARLEY_EARLIER_UNKNOWN,
    /* None has held a model in this run: the driver keeps on disk, from before it says that the
     * first WRITE (node.h) is done on, that one might have. One that has ended by itself, and not
     * `locked` any (struct parley_view), need not count as having held it. */
    PARLEY_EARLIER_NEVER_HELD,
    PARLEY_EARLIER_HELD /* one may have: this one counts for no majority */
};

/* Links by names of nodes. Who is not in it averages with nobody while training. */
struct parley_graph {
    uint32_t nodes;           /* at most PARLEY_MEMBERS_MAX */
    const char *const *names; /* [nodes], sorted by strcmp, no two alike */
    const uint32_t *first;    /* [nodes + 1] where in `ends` the links of a node begin */
    const uint16_t *ends;     /* [first[nodes]] the other end of each; each link stands twice */
};

struct parley_roster;

/* A setting that every node of a cluster must share; compared as text in HELLO, in any order. */
struct parley_setting {
    const char *name;  /* 1 to 31 bytes; no two alike */
    const char *value; /* at most 63 bytes; "" is as good as no such setting */
};

/* Another mix_every, from so much of the budget on. */
struct parley_period {
    double from; /* progress, in (0, 1) */
    uint32_t steps;
};

/* How far a node is that goes on from vectors it once had; steps 0: it starts with the first model,
 * and the rest does not count. steps, samples and samples_cluster are below 10^18. */
struct parley_resumed {
    uint64_t steps, samples;  /* that it has made and used */
    uint64_t state_steps;     /* that its optimizer vectors have been through */
    uint64_t samples_cluster; /* that all nodes together had used then, as far as it knew */
    uint64_t trained_us;      /* that the cluster had trained then: of the budget of time */
};

/* In brackets: what parley_config_defaults() sets; all else is 0, false, NULL or "". */
struct parley_config {
    /* Who and where: texts in UTF-8 without control characters. */
    const char *cluster; /* clusters of another name are refused ["parley"] */
    const char *name;    /* unique among live nodes: ASCII from '!' to '~' */
    const char *address; /* where peers reach this node, "host:port" */
    uint64_t boot;       /* identity of this start of this node: random, never 0, never reused */
    uint64_t run;        /* identity of the run, equal on all nodes [1] */
    uint64_t seed;       /* of the core's own draws (peer choice, jitter), with boot [1] */
    const char *const
        *seeds; /* [seeds_count] addresses to join by; the own one may be among them */
    uint32_t seeds_count;
    /* Other nodes alive before training starts: waited for without limit; below members_max, and
     * with PS_BSP, PS_ASP and PS_SSP below PARLEY_SERVED_MAX. */
    uint32_t min_peers;
    /* Normally NULL: the node keeps a table of members of its own, by gossip. Else one table in
     * common with all nodes of this process (node.h); it must outlive them. */
    struct parley_roster *roster;

    /* What is averaged. */
    uint64_t parameters; /* floats in the parameter vector, 1 to PARLEY_PARAMETERS_MAX */
    uint32_t vectors;    /* 1 + optimizer vectors that a joiner takes along, 1 to 3 [1] */
    /* Of those, the first so many are averaged: 1, just x, to `vectors`, and more than 1 with
     * GOSSIP and NONE alone [1]. */
    uint32_t averaged;
    uint64_t model_digest;                 /* of names, shapes, dtype */
    const struct parley_setting *settings; /* [settings_count] that must match */
    uint32_t settings_count;
    /* Of vectors[0] and on, as they stand. Where others train and have gone on without this node
     * (they know of an earlier boot of it, or have used half as many samples again as it knew of),
     * it takes a peer's instead, and begins at 0. */
    struct parley_resumed resumed;

    /* Training budget: the first that is reached raises STOP; 0 is none. */
    uint32_t batch; /* samples a local step, at least 1 [1] */
    /* ALLREDUCE: a step is this node's share of `batch` samples and counts by it, so that the mean
     * is one over all of them. False: each step counts as one, however many samples it took. Equal
     * on all nodes. */
    bool batch_is_shared;
    uint64_t samples_budget; /* of the cluster: samples of all nodes ever seen */
    /* Of each node: STOP when all live nodes have made theirs. With ALLREDUCE and PS_BSP, whose
     * steps are made in common, those before a late node came are its own, too. Progress is what
     * the living have made of theirs, on average. Equal on all nodes, which is not checked: the
     * least ends the run. */
    uint64_t steps_budget;
    uint64_t time_budget_us; /* from the start of training */

    /* Averaging. */
    enum parley_strategy strategy;
    enum parley_topology topology;
    uint32_t topology_degree;         /* REGULAR: 3, BASE: 1 to PARLEY_DEGREE_MAX */
    uint64_t topology_seed;           /* of REGULAR: equal on all nodes */
    const struct parley_graph *graph; /* of GRAPH: borrowed, must outlive the node */
    uint32_t backup_workers;          /* PS_BSP: so many of the slowest are left out of each step */
    uint32_t staleness;               /* PS_SSP: steps that a worker may be ahead of the slowest */
    enum parley_codec codec;          /* GOSSIP, NONE: not TOPK; CHOCO: not SUBSET; else FP32 */
    double codec_part;                /* of PARLEY_CODEC_SUBSET, in (0, 1]; of TOPK, to 0.5 [1] */
    uint32_t mix_every; /* local steps between exchanges that this node starts, at least 1 [1] */
    /* GOSSIP, NONE: rising in `from`. */
    struct parley_period mix_later[PARLEY_PERIODS_MAX];
    uint32_t mix_later_count; /* of mix_later; 0 where mix_steered */
    bool mix_steered;         /* GOSSIP, NONE: mix_every is where it begins: then by drift */
    /* DILOCO, NOLOCO: rate, above 0 to 10, and momentum, 0 to below 1, of the outer optimizer; in
     * noloco beta (gamma being the same) and alpha. Equal on all nodes [0.7, 0.5]. */
    double outer_rate, outer_momentum;
    /* CHOCO: step size of averaging (gamma), in (0, 1]; 0: 1.5 times codec_part of TOPK, but at
     * most 1, and 1 with other codecs. Equal on all nodes. */
    double choco_step;
    /* The difference of two models is clipped before it is added, and an agreed
     * one is checked against the own; for GOSSIP, with averaged = 1 and fp32. */
    bool robust;
    uint32_t
        behind_steps_max; /* who joins a cluster that is further takes a peer's model first [64] */

    /* The end. */
    double tolerance;           /* relative drift at which nodes propose, above 0 [1e-4] */
    uint64_t settle_timeout_us; /* then propose whatever the drift is, and say so; counted from when
                                   the last one came to settle, five times that at most [60 s] */
    /* Where they don't come to one model, a majority being missing say, they wait for five times
     * settle_timeout_us, and for two minutes at least, and end with PARLEY_ENO_AGREEMENT; one that
     * still writes it then, ten seconds sooner: the others agree without it. */
    enum parley_quorum quorum;
    uint32_t nodes;              /* fixed size, at least 1; for majority only */
    enum parley_earlier earlier; /* heeded for a majority only */

    /* Membership (SWIM, Das, Gupta, Motivala 2002; Lifeguard, Dadgar, Phillips, Currey 2018). */
    uint64_t probe_interval_us; /* one member is probed each, 1 and up; by local health [1 s] */
    uint64_t probe_timeout_us;  /* then indirect probes go out; at most the interval [500 ms] */
    uint32_t indirect_probes;   /* peers asked to probe for us, at most 8 [3] */
    double suspicion_factor;    /* suspicion lasts factor * max(1, log10(n)) * probe_interval; as
                                   others suspect too, down to half of it, at least interval; 1 to 1000
                                   [4] */
    /* The same once the connection broke and a new dial is refused [500 ms]. */
    uint64_t broken_suspicion_us;
    /* So long without an answer of any seed, then PARLEY_ENO_SEED; UINT64_MAX is for ever [that].
     * Who was told to stop waits for ten seconds at most. */
    uint64_t join_timeout_us;
    uint64_t leave_timeout_us;             /* who leaves hands over for half of it at most [10 s] */
    uint64_t redial_min_us, redial_max_us; /* back-off of seeds, 1 and up [500 ms, 30 s] */

    /* Timers of an exchange. */
    uint64_t progress_timeout_us; /* without byte or keep-alive it aborts; 1 and up [10 s] */
    uint64_t keepalive_us;        /* 1 and up [2 s] */

    /* Limits. */
    uint32_t members_max;     /* boots ever seen, each restart another one; 2 and up [1024] */
    uint32_t connections_max; /* the pool; beyond it the least recently used gets BYE;
                                 PARLEY_CONNECTIONS_MIN to PARLEY_CONNECTIONS_MAX [64]; ALLREDUCE,
                                 LOCAL_SGD and DILOCO: from 4 ceil(log2 members_max) on */
    /* TCP connections that carry the floats of one link: 1, the link's own, to PARLEY_STREAMS_MAX,
     * which then are opened beside it. Two nodes use as many as the lesser of both says. [1] */
    uint32_t streams;
    /* Memory for models and gradients of others that come in at a time, each whole: of GOSSIP_SYNC
     * and CHOCO 2 to 16, of PS_BSP, PS_ASP and PS_SSP 8 to 63, as many as that has room for; of
     * ALLREDUCE, LOCAL_SGD and DILOCO up to 4 that parts of a sum may wait in. Over a long line
     * they come side by side. [32 MiB] */
    uint64_t lanes_bytes;
    uint32_t pending_max;      /* connections before HELLO, 1 to PARLEY_CONNECTIONS_MAX [64] */
    uint64_t hello_timeout_us; /* 1 and up [5 s] */
    uint32_t queue_bytes_max;  /* unsent control bytes of one connection, at least two frames of
                                  PARLEY_CONTROL_BYTES_MAX [1 MiB] */
    /* Whether the floats of chunks carry a checksum. False, on all nodes, spares both ends a pass
     * over them where no bit can flip on the way: in a simulation. A driver that seals no chunks
     * (SEND_CHUNK in node.h) must have it false: else each that it sends ends its link. [true] */
    bool chunk_sums;

    int log_level; /* enum parley_log (node.h): the last level that is still logged [INFO] */
};

void parley_config_defaults(struct parley_config *config);

/* PARLEY_EUSAGE with a line in why[size] that names the setting, its value and the valid range;
 * '?' stands for control characters. */
PARLEY_CHECK int parley_config_check(const struct parley_config *config, char *why, size_t size);

/* How many buffers of `averaged` times `parameters` floats the driver must provide: for gossip and
 * none 6, with 3 vectors 8, one more where robust; other strategies need some on top, those of
 * lanes_bytes among them. Those of high number are written to only where others are many. */
uint32_t parley_config_buffers(const struct parley_config *config);

/* Whether steps come in two halves, GRADIENT and APPLY (node.h), in place of TRAIN. */
bool parley_strategy_splits(enum parley_strategy strategy);

/* Whether a step takes the batches of all nodes together: the rate for one batch is then too small
 * (linear scaling, Goyal et al., arXiv:1706.02677). And the mix_every that it is meant for. */
bool parley_strategy_sums_batches(enum parley_strategy strategy);
uint32_t parley_strategy_mix_every(enum parley_strategy strategy);

/* So many neighbours at most have room in a round; 0: they are not limited. */
uint32_t parley_strategy_neighbours(enum parley_strategy strategy);

#ifdef __cplusplus
}
#endif

#endif
