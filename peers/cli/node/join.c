/* join.c: what a node says at its start of how others come to it.
 *
 *   the line to paste for the next node; a warning where others would be told an address that is
 *   each machine's own
 */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/node/node.h"
#include "settings/list.h"

/* Whether the next node is to be given it: not what is of this one, like names of files. */
static bool goes_along(const struct settings *settings, enum option_id id)
{
    enum option_group group = option_info(id)->group;
    if (id == OPTION_ID_NODES) return settings->quorum == PARLEY_QUORUM_MAJORITY;
    return !settings_is_own(id) && group != GROUP_STATE && group != GROUP_WATCHING;
}

/* What to paste for the next node: with the settings that must be equal there. Where this one can
 * be reached from other machines, that one must be, too, and by an address that only who pastes it
 * knows. */
void node_join_say_next(struct node *node)
{
    const struct units_address *listen = &node->settings->listen;
    struct text text;
    text_init(&text, 1 << 20);
    text_add(&text, "parley node --join %s", parley_config_of(node->p)->address);
    if (!units_address_is_loopback(listen))
        text_add(&text, " --listen=ITS-ADDRESS:%u", listen->port);
    for (int i = 0; i < OPTION_ID_COUNT; i++)
        if (goes_along(node->settings, (enum option_id)i))
            settings_add_argument(&text, node->settings, (enum option_id)i);
    char *line = text_take(&text);
    if (line) say(PARLEY_LOG_INFO, "the next node: %s", line);
    free(line);
}

static bool is_loopback(const char *text)
{
    struct units_address address;
    units_why why;
    return !units_address(text, &address, why) && units_address_is_loopback(&address);
}

/* It would train with its seed alone: two such nodes, on two machines, never reach each other, and
 * end with two models once the seed is gone. */
void node_join_warn(struct node *node)
{
    const char *own = parley_config_of(node->p)->address;
    if (!is_loopback(own)) return;
    for (uint32_t i = 0; i < node->seeds.count; i++) {
        if (is_loopback(node->seeds.text[i])) continue;
        say(PARLEY_LOG_WARN,
            "others are told to dial this node at %s, which no other machine can, and the seed %s "
            "is not on loopback: give --listen an address of this machine (with --cluster-key), or "
            "say with --advertise how others reach it",
            own, node->seeds.text[i]);
        return;
    }
}
