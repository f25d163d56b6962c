/* planted.c: lets bugs into the core, one at a time (src/core/plant.h), and lives random lives
 * until the checkers see each. Linked with a core built for it.
 *
 *   planted [SEEDS [NAME...]]   all, or those named, within so many seeds (1000); prints a table of
 *                               plant, seed that caught it, invariant. Exit status 1 if one stays
 *                               unseen, or if a core without a plant is blamed; 2: no plant has
 *                               that name.
 *
 * Each plant lives in a process of its own: what the core asserts of itself catches, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/plant.h"
#include "parley/config.h"
#include "sim/swarm/swarm.h"

enum plant parley_planted;

static const struct {
    const char *name, *what;
} plants[] = {[PLANT_NONE] = {"NONE", "no bug"},
#define P(name, what) [PLANT_##name] = {#name, what},
              PLANTS(P)
#undef P
};

/* What a process found: the first seed that failed, 0 for none. */
struct finding {
    unsigned long long seed;
    char why[200];
};

/* The seed goes out before it is lived, so that it is known if the core stops itself. */
static void live(int out, unsigned long long seeds)
{
    for (struct finding finding = {.seed = 1}; finding.seed <= seeds; finding.seed++) {
        struct swarm_result result;
        if (write(out, &finding, sizeof finding) != sizeof finding) _exit(2);
        swarm_live(finding.seed, PARLEY_STRATEGY_GOSSIP, &result);
        if (result.well) continue;
        memcpy(finding.why, result.why, sizeof finding.why);
        if (write(out, &finding, sizeof finding) != sizeof finding) _exit(2);
        _exit(1);
    }
    _exit(0);
}

/* True if the plant was seen; finding says where. */
static bool is_seen(enum plant plant, unsigned long long seeds, struct finding *finding)
{
    int ends[2], status;
    fflush(stdout);
    if (pipe(ends) != 0) exit(2);
    pid_t child = fork();
    if (child == 0) {
        parley_planted = plant;
        live(ends[1], seeds);
    }
    close(ends[1]);
    while (read(ends[0], finding, sizeof *finding) == sizeof *finding)
        ;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
    if (WIFSIGNALED(status)) snprintf(finding->why, sizeof finding->why, "asserted by the core");
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static bool is_wanted(enum plant plant, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], plants[plant].name) == 0) return true;
    return argc <= 2;
}

static bool is_plant(const char *name)
{
    for (int plant = PLANT_NONE; plant < PLANT_COUNT; plant++)
        if (strcmp(name, plants[plant].name) == 0) return true;
    fprintf(stderr, "planted: \"%s\" is none of the plants in src/core/plant.h\n", name);
    return false;
}

int main(int argc, char **argv)
{
    unsigned long long seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    int wrong = 0;
    for (int i = 2; i < argc; i++)
        if (!is_plant(argv[i])) return 2;
    printf("%-24s %6s  %s\n", "plant", "seed", "invariant");
    for (int plant = PLANT_NONE; plant < PLANT_COUNT; plant++) {
        struct finding finding = {0};
        if (!is_wanted((enum plant)plant, argc, argv)) continue;
        bool seen = is_seen((enum plant)plant, seeds, &finding);
        bool right = seen == (plant != PLANT_NONE);
        if (seen)
            printf("%-24s %6llu  %s%s\n", plants[plant].name, finding.seed, finding.why,
                   right ? "" : "  <- WRONG");
        else
            printf("%-24s %6s  %s\n", plants[plant].name, "-",
                   right ? "none" : "NOT SEEN  <- WRONG");
        wrong += !right;
    }
    return wrong > 0;
}
