/* refused.c: what parley_open() does not take, and says so by its name, before anything is trained:
 *
 *   - seeds and addresses that no peer could dial, and texts that peers would call malformed
 *   - tensors, texts and places that no model file could have
 *   - more parameters than there may be, and what is merely too long
 *   - a table of members, which belongs to one thread
 *   - a process with a closed standard file, or without the descriptors that a node starts with
 *
 * Plain main(), so that it runs under ThreadSanitizer.
 */
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "parley/parley.h"
#include "report/text.h"

enum { FLOATS = 20000 };

/* What would be taken. */
static struct parley_options plain(void)
{
    static float x[FLOATS];
    struct parley_options options;
    parley_options_defaults(&options);
    options.config.name = "n0";
    options.config.parameters = FLOATS;
    options.vectors[0] = x;
    return options;
}

static void expect_usage(struct parley_options *options, const char *words)
{
    struct parley *p;
    char why[256];
    int code = parley_open(&p, options, why, sizeof why);
    check(code == PARLEY_EUSAGE && !p && strstr(why, words), words);
    check(text_clean(why), "it is a line that can be shown");
    if (code) return;
    parley_close(p);
}

static void refuse_what_no_peer_can_dial(void)
{
    const char *bad[] = {"nowhere", "127.0.0.1:99999", "127.0.0.1:0", "[::1", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct parley_options options = plain();
        options.config.seeds = &bad[i];
        options.config.seeds_count = 1;
        expect_usage(&options, bad[i] ? bad[i] : "seeds");
    }
    const char *addresses[] = {
        "0.0.0.0:0", "[::]:7400",
        "a-host-name-of-sixty-eight-bytes-which-leaves-no-room-for-a-port.org:0"};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        struct parley_options options = plain();
        options.listen = "127.0.0.1:0";
        options.config.address = addresses[i];
        expect_usage(&options, addresses[i]);
    }
}

/* Peers would call all that it says malformed. */
static void refuse_control_characters(void)
{
    const struct parley_setting setting = {.name = "lr", .value = "0.1\n"};
    struct parley_options options = plain();
    options.config.name = "a\tb";
    expect_usage(&options, "name: \"a?b\"");
    options = plain();
    options.config.cluster = "\033[2J\xff";
    expect_usage(&options, "cluster: \"?[2J?\"");
    options = plain();
    options.listen = "1.2.3.4\n";
    expect_usage(&options, "listen: \"1.2.3.4?\" is no HOST:PORT");
    options = plain();
    options.config.address = "a\nb:99999";
    expect_usage(&options, "address: \"a?b:99999\" is no HOST:PORT");
    options = plain();
    options.out = "no\n\xc2\x85x/model";
    expect_usage(&options, "out: no file can be made in no???x/");
    options = plain();
    options.config.settings = &setting;
    options.config.settings_count = 1;
    expect_usage(&options, "settings: \"lr\"");
}

static void say_what_is_too_much(void)
{
    char text[300];
    memset(text, 'h', sizeof text - 3);
    strcpy(text + sizeof text - 3, ":1");
    const char *seed = text;
    struct parley_options options = plain();
    options.config.parameters = UINT64_MAX;
    expect_usage(&options, "parameters: 18446744073709551615 is out of range (1 to ");
    options = plain();
    options.config.address = text;
    expect_usage(&options, "\" is longer than 71 bytes");
    options = plain();
    options.listen = text;
    expect_usage(&options, "\" is longer than 71 bytes");
    options = plain();
    options.config.seeds = &seed;
    options.config.seeds_count = 1;
    expect_usage(&options, "\" is longer than 71 bytes");
    options = plain();
    options.config.name = text;
    expect_usage(&options, "\" is longer than 31 bytes");
}

