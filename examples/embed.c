/* embed.c: your own program as a node: it averages a vector of its own with another process.
 *
 *     ./embed ann 1                       prints the address it listens on, say 127.0.0.1:40001
 *     ./embed bob 3 127.0.0.1:40001       in a second terminal
 *
 * Both print the same digest, and 2: the mean of the two vectors. More processes may join; a last
 * argument `of N` says how many there will be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parley/parley.h"

enum { FLOATS = 1000, STEPS = 20 };

/* What the library has to say goes to stderr, warnings and errors only. */
static void on_update(void *context, struct parley *p, const struct parley_update *update)
{
    (void)p;
    if (update->type == PARLEY_UPDATE_LOG && update->log.level <= PARLEY_LOG_WARN)
        fprintf(stderr, "%s: %s\n", (const char *)context, update->log.text);
}

static int report(struct parley *p, const char *name, const float *x)
{
    struct parley_result result;
    parley_result(p, &result);
    if (!result.agreed) {
        fprintf(stderr, "%s: no agreement: %s\n", name, parley_error_text(result.error));
        return parley_error_status(result.error ? result.error : PARLEY_ENO_AGREEMENT);
    }
    printf("agreed %u of %u nodes, x = %g, digest ", result.view.held, result.view.known, x[0]);
    for (int i = 0; i < PARLEY_DIGEST_BYTES; i++)
        printf("%02x", result.view.digest[i]);
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s NAME VALUE [HOST:PORT]... [of N]\n", argv[0]);
        return 2;
    }
    unsigned nodes = 2;
    if (argc > 4 && strcmp(argv[argc - 2], "of") == 0) {
        nodes = (unsigned)atoi(argv[argc - 1]);
        argc -= 2;
    }
    static float x[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        x[i] = strtof(argv[2], NULL);

    struct parley_options options;
    parley_options_defaults(&options);
    options.config.name = argv[1];
    options.config.parameters = FLOATS;
    options.config.steps_budget = STEPS;
    options.config.min_peers = nodes - 1;
    options.config.seeds = (const char *const *)argv + 3;
    options.config.seeds_count = (uint32_t)argc - 3;
    options.vectors[0] = x;
    options.on_update = on_update;
    options.context = argv[1];

    struct parley *p;
    char why[256];
    int code = parley_open(&p, &options, why, sizeof why);
    if (code) {
        fprintf(stderr, "%s: %s\n", argv[1], why);
        return parley_error_status(code);
    }
    printf("listens %s\n", parley_listens(p));
    fflush(stdout);

    struct parley_turn turn;
    struct parley_step step = {0};
    while ((code = parley_boundary(p, &step, &turn)) == PARLEY_GO) {
        /* A program that trains makes its local step on x here. */
        step = (struct parley_step){.steps = 1, .samples = 1, .loss = 0};
    }
    code = report(p, argv[1], x);
    parley_close(p);
    return code;
}
