/* quiet.h: threads that no signal ever reaches: handlers run on the program's own threads, and a
 * write to a broken connection is an error of that write, not a SIGPIPE. */
#ifndef PARLEY_PEERS_QUIET_H
#define PARLEY_PEERS_QUIET_H

#include <signal.h>

#include <uv.h>

/* 0 or a libuv error. */
static inline int quiet_thread_start(uv_thread_t *thread, uv_thread_cb run, void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before)) return UV_EINVAL;
    int code = uv_thread_create(thread, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

#endif
