/* SPDX-License-Identifier: Apache-2.0
 * Addresses and ids as people type them on a command line. Names are resolved
 * once, at start; below this everything is numeric. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/cli.h"

static bool address_complain(const struct options *options, enum option option, const char *what, char *why,
                             size_t why_size)
{
    char origin[512];

    options_origin(options, option, origin, sizeof origin);
    snprintf(why, why_size, "%s: '%.100s' is not an address to listen on (%s)", origin,
             options->values[option], what);
    return false;
}

/* "[::1]:80" and "127.0.0.1:80" into host and port. */
static bool split_host_port(const char *text, char *host, size_t host_size, const char **port)
{
    const char *colon = strrchr(text, ':');

    if (colon == NULL || colon == text)
        return false;
    size_t length = (size_t)(colon - text);
    if (text[0] == '[') {
        if (colon[-1] != ']' || length < 3)
            return false;
        text++;
        length -= 2;
    } else if (memchr(text, ':', length) != NULL) {
        return false; /* an IPv6 address without brackets is ambiguous */
    }
    if (length >= host_size)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    *port = colon + 1;
    return true;
}

bool address_parse(const struct options *options, enum option option, struct address *out, char *why,
                   size_t why_size)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[256], *end = NULL;
    const char *port_text;

    if (!split_host_port(options->values[option], host, sizeof host, &port_text))
        return address_complain(options, option,
                                "expected ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080", why, why_size);
    unsigned long port = strtoul(port_text, &end, 10);
    if (port_text[0] < '0' || port_text[0] > '9' || *end != '\0' || port > 65535)
        return address_complain(options, option, "the port must be a number from 0 to 65535", why, why_size);
    int status = getaddrinfo(host, NULL, &hints, &found);
    if (status != 0)
        return address_complain(options, option, gai_strerror(status), why, why_size);
    status =
        getnameinfo(found->ai_addr, found->ai_addrlen, out->host, sizeof out->host, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    if (status != 0)
        return address_complain(options, option, gai_strerror(status), why, why_size);
    out->port = (uint16_t)port;
    return true;
}

void address_format_url(const struct address *address, char *out, size_t out_size)
{
    bool is_ipv6 = strchr(address->host, ':') != NULL;

    snprintf(out, out_size, is_ipv6 ? "http://[%s]:%u" : "http://%s:%u", address->host,
             (unsigned)address->port);
}

bool options_uuid(const struct options *options, enum option option, struct uuid *out, char *why,
                  size_t why_size)
{
    const char *text = options->values[option];

    *out = (struct uuid){.bytes = {0}};
    if (text == NULL)
        return true;
    if (uuid_parse(text, strlen(text), out) && !uuid_is_nil(out))
        return true;
    char origin[512];
    options_origin(options, option, origin, sizeof origin);
    snprintf(why, why_size, "%s must be a UUID, not '%.64s'", origin, text);
    return false;
}
