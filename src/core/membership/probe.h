/* probe.h: one member after another is asked whether it lives (SWIM, section 4), in a shuffled
 * round over all; whom it does not answer, others ask, too.
 *
 * Thread rule: as the node's.
 */
#ifndef PARLEY_CORE_PROBE_H
#define PARLEY_CORE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wire/message.h"
#include "core/wire/wire.h"
#include "parley/node.h"

struct conn;

enum { FAVOURS_MAX = 8 };

struct probe {
    int member; /* NONE: nobody is being probed */
    uint32_t sequence;
    uint64_t sent_us;
    bool indirect; /* others have been asked, too ... */
    bool helped;   /* ... and one of them has answered, if only for itself */
};

/* A probe made for another member. */
struct favour {
    uint32_t sequence, asker_sequence;
    uint64_t asker, target;
    uint64_t until_us;
};

struct probing {
    uint32_t *order; /* [roster->max]: this round, of `count`, of which `at` are done; NULL where
                        the roster is shared */
    uint32_t at, count;
    struct probe now;
    uint64_t next_us;
    uint32_t sequence; /* of the newest probe of any kind */
    uint32_t health;   /* Lifeguard's: greater where this node itself seems slow */
    struct favour favours[FAVOURS_MAX];
};

void probe_start(struct parley_node *node);
/* PING, PING_FOR or ACK. */
void probe_received(struct parley_node *node, struct conn *conn, enum wire_type type,
                    const struct message_probe *message);
/* There is a link to a member now: who asked for a probe of it hears so. */
void probe_contact(struct parley_node *node, struct conn *conn);
/* Something says that it is this node that is slow. */
void probe_unwell(struct parley_node *node);
/* Whom this node waits for: its link is asked now, and not only when its turn has come, which may
 * be a minute on. */
void probe_awaited(struct parley_node *node, int member);
void probe_timers(struct parley_node *node);
uint64_t probe_deadline(const struct parley_node *node);

#endif
