/* vote.c: what is kept of a node's votes (peers/disk/vote.h). */
#include "disk/vote.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN = 7 };

static char path[] = "/tmp/parley-vote-XXXXXX", why[400];

static void make(void)
{
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void drop(void)
{
    unlink(path);
}

TestSuite(vote, .init = make, .fini = drop);

/* A start: what it finds, and how it ends. */
enum end { CRASHES, HOLDS_AND_CRASHES, GIVES_UP, AGREES };

static enum parley_earlier start(uint64_t run, enum end end)
{
    struct vote vote;
    enum parley_earlier earlier = PARLEY_EARLIER_HELD;
    int code = vote_open(&vote, path, run, &earlier, why, sizeof why);
    cr_assert_eq(code, 0, "%s", why);
    if (end != CRASHES) vote_held(&vote, why, sizeof why);
    vote_close(&vote, end == AGREES     ? VOTE_AGREED
                      : end == GIVES_UP ? VOTE_NOT_GIVEN
                                        : VOTE_MAY_BE_GIVEN);
    return earlier;
}

Test(vote, of_a_first_start_nothing_is_known_and_of_the_next_that_it_has_held_none)
{
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_UNKNOWN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_NEVER_HELD);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_NEVER_HELD);
}

Test(vote, no_two_nodes_have_one_file)
{
    /* Proves that none overwrites what another keeps; who has ended is in nobody's way. */
    struct vote first, second;
    enum parley_earlier earlier;
    cr_assert_eq(vote_open(&first, path, RUN, &earlier, why, sizeof why), 0, "%s", why);
    cr_assert_eq(vote_open(&second, path, RUN, &earlier, why, sizeof why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "is another node's"), "%s", why);
    vote_close(&first, VOTE_MAY_BE_GIVEN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_NEVER_HELD);
}

Test(vote, who_has_held_one_has_done_so_at_every_later_start)
{
    start(RUN, HOLDS_AND_CRASHES);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_HELD);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_HELD);
}

Test(vote, after_an_agreement_others_must_know_for_good_and_no_start_says_that_it_held_none)
{
    start(RUN, AGREES);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_UNKNOWN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_UNKNOWN);
}

Test(vote, who_gave_up_without_a_lock_has_given_no_vote_and_changes_nothing_of_earlier_ones)
{
    start(RUN, GIVES_UP);
    cr_assert_eq(start(RUN, GIVES_UP), PARLEY_EARLIER_NEVER_HELD);
    cr_assert_eq(start(RUN, HOLDS_AND_CRASHES), PARLEY_EARLIER_NEVER_HELD);
    cr_assert_eq(start(RUN, GIVES_UP), PARLEY_EARLIER_HELD);
    cr_assert_eq(start(RUN, AGREES), PARLEY_EARLIER_HELD);
    cr_assert_eq(start(RUN, GIVES_UP), PARLEY_EARLIER_UNKNOWN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_UNKNOWN);
}

Test(vote, what_is_to_be_forgotten_is_not_taken_for_none_either)
{
    start(RUN, HOLDS_AND_CRASHES);
    vote_forget(path, RUN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_UNKNOWN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_UNKNOWN);
}

Test(vote, forgetting_leaves_what_is_not_about_this_run_and_makes_no_file)
{
    start(RUN, CRASHES);
    vote_forget(path, RUN);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_NEVER_HELD);
    vote_forget(path, RUN + 1);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_NEVER_HELD);
    drop();
    vote_forget(path, RUN);
    cr_assert_neq(access(path, F_OK), 0);
}

Test(vote, another_run_begins_anew)
{
    start(RUN, HOLDS_AND_CRASHES);
    cr_assert_eq(start(RUN + 1, CRASHES), PARLEY_EARLIER_UNKNOWN);
    cr_assert_eq(start(RUN + 1, CRASHES), PARLEY_EARLIER_NEVER_HELD);
}

Test(vote, a_file_that_is_something_else_is_refused_and_left)
{
    static const char *const texts[] = {"parley: run 0000000000000007: none held",
                                        "parley: run 7: none held\n",
                                        "parley: run 0000000000000007: none held\n\n", "weights"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct vote vote;
        enum parley_earlier earlier;
        char text[64] = "";
        FILE *file = fopen(path, "w");
        cr_assert(file && fputs(texts[i], file) >= 0 && fclose(file) == 0);
        cr_assert_eq(vote_open(&vote, path, RUN, &earlier, why, sizeof why), PARLEY_EUSAGE);
        cr_assert(strstr(why, "is something else"), "%s", why);
        file = fopen(path, "r");
        cr_assert(file && fread(text, 1, sizeof text - 1, file) == strlen(texts[i]));
        cr_assert_str_eq(text, texts[i]);
        fclose(file);
    }
}

Test(vote, a_link_is_not_followed_and_a_pipe_is_not_waited_for)
{
    /* Proves that in a folder of many nothing is made or written where another wants it. */
    struct vote vote;
    enum parley_earlier earlier;
    char other[sizeof path + 8];
    snprintf(other, sizeof other, "%s.other", path);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(symlink(other, path), 0);
    cr_assert_eq(vote_open(&vote, path, RUN, &earlier, why, sizeof why), PARLEY_EUSAGE);
    cr_assert(strstr(why, path), "%s", why);
    drop();
    cr_assert_eq(rename(other, path), 0);
    start(RUN, HOLDS_AND_CRASHES);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(symlink(other, path), 0);
    vote_forget(path, RUN);
    drop();
    cr_assert_eq(rename(other, path), 0);
    cr_assert_eq(start(RUN, CRASHES), PARLEY_EARLIER_HELD);
    drop();
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(vote_open(&vote, path, RUN, &earlier, why, sizeof why), PARLEY_EUSAGE);
    vote_forget(path, RUN);
}

Test(vote, a_file_that_cannot_be_made_or_written_to_is_said)
{
    struct vote vote;
    enum parley_earlier earlier;
    cr_assert_eq(vote_open(&vote, "/nowhere/at/all", RUN, &earlier, why, sizeof why),
                 PARLEY_EUSAGE);
    cr_assert(strstr(why, "/nowhere/at/all: No such file"), "%s", why);
    cr_assert_eq(vote_open(&vote, path, RUN, &earlier, why, sizeof why), 0);
    const struct rlimit no_room = {0, 0};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &no_room), 0);
    why[0] = 0;
    vote_held(&vote, why, sizeof why);
    cr_assert(strstr(why, "could not be kept: File too large"), "%s", why);
    vote_close(&vote, VOTE_MAY_BE_GIVEN);
    truncate(path, 0);
    cr_assert_eq(vote_open(&vote, path, RUN, &earlier, why, sizeof why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "File too large"), "%s", why);
}

Test(vote, without_a_file_nothing_is_kept_and_what_the_program_knows_stands)
{
    struct vote vote;
    enum parley_earlier earlier = PARLEY_EARLIER_NEVER_HELD;
    cr_assert_eq(vote_open(&vote, NULL, RUN, &earlier, why, sizeof why), 0);
    cr_assert_eq(earlier, PARLEY_EARLIER_NEVER_HELD);
    vote_held(&vote, why, sizeof why);
    vote_close(&vote, VOTE_AGREED);
}