/* Else it would be said after the training. */
static void refuse_where_no_file_can_be(void)
{
    struct parley_options options = plain();
    options.out = "/no/such/folder/model";
    expect_usage(&options, "out: no file can be made in /no/such/folder/");
    options.out = "/dev/null";
    expect_usage(&options, "out: /dev/null is no regular file");
    char longest[240];
    memset(longest, 'm', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    options.out = longest;
    expect_usage(&options, "file's name is longer than");
    static char deep[PATH_MAX]; /* it could be opened, but no name beside it */
    memset(deep, '/', sizeof deep - 1);
    memcpy(deep + sizeof deep - 20, "tmp/parley-refused", 18);
    deep[sizeof deep - 2] = '\0';
    options.out = deep;
    expect_usage(&options, "the path is longer than");
    options.out = "";
    expect_usage(&options, "out: \"\" names no file");
}

/* What no model file could hold is said before the training, and by its name. */
static void refuse_what_no_file_holds(void)
{
    const struct parley_tensor twice[] = {{"w", 1, {FLOATS / 2}}, {"w", 1, {FLOATS / 2}}};
    const struct parley_options least = plain();
    const float one[3] = {1, 1, 1};
    char text[300];
    memset(text, 'm', sizeof text);
    text[sizeof text - 1] = 0;
    struct parley_options options = least;
    options.out = "/tmp/parley-refused-none";
    options.tensors = twice;
    options.tensors_count = 2;
    expect_usage(&options, "tensors: number 1, \"w\": a model file can't hold it");
    const char *names[] = {"", "a b", "a\nb", "\x7f", "\xc3\xa4", "__metadata__", "input.scale"};
    options.tensors_count = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct parley_tensor odd = {names[i], 1, {FLOATS}};
        options.tensors = &odd;
        expect_usage(&options, "tensors: number 0, \"");
    }
    options.tensors = NULL;
    options.about.model = text;
    expect_usage(&options, "about.model");
    options.about.model = "a line\n";
    expect_usage(&options, "about.model");
    options.about.model = NULL;
    options.about.data = "\xff";
    expect_usage(&options, "about.data");
    options.about.data = NULL;
    options.about.classes = 2;
    options.about.vocabulary = "abc";
    expect_usage(&options, "about.vocabulary");
    options.about.vocabulary = NULL;
    options.about.class_names = "a\nb\nc";
    expect_usage(&options, "about.class_names");
    options.about.class_names = NULL;
    options.about.features = 3;
    options.about.columns = "u\nv";
    expect_usage(&options, "about.columns");
    options.about.columns = NULL;
    options.about.scaling = 2;
    options.about.shift = options.about.scale = one;
    expect_usage(&options, "about.scaling: 2");
    options.about.scaling = 3;
    options.about.scale = NULL;
    expect_usage(&options, "about.scaling: 3");
    options.about.shift = options.about.scale = (const float[]){1, 0, -1};
    expect_usage(&options, "about.shift and about.scale are not");
    options.about.scaling = 0;
    options.about.label = (const float[]){5, 0};
    expect_usage(&options, "about.label: 5 and 0");
}

/* Else a socket would be the program's stdin, and libuv abort when it is closed. */
static void refuse_without_standard_files(void)
{
    struct parley *p;
    char why[256];
    struct parley_options options = plain();
    int kept = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    int code = parley_open(&p, &options, why, sizeof why);
    check(code == PARLEY_EFAIL && strstr(why, "descriptor 0"), "a standard file that is closed");
    check(dup2(kept, STDIN_FILENO) == STDIN_FILENO && close(kept) == 0, "and is open again");
}

/* Each parley would use it on a thread of its own. */
static void refuse_a_roster(void)
{
    struct parley_options options = plain();
    if (parley_roster_new(&options.config.roster, 4, 10)) return;
    expect_usage(&options, "roster: it belongs to one thread");
    parley_roster_free(options.config.roster);
}

/* The first loop of a process: libuv aborts where it can't make its pipe. */
static void refuse_without_descriptors(void)
{
    struct parley *p;
    char why[256];
    struct rlimit before, few;
    struct parley_options options = plain();
    int next = dup(STDIN_FILENO);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    for (rlim_t spare = 0; spare < 10; spare++) {
        few = (struct rlimit){(rlim_t)next + spare, before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &few);
        int code = parley_open(&p, &options, why, sizeof why);
        setrlimit(RLIMIT_NOFILE, &before);
        check(code == PARLEY_EFAIL && strstr(why, "too many open files"), why);
    }
    check(parley_open(&p, &options, why, sizeof why) == PARLEY_OK, "and with enough it starts");
    parley_close(p);
}

int main(void)
{
    refuse_without_descriptors(); /* before there was a loop */
    refuse_what_no_peer_can_dial();
    refuse_what_no_file_holds();
    refuse_control_characters();
    say_what_is_too_much();
    refuse_where_no_file_can_be();
    refuse_a_roster();
    refuse_without_standard_files();
    return failures ? 1 : 0;
}
