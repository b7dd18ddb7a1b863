/* SPDX-License-Identifier: Apache-2.0
 * The one table of endpoints: method, path, who may call it, its handler. The
 * router is built from it, openapi.json is checked against it in both
 * directions, and tests that walk every endpoint walk this.
 *
 * Invariants: (1) every route under /api/ asks for a token, but for the demo's.
 * (2) API_OF_EVENT stands only where the path has an {event}. (3) The demo's
 * route is the last, so that a server without it counts one less.
 *
 * Constant data; any thread. */
#include "api/api_int.h"

#define ACCESS(least, bits)                                                                                  \
    &(const struct api_access)                                                                               \
    {                                                                                                        \
        .role = ROLE_##least, .flags = (bits)                                                                \
    }
#define BUYER ACCESS(BUYER, 0)
#define ADMIN ACCESS(ADMIN, 0)
#define BUYER_EVENT ACCESS(BUYER, API_OF_EVENT)
#define ADMIN_EVENT ACCESS(ADMIN, API_OF_EVENT)
#define ADMIN_ANY ACCESS(ADMIN, API_ANY_ORG)
#define OPERATOR ACCESS(OPERATOR, API_ANY_ORG)
#define OPEN ACCESS(BUYER, API_OPEN)

/* clang-format off */
static const struct http_route routes[] = {
    {HTTP_GET,    "/api/events",                                api_events_list,       BUYER, 0},
    {HTTP_GET,    "/api/events/{event}",                        api_event_get,         BUYER_EVENT, 0},
    {HTTP_GET,    "/api/events/{event}/layout",                 api_layout_get,        BUYER_EVENT, 0},
    {HTTP_GET,    "/api/events/{event}/seats",                  api_seats_list,        BUYER_EVENT, 0},
    {HTTP_GET,    "/api/events/{event}/availability",           api_availability_get,  BUYER_EVENT, 0},
    {HTTP_GET,    "/api/events/{event}/occupancy",              api_occupancy_get,     BUYER_EVENT, 0},
    {HTTP_POST,   "/api/events/{event}/seats/{seat}/reserve",   api_seat_reserve,      BUYER_EVENT, 0},
    {HTTP_POST,   "/api/events/{event}/holds",                  api_holds_create,      BUYER_EVENT, 0},
    {HTTP_GET,    "/api/holds",                                 api_holds_list,        BUYER, 0},
    {HTTP_GET,    "/api/holds/{hold}",                          api_hold_get,          BUYER, 0},
    {HTTP_POST,   "/api/holds/{hold}/extend",                   api_hold_extend,       BUYER, 0},
    {HTTP_DELETE, "/api/holds/{hold}",                          api_hold_release,      BUYER, 0},
    {HTTP_GET,    "/api/checkouts",                             api_checkouts_list,    BUYER, 0},
    {HTTP_POST,   "/api/checkouts",                             api_checkout_start,    BUYER, 0},
    {HTTP_GET,    "/api/checkouts/{checkout}",                  api_checkout_get,      BUYER, 0},
    {HTTP_POST,   "/api/checkouts/{checkout}/complete",         api_checkout_complete, BUYER, 0},
    {HTTP_POST,   "/api/checkouts/{checkout}/cancel",           api_checkout_cancel,   BUYER, 0},
    {HTTP_GET,    "/api/commands/{command}",                    api_command_get,       BUYER, 0},
    {HTTP_GET,    "/api/events/{event}/stream",                 api_event_stream,      BUYER_EVENT, 0},
    {HTTP_GET,    "/api/stream",                                api_user_stream,       BUYER, 0},

    {HTTP_POST,   "/api/admin/organizations",                   api_admin_org_create,   OPERATOR, 0},
    {HTTP_PATCH,  "/api/admin/users/{user}",                    api_admin_user_patch,   ADMIN, 0},
    {HTTP_GET,    "/api/admin/events",                          api_admin_events_list,  ADMIN_ANY, 0},
    {HTTP_POST,   "/api/admin/events",                          api_admin_event_create, ADMIN, 0},
    {HTTP_PATCH,  "/api/admin/events/{event}",                  api_admin_event_patch,  ADMIN_EVENT, 0},
    {HTTP_PUT,    "/api/admin/events/{event}/layout",           api_admin_layout_put,   ADMIN_EVENT, LAYOUT_BODY_SIZE_MAX},
    {HTTP_PATCH,  "/api/admin/events/{event}/blocks/{block}",   api_admin_block_patch,  ADMIN_EVENT, 0},
    {HTTP_POST,   "/api/admin/events/{event}/seats/block",      api_admin_seats_block,  ADMIN_EVENT, 0},
    {HTTP_POST,   "/api/admin/events/{event}/seats/unblock",    api_admin_seats_unblock, ADMIN_EVENT, 0},
    {HTTP_GET,    "/api/admin/events/{event}/holds",            api_admin_holds_list,   ADMIN_EVENT, 0},
    {HTTP_GET,    "/api/admin/checkouts",                       api_admin_checkouts_list, ADMIN_ANY, 0},
    {HTTP_POST,   "/api/admin/seats/release",                   api_admin_release,      ADMIN_ANY, 0},
    {HTTP_GET,    "/api/admin/events/{event}/registry",         api_admin_registry_get, ADMIN_EVENT, 0},
    {HTTP_POST,   "/api/admin/events/{event}/registry/reconcile", api_admin_registry_reconcile, ADMIN_EVENT, 0},
    {HTTP_GET,    "/api/admin/events/{event}/occupancy/history", api_admin_history_list, ADMIN_EVENT, 0},
    {HTTP_GET,    "/api/admin/events/{event}/analytics",        api_admin_analytics_get, ADMIN_EVENT, 0},
    {HTTP_GET,    "/api/admin/audit",                           api_admin_audit_list,   ADMIN_ANY, 0},
    {HTTP_GET,    "/api/admin/dead-letters",                    api_admin_dead_letters_list, ADMIN_ANY, 0},
    {HTTP_GET,    "/api/admin/figures",                         api_admin_figures_get,  ADMIN_ANY, 0},

    {HTTP_GET,    "/healthz",                                   api_healthz,            OPEN, 0},
    {HTTP_GET,    "/readyz",                                    api_readyz,             OPEN, 0},
    {HTTP_GET,    "/metrics",                                   api_metrics,            ACCESS(OPERATOR, API_METRICS | API_ANY_ORG), 0},
    {HTTP_GET,    "/openapi.json",                              api_openapi,            OPEN, 0},
    {HTTP_GET,    "/",                                          api_page,               OPEN, 0},
    {HTTP_GET,    "/live.js",                                   api_page,               OPEN, 0},
    {HTTP_GET,    "/live.css",                                  api_page,               OPEN, 0},
    {HTTP_GET,    "/icon.svg",                                  api_page,               OPEN, 0},
    {HTTP_GET,    "/icon-192.png",                              api_page,               OPEN, 0},
    {HTTP_GET,    "/icon-512.png",                              api_page,               OPEN, 0},
    {HTTP_GET,    "/icon-maskable-512.png",                     api_page,               OPEN, 0},
    {HTTP_GET,    "/apple-touch-icon.png",                      api_page,               OPEN, 0},
    {HTTP_GET,    "/manifest.webmanifest",                      api_page,               OPEN, 0},
    {HTTP_GET,    "/sw.js",                                     api_page,               OPEN, 0},
    {HTTP_GET,    "/assets/{file}",                             api_asset,              OPEN, 0},

    {HTTP_POST,   "/api/demo/token",                            api_demo_token,         OPEN, 0},
};

static const struct http_route metrics_routes[] = {
    {HTTP_GET,    "/metrics",                                   api_metrics,            OPEN, 0},
    {HTTP_GET,    "/healthz",                                   api_healthz,            OPEN, 0},
    {HTTP_GET,    "/readyz",                                    api_readyz,             OPEN, 0},
};
/* clang-format on */

const struct http_route *api_routes(bool demo, size_t *count)
{
    *count = demo ? COUNT_OF(routes) : COUNT_OF(routes) - 1;
    return routes;
}

static void api_fill(struct api *api, struct http_config *config)
{
    config->context = api;
    config->on_headers = api_on_headers;
    config->on_request = api_on_request;
    config->write_error = api_write_error;
}

void api_fill_http(struct api *api, struct http_config *config)
{
    api_fill(api, config);
    config->routes = api_routes(api->config.mint_demo != NULL, &config->route_count);
}

void api_fill_metrics_http(struct api *api, struct http_config *config)
{
    api_fill(api, config);
    config->routes = metrics_routes;
    config->route_count = COUNT_OF(metrics_routes);
}
