/* mailbox.c: operations from many threads reach one taker, put one by one or as a list: each once,
 * and those of a thread in order. Plain main(), so that it runs under ThreadSanitizer. */
#include <stdio.h>
#include <stdlib.h>

#include "compute/mailbox.h"

enum { SENDERS = 3, OPS = 20000 };

static struct mailbox box;
static struct op *ops[SENDERS];

static void send_all(void *argument)
{
    struct op *mine = argument;
    for (uint32_t i = 0, count; i < OPS; i += count) {
        count = 1 + i % 3; /* the next of a list's last is NULL as yet */
        for (uint32_t k = i; k + 1 < i + count && k + 1 < OPS; k++)
            mine[k].next = &mine[k + 1];
        mailbox_put(&box, &mine[i]);
    }
}

int main(void)
{
    uv_thread_t threads[SENDERS];
    uint32_t next[SENDERS] = {0}, total = 0;
    if (mailbox_init(&box, NULL)) return 1;
    for (uint32_t s = 0; s < SENDERS; s++) {
        ops[s] = calloc(OPS, sizeof **ops);
        if (!ops[s]) return 1;
        for (uint32_t i = 0; i < OPS; i++) {
            ops[s][i].update.vector.op = i;
            ops[s][i].update.vector.buffer = s;
        }
        if (uv_thread_create(&threads[s], send_all, ops[s])) return 1;
    }
    while (total < SENDERS * OPS) {
        for (struct op *op = mailbox_take(&box); op; op = op->next, total++) {
            uint32_t sender = op->update.vector.buffer;
            if (op->update.vector.op != next[sender]++) {
                fprintf(stderr, "sender %u: op %u came out of order\n", sender,
                        op->update.vector.op);
                return 1;
            }
        }
    }
    for (uint32_t s = 0; s < SENDERS; s++) {
        uv_thread_join(&threads[s]);
        free(ops[s]);
    }
    bool empty = mailbox_take(&box) == NULL;
    mailbox_close(&box);
    if (!empty) fprintf(stderr, "an op came twice\n");
    return empty ? 0 : 1;
}
