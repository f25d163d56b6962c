/* quadratic.h: "quadratic:D", "quadratic:D,common" or "quadratic:D,apart", for runs in which only
 * the protocol matters.
 *
 * Node i goes down the gradient of f_i(x) = sum over j of a_j (x_j - b_ij)^2 / 2, a_j in [1/2, 1)
 * and b_ij in [-1, 1) drawn by the seed (b_0j for all nodes if common), from x = 0, or if apart
 * from a draw in [-1, 1) of its own: at a rate of 0 only averaging moves it then. Some ns a
 * parameter and step.
 */
#ifndef PARLEY_SIM_QUADRATIC_H
#define PARLEY_SIM_QUADRATIC_H

#include "settings/settings.h"
#include "world/compute/task.h"

/* *task owns memory until sim_task_close(). PARLEY_EUSAGE with a line in why[size],
 * PARLEY_ENOMEM. */
PARLEY_CHECK int sim_quadratic_init(struct sim_task *task, const struct settings *settings,
                                    char *why, size_t size);
bool sim_quadratic_is(const char *model); /* whether that is what the spec asks for */

#endif
