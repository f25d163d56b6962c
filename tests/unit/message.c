/* Control frames as structs: what is packed comes back, and what is wrong is refused. */
#include "core/wire/message.h"

#include <criterion/criterion.h>
#include <msgpack.h>
#include <string.h>

#include "core/plain.h"
#include "parley/error.h"

static void *scratch;

static void setup(void)
{
    scratch = message_scratch_new();
}

static void teardown(void)
{
    message_scratch_free(scratch);
}

TestSuite(message, .init = setup, .fini = teardown);

static uint8_t frame[WIRE_HEADER_BYTES + PARLEY_CONTROL_BYTES_MAX];

static void text(char *to, size_t size)
{
    memset(to, 'x', size - 1);
    to[size - 1] = 0;
}

/* Every field at its largest. */
static void full_record(struct record *r)
{
    memset(r, 0xff, sizeof *r);
    text(r->name, sizeof r->name);
    text(r->address, sizeof r->address);
    r->distance_sq = r->mean_sq = r->score = 1.7e308;
}

/* Encodes, checks the size, decodes; the copy must encode to the same bytes. */
static size_t round_trip(enum wire_type type, const void *message, void *copy)
{
    static uint8_t again[sizeof frame];
    size_t size = message_encode(type, message, frame, sizeof frame);
    cr_assert(size > WIRE_HEADER_BYTES, "%s does not fit", wire_type_name(type));
    struct wire_header header;
    cr_assert_eq(wire_header_read(frame, &header), 0, "%s", wire_type_name(type));
    cr_assert_eq(header.size + WIRE_HEADER_BYTES, size);
    cr_assert_eq(message_decode(type, frame + WIRE_HEADER_BYTES, header.size, copy, scratch), 0,
                 "%s", wire_type_name(type));
    static uint8_t kept[sizeof frame];
    memcpy(kept, frame, size); /* views point into frame */
    cr_assert_eq(message_encode(type, copy, again, sizeof again), size);
    cr_assert_eq(memcmp(kept, again, size), 0, "%s", wire_type_name(type));
    return size;
}

Test(message, every_frame_at_its_largest_fits_and_comes_back)
{
    /* Proves that no message, all fields full, passes the limits of frame, objects or depth. */
    static struct message_hello hello, hello_copy;
    memset(&hello, 0xff, sizeof hello);
    text(hello.cluster, sizeof hello.cluster);
    text(hello.name, sizeof hello.name);
    text(hello.address, sizeof hello.address);
    for (int i = 0; i < PARLEY_SETTINGS_MAX; i++) {
        text(hello.settings[i].name, sizeof hello.settings[i].name);
        text(hello.settings[i].value, sizeof hello.settings[i].value);
    }
    hello.settings_count = PARLEY_SETTINGS_MAX;
    round_trip(WIRE_HELLO, &hello, &hello_copy);

    static struct message_members members, members_copy;
    static struct message_report report, report_copy;
    for (int i = 0; i < MESSAGE_RECORDS_MAX; i++) {
        full_record(&members.records[i]);
        full_record(&report.records[i]);
    }
    members.count = report.count = MESSAGE_RECORDS_MAX;
    members.complete = report.total = report.live = report.known = UINT32_MAX;
    report.drift = report.progress = 0.1;
    text(report.cluster, sizeof report.cluster);
    round_trip(WIRE_MEMBERS, &members, &members_copy);
    round_trip(WIRE_REPORT, &report, &report_copy);

    static struct message_sketches sketches, sketches_copy;
    static uint8_t buckets[MESSAGE_BUCKETS * 4];
    memset(buckets, 0x5a, sizeof buckets);
    for (int i = 0; i < MESSAGE_SKETCHES_MAX; i++) {
        sketches.sketches[i] =
            (struct message_sketch){UINT64_MAX, UINT32_MAX, {buckets, sizeof buckets}};
        sketches.lacks[i].boot = UINT64_MAX;
    }
    sketches.count = sketches.lacks_count = MESSAGE_SKETCHES_MAX;
    round_trip(WIRE_SKETCHES, &sketches, &sketches_copy);

    struct message_reject reject = {.code = UINT32_MAX}, reject_copy;
    text(reject.text, sizeof reject.text);
    round_trip(WIRE_REJECT, &reject, &reject_copy);
    cr_assert_str_eq(reject.text, reject_copy.text);
    uint8_t small[sizeof(struct message_fetch)], copy[sizeof small];
    memset(small, 0xff, sizeof small);
    for (enum wire_type type = WIRE_BYE; type < WIRE_REPORT; type++)
        if (type != WIRE_MEMBERS && type != WIRE_SKETCHES) round_trip(type, small, copy);
}

