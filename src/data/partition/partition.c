/* partition.c: the partition's way in: reads the spec, ranks the names, collects a share.
 *
 * Happy path: partition_share ranks the names, has partition_draw fill in each sample's owner and
 * collects the samples of one rank.
 * Failure: a bad spec; no members or more than the data can feed; a name twice or missing.
 */
#include "data/partition/partition.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/rng.h"
#include "data/formats/number.h"
#include "data/partition/partition_draw.h"

int partition_parse(struct partition_spec *spec, const char *text, char *why, size_t why_size)
{
    static const char *const plain[] = {"iid", "shards", NULL, "all"};
    static const char dirichlet[] = "dirichlet:";

    for (int kind = PARTITION_IID; kind <= PARTITION_ALL; kind++) {
        if (!plain[kind] || strcmp(text, plain[kind]) != 0) continue;
        *spec = (struct partition_spec){.kind = (enum partition_kind)kind};
        return 0;
    }
    if (strncmp(text, dirichlet, sizeof dirichlet - 1) != 0) {
        snprintf(why, why_size, "--partition: \"%s\" is none of iid, shards, dirichlet:ALPHA, all",
                 text);
        return PARLEY_EUSAGE;
    }
    const char *number = text + sizeof dirichlet - 1;
    double alpha;
    if (!number_parse(number, strlen(number), &alpha) || alpha <= 0 ||
        alpha > PARTITION_ALPHA_MAX) {
        snprintf(why, why_size,
                 "--partition: \"%s\" has no number above 0 and at most %.0f, like dirichlet:0.1",
                 text, PARTITION_ALPHA_MAX);
        return PARLEY_EUSAGE;
    }
    *spec = (struct partition_spec){.kind = PARTITION_DIRICHLET, .alpha = alpha};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_members(const struct partition_task *task, char *why, size_t why_size)
{
    /* shards needs two shards a node, of a sample at least. */
    uint64_t needed = (uint64_t)task->members * (task->spec.kind == PARTITION_SHARDS ? 2 : 1);
    const char *problem = NULL;
    if (task->members == 0) problem = "no members to share the data";
    if (task->members > PARTITION_MEMBERS_MAX) problem = "too many members";
    if (task->spec.kind != PARTITION_ALL && needed > task->count) problem = "too few samples";
    if (!problem) return 0;
    snprintf(why, why_size, "%s: %" PRIu32 " samples, %" PRIu32 " members (at most %d)", problem,
             task->count, task->members, PARTITION_MEMBERS_MAX);
    return PARLEY_EUSAGE;
}

/* The names in order, for the caller to free; NULL for a task without names. */
static int sort_names(const struct partition_task *task, const char ***sorted, char *why,
                      size_t why_size)
{
    *sorted = NULL;
    int error = check_members(task, why, why_size);
    if (error || !task->names) return error;
    const char **names = malloc(task->members * sizeof *names);
    if (!names) return PARLEY_ENOMEM;
    memcpy(names, task->names, task->members * sizeof *names);
    qsort(names, task->members, sizeof *names, by_name);
    for (uint32_t m = 1; m < task->members; m++) {
        if (strcmp(names[m - 1], names[m]) != 0) continue;
        snprintf(why, why_size, "two members are called %s", names[m]);
        free(names);
        return PARLEY_EUSAGE;
    }
    *sorted = names;
    return 0;
}

static uint64_t name_key(const char *name)
{
    return XXH64(name, strlen(name), 0);
}

/* names: sorted, or NULL. */
static int find_owners(const struct partition_task *task, const char **names, uint32_t *owner)
{
    uint64_t *keys = malloc(task->members * sizeof *keys);
    if (!keys) return PARLEY_ENOMEM;
    for (uint32_t m = 0; m < task->members; m++)
        keys[m] = names ? name_key(names[m]) : rng_mix(m + UINT64_C(1));
    int error = partition_draw(task, keys, owner);
    free(keys);
    return error;
}

int partition_owners(const struct partition_task *task, uint32_t *owner, char *why, size_t why_size)
{
    const char **names;
    int error = sort_names(task, &names, why, why_size);
    if (error) return error;
    error = find_owners(task, names, owner);
    free(names);
    return error;
}

uint32_t partition_rank(const char *const *names, uint32_t count, const char *name)
{
    const char *const *found = bsearch(&name, names, count, sizeof *names, by_name);
    return found ? (uint32_t)(found - names) : UINT32_MAX;
}

static int find_rank(const struct partition_task *task, const char **names, const char *self,
                     uint32_t shard, uint32_t *rank, char *why, size_t why_size)
{
    assert((self != NULL) == (names != NULL));
    if (!names) {
        *rank = shard;
        if (shard < task->members) return 0;
        snprintf(why, why_size, "no shard %" PRIu32 " of %" PRIu32 ": they count from 0", shard,
                 task->members);
        return PARLEY_EUSAGE;
    }
    *rank = partition_rank(names, task->members, self);
    if (*rank < task->members) return 0;
    snprintf(why, why_size, "%s is not among the members", self);
    return PARLEY_EUSAGE;
}

/* The samples whose owner is `rank`; all of them if owner is NULL. */
static int collect(const uint32_t *owner, uint32_t count, uint32_t rank, uint32_t **share,
                   uint32_t *share_count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += !owner || owner[i] == rank;
    uint32_t *out = malloc((n ? n : 1) * sizeof *out);
    if (!out) return PARLEY_ENOMEM;
    n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!owner || owner[i] == rank) out[n++] = i;
    *share = out;
    *share_count = n;
    return 0;
}

int partition_share(const struct partition_task *task, const char *self, uint32_t shard,
                    uint32_t **share, uint32_t *share_count, char *why, size_t why_size)
{
    const char **names;
    uint32_t rank, *owner = NULL;
    int error = sort_names(task, &names, why, why_size);
    if (error) return error;
    error = find_rank(task, names, self, shard, &rank, why, why_size);
    if (error) goto out;
    if (task->spec.kind != PARTITION_ALL) {
        owner = malloc(task->count * sizeof *owner);
        error = owner ? find_owners(task, names, owner) : PARLEY_ENOMEM;
        if (error) goto out;
    }
    error = collect(owner, task->count, rank, share, share_count);
out:
    free(owner);
    free(names);
    return error;
}

int partition_due(const struct partition_task *task, const char *self,
                  const struct partition_gone *gone, uint32_t gone_count, const uint32_t *share,
                  uint32_t share_count, uint64_t *due)
{
    for (uint32_t i = 0; i < share_count; i++)
        due[i] = UINT64_MAX;
    if (gone_count == 0) return 0;
    uint64_t *block_key = malloc(task->count * sizeof *block_key);
    int error = block_key ? partition_block_keys(task, block_key) : PARLEY_ENOMEM;
    uint64_t self_key = name_key(self);
    for (uint32_t g = 0; g < gone_count && !error; g++) {
        uint64_t gone_key = name_key(gone[g].name);
        for (uint32_t i = 0; i < share_count; i++) {
            uint64_t key = block_key[share[i]];
            if (partition_weight(gone_key, key) <= partition_weight(self_key, key)) continue;
            if (due[i] == UINT64_MAX || due[i] < gone[g].place) due[i] = gone[g].place;
        }
    }
    free(block_key);
    return error;
}
