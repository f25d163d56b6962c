/* link.c: see link.h. */
#include "settings/values/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

/* One of `latency=50ms` and `bandwidth=10Mbit`. */
static int parse_part(const char *part, struct link_spec *link, units_why why)
{
    units_why clause;
    const char *value = strchr(part, '=');
    if (value && strncmp(part, "latency=", 8) == 0 && !link->has_latency) {
        link->has_latency = true;
        if (units_time(++value, &link->latency_us, clause))
            return units_blame(why, "latency", value, clause);
        return 0;
    }
    if (value && strncmp(part, "bandwidth=", 10) == 0 && link->bandwidth_bytes == 0) {
        if (units_rate(++value, &link->bandwidth_bytes, clause))
            return units_blame(why, "bandwidth", value, clause);
        return 0;
    }
    return units_blame(why, "part", part, "is neither latency=TIME nor bandwidth=RATE, given once");
}

int link_parse(const char *text, struct link_spec *link, units_why why)
{
    static const char form[] = "is not a link (write GROUPS:latency=TIME,bandwidth=RATE, like "
                               "n0-n3|n4-n7:latency=50ms,bandwidth=10Mbit)";
    char copy[2 * GROUPS_BYTES];
    *link = (struct link_spec){0};
    if (strlen(text) >= sizeof copy) return units_refuse(why, "is too long");
    if (!text_clean(text)) return units_refuse(why, "is not clean text");
    snprintf(copy, sizeof copy, "%s", text);
    char *part = strchr(copy, ':');
    if (!part) return units_refuse(why, form);
    *part++ = '\0';
    if (strlen(copy) >= sizeof link->groups) return units_refuse(why, "has too long groups");
    memcpy(link->groups, copy, strlen(copy) + 1);
    if (!groups_are_sane(copy))
        return units_blame(why, "groups", copy, "are not two or more (like n0,n1|n2-n9)");
    for (char *next; part; part = next) {
        next = strchr(part, ',');
        if (next) *next++ = '\0';
        int error = parse_part(part, link, why);
        if (error) return error;
    }
    return 0;
}

int links_add_list(struct links *links, const char *list, units_why why)
{
    size_t count = links->count;
    for (const char *from = list + strspn(list, " "); *from; from += strspn(from, " ")) {
        char item[2 * GROUPS_BYTES];
        size_t length = strcspn(from, " ");
        if (length >= sizeof item) return units_refuse(why, "is too long");
        if (count == LINKS_MAX) return units_refuse(why, "is one link too many (64)");
        memcpy(item, from, length);
        item[length] = '\0';
        struct link_spec *items = realloc(links->items, (count + 1) * sizeof *items);
        if (!items) return units_lack_memory(why);
        links->items = items;
        int error = link_parse(item, &items[count], why);
        if (error) return error;
        count++;
        from += length;
    }
    if (count == links->count) return units_refuse(why, "names no link");
    links->count = count;
    return 0;
}

void links_close(struct links *links)
{
    free(links->items);
    *links = (struct links){0};
}
