/* yaml.c: a small state machine over libyaml's events: before, at a key, at a value, in a list. */
#include "settings/yaml.h"

#include <stdio.h>
#include <string.h>

#include <yaml.h>

enum place { OUTSIDE, AT_KEY, AT_VALUE, IN_LIST, AFTER };

enum { KEY_BYTES = 64 };

struct walk {
    yaml_visit *visit;
    void *context;
    unsigned *line; /* of what is refused */
    char *why;
    enum place place;
    unsigned item; /* of the list */
    char key[KEY_BYTES];
};

static int refuse(struct walk *walk, const yaml_event_t *event, const char *clause)
{
    *walk->line = (unsigned)event->start_mark.line + 1;
    snprintf(walk->why, UNITS_WHY_BYTES, "%s", clause);
    return PARLEY_EUSAGE;
}

static int on_scalar(struct walk *walk, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    unsigned line = (unsigned)event->start_mark.line + 1;
    if (event->data.scalar.anchor) return refuse(walk, event, "anchors are not allowed");
    if (event->data.scalar.tag) return refuse(walk, event, "tags are not allowed");
    if (strlen(value) != event->data.scalar.length)
        return refuse(walk, event, "a zero byte is not allowed");
    switch (walk->place) {
    case AT_KEY:
        snprintf(walk->key, sizeof walk->key, "%s", value);
        walk->place = AT_VALUE;
        return 0;
    case AT_VALUE:
        walk->place = AT_KEY;
        return walk->visit(walk->context, walk->key, value, 0, line);
    case IN_LIST:
        return walk->visit(walk->context, walk->key, value, ++walk->item, line);
    default:
        return refuse(walk, event, "a settings file is a list of `name: value`");
    }
}

static int on_event(struct walk *walk, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(walk, event);
    case YAML_ALIAS_EVENT:
        return refuse(walk, event, "aliases are not allowed");
    case YAML_DOCUMENT_START_EVENT:
        if (walk->place == AFTER) return refuse(walk, event, "a second document is not allowed");
        return 0;
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.anchor || event->data.mapping_start.tag)
            return refuse(walk, event, "anchors and tags are not allowed");
        if (walk->place != OUTSIDE) return refuse(walk, event, "settings can't be nested");
        walk->place = AT_KEY;
        return 0;
    case YAML_MAPPING_END_EVENT:
        walk->place = AFTER;
        return 0;
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.anchor || event->data.sequence_start.tag)
            return refuse(walk, event, "anchors and tags are not allowed");
        if (walk->place == OUTSIDE)
            return refuse(walk, event, "a settings file is a list of `name: value`");
        if (walk->place != AT_VALUE) return refuse(walk, event, "settings can't be nested");
        walk->place = IN_LIST;
        walk->item = 0;
        return 0;
    case YAML_SEQUENCE_END_EVENT:
        if (walk->item == 0)
            return refuse(walk, event, "an empty list sets nothing: leave the line out");
        walk->place = AT_KEY;
        return 0;
    default:
        return 0;
    }
}

static int blame_parser(const yaml_parser_t *parser, unsigned *line, units_why why)
{
    if (parser->error == YAML_MEMORY_ERROR) return units_lack_memory(why);
    *line = 0;
    if (parser->error == YAML_READER_ERROR)
        snprintf(why, UNITS_WHY_BYTES, "byte %zu: %s", parser->problem_offset, parser->problem);
    else {
        *line = (unsigned)parser->problem_mark.line + 1;
        snprintf(why, UNITS_WHY_BYTES, "%s", parser->problem);
    }
    return PARLEY_EUSAGE;
}

int yaml_walk(const void *bytes, size_t size, yaml_visit *visit, void *context, unsigned *line,
              units_why why)
{
    struct walk walk = {.visit = visit, .context = context, .line = line, .why = why};
    *line = 0;
    yaml_parser_t parser;
    if (size > YAML_FILE_BYTES_MAX) {
        snprintf(why, UNITS_WHY_BYTES, "a settings file of %zu bytes is too large (at most 1 MiB)",
                 size);
        return PARLEY_EUSAGE;
    }
    if (!yaml_parser_initialize(&parser)) return units_lack_memory(why);
    yaml_parser_set_input_string(&parser, bytes, size);
    int error = 0;
    for (bool more = true; more && !error;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            error = blame_parser(&parser, line, why);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        error = on_event(&walk, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return error;
}
