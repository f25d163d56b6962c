/* frame.c: each control frame: the first byte is its type, the rest its body. What is read can be
 * written, and reads the same again. */
#include <string.h>

#include "core/wire/message.h"
#include "fuzz.h"

static union message first, second; /* large; no input sees what another left there */

void fuzz_frame(const uint8_t *bytes, size_t size)
{
    if (size == 0 || bytes[0] == 0 || bytes[0] >= WIRE_CHUNK) return;
    enum wire_type type = (enum wire_type)bytes[0];
    void *scratch = message_scratch_new();
    if (message_decode(type, bytes + 1, size - 1, &first, scratch) == 0) {
        static uint8_t one[WIRE_HEADER_BYTES + PARLEY_CONTROL_BYTES_MAX], other[sizeof one];
        size_t written = message_encode(type, &first, one, sizeof one);
        /* What is written is never longer than what was read, but for numbers: 9 bytes each. */
        if (written > 0) {
            FUZZ_CHECK(message_decode(type, one + WIRE_HEADER_BYTES, written - WIRE_HEADER_BYTES,
                                      &second, scratch) == 0);
            FUZZ_CHECK(message_encode(type, &second, other, sizeof other) == written);
            FUZZ_CHECK(memcmp(one, other, written) == 0);
        }
    }
    message_scratch_free(scratch);
}

static struct record any_record(void)
{
    return (struct record){.boot = UINT64_MAX,
                           .name = "n0",
                           .address = "127.0.0.1:7000",
                           .incarnation = 1,
                           .state = 2,
                           .clock = 3,
                           .phase = 4,
                           .stop = 1,
                           .stop_live = 4,
                           .version = 100,
                           .samples = 3200,
                           .sketch = 2,
                           .measured = 1,
                           .distance_sq = 0.5,
                           .mean_sq = 2,
                           .near = 1,
                           .generation = 1,
                           .score = 0.25,
                           .digest = {1, 2},
                           .lock_voters = 3,
                           .lock_generation = 1,
                           .lock_digest = {3},
                           .voters = 4,
                           .follows = 7,
                           .holds = 9};
}

void fuzz_frame_seeds(fuzz_emit *emit, void *context)
{
    static uint8_t bytes[WIRE_HEADER_BYTES + PARLEY_CONTROL_BYTES_MAX];
    static uint8_t buckets[MESSAGE_BUCKETS * 4];
    static union message m;
    for (int type = 1; type < WIRE_CHUNK; type++) {
        memset(&m, 0, sizeof m);
        switch (type) {
        case WIRE_HELLO:
            m.hello = (struct message_hello){.cluster = "parley",
                                             .name = "n0",
                                             .address = "n0:1",
                                             .run = 1,
                                             .boot = 2,
                                             .model = 3,
                                             .parameters = 300,
                                             .vectors = 1,
                                             .codec = 4,
                                             .codec_part = 0.5,
                                             .averaged = 2,
                                             .settings = {{"model", "mlp:3"}},
                                             .settings_count = 1};
            break;
        case WIRE_REJECT:
            m.reject = (struct message_reject){3, 1, "the name is taken"};
            break;
        case WIRE_MEMBERS:
            m.members = (struct message_members){{any_record(), any_record()}, 2, 1, 1};
            break;
        case WIRE_SKETCHES:
            m.sketches = (struct message_sketches){.sketches = {{7, 1, {buckets, sizeof buckets}}},
                                                   .count = 1};
            break;
        case WIRE_REPORT:
            m.report = (struct message_report){{any_record()}, 1, 1, "parley", 1, 1, 0.1, 0.5};
            break;
        case WIRE_ASK:
        case WIRE_OUTCOME:
            m.outcome = (struct message_outcome_frame){1, 2, 3, 4};
            break;
        case WIRE_FETCH:
        case WIRE_FETCHED:
            m.fetch = (struct message_fetch){1, 1, {9}, 1, 2, 3, 4, 5, 6, 7};
            break;
        case WIRE_STRATEGY:
            m.strategy = (struct message_strategy){1, 2, 3, 4, 5, 6, 7, 8, 0.5, 0.25};
            break;
        case WIRE_BYE:
        case WIRE_STATUS:
            m.status.from = 1;
            break;
        case WIRE_PING:
        case WIRE_ACK:
        case WIRE_PING_FOR:
            m.probe = (struct message_probe){1, 2};
            break;
        default:
            m.exchange = (struct message_exchange){1, 1, 1, 1, 9, 8, 1, 2, 0.5, 0.25, 0.5, 3};
        }
        size_t size = message_encode((enum wire_type)type, &m, bytes, sizeof bytes);
        FUZZ_CHECK(size > 0);
        bytes[WIRE_HEADER_BYTES - 1] = (uint8_t)type;
        emit(context, bytes + WIRE_HEADER_BYTES - 1, size - WIRE_HEADER_BYTES + 1);
    }
}
