/* agreement.h: the record of an agreement, as this node saw it. */
#ifndef PARLEY_PEERS_AGREEMENT_H
#define PARLEY_PEERS_AGREEMENT_H

struct loop;

/* The loop's. The record's text, to be freed; NULL: no memory. */
char *agreement_text(const struct loop *loop);

#endif
