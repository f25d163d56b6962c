/* roster.h: the table of member records, its indices, and what is counted over it.
 *
 * A node has one of its own, fed by gossip (merge.c). A simulation of very many nodes may give
 * them one in common (parley_roster in node.h), in which each writes its own record: then there is
 * nothing to gossip, and the driver tells who died.
 *
 * Whoever changes a record says so with roster_changed(): that numbers the change, for gossip.c,
 * and keeps the counts, so that no event has to look at all members.
 *
 * Thread rule: as the node's; a shared one belongs to the thread of all its nodes.
 */
#ifndef PARLEY_CORE_ROSTER_H
#define PARLEY_CORE_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/topology/topology.h"
#include "core/wire/message.h"
#include "parley/node.h"

enum {
    NONE = -1,
    SKETCHES_MAX =
        MESSAGE_SKETCHES_MAX, /* members whose sketches are kept: a sample where there are more */
    ROSTER_FORGOTTEN = 16,
    ROSTER_LOOK_US = 10000 /* where it is shared nobody tells who waits for others: it looks */
};

/* What is counted. A member may be in several classes. */
enum roster_class {
    ROSTER_LIVE,    /* alive or suspect */
    ROSTER_KNOWN,   /* has not left, or only after it agreed */
    ROSTER_WAITED,  /* live and in TRAIN to LOCKED: decisions wait for it */
    ROSTER_JOINING, /* live and in JOINING */
    ROSTER_TRAINS,  /* live and in TRAIN */
    ROSTER_ENDING,  /* live and in STOP to DONE */
    ROSTER_STOPPED, /* not dead, and has raised STOP */
    ROSTER_DONE,    /* not dead, and in DONE */
    ROSTER_SERVES,  /* live and in DONE */
    ROSTER_UNMADE,  /* joins or trains, not aside, and has not made its budget of steps */
    /* Of those waited for, who ... */
    ROSTER_SETTLES,    /* is in SETTLE or beyond */
    ROSTER_FAR,        /* is in SETTLE and has not said that it is near the others' models */
    ROSTER_UNMEASURED, /* has proposed, without having measured itself against others */
    ROSTER_DISTRUSTS,  /* distrusts somebody */
    ROSTER_HAS_LOCK,   /* has locked, in whichever generation */
    ROSTER_PROPOSED,   /* is in PROPOSED or beyond, HELD, LOCKED, in the newest generation */
    ROSTER_HELD,
    ROSTER_LOCKED,
    ROSTER_CLASSES
};

/* Members in the order of their newest change, newest first; links are indices or NONE. For gossip:
 * a shared roster does not keep the order, as in each step three members would be fetched for it.
 */
enum roster_list {
    ROSTER_ANY,  /* of any change */
    ROSTER_NEWS, /* of the newest change that was more than progress */
    ROSTER_LISTS
};

struct roster_place {
    uint64_t change[ROSTER_LISTS]; /* numbers of its newest changes */
    int32_t newer[ROSTER_LISTS], older[ROSTER_LISTS];
    uint64_t samples, steps, fetched, digest; /* as counted; of what is held, first bytes */
    uint64_t kept, kept_all;                  /* likewise, of what its file tells; ... */
    bool twice;                               /* ... nothing: that is counted by itself */
    uint32_t classes;                         /* bits, likewise */
    uint32_t live;   /* of a live member: its place among them, as roster_topology() left it */
    uint32_t waited; /* of one waited for: likewise, as roster_waited() left it */
};

/* Who was forgotten, should it be back, or a later life of its name tell of it: it must not count
 * twice. */
struct roster_forgotten {
    char name[PARLEY_NAME_SIZE];
    uint64_t boot, samples, kept;
};

/* Whose sketches tell the drift: drift.c. Good for one number of `sampled`. */
struct roster_sample {
    uint64_t sampled;
    int32_t members[SKETCHES_MAX]; /* [count], those waited for of the least rank, by rank */
    uint64_t ranks[SKETCHES_MAX];
    uint32_t count;
};

struct sketch {
    uint64_t boot;
    uint32_t version; /* 0: free */
    uint64_t change;
    float *buckets; /* [MESSAGE_BUCKETS] */
};