Test(message, what_does_not_fit_is_not_begun)
{
    /* Proves that a buffer too small by any number of bytes gives 0 and nothing behind its end. */
    struct message_probe probe = {UINT32_MAX, UINT64_MAX};
    size_t size = message_encode(WIRE_PING, &probe, frame, sizeof frame);
    for (size_t capacity = 0; capacity < size; capacity++) {
        memset(frame, 0x77, sizeof frame);
        cr_assert_eq(message_encode(WIRE_PING, &probe, frame, capacity), 0);
        for (size_t i = capacity; i < capacity + 32; i++)
            cr_assert_eq(frame[i], 0x77);
    }
}

/* ---- Frames of others --------------------------------------------------------------------------
 */

static msgpack_sbuffer buffer;
static msgpack_packer packer;

static void begin(uint32_t pairs)
{
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    msgpack_pack_map(&packer, pairs);
}

static void key(const char *name)
{
    msgpack_pack_str_with_body(&packer, name, strlen(name));
}

static int decode(enum wire_type type, void *message)
{
    int error = message_decode(type, (const uint8_t *)buffer.data, buffer.size, message, scratch);
    msgpack_sbuffer_destroy(&buffer);
    return error;
}

Test(message, unknown_keys_are_ignored_and_missing_ones_are_zero)
{
    /* Proves that fields can be added later: a reader of today skips them, whatever they hold. */
    struct message_probe probe;
    begin(3);
    key("new");
    msgpack_pack_array(&packer, 2);
    msgpack_pack_map(&packer, 0);
    msgpack_pack_double(&packer, 2);
    key("s");
    msgpack_pack_uint32(&packer, 9);
    key("");
    msgpack_pack_nil(&packer);
    cr_assert_eq(decode(WIRE_PING, &probe), 0);
    cr_assert(probe.sequence == 9 && probe.boot == 0);
}

Test(message, keys_may_come_in_any_order)
{
    /* A writer need not know our table: the last key first, and one that was there before. */
    struct message_probe probe;
    begin(3);
    key("b");
    msgpack_pack_uint64(&packer, 7);
    key("s");
    msgpack_pack_uint32(&packer, 9);
    key("s");
    msgpack_pack_uint32(&packer, 8);
    cr_assert_eq(decode(WIRE_PING, &probe), 0);
    cr_assert(probe.sequence == 8 && probe.boot == 7);
}

