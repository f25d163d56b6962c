/* remarks.h: what is to be said of data though they are good.
 *
 * Thread rule: plain memory.
 */
#ifndef PARLEY_DATA_REMARKS_H
#define PARLEY_DATA_REMARKS_H

#include "data/source.h"

enum { REMARKS_MAX = 10, REMARK_BYTES = 256 };

struct remarks {
    uint32_t count;
    char text[REMARKS_MAX][REMARK_BYTES];
};

/* Of data that were loaded, beginning with none: that there is one class alone, that one value
 * lies far from all others of its column or of the labels, that columns or labels carry nothing
 * though they vary, that a model's file can't carry the names of classes or of columns, and
 * remarks_of_test(). */
void remarks_of(struct remarks *remarks, const struct source *source);

/* Of data that a model is tried on, beginning with none: that values, or a last column as the
 * label, were left out, that a first line of numbers was taken for a header. */
void remarks_of_test(struct remarks *remarks, const struct dataset *test);

#endif
