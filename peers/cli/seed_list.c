/* seed_list.c: see seed_list.h. */
#include "seed_list.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/address.h"
#include "read_file.h"

/* What does not fit is refused, not left out: a node without a seed takes itself for the first. */
static int add(struct seed_list *list, const char *host, unsigned port, char *why, size_t why_size)
{
    char text[PARLEY_ADDRESS_SIZE];
    if (address_join(text, host, port)) {
        snprintf(why, why_size,
                 "\"%s:%u\" is longer than %d characters; give its number, or dns: before it if "
                 "the name is in DNS",
                 host, port, PARLEY_ADDRESS_SIZE - 1);
        return PARLEY_EUSAGE;
    }
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->text[i], text) == 0) return 0;
    if (list->count == PARLEY_SEEDS_MAX) {
        list->left_out++;
        return 0;
    }
    strcpy(list->text[list->count], text);
    list->items[list->count] = list->text[list->count];
    list->count++;
    return 0;
}

/* Every address of the name. */
static int add_dns(struct seed_list *list, const struct units_address *address, char *why,
                   size_t why_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = 0;
    list->asks_dns = true;
    if (getaddrinfo(address->host, NULL, &hints, &found)) {
        error = add(list, address->host, address->port, why, why_size);
        if (error)
            snprintf(
                why, why_size,
                "\"dns:%s:%u\" is not found now, and too long (%d characters) to be tried later",
                address->host, address->port, PARLEY_ADDRESS_SIZE - 1);
        return error;
    }
    for (const struct addrinfo *at = found; at && !error; at = at->ai_next) {
        char host[64];
        if (!getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST))
            error = add(list, host, address->port, why, why_size);
    }
    freeaddrinfo(found);
    return error;
}

static int add_file(struct seed_list *list, const char *path, char *why, size_t why_size);

static int add_seed(struct seed_list *list, const struct seed *seed, char *why, size_t why_size)
{
    if (seed->kind == SEED_FILE) return add_file(list, seed->path, why, why_size);
    if (seed->kind == SEED_DNS) return add_dns(list, &seed->address, why, why_size);
    return add(list, seed->address.host, seed->address.port, why, why_size);
}

/* Files hold no @FILE: the parser refuses it, so this goes one level deep. */
static int add_file(struct seed_list *list, const char *path, char *why, size_t why_size)
{
    struct seeds seeds = {0};
    units_why clause = "";
    uint8_t *bytes;
    size_t size;
    int error = read_file(path, SEEDS_FILE_BYTES_MAX, &bytes, &size, why, why_size);
    if (error) return error == PARLEY_EDATA ? PARLEY_EUSAGE : error;
    error = seeds_add_file(&seeds, (const char *)bytes, size, clause);
    if (error) snprintf(why, why_size, "%s: %s", path, clause);
    for (size_t i = 0; !error && i < seeds.count; i++)
        error = add_seed(list, &seeds.items[i], why, why_size);
    seeds_close(&seeds);
    free(bytes);
    return error;
}

int seed_list_make(struct seed_list *list, const struct seeds *join, const char *peers_file,
                   char *why, size_t why_size)
{
    int error = 0;
    list->count = list->left_out = 0;
    list->asks_dns = false;
    for (size_t i = 0; !error && i < join->count; i++)
        error = add_seed(list, &join->items[i], why, why_size);
    if (error) {
        char cause[512];
        snprintf(cause, sizeof cause, "%s", why);
        snprintf(why, why_size, "--join: %s", cause);
    }
    if (error || !peers_file) return error;
    error = add_file(list, peers_file, why, why_size);
    size_t said = strlen(why);
    if (error) snprintf(why + said, why_size - said, " (--peers takes a file, --join takes seeds)");
    return error;
}

bool seed_list_equal(const struct seed_list *a, const struct seed_list *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->text[i], b->text[i]) != 0) return false;
    return true;
}
