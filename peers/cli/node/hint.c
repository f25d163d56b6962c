/* hint.c: what to do about an error that ends a node, or keeps one from starting. */
#include <string.h>

#include "cli/cli.h"
#include "parley/error.h"

static const char *listen_hint(const char *message)
{
    if (strstr(message, "in use"))
        return "take another port with --listen, or port 0 for any free one";
    if (strstr(message, "permission denied"))
        return "ports below 1024 need root; take a higher one with --listen, or port 0 for any "
               "free one";
    if (strstr(message, "names no link"))
        return "`ip -6 address` shows each link-local address under the name of its link";
    return strstr(message, "listen on [")
               ? "--listen takes an address of this machine; [::] is all of them"
               : "--listen takes an address of this machine; 0.0.0.0 is all of them";
}

static const char *agreement_hint(const char *message)
{
    if (strstr(message, "in time")) return "give them longer with --settle-timeout";
    if (strstr(message, "was away"))
        return "the cluster's model is where the others wrote it; --resume goes on from what is "
               "trained here";
    return strstr(message, "started anew")
               ? "with --checkpoint at each start such nodes count; --resume without --quorum "
                 "majority goes on from what is trained"
               : "the nodes that are missing must be reachable for an agreement";
}

/* Of nodes: "ADDRESS: SETTING is VALUE at A and VALUE at B". */
static const char *mismatch_hint(const char *message)
{
    /* Of a checkpoint the message says what to do: no other node is unlike. */
    if (strncmp(message, "--resume:", strlen("--resume:")) == 0) return NULL;
    if (strstr(message, "the protocol has version"))
        return "the nodes of a cluster are of one version of parley";
    return strstr(message, ": data is ")
               ? "every node reads the whole data set; --partition or --shard decides its share"
               : "start all nodes with the same settings; `parley check` prints them";
}

const char *node_hint(int error, const char *message)
{
    if (strstr(message, "oo many open files")) return "raise the limit with ulimit -n";
    if (strstr(message, "resource temporarily unavailable"))
        return "raise the limit with ulimit -u";
    if (strstr(message, "left within"))
        return "a longer --leave-timeout waits for the step; --checkpoint keeps what came before "
               "it";
    switch (error) {
    case PARLEY_ENETWORK:
        return listen_hint(message);
    case PARLEY_ENAME_TAKEN:
        return "give each node a --name of its own";
    case PARLEY_ENO_SEED:
        return "check the addresses of --join, or leave --join-timeout out to wait for ever";
    case PARLEY_EMISMATCH:
        return mismatch_hint(message);
    case PARLEY_ENOT_WRITTEN:
        return "make room, or choose another --out";
    case PARLEY_ENO_AGREEMENT:
        return agreement_hint(message);
    default:
        return NULL;
    }
}
