/* message.h: control frames as plain structs, and one table a message that says how they are
 * packed.
 *
 * A frame is one msgpack map of short keys. Fields that are zero or empty are left out; a reader
 * starts from zeroes and ignores keys it does not know, so that fields can be added. What a value
 * means, and whether it makes sense, is for the module that reads it.
 */
#ifndef PARLEY_CORE_MESSAGE_H
#define PARLEY_CORE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/wire/wire.h"
#include "parley/node.h"

struct view {
    const uint8_t *bytes; /* borrowed from the frame */
    uint32_t size;
};

enum {
    MESSAGE_RECORDS_MAX = 32,
    MESSAGE_DISTRUSTS_MAX = 4,
    MESSAGE_SKETCHES_MAX = 16,
    MESSAGE_BUCKETS = PARLEY_SKETCH_BUCKETS / 2, /* of a sketch on its way: drift.c */
    MESSAGE_TEXT_SIZE = 240,
    MESSAGE_VALUE_SIZE = 64
};

struct message_setting {
    char name[PARLEY_NAME_SIZE];
    char value[MESSAGE_VALUE_SIZE];
};

struct message_hello {
    char cluster[PARLEY_NAME_SIZE], name[PARLEY_NAME_SIZE], address[PARLEY_ADDRESS_SIZE];
    uint64_t run, boot, model, parameters;
    uint32_t vectors;
    uint32_t codec;    /* enum parley_codec */
    double codec_part; /* of a codec that has one; else 0 */
    uint32_t averaged; /* vectors: x and what goes with it */
    uint32_t robust;   /* 1: differences are clipped */
    uint32_t strategy; /* enum parley_strategy */
    uint32_t streams;  /* config.streams, above 1 */
    uint64_t token;    /* of who answers: for the streams of this link */
    uint64_t to;       /* boot of whom the sender takes the other for, if it is alive there; 0 */
    uint64_t heard;    /* the clock of that one's record at the sender */
    struct message_setting settings[PARLEY_SETTINGS_MAX];
    uint32_t settings_count;
};

struct message_reject {
    uint32_t code;  /* minus a PARLEY_E... */
    uint32_t alone; /* 1: the sender has met nobody yet itself */
    char text[MESSAGE_TEXT_SIZE];
};

enum message_bye { MESSAGE_BYE_IDLE = 1, MESSAGE_BYE_DUPLICATE, MESSAGE_BYE_LEAVING };

struct message_bye_frame {
    uint32_t reason;
};

struct message_probe { /* PING, ACK, PING_FOR */
    uint32_t sequence; /* from 1 on; 0, of an ACK: it gets a chunk, and nobody asked */
    uint64_t boot;     /* the member whose life is asked about */
};

/* What the cluster knows of one node. The first part is SWIM's and may be said by anybody; the rest
 * is said by the node itself only and ordered by `clock`. */
struct record {
    uint64_t boot;
    char name[PARLEY_NAME_SIZE], address[PARLEY_ADDRESS_SIZE];
    uint32_t incarnation;
    uint32_t state; /* enum parley_member_state */

    uint64_t clock;     /* counts its steps, too: 32 bits would be through in a day */
    uint32_t phase;     /* enum parley_phase */
    uint32_t stop;      /* enum parley_stop */
    uint32_t stop_live; /* members its raiser saw alive; 0: it was LATE */
    uint64_t version, samples;
    uint64_t kept;     /* of those samples, the ones that its file told it of, ... */
    uint64_t kept_all; /* ... and what all had used by that; 0: it began without a file */
    uint64_t place;    /* how far it has come with its share of the data; 0: not said */
    uint32_t aside;    /* 1: it makes no steps for now, as it can't reach whom it needs for them */
    /* drift.c */
    uint32_t sketch;    /* version of its newest sketch in SETTLE */
    uint32_t measured;  /* version of the sketch its distance was measured with; 0: none */
    double distance_sq; /* to the sampled mean */
    double mean_sq;     /* squared norm of that mean */
    uint32_t near;      /* 1: that was within tolerance, and it has met nobody far since */
    /* agreement.c */
    uint32_t generation;
    double score;
    uint8_t digest[PARLEY_DIGEST_BYTES]; /* proposed, held, locked or agreed, by phase */
    uint32_t lock_voters, lock_generation;
    uint8_t lock_digest[PARLEY_DIGEST_BYTES];
    uint64_t fetched;                          /* bytes of the picked model, said now and then */
    uint32_t voters;                           /* DONE: how many agreed */
    uint32_t earlier;                          /* enum parley_earlier */
    uint64_t distrusts[MESSAGE_DISTRUSTS_MAX]; /* boots, the newest last; 0: nobody */
    /* strategy/ps/server.h */
    uint64_t follows; /* boot of who serves it; 0: nobody */
    uint64_t holds;   /* gradients in its model; without a server, in that which it began with */
};

