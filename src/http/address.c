/* SPDX-License-Identifier: Apache-2.0
 * Addresses as text, in one spelling: IPv4 mapped into IPv6 is written as IPv4,
 * so that two texts are equal exactly when the addresses are. Pure. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "http/http_int.h"

static bool ipv6_format(const struct in6_addr *address, char out[INET6_ADDRSTRLEN])
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        return inet_ntop(AF_INET, &address->s6_addr[12], out, INET6_ADDRSTRLEN) != NULL;
    return inet_ntop(AF_INET6, address, out, INET6_ADDRSTRLEN) != NULL;
}

bool address_format(const struct sockaddr *address, char out[INET6_ADDRSTRLEN])
{
    out[0] = '\0';
    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, out, INET6_ADDRSTRLEN) !=
               NULL;
    if (address->sa_family == AF_INET6)
        return ipv6_format(&((const struct sockaddr_in6 *)address)->sin6_addr, out);
    return false;
}

static bool is_port(const char *text, size_t length)
{
    if (length < 2 || length > 6 || text[0] != ':')
        return false;
    return strspn(text + 1, "0123456789") >= length - 1;
}

bool address_normalize(const char *text, size_t length, char out[INET6_ADDRSTRLEN])
{
    out[0] = '\0';
    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;

    if (length > 0 && text[0] == '[') {
        const char *end = memchr(text, ']', length);
        if (end == NULL)
            return false;
        size_t rest = length - (size_t)(end + 1 - text);
        if (rest > 0 && !is_port(end + 1, rest))
            return false;
        text++;
        length = (size_t)(end - text);
    } else {
        const char *colon = memchr(text, ':', length);
        size_t rest = colon == NULL ? 0 : length - (size_t)(colon - text);
        if (rest > 0 && memchr(colon + 1, ':', rest - 1) == NULL) {
            if (!is_port(colon, rest))
                return false;
            length -= rest;
        }
    }

    char copy[INET6_ADDRSTRLEN];
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    struct in_addr ipv4;
    struct in6_addr ipv6;
    if (inet_pton(AF_INET, copy, &ipv4) == 1)
        return inet_ntop(AF_INET, &ipv4, out, INET6_ADDRSTRLEN) != NULL;
    if (inet_pton(AF_INET6, copy, &ipv6) == 1)
        return ipv6_format(&ipv6, out);
    return false;
}

bool address_is_loopback(const char *normalized)
{
    return strncmp(normalized, "127.", 4) == 0 || strcmp(normalized, "::1") == 0;
}
