/* hello.c: strangers on new connections of a node. The first byte says what the node has by then,
 * the second in which pieces the rest comes; then for each stranger a length and the body of HELLO,
 * or any bytes. A stranger never ends the node, and its bytes are taken or its connection closed.
 */
#include "fuzz.h"

#include "../unit/lone.h"

static void stranger(struct lone *lone, struct fuzz_bytes body, bool framed, size_t piece)
{
    uint8_t bytes[WIRE_HEADER_BYTES + 4096];
    size_t size = 0, at = 0;
    if (framed) {
        wire_header_write(bytes, WIRE_HELLO, (uint32_t)body.left);
        size = WIRE_HEADER_BYTES;
    }
    memcpy(bytes + size, body.at, body.left);
    size += body.left;
    uint32_t conn = lone_incoming(lone, "10.0.0.7:1");
    /* As a driver: what was not taken comes again, with more behind it. */
    for (size_t end = piece; at < size && lone->conns[conn] == LONE_OPEN; end += piece) {
        size_t to = end < size ? end : size;
        size_t left = lone_receive(lone, conn, bytes + at, to - at);
        at = to - left;
        if (to == size) break;
    }
    FUZZ_CHECK(!lone->finished);
}

void fuzz_hello(const uint8_t *bytes, size_t size)
{
    struct fuzz_bytes input = {bytes, size};
    static const struct parley_setting settings[] = {{"model", "mlp:3"}, {"data", "digits"}};
    uint32_t has = fuzz_below(&input, 64), piece = 1 + fuzz_below(&input, 64);
    struct parley_config config = lone_config();
    config.settings = settings;
    config.settings_count = has & 1 ? 2 : 0;
    config.members_max = has & 2 ? 2 : 16;
    config.codec = has & 4 ? PARLEY_CODEC_SUBSET : PARLEY_CODEC_FP32;
    config.codec_part = has & 4 ? 0.5 : 1;
    config.min_peers = !(has & 8) ? 0
                       : has & 2  ? 1
                                  : 2; /* it waits for others, as many as there may be */
    struct lone *lone = lone_new(&config);
    lone_start(lone);
    if (has & 16) lone_peer(lone, "n0", 1);
    while (input.left > 0) {
        uint32_t length = fuzz_below(&input, 4097);
        stranger(lone, fuzz_take(&input, length % 4096), length != 4096 && !(has & 32), piece);
        lone_run(lone, 300000);
    }
    lone_run(lone, 20000000);
    lone_free(lone);
}

void fuzz_hello_seeds(fuzz_emit *emit, void *context)
{
    struct parley_config config = lone_config();
    struct lone *lone = lone_new(&config);
    for (uint32_t has = 0; has < 64; has++) {
        uint8_t bytes[2 * (WIRE_HEADER_BYTES + 4096)] = {(uint8_t)has, (uint8_t)(7 * has)};
        size_t at = 2;
        for (int i = 0; i < 2; i++) {
            static const char *const names[] = {"n0", "self", "n1"};
            struct message_hello hello = lone_hello(lone, names[(has + (uint32_t)i) % 3], 1 + has);
            uint8_t frame[4096];
            if (has & 1) {
                hello.settings_count = 2;
                hello.settings[0] = (struct message_setting){"model", "mlp:3"};
                hello.settings[1] = (struct message_setting){"data", "digits"};
            }
            if (has & 4) hello.codec = PARLEY_CODEC_SUBSET, hello.codec_part = 0.5;
            size_t size = message_encode(WIRE_HELLO, &hello, frame, sizeof frame);
            size_t from = has & 32 ? 0 : WIRE_HEADER_BYTES;
            bytes[at++] = (uint8_t)((size - from) >> 8);
            bytes[at++] = (uint8_t)(size - from);
            memcpy(bytes + at, frame + from, size - from);
            at += size - from;
        }
        emit(context, bytes, at);
    }
    lone_free(lone);
}
