/* idx.c: IDX files, plain and gzip, whole and damaged. */
#include "data/formats/idx.h"
#include "data/formats/gzip.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COUNT 12
#define SIDE 5
#define IMAGES_SIZE (16 + COUNT * SIDE * SIDE)
#define LABELS_SIZE (8 + COUNT)

/* A well-formed pair; room for what tests append. */
struct pair {
    uint8_t images[IMAGES_SIZE + 16], labels[LABELS_SIZE + 16];
    size_t images_size, labels_size;
    char why[200];
};

static void put(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static struct pair make_pair(void)
{
    struct pair p = {.images_size = IMAGES_SIZE, .labels_size = LABELS_SIZE};
    const uint32_t header[] = {0x803, COUNT, SIDE, SIDE};
    for (int i = 0; i < 4; i++)
        put(p.images + 4 * i, header[i]);
    for (int i = 0; i < COUNT * SIDE * SIDE; i++)
        p.images[16 + i] = (uint8_t)(i * 31);
    put(p.labels, 0x801);
    put(p.labels + 4, COUNT);
    for (int i = 0; i < COUNT; i++)
        p.labels[8 + i] = (uint8_t)(i % 7);
    return p;
}

static int load(struct pair *p, struct dataset *set, uint32_t classes)
{
    /* Copies of the exact size, so that the sanitizers see a byte read too far. */
    uint8_t *images = malloc(p->images_size + !p->images_size);
    uint8_t *labels = malloc(p->labels_size + !p->labels_size);
    memcpy(images, p->images, p->images_size);
    memcpy(labels, p->labels, p->labels_size);
    int error =
        idx_load(set, (struct bytes){images, p->images_size, "images"},
                 (struct bytes){labels, p->labels_size, "labels"}, classes, p->why, sizeof p->why);
    free(images);
    free(labels);
    return error;
}

static void expect_refused(struct pair *p, uint32_t classes, const char *why)
{
    struct dataset set;
    cr_assert_eq(load(p, &set, classes), PARLEY_EDATA, "expected: %s", why);
    cr_assert_str_eq(p->why, why);
    cr_assert_null(set.bytes);
    cr_assert_null(set.labels);
}

/* gzip of data[size]; *out_size in: room, out: bytes. */
static void pack(const uint8_t *data, size_t size, uint8_t *out, size_t *out_size)
{
    z_stream z = {0};
    cr_assert_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)*out_size;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_size = z.total_out;
    deflateEnd(&z);
}

static void expect_loaded(const struct dataset *set)
{
    cr_assert_eq(set->count, COUNT);
    cr_assert_eq(set->features, SIDE * SIDE);
    cr_assert(set->channels == 1 && set->height == SIDE && set->width == SIDE);
    for (int i = 0; i < COUNT * SIDE * SIDE; i++)
        cr_assert_eq(set->bytes[i], (uint8_t)(i * 31));
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(set->labels[i], i % 7);
}

Test(idx, a_whole_pair_is_read)
{
    /* Proves sizes, bytes and labels; classes are the largest label + 1, or those asked for. */
    struct pair p = make_pair();
    struct dataset set;
    cr_assert_eq(load(&p, &set, 0), 0);
    expect_loaded(&set);
    cr_assert_eq(set.classes, 7);
    dataset_close(&set);
    cr_assert_eq(load(&p, &set, 10), 0);
    cr_assert_eq(set.classes, 10);
    dataset_close(&set);
}

Test(idx, gzip_is_known_by_its_first_bytes)
{
    /* Proves that a packed file reads as the plain one does, in two members and padded too. */
    struct pair p = make_pair();
    uint8_t images[1024], labels[256] = {0};
    size_t first = sizeof images, second, labels_size = sizeof labels;
    pack(p.images, 100, images, &first);
    second = sizeof images - first;
    pack(p.images + 100, IMAGES_SIZE - 100, images + first, &second);
    pack(p.labels, LABELS_SIZE, labels, &labels_size);
    struct dataset set;
    cr_assert_eq(idx_load(&set, (struct bytes){images, first + second, "images"},
                          (struct bytes){labels, labels_size + 10, "labels"}, 0, p.why,
                          sizeof p.why),
                 0);
    expect_loaded(&set);
    dataset_close(&set);
}

