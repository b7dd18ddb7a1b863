/* SPDX-License-Identifier: Apache-2.0
 * Who asks: runs when a request's headers are in, before its body is read.
 *
 * Invariants: (1) the organization comes from the token alone; an operator's
 * comes from the event in the path where the route says so. (2) The order is
 * token, organization, user, role: a stranger learns nothing from a 403.
 * (3) The body's size and type are the edge's to judge, after this.
 *
 * Loops' threads. Registers a user the first time a valid token of theirs is
 * seen, in the background: a read is not made to wait for a write. It does not
 * look at ids in the request but for the operator's event. */
#include "api/api_int.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/limits.h"

/* ---- Registering users ---- */

struct user_seen { /* owns itself until the lane is done with it */
    struct command command;
    struct arena arena;
};

static void user_seen_on_done(struct command *command)
{
    struct user_seen *seen = command->owner;
    command_deinit(&seen->command);
    arena_deinit(&seen->arena);
    free(seen);
}

/* True once per user and moment: a burst of first requests makes one registration, not hundreds. */
static bool user_seen_first(struct api *api, const struct actor *actor, int64_t now_ms)
{
    uint64_t hash = uuid_hash(&actor->user_id) ^ (uuid_hash(&actor->org_id) * 0x9E3779B97F4A7C15ull);
    uint64_t mark = (hash ^ (uint64_t)(now_ms / API_SEEN_MS) << 8) | 1; /* never the empty slot */
    return atomic_exchange_explicit(&api->seen[hash % API_SEEN_COUNT], mark, memory_order_relaxed) != mark;
}

static void api_register_user(struct api_call *call, int64_t now_ms)
{
    if (!user_seen_first(call->api, &call->actor, now_ms))
        return;
    struct user_seen *seen = calloc(1, sizeof *seen);
    if (seen == NULL)
        return; /* the next request of theirs tries again */
    arena_init(&seen->arena);
    command_init(&seen->command, COMMAND_USER_SEEN, &seen->arena);
    seen->command.actor.org_id = call->actor.org_id;
    seen->command.actor.user_id = call->actor.user_id;
    seen->command.actor.for_user_id = call->actor.user_id;
    seen->command.actor.role = call->actor.role;
    seen->command.id = call->actor.user_id;
    seen->command.owner = seen;
    seen->command.on_done = user_seen_on_done;
    if (order_submit(call->api->config.order, &seen->command) != ERR_OK)
        user_seen_on_done(&seen->command);
}

/* ---- The token ---- */

static const char *bearer_token(const char *header, size_t *size)
{
    static const char scheme[] = "Bearer ";
    if (header == NULL || strncasecmp(header, scheme, sizeof scheme - 1) != 0)
        return NULL;
    const char *token = header + sizeof scheme - 1;
    token += strspn(token, " ");
    *size = strcspn(token, " ");
    return token[*size] == '\0' && *size > 0 && *size <= TOKEN_SIZE_MAX ? token : NULL;
}

static enum err api_identify(struct api_call *call)
{
    int64_t now_ms = clock_now_ms();
    size_t size;
    struct auth_claims claims;
    const char *token = bearer_token(http_header(call->http, "Authorization"), &size);
    if (token == NULL || auth_verify(call->api->config.auth, token, size, now_ms, &claims) != ERR_OK)
        return ERR_UNAUTHORIZED;
    call->actor.org_id = claims.org_id;
    call->actor.user_id = claims.user_id;
    call->actor.for_user_id = claims.user_id;
    call->actor.role = claims.role;
    call->token_org_id = claims.org_id;
    call->token_expires_ms = claims.expires_ms;
    if (uuid_is_nil(&claims.org_id))
        return claims.role == ROLE_OPERATOR ? ERR_OK : ERR_UNAUTHORIZED;
    call->org_is_unknown = !directory_has_org(call->api->config.directory, &claims.org_id);
    if (call->org_is_unknown)
        return ERR_UNAUTHORIZED;
    switch (directory_user(call->api->config.directory, &claims.org_id, &claims.user_id)) {
    case USER_DISABLED:
        return ERR_UNAUTHORIZED;
    case USER_UNKNOWN:
        api_register_user(call, now_ms);
        return ERR_OK;
    case USER_KNOWN:
        return ERR_OK;
    }
    return ERR_UNAUTHORIZED;
}

/* ---- The role, and where an operator acts ---- */

