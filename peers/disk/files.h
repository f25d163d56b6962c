/* files.h: the final model on disk: nothing stands under its name before the cluster agreed.
 *
 *     files_write    that a model is held from now on (vote.h), then OUT.<boot>.part: written,
 *                    fsynced, read back from disk, hashed
 *     files_publish  the agreement's record, then the model: renamed into place, directory fsynced
 *
 * Two nodes may share one OUT: their parts have names of their own, and the models are equal bytes.
 * One that stood still until the others had ended agrees without them: its model is OUT.NAME then,
 * unless it has more to agree with than they had.
 * Failure modes: done.ok is false, op->why names file and cause, and the half-written part is
 * removed. Without an OUT both succeed, and only the hash is made.
 * Thread rule: the worker's, between init and close; but for files_remove_parts().
 */
#ifndef PARLEY_PEERS_FILES_H
#define PARLEY_PEERS_FILES_H

#include "compute/op.h"
#include "compute/vectors.h"
#include "disk/vote.h"
#include "file/model_file.h"
#include "parley/parley.h"

struct files {
    char *out;        /* NULL: none */
    char *part;       /* what was written and not yet published; NULL: nothing */
    char *aside;      /* OUT.NAME, where the model stands there; NULL: it doesn't */
    const char *name; /* borrowed */
    uint64_t boot;
    uint8_t hash[PARLEY_DIGEST_BYTES]; /* of the whole part */
    struct vectors *vectors;
    const struct vote *vote; /* NULL, or borrowed: set after files_init() */
    struct model_meta meta;  /* but for the digest; shift, which scale follows, and names: owned */
};

/* What stands there is replaced by a new file in the end: that must not hit a device, nor a file
 * that is no model, and there must be a place for it. Said before hours of training, and not after:
 * PARLEY_EUSAGE, with a line.
 */
int files_check_place(const char *path, char *why, size_t size);

/* Copies the names and what the options are about; of the node `name` and `boot` are.
 * PARLEY_ENOMEM; PARLEY_EUSAGE with a line: no model file can say that; better now than after the
 * training. May be closed after any outcome. */
int files_init(struct files *files, struct vectors *vectors, const struct parley_options *options,
               const char *name, uint64_t boot, char *why, size_t size);

/* Removes a part that was not published. */
void files_close(struct files *files);

/* What a node of this boot has not given its name yet, of the model and its record. For a process
 * that is about to end in the middle of it; any thread. */
void files_remove_parts(const char *out, uint64_t boot);

void files_write(struct files *files, struct op *op);
void files_publish(struct files *files, struct op *op);

#endif
