/* rows.c: see rows.h. */
#include "data/formats/rows.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/formats/bytes.h"
#include "data/formats/chars.h"

void rows_shape_close(struct rows_shape *shape)
{
    names_close(&shape->classes);
    names_close(&shape->columns);
    *shape = (struct rows_shape){0};
}

/* Of a character of n bytes of UTF-8, at most. */
static size_t json_bytes(char first, size_t n)
{
    if (n > 1) return n < 4 ? strlen("\\u20ac") : 2 * strlen("\\ud83d");
    if (first < ' ') return strlen("\\u0001");
    return first == '"' || first == '\\' ? 2 : 1;
}

/* The zero byte behind each name becomes the line's end; of the last it stays. */
int rows_write_lines(const struct names *names, char **text)
{
    *text = NULL;
    if (names->count == 0) return 0;
    char *out = malloc(names->size);
    if (!out) return PARLEY_ENOMEM;
    memcpy(out, names->text, names->size);
    uint32_t lines = 0;
    size_t json = 0;
    bool fits = true;
    for (size_t i = 0, n; fits && i < names->size; i += n) {
        n = out[i] ? chars_bytes((const uint8_t *)out + i, names->size - i) : 1;
        json += out[i] ? json_bytes(out[i], n) : strlen("\\n");
        fits = n > 0 && out[i] != '\n' && json <= ROWS_LINES_BYTES_MAX;
        if (out[i]) continue;
        out[i] = '\n';
        lines++;
    }
    out[names->size - 1] = 0;
    if (fits && lines == names->count) /* else a name has a zero byte in it */
        *text = out;
    else
        free(out);
    return 0;
}

int rows_write_columns(const struct rows_shape *shape, char **text)
{
    struct names values = {0};
    int error = 0;
    for (uint32_t c = 0; !error && c < shape->columns.count; c++) {
        const char *name = names_text(&shape->columns, c);
        if (c + 1 != shape->label) error = names_add(&values, name, strlen(name));
    }
    *text = NULL;
    if (!error) error = rows_write_lines(&values, text);
    names_close(&values);
    return error;
}

int rows_read_lines(struct names *names, const char *text)
{
    for (;; text++) {
        size_t size = strcspn(text, "\n");
        int error = names_add(names, text, size);
        text += size;
        if (error) return error;
        if (!*text) break;
    }
    names_look_at(names);
    return 0;
}

/* Programs that write UTF-16 put a mark before it. */
int rows_check_text(struct bytes file, char *why, size_t why_size)
{
    const uint8_t *text = file.data;
    bool marked = file.size >= 2 &&
                  ((text[0] == 0xff && text[1] == 0xfe) || (text[0] == 0xfe && text[1] == 0xff));
    const uint8_t *end = file.size > 0 ? memchr(text, '\r', file.size - 1) : NULL;
    if (marked)
        snprintf(why, why_size, "%s: a file in UTF-16, expected UTF-8", file.name);
    else if (end && !memchr(text, '\n', file.size))
        snprintf(why, why_size, "%s: its lines end with CR alone, expected LF or CR LF", file.name);
    else
        return 0;
    return PARLEY_EDATA;
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
    double *targets = rows->numbers ? realloc(set->targets, room * sizeof *targets) : NULL;
    if (targets) set->targets = targets;
    if (!values || !labels || (rows->numbers && !targets)) return PARLEY_ENOMEM;
    rows->room = room;
    return 0;
}

int rows_label(struct names *classes, const char *name, size_t size, bool grow, uint16_t *label)
{
    uint32_t place = names_find(classes, name, size);
    if (place == NAMES_NONE && !grow) place = names_find_number(classes, name, size);
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
