/* Merging of member records: the same knowledge in any order, any number of times, is the same. */
#include "records.h"

enum { BOOTS = 3, RECORDS = 12 };

static struct record random_record(struct rng *rng)
{
    uint64_t boot = 100 + rng_below(rng, BOOTS);
    uint32_t incarnation = rng_below(rng, 3), state = rng_below(rng, 4);
    return honest_record(boot, incarnation, state, rng_below(rng, 5));
}

Test(merge, the_order_of_records_does_not_matter)
{
    /* Proves commutativity and idempotence: shuffled, and each said twice, the table is the same.
     */
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct rng rng = rng_init(seed, 0);
        struct record records[RECORDS];
        struct lone *a = listener(), *b = listener();
        for (int i = 0; i < RECORDS; i++)
            records[i] = random_record(&rng);
        for (int i = 0; i < RECORDS; i++)
            merge(a, &records[i]);
        for (int i = RECORDS - 1; i > 0; i--) {
            uint32_t j = rng_below(&rng, (uint32_t)i + 1);
            struct record swap = records[i];
            records[i] = records[j];
            records[j] = swap;
        }
        for (int i = 0; i < 2 * RECORDS; i++)
            merge(b, &records[i % RECORDS]);
        same_tables(a, b, BOOTS, seed);
        lone_free(a);
        lone_free(b);
    }
}

Test(merge, what_was_merged_elsewhere_counts_the_same)
{
    /* Proves associativity: a third node's table, merged, is as good as the records behind it. */
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng = rng_init(seed, 1);
        struct lone *a = listener(), *b = listener(), *third = listener();
        for (int i = 0; i < RECORDS; i++) {
            struct record record = random_record(&rng);
            merge(a, &record);
            merge(i % 2 ? third : b, &record);
        }
        for (uint32_t i = 1; i < third->node->roster->count; i++)
            merge(b, record_of(third->node, i));
        same_tables(a, b, BOOTS, seed);
        lone_free(a);
        lone_free(b);
        lone_free(third);
    }
}

Test(merge, who_is_called_suspect_or_dead_says_otherwise)
{
    /* Proves that a node outbids every false word about itself, and nobody else's of its age. */
    struct lone *lone = listener();
    struct record r = *record_of(lone->node, 0);
    for (uint32_t incarnation = 1; incarnation < 20; incarnation += 3) {
        r.incarnation = incarnation;
        r.state = incarnation % 2 ? PARLEY_MEMBER_SUSPECT : PARLEY_MEMBER_DEAD;
        merge(lone, &r);
        cr_assert_eq(record_of(lone->node, 0)->incarnation, incarnation + 1);
        cr_assert_eq(record_of(lone->node, 0)->state, PARLEY_MEMBER_ALIVE);
        merge(lone, &r);
        cr_assert_eq(record_of(lone->node, 0)->incarnation, incarnation + 1, "said before");
    }
    lone_free(lone);
}

/* The member at that link says it of the member of this boot. */
static void tell(struct lone *lone, uint32_t conn, uint64_t boot, uint32_t incarnation,
                 uint32_t state)
{
    struct message_members m = {.records = {honest_record(boot, incarnation, state, 0)},
                                .count = 1};
    lone_say(lone, conn, WIRE_MEMBERS, &m);
}

static const struct record *record_at(const struct lone *lone, uint64_t boot)
{
    return record_of(lone->node, (uint32_t)roster_find(lone->node->roster, boot));
}

Test(merge, nobody_is_called_dead_by_a_number_that_it_cannot_have)
{
    /* Proves that one lie of a peer can't put another's incarnation where it can't be outbid. */
    const uint32_t last = UINT32_MAX / 2 - 1;
    struct lone *lone = listener();
    uint32_t honest = lone_peer(lone, "m101", 101), liar = lone_peer(lone, "m102", 102);
    tell(lone, honest, 101, 3, PARLEY_MEMBER_ALIVE);
    tell(lone, liar, 101, last, PARLEY_MEMBER_DEAD);
    cr_assert_eq(record_at(lone, 101)->state, PARLEY_MEMBER_ALIVE);
    cr_assert_eq(record_at(lone, 101)->incarnation, 3);
    lone_silence(lone);
    tell(lone, liar, 101, 3 + 1024, PARLEY_MEMBER_DEAD); /* as late news might */
    cr_assert_eq(record_at(lone, 101)->state, PARLEY_MEMBER_DEAD);
    tell(lone, honest, 101, 3 + 1025, PARLEY_MEMBER_ALIVE);
    cr_assert_eq(record_at(lone, 101)->state, PARLEY_MEMBER_ALIVE);
    lone_free(lone);
}

Test(merge, who_heard_a_lie_first_believes_the_member_itself)
{
    /* Proves that a newcomer that knows of a member by a lie alone is put right by its word, and
     * that what the member said before, on its way for long, changes nothing. */
    struct lone *lone = listener();
    uint32_t liar = lone_peer(lone, "m102", 102);
    tell(lone, liar, 101, UINT32_MAX / 2 - 1, PARLEY_MEMBER_DEAD);
    cr_assert_eq(record_at(lone, 101)->state, PARLEY_MEMBER_DEAD);
    uint32_t honest = lone_peer(lone, "m101", 101);
    tell(lone, honest, 101, 5, PARLEY_MEMBER_ALIVE);
    cr_assert_eq(record_at(lone, 101)->state, PARLEY_MEMBER_ALIVE);
    cr_assert_eq(record_at(lone, 101)->incarnation, 5);
    tell(lone, liar, 101, 6, PARLEY_MEMBER_SUSPECT);
    tell(lone, honest, 101, 5, PARLEY_MEMBER_ALIVE);
    cr_assert_eq(record_at(lone, 101)->state, PARLEY_MEMBER_SUSPECT);
    lone_free(lone);
}

