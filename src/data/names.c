/* names.c: see names.h. One block of text, and an open hash table of places in it. */
#include "data/names.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "data/formats/number.h"

const char *names_text(const struct names *names, uint32_t place)
{
    return names->text + names->at[place];
}

static size_t length_of(const struct names *names, uint32_t place)
{
    size_t next = place + 1 < names->count ? names->at[place + 1] : names->size;
    return next - names->at[place] - 1;
}

/* Where a name stands, or else the free one that it would get. */
static uint32_t slot_of(const struct names *names, const char *name, size_t size)
{
    uint32_t s = (uint32_t)XXH3_64bits(name, size) & (names->slots_count - 1);
    for (; names->slots[s] != 0; s = (s + 1) & (names->slots_count - 1)) {
        uint32_t place = names->slots[s] - 1;
        if (length_of(names, place) == size && memcmp(names_text(names, place), name, size) == 0)
            break;
    }
    return s;
}

/* A free slot holds 0, and is NAMES_NONE + 1. */
uint32_t names_find(const struct names *names, const char *name, size_t size)
{
    return names->count > 0 ? names->slots[slot_of(names, name, size)] - 1 : NAMES_NONE;
}

/* Of equal names only the first has a slot: many of them would be one long search. */
static void put_slot(struct names *names, uint32_t place)
{
    uint32_t s = slot_of(names, names_text(names, place), length_of(names, place));
    if (names->slots[s] == 0) names->slots[s] = place + 1;
}

/* Room for one more name; at most half of the slots are taken. */
static int grow(struct names *names)
{
    if (names->count < names->room) return 0;
    uint32_t room = names->room ? 2 * names->room : 16;
    size_t *at = realloc(names->at, room * sizeof *at);
    if (at) names->at = at;
    uint32_t *slots = at ? calloc(2 * (size_t)room, sizeof *slots) : NULL;
    if (!slots) return PARLEY_ENOMEM;
    free(names->slots);
    names->slots = slots;
    names->slots_count = 2 * room;
    names->room = room;
    for (uint32_t i = 0; i < names->count; i++)
        put_slot(names, i);
    return 0;
}

int names_add(struct names *names, const char *name, size_t size)
{
    if (size > NAMES_BYTES_MAX || names->count >= UINT32_MAX / 4) return PARLEY_ELIMIT;
    int error = grow(names);
    if (error) return error;
    if (names->capacity - names->size < size + 1) {
        size_t capacity = 2 * (names->capacity + size + 1);
        char *text = realloc(names->text, capacity);
        if (!text) return PARLEY_ENOMEM;
        names->text = text;
        names->capacity = capacity;
    }
    names->at[names->count] = names->size;
    memcpy(names->text + names->size, name, size);
    names->text[names->size + size] = 0;
    names->size += size + 1;
    put_slot(names, names->count++);
    return 0;
}

struct sorted {
    bool number;  /* as all are */
    double value; /* else 0 */
    const char *name;
    size_t size;
    uint32_t was;
};

static int compare(const void *a, const void *b)
{
    const struct sorted *l = a, *r = b;
    if (l->value != r->value) return l->value < r->value ? -1 : 1;
    if (l->number) return (l->was > r->was) - (l->was < r->was);
    size_t both = l->size < r->size ? l->size : r->size;
    int order = memcmp(l->name, r->name, both);
    return order ? order : (l->size > r->size) - (l->size < r->size);
}

/* The names in their order; all in numbers or none. */
static struct sorted *sort(const struct names *names)
{
    struct sorted *list = malloc(names->count * sizeof *list);
    bool numbers = true;
    for (uint32_t i = 0; list && i < names->count; i++) {
        list[i] = (struct sorted){true, 0, names_text(names, i), length_of(names, i), i};
        numbers = number_parse(list[i].name, list[i].size, &list[i].value) && numbers;
    }
    for (uint32_t i = 0; list && !numbers && i < names->count; i++) {
        list[i].number = false;
        list[i].value = 0;
    }
    if (list) qsort(list, names->count, sizeof *list, compare);
    return list;
}

int names_sort(struct names *names, uint16_t *labels, size_t count)
{
    if (names->count == 0) return 0;
    struct names made = {0};
    struct sorted *list = sort(names);
    uint32_t *now = malloc(names->count * sizeof *now); /* by the place before */
    int error = list && now ? 0 : PARLEY_ENOMEM;
    for (uint32_t i = 0; !error && i < names->count; i++) {
        bool same = i > 0 && list[i].number && list[i].value == list[i - 1].value;
        if (!same) error = names_add(&made, list[i].name, list[i].size);
        now[list[i].was] = made.count - 1;
    }
    made.by_value = !error && list[0].number;
    for (size_t i = 0; !error && i < count; i++)
        labels[i] = (uint16_t)now[labels[i]];
    free(now);
    free(list);
    if (error) {
        names_close(&made);
        return error;
    }
    names_close(names);
    *names = made;
    return 0;
}

static double value_of(const struct names *names, uint32_t place)
{
    double value;
    bool is = number_parse(names_text(names, place), length_of(names, place), &value);
    return is ? value : (double)NAN;
}

void names_look_at(struct names *names)
{
    double before = -INFINITY;
    names->by_value = true;
    for (uint32_t i = 0; i < names->count; i++) {
        double value = value_of(names, i);
        if (!(value >= before)) names->by_value = false;
        before = value;
    }
}

uint32_t names_find_number(const struct names *names, const char *name, size_t size)
{
    double value;
    uint32_t low = 0, high = names->count;
    if (!names->by_value || !number_parse(name, size, &value)) return NAMES_NONE;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (value_of(names, middle) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->count && value_of(names, low) == value ? low : NAMES_NONE;
}

bool names_are_numbers(const struct names *names, bool *whole)
{
    uint32_t fractions = 0, others = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        double value;
        if (!number_parse(names_text(names, i), length_of(names, i), &value))
            others++;
        else
            fractions += floor(value) != value;
    }
    *whole = fractions == 0;
    return others <= names->count / 20;
}

const char *names_list(const struct names *names, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        char name[64];
        bool last = i + 1 == names->count;
        number_found(name, names_text(names, i), length_of(names, i));
        size_t wanted = strlen(name) + 2 + (last ? 0 : 5); /* ", " and ", ..." */
        if (used + wanted >= size) {
            snprintf(out + used, size - used, "%s...", i ? ", " : "");
            break;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", name);
    }
    return out;
}

void names_close(struct names *names)
{
    free(names->text);
    free(names->at);
    free(names->slots);
    *names = (struct names){0};
}
