/* parley/error.h: every error the library can return, with its name and text.
 *
 * A function that can fail returns 0 or a negative PARLEY_E... code. The exit status of the command
 * line for each error stands in the same table, so that the two can't drift apart.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_ERROR_H
#define PARLEY_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define PARLEY_CHECK __attribute__((warn_unused_result))
#else
#define PARLEY_CHECK
#endif

/* X(name, exit status of the command line, text) */
#define PARLEY_ERRORS(X)                                                                           \
    X(FAIL, 1, "run-time failure")                                                                 \
    X(NOMEM, 1, "out of memory")                                                                   \
    X(USAGE, 2, "bad usage or setting")                                                            \
    X(NO_AGREEMENT, 3, "no agreement was reached")                                                 \
    X(NETWORK, 4, "network set-up failed")                                                         \
    X(NAME_TAKEN, 4, "the node's name is taken by a live node")                                    \
    X(NO_SEED, 4, "no seed was reached in time")                                                   \
    X(MISMATCH, 6, "settings, shape or protocol unlike the cluster's")                             \
    X(DATA, 7, "data or model unreadable")                                                         \
    X(DIVERGED, 8, "the model is no longer finite")                                                \
    X(NOT_WRITTEN, 9, "the final model could not be written")                                      \
    X(INVARIANT, 10, "an invariant was broken")                                                    \
    X(MALFORMED, 1, "bytes from outside break the format")                                         \
    X(LIMIT, 1, "a limit was exceeded")                                                            \
    X(KEY, 5, "the cluster has another key")

enum parley_error_index {
#define X(name, status, text) PARLEY_ERROR_INDEX_##name,
    PARLEY_ERRORS(X)
#undef X
        PARLEY_ERRORS_COUNT
};

/* In this order no comma is last, which C++98 would not have. */
enum parley_error {
#define X(name, status, text) PARLEY_E##name = -1 - PARLEY_ERROR_INDEX_##name,
    PARLEY_ERRORS(X)
#undef X
        PARLEY_OK = 0
};

/* "PARLEY_EUSAGE"; "PARLEY_E?" for what is no error of ours. Static memory. */
const char *parley_error_name(int error);

/* One short clause, no full stop. Static memory. */
const char *parley_error_text(int error);

/* The exit status that the command line ends with: 0 for PARLEY_OK, else 1 to 10. */
int parley_error_status(int error);

#ifdef __cplusplus
}
#endif

#endif
