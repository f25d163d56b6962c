/* fuzz.h: what is fuzzed: the table of targets, and what their files share.
 *
 * A target is a function on any bytes, and a maker of seeds: inputs from the real encoders, from
 * which mutation starts. Two programs are built of the same files:
 *
 *   fuzz-replay   any compiler: seeds, kept corpus (corpus/TARGET/) and some mutations of both
 *   fuzz          clang's libFuzzer, with -Dfuzz=true: see ../fuzz.sh
 *
 * A target says by abort() that something is broken; the sanitizers say the rest. It keeps nothing
 * from one input to the next.
 */
#ifndef PARLEY_TESTS_FUZZ_H
#define PARLEY_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* X(name) */
#define FUZZ_TARGETS(X)                                                                            \
    X(wire)  /* frame header, chunk header, and the walk before the unpacker */                    \
    X(frame) /* each control frame there and back */                                               \
    X(hello) /* HELLO to a node, in pieces */                                                      \
    X(step)  /* events into the core's step */                                                     \
    X(merge) /* member records: commutative, associative, idempotent */                            \
    X(model) /* model files, and safetensors of any kind */                                        \
    X(checkpoint)                                                                                  \
    X(record) /* the record of an agreement */                                                     \
    X(idx)                                                                                         \
    X(csv)                                                                                         \
    X(libsvm)                                                                                      \
    X(npy)                                                                                         \
    X(text)                                                                                        \
    X(gzip)                                                                                        \
    X(graph)    /* topology files, and lists of peers */                                           \
    X(settings) /* settings files */                                                               \
    X(flags)    /* command lines and environments */

typedef void fuzz_emit(void *context, const void *bytes, size_t size);

#define X(name)                                                                                    \
    void fuzz_##name(const uint8_t *bytes, size_t size);                                           \
    void fuzz_##name##_seeds(fuzz_emit *emit, void *context);
FUZZ_TARGETS(X)
#undef X

struct fuzz_target {
    const char *name;
    void (*run)(const uint8_t *bytes, size_t size);
    void (*seeds)(fuzz_emit *emit, void *context);
};

/* NULL: there is none of that name. */
const struct fuzz_target *fuzz_find(const char *name);
extern const struct fuzz_target fuzz_targets[]; /* ends with a name that is NULL */

/* Says what is broken, and aborts. */
_Noreturn void fuzz_broken(const char *file, int line, const char *what);
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition))

/* What the shared headers of the unit tests ask of Criterion. */
#define cr_assert(...) FUZZ_CHECK(FUZZ_FIRST(__VA_ARGS__, 0))
#define cr_assert_eq(...) FUZZ_CHECK(FUZZ_EQUAL(__VA_ARGS__, 0))
#define cr_assert_not_null(a) FUZZ_CHECK((a) != NULL)
#define FUZZ_FIRST(condition, ...) (condition)
#define FUZZ_EQUAL(a, b, ...) ((a) == (b))

/* Numbers drawn from an input; 0 once it is used up. */
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};

static inline uint32_t fuzz_below(struct fuzz_bytes *bytes, uint32_t bound)
{
    uint32_t value = 0;
    for (uint32_t most = bound - 1; most > 0 && bytes->left > 0; most >>= 8) {
        value = value << 8 | *bytes->at++;
        bytes->left--;
    }
    return value % bound;
}

/* The input's next `size` bytes, or fewer. */
static inline struct fuzz_bytes fuzz_take(struct fuzz_bytes *bytes, size_t size)
{
    struct fuzz_bytes taken = {bytes->at, size < bytes->left ? size : bytes->left};
    bytes->at += taken.left;
    bytes->left -= taken.left;
    return taken;
}

#endif