Test(message, wrong_types_are_refused)
{
    /* Proves that each kind of field takes its own type and range only, and keys are texts. */
    struct message_probe probe;
    begin(1);
    msgpack_pack_int(&packer, 1);
    msgpack_pack_int(&packer, 1);
    cr_assert_eq(decode(WIRE_PING, &probe), PARLEY_EMALFORMED);
    begin(1);
    key("s");
    msgpack_pack_uint64(&packer, (uint64_t)UINT32_MAX + 1);
    cr_assert_eq(decode(WIRE_PING, &probe), PARLEY_EMALFORMED);
    begin(1);
    key("b");
    msgpack_pack_int(&packer, -1);
    cr_assert_eq(decode(WIRE_PING, &probe), PARLEY_EMALFORMED);
    begin(1);
    key("s");
    msgpack_pack_double(&packer, 1);
    cr_assert_eq(decode(WIRE_PING, &probe), PARLEY_EMALFORMED);

    static struct message_report report;
    begin(1);
    key("drift");
    msgpack_pack_int(&packer, 1);
    cr_assert_eq(decode(WIRE_REPORT, &report), PARLEY_EMALFORMED);
    begin(1);
    key("r");
    msgpack_pack_map(&packer, 0);
    cr_assert_eq(decode(WIRE_REPORT, &report), PARLEY_EMALFORMED);
    begin(1);
    key("r");
    msgpack_pack_array(&packer, 1);
    msgpack_pack_nil(&packer);
    cr_assert_eq(decode(WIRE_REPORT, &report), PARLEY_EMALFORMED);
    begin(1);
    key("r");
    msgpack_pack_array(&packer, MESSAGE_RECORDS_MAX + 1);
    for (int i = 0; i <= MESSAGE_RECORDS_MAX; i++)
        msgpack_pack_map(&packer, 0);
    cr_assert_eq(decode(WIRE_REPORT, &report), PARLEY_EMALFORMED);

    struct message_fetch fetch;
    const size_t sizes[] = {0, PARLEY_DIGEST_BYTES - 1, PARLEY_DIGEST_BYTES + 1};
    for (int i = 0; i < 3; i++) {
        static const char bytes[64];
        begin(1);
        key("h");
        msgpack_pack_bin_with_body(&packer, bytes, sizes[i]);
        cr_assert_eq(decode(WIRE_FETCH, &fetch), PARLEY_EMALFORMED);
    }
}

Test(message, texts_are_short_and_printable)
{
    /* Proves that a text that is too long, or holds a control character or a zero, is refused, and
     * in a name blanks and more than ASCII, too. */
    static struct message_hello hello;
    char longest[PARLEY_NAME_SIZE + 1];
    memset(longest, 'n', sizeof longest);
    for (size_t size = PARLEY_NAME_SIZE - 1; size <= PARLEY_NAME_SIZE; size++) {
        begin(1);
        key("name");
        msgpack_pack_str_with_body(&packer, longest, size);
        cr_assert_eq(decode(WIRE_HELLO, &hello), size < PARLEY_NAME_SIZE ? 0 : PARLEY_EMALFORMED);
    }
    for (int c = 0; c < 256; c++) {
        char one[3] = {'a', (char)c, 'b'};
        begin(1);
        key("addr");
        msgpack_pack_str_with_body(&packer, one, 3);
        cr_assert_eq(decode(WIRE_HELLO, &hello), c < 32 || c >= 127 ? PARLEY_EMALFORMED : 0, "%d",
                     c);
        begin(1);
        key("name");
        msgpack_pack_str_with_body(&packer, one, 3);
        cr_assert_eq(decode(WIRE_HELLO, &hello), c <= 32 || c >= 127 ? PARLEY_EMALFORMED : 0, "%d",
                     c);
    }
    begin(1);
    key("name");
    msgpack_pack_bin_with_body(&packer, "n", 1);
    cr_assert_eq(decode(WIRE_HELLO, &hello), PARLEY_EMALFORMED);
}

Test(message, texts_are_utf8_that_a_terminal_can_show)
{
    /* Proves that letters of all lengths pass, and that control characters beyond ASCII, what turns
     * the direction of a line, and what is no UTF-8 do not: some terminals obey those. */
    static const char *const good[] = {"M\xc3\xb6\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x90\x8c",
                                       "\xc2\xa0", "\xf4\x8f\xbf\xbd"};
    static const char *const bad[] = {"\xc2\x9b"
                                      "2J",
                                      "\x9b"
                                      "2J",
                                      "\xff",
                                      "\xe2\x80\xae"
                                      "x",
                                      "\xe2\x81\xa6",
                                      "\xe2\x80\xa8",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xe2\x82",
                                      "\xf0\x9f\x90"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_assert(plain_text(good[i], strlen(good[i])), "%d", (int)i);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(!plain_text(bad[i], strlen(bad[i])), "%d", (int)i);
}
