/* SPDX-License-Identifier: Apache-2.0
 * What the demo sells: made through the lane like any admin's commands, one
 * after another, each waited for. Ids are fixed, so that a demo on a store that
 * had one before goes on with it, and links stay good.
 *
 * Holds are short here (a minute, two seconds of grace), so that whoever looks
 * sees them end. Any thread but the lane's. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/demo.h"
#include "order/order.h"

static const struct uuid demo_org_id = {{0xde, 0x30, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x01}};
static const struct uuid demo_operator_id = {{0xde, 0x30, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x02}};

static const struct {
    const char *name;
    void (*layout)(struct buf *out);
} demo_shows[DEMO_EVENT_COUNT] = {
    {"Night Harbour", demo_arena_layout},
    {"The Lighthouse Keeper", demo_theatre_layout},
    {"Three Chords, No Truth", demo_club_layout},
};

static struct uuid demo_event_id(int kind, int show)
{
    struct uuid id = demo_org_id;

    id.bytes[12] = (uint8_t)(0x10 + kind);
    id.bytes[14] = (uint8_t)(show >> 8);
    id.bytes[15] = (uint8_t)show;
    return id;
}

/* ---- Asking the lane and waiting ---- */

struct demo_call {
    struct command command;
    struct arena arena;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done;
};

/* The lane's thread. */
static void on_answer(struct command *command)
{
    struct demo_call *call = CONTAINER_OF(command, struct demo_call, command);

    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->answered);
    pthread_mutex_unlock(&call->lock);
}

static void call_init(struct demo_call *call, enum command_kind kind, const struct uuid *org_id)
{
    memset(call, 0, sizeof *call);
    arena_init(&call->arena);
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->answered, NULL);
    command_init(&call->command, kind, &call->arena);
    call->command.actor.org_id = *org_id;
    call->command.actor.user_id = demo_operator_id;
    call->command.actor.for_user_id = demo_operator_id;
    call->command.actor.role = ROLE_OPERATOR;
    call->command.on_done = on_answer;
}

static enum err call_run(struct demo_call *call, struct node *node)
{
    enum err err = order_submit(node_order(node), &call->command);

    if (err == ERR_OK) {
        pthread_mutex_lock(&call->lock);
        while (!call->done)
            pthread_cond_wait(&call->answered, &call->lock);
        pthread_mutex_unlock(&call->lock);
        err = call->command.result.err;
    }
    if (err != ERR_OK)
        log_write(LOG_ERROR, "the demo could not be set up", "\"command\":%d,\"code\":\"%s\"",
                  (int)call->command.kind, err_code(err));
    command_deinit(&call->command);
    pthread_cond_destroy(&call->answered);
    pthread_mutex_destroy(&call->lock);
    arena_deinit(&call->arena);
    return err;
}

/* ---- The catalogue ---- */

static enum err create_org(struct node *node)
{
    static const struct uuid nil;
    struct demo_call call;

    if (directory_has_org(node_directory(node), &demo_org_id))
        return ERR_OK;
    call_init(&call, COMMAND_ORG_CREATE, &nil);
    call.command.id = demo_org_id;
    call.command.admin.name = "Holdfast demo";
    return call_run(&call, node);
}

static struct policy demo_policy(void)
{
    struct policy policy = policy_default();

    policy.hold_ttl_seconds = 60;
    policy.checkout_extension_seconds = 60;
    policy.hold_max_seconds = 240;
    policy.release_grace_seconds = 2;
    policy.payment_max_seconds = 120;
    policy.rate_limit_holds = 60;
    policy.rate_limit_window_seconds = 60;
    return policy;
}

static enum err create_event(struct node *node, int kind, int show, const struct uuid *id)
{
    struct demo_call call;
    enum err err;

    call_init(&call, COMMAND_EVENT_CREATE, &demo_org_id);
    char name[128];
    if (show == 1)
        snprintf(name, sizeof name, "%s", demo_shows[kind].name);
    else
        snprintf(name, sizeof name, "%s, night %d", demo_shows[kind].name, show);
    call.command.event.fields = PATCH_NAME | PATCH_STATE | PATCH_SALE_START | PATCH_SALE_END | PATCH_CURRENCY;
    call.command.event.policy_fields = UINT32_MAX;
    call.command.event.row = (struct event_row){
        .org_id = demo_org_id,
        .id = *id,
        .name = arena_text(&call.arena, name),
        .state = EVENT_DRAFT,
        .sale_start_ms = TIME_NONE,
        .sale_end_ms = TIME_MAX,
        .currency = "EUR",
        .policy = demo_policy(),
    };
    err = call_run(&call, node);
    if (err != ERR_OK)
        return err;

    struct buf document;
    buf_init(&document);
    demo_shows[kind].layout(&document);
    call_init(&call, COMMAND_LAYOUT_PUT, &demo_org_id);
    call.command.id = *id;
    call.command.layout.document = arena_text(&call.arena, buf_text(&document));
    call.command.layout.size = document.size;
    buf_deinit(&document);
    err = call_run(&call, node);
    if (err != ERR_OK)
        return err;

    call_init(&call, COMMAND_EVENT_PATCH, &demo_org_id);
    call.command.id = *id;
    call.command.event.fields = PATCH_STATE;
    call.command.event.row.state = EVENT_PUBLISHED;
    return call_run(&call, node);
}

static bool event_exists(struct node *node, const struct uuid *id)
{
    struct uuid org_id;

    return directory_event_org(node_directory(node), id, &org_id);
}

enum err demo_events_create(struct demo_events *events, struct node *node)
{
    enum err err = create_org(node);

    *events =
        (struct demo_events){.node = node, .org_id = demo_org_id, .operator_id = demo_operator_id, .show = 1};
    for (int kind = 0; kind < DEMO_EVENT_COUNT && err == ERR_OK; kind++) {
        struct uuid id = demo_event_id(kind, 1);
        if (!event_exists(node, &id))
            err = create_event(node, kind, 1, &id);
        events->event_ids[kind] = id;
    }
    for (int show = 2; err == ERR_OK; show++) { /* of a demo before this one */
        struct uuid id = demo_event_id(0, show);
        if (!event_exists(node, &id))
            break;
        events->event_ids[0] = id;
        events->show = show;
    }
    return err;
}

enum err demo_events_next_show(const struct demo_events *events, int show, struct uuid *out)
{
    *out = demo_event_id(0, show);
    return create_event(events->node, 0, show, out);
}
