/* hello.c: what a node says of itself on a new link, and what keeps two nodes apart. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/codec.h"
#include "core/state.h"

static double part_of(const struct parley_config *c)
{
    return codec_has_part(c->codec) ? c->codec_part : 0;
}

void hello_send(struct parley_node *node, struct conn *conn, bool answer)
{
    const struct parley_config *c = &node->config;
    const struct record *self = self_of(node);
    struct message_hello hello = {.protocol_min = WIRE_VERSION,
                                  .protocol_max = WIRE_VERSION,
                                  .run = c->run,
                                  .boot = self->boot,
                                  .model = c->model_digest,
                                  .parameters = c->parameters,
                                  .vectors = c->vectors,
                                  .codec = c->codec,
                                  .codec_part = part_of(c),
                                  .more = c->averaged - 1,
                                  .robust = c->robust,
                                  .answer = answer,
                                  .streams = c->streams > 1 ? c->streams : 0,
                                  .token = answer ? conn->token : 0,
                                  .settings_count = c->settings_count};
    memcpy(hello.cluster, node->cluster, sizeof hello.cluster);
    memcpy(hello.name, self->name, sizeof hello.name);
    memcpy(hello.address, self->address, sizeof hello.address);
    memcpy(hello.settings, node->settings, sizeof hello.settings);
    connection_send(node, conn, WIRE_HELLO, &hello);
}

void hello_streams(struct parley_node *node, struct conn *conn, const struct message_hello *hello)
{
    uint32_t ours = node->config.streams, theirs = hello->streams;
    if (conn->outgoing) conn->token = hello->token;
    conn->streams = ours < theirs ? ours : theirs;
    if (conn->streams < 2 || conn->token == 0) conn->streams = 0;
}

uint32_t parley_node_streams(struct parley_node *node, uint32_t id, uint64_t *token)
{
    const struct conn *conn = node->finished ? NULL : connection_find(node, id);
    if (!conn || conn->state != CONN_LIVE) return 0;
    *token = conn->token;
    return conn->streams;
}

/* What keeps the two apart, in words that name both sides' values; false if nothing does. */
bool hello_differs(struct parley_node *node, const struct message_hello *hello, char *why,
                   size_t size)
{
    const struct parley_config *c = &node->config;
    const char *here = self_of(node)->name;
    if (strcmp(hello->cluster, node->cluster) != 0) {
        snprintf(why, size, "cluster is \"%s\" at %s and \"%s\" at %s", node->cluster, here,
                 hello->cluster, hello->name);
        return true;
    }
    for (uint32_t i = 0; i < c->settings_count; i++) {
        const char *theirs = "";
        for (uint32_t j = 0; j < hello->settings_count; j++)
            if (strcmp(hello->settings[j].name, node->settings[i].name) == 0)
                theirs = hello->settings[j].value;
        if (strcmp(theirs, node->settings[i].value) == 0) continue;
        snprintf(why, size, "%s is %s at %s and %s at %s", node->settings[i].name,
                 node->settings[i].value, here, *theirs ? theirs : "not set", hello->name);
        return true;
    }
    if (hello->parameters != c->parameters || hello->vectors != c->vectors) {
        snprintf(why, size,
                 "the model has %" PRIu64 " parameters and %u vectors at %s, %" PRIu64
                 " and %u at %s",
                 c->parameters, c->vectors, here, hello->parameters, hello->vectors, hello->name);
        return true;
    }
    if (hello->more != c->averaged - 1) {
        snprintf(why, size, "vectors averaged are %u at %s and %u at %s", c->averaged, here,
                 hello->more + 1, hello->name);
        return true;
    }
    if (hello->robust != c->robust) {
        snprintf(why, size, "--robust is given at %s and not at %s", c->robust ? here : hello->name,
                 c->robust ? hello->name : here);
        return true;
    }
    if (hello->codec != c->codec || hello->codec_part != part_of(c)) {
        char ours[32], theirs[32];
        codec_text(c->codec, c->codec_part, ours);
        codec_text((enum parley_codec)hello->codec, hello->codec_part, theirs);
        snprintf(why, size, "codec is %s at %s and %s at %s", ours, here, theirs, hello->name);
        return true;
    }
    if (hello->model != c->model_digest || hello->run != c->run) {
        snprintf(why, size, "%s is %016" PRIx64 " at %s and %016" PRIx64 " at %s",
                 hello->model != c->model_digest ? "the model's shape" : "the run",
                 hello->model != c->model_digest ? c->model_digest : c->run, here,
                 hello->model != c->model_digest ? hello->model : hello->run, hello->name);
        return true;
    }
    return false;
}
