/* agreement.h: the record of an agreement, as this node saw it. */
#ifndef PARLEY_PEERS_AGREEMENT_H
#define PARLEY_PEERS_AGREEMENT_H

#include "file/record.h"
#include "loop.h"

/* The loop's, when the core asks to publish. The hash of the file is left 0. To be closed and
 * freed; NULL, with a line in the log: too many members, or no memory. */
struct record *agreement_record(struct loop *loop);

#endif
