/* out.c: the updates of one step: a bounded list, and an arena for bytes and texts. */
#include "core/out.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"

enum {
    UPDATES_MAX = 512,
    ARENA_BYTES = 384 * 1024,
    /* What one event may emit on top of what loops do while out_room() holds. */
    UPDATES_RESERVE = 128,
    ARENA_RESERVE = 160 * 1024
};

int parley_updates_init(struct parley_updates *updates)
{
    *updates = (struct parley_updates){0};
    updates->list = malloc(UPDATES_MAX * sizeof *updates->list);
    updates->arena = malloc(ARENA_BYTES);
    updates->unpacker = message_scratch_new();
    if (updates->list && updates->arena && updates->unpacker) return 0;
    parley_updates_close(updates);
    return PARLEY_ENOMEM;
}

void parley_updates_close(struct parley_updates *updates)
{
    if (updates->unpacker) message_scratch_free(updates->unpacker);
    free(updates->arena);
    free(updates->list);
    *updates = (struct parley_updates){0};
}

struct parley_update *out_add(struct parley_node *node, enum parley_update_type type)
{
    struct parley_updates *out = node->out;
    assert(out->count < UPDATES_MAX);
    struct parley_update *update = &out->list[out->count++];
    memset(update, 0, sizeof *update);
    update->type = type;
    return update;
}

bool out_room(struct parley_node *node)
{
    bool room = node->out->count < UPDATES_MAX - UPDATES_RESERVE &&
                node->out->arena_used < ARENA_BYTES - ARENA_RESERVE;
    if (!room) node->more = true;
    return room;
}

static void *arena_take(struct parley_node *node, size_t size)
{
    struct parley_updates *out = node->out;
    assert(size <= ARENA_BYTES - out->arena_used);
    void *bytes = out->arena + out->arena_used;
    out->arena_used += (size + 7) & ~(size_t)7;
    if (out->arena_used > ARENA_BYTES) out->arena_used = ARENA_BYTES;
    return bytes;
}

const char *out_text(struct parley_node *node, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(arena_take(node, size), text, size);
}

uint8_t *out_bytes(struct parley_node *node, size_t size)
{
    return arena_take(node, size);
}

size_t out_encode(struct parley_node *node, enum wire_type type, const void *message,
                  uint8_t **bytes)
{
    struct parley_updates *out = node->out;
    *bytes = out->arena + out->arena_used;
    size_t size = message_encode(type, message, *bytes, ARENA_BYTES - out->arena_used);
    /* Every message fits its limit by construction, and the reserve holds two of the largest. */
    assert(size > 0);
    arena_take(node, size);
    return size;
}

void out_log(struct parley_node *node, enum parley_log level, const char *format, ...)
{
    if ((int)level > node->config.log_level || node->out->count >= UPDATES_MAX - 64) return;
    char text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct parley_update *update = out_add(node, PARLEY_UPDATE_LOG);
    update->log.level = level;
    update->log.text = out_text(node, text);
}

uint32_t out_op(struct parley_node *node, enum op_kind kind, int owner)
{
    for (uint32_t i = 0; i < node->ops_count; i++) {
        if (node->ops[i].kind != OP_FREE) continue;
        node->ops[i] = (struct op){++node->next_op, kind, owner};
        return node->next_op;
    }
    assert(!"more operations under way than all owners together may have");
    return 0;
}

struct parley_update *out_vector(struct parley_node *node, enum parley_update_type type,
                                 enum op_kind kind, int owner, uint32_t buffer)
{
    struct parley_update *update = out_add(node, type);
    update->vector.op = out_op(node, kind, owner);
    update->vector.buffer = buffer;
    update->vector.vectors = update->vector.wide = 1;
    update->vector.buffers[0] = buffer;
    return update;
}

void out_finish(struct parley_node *node, int error)
{
    if (node->finished) return;
    node->finished = true;
    out_add(node, PARLEY_UPDATE_FINISHED)->finished.error = error;
}