struct parley_roster {
    struct record *records;      /* [count of max] */
    struct roster_place *places; /* [count of max] */
    uint32_t *line;              /* [count of max], members by name, of one name by boot */
    uint32_t *live;              /* [topology.n of max], the live ones of them, likewise */
    uint32_t *waited;            /* [counts[ROSTER_WAITED] of max], those waited for */
    uint32_t count, max;
    bool shared;    /* by many nodes */
    int32_t *index; /* [index_mask + 1], boot to record */
    uint32_t index_mask;
    uint64_t steps_budget; /* for ROSTER_UNMADE; 0: none */
    uint64_t change;       /* of the newest change */
    uint64_t news;         /* of the newest that was more than progress */
    int32_t newest[ROSTER_LISTS];
    uint64_t turnover;          /* counts comings and goings of live members */
    uint64_t waits;             /* likewise of those waited for, ... */
    uint64_t waited_waits;      /* ... and what it was when `waited` was made */
    uint64_t knows;             /* likewise of those known, and of the live, ... */
    uint64_t known_knows;       /* ... what it was when `known` was counted, ... */
    uint32_t known;             /* ... and that */
    uint64_t among;             /* a sum over those waited for: for each set of them another one */
    uint32_t generation;        /* the newest of those waited for, at least 1 */
    uint64_t holds;             /* counts changes of what is held in it, and by whom, ... */
    uint64_t one_holds;         /* ... what it was when said.c looked last, and whether that was */
    bool one_digest;            /* one digest */
    struct topology topology;   /* of the live; its table is owned */
    uint64_t topology_turnover; /* that it is of */
    uint64_t sampled;           /* counts changes of who is waited for and measured */
    struct roster_sample sample;
    struct sketch sketches[SKETCHES_MAX];
    uint64_t sketched; /* counts changes of them */
    uint32_t counts[ROSTER_CLASSES];
    uint64_t samples, samples_gone; /* of all members ever seen; of those no longer live, ... */
    uint64_t samples_absent;        /* ... and in both, of members of a cluster that was killed and
                                       goes on from its files, as far as they are not back, ... */
    uint64_t samples_forgotten;     /* ... and of those whose places went to others: */
    struct roster_forgotten forgotten[ROSTER_FORGOTTEN]; /* the last of them, in a ring */
    uint32_t forgotten_next;
    uint64_t kept, kept_all; /* of what files tell: the members' own, and the most of all */
    bool files;              /* anything was ever told of any */
    uint64_t steps;          /* of the live */
    uint64_t fetched; /* bytes of picked models, of all there ever were: looked at for a change */
};

/* PARLEY_ENOMEM. `max` is at least 1. */
PARLEY_CHECK int roster_init(struct parley_roster *roster, uint32_t max, uint64_t steps_budget);
void roster_close(struct parley_roster *roster);
/* Room for the topology of its members; of a shared roster the first call counts. PARLEY_ENOMEM. */
PARLEY_CHECK int roster_use_topology(struct parley_roster *roster,
                                     const struct parley_config *config);
/* Of the live members, in the order of their names: of roster->live. Until the next turnover. */
const struct topology *roster_topology(struct parley_roster *roster, uint64_t seed);
/* [counts[ROSTER_WAITED]], members in the order of their names. Until one comes or goes. */
const uint32_t *roster_waited(struct parley_roster *roster);

int roster_find(const struct parley_roster *roster, uint64_t boot);
/* Another live member of that name than `boot`; NONE if there is none. */
int roster_namesake(const struct parley_roster *roster, const char *name, uint64_t boot);
/* The members of that name, in any order, live or not: *at is 0 for the first. NONE: that was all.
 */
int roster_named(const struct parley_roster *roster, const char *name, uint32_t *at);
/* Adds boot, name and address, as DEAD until said otherwise. NONE: the table is full. */
int roster_add(struct parley_roster *roster, const struct record *record);
/* The same, at the place of one that is not live, and is forgotten but for its samples. */
void roster_replace(struct parley_roster *roster, int member, const struct record *record);
/* The record was changed; news is more than progress. */
void roster_changed(struct parley_roster *roster, int member, bool news);
/* Names ever seen that have not left of their own will; who left after it agreed still counts. A
 * name counts as often as live members have it. */
uint32_t roster_known(struct parley_roster *roster);
/* What it has made, but for what is known of a former life of its name. */
uint64_t roster_samples(const struct parley_roster *roster, int member);

static inline bool record_is_live(const struct record *r)
{
    return r->state == PARLEY_MEMBER_ALIVE || r->state == PARLEY_MEMBER_SUSPECT;
}

/* It has but said hello: what it does nobody knows yet. */
static inline bool record_is_stranger(const struct record *r)
{
    return record_is_live(r) && r->clock == 0;
}

static inline bool record_is_waited_for(const struct record *r)
{
    return record_is_live(r) && r->phase >= PARLEY_PHASE_TRAIN && r->phase <= PARLEY_PHASE_LOCKED;
}

static inline bool roster_in(const struct parley_roster *roster, uint32_t member,
                             enum roster_class class)
{
    return roster->places[member].classes >> class & 1u;
}

#endif
