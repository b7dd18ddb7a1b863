/* SPDX-License-Identifier: Apache-2.0
 * What the files of api/ share: one call from its headers to its answer.
 *
 * A call lives in its request's arena. Its way:
 *
 *   api_on_headers ─▶ handler ─┬─▶ reply
 *    (token, role)    (shape)  ├─▶ api_submit ─▶ lane  ─▶ on_success ─▶ reply
 *                              └─▶ api_query  ─▶ store ─▶ on_success ─▶ reply
 *
 * Invariants: (1) every path through a handler replies, or submits, exactly
 * once; functions that reply on failure say so by returning false. (2) Between
 * submit and on_success the call is not touched by the loop's thread. */
#ifndef HOLDFAST_API_API_INT_H
#define HOLDFAST_API_API_INT_H

#include <stdatomic.h>

#include "api/api.h"
#include "base/jsonw.h"
#include "lane/command.h"

struct body;
struct layout_cache;

enum {
    API_SEEN_COUNT = 4096,  /* users registered a moment ago */
    API_SEEN_MS = 5000,     /* how long such a moment is */
    API_RETRY_SECONDS = 1,  /* Retry-After when nobody knows better */
    API_ANSWER_SIZE = 1024, /* room made at once for an answer */
    API_REGISTRY_TRY_COUNT_MAX = 8,
};

struct api {
    struct api_config config;
    struct layout_cache *layouts;
    char *openapi; /* the document, without the demo's path unless this is the demo */
    size_t openapi_size;
    _Atomic uint64_t seen[API_SEEN_COUNT]; /* any loop; see admit.c */
};

struct api_call {
    struct http_request *http;
    struct api *api;
    struct actor actor;
    struct uuid token_org_id; /* an operator may act elsewhere */
    int64_t token_expires_ms;
    bool org_is_unknown; /* the token's organization, to this node */
    bool is_synced;      /* memory was brought up to date for this call */
    /* What is wrong with the request: details of a 400 */
    const char *field;
    const char *message;
    /* At most one of the two is under way */
    bool has_command;
    struct command command;
    struct store_query query;
    struct seatmap *map; /* released when the query is done; or NULL */
    void (*on_success)(struct api_call *call);
    void *state; /* the handler's own */
};

/* admit.c: the token and the role */
void api_on_headers(struct http_request *request);
void api_on_request(struct http_request *request);
/* Something is not known here that another node may have made a moment ago: memory is brought up to date and the route's
 * handler runs once more. Only if it may. */
bool api_may_sync(const struct api_call *call);
void api_sync(struct api_call *call);
/* An operator acts in the organization of the event; others and unknown events change nothing. */
void api_adopt_event_org(struct api_call *call, const struct uuid *event_id);
/* False, and a reply, if the caller acts in no organization. */
bool api_has_org(struct api_call *call);
/* An agent acts for `user_id`, unless nil; a buyer may name only themselves. False: replied. */
bool api_act_for(struct api_call *call, const struct uuid *user_id);

/* call.c: asking and answering */
struct api_call *api_call(struct http_request *request);
void api_submit(struct api_call *call, void (*on_success)(struct api_call *call));
/* The command as it is, with the caller's actor; `on_result` on the loop, when it is done. */
void api_defer_command(struct api_call *call, void (*on_result)(struct http_request *request));
void api_query(struct api_call *call, void (*on_success)(struct api_call *call));
void api_write_error(struct http_request *request, enum err err, struct buf *out);
void api_fail(struct api_call *call, enum err err);
/* 400 invalid_request that names the field. */
void api_refuse(struct api_call *call, const char *field, const char *format, ...) PRINTF_LIKE(3, 4);
/* Opens {"data": …; api_reply() closes it and replies. A status of 0, as of a result that set
 * none, is 200. */
void api_json_open(struct buf *out, struct jsonw *json);
void api_reply(struct api_call *call, int status, struct buf *out, struct jsonw *json);

