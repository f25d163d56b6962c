/* error.c: the table of errors as names, texts and exit statuses. */
#include "parley/error.h"

#include <stddef.h>

static const struct {
    const char *name;
    const char *text;
    int status;
} errors[] = {
#define X(name, status, text) {"PARLEY_E" #name, text, status},
    PARLEY_ERRORS(X)
#undef X
};

static int index_of(int error)
{
    int index = -1 - error;
    return index >= 0 && (size_t)index < sizeof errors / sizeof *errors ? index : -1;
}

const char *parley_error_name(int error)
{
    if (error == PARLEY_OK) return "PARLEY_OK";
    int index = index_of(error);
    return index < 0 ? "PARLEY_E?" : errors[index].name;
}

const char *parley_error_text(int error)
{
    if (error == PARLEY_OK) return "no error";
    int index = index_of(error);
    return index < 0 ? "unknown error" : errors[index].text;
}

int parley_error_status(int error)
{
    if (error == PARLEY_OK) return 0;
    int index = index_of(error);
    return index < 0 ? 1 : errors[index].status;
}
