/* vectors.h: the floats: the vectors being trained, the pool of buffers, and what is done to them.
 *
 * The happy path: vectors_init, vectors_carry for each op, vectors_close.
 * Thread rule: that of op.h, whose table sees to it that no two ops touch one buffer at a time;
 * chunks are stored by the loop.
 */
#ifndef PARLEY_PEERS_VECTORS_H
#define PARLEY_PEERS_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "compute/op.h"
#include "kernels/codec.h"
#include "kernels/mix.h"
#include "parley/parley.h"
#include "train/model.h"

struct vectors {
    size_t count;                       /* floats in each vector and buffer */
    float *trained[PARLEY_VECTORS_MAX]; /* borrowed; [0] is x */
    float *block;                       /* all buffers */
    size_t block_bytes;
    int file;          /* that the block is mapped from, for peers on this machine; -1: none */
    uint32_t averaged; /* vectors that a buffer has room for */
    size_t stride;     /* floats from one buffer to the next */
    uint32_t buffers;
    struct mix_part *parts; /* [buffers] of differences, while they come in */
    uint64_t *sums;         /* [buffers][chunks] of the largest chunks of snapshots, ... */
    size_t chunks;
    double *norms_sq;       /* [buffers]: ... and ||snapshot||^2, ... */
    bool *known;            /* [buffers]: ... while they are as TAKE left them */
    float follow;           /* ADD adds so much of what x gets to trained[1], too; 0: nothing */
    uint64_t added;         /* ADDs so far */
    uint64_t run;           /* seeds sketches and masses */
    struct codec codec;     /* but for its draw */
    struct tensor *tensors; /* [tensors_count] */
    uint32_t tensors_count;
};

/* Copies the tensors. PARLEY_ENOMEM; PARLEY_EUSAGE with a line if the tensors don't fill the vector
 * or a vector is missing. `vectors` may be closed after any outcome. */
int vectors_init(struct vectors *vectors, const struct parley_options *options,
                 const struct parley_config *config, char *why, size_t size);
void vectors_close(struct vectors *vectors);

float *vectors_buffer(const struct vectors *vectors, uint32_t buffer); /* [count] */

/* A STORE: a part of a chunk that came in; offset and size were checked by the core. Goes on with
 * the difference that it is for, while the part is in the cache. */
void vectors_store(struct vectors *vectors, const struct parley_update *update);

/* Seals the head of a SEND_CHUNK. */
void vectors_seal(const struct vectors *vectors, const struct parley_update *update);

/* The program is about to write to this buffer. */
void vectors_forget(struct vectors *vectors, uint32_t buffer);

/* TAKE, SET, ADD, MIX, ENCODE, DIFF, COMBINE, SKETCH or HASH; the result goes to op->done. */
void vectors_carry(struct vectors *vectors, struct op *op);

/* An ADD, and a TAKE right behind it, in one pass over memory. False: they don't go together, and
 * nothing was done. */
bool vectors_add_take(struct vectors *vectors, struct op *add, struct op *take);

#endif
