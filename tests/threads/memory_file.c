/* memory_file.c: files in memory (peers/memory_file.h).
 *
 *   - one that is made can be sealed, and has the seals that it was given and no others
 *   - a file of a file system, and what is no file, have none
 *
 * Plain main(); there is one thread.
 */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "memory_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"

static void seals_are_all_there_or_it_has_them_not(void)
{
    int file = memory_file_new("parley-test");
    check(file >= 0, "a file can be made");
    check(!memory_file_has_seals(file, F_SEAL_SHRINK), "a new one has no seal");
    check(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "it can be sealed");
    check(memory_file_has_seals(file, F_SEAL_SHRINK), "it has the seal that it was given");
    check(!memory_file_has_seals(file, F_SEAL_SHRINK | F_SEAL_GROW), "one of two is not both");
    check(fcntl(file, F_ADD_SEALS, F_SEAL_GROW) == 0, "it can be given another");
    check(memory_file_has_seals(file, F_SEAL_SHRINK | F_SEAL_GROW), "then it has both");
    close(file);
}

static void what_is_no_such_file_has_none(void)
{
    FILE *plain = tmpfile();
    check(plain && !memory_file_has_seals(fileno(plain), F_SEAL_SHRINK), "a plain file has none");
    if (plain) fclose(plain);
    check(!memory_file_has_seals(-1, F_SEAL_SHRINK), "what is no file has none");
}

int main(void)
{
    seals_are_all_there_or_it_has_them_not();
    what_is_no_such_file_has_none();
    return failures ? 1 : 0;
}
