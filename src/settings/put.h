/* put.h: one value from one source into the settings (inside of settings, not for others). */
#ifndef PARLEY_SETTINGS_PUT_H
#define PARLEY_SETTINGS_PUT_H

#include "settings/settings.h"

/* Where a value stood: its rank, and how a message names it ("--lr", "PARLEY_LR", "x.yaml:3: lr").
 */
struct put_place {
    enum settings_origin origin;
    unsigned line;
    bool adds; /* a list goes on: the value joins the one before it */
    char label[512];
};

/* Judges the text and stores it unless a source of higher rank already has, or it stands in a file
 * and is of other verbs. Repeatable options gather within one source. PARLEY_EUSAGE, PARLEY_ENOMEM;
 * why is one whole line. */
PARLEY_CHECK int put_value(struct settings *settings, enum option_id id, const char *text,
                           const struct put_place *place, char why[SETTINGS_WHY_BYTES]);

#endif
