/* replay.c: runs targets on their seeds, on kept inputs, and on a few mutations of both; for every
 * compiler and for each run of the tests.
 *
 *   fuzz-replay --list                  names of all targets
 *   fuzz-replay --seeds TARGET DIR      writes the seeds as files
 *   fuzz-replay TARGET FILE...          only those inputs: to see a finding again
 *   fuzz-replay --all CORPUS TRIES      each target: seeds, CORPUS/TARGET/ and TRIES mutations
 *
 * Before each input its bytes stand in a file, so that the one that breaks a target is there to be
 * looked at: its name is told at the beginning.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rng.h"
#include "fuzz.h"

enum { INPUTS_MAX = 4096, INPUT_BYTES_MAX = 1 << 20, MUTATED_BYTES_MAX = 4096 };

struct input {
    uint8_t *bytes;
    size_t size;
};

struct inputs {
    struct input list[INPUTS_MAX];
    size_t count;
};

static void add(void *context, const void *bytes, size_t size)
{
    struct inputs *inputs = context;
    if (inputs->count == INPUTS_MAX) return;
    struct input *input = &inputs->list[inputs->count++];
    /* Exactly as large, so that a sanitizer sees a read beyond the end; and never NULL. */
    *input = (struct input){malloc(size ? size : 1), size};
    if (!input->bytes) exit(1);
    memcpy(input->bytes, bytes, size);
}

static int add_file(struct inputs *inputs, const char *path)
{
    static uint8_t bytes[INPUT_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    add(inputs, bytes, size);
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A folder that is not there has no inputs. */
static int add_folder(struct inputs *inputs, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name), failed = 0;
    for (int i = 0; i < count; i++) {
        char path[2048];
        snprintf(path, sizeof path, "%.1024s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') failed |= add_file(inputs, path);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return failed;
}

static void release(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->list[i].bytes);
    inputs->count = 0;
}

/* Bytes changed, cut, doubled, or taken over from another input. */
static struct input mutate(const struct inputs *inputs, struct rng *rng)
{
    struct input from = inputs->list[rng_below(rng, (uint32_t)inputs->count)];
    size_t room = from.size < MUTATED_BYTES_MAX ? from.size : MUTATED_BYTES_MAX;
    struct input made = {malloc(2 * room + 1), room};
    if (!made.bytes) exit(1);
    memcpy(made.bytes, from.bytes, room);
    for (uint32_t changes = 1 + rng_below(rng, 4); changes > 0 && made.size > 0; changes--) {
        uint32_t at = rng_below(rng, (uint32_t)made.size);
        size_t behind = made.size - at;
        const struct input *other = &inputs->list[rng_below(rng, (uint32_t)inputs->count)];
        switch (rng_below(rng, 6)) {
        case 0:
            made.bytes[at] ^= (uint8_t)(1 << rng_below(rng, 8));
            break;
        case 1:
            made.bytes[at] = (uint8_t)rng_below(rng, 256);
            break;
        case 2:
            made.bytes[at] = (uint8_t[]){0, 0xff, 0x7f, 0x80}[rng_below(rng, 4)];
            break;
        case 3:
            made.size = at;
            break;
        case 4:
            if (made.size + behind > 2 * room) break;
            memmove(made.bytes + at + behind, made.bytes + at, behind);
            made.size += behind;
            break;
        default:
            if (other->size < made.size) break;
            memcpy(made.bytes + at, other->bytes + at, behind);
        }
    }
    return made;
}

/* Leaves the input behind in the file `last`, where it breaks the target. */
static void run(const struct fuzz_target *target, const struct input *input, int last)
{
    if (pwrite(last, input->bytes, input->size, 0) != (ssize_t)input->size ||
        ftruncate(last, (off_t)input->size))
        exit(1);
    target->run(input->bytes, input->size);
}

static int run_all(const struct fuzz_target *target, const char *corpus, uint32_t tries, int last)
{
    static struct inputs inputs;
    char folder[1024];
    target->seeds(add, &inputs);
    snprintf(folder, sizeof folder, "%s/%s", corpus, target->name);
    if (add_folder(&inputs, folder)) return 1;
    printf("%s: %zu inputs, %u mutations\n", target->name, inputs.count, tries);
    fflush(stdout);
    for (size_t i = 0; i < inputs.count; i++)
        run(target, &inputs.list[i], last);
    struct rng rng = rng_init(1, inputs.count);
    for (uint32_t i = 0; i < tries; i++) {
        struct input made = mutate(&inputs, &rng);
        struct input exact = {realloc(made.bytes, made.size ? made.size : 1), made.size};
        if (!exact.bytes) exit(1);
        run(target, &exact, last);
        free(exact.bytes);
    }
    release(&inputs);
    return 0;
}

struct folder {
    const char *path;
    uint32_t count;
};

static void write_seed(void *context, const void *bytes, size_t size)
{
    struct folder *folder = context;
    char path[1024];
    snprintf(path, sizeof path, "%s/seed-%03u", folder->path, folder->count++);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) {
        perror(path);
        exit(1);
    }
}

static int run_files(const struct fuzz_target *target, char **paths)
{
    static struct inputs inputs;
    for (; *paths; paths++) {
        if (add_file(&inputs, *paths)) return 1;
        fprintf(stderr, "%s\n", *paths);
        target->run(inputs.list[0].bytes, inputs.list[0].size);
        release(&inputs);
    }
    return 0;
}

static int replay(const char *corpus, uint32_t tries)
{
    char path[] = "/tmp/parley-fuzz-XXXXXX";
    int last = mkstemp(path), failed = 0;
    if (last < 0) return 1;
    fprintf(stderr, "the input under way is in %s\n", path);
    for (const struct fuzz_target *target = fuzz_targets; target->name; target++)
        failed |= run_all(target, corpus, tries, last);
    close(last);
    unlink(path);
    return failed;
}

int main(int argc, char **argv)
{
    const struct fuzz_target *target;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (target = fuzz_targets; target->name; target++)
            puts(target->name);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--seeds") == 0 && (target = fuzz_find(argv[2]))) {
        target->seeds(write_seed, &(struct folder){argv[3], 0});
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--all") == 0)
        return replay(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
    if (argc > 2 && (target = fuzz_find(argv[1]))) return run_files(target, argv + 2);
    fprintf(stderr, "see the head of tests/fuzz/replay.c for how to call this\n");
    return 2;
}
