/* rows.c: see rows.h. */
#include "data/rows.h"

#include <stdlib.h>

#include "data/bytes.h"

void rows_shape_close(struct rows_shape *shape)
{
    names_close(&shape->classes);
    names_close(&shape->columns);
    *shape = (struct rows_shape){0};
}

int rows_room(struct rows *rows)
{
    struct dataset *set = rows->set;
    if (set->count < rows->room) return 0;
    size_t row = set->features * sizeof *set->values;
    size_t room = rows->room ? 2 * rows->room : 1 + 65536 / row, most = BYTES_MAX / row;
    if (set->count >= UINT32_MAX / 2 || set->count >= most) return PARLEY_ELIMIT;
    if (room > most) room = most;
    float *values = realloc(set->values, room * row);
    if (values) set->values = values;
    uint16_t *labels = realloc(set->labels, room * sizeof *labels);
    if (labels) set->labels = labels;
    float *targets = rows->numbers ? realloc(set->targets, room * sizeof *targets) : NULL;
    if (targets) set->targets = targets;
    if (!values || !labels || (rows->numbers && !targets)) return PARLEY_ENOMEM;
    rows->room = room;
    return 0;
}

int rows_label(struct names *classes, const char *name, size_t size, bool grow, uint16_t *label)
{
    uint32_t place = names_find(classes, name, size);
    if (place == NAMES_NONE) {
        if (!grow) return PARLEY_EDATA;
        place = classes->count;
        if (place == NAMES_CLASSES_MAX) return PARLEY_ELIMIT;
        int error = names_add(classes, name, size);
        if (error) return error;
    }
    *label = (uint16_t)place;
    return 0;
}
