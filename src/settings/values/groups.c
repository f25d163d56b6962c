/* groups.c: see groups.h. */
#include "settings/values/groups.h"

#include <stddef.h>
#include <string.h>

struct run {
    const char *text; /* where it stands */
    uint32_t group;
    uint64_t first, last;
};

/* `n12`, without superfluous zeros; *at is left after it. */
static bool read_node(const char **at, uint64_t *node)
{
    const char *digits = *at + 1;
    size_t count = **at == 'n' ? strspn(digits, "0123456789") : 0;
    if (count == 0 || count > 9 || (digits[0] == '0' && count > 1)) return false;
    *node = 0;
    for (size_t i = 0; i < count; i++)
        *node = 10 * *node + (uint64_t)(digits[i] - '0');
    *at = digits + count;
    return true;
}

/* Reads one run at *at, and the mark after it. */
static bool read_run(const char **at, uint32_t *group, struct run *run)
{
    *run = (struct run){.text = *at, .group = *group};
    if (!read_node(at, &run->first)) return false;
    run->last = run->first;
    if (**at == '-') {
        ++*at;
        if (!read_node(at, &run->last) || run->last < run->first) return false;
    }
    if (**at == '\0') return true;
    if (**at != ',' && **at != '|') return false;
    *group += **at == '|';
    ++*at;
    return **at != '\0';
}

/* True if one of the runs before `next` has a node of it too. */
static bool is_there(const char *groups, const struct run *next)
{
    uint32_t group = 0;
    struct run run;
    for (const char *at = groups; at < next->text && read_run(&at, &group, &run);)
        if (run.first <= next->last && next->first <= run.last) return true;
    return false;
}

bool groups_are_sane(const char *groups)
{
    uint32_t group = 0;
    struct run run;
    for (const char *at = groups; *at;)
        if (!read_run(&at, &group, &run) || is_there(groups, &run)) return false;
    return group > 0;
}

int groups_find(const char *groups, uint64_t node)
{
    uint32_t group = 0;
    struct run run;
    for (const char *at = groups; *at && read_run(&at, &group, &run);)
        if (run.first <= node && node <= run.last) return (int)run.group;
    return GROUPS_NONE;
}

uint64_t groups_last(const char *groups)
{
    uint32_t group = 0;
    uint64_t last = 0;
    struct run run;
    for (const char *at = groups; *at && read_run(&at, &group, &run);)
        if (run.last > last) last = run.last;
    return last;
}
