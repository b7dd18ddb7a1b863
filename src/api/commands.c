/* SPDX-License-Identifier: Apache-2.0
 * Commands that another node decides: 202 and where to ask when its answer takes
 * too long, and the answer itself when it is asked for.
 *
 * Invariants: (1) what is told here is what the call itself would have been
 * told: the same status, the same body, the same error. (2) Who may see it is
 * the lane's to say: to everybody else there is no such command. (3) Where no
 * broker is, the path exists all the same: a key's answer is in the store.
 *
 * Loops' threads. */
#include "api/api_int.h"

#include <stdio.h>

void api_reply_pending(struct api_call *call)
{
    const struct command *command = &call->command;
    enum { LOCATION_SIZE = sizeof COMMAND_LOCATION + COMMAND_HANDLE_SIZE };
    char *location = arena_alloc(http_arena(call->http), LOCATION_SIZE), handle[COMMAND_HANDLE_SIZE];
    struct buf out;
    struct jsonw json;
    command_format_handle(command, handle);
    snprintf(location, LOCATION_SIZE, "%s%s", COMMAND_LOCATION, handle);
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "command_id", &command->sent.id);
    jsonw_key_text(&json, "status", "pending");
    jsonw_key_text(&json, "location", location);
    jsonw_object_close(&json);
    http_reply_header(call->http, "Location", location);
    api_reply(call, 202, &out, &json);
}

/* ---- GET /api/commands/{command} ---- */

static void reply_answer(struct api_call *call)
{
    const struct result *result = &call->command.result;
    switch (result->kind) {
    case COMMAND_HOLD_SEATS:
        if (result->several)
            api_reply_holds(call);
        else
            api_reply_hold(call);
        break;
    case COMMAND_HOLD_BEST:
        api_reply_holds(call);
        break;
    case COMMAND_HOLD_EXTEND:
    case COMMAND_HOLD_RELEASE:
        api_reply_hold(call);
        break;
    case COMMAND_CHECKOUT_START:
    case COMMAND_CHECKOUT_COMPLETE:
        api_reply_checkout(call);
        break;
    case COMMAND_CHECKOUT_CANCEL:
        api_reply_cancelled(call);
        break;
    default: /* of a kind that is never sent: its answer was given when it was asked for */
        api_fail(call, ERR_COMMAND_NOT_FOUND);
        break;
    }
}

void api_command_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    command_init(&call->command, COMMAND_ANSWER_GET, http_arena(request));
    if (!command_parse_handle(http_param(request, "command"), &call->command)) {
        api_refuse(call, "command", "The command in the path must be one that a Location named.");
        return;
    }
    api_submit(call, reply_answer);
}
