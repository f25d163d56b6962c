/* address.h: "host:port" and "[v6]:port" as text, and as the system's addresses.
 *
 * Thread rule: pure, but for address_resolve(), which blocks on DNS.
 */
#ifndef PARLEY_PEERS_ADDRESS_H
#define PARLEY_PEERS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "parley/config.h"

struct address {
    char host[PARLEY_ADDRESS_SIZE]; /* without brackets */
    char port[6];
};

/* PARLEY_EUSAGE: no port, an empty host, a port over 65535, a text that is too long. */
int address_split(struct address *address, const char *text);

/* Says of the setting `name` why its text was refused. Returns PARLEY_EUSAGE. */
int address_refuse(const char *name, const char *text, char *why, size_t size);

/* "host:port", with brackets where the host has a colon. PARLEY_EUSAGE: it doesn't fit. */
int address_join(char text[PARLEY_ADDRESS_SIZE], const char *host, unsigned port);

/* The numeric form of a socket's address; "?" if there is none. A v4 address that a v6 socket has
 * (::ffff:127.0.0.1, of who dials a node on [::]) is printed as the v4 address that it is. */
void address_print(char text[PARLEY_ADDRESS_SIZE], const struct sockaddr *from);

/* True for 0.0.0.0 and [::]: an address to listen on that no peer could dial. */
bool address_is_any(const struct sockaddr *from);

/* Whether it is one of this machine's, whatever the port. */
bool address_is_local(const struct sockaddr *from);

bool address_is_link_local(const struct sockaddr *from);

/* The link of a link-local address (fe80::/10), which its text says behind a %. 0: none. */
uint32_t address_zone(const struct sockaddr *from);

/* Gives a link-local address that names no link that one. */
void address_on_link(struct sockaddr *to, uint32_t zone);

/* What the system says of an address that it could not use, or what it means by its "invalid
 * argument". */
const char *address_error(int code, const struct sockaddr *of);

/* True, and *to is filled, if the host is numeric: no DNS is needed. */
bool address_numeric(struct sockaddr_storage *to, const struct address *from);

/* The first address of the name. 0 or a libuv error. */
int address_resolve(uv_loop_t *loop, struct sockaddr_storage *to, const struct address *from);

#endif
