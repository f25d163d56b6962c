/* seeds.c: items are parsed one by one; a list that fails half-way is cut back to what it was. */
#include "settings/values/seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

/* `has the item "n1:x", which has no valid port...` */
static int blame(units_why why, const char *item, const char *clause)
{
    return units_blame(why, "item", item, clause);
}

static int parse_item(const char *item, struct seed *seed, units_why why)
{
    units_why clause;
    *seed = (struct seed){.kind = SEED_ADDRESS};
    if (!text_clean(item)) return blame(why, item, "is not clean text");
    if (item[0] == '@') {
        seed->kind = SEED_FILE;
        if (item[1] == '\0') return blame(why, item, "names no file");
        if (strlen(item + 1) >= sizeof seed->path) return blame(why, item, "is too long");
        snprintf(seed->path, sizeof seed->path, "%s", item + 1);
        return 0;
    }
    const char *address = item;
    if (strncmp(item, "dns:", 4) == 0) {
        seed->kind = SEED_DNS;
        address += 4;
    }
    if (units_address(address, &seed->address, clause)) return blame(why, item, clause);
    if (seed->address.port == 0) return blame(why, item, "has port 0, which can't be dialled");
    return 0;
}

static int add(struct seeds *seeds, const char *item, units_why why)
{
    struct seed seed;
    int error = parse_item(item, &seed, why);
    if (error) return error;
    if (seeds->count == SEEDS_MAX) {
        snprintf(why, UNITS_WHY_BYTES, "has more than %d seeds", SEEDS_MAX);
        return PARLEY_EUSAGE;
    }
    if ((seeds->count & (seeds->count - 1)) == 0) { /* full at each power of two */
        size_t capacity = seeds->count ? seeds->count * 2 : 1;
        struct seed *items = realloc(seeds->items, capacity * sizeof *items);
        if (!items) return units_lack_memory(why);
        seeds->items = items;
    }
    seeds->items[seeds->count++] = seed;
    return 0;
}

/* Copies [from, end) without the blanks around it; false if longer than any item may be. */
static bool trim(const char *from, const char *end, char item[512])
{
    while (from < end && strchr(" \t\r", *from))
        from++;
    while (end > from && strchr(" \t\r", end[-1]))
        end--;
    if (end - from >= 512) return false;
    memcpy(item, from, (size_t)(end - from));
    item[end - from] = '\0';
    return true;
}

/* What lies past the count is overwritten by later items; add() grows what it finds. */
static int cut_back(struct seeds *seeds, size_t count, int error)
{
    seeds->count = count;
    return error;
}

int seeds_add_list(struct seeds *seeds, const char *list, units_why why)
{
    size_t before = seeds->count;
    for (const char *from = list;;) {
        const char *end = from + strcspn(from, ",");
        char item[512];
        if (!trim(from, end, item)) return cut_back(seeds, before, blame(why, from, "is too long"));
        int error = item[0] == '\0' ? blame(why, item, "is empty") : add(seeds, item, why);
        if (error) return cut_back(seeds, before, error);
        if (*end == '\0') return 0;
        from = end + 1;
    }
}

static int add_line(struct seeds *seeds, const char *from, const char *end, units_why why)
{
    char item[512];
    const char *comment = memchr(from, '#', (size_t)(end - from));
    if (comment) end = comment;
    if (memchr(from, '\0', (size_t)(end - from))) return units_refuse(why, "holds a zero byte");
    if (!trim(from, end, item)) return units_refuse(why, "is too long");
    if (item[0] == '\0') return 0;
    if (item[0] == '@') return blame(why, item, "names a further file");
    return add(seeds, item, why);
}

int seeds_add_file(struct seeds *seeds, const char *bytes, size_t size, units_why why)
{
    size_t before = seeds->count;
    if (size > SEEDS_FILE_BYTES_MAX) return units_refuse(why, "is larger than 1 MiB");
    const char *from = bytes, *stop = bytes + size;
    for (unsigned line = 1; from < stop; line++) {
        const char *end = memchr(from, '\n', (size_t)(stop - from));
        if (!end) end = stop;
        units_why clause;
        int error = add_line(seeds, from, end, clause);
        if (error) {
            snprintf(why, UNITS_WHY_BYTES, "line %u %.*s", line, 230, clause);
            return cut_back(seeds, before, error);
        }
        from = end + 1;
    }
    return 0;
}

void seeds_close(struct seeds *seeds)
{
    free(seeds->items);
    *seeds = (struct seeds){0};
}
