/* remarks.c: see remarks.h. */
#include "data/remarks.h"

#include <assert.h>
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

void remarks_of(struct remarks *remarks, const struct source *source)
{
    const struct dataset *train = &source->train;
    remarks->count = 0;
    if (train->classes == 1 && !train->targets && !train->vocabulary)
        remarks_add(remarks, "all samples are of one class: there is nothing to tell apart");
}
