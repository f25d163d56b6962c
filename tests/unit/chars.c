/* chars.c: texts as windows of characters. */
#include "data/formats/chars.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

static char why[512];

static int load(struct dataset *set, struct names *vocabulary, const char *text, size_t size,
                uint32_t window, bool test)
{
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, text, size);
    int error = chars_load(set, vocabulary, (struct bytes){copy, size, "t.txt"}, window, test, why,
                           sizeof why);
    free(copy);
    return error;
}

Test(chars, windows_follow_each_other_and_every_character_but_the_first_is_a_target)
{
    /* Proves order of characters, windows, labels, and that the text can be put together again. */
    static const char text[] = "b\xc3\xa9"
                               "a bb\xe2\x82\xac"
                               "ab";
    static const uint8_t bytes[] = {2, 3, 1, 0, 2, 2, 4, 1}; /* " ", a, b, é, € */
    static const uint16_t labels[] = {0, 4, 2};
    struct dataset set;
    struct names vocabulary = {0};
    cr_assert_eq(load(&set, &vocabulary, text, sizeof text - 1, 3, false), 0, "%s", why);
    cr_expect(set.count == 2 && set.features == 3 && set.classes == 5 && set.text);
    cr_expect_eq(memcmp(set.bytes, bytes, 6), 0);
    cr_expect_eq(memcmp(set.labels, labels, 2 * sizeof *labels), 0);
    cr_expect_str_eq(names_text(&vocabulary, 4), "\xe2\x82\xac");
    dataset_close(&set);
    names_close(&vocabulary);
    cr_assert_eq(load(&set, &vocabulary, text, sizeof text - 1, 8, false), 0, "%s", why);
    cr_expect_eq(set.count, 1);
    cr_expect_eq(memcmp(set.bytes, bytes, 8), 0);
    cr_expect_eq(set.labels[0], 2);
    dataset_close(&set);
    names_close(&vocabulary);
}

Test(chars, a_byte_order_mark_begins_a_file_and_is_no_character)
{
    /* Proves that it is skipped once, of training and test texts, and is one where text goes on. */
    static const char mark[] = "\xef\xbb\xbf", text[] = "\xef\xbb\xbf"
                                                        "ab\xef\xbb\xbf";
    struct dataset set;
    struct names vocabulary = {0};
    cr_assert_eq(load(&set, &vocabulary, text, 5, 1, false), 0, "%s", why);
    cr_expect(set.text && set.classes == 2 && set.count == 1 && set.bytes[0] == 0 &&
              set.labels[0] == 1);
    dataset_close(&set);
    cr_assert_eq(load(&set, &vocabulary, text, 5, 1, true), 0, "%s", why);
    dataset_close(&set);
    cr_expect_eq(load(&set, &vocabulary, text, sizeof text - 1, 1, true), PARLEY_EDATA);
    cr_expect(strstr(why, "t.txt:1:3: "), "%s", why);
    cr_expect_eq(load(&set, &vocabulary, mark, 3, 1, true), PARLEY_EDATA);
    cr_expect(strstr(why, "0 characters"), "%s", why);
    uint16_t numbers[4];
    size_t count;
    cr_expect_eq(chars_encode(&vocabulary, (struct bytes){(const uint8_t *)text, 4, "prompt"},
                              numbers, &count, why, sizeof why),
                 PARLEY_EDATA);
    names_close(&vocabulary);
}

Test(chars, numbers_of_characters_are_not_scaled)
{
    /* Proves that a batch holds what a model looks up by. */
    struct dataset set;
    struct names vocabulary = {0};
    const uint32_t index[] = {0};
    float inputs[3];
    uint16_t label[1];
    cr_assert_eq(load(&set, &vocabulary, "abca", 4, 3, false), 0);
    cr_assert_eq(dataset_measure(&set), 0);
    dataset_gather(&set, index, 1, inputs, label);
    cr_expect(inputs[0] == 0 && inputs[1] == 1 && inputs[2] == 2 && label[0] == 0);
    dataset_close(&set);
    names_close(&vocabulary);
}

