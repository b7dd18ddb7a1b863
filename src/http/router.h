/* SPDX-License-Identifier: Apache-2.0
 * From a path, as the client sent it, to a route. Pure: no library, no clock. */
#ifndef HOLDFAST_HTTP_ROUTER_H
#define HOLDFAST_HTTP_ROUTER_H

#include "base/arena.h"
#include "http/http.h"

enum { ROUTE_SEGMENT_COUNT_MAX = 16, ROUTE_PARAM_COUNT_MAX = 8, ALLOW_TEXT_SIZE = 64 };

struct router;

struct http_match {
    const struct http_route *route; /* NULL: none for this method */
    enum http_method method;        /* HEAD is GET */
    unsigned methods;               /* bits of the methods this path has; 0: unknown path */
    size_t param_count;
    struct {
        const char *name; /* borrowed from the router */
        size_t name_length;
        const char *value; /* of the arena */
    } params[ROUTE_PARAM_COUNT_MAX];
};

/* Borrows the routes. Two routes for one method and path are a programmer's error. */
struct router *router_create(const struct http_route *routes, size_t count);
void router_destroy(struct router *router); /* NULL is fine */

/* Segments are split at '/' first and percent-decoded after, so that an encoded slash never
 * separates; a segment whose encoding is broken or hides a slash or a NUL matches nothing. */
void router_match(const struct router *router, const char *method, const char *path, struct arena *arena,
                  struct http_match *out);

/* "DELETE, GET, HEAD": the value of Allow, sorted. */
void router_write_allow(unsigned methods, char out[ALLOW_TEXT_SIZE]);

/* Decodes %XX in place; false, and the text is left half done, on broken encoding or %00. */
bool router_decode(char *text);

#endif
