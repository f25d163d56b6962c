/* state.h: one life while it goes on.
 *
 * Who judges it needs to know what excuses what: `excludes` says that links were cut for longer
 * than a death takes to be found out, so that groups may have excluded each other; `apart` that
 * they may still do, as they have not been seen to be one since; `lossy` that a node died, so that
 * averaging may have lost its half.
 */
#ifndef PARLEY_SIM_SWARM_STATE_H
#define PARLEY_SIM_SWARM_STATE_H

#include "swarm/swarm.h"
#include "swarm/watch.h"
#include "world/cluster.h"

/* Sets of nodes are bits. */
enum { SWARM_NODES_MAX = 24, SWARM_AGREED_MAX = 64, SWARM_PARAMETERS = 64 };

#define SECOND UINT64_C(1000000)

/* A cut this short is never taken for a death. */
#define SWARM_SHORT_US (SECOND + SECOND / 2)

/* Who is told to stop and meets no seed gives up after five seconds. */
#define SWARM_LATE_US (5 * SECOND)

struct swarm_agreed {
    uint32_t node;
    uint64_t us;
    uint64_t boot;
    bool knew_earlier; /* a start that agreed on another model, of a node started anew since */
    bool outsider;     /* to who was done first: it was joining, stopped or not there */
    uint8_t digest[PARLEY_DIGEST_BYTES];
};

/* What most clusters leave as it is by default. All 0: so does this one. */
struct swarm_rare {
    bool is_drawn;
    uint32_t vectors, averaged;
    uint32_t members_max;
    uint32_t behind_steps_max;
    uint32_t topology_degree;
    uint32_t fragment_bytes;
    struct parley_period later; /* steps 0: none */
    bool steered, robust;
    uint32_t slower; /* in the calm some rest up to so many times longer than others */
    uint32_t acts;   /* set of the rare acts that this seed allows */
};

struct swarm {
    struct parley_sim *sim;
    struct sim_watch *watch;
    struct rng rng, asides, links, copies, rares, votes, walls; /* all but the first: what was added
                                                                   since leaves older draws as they
                                                                   were */
    struct swarm_rare rare;
    uint32_t nodes, seeds, min_peers, mix_every;
    uint32_t room;                      /* for links; 0: as is the default */
    bool narrow;                        /* as few models as can be come in at a time */
    uint32_t staleness, backup_workers; /* of strategies that have them */
    enum parley_codec codec;
    enum parley_topology topology;
    enum parley_strategy strategy;
    enum parley_quorum quorum;
    double tolerance;
    uint64_t steps, samples, time_us; /* budgets */
    uint64_t step_us;
    uint64_t start_us[SWARM_NODES_MAX];
    bool up[SWARM_NODES_MAX], joins[SWARM_NODES_MAX], outsider[SWARM_NODES_MAX];
    bool left[SWARM_NODES_MAX], full[SWARM_NODES_MAX];
    uint32_t spoilt[SWARM_NODES_MAX];    /* so often its model was */
    bool anew[SWARM_NODES_MAX];          /* it was started after the others */
    uint64_t resume_us[SWARM_NODES_MAX]; /* 0: awake */
    uint64_t heal_us;                    /* 0: no link is cut */
    uint64_t whole_us;                   /* when the last cut or pause ended */
    uint32_t hushed;                     /* set of nodes that were paused, lossy or cut off */
    uint32_t stop_at_train;              /* set of nodes that are stopped as soon as they train */
    uint32_t kinds;                      /* set of the acts that this seed allows */
    bool votes_again; /* under a majority: nodes start anew, one that has agreed among them */
    bool remembers;   /* then: it is known of those whether they have held a model */
    bool walled;      /* two that train don't reach each other from the calm on */
    bool spares;      /* seeds are neither killed nor paused, and do not leave */
    bool links_fail;  /* cuts at random, dials that come twice, clogs */
    bool excludes, apart, lossy, late;
    bool restarted;  /* a node was started after the others, or anew */
    bool overlooked; /* who locked a model did not wait for somebody up: it need not be in it */
    bool distrusts;  /* time to settle was too short for those that clip what they are told, and
                        take nobody's model that is far from their own */
    bool silent;     /* somebody may not have been heard for as long as a round waits */
    uint32_t killed;
    struct swarm_agreed agreed[SWARM_AGREED_MAX];
    uint32_t agreed_count;
    uint8_t held[SWARM_NODES_MAX][PARLEY_DIGEST_BYTES]; /* what each has said last that it holds */
    uint32_t helpless;  /* set of nodes that may have ended as their model is not finite */
    uint32_t seedless;  /* set of nodes that may have ended as a seed was not there */
    uint32_t just_done; /* set of nodes whose end is yet to be looked at */
};

enum swarm_act {
    SWARM_KILL,
    SWARM_RESTART,
    SWARM_PAUSE,
    SWARM_DISCONNECT,
    SWARM_PARTITION,
    SWARM_BLOCK,
    SWARM_LATENCY,
    SWARM_LOSS,
    SWARM_SLOW,
    SWARM_DISK,
    SWARM_LEAVE,
    SWARM_STOP,
    SWARM_ACTS
};

enum swarm_rare_act {
    SWARM_REORDER,
    SWARM_BANDWIDTH,
    SWARM_TORN,
    SWARM_SLOW_DISK,
    SWARM_SPOIL,
    SWARM_RARE_ACTS
};

uint64_t swarm_between(struct rng *rng, uint64_t low, uint64_t high);
bool swarm_chance(struct rng *rng, uint32_t one_in);

/* It is up, and has not ended. */
static inline bool swarm_goes_on(const struct swarm *s, uint32_t node)
{
    return s->up[node] && !parley_sim_finished(s->sim, node, NULL);
}

/* draw.c */
PARLEY_CHECK int swarm_draw(struct swarm *s, uint64_t seed, int strategy);

/* life.c */
void swarm_excludes(struct swarm *s);   /* from now on groups may be apart */
void swarm_fire(struct swarm *s);       /* random acts */
void swarm_vote_again(struct swarm *s); /* one that has agreed starts anew among some cut off */
void swarm_calm(struct swarm *s);       /* all faults end */
void swarm_stop(struct swarm *s);       /* an operator stops it; all must end */

/* verdict.c: the node has just come to that phase, ... */
void swarm_proposed(struct swarm *s, uint32_t node);
void swarm_held(struct swarm *s, uint32_t node);
void swarm_locked(struct swarm *s, uint32_t node);
void swarm_done(struct swarm *s, uint32_t node);
void swarm_diverged(struct swarm *s, uint32_t node); /* ... or ended, its model not being finite */
void swarm_seedless(struct swarm *s, uint32_t node); /* ... or ended, no seed having answered */
void swarm_views(struct swarm *s);                   /* in the calm: all see who is there */
void swarm_meet(struct swarm *s);                    /* if they do, they are apart no longer */
void swarm_judge(struct swarm *s);                   /* all is over */

/* Lets `us` of virtual time pass, or less: until everything has ended. False once the simulation
 * stands. */
bool swarm_run(struct swarm *s, uint64_t us);

#endif
