/* record.h: the record of an agreement, JSON beside the model (FILE.agreement.json).
 *
 * The model is identical on all nodes; the record says what one node saw: who held and locked the
 * digest, out of how many known, and how the run ended. Its counts can be told again from its list
 * of members, and its digests from the model's file, so that a stranger can check it. Thread rule:
 * pure; call from any thread.
 */
#ifndef PARLEY_FILE_RECORD_H
#define PARLEY_FILE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/digest.h"
#include "parley/error.h"

#define RECORD_SUFFIX ".agreement.json" /* behind the name of the model's file */
#define RECORD_NAME_BYTES 64
#define RECORD_MEMBERS_MAX 4096
#define RECORD_BYTES_MAX (1024 * 1024)

struct record_member {
    char name[RECORD_NAME_BYTES];
    bool live;     /* in the view that decided, or the writer, which may have come later */
    bool held;     /* announced HELD with this model on disk */
    bool locked;   /* announced that it locked it: a voter; or the writer */
    uint64_t boot; /* which process of that name */
};

struct record {
    uint8_t digest[DIGEST_BYTES]; /* of the model, as digest_model makes it */
    uint8_t file[DIGEST_BYTES];   /* plain SHA-256 of the whole file, metadata included */
    uint64_t run;
    char node[RECORD_NAME_BYTES];  /* who wrote this */
    char cause[RECORD_NAME_BYTES]; /* of the stop: "budget", "target", "deadline", "operator" */
    uint64_t generation;           /* of the agreement, below 2^63 */
    uint32_t held, live, known;
    uint32_t majority_of;          /* the fixed N of --quorum majority; 0 under live */
    double drift_before;           /* relative, before agreement; written as null if not finite */
    struct record_member *members; /* [member_count]; owned if decoded */
    uint32_t member_count;
};

/* What contradicts itself: counts unlike the members, more live than known, a live member without a
 * lock (live quorum), locks of no majority, names empty, twice or not printable.
 * PARLEY_EDATA with the reason in why[why_size]. */
PARLEY_CHECK int record_check(const struct record *record, char *why, size_t why_size);

/* *text: JSON with a newline at its end, to be freed. PARLEY_EUSAGE if record_check fails,
 * PARLEY_ENOMEM. */
PARLEY_CHECK int record_encode(const struct record *record, char **text);

/* Reads and checks bytes[size]. PARLEY_EDATA with the reason, PARLEY_ENOMEM; nothing to close then.
 */
PARLEY_CHECK int record_decode(struct record *record, const uint8_t *bytes, size_t size, char *why,
                               size_t why_size);

/* The process of this boot is among its members. */
bool record_names(const struct record *record, uint64_t boot);

/* Whether the record is about that model and file: the recomputed digests, and the run id that the
 * file states. PARLEY_EDATA with the reason. */
PARLEY_CHECK int record_match(const struct record *record, const uint8_t digest[DIGEST_BYTES],
                              const uint8_t file[DIGEST_BYTES], uint64_t run, char *why,
                              size_t why_size);

void record_close(struct record *record);

#endif