/* query.c: what stands in the path and the query. All false after a reply. */
bool api_path_uuid(struct api_call *call, const char *name, struct uuid *out);
bool api_query_uuid(struct api_call *call, const char *name, struct uuid *out); /* nil if absent */
bool api_query_int(struct api_call *call, const char *name, int64_t least, int64_t most, int64_t *value);
bool api_query_time(struct api_call *call, const char *name, int64_t *time_ms);
bool api_query_limit(struct api_call *call, int32_t *limit);
/* `limit` and `after` into the call's query of the store. */
bool api_query_page(struct api_call *call);
bool api_query_checkout_status(struct api_call *call);
/* The event of the path, if the caller may see it: its map is the call's to release. */
bool api_path_event(struct api_call *call, struct event_view *out);
/* "A-1" or a block's id. False if it is neither, or there is no such block; no reply. */
bool api_block_find(const struct seatmap *map, const char *text, struct uuid *block_id);
/* "A-1" as section and subsection. No reply. */
bool api_block_parse(const char *text, char section[4], int32_t *subsection);
bool api_section_valid(const char *text);

/* The request's body, as body.c reads it; false after a reply that names the fault. */
void api_body_open(struct api_call *call, struct body *body);
bool api_body_close(struct api_call *call, struct body *body);

/* layout.c: the static map, written once for each layout and revision */
enum err layout_cache_create(struct layout_cache **out) MUST_CHECK;
void layout_cache_destroy(struct layout_cache *cache);
enum { LAYOUT_ETAG_SIZE = 80 };
/* What GET …/layout is tagged with at this moment. */
void layout_etag(const struct event_view *event, char out[LAYOUT_ETAG_SIZE]);

/* Handlers, by file */
void api_events_list(struct http_request *request);
void api_event_get(struct http_request *request);
void api_occupancy_get(struct http_request *request);

void api_layout_get(struct http_request *request);

void api_seats_list(struct http_request *request);
void api_availability_get(struct http_request *request);

void api_seat_reserve(struct http_request *request);
void api_holds_create(struct http_request *request);
void api_holds_list(struct http_request *request);
/* What a call was answered, by its own handler or to whoever asks for it later. */
void api_reply_hold(struct api_call *call);
void api_reply_holds(struct api_call *call); /* of several, or the best */
void api_reply_checkout(struct api_call *call);
void api_reply_cancelled(struct api_call *call);
void api_hold_get(struct http_request *request);
void api_hold_extend(struct http_request *request);
void api_hold_release(struct http_request *request);

void api_checkouts_list(struct http_request *request);

void api_checkout_start(struct http_request *request);
void api_checkout_get(struct http_request *request);
void api_checkout_complete(struct http_request *request);
void api_checkout_cancel(struct http_request *request);

void api_command_get(struct http_request *request);
/* 202: the node that decides it has not answered yet. */
void api_reply_pending(struct api_call *call);

void api_event_stream(struct http_request *request);
void api_user_stream(struct http_request *request);

void api_admin_org_create(struct http_request *request);
void api_admin_user_patch(struct http_request *request);
void api_admin_events_list(struct http_request *request);
void api_admin_event_create(struct http_request *request);
void api_admin_event_patch(struct http_request *request);
void api_admin_layout_put(struct http_request *request);
void api_admin_block_patch(struct http_request *request);

void api_admin_seats_block(struct http_request *request);
void api_admin_seats_unblock(struct http_request *request);
void api_admin_release(struct http_request *request);
void api_admin_registry_get(struct http_request *request);
void api_admin_registry_reconcile(struct http_request *request);

void api_admin_holds_list(struct http_request *request);
void api_admin_checkouts_list(struct http_request *request);
void api_admin_history_list(struct http_request *request);
void api_admin_analytics_get(struct http_request *request);
void api_admin_audit_list(struct http_request *request);
/* What a query of the store found, as it is, with the cursor of the next page. */
void api_reply_rows(struct api_call *call);

void api_admin_dead_letters_list(struct http_request *request);

void api_admin_figures_get(struct http_request *request);
const char *api_breaker_state(void);             /* closed, half_open, open or none */
const char *api_warm_state(const char *breaker); /* up, down or none */

void api_healthz(struct http_request *request);
void api_readyz(struct http_request *request);
void api_metrics(struct http_request *request);
void api_openapi(struct http_request *request);
void api_page(struct http_request *request);
void api_asset(struct http_request *request);
void api_demo_token(struct http_request *request);
enum err openapi_make(bool demo, char **out, size_t *size) MUST_CHECK;

#endif
