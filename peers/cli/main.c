/* main.c: command line to verb.
 *
 *   flags, environment and file become settings; the verb takes them; its exit status is ours
 *
 * A bad setting ends with status 2 and one line that names it, results that can't be written with 1
 * if all else went well. Nothing is read for help, version and completion.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "disk/files.h"
#include "read_file.h"
#include "settings/help.h"
#include "settings/simulate.h"

extern char **environ;

/* Whoever started this may have its end of a pipe or terminal return at once; stdio then loses what
 * does not fit. Opened again it waits here, and there stays as it is. A socket can't be, and a
 * file, which waits anyhow, would be written from its start again, over what is in it. */
static void make_wait(int fd)
{
    char path[32];
    struct stat what;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || !(flags & O_NONBLOCK) || fstat(fd, &what) || S_ISREG(what.st_mode)) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, (flags & (O_ACCMODE | O_APPEND)) | O_NOCTTY | O_CLOEXEC);
    if (again < 0) return;
    dup2(again, fd);
    close(again);
}

/* A standard file that is closed would be the next one to be opened: then a peer's socket is our
 * stdout, and libuv aborts when it closes it. */
static void open_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
    for (fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        make_wait(fd);
}

/* Whoever started this may have blocked some; without SIGCHLD `run` would wait for ever. */
static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool needs_nothing(enum verb verb)
{
    return verb == VERB_HELP || verb == VERB_VERSION || verb == VERB_COMPLETION;
}

static bool computes(enum verb verb)
{
    return verb == VERB_RUN || verb == VERB_NODE || verb == VERB_SIM || verb == VERB_BENCH ||
           verb == VERB_MODEL || verb == VERB_TOPOLOGY || verb == VERB_VERSION;
}

/* *bytes: of the settings file, to be freed after the settings. */
static int gather(struct settings *settings, int argc, char *const *argv, uint8_t **bytes,
                  char why[SETTINGS_WHY_BYTES])
{
    size_t size = 0;
    int error = settings_flags(settings, argc, argv, why);
    if (error || needs_nothing(settings->verb)) return error;
    error = settings_environment(settings, environ, why);
    if (!error && settings->config) {
        char cause[SETTINGS_WHY_BYTES - 16];
        error = read_file(settings->config, 1 << 20, bytes, &size, cause, sizeof cause);
        if (error) snprintf(why, SETTINGS_WHY_BYTES, "--config: %s", cause);
        if (error == PARLEY_EDATA) error = PARLEY_EUSAGE;
        if (!error) error = settings_file(settings, settings->config, *bytes, size, why);
    }
    return error ? error : settings_finish(settings, why);
}

static int print(char *text)
{
    if (!text) return say_failure(PARLEY_ENOMEM, NULL);
    bool failed = fputs(text, stdout) == EOF || fflush(stdout) == EOF;
    free(text);
    if (failed) say(PARLEY_LOG_ERROR, "stdout: %s", strerror(errno));
    clearerr(stdout); /* it is said */
    return failed ? 1 : 0;
}

static int version(void)
{
    char *text = help_version();
    if (!text) return say_failure(PARLEY_ENOMEM, NULL);
    printf("%.*s (OpenBLAS kernels: %s)\n", (int)strcspn(text, "\n"), text, environment_blas());
    free(text);
    return 0;
}

static int check_out(const struct settings *settings, char why[SETTINGS_WHY_BYTES])
{
    char cause[SETTINGS_WHY_BYTES - 16];
    if (!settings->out || !files_check_place(settings->out, cause, sizeof cause)) return 0;
    snprintf(why, SETTINGS_WHY_BYTES, "--out: %s", cause);
    return PARLEY_EUSAGE;
}

/* Swarms make no products. */
static int simulate(const struct settings *settings)
{
    char why[SETTINGS_WHY_BYTES] = "";
    int error = settings->swarm ? 0 : environment_claim(sim_threads(settings), why, sizeof why);
    if (error) return say_failure(error, why);
    return parley_error_status(sim_command(settings, &file_reader, say_line));
}

static bool works_on(enum verb verb)
{
    return verb == VERB_RUN || verb == VERB_NODE || verb == VERB_SIM || verb == VERB_BENCH;
}

static int dispatch(const struct settings *settings)
{
    /* Who reads what the others print may have enough of it, as head(1) does. */
    if (!works_on(settings->verb)) signal(SIGPIPE, SIG_DFL);
    switch (settings->verb) {
    case VERB_RUN:
        return run_command(settings);
    case VERB_NODE:
        return node_command(settings);
    case VERB_SIM:
        return simulate(settings);
    case VERB_STATUS:
        return status_command(settings);
    case VERB_BENCH:
        return bench_command(settings);
    case VERB_MODEL:
        return model_command(settings);
    case VERB_CHECK:
        return check_command(settings);
    case VERB_TOPOLOGY:
        return topology_command(settings);
    case VERB_KEYGEN:
        return keygen_command(settings);
    case VERB_HELP:
        return print(help_text(settings->topic));
    case VERB_COMPLETION:
        return print(help_completion(settings->operands[0]));
    case VERB_VERSION:
        return version();
    }
    return 2;
}

int main(int argc, char **argv)
{
    struct settings settings;
    char why[SETTINGS_WHY_BYTES] = "";
    uint8_t *bytes = NULL;
    open_standard_files();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is one that can't be written */
    /* "Checkpoint now" and "all agree" mean nothing until there is a node. */
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    unblock_signals();
    settings_init(&settings);
    if (argc > 1) {
        int error = settings_flags(&settings, argc, argv, why);
        if (!error && computes(settings.verb)) environment_choose(settings.verb, argv);
        settings_close(&settings);
        settings_init(&settings);
    }
    int error = gather(&settings, argc, argv, &bytes, why);
    if (error) settings_hear_format(&settings, argc, argv, environ);
    say_open(&settings);
    if (!error) error = check_out(&settings, why);
    if (!error && settings.note[0]) say(PARLEY_LOG_INFO, "%s", settings.note);
    int status = error ? say_failure(error, why) : dispatch(&settings);
    bool lost = say_unwritten(); /* for all that print there */
    settings_close(&settings);
    free(bytes);
    return status == 0 && lost ? 1 : status;
}