Test(chars, a_bad_text_is_refused_with_line_and_column)
{
    /* Proves the position and the words of each refusal, and that no terminal obeys them. */
    static const struct {
        const char *text;
        const char *why;
    } bad[] = {
        {"", "t.txt: 0 characters, expected more than a window of 2 (,window=N)"},
        {"\xc3\xa9x", "t.txt: 2 characters, expected more than a window of 2 (,window=N)"},
        {"abc\n\xc3\xa9\xff", "t.txt:2:2: found byte 0xff, expected UTF-8 text"},
        {"ab\xc3", "t.txt:1:3: found byte 0xc3, expected UTF-8 text"},
        {"\xc0\xaf", "t.txt:1:1: found byte 0xc0, expected UTF-8 text"},     /* too long a form */
        {"\xed\xa0\x80", "t.txt:1:1: found byte 0xed, expected UTF-8 text"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "t.txt:1:1: found byte 0xf4, expected UTF-8 text"}, /* past the last */
    };
    struct dataset set, test;
    struct names vocabulary = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(load(&set, &vocabulary, bad[i].text, strlen(bad[i].text), 2, false),
                     PARLEY_EDATA);
        cr_expect_str_eq(why, bad[i].why);
        names_close(&vocabulary);
    }
    cr_assert_eq(load(&set, &vocabulary, "abcab", 5, 2, false), 0);
    cr_expect_eq(load(&test, &vocabulary, "ab\nabxa", 7, 2, true), PARLEY_EDATA);
    cr_expect_str_eq(why,
                     "t.txt:1:3: found a character (first byte 0x0a, \"\\x0a\") that the training "
                     "text has not");
    cr_expect_eq(load(&test, &vocabulary, "ab\xc2\x9b[2J", 7, 2, true), PARLEY_EDATA);
    cr_expect_str_eq(
        why, "t.txt:1:3: found a character (first byte 0xc2, \"\\xc2\\x9b\") that the training "
             "text has not");
    cr_assert_eq(load(&test, &vocabulary, "cba", 3, 2, true), 0);
    cr_expect(test.bytes[0] == 2 && test.bytes[1] == 1 && test.labels[0] == 0);
    dataset_close(&test);
    dataset_close(&set);
    names_close(&vocabulary);
}

Test(chars, the_257th_character_is_one_too_many)
{
    /* Proves the limit from both sides. */
    char text[1024];
    size_t size = 0;
    struct dataset set;
    struct names vocabulary = {0};
    for (int c = 0; c < 257; c++) {
        if (c == 256) {
            cr_assert_eq(load(&set, &vocabulary, text, size, 2, false), 0, "%s", why);
            cr_expect_eq(set.classes, 256);
            cr_expect_eq(set.bytes[255 - 255 % 2 - 1], 253);
            dataset_close(&set);
            names_close(&vocabulary);
        }
        text[size++] = (char)(0xc4 + c / 64);
        text[size++] = (char)(0x80 + c % 64);
    }
    cr_expect_eq(load(&set, &vocabulary, text, size, 2, false), PARLEY_EDATA);
    cr_expect_str_eq(why, "t.txt:1:257: found a 257th different character, \"\xc8\x80\", one too "
                          "many");
    names_close(&vocabulary);
}

Test(chars, random_bytes_are_refused_or_read_but_never_overrun)
{
    /* Proves the decoder's ends under the sanitizers. */
    static const uint8_t pool[] = {0,    'a',  '\n', 0x80, 0xbf, 0xc2,
                                   0xe0, 0xed, 0xa0, 0xf0, 0xf4, 0x90};
    struct rng rng = rng_init(1, 1);
    for (int t = 0; t < 20000; t++) {
        char text[9];
        size_t size = 1 + rng_below(&rng, sizeof text);
        struct dataset set;
        struct names vocabulary = {0};
        for (size_t i = 0; i < size; i++)
            text[i] = (char)pool[rng_below(&rng, sizeof pool)];
        int error = load(&set, &vocabulary, text, size, 1 + (uint32_t)t % 3, false);
        cr_assert(error == 0 || error == PARLEY_EDATA);
        for (size_t i = 0; i < (size_t)set.count * set.features; i++)
            cr_assert_lt(set.bytes[i], set.classes);
        dataset_close(&set);
        names_close(&vocabulary);
    }
}

