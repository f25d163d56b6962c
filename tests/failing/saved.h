/* saved.h: a small model, and the record of the one node that agreed on it. */
#ifndef PARLEY_TESTS_SAVED_H
#define PARLEY_TESTS_SAVED_H

#include "file/model_file.h"
#include "file/record.h"

enum { SAVED_FLOATS = 9, SAVED_TENSORS = 2 };

static const float saved_x[SAVED_FLOATS] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const struct tensor saved_tensors[SAVED_TENSORS] = {{"w", 2, {2, 3}, 0, 6},
                                                           {"b", 1, {3}, 6, 3}};

/* With its digest yet to be filled in, as the record's. */
static inline struct model_meta saved_meta(void)
{
    return (struct model_meta){.model = "softmax",
                               .data = "csv:t",
                               .class_names = "a\nb\nc",
                               .columns = "u\nv",
                               .features = 2,
                               .classes = 3};
}

static inline struct record saved_record(void)
{
    static struct record_member member = {"n0", true, true, true, 1};
    return (struct record){.node = "n0",
                           .cause = "budget",
                           .held = 1,
                           .live = 1,
                           .known = 1,
                           .members = &member,
                           .member_count = 1};
}

#endif