Test(idx, each_malformed_header_is_refused_by_name_position_and_value)
{
    /* Proves the messages of headers that are no IDX header, or one of another kind. */
    struct pair p = make_pair();
    p.images_size = 15;
    expect_refused(&p, 0, "images: 15 bytes are too few for an IDX header of 16");
    p = make_pair();
    p.labels_size = 0;
    expect_refused(&p, 0, "labels: 0 bytes are too few for an IDX header of 8");
    p = make_pair();
    put(p.images, 0x801);
    expect_refused(&p, 0, "images: the magic number at byte 0 is 0x00000801, expected 0x00000803");
    p = make_pair();
    put(p.images + 8, 0);
    expect_refused(&p, 0, "images: size 2 of 3 at byte 8 is 0");
    p = make_pair();
    put(p.images + 8, 0xffffffff);
    put(p.images + 12, 0xffffffff);
    expect_refused(&p, 0,
                   "images: images of 4294967295x4294967295 at byte 8, the limit is 16777216 "
                   "pixels");
}

Test(idx, a_file_of_another_size_than_its_header_says_is_refused)
{
    /* Proves the check in both directions and with counts that overflow 32 bits. */
    struct pair p = make_pair();
    p.images_size--;
    expect_refused(&p, 0, "images: header says 12 images of 5x5 = 316 bytes, the file has 315");
    p = make_pair();
    p.images_size++;
    expect_refused(&p, 0, "images: header says 12 images of 5x5 = 316 bytes, the file has 317");
    p = make_pair();
    put(p.images + 4, 0xffffffff);
    expect_refused(&p, 0,
                   "images: header says 4294967295 images of 5x5 = 107374182391 bytes, the file "
                   "has 316");
    p = make_pair();
    p.labels_size--;
    expect_refused(&p, 0, "labels: header says 12 labels = 20 bytes, the file has 19");
}

Test(idx, labels_must_fit_the_images_and_the_classes)
{
    /* Proves the count check and that a bad label is named with its place and value. */
    struct pair p = make_pair();
    put(p.labels + 4, COUNT + 1);
    p.labels_size++;
    expect_refused(&p, 0, "labels: 13 labels for the 12 images of images");
    p = make_pair();
    p.labels[8 + 9] = 10;
    expect_refused(&p, 10, "labels: label 10 of sample 9 (byte 17), the classes are 0 to 9");
}

Test(idx, a_gzip_file_cut_at_any_byte_or_damaged_is_refused)
{
    /* Proves that no cut passes and no flipped bit of the data changes what is read unnoticed. */
    struct pair p = make_pair();
    uint8_t images[1024];
    size_t size = sizeof images;
    pack(p.images, IMAGES_SIZE, images, &size);
    struct bytes labels = {p.labels, LABELS_SIZE, "labels"};
    struct dataset set;
    for (size_t cut = 2; cut < size; cut++) {
        uint8_t *copy = malloc(cut);
        memcpy(copy, images, cut);
        int error =
            idx_load(&set, (struct bytes){copy, cut, "images"}, labels, 0, p.why, sizeof p.why);
        cr_assert_eq(error, PARLEY_EDATA, "cut at %zu", cut);
        cr_assert(strstr(p.why, "cut short"), "%s", p.why);
        free(copy);
    }
    for (size_t at = 0; at < size; at++) {
        images[at] ^= 0x10;
        int error =
            idx_load(&set, (struct bytes){images, size, "images"}, labels, 0, p.why, sizeof p.why);
        /* Bytes 4 to 9 of the header are a date, flags and a system, which nothing checks. */
        if (error)
            cr_assert_eq(error, PARLEY_EDATA);
        else
            expect_loaded(&set);
        cr_assert(error || (at >= 4 && at < 10), "flip at %zu", at);
        dataset_close(&set);
        images[at] ^= 0x10;
    }
}