Test(chars, a_zero_byte_is_no_text)
{
    /* Proves that a binary file is told from a text, and that a vocabulary is a C string. */
    struct dataset set;
    struct names vocabulary = {0};
    cr_expect_eq(load(&set, &vocabulary, "abc\0d", 5, 2, false), PARLEY_EDATA);
    cr_expect_str_eq(why, "t.txt:1:4: found byte 0x00, expected UTF-8 text");
    names_close(&vocabulary);
}

Test(chars, a_vocabulary_is_written_and_read_back_and_encodes_texts)
{
    /* Proves what a model file carries, so that prompts go by the numbers of the training text. */
    static const char text[] = "b\xc3\xa9"
                               "a bb\xe2\x82\xac\n";
    struct dataset set;
    struct names vocabulary = {0}, back = {0};
    char written[CHARS_VOCABULARY_BYTES];
    uint16_t numbers[8];
    size_t count;
    cr_assert_eq(load(&set, &vocabulary, text, sizeof text - 1, 3, false), 0);
    chars_write_vocabulary(&vocabulary, written);
    cr_expect_str_eq(written, "\n ab\xc3\xa9\xe2\x82\xac");
    cr_assert_eq(chars_read_vocabulary(&back, written), 0);
    struct bytes prompt = {(const uint8_t *)"a\xe2\x82\xac\n", 5, "--prompt"};
    cr_assert_eq(chars_encode(&back, prompt, numbers, &count, why, sizeof why), 0);
    cr_expect(count == 3 && numbers[0] == 2 && numbers[1] == 5 && numbers[2] == 0);
    struct bytes other = {(const uint8_t *)"ax", 2, "--prompt"};
    cr_expect_eq(chars_encode(&back, other, numbers, &count, why, sizeof why), PARLEY_EDATA);
    cr_expect_str_eq(why, "--prompt:1:2: found a character (first byte 0x78, \"x\") that the "
                          "training text has not");
    cr_expect_eq(chars_read_vocabulary(&back, "a\xff"), PARLEY_EDATA);
    dataset_close(&set);
    names_close(&vocabulary);
    names_close(&back);
}

Test(chars, the_largest_vocabulary_fits_its_text)
{
    /* Proves the bound: 256 characters of four bytes. */
    struct names vocabulary = {0}, back = {0};
    char written[CHARS_VOCABULARY_BYTES];
    for (int i = 0; i < 256; i++) {
        char c[] = {'\xf0', '\x9f', (char)(0x80 + i / 64), (char)(0x80 + i % 64)};
        cr_assert_eq(names_add(&vocabulary, c, 4), 0);
    }
    chars_write_vocabulary(&vocabulary, written);
    cr_expect_eq(strlen(written), 1024);
    cr_assert_eq(chars_read_vocabulary(&back, written), 0);
    cr_expect_eq(back.count, 256);
    names_close(&vocabulary);
    names_close(&back);

    /* 257 of one or two bytes would fit in there, too, and their numbers in no byte. */
    char more[CHARS_VOCABULARY_BYTES];
    size_t at = 0;
    for (int i = 1; i <= 257; i++) {
        if (i >= 128) more[at++] = (char)(0xc0 + i / 64);
        more[at++] = (char)(i < 128 ? i : 0x80 + i % 64);
    }
    more[at] = 0;
    cr_expect_eq(chars_read_vocabulary(&back, more), PARLEY_EDATA);
    cr_expect_eq(back.count, 256);
    names_close(&back);
}
