/* address.c: see address.h. */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "network/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int address_split(struct address *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text) return PARLEY_EUSAGE;
    const char *host = text;
    size_t length = (size_t)(colon - text);
    if (text[0] == '[') {
        if (length < 3 || colon[-1] != ']') return PARLEY_EUSAGE;
        host++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return PARLEY_EUSAGE; /* a bare v6 address: where its port starts can't be told */
    }
    size_t digits = strlen(colon + 1);
    if (length >= sizeof address->host || digits < 1 || digits >= sizeof address->port ||
        strspn(colon + 1, "0123456789") != digits || atol(colon + 1) > 65535)
        return PARLEY_EUSAGE;
    memcpy(address->host, host, length);
    address->host[length] = 0;
    strcpy(address->port, colon + 1);
    return PARLEY_OK;
}

int address_refuse(const char *name, const char *text, char *why, size_t size)
{
    if (strlen(text) >= PARLEY_ADDRESS_SIZE)
        snprintf(why, size, "%s: \"%.80s\" is longer than %d bytes", name, text,
                 PARLEY_ADDRESS_SIZE - 1);
    else
        snprintf(why, size, "%s: \"%s\" is no HOST:PORT", name, text);
    return PARLEY_EUSAGE;
}

int address_join(char text[PARLEY_ADDRESS_SIZE], const char *host, unsigned port)
{
    const char *format = strchr(host, ':') ? "[%s]:%u" : "%s:%u";
    int length = snprintf(text, PARLEY_ADDRESS_SIZE, format, host, port);
    return length < PARLEY_ADDRESS_SIZE ? PARLEY_OK : PARLEY_EUSAGE;
}

static unsigned address_port(const struct sockaddr *from)
{
    if (from->sa_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)from)->sin6_port);
    return ntohs(((const struct sockaddr_in *)from)->sin_port);
}

void address_print(char text[PARLEY_ADDRESS_SIZE], const struct sockaddr *from)
{
    char host[INET6_ADDRSTRLEN];
    strcpy(text, "?");
    if (from->sa_family != AF_INET6 && from->sa_family != AF_INET) return;
    uv_ip_name(from, host, sizeof host);
    bool mapped = from->sa_family == AF_INET6 &&
                  IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)from)->sin6_addr);
    (void)address_join(text, mapped ? strrchr(host, ':') + 1 : host, address_port(from));
}

bool address_is_any(const struct sockaddr *from)
{
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
        return memcmp(&v6->sin6_addr, &in6addr_any, sizeof in6addr_any) == 0;
    }
    return ((const struct sockaddr_in *)from)->sin_addr.s_addr == htonl(INADDR_ANY);
}

bool address_is_local(const struct sockaddr *from)
{
    struct sockaddr_storage any_port = {0};
    bool v6 = from->sa_family == AF_INET6;
    socklen_t size = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(from->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    memcpy(&any_port, from, size);
    if (v6)
        ((struct sockaddr_in6 *)&any_port)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&any_port)->sin_port = 0;
    bool local = bind(fd, (struct sockaddr *)&any_port, size) == 0;
    close(fd);
    return local;
}

bool address_is_link_local(const struct sockaddr *from)
{
    return from->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)from)->sin6_addr);
}

uint32_t address_zone(const struct sockaddr *from)
{
    return address_is_link_local(from) ? ((const struct sockaddr_in6 *)from)->sin6_scope_id : 0;
}

void address_on_link(struct sockaddr *to, uint32_t zone)
{
    if (address_is_link_local(to) && address_zone(to) == 0)
        ((struct sockaddr_in6 *)to)->sin6_scope_id = zone;
}

const char *address_error(int code, const struct sockaddr *of)
{
    if (code != UV_EINVAL) return uv_strerror(code);
    return address_is_link_local(of) && address_zone(of) == 0
               ? "it names no link of this machine (as in [fe80::1%eth0]:7400)"
               : "invalid argument (a blackhole route?)";
}

bool address_numeric(struct sockaddr_storage *to, const struct address *from)
{
    int port = atoi(from->port);
    memset(to, 0, sizeof *to);
    return uv_ip4_addr(from->host, port, (struct sockaddr_in *)to) == 0 ||
           uv_ip6_addr(from->host, port, (struct sockaddr_in6 *)to) == 0;
}

int address_resolve(uv_loop_t *loop, struct sockaddr_storage *to, const struct address *from)
{
    if (address_numeric(to, from)) return 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    uv_getaddrinfo_t request;
    int code = uv_getaddrinfo(loop, &request, NULL, from->host, from->port, &hints);
    if (code) return code;
    memcpy(to, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    uv_freeaddrinfo(request.addrinfo);
    return 0;
}
