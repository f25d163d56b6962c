/* partition.h: which node trains on which samples of the common data.
 *
 * All nodes hold the same data set and compute the same partition from the same task, without a
 * word between them: a pure function of the labels, the seed and the *set* of names.
 *
 *   iid              blocks of a shuffle, given to names by rendezvous hashing: a member that comes
 *                    or goes moves its own blocks only (Thaler and Ravishankar, "Using name-based
 *                    mappings to increase hit rates", IEEE/ACM Trans. Networking 6(1), 1998)
 *   shards           sorted by label, cut in 2n shards, two a node (McMahan et al., AISTATS 2017,
 *                    section 3)
 *   dirichlet:ALPHA  per class, shares of the nodes drawn from Dirichlet(ALPHA) (Hsu, Qi, Brown,
 *                    arXiv:1909.06335, turned round: classes over nodes)
 *   all              every node has everything
 *
 * But for `all`, each sample has one owner and each node at least one sample: where a draw leaves a
 * node with none, the node with most gives it one unit (a block in iid, else a sample).
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_PARTITION_H
#define PARLEY_DATA_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "parley/error.h"

#define PARTITION_MEMBERS_MAX 16384
#define PARTITION_ALPHA_MAX 1e6

enum partition_kind {
    PARTITION_IID,
    PARTITION_SHARDS,
    PARTITION_DIRICHLET,
    PARTITION_ALL,
};

struct partition_spec {
    enum partition_kind kind;
    double alpha; /* of dirichlet, in (0, PARTITION_ALPHA_MAX] */
};

struct partition_task {
    struct partition_spec spec;
    const uint16_t *labels; /* [count], each below classes */
    uint32_t count, classes;
    const char *const *names; /* [members] in any order; NULL: the members are called 0, 1, ... */
    uint32_t members;
    uint64_t seed;
};

/* "iid", "shards", "dirichlet:0.5", "all". PARLEY_EUSAGE with a message. */
PARLEY_CHECK int partition_parse(struct partition_spec *spec, const char *text, char *why,
                                 size_t why_size);

/* owner: [count], for each sample the owner's rank: its place among the names in strcmp's order, or
 * its number where there are none. Not for `all`. PARLEY_EUSAGE with a message (no members, too
 * many of them or for the data, a name twice), PARLEY_ENOMEM. */
PARLEY_CHECK int partition_owners(const struct partition_task *task, uint32_t *owner, char *why,
                                  size_t why_size);

/* Of a name among names[count] in strcmp's order: its place; UINT32_MAX: it is not there. */
uint32_t partition_rank(const char *const *names, uint32_t count, const char *name);

/* The share of one member as a new ascending array for the caller to free. `self` is its name;
 * NULL: shard number `shard` of a task without names (--shard I/N). Errors as above, and
 * PARLEY_EUSAGE if self is not among the names or shard not below members. */
PARLEY_CHECK int partition_share(const struct partition_task *task, const char *self,
                                 uint32_t shard, uint32_t **share, uint32_t *share_count, char *why,
                                 size_t why_size);

/* A member that no longer lives, and how far it had come with its share: sampler.h's place. */
struct partition_gone {
    const char *name;
    uint64_t place;
};

/* For the share of `self`, iid: how far each sample was visited by those who had it before, which
 * is the furthest of the gone who stand before `self` in its block's order; UINT64_MAX where there
 * is none. due: [share_count]. PARLEY_ENOMEM. */
PARLEY_CHECK int partition_due(const struct partition_task *task, const char *self,
                               const struct partition_gone *gone, uint32_t gone_count,
                               const uint32_t *share, uint32_t share_count, uint64_t *due);

#endif