void api_adopt_event_org(struct api_call *call, const struct uuid *event_id)
{
    struct uuid org_id;
    if (call->actor.role == ROLE_OPERATOR &&
        directory_event_org(call->api->config.directory, event_id, &org_id))
        call->actor.org_id = org_id;
}

bool api_has_org(struct api_call *call)
{
    if (!uuid_is_nil(&call->actor.org_id))
        return true;
    call->message = "This token names no organization.";
    api_fail(call, ERR_FORBIDDEN);
    return false;
}

static enum err api_authorize(struct api_call *call, const struct api_access *access)
{
    if (call->actor.role < access->role)
        return ERR_FORBIDDEN;
    if (access->flags & API_OF_EVENT) {
        struct uuid event_id;
        const char *text = http_param(call->http, "event");
        if (text != NULL && uuid_parse(text, strlen(text), &event_id))
            api_adopt_event_org(call, &event_id);
        return ERR_OK; /* an event nobody has is the handler's 404 */
    }
    if (uuid_is_nil(&call->actor.org_id) && !(access->flags & API_ANY_ORG)) {
        call->message = "This token names no organization.";
        return ERR_FORBIDDEN;
    }
    return ERR_OK;
}

bool api_act_for(struct api_call *call, const struct uuid *user_id)
{
    if (uuid_is_nil(user_id) || uuid_equal(user_id, &call->actor.user_id))
        return true;
    if (call->actor.role < ROLE_AGENT) {
        call->message = "Only an agent or an admin may act for another user.";
    } else if (directory_user(call->api->config.directory, &call->actor.org_id, user_id) == USER_DISABLED) {
        call->message = "This user is disabled.";
    } else {
        call->actor.for_user_id = *user_id;
        return true;
    }
    call->field = "user_id";
    api_fail(call, ERR_FORBIDDEN);
    return false;
}

/* ---- The headers ---- */

/* For the audit: bounded, and safe as text whatever the client sent. */
static const char *clean_user_agent(struct api_call *call)
{
    const char *header = http_header(call->http, "User-Agent");
    if (header == NULL)
        return NULL;
    char *text = arena_text_n(http_arena(call->http), header, strnlen(header, TEXT_SIZE_MAX));
    for (char *c = text; *c != '\0'; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    return text;
}

static bool api_needs_token(struct http_request *request, const struct api_access *access)
{
    if (access->flags & API_METRICS)
        return !http_is_loopback(request);
    return !(access->flags & API_OPEN);
}

static enum err api_admit(struct api_call *call, const struct api_access *access)
{
    enum err err = api_identify(call);
    if (err == ERR_OK)
        err = api_authorize(call, access);
    if (err == ERR_OK)
        call->actor.user_agent = clean_user_agent(call);
    return err;
}

void api_on_headers(struct http_request *request)
{
    const struct api_access *access = http_route(request)->context;
    struct api_call *call = ARENA_NEW(http_arena(request), struct api_call);
    *http_user(request) = call;
    call->http = request;
    call->api = http_context(request);
    call->actor.ip = http_remote_ip(request);
    call->actor.request_id = http_request_id(request);
    if (!api_needs_token(request, access))
        return;
    enum err err = api_admit(call, access);
    /* The token is good; another node may have made its organization a moment ago. */
    if (err != ERR_OK && !(call->org_is_unknown && api_may_sync(call)))
        api_fail(call, err);
}

/* The body is in. */
void api_on_request(struct http_request *request)
{
    struct api_call *call = api_call(request);
    if (call->org_is_unknown)
        api_sync(call);
    else
        http_route(request)->handler(request);
}

/* ---- Bringing memory up to date, where other nodes write to the store too ---- */

bool api_may_sync(const struct api_call *call)
{
    return call->api->config.shared && !call->is_synced && !call->has_command;
}

static void api_on_synced(struct http_request *request)
{
    struct api_call *call = api_call(request);
    enum err err = call->command.result.err;
    command_deinit(&call->command);
    call->has_command = false;
    if (err == ERR_OK && api_needs_token(request, http_route(request)->context))
        err = api_admit(call, http_route(request)->context);
    if (err != ERR_OK)
        api_fail(call, err);
    else
        http_route(request)->handler(request);
}

void api_sync(struct api_call *call)
{
    call->is_synced = true;
    command_init(&call->command, COMMAND_SYNC, http_arena(call->http));
    api_defer_command(call, api_on_synced);
}
