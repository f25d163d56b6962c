/* live.c: see live.h. */
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "loop.h"

int live_init(struct loop *loop, uint32_t members_max, const char *name)
{
    loop->live = malloc((size_t)members_max * sizeof *loop->live);
    loop->live_names = malloc((size_t)members_max * sizeof *loop->live_names);
    loop->gone = malloc((size_t)members_max * sizeof *loop->gone);
    int error = loop->live && loop->live_names && loop->gone ? PARLEY_OK : PARLEY_ENOMEM;
    if (!error && uv_mutex_init(&loop->live_lock)) error = PARLEY_EFAIL;
    if (!error) { /* as its node will say once it is told to start */
        snprintf(loop->live[0], sizeof loop->live[0], "%s", name);
        loop->live_count = 1;
        return PARLEY_OK;
    }
    free(loop->gone);
    free(loop->live_names);
    free(loop->live);
    return error;
}

void live_close(struct loop *loop)
{
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

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Of one name the furthest first. */
static int by_name_and_place(const void *a, const void *b)
{
    const struct parley_gone *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : (one->place < other->place) - (one->place > other->place);
}

/* Each start of a process is a member of its own: under one name several may have died, and another
 * live. */
static void refresh_gone(struct loop *loop)
{
    struct parley_member member;
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < parley_node_members(loop->node); i++) {
        parley_node_member(loop->node, i, &member);
        bool lives =
            bsearch(member.name, loop->live, loop->live_count, sizeof *loop->live, by_name);
        if (lives || member.place == 0) continue;
        loop->gone[count].place = member.place;
        snprintf(loop->gone[count++].name, PARLEY_NAME_SIZE, "%s", member.name);
    }
    qsort(loop->gone, count, sizeof *loop->gone, by_name_and_place);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(loop->gone[kept - 1].name, loop->gone[i].name) != 0)
            loop->gone[kept++] = loop->gone[i];
    loop->gone_count = kept;
}

/* Once this node has left, all stays as it was: its trainer may only now be at the share of the
 * data that the last change gave it, and looks for its own name. */
void live_refresh(struct loop *loop)
{
    struct parley_member self;
    parley_node_member(loop->node, 0, &self);
    if (self.state == PARLEY_MEMBER_LEFT) return;
    uv_mutex_lock(&loop->live_lock);
    uint64_t before = digest(loop);
    loop->live_count = parley_node_live(loop->node, loop->live_names);
    for (uint32_t i = 0; i < loop->live_count; i++)
        snprintf(loop->live[i], sizeof loop->live[i], "%s", loop->live_names[i]);
    refresh_gone(loop);
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
