/* mass.h: did exchanges conserve the cluster's mean? Judged from the ledgers of all nodes.
 *
 * d of one end is -d of the other, so with r of +-1 the masses <r, d> that both ends applied
 * cancel. Thread rule: pure.
 */
#ifndef PARLEY_REPORT_MASS_H
#define PARLEY_REPORT_MASS_H

#include <stddef.h>

#include "report/lines.h"

struct mass_account {
    double error;   /* |sum of <r, d>| / sum of |<r, d>| over what is judged; 0 if nothing is */
    double judged;  /* sum of |<r, d>| over exchanges both ends of which have a ledger here */
    double skipped; /* the same over exchanges whose other end has none: it died or restarted */
};

/* One ledger a live node, in any order; the sums are compensated, so that it does not show. A mass
 * that is not finite makes the error so. Ledgers of one boot must not be given twice. */
struct mass_account mass_account(const struct report_ledger *const *ledgers, size_t count);

#endif