Test(idx, a_gzip_file_longer_or_shorter_inside_is_refused)
{
    /* Proves the size check after inflating, and that bytes behind the gzip data are named. */
    struct pair p = make_pair();
    uint8_t file[1024];
    const struct {
        size_t size;
        const char *why;
    } cases[] = {
        {IMAGES_SIZE - 1,
         "images: header says 12 images of 5x5 = 316 bytes, the file inflates to 315"},
        {IMAGES_SIZE + 1,
         "images: header says 12 images of 5x5 = 316 bytes, the file inflates to more than 316"},
    };
    struct bytes labels = {p.labels, LABELS_SIZE, "labels"};
    struct dataset set;
    for (int i = 0; i < 2; i++) {
        size_t size = sizeof file;
        pack(p.images, cases[i].size, file, &size);
        cr_assert_eq(
            idx_load(&set, (struct bytes){file, size, "images"}, labels, 0, p.why, sizeof p.why),
            PARLEY_EDATA);
        cr_assert_str_eq(p.why, cases[i].why);
    }
    size_t size = sizeof file;
    pack(p.images, IMAGES_SIZE, file, &size);
    file[size] = 'x';
    cr_assert_eq(
        idx_load(&set, (struct bytes){file, size + 1, "images"}, labels, 0, p.why, sizeof p.why),
        PARLEY_EDATA);
    cr_assert(strstr(p.why, "other bytes follow the gzip data"), "%s", p.why);
}

Test(idx, a_small_gzip_file_can_not_claim_much_memory)
{
    /* Proves that a claim beyond what deflate can hold, or beyond the limit, allocates nothing. */
    struct pair p = make_pair();
    uint8_t file[1024];
    size_t size = sizeof file;
    put(p.images + 4, 150000000); /* 3.75 GB, below the limit for one file */
    pack(p.images, IMAGES_SIZE, file, &size);
    struct bytes labels = {p.labels, LABELS_SIZE, "labels"};
    struct dataset set;
    cr_assert_eq(
        idx_load(&set, (struct bytes){file, size, "images"}, labels, 0, p.why, sizeof p.why),
        PARLEY_EDATA);
    cr_assert(strstr(p.why, "can't hold them"), "%s", p.why);
}

Test(idx, a_gzip_file_with_a_bound_of_more_than_32_bits_is_expanded)
{
    /* Proves it where size_t has 32 bits: of so large a file GZIP_RATIO_MAX times is just above. */
    enum { SIZE = 4161000, ROOM = SIZE + 10000 };
    uint8_t *data = malloc(SIZE), *file = malloc(ROOM), *all;
    size_t packed = ROOM, size;
    char why[200] = "";
    uint32_t x = 1;
    for (size_t i = 0; i < SIZE; i++) /* what zlib makes nothing less of */
        data[i] = (uint8_t)((x = 1664525 * x + 1013904223) >> 24);
    pack(data, SIZE, file, &packed);
    uint64_t bound = (uint64_t)packed * GZIP_RATIO_MAX;
    cr_assert(bound > UINT32_MAX && bound - UINT32_MAX < SIZE);
    cr_assert_eq(gzip_expand((struct bytes){file, packed, "large.gz"}, BYTES_MAX, &all, &size, why,
                             sizeof why),
                 0, "%s", why);
    cr_assert_eq(size, SIZE);
    cr_assert_eq(memcmp(all, data, SIZE), 0);
    free(all);
    free(file);
    free(data);
}

Test(idx, a_file_above_the_limit_is_refused_before_memory_is_taken)
{
    /* Proves BYTES_MAX, with a gzip file that is large enough (by padding) to make a claim. */
    struct pair p = make_pair();
    size_t size = 8000000;
    uint8_t *file = calloc(size, 1);
    put(p.images + 4, 300000000);
    size_t packed = size;
    pack(p.images, IMAGES_SIZE, file, &packed);
    struct bytes labels = {p.labels, LABELS_SIZE, "labels"};
    struct dataset set;
    cr_assert_eq(
        idx_load(&set, (struct bytes){file, size, "images"}, labels, 0, p.why, sizeof p.why),
        PARLEY_EDATA);
    char limit[40];
    snprintf(limit, sizeof limit, "may have %" PRIu64, BYTES_MAX);
    cr_assert(strstr(p.why, limit), "%s", p.why);
    free(file);
}
