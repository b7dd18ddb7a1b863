/* SPDX-License-Identifier: Apache-2.0
 * The HTTP API: requests become commands, results become JSON. It stands
 * between http/ and order/ and decides nothing about seats.
 *
 * How to wire it, once everything below it exists:
 *
 *     struct api_config config = {.order = …, .store = …, .directory = …, .feed = …, .auth = …};
 *     api_create(&config, &api);
 *     struct http_config http = {.address = …, .port = …, .loop_count = …};
 *     api_fill_http(api, &http);      (routes, context, on_headers, write_error)
 *     http_server_start(&http, &server, why, sizeof why);
 *
 * and for --metrics-listen a second server with api_fill_metrics_http(). Stop
 * the servers first, then the lane and the store, then api_destroy(): commands
 * and queries that are under way point into it. */
#ifndef HOLDFAST_API_API_H
#define HOLDFAST_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/auth.h"
#include "base/err.h"
#include "base/model.h"
#include "hot/directory.h"
#include "http/http.h"
#include "order/order.h"
#include "publish/feed.h"
#include "store/store.h"

struct api; /* opaque: see api_int.h */

enum { API_TOKEN_SIZE_MAX = 1024 };

/* What a guest of the demo is given. */
struct api_demo {
    struct uuid org_id;
    struct uuid event_id;
    struct uuid buyer_id;
    struct uuid admin_id;
    int64_t expires_ms;
    char buyer_token[API_TOKEN_SIZE_MAX];
    char admin_token[API_TOKEN_SIZE_MAX];
};

struct api_config { /* borrows everything */
    struct order *order;
    struct store *store;
    bool shared;     /* other nodes write to the store too */
    bool has_broker; /* commands go through one */
    struct directory *directory;
    struct feed *feed;
    struct auth *auth;
    /* The demo's guest tokens, made anew for each call; any loop's thread. NULL: there is no
     * POST /api/demo/token, as if the path did not exist. */
    bool (*mint_demo)(void *context, int64_t now_ms, struct api_demo *out);
    void *demo_context;
};

enum err api_create(const struct api_config *config, struct api **out) MUST_CHECK;
void api_destroy(struct api *api); /* NULL is fine */

/* Sets routes, route_count, context, on_headers and write_error; leaves the rest alone. */
void api_fill_http(struct api *api, struct http_config *config);
/* The same for a server of metrics and health alone, open to whoever reaches it. */
void api_fill_metrics_http(struct api *api, struct http_config *config);

/* What an endpoint asks of its caller; http_route.context of every route points to one. */
enum {
    API_OPEN = 1 << 0,     /* no token */
    API_METRICS = 1 << 1,  /* no token from loopback, an operator's otherwise */
    API_ANY_ORG = 1 << 2,  /* an operator whose token names no organization may call it */
    API_OF_EVENT = 1 << 3, /* an operator acts in the organization of the event in the path */
};
struct api_access {
    enum role role; /* the least that may call it; not with API_OPEN */
    uint32_t flags;
};

/* The one table of endpoints. The last one is the demo's, counted only if `demo`. */
const struct http_route *api_routes(bool demo, size_t *count);

#endif
