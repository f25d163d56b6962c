/* complete.c: see complete.h. */
#include "complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "loop.h"
#include "network/address.h"
#include "report/text.h"

/* Of a link-local address it takes the link away, which is named otherwise on other machines, and
 * by which this one dials theirs. */
static int take_link(struct address *split, const struct sockaddr *to, struct loop *loop)
{
    if (!address_is_link_local(to)) return PARLEY_OK;
    if (!loop->zone) loop->zone = address_zone(to);
    split->host[strcspn(split->host, "%")] = 0;
    return loop->zone ? PARLEY_OK : PARLEY_EUSAGE;
}

static int complete_address(struct complete *complete, struct loop *loop, char *why, size_t size)
{
    const char *wanted = complete->config.address;
    struct address split, listens;
    bool open = !wanted || !wanted[0];
    complete->config.address = complete->address;
    if (open && loop->listens_any) {
        snprintf(why, size, "address: peers can't reach %s; say what they can reach",
                 loop->listens);
        return PARLEY_EUSAGE;
    }
    if (open) {
        strcpy(complete->address, loop->listens);
        return PARLEY_OK;
    }
    if (address_split(&split, wanted) || address_split(&listens, loop->listens))
        return address_refuse("address", wanted, why, size);
    struct sockaddr_storage numeric;
    const struct sockaddr *to = (struct sockaddr *)&numeric;
    bool known = address_numeric(&numeric, &split);
    if (known && address_is_any(to)) {
        snprintf(why, size, "address: \"%s\" is no address that peers can dial", wanted);
        return PARLEY_EUSAGE;
    }
    if (known && take_link(&split, to, loop)) {
        snprintf(why, size, "address: \"%s\": %s", wanted, address_error(UV_EINVAL, to));
        return PARLEY_EUSAGE;
    }
    int port = atoi(split.port);
    int code =
        address_join(complete->address, split.host, (unsigned)(port ? port : atoi(listens.port)));
    if (code)
        snprintf(why, size, "address: \"%s\" is longer than %d bytes with its port", wanted,
                 PARLEY_ADDRESS_SIZE - 1);
    return code;
}

/* They are dialled for the whole run: one that never can be would never be missed. */
int complete_check_seeds(const char *const *seeds, uint32_t count, char *why, size_t size)
{
    struct address split;
    if (count > PARLEY_SEEDS_MAX) {
        snprintf(why, size, "seeds_count: %u is out of range (0 to %d)", count, PARLEY_SEEDS_MAX);
        return PARLEY_EUSAGE;
    }
    if (count > 0 && !seeds) {
        snprintf(why, size, "seeds: NULL, but seeds_count is %u", count);
        return PARLEY_EUSAGE;
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *seed = seeds[i] ? seeds[i] : "";
        if (strlen(seed) >= PARLEY_ADDRESS_SIZE) return address_refuse("seeds", seed, why, size);
        if (text_clean(seed) && !address_split(&split, seed) && atoi(split.port) > 0) continue;
        char quoted[TEXT_QUOTED_BYTES];
        snprintf(why, size, "seeds: %s is no HOST:PORT that can be dialled",
                 text_quote(quoted, seed));
        return PARLEY_EUSAGE;
    }
    return PARLEY_OK;
}

static int keep(char to[PARLEY_NAME_SIZE], const char *from)
{
    return snprintf(to, PARLEY_NAME_SIZE, "%s", from) >= PARLEY_NAME_SIZE;
}

static int too_long(const char *what, const char *value, char *why, size_t size)
{
    snprintf(why, size, "%s: \"%.80s\" is longer than %d bytes", what, value, PARLEY_NAME_SIZE - 1);
    return PARLEY_EUSAGE;
}

static uint64_t add_word(uint64_t digest, const char *word)
{
    for (const char *c = word ? word : ""; *c; c++)
        digest = rng_mix(digest ^ (uint8_t)*c);
    return rng_mix(digest);
}

static int complete_tensors(struct complete *complete, struct parley_options *options, char *why,
                            size_t size)
{
    uint64_t floats = options->config.parameters;
    if (options->tensors) return PARLEY_OK;
    /* More than there may be is refused with all else (parley_config_check()). */
    if (floats > UINT32_MAX && floats <= PARLEY_PARAMETERS_MAX) {
        snprintf(why, size, "parameters: %" PRIu64 " floats need a table of tensors", floats);
        return PARLEY_EUSAGE;
    }
    complete->whole = (struct parley_tensor){"vector", 1, {(uint32_t)floats}};
    options->tensors = &complete->whole;
    options->tensors_count = 1;
    return PARLEY_OK;
}

/* Those who lay the vector out in other tensors would write other files. */
static uint64_t shape_digest(const struct parley_options *options)
{
    const struct parley_tensor *tensors = options->tensors;
    uint64_t digest = rng_mix(options->config.parameters);
    for (uint32_t i = 0; i < options->tensors_count; i++) {
        digest = add_word(digest, tensors[i].name);
        for (uint32_t r = 0; r < tensors[i].rank && r < 4; r++)
            digest = rng_mix(digest ^ tensors[i].shape[r]);
    }
    return digest;
}

int complete_options(struct complete *complete, struct parley_options *options, struct loop *loop,
                     char *why, size_t size)
{
    uint64_t drawn[2] = {0, 0};
    complete->config = options->config;
    struct parley_config *config = &complete->config;
    int code = complete_tensors(complete, options, why, size);
    if (code) return code;
    code = uv_random(NULL, NULL, drawn, sizeof drawn, 0, NULL);
    if (code) {
        snprintf(why, size, "can't draw random bytes: %s", uv_strerror(code));
        return PARLEY_EFAIL;
    }
    if (!config->boot) config->boot = drawn[0] ? drawn[0] : 1;
    if (!config->seed) config->seed = drawn[1];
    if (!config->model_digest) config->model_digest = shape_digest(options);
    if (!config->name || !config->name[0])
        snprintf(complete->name, sizeof complete->name, "node-%016" PRIx64, config->boot);
    else if (keep(complete->name, config->name))
        return too_long("name", config->name, why, size);
    if (keep(complete->cluster, config->cluster ? config->cluster : ""))
        return too_long("cluster", config->cluster, why, size);
    config->name = complete->name;
    config->cluster = complete->cluster;
    code = complete_address(complete, loop, why, size);
    return code ? code : complete_check_seeds(config->seeds, config->seeds_count, why, size);
}
