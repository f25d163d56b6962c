/* signals.c: what a signal that asks for the end counts as, and what is not heard any more: cli.h.
 */
#include <signal.h>

#include "cli.h"

enum { STILL_THE_FIRST_US = 500 * 1000 };

enum asked_as asked_by(struct asked *asked, int number)
{
    uint64_t now_us = cli_now_us();
    if (asked->since_us == 0) {
        *asked = (struct asked){.since_us = now_us, .number = number};
        return ASKED_FIRST;
    }
    bool still = number == asked->number && now_us - asked->since_us < STILL_THE_FIRST_US;
    return still ? ASKED_STILL : ASKED_AGAIN;
}

void signals_forget(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}
