/* live.c: see live.h. */
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "loop.h"

int live_init(struct loop *loop, uint32_t members_max)
{
    loop->live = malloc((size_t)members_max * sizeof *loop->live);
    loop->live_names = malloc((size_t)members_max * sizeof *loop->live_names);
    loop->gone = malloc((size_t)members_max * sizeof *loop->gone);
    int error = loop->live && loop->live_names && loop->gone ? PARLEY_OK : PARLEY_ENOMEM;
    if (!error && uv_mutex_init(&loop->live_lock)) error = PARLEY_EFAIL;
    if (!error) return error;
    free(loop->gone);
    free(loop->live_names);
    free(loop->live);
    loop->live = NULL;
    return error;
}

void live_close(struct loop *loop)
{
    if (!loop->live) return;
    uv_mutex_destroy(&loop->live_lock);
    free(loop->gone);
    free(loop->live_names);
    free(loop->live);
}

static uint64_t digest(const struct loop *loop)
{
    uint64_t digest = loop->live_count;
    for (uint32_t i = 0; i < loop->live_count; i++)
        digest = XXH3_64bits_withSeed(loop->live[i], strlen(loop->live[i]), digest);
    return digest;
}

static struct parley_gone as_gone(const struct parley_member *member)
{
    struct parley_gone gone = {.place = member->place};
    snprintf(gone.name, sizeof gone.name, "%s", member->name);
    return gone;
}

void live_refresh(struct loop *loop)
{
    if (!loop->live_stale) return;
    loop->live_stale = false;
    uv_mutex_lock(&loop->live_lock);
    uint64_t before = digest(loop);
    loop->live_count = parley_node_live(loop->node, loop->live_names);
    for (uint32_t i = 0; i < loop->live_count; i++)
        snprintf(loop->live[i], sizeof loop->live[i], "%s", loop->live_names[i]);
    loop->gone_count = 0;
    for (uint32_t i = 0; i < parley_node_members(loop->node); i++) {
        struct parley_member member;
        parley_node_member(loop->node, i, &member);
        bool lives = member.state == PARLEY_MEMBER_ALIVE || member.state == PARLEY_MEMBER_SUSPECT;
        if (!lives && member.place > 0) loop->gone[loop->gone_count++] = as_gone(&member);
    }
    if (digest(loop) != before) atomic_fetch_add(&loop->live_turnover, 1);
    uv_mutex_unlock(&loop->live_lock);
}

uint32_t live_copy(struct loop *loop, char (*names)[PARLEY_NAME_SIZE], uint32_t max)
{
    uv_mutex_lock(&loop->live_lock);
    uint32_t count = loop->live_count;
    if (max > 0) memcpy(names, loop->live, (count < max ? count : max) * sizeof *names);
    uv_mutex_unlock(&loop->live_lock);
    return count;
}

uint32_t live_gone(struct loop *loop, struct parley_gone *gone, uint32_t max)
{
    uv_mutex_lock(&loop->live_lock);
    uint32_t count = loop->gone_count;
    if (max > 0) memcpy(gone, loop->gone, (count < max ? count : max) * sizeof *gone);
    uv_mutex_unlock(&loop->live_lock);
    return count;
}