Test(merge, a_lie_about_itself_leaves_a_node_numbers_to_refute_with)
{
    /* Proves that a node does not follow a lie to the end of the numbers, where nobody would hear
     * it any more, but says again what it is. */
    struct lone *lone = listener();
    uint32_t liar = lone_peer(lone, "m102", 102);
    lone_tick(lone);
    lone_listen(lone, liar);
    struct message_members m = {.records = {*record_of(lone->node, 0)}, .count = 1};
    m.records[0].incarnation = UINT32_MAX / 2 - 1;
    m.records[0].state = PARLEY_MEMBER_DEAD;
    lone_say(lone, liar, WIRE_MEMBERS, &m);
    lone_run(lone, 100000);
    cr_assert_eq(record_of(lone->node, 0)->incarnation, 1);
    cr_assert(lone_heard(lone, WIRE_MEMBERS, &m) && m.count == 1);
    cr_assert(m.records[0].boot == lone->config.boot && m.records[0].state == PARLEY_MEMBER_ALIVE);
    lone_free(lone);
}

/* The member at that link tells what the one of this boot says, by that clock. */
static void tell_word(struct lone *lone, uint32_t conn, uint64_t boot, uint64_t clock,
                      uint64_t version)
{
    struct message_members m = {.records = {honest_record(boot, 1, PARLEY_MEMBER_ALIVE, 1)},
                                .count = 1};
    m.records[0].clock = clock;
    m.records[0].version = version;
    lone_say(lone, conn, WIRE_MEMBERS, &m);
}

Test(merge, words_that_a_member_has_not_said_do_not_stop_it_from_being_heard)
{
    /* Proves that others' lies in its name hold until it is told, and no longer: by no number can
     * its own words be kept from counting. */
    struct lone *lone = listener();
    uint32_t honest = lone_peer(lone, "m101", 101), liar = lone_peer(lone, "m102", 102);
    struct message_members m;
    lone_tick(lone);
    tell_word(lone, honest, 101, 5, 1);
    tell_word(lone, liar, 101, UINT64_MAX, 9);
    cr_assert_eq(record_at(lone, 101)->version, 1, "it can't have said so much meanwhile");
    tell_word(lone, liar, 101, 1000000, 9);
    cr_assert_eq(record_at(lone, 101)->version, 9, "as news of it might");
    lone_listen(lone, honest);
    tell_word(lone, honest, 101, 6, 2);
    cr_assert(lone_heard(lone, WIRE_MEMBERS, &m) && m.count == 1 && m.records[0].boot == 101);
    cr_assert_eq(m.records[0].clock, 1000000, "it is told");
    tell_word(lone, honest, 101, m.records[0].clock + 1, 3);
    cr_assert_eq(record_at(lone, 101)->version, 3);

    /* And this one, when it is told so. */
    uint64_t said = self_of(lone->node)->clock, lie = said + 1000;
    tell_word(lone, liar, lone->config.boot, said, 9);
    cr_assert_eq(self_of(lone->node)->clock, said);
    tell_word(lone, liar, lone->config.boot, UINT64_MAX, 9);
    cr_assert_eq(self_of(lone->node)->clock, said, "numbers are left to outbid lies with");
    lone_listen(lone, honest);
    tell_word(lone, liar, lone->config.boot, lie, 9);
    lone_run(lone, 100000);
    cr_assert(lone_heard(lone, WIRE_MEMBERS, &m) && m.records[0].boot == lone->config.boot);
    cr_assert(m.records[0].clock > lie && m.records[0].version == 0);
    lone_free(lone);
}

Test(merge, what_a_member_says_counts_however_often_it_has_spoken)
{
    /* Proves that a node that has trained for days is still heard: its clock goes on where 32 bits
     * end, in its own words and in what others merge. */
    struct lone *lone = listener();
    uint32_t conn = lone_peer(lone, "m101", 101);
    struct message_members m = {.records = {honest_record(101, 1, PARLEY_MEMBER_ALIVE, 1)},
                                .count = 1};
    m.records[0].clock = UINT32_MAX;
    m.records[0].version = 1;
    lone_say(lone, conn, WIRE_MEMBERS, &m);
    m.records[0].clock++;
    m.records[0].version = 2;
    lone_say(lone, conn, WIRE_MEMBERS, &m);
    cr_assert_eq(record_at(lone, 101)->version, 2);

    self_of(lone->node)->clock = UINT32_MAX;
    lone_listen(lone, conn);
    lone_step(lone,
              (struct parley_event){.type = PARLEY_EVENT_STOP, .stop = {PARLEY_STOP_OPERATOR}});
    lone_run(lone, 100000);
    cr_assert(lone_heard(lone, WIRE_MEMBERS, &m) && m.records[0].boot == lone->config.boot);
    cr_assert_gt(m.records[0].clock, UINT32_MAX - 1);
    lone_free(lone);
}
