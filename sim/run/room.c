/* room.c: see room.h.
 *
 * Swap counts as memory, beside a control group's limit, too, and what this process has already is
 * not taken off: rather let a simulation begin that can't end than refuse one that can.
 */
#include "run/room.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "report/human.h"

enum { LINE_BYTES = 4096 };

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* "max" is none. */
static uint64_t read_limit(const char *path)
{
    uint64_t limit = UINT64_MAX;
    FILE *file = fopen(path, "r");
    if (!file) return limit;
    if (fscanf(file, "%" SCNu64, &limit) != 1) limit = UINT64_MAX;
    fclose(file);
    return limit;
}

/* Of the group at this path below `root` and of all above it. In a container the path may be the
 * host's, of which only the root is there. */
static uint64_t limit_above(const char *root, char *path, const char *name)
{
    char file[4 * LINE_BYTES];
    uint64_t limit = UINT64_MAX;
    for (char *end = path + strlen(path); end; end = strrchr(path, '/')) {
        *end = '\0';
        snprintf(file, sizeof file, "%s%s/%s", root, path, name);
        limit = least(limit, read_limit(file));
    }
    return limit;
}

/* A line is "number:controllers:/path"; without controllers it is of version 2. */
uint64_t sim_room_groups(const char *list, const char *root)
{
    char line[LINE_BYTES], memory[LINE_BYTES];
    uint64_t limit = UINT64_MAX;
    FILE *file = fopen(list, "r");
    snprintf(memory, sizeof memory, "%s/memory", root);
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (controllers[1] == '\0')
            limit = least(limit, limit_above(root, path, "memory.max"));
        else if (strcmp(controllers, ":memory") == 0)
            limit = least(limit, limit_above(memory, path, "memory.limit_in_bytes"));
    }
    if (file) fclose(file);
    return limit;
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    bool known = !getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY;
    return known ? limit.rlim_cur : UINT64_MAX;
}

/* Bytes that this process may have at the most. */
static uint64_t room(void)
{
    uint64_t most = least(limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA));
    struct sysinfo info;
    if (sysinfo(&info)) return most;
    uint64_t swap = (uint64_t)info.totalswap * info.mem_unit;
    uint64_t groups = sim_room_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    return least(most, least((uint64_t)info.totalram * info.mem_unit, groups) + swap);
}

int sim_room_check(uint32_t nodes, uint32_t vectors, uint64_t parameters, char *why, size_t size)
{
    uint64_t each = vectors * parameters * sizeof(float), most = room();
    char one[HUMAN_BYTES], all[HUMAN_BYTES], may[HUMAN_BYTES];
    if (each <= most / nodes) return 0;
    snprintf(why, size,
             "sim: %" PRIu32 " nodes take %s of memory at least, %s each for the model%s, and this "
             "process may have %s: take fewer --nodes or a smaller --model",
             nodes, human_bytes(all, nodes * each), human_bytes(one, each),
             vectors > 1 ? " and what the optimizer keeps" : "", human_bytes(may, most));
    return PARLEY_ENOMEM;
}