/* Whether the sender wants to hear over this link of all that happens. */
enum message_asks { MESSAGE_ASKS_NOTHING, MESSAGE_ASKS, MESSAGE_ASKS_NO_MORE };

struct message_members {
    struct record records[MESSAGE_RECORDS_MAX];
    uint32_t count;
    uint32_t complete; /* 1: the receiver now has all that the sender knows */
    uint32_t ask;      /* enum message_asks; ASKS_NOTHING: as before */
};

struct message_sketch {
    uint64_t boot;
    uint32_t version;
    struct view buckets; /* MESSAGE_BUCKETS little-endian floats */
};

struct message_lack {
    uint64_t boot; /* of one whose sketches the sender hears nothing of by itself */
};

struct message_sketches {
    struct message_sketch sketches[MESSAGE_SKETCHES_MAX];
    uint32_t count;
    struct message_lack lacks[MESSAGE_SKETCHES_MAX]; /* none: as said before */
    uint32_t lacks_count;
};

/* How the initiator of an offer came to its choice. */
enum message_settles { MESSAGE_TRAINS, MESSAGE_BY_SCHEDULE, MESSAGE_BY_CHANCE };

struct message_exchange {    /* OFFER to KEEPALIVE; each uses a part */
    uint32_t sequence;       /* the initiator's */
    uint32_t from_responder; /* ABORT: 1 if the sender is the responder; KEEPALIVE: likewise, 0 if
                              * it is to give its state for that FETCH */
    uint32_t open;           /* OFFER: 1 if the initiator has another exchange open */
    uint32_t settles;        /* OFFER: enum message_settles */
    uint32_t round, line;    /* OFFER by schedule: which round, from 1, among whom (pairing.h) */
    uint32_t coded;          /* OFFER: 1 if the cluster's codec may be used; ACCEPT: if it is */
    double share;            /* ACCEPT: of d, that each side adds (exchange.h) */
    double samples;          /* OFFER, ACCEPT: the sender's part of the cluster's samples; with a
                              * weight: what of it goes along */
    double weight;           /* OFFER: of what is pushed one way, with the samples; else 0 */
    double radius;           /* OFFER, ACCEPT: robust.c; at least 0 */
    uint32_t reason;         /* REFUSE, ABORT: enum exchange_reason */
};

enum message_outcome { MESSAGE_COMMITTED = 1, MESSAGE_ABORTED, MESSAGE_UNKNOWN, MESSAGE_RESTARTED };

struct message_outcome_frame { /* ASK, OUTCOME */
    uint64_t initiator, asker; /* boots */
    uint32_t sequence;
    uint32_t outcome;
};

struct message_fetch { /* FETCH, FETCHED; the last line is the strategy's */
    uint32_t sequence;
    uint32_t by_digest; /* 1: the model of `digest`; 0: the sender's state */
    uint8_t digest[PARLEY_DIGEST_BYTES];
    uint32_t ok, vectors;
    uint64_t version; /* of FETCHED: local steps that the optimizer's vectors have been through */
    uint64_t trained_us; /* likewise: how long the sender trains already, ... */
    uint64_t samples;    /* ... and what it reckons that all have used */
    uint64_t round, stamp;
};

struct message_strategy { /* STRATEGY: what it means is the strategy's own affair */
    uint32_t what;
    uint32_t tag, part, count;
    uint64_t round, key, stamp, before;
    double value, weight;
};

struct message_status {
    uint32_t from; /* index of the first record wanted */
};

struct message_report {
    struct record records[MESSAGE_RECORDS_MAX];
    uint32_t count, total;
    char cluster[PARLEY_NAME_SIZE];
    uint32_t live, known;
    double drift, progress;
};

/* Any of them. */
union message {
    struct message_hello hello;
    struct message_reject reject;
    struct message_bye_frame bye;
    struct message_probe probe;
    struct message_members members;
    struct message_sketches sketches;
    struct message_exchange exchange;
    struct message_outcome_frame outcome;
    struct message_fetch fetch;
    struct message_status status;
    struct message_report report;
    struct message_strategy strategy;
};

/* Encodes a whole frame, header included. Returns its size; 0 if it does not fit. */
size_t message_encode(enum wire_type type, const void *message, uint8_t *bytes, size_t capacity);

/* scratch: from message_scratch_new(); one a thread. 0 or PARLEY_EMALFORMED; `message` is all zero
 * but for what the frame holds. Views point into `bytes`. */
int message_decode(enum wire_type type, const uint8_t *bytes, size_t size, void *message,
                   void *scratch);

void *message_scratch_new(void);
void message_scratch_free(void *scratch);

#endif
