/* seeds_spec.c: how seed lists are written, in a setting and in a file. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "settings/values/seeds.h"

Test(seeds_spec, a_list_has_addresses_names_to_resolve_and_files)
{
    /* Commas separate, blanks do not matter, and each item keeps its kind. */
    struct seeds seeds = {0};
    units_why why;
    cr_assert_eq(seeds_add_list(&seeds, "a:1, [::1]:2,dns:parley.svc:3,@/etc/seeds", why), 0);
    cr_assert_eq(seeds.count, 4);
    cr_assert_eq(seeds.items[0].kind, SEED_ADDRESS);
    cr_assert(seeds.items[1].address.v6 && seeds.items[1].address.port == 2);
    cr_assert_eq(seeds.items[2].kind, SEED_DNS);
    cr_assert_str_eq(seeds.items[2].address.host, "parley.svc");
    cr_assert_eq(seeds.items[3].kind, SEED_FILE);
    cr_assert_str_eq(seeds.items[3].path, "/etc/seeds");
    const char *bad[] = {"a:1,", ",", "", "a", "a:0", "@", "dns:a", "b:1,\x01:3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(seeds_add_list(&seeds, bad[i], why), PARLEY_EUSAGE, "%s", bad[i]);
        cr_assert_eq(seeds.count, 4);
    }
    cr_assert_eq(seeds_add_list(&seeds, "z:9", why), 0);
    cr_assert_str_eq(seeds.items[4].address.host, "z");
    seeds_close(&seeds);
}

Test(seeds_spec, a_peers_file_has_an_item_a_line_and_comments)
{
    /* CR LF, blanks, comments and a missing last newline are fine; errors name the line. */
    static const char file[] = "# ours\r\n n0:7000 # first\r\n\n[::1]:7001";
    struct seeds seeds = {0};
    units_why why;
    cr_assert_eq(seeds_add_file(&seeds, file, strlen(file), why), 0);
    cr_assert_eq(seeds.count, 2);
    cr_assert_eq(seeds_add_file(&seeds, "a:1\nb\n", 6, why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "line 2") && strstr(why, "\"b\""), "%s", why);
    cr_assert_eq(seeds_add_file(&seeds, "@x\n", 3, why), PARLEY_EUSAGE);
    cr_assert_eq(seeds_add_file(&seeds, "a:1\0b", 5, why), PARLEY_EUSAGE);
    cr_assert_eq(seeds.count, 2);
    cr_assert_eq(seeds_add_file(&seeds, file, 0, why), 0);
    size_t size = 2 << 20;
    char *large = malloc(size);
    memset(large, 'a', size);
    cr_assert_eq(seeds_add_file(&seeds, large, size, why), PARLEY_EUSAGE);
    cr_assert_eq(seeds_add_file(&seeds, large, 1 << 20, why), PARLEY_EUSAGE);
    for (size_t i = 0; i + 4 <= size; i += 4)
        memcpy(large + i, "a:1\n", 4);
    cr_assert_eq(seeds_add_file(&seeds, large, 1 << 20, why), PARLEY_EUSAGE);
    cr_assert(strstr(why, "more than 4096"), "%s", why);
    cr_assert_eq(seeds.count, 2);
    free(large);
    seeds_close(&seeds);
}
