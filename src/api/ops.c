/* SPDX-License-Identifier: Apache-2.0
 * For those who run it: health, readiness, metrics, the API's description, and
 * the demo's guest tokens.
 *
 * Invariants: (1) /healthz touches nothing that may be slow or down. (2) Without
 * the demo its path is neither routed nor described.
 *
 * Loops' threads. */
#include "api/api_int.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/embed.h"
#include "base/metrics.h"

extern const struct embed api_files[];

#define DEMO_PATH "/api/demo/token"

/* ---- Health ---- */

void api_healthz(struct http_request *request)
{
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "status", "ok");
    jsonw_object_close(&json);
    api_reply(api_call(request), 200, &out, &json);
}

void api_readyz(struct http_request *request)
{
    struct api_call *call = api_call(request);
    bool has_broker = call->api->config.has_broker;
    bool broker_is_up = gauge_get(GAUGE_BROKER_UP) == 1;
    bool store_up = store_is_up(call->api->config.store);
    bool is_ready = store_up && (broker_is_up || !has_broker); /* without either no command is taken */
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "status", is_ready ? "ready" : "unavailable");
    jsonw_key(&json, "store");
    jsonw_object_open(&json);
    jsonw_key_bool(&json, "up", store_up);
    jsonw_object_close(&json);
    jsonw_key(&json, "order");
    jsonw_object_open(&json);
    jsonw_key_text(&json, "kind", has_broker ? "kafka" : "local");
    jsonw_key_bool(&json, "up", broker_is_up || !has_broker);
    jsonw_object_close(&json);
    jsonw_key(&json, "tiers");
    jsonw_object_open(&json);
    jsonw_key_text(&json, "hot", "up");
    jsonw_key_text(&json, "warm", api_warm_state(api_breaker_state()));
    jsonw_key_text(&json, "store", store_up ? "up" : "down");
    jsonw_object_close(&json);
    jsonw_key_text(&json, "breaker", api_breaker_state());
    jsonw_key_time(&json, "timestamp", clock_now_ms());
    jsonw_object_close(&json);
    api_reply(call, is_ready ? 200 : 503, &out, &json);
}

void api_metrics(struct http_request *request)
{
    struct buf out;
    buf_init(&out);
    metrics_render(&out);
    http_reply(request, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}

/* ---- The API's description ---- */

enum err openapi_make(bool demo, char **out, size_t *size)
{
    const struct embed *file = embed_find(api_files, "openapi.json");
    json_t *document = file != NULL ? json_loadb(file->data, file->size, 0, NULL) : NULL;
    if (document == NULL)
        return ERR_INTERNAL;
    json_object_set_new(json_object_get(document, "info"), "version", json_string(HOLDFAST_VERSION));
    if (!demo)
        json_object_del(json_object_get(document, "paths"), DEMO_PATH);
    *out = json_dumps(document, JSON_COMPACT);
    *size = *out != NULL ? strlen(*out) : 0;
    json_decref(document);
    return *out != NULL ? ERR_OK : ERR_INTERNAL;
}

void api_openapi(struct http_request *request)
{
    const struct api *api = api_call(request)->api;
    http_reply_header(request, "Cache-Control", "no-cache");
    http_reply_header(request, "Access-Control-Allow-Origin", "*"); /* public, and useful to other pages */
    http_reply_static(request, 200, "application/json", api->openapi, api->openapi_size);
}

/* ---- The demo ---- */

static void write_guest(struct jsonw *json, const char *key, const struct uuid *user_id, const char *token)
{
    jsonw_key(json, key);
    jsonw_object_open(json);
    jsonw_key_uuid(json, "user_id", user_id);
    jsonw_key_text(json, "token", token);
    jsonw_object_close(json);
}

void api_demo_token(struct http_request *request)
{
    struct api_call *call = api_call(request);
    const struct api_config *config = &call->api->config;
    struct api_demo *demo = ARENA_NEW(http_arena(request), struct api_demo);
    if (!config->mint_demo(config->demo_context, clock_now_ms(), demo)) {
        api_fail(call, ERR_INTERNAL);
        return;
    }
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "organization_id", &demo->org_id);
    jsonw_key_uuid(&json, "event_id", &demo->event_id);
    write_guest(&json, "buyer", &demo->buyer_id, demo->buyer_token);
    write_guest(&json, "admin", &demo->admin_id, demo->admin_token);
    jsonw_key_time(&json, "expires_at", demo->expires_ms);
    jsonw_object_close(&json);
    api_reply(call, 200, &out, &json);
}
