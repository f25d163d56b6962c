/* signals.c: what a signal that asks for the end counts as, and those that nobody hears: cli.h. */
#include <signal.h>
#include <unistd.h>

#include "cli.h"
#include "clock.h"

enum { STILL_THE_FIRST_US = 500 * 1000 };

enum asked_as asked_by(struct asked *asked, int number)
{
    uint64_t now_us = clock_now_us();
    bool first = asked->since_us == 0;
    bool still_first = asked->number == SIGHUP || asked->number == SIGUSR2;
    if (first || still_first) *asked = (struct asked){.since_us = now_us, .number = number};
    if (first) return ASKED_FIRST;
    if (still_first) return ASKED_STILL;
    bool still = number == asked->number && now_us - asked->since_us < STILL_THE_FIRST_US;
    return still ? ASKED_STILL : ASKED_AGAIN;
}

const int signals_heard[SIGNALS_HEARD] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

void signals_hold(bool held)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNALS_HEARD; i++)
        sigaddset(&set, signals_heard[i]);
    pthread_sigmask(held ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static struct asked last;

static void on_last(int number)
{
    if (asked_by(&last, number) == ASKED_AGAIN) _exit(STATUS_SIGNAL + number);
}

void signals_last(const struct asked *asked)
{
    struct sigaction action = {.sa_handler = on_last, .sa_flags = SA_RESTART};
    last = *asked;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &action.sa_mask, NULL);
}
