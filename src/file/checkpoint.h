/* checkpoint.h: a node's state in training, as bytes: parameters, optimizer vectors, how far it is.
 *
 * A safetensors file: header | x | state.0 | ... | digest. The last tensor, of 32 bytes, is the
 * SHA-256 of all bytes before it, header included: so a file that was cut anywhere, or in which any
 * bit has flipped, is told from a whole one. Thread rule: pure.
 */
#ifndef PARLEY_FILE_CHECKPOINT_H
#define PARLEY_FILE_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/digest.h"
#include "parley/config.h"
#include "parley/error.h"

#define CHECKPOINT_TEXT_BYTES 256

/* As parley_setting. */
struct checkpoint_setting {
    char name[32], value[64];
};

struct checkpoint {
    char node[PARLEY_NAME_SIZE];           /* its name */
    char model[CHECKPOINT_TEXT_BYTES];     /* spec in its normal form */
    char optimizer[CHECKPOINT_TEXT_BYTES]; /* its name */
    char data[CHECKPOINT_TEXT_BYTES];      /* what it has trained on; another name: other data */
    uint64_t run;                          /* job.h's; another one: other settings, or cluster */
    uint64_t n;                            /* floats in a vector, at least 1 */
    uint32_t vectors;                      /* x and the optimizer's, 1 to PARLEY_VECTORS_MAX */
    uint64_t steps, samples;               /* that the node has made and used, all told; steps
                                              that all make in common: those in its model */
    uint64_t state_steps;                  /* that the optimizer's vectors have been through */
    uint64_t samples_cluster;              /* that all nodes together have used */
    uint64_t trained_us;                   /* that they have trained */
    uint64_t pass, position;               /* in its share of the data: sampler.h's place */
    struct checkpoint_setting settings[PARLEY_SETTINGS_MAX]; /* job.h's shared ones */
    uint32_t settings_count;
};

/* What stands before the vectors; *header is to be freed. After them comes the digest of it all.
 * PARLEY_EUSAGE for texts that are not printable, PARLEY_ELIMIT, PARLEY_ENOMEM. */
PARLEY_CHECK int checkpoint_header(const struct checkpoint *checkpoint, uint8_t **header,
                                   size_t *size);

/* Reads bytes[size]; *vectors: [checkpoint->vectors][n] in them, not aligned. PARLEY_EDATA with the
 * reason in why[why_size] for all that is not exactly as it was written, PARLEY_ENOMEM. */
PARLEY_CHECK int checkpoint_read(struct checkpoint *checkpoint, const uint8_t **vectors,
                                 const uint8_t *bytes, size_t size, char *why, size_t why_size);

#endif
