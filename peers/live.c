/* live.c: see live.h. */
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "loop.h"

int live_init(struct loop *loop, uint32_t members_max)
{
    loop->live_room = members_max;
    loop->live = malloc((size_t)members_max * sizeof *loop->live);
    if (!loop->live) return PARLEY_ENOMEM;
    if (!uv_mutex_init(&loop->live_lock)) return PARLEY_OK;
    free(loop->live);
    loop->live = NULL;
    return PARLEY_EFAIL;
}

void live_close(struct loop *loop)
{
    if (!loop->live) return;
    uv_mutex_destroy(&loop->live_lock);
    free(loop->live);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static uint64_t digest(const struct loop *loop)
{
    uint64_t digest = loop->live_count;
    for (uint32_t i = 0; i < loop->live_count; i++)
        digest = XXH3_64bits_withSeed(loop->live[i], strlen(loop->live[i]), digest);
    return digest;
}

void live_refresh(struct loop *loop)
{
    if (!loop->live_stale) return;
    loop->live_stale = false;
    uv_mutex_lock(&loop->live_lock);
    uint64_t before = digest(loop);
    loop->live_count = 0;
    uint32_t count = parley_node_members(loop->node);
    for (uint32_t i = 0; i < count && loop->live_count < loop->live_room; i++) {
        struct parley_member member;
        parley_node_member(loop->node, i, &member);
        if (member.state != PARLEY_MEMBER_ALIVE && member.state != PARLEY_MEMBER_SUSPECT) continue;
        snprintf(loop->live[loop->live_count++], PARLEY_NAME_SIZE, "%s", member.name);
    }
    qsort(loop->live, loop->live_count, sizeof *loop->live, by_name);
    if (digest(loop) != before) atomic_fetch_add(&loop->live_turnover, 1);
    uv_mutex_unlock(&loop->live_lock);
}

uint32_t live_copy(struct loop *loop, char (*names)[PARLEY_NAME_SIZE], uint32_t max)
{
    uv_mutex_lock(&loop->live_lock);
    uint32_t count = loop->live_count;
    memcpy(names, loop->live, (count < max ? count : max) * sizeof *names);
    uv_mutex_unlock(&loop->live_lock);
    return count;
}
