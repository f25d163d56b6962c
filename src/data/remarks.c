/* remarks.c: see remarks.h. */
#include "data/remarks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void remarks_add(struct remarks *remarks, const char *format, ...)
{
    va_list arguments;
    assert(remarks->count < REMARKS_MAX);
    va_start(arguments, format);
    vsnprintf(remarks->text[remarks->count++], REMARK_BYTES, format, arguments);
    va_end(arguments);
}

void remarks_of_test(struct remarks *remarks, const struct dataset *test)
{
    remarks->count = 0;
    if (test->unseen > 0)
        remarks_add(remarks,
                    "%" PRIu64
                    " of the test data's values are left out: their indices, the largest "
                    "%" PRIu32 ", are beyond the %" PRIu32 " values a sample of the training data",
                    test->unseen, test->unseen_index, test->features);
}

void remarks_of(struct remarks *remarks, const struct source *source)
{
    const struct dataset *train = &source->train;
    remarks_of_test(remarks, &source->test);
    if (train->classes == 1 && !train->targets && !train->vocabulary)
        remarks_add(remarks, "all samples are of one class: there is nothing to tell apart");
}
