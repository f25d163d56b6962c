/* mass.c: sums over all ordered pairs of boots that both gave a ledger. Compensated, so that the
 * order of the ledgers does not show. */
#include "report/mass.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Neumaier's sum ("Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974).
 */
struct sum {
    double value, carry;
};

static void add(struct sum *sum, double term)
{
    double next = sum->value + term;
    if (fabs(sum->value) >= fabs(term))
        sum->carry += (sum->value - next) + term;
    else
        sum->carry += (term - next) + sum->value;
    sum->value = next;
}

static bool is_here(const char *boot, const struct report_ledger *const *ledgers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (boot && ledgers[i]->boot && strcmp(ledgers[i]->boot, boot) == 0) return true;
    return false;
}

struct mass_account mass_account(const struct report_ledger *const *ledgers, size_t count)
{
    struct sum moved = {0}, judged = {0}, skipped = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ledgers[i]->peer_count; j++) {
            const struct report_ledger_peer *peer = &ledgers[i]->peers[j];
            if (is_here(peer->boot, ledgers, count)) {
                add(&moved, peer->mass);
                add(&judged, peer->mass_abs);
            } else
                add(&skipped, peer->mass_abs);
        }
    }
    struct mass_account account = {
        .judged = judged.value + judged.carry,
        .skipped = skipped.value + skipped.carry,
    };
    if (account.judged > 0) account.error = fabs(moved.value + moved.carry) / account.judged;
    return account;
}
