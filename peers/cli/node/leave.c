/* leave.c: a node that was asked to leave while its trainer is in a step.
 *
 * The cluster is left after half of --leave-timeout at the latest, whatever the trainer does. But a
 * step can't be broken off, and may have changed a part of the model: where it goes on for longer,
 * the process ends around it, without this node's own model.
 */
#include <unistd.h>

#include "cli/cli.h"
#include "cli/node/node.h"

enum { AT_BOUNDARY, IN_STEP, GIVEN_UP };

int node_leave_boundary(struct node *node, const struct parley_step *step, struct parley_turn *turn)
{
    int at = IN_STEP;
    if (!atomic_compare_exchange_strong(&node->at, &at, AT_BOUNDARY))
        while (at == GIVEN_UP) /* the other thread ends the process */
            pause();
    int code = parley_boundary(node->p, step, turn);
    if (code == PARLEY_GO) atomic_store(&node->at, IN_STEP);
    return code;
}

void node_leave_late(struct node *node)
{
    int at = IN_STEP, error = node->controlled ? 0 : PARLEY_ENOT_WRITTEN;
    if (!atomic_load(&node->left) || atomic_load(&node->checkpoint.busy)) return;
    if (!atomic_compare_exchange_strong(&node->at, &at, GIVEN_UP)) return;
    say_clear();
    if (error)
        node_report_error(node, error,
                          "left within --leave-timeout, but the step under way takes longer: this "
                          "node's own model was not saved");
    say_exit(node->json.writer, parley_error_status(error));
}
