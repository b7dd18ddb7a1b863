/* SPDX-License-Identifier: Apache-2.0
 * Routes as a tree of path segments, matched one segment at a time.
 *
 * Stands between the request's first line and its handler; called once a
 * request, on the loop's thread; the tree is read-only after router_create().
 *
 * 1. A literal segment wins over a parameter; if what follows it does not
 *    match, the parameter is tried: the order of the table does not matter.
 * 2. An empty segment matches nothing, so "/a/" is not "/a".
 * 3. A path splits at '/' before it is decoded: %2F never separates, and never
 *    arrives in a parameter either.
 *
 * It does not know wildcards, nor patterns inside a segment. */
#include "http/router.h"

#include <stdlib.h>
#include <string.h>

struct router_node {
    const char *text; /* of a literal; borrowed from the route's path */
    size_t length;
    struct router_node *sibling;
    struct router_node *literals;  /* first child */
    struct router_node *parameter; /* the child for {name} */
    const struct http_route *routes[HTTP_METHOD_COUNT];
};

struct router {
    struct router_node root;
};

struct router_path {
    char *segments[ROUTE_SEGMENT_COUNT_MAX];
    size_t lengths[ROUTE_SEGMENT_COUNT_MAX];
    size_t count;
};

static const char *const method_names[HTTP_METHOD_COUNT] = {
    [HTTP_GET] = "GET",     [HTTP_POST] = "POST",     [HTTP_PUT] = "PUT",
    [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
};

static struct router_node *node_create(const char *text, size_t length)
{
    struct router_node *node = calloc(1, sizeof *node);
    CHECK(node != NULL);
    node->text = text;
    node->length = length;
    return node;
}

static void node_deinit(struct router_node *node)
{
    for (struct router_node *child = node->literals, *next; child != NULL; child = next) {
        next = child->sibling;
        node_deinit(child);
        free(child);
    }
    if (node->parameter != NULL) {
        node_deinit(node->parameter);
        free(node->parameter);
    }
}

static struct router_node *node_literal(const struct router_node *node, const char *text, size_t length)
{
    for (struct router_node *child = node->literals; child != NULL; child = child->sibling)
        if (child->length == length && memcmp(child->text, text, length) == 0)
            return child;
    return NULL;
}

static struct router_node *node_descend(struct router_node *node, const char *text, size_t length)
{
    if (text[0] == '{') {
        CHECK(text[length - 1] == '}');
        if (node->parameter == NULL)
            node->parameter = node_create(NULL, 0);
        return node->parameter;
    }
    struct router_node *child = node_literal(node, text, length);
    if (child == NULL) {
        child = node_create(text, length);
        child->sibling = node->literals;
        node->literals = child;
    }
    return child;
}

struct router *router_create(const struct http_route *routes, size_t count)
{
    struct router *router = calloc(1, sizeof *router);
    CHECK(router != NULL);
    for (size_t i = 0; i < count; i++) {
        struct router_node *node = &router->root;
        const char *at = routes[i].path;
        CHECK(at[0] == '/');
        size_t depth = 0;
        for (at++; *at != '\0'; depth++) {
            size_t length = strcspn(at, "/");
            CHECK(length > 0);
            node = node_descend(node, at, length);
            at += length;
            if (*at == '/')
                at++;
        }
        CHECK(depth <= ROUTE_SEGMENT_COUNT_MAX);
        CHECK(node->routes[routes[i].method] == NULL);
        node->routes[routes[i].method] = &routes[i];
    }
    return router;
}

void router_destroy(struct router *router)
{
    if (router == NULL)
        return;
    node_deinit(&router->root);
    free(router);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool router_decode(char *text)
{
    char *out = strchr(text, '%');
    if (out == NULL)
        return true;
    for (const char *in = out; *in != '\0';) {
        if (*in != '%') {
            *out++ = *in++;
            continue;
        }
        int high = hex_value(in[1]);
        int low = high < 0 ? -1 : hex_value(in[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *out++ = (char)(high * 16 + low);
        in += 3;
    }
    *out = '\0';
    return true;
}

/* "http://host/path" is a valid way to ask for "/path". */
static const char *path_skip_authority(const char *path)
{
    const char *at = NULL;
    if (strncasecmp(path, "http://", 7) == 0)
        at = path + 7;
    else if (strncasecmp(path, "https://", 8) == 0)
        at = path + 8;
    if (at == NULL)
        return path;
    at += strcspn(at, "/");
    return *at == '/' ? at : "/";
}

static bool path_split(const char *path, struct arena *arena, struct router_path *out)
{
    out->count = 0;
    path = path_skip_authority(path);
    if (path[0] != '/')
        return false;
    if (path[1] == '\0')
        return true;
    char *at = arena_text(arena, path + 1);
    for (;;) {
        if (out->count == ROUTE_SEGMENT_COUNT_MAX)
            return false;
        size_t length = strcspn(at, "/");
        char end = at[length];
        at[length] = '\0';
        if (!router_decode(at) || at[0] == '\0' || strchr(at, '/') != NULL)
            return false;
        out->segments[out->count] = at;
        out->lengths[out->count++] = strlen(at);
        if (end == '\0')
            return true;
        at += length + 1;
    }
}

/* Depth is bounded by ROUTE_SEGMENT_COUNT_MAX, width by two. */
static const struct router_node *node_match(const struct router_node *node, const struct router_path *path,
                                            size_t index, unsigned *methods)
{
    if (index == path->count) {
        *methods = 0;
        for (int method = 0; method < HTTP_METHOD_COUNT; method++)
            if (node->routes[method] != NULL)
                *methods |= BIT(method);
        return *methods != 0 ? node : NULL;
    }
    const struct router_node *child = node_literal(node, path->segments[index], path->lengths[index]);
    const struct router_node *found = child == NULL ? NULL : node_match(child, path, index + 1, methods);
    if (found == NULL && node->parameter != NULL)
        found = node_match(node->parameter, path, index + 1, methods);
    return found;
}

static void match_fill_params(struct http_match *match, const struct router_path *path)
{
    const char *at = match->route->path + 1;
    for (size_t i = 0; *at != '\0'; i++) {
        size_t length = strcspn(at, "/");
        if (at[0] == '{') {
            CHECK(match->param_count < ROUTE_PARAM_COUNT_MAX);
            match->params[match->param_count].name = at + 1;
            match->params[match->param_count].name_length = length - 2;
            match->params[match->param_count].value = path->segments[i];
            match->param_count++;
        }
        at += length;
        if (*at == '/')
            at++;
    }
}

void router_match(const struct router *router, const char *method, const char *path, struct arena *arena,
                  struct http_match *out)
{
    struct router_path split;
    out->route = NULL;
    out->method = HTTP_GET;
    out->methods = 0;
    out->param_count = 0;
    if (!path_split(path, arena, &split))
        return;
    const struct router_node *node = node_match(&router->root, &split, 0, &out->methods);
    if (node == NULL)
        return;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
        if (node->routes[i] == NULL || strcmp(method, method_names[i]) != 0)
            continue;
        out->method = (enum http_method)i;
        out->route = node->routes[i];
        match_fill_params(out, &split);
        return;
    }
}

void router_write_allow(unsigned methods, char out[ALLOW_TEXT_SIZE])
{
    static const struct {
        enum http_method method;
        const char *text;
    } sorted[] = {
        {HTTP_DELETE, "DELETE"}, {HTTP_GET, "GET, HEAD"}, {HTTP_PATCH, "PATCH"},
        {HTTP_POST, "POST"},     {HTTP_PUT, "PUT"},
    };
    char *at = out;
    *at = '\0';
    for (size_t i = 0; i < COUNT_OF(sorted); i++) {
        if (!(methods & BIT(sorted[i].method)))
            continue;
        if (at != out)
            at = stpcpy(at, ", ");
        at = stpcpy(at, sorted[i].text);
    }
}
