/* model.h: what the actions of `parley model` share.
 *
 * An action gets an open file and finished settings. On errors it returns them with a line in why.
 */
#ifndef PARLEY_CLI_MODEL_H
#define PARLEY_CLI_MODEL_H

#include <jansson.h>

#include "file/model_file.h"
#include "settings/settings.h"

struct opened {
    const char *path;
    uint8_t *bytes; /* owned */
    size_t size;
    struct model_file file;
};

/* model.c: PARLEY_EDATA if the file is not what its digest says: figures and text of a damaged
 * model would look like those of the one that was agreed on. */
PARLEY_CHECK int model_check_digest(const struct opened *opened, char *why, size_t why_size);

/* model.c: a line on stdout, and the value is gone. PARLEY_ENOMEM, as of NULL. The file may be
 * anybody's: a terminal gets nothing that it would obey, of this or of what those below print. */
PARLEY_CHECK int model_print_json(json_t *json);

/* try.c: accuracy and loss on test data; or for each sample what the model makes of it. On
 * stdout. */
int model_eval(const struct opened *opened, const struct settings *settings, char *why,
               size_t why_size);
int model_predict(const struct opened *opened, const struct settings *settings, char *why,
                  size_t why_size);

/* export.c: the tensors in another format, by the end of --out. */
int model_export(const struct opened *opened, const struct settings *settings, char *why,
                 size_t why_size);

/* sample.c: text from a model of text, on stdout. */
int model_sample(const struct opened *opened, const struct settings *settings, char *why,
                 size_t why_size);

#endif
