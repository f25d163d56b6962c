/* chars.h: a text as windows of characters, for a model of language.
 *
 * A sample is a window of `window` characters' numbers, and its label is the number of the one that
 * follows; windows follow each other, each begins with the label of the one before. So all but the
 * first character of the text are targets: the i-th of a window is the target at its place i - 1.
 * Thread rule: pure; call from any thread.
 */
#ifndef PARLEY_DATA_CHARS_H
#define PARLEY_DATA_CHARS_H

#include "data/dataset.h"
#include "data/formats/bytes.h"
#include "data/names.h"

#define CHARS_MAX 256u          /* different characters */
#define CHARS_WINDOW_MAX 65536u /* characters a window */
#define CHARS_VOCABULARY_BYTES (4 * CHARS_MAX + 1)

/* Bytes of the character of UTF-8 at b[left] (RFC 3629, section 4); 0 if there is none, or a zero.
 */
size_t chars_bytes(const uint8_t *b, size_t left);

/* Makes `set` (which need not be initialised): bytes[count][window], its classes the characters. A
 * byte-order mark is skipped, and what is left behind the last whole window dropped.
 * vocabulary: of a training set it is filled (zeroed before) with its characters in UTF-8, in the
 * order of their code points; of a test set (`test`) it is that of its training set.
 * PARLEY_EDATA with a message in why[why_size] that says file, line and column, what is there and
 * what should be (bytes that are not UTF-8, too many different characters, one that the training
 * set has not, too short a text); PARLEY_ENOMEM; then `set` is zeroed. */
PARLEY_CHECK int chars_load(struct dataset *set, struct names *vocabulary, struct bytes file,
                            uint32_t window, bool test, char *why, size_t why_size);

/* numbers[count] of a text's characters; room for as many as it has bytes. Errors as above. */
PARLEY_CHECK int chars_encode(const struct names *vocabulary, struct bytes text, uint16_t *numbers,
                              size_t *count, char *why, size_t why_size);

/* A vocabulary as one text, its characters in their order, and back (into a zeroed list).
 * PARLEY_EDATA if that is not UTF-8 or too much, PARLEY_ENOMEM. */
void chars_write_vocabulary(const struct names *vocabulary, char out[CHARS_VOCABULARY_BYTES]);
PARLEY_CHECK int chars_read_vocabulary(struct names *vocabulary, const char *text);

#endif
