/* room.c: what memory there is for a simulation. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/room.h"

static char folder[] = "/tmp/parley-room-XXXXXX";

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", name);
}

static void enter(void)
{
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

static void leave(void)
{
    static const char *const made[] = {
        "a/b/memory.max", "a/memory.max", "memory.max", "memory/memory.limit_in_bytes",
        "list",           "a/b",          "a",          "memory"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        remove(made[i]);
    cr_assert(chdir("/") == 0 && remove(folder) == 0, "%s is not empty", folder);
}

TestSuite(room, .init = enter, .fini = leave);

Test(room, of_a_control_group_and_those_above_it_the_least_limit_holds)
{
    /* Version 2. A group that can't be seen from here is passed over. */
    mkdir("a", 0700);
    mkdir("a/b", 0700);
    write_file("list", "5:cpu:/\n0::/a/b/c\n");
    cr_assert_eq(sim_room_groups("list", "."), UINT64_MAX);
    write_file("a/b/memory.max", "max\n");
    write_file("memory.max", "900\n");
    cr_assert_eq(sim_room_groups("list", "."), 900);
    write_file("a/memory.max", "700\n");
    cr_assert_eq(sim_room_groups("list", "."), 700);
    write_file("a/b/memory.max", "800\n");
    cr_assert_eq(sim_room_groups("list", "."), 700);
}

Test(room, version_1_has_a_folder_for_memory)
{
    mkdir("memory", 0700);
    write_file("memory/memory.limit_in_bytes", "5000000000\n");
    write_file("list", "9:name=systemd:/\n4:memory:/the/host/s\n0::/\n");
    cr_assert_eq(sim_room_groups("list", "."), UINT64_C(5000000000));
    cr_assert_eq(sim_room_groups("no-list", "."), UINT64_MAX);
}

Test(room, what_no_machine_has_is_refused_with_what_it_would_take)
{
    char why[512] = "";
    cr_assert_eq(sim_room_check(1000, 2, 1000, why, sizeof why), 0, "%s", why);
    cr_assert_eq(sim_room_check(1000000, 3, UINT64_C(1) << 28, why, sizeof why), PARLEY_ENOMEM);
    cr_assert(strstr(why, "1000000 nodes take 3.2 PB of memory at least, 3.2 GB each"), "%s", why);
}
