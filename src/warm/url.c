/* SPDX-License-Identifier: Apache-2.0
 * Reads where Redis is:
 *
 *   redis://[user:password@]host[:port][/database][?retry_ms=N]
 *   rediss://…[?cafile=PATH]        the same over TLS
 *   unix:///path[?db=N]
 *
 * and several of them separated by commas. Every part may hold %-escapes; a
 * comma inside one must be escaped. Pure; a password never gets into an error. */
#include "warm/url.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct piece { /* of the text; borrows */
    const char *text;
    size_t size;
};

struct failure {
    char *why;
    size_t size;
};

static enum err fail(struct failure *failure, const char *format, ...) PRINTF_LIKE(2, 3);

static enum err fail(struct failure *failure, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->why, failure->size, format, arguments);
    va_end(arguments);
    return ERR_CONFIG;
}

static bool piece_is(struct piece piece, const char *text)
{
    return piece.size == strlen(text) && memcmp(piece.text, text, piece.size) == 0;
}

/* Cuts the piece at the first (or last) `mark`; false and all of it in `before` when there is none. */
static bool piece_cut(struct piece whole, char mark, bool last, struct piece *before, struct piece *after)
{
    const char *at = whole.size == 0 ? NULL
                     : last          ? memrchr(whole.text, mark, whole.size)
                                     : memchr(whole.text, mark, whole.size);
    *before = whole;
    *after = (struct piece){"", 0};
    if (at == NULL)
        return false;
    before->size = (size_t)(at - whole.text);
    *after = (struct piece){at + 1, whole.size - before->size - 1};
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Undoes %-escapes; false if one is broken, stands for NUL, or the text does not fit. */
static bool piece_unescape(struct piece piece, char *out, size_t out_size)
{
    size_t size = 0;
    for (size_t i = 0; i < piece.size; i++) {
        int c = (unsigned char)piece.text[i];
        if (c == '%') {
            if (piece.size - i < 3)
                return false;
            int high = hex_digit(piece.text[i + 1]), low = hex_digit(piece.text[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = high << 4 | low;
            i += 2;
        }
        if (c == '\0' || size + 1 >= out_size)
            return false;
        out[size++] = (char)c;
    }
    out[size] = '\0';
    return true;
}

static bool piece_number(struct piece piece, int64_t most, int64_t *out)
{
    int64_t value = 0;
    if (piece.size == 0 || piece.size > 10)
        return false;
    for (size_t i = 0; i < piece.size; i++) {
        if (piece.text[i] < '0' || piece.text[i] > '9')
            return false;
        value = value * 10 + (piece.text[i] - '0');
    }
    *out = value;
    return value <= most;
}

static enum err parse_database(struct piece piece, struct address *address, struct failure *failure)
{
    int64_t number;
    if (!piece_number(piece, ADDRESS_DATABASE_MAX, &number))
        return fail(failure, "The address of Redis names a database that is not a number from 0 to %d.",
                    ADDRESS_DATABASE_MAX);
    address->database = (int32_t)number;
    return ERR_OK;
}

static enum err parse_option(struct piece option, struct address *address, struct address_list *list,
                             struct failure *failure)
{
    struct piece name, value;
    piece_cut(option, '=', false, &name, &value);
    if (piece_is(name, "db") && address->is_unix)
        return parse_database(value, address, failure);
    if (piece_is(name, "cafile") && address->is_tls) {
        if (!piece_unescape(value, address->ca_file, sizeof(address->ca_file)) || address->ca_file[0] == '\0')
            return fail(failure, "The address of Redis has a cafile that is no path.");
        return ERR_OK;
    }
    if (piece_is(name, "retry_ms")) {
        if (!piece_number(value, ADDRESS_RETRY_MS_MAX, &list->retry_ms) || list->retry_ms == 0)
            return fail(failure,
                        "The address of Redis has a retry_ms that is not a number of milliseconds from 1 to "
                        "%d.",
                        ADDRESS_RETRY_MS_MAX);
        return ERR_OK;
    }
    return fail(failure, "The address of Redis has an option that is not known: %.*s.",
                (int)(name.size < 40 ? name.size : 40), name.text);
}

static enum err parse_user(struct piece user, struct address *address, struct failure *failure)
{
    struct piece name, password;
    if (!piece_cut(user, ':', false, &name, &password) || password.size == 0)
        return fail(failure, "The address of Redis names a user without a password: write user:password@ or "
                             ":password@.");
    if (!piece_unescape(name, address->user, sizeof(address->user)) ||
        !piece_unescape(password, address->password, sizeof(address->password)))
        return fail(failure, "The user or password in the address of Redis is too long or wrongly escaped.");
    return ERR_OK;
}

static enum err parse_host(struct piece place, struct address *address, struct failure *failure)
{
    struct piece host = place, port = {"", 0};
    bool has_port = false;
    if (place.size > 0 && place.text[0] == '[') {
        struct piece rest;
        host = (struct piece){place.text + 1, place.size - 1};
        if (!piece_cut(host, ']', false, &host, &rest) || (rest.size > 0 && rest.text[0] != ':'))
            return fail(failure, "The address of Redis has a bracket that is not closed before its port.");
        has_port = rest.size > 0;
        if (has_port)
            port = (struct piece){rest.text + 1, rest.size - 1};
    } else {
        has_port = piece_cut(place, ':', true, &host, &port);
        if (memchr(host.text, ':', host.size) != NULL)
            return fail(failure, "The address of Redis has an IPv6 address that is not in brackets.");
    }
    if (host.size == 0 || !piece_unescape(host, address->host, sizeof(address->host)))
        return fail(failure, "The address of Redis has no host, or one that is too long.");
    if (place.text[0] == '[') {
        struct in6_addr ignored;
        if (inet_pton(AF_INET6, address->host, &ignored) != 1 && strchr(address->host, '%') == NULL)
            return fail(failure, "The address of Redis has something in brackets that is not IPv6.");
    }
    int64_t number = 6379;
    if (has_port && (!piece_number(port, 65535, &number) || number == 0))
        return fail(failure, "The address of Redis has a port that is not a number from 1 to 65535.");
    snprintf(address->port, sizeof(address->port), "%d", (int)number);
    return ERR_OK;
}

static enum err parse_one(struct piece text, struct address_list *list, struct failure *failure)
{
    static const char separator[] = "://";
    struct address *address = &list->addresses[list->count];
    const char *at = memmem(text.text, text.size, separator, sizeof(separator) - 1);
    struct piece scheme = {text.text, at == NULL ? 0 : (size_t)(at - text.text)};
    memset(address, 0, sizeof(*address));
    address->is_unix = piece_is(scheme, "unix");
    address->is_tls = piece_is(scheme, "rediss");
    if (!address->is_unix && !address->is_tls && !piece_is(scheme, "redis"))
        return fail(failure, "The address of Redis must begin with redis://, rediss:// or unix://.");

    struct piece rest = {at + 3, text.size - scheme.size - 3}, options, place, database;
    piece_cut(rest, '?', false, &rest, &options);
    enum err err = ERR_OK;
    if (address->is_unix) {
        if (rest.size == 0 || rest.text[0] != '/' ||
            !piece_unescape(rest, address->path, sizeof(address->path)))
            return fail(failure, "The address of Redis has no absolute path of a socket, or one of more than "
                                 "107 bytes.");
    } else {
        bool has_database = piece_cut(rest, '/', false, &place, &database);
        struct piece user, host;
        if (piece_cut(place, '@', true, &user, &host)) {
            err = parse_user(user, address, failure);
            place = host;
        }
        if (err == ERR_OK)
            err = parse_host(place, address, failure);
        if (err == ERR_OK && has_database && database.size > 0)
            err = parse_database(database, address, failure);
    }
    while (err == ERR_OK && options.size > 0) {
        struct piece option;
        piece_cut(options, '&', false, &option, &options);
        err = parse_option(option, address, list, failure);
    }
    return err;
}

enum err url_parse(const char *text, struct address_list *out, char *why, size_t why_size)
{
    struct failure failure = {why, why_size};
    struct piece rest = {text, strlen(text)};
    memset(out, 0, sizeof(*out));
    if (rest.size == 0)
        return fail(&failure, "The address of Redis is empty.");
    bool more = true;
    while (more) {
        struct piece one;
        more = piece_cut(rest, ',', false, &one, &rest);
        if (out->count == ADDRESS_COUNT_MAX)
            return fail(&failure, "There are more than %d addresses of Redis.", ADDRESS_COUNT_MAX);
        enum err err = parse_one(one, out, &failure);
        if (err != ERR_OK)
            return err;
        out->count++;
    }
    return ERR_OK;
}
