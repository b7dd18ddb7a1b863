/* SPDX-License-Identifier: Apache-2.0
 * Checkouts: start, look, pay, cancel.
 *
 * Invariants: (1) the holds of a checkout are named by id, by cart, or not at
 * all, never by two of them. (2) Prices are never taken from the request.
 * (3) 202 says that the outcome of the payment is not known yet; the client
 * asks again, here or by its stream.
 *
 * Loops' threads: the lane decides, the gateway is asked outside of it. */
#include "api/api_int.h"
#include "api/body.h"
#include "api/render.h"
#include "base/limits.h"

void api_reply_checkout(struct api_call *call)
{
    const struct result *result = &call->command.result;
    struct event_view event = {0};
    struct buf out;
    struct jsonw json;
    /* Its name is for the ticket, its map for the seats' places; both outlive the sale. */
    if (!directory_event(call->api->config.directory, &call->actor.org_id, &result->checkout.event_id,
                         http_arena(call->http), &event))
        event = (struct event_view){0};
    api_json_open(&out, &json);
    render_checkout(result, &event, call->actor.role >= ROLE_AGENT, &json);
    seatmap_release(event.map);
    api_reply(call, result->status, &out, &json);
}

void api_checkout_start(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct command *command = &call->command;
    struct uuid user_id = {0};
    struct body body;
    command_init(command, COMMAND_CHECKOUT_START, http_arena(request));
    api_body_open(call, &body);
    body_require(&body, "event_id");
    body_uuid(&body, "event_id", &command->checkout_start.event_id);
    body_uuids(&body, "hold_ids", 1, ADMIN_ID_COUNT_MAX, &command->checkout_start.hold_ids,
               &command->checkout_start.hold_count);
    if (body_text(&body, "cart_token", TEXT_SIZE_MAX, &command->checkout_start.cart_token) &&
        body_has(&body, "hold_ids"))
        body_wrong(&body, "cart_token", "cannot stand beside hold_ids.");
    body_uuid(&body, "user_id", &user_id);
    if (!api_body_close(call, &body) || !api_act_for(call, &user_id))
        return;
    api_submit(call, api_reply_checkout);
}

void api_checkout_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid checkout_id;
    if (!api_path_uuid(call, "checkout", &checkout_id))
        return;
    command_init(&call->command, COMMAND_CHECKOUT_GET, http_arena(request));
    call->command.id = checkout_id;
    api_submit(call, api_reply_checkout);
}

void api_checkout_complete(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct uuid checkout_id;
    struct body body;
    if (!api_path_uuid(call, "checkout", &checkout_id))
        return;
    command_init(&call->command, COMMAND_CHECKOUT_COMPLETE, http_arena(request));
    call->command.id = checkout_id;
    api_body_open(call, &body);
    body_require(&body, "payment_token");
    body_text(&body, "payment_token", TEXT_SIZE_MAX, &call->command.checkout.payment_token);
    if (!api_body_close(call, &body))
        return;
    api_submit(call, api_reply_checkout);
}

void api_reply_cancelled(struct api_call *call)
{
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    render_cancelled(&call->command.result, &json);
    api_reply(call, 200, &out, &json);
}

void api_checkout_cancel(struct http_request *request)
{
    struct api_call *call = api_call(request);
    const char *reason = NULL, *notes = NULL;
    struct uuid checkout_id;
    struct body body;
    if (!api_path_uuid(call, "checkout", &checkout_id))
        return;
    api_body_open(call, &body);
    body_text(&body, "reason", TEXT_SIZE_MAX, &reason);
    body_text(&body, "notes", NOTES_SIZE_MAX, &notes);
    if (!api_body_close(call, &body))
        return;
    command_init(&call->command, COMMAND_CHECKOUT_CANCEL, http_arena(request));
    call->command.id = checkout_id;
    /* Why the hold ended is ours to say; the client's own words are kept beside it. */
    call->command.checkout.notes = notes != NULL ? notes : reason;
    api_submit(call, api_reply_cancelled);
}
