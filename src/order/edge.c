/* SPDX-License-Identifier: Apache-2.0
 * The side that asks: commands that this node was asked for go to the broker,
 * and wait here for the answer of the node that decides them.
 *
 *   sent ─┬─ answered in time ──────────▶ its answer (201, 409, …)
 *         ├─ the broker did not take it ▶ 503: nothing was done
 *         └─ reply_ms passed ─────▶ 202; the answer is kept when it comes (late.c)
 *
 * Invariant: a command is given back exactly once; its `pending` lives until the
 * broker has said what became of the message, and the answer came or is given up. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "order/place.h"
#include "order/shared_int.h"
#include "order/wire.h"

/* An answer that nobody waits for is waited for so long, and so many of them. */
enum { TOLD_MS = 60000, TOLD_COUNT_MAX = 2 * ORDER_PENDING_COUNT_MAX };

void edge_init(struct shared *shared)
{
    struct edge *edge = &shared->edge;
    list_init(&edge->waiting);
    list_init(&edge->told);
    map_init(&edge->by_id);
    list_init(&edge->late);
    map_init(&edge->late_by_id);
    map_init(&edge->topics);
}

/* ---- Out of the table ---- */

/* Its command, which is not its any more; NULL: its caller was told 202. */
static struct command *release_command(struct shared *shared, struct pending *pending)
{
    struct edge *edge = &shared->edge;
    struct command *command = pending->command;
    pending->command = NULL;
    if (command != NULL)
        edge->waiting_count--;
    else
        edge->told_count--;
    list_remove(&pending->node);
    gauge_set(GAUGE_ORDER_PENDING, edge->waiting_count);
    return command;
}

/* Nothing is waited for any more. */
static void forget(struct shared *shared, struct pending *pending)
{
    map_remove(&shared->edge.by_id, &pending->id);
    list_remove(&pending->node);
    if (pending->is_reported)
        free(pending);
}

static void give_back(struct shared *shared, struct command *command, const struct result *result)
{
    command->result = *result;
    lane_return(shared->config.lane, command);
}

/* Its caller is told 202; the answer may still come. */
static void tell_pending(struct shared *shared, struct pending *pending)
{
    struct command *command = release_command(shared, pending);
    list_append(&shared->edge.told, &pending->node);
    shared->edge.told_count++;
    pending->until_ms = shared->now_ms + TOLD_MS;
    counter_add(COUNTER_ORDER_PENDING_ANSWERS, 1);
    give_back(shared, command, &(struct result){.status = 202, .is_pending = true});
}

static struct pending *first(struct list *list)
{
    return CONTAINER_OF(list->next, struct pending, node);
}

static void forget_told(struct shared *shared)
{
    struct pending *pending = first(&shared->edge.told);
    (void)release_command(shared, pending);
    forget(shared, pending);
}

void edge_stop(struct shared *shared)
{
    struct edge *edge = &shared->edge;
    while (!list_empty(&edge->waiting))
        tell_pending(shared, first(&edge->waiting));
    while (!list_empty(&edge->told)) {
        first(&edge->told)->is_reported = true; /* the broker is gone */
        forget_told(shared);
    }
    map_deinit(&edge->by_id);
    late_stop(shared);
    size_t position = 0;
    char *topic;
    while ((topic = map_next(&edge->topics, &position)) != NULL)
        free(topic);
    map_deinit(&edge->topics);
}

/* ---- To the broker ---- */

/* Giving something back is never too late. */
static bool has_deadline(enum command_kind kind)
{
    return kind != COMMAND_HOLD_RELEASE && kind != COMMAND_CHECKOUT_CANCEL;
}

static void name_command(struct shared *shared, struct command *command)
{
    command->sent = (struct sent){.id = uuid_make(&shared->rng, shared->now_ms)};
    if (has_deadline(command->kind))
        command->sent.deadline_ms = shared->now_ms + ORDER_DEADLINE_MS;
    if (command->has_key)
        return;
    command->has_key = true;
    command->sent.is_key_made = true;
    command_make_key(&command->sent.id, command->key);
}

static const char *topic_of(struct shared *shared, const struct uuid *event_id)
{
    if (!shared->config.topic_per_event)
        return shared->topic;
    edge_on_event(shared, event_id);
    return map_get(&shared->edge.topics, event_id);
}

void edge_on_event(void *context, const struct uuid *event_id)
{
    struct shared *shared = context;
    if (!shared->config.topic_per_event || map_get(&shared->edge.topics, event_id) != NULL)
        return;
    char *topic = malloc(ORDER_TOPIC_SIZE);
    CHECK(topic != NULL);
    place_topic_of_event(shared->prefix, event_id, topic);
    map_put(&shared->edge.topics, event_id, topic);
    broker_make_topic(shared->config.broker, topic);
}

static struct pending *make_pending(struct shared *shared, struct command *command)
{
    struct pending *pending = calloc(1, sizeof(*pending));
    CHECK(pending != NULL);
    pending->id = command->sent.id;
    pending->command = command;
    pending->actor = command->actor;
    pending->actor.ip = pending->actor.user_agent = pending->actor.request_id = NULL;
    pending->has_given_key = !command->sent.is_key_made;
    memcpy(pending->key, command->key, sizeof(pending->key));
    pending->until_ms = shared->now_ms + shared->config.reply_ms;
    pending->sent_us = clock_monotonic_us();
    return pending;
}

enum err edge_send(void *context, struct command *command, const struct lane_place *place)
{
    struct shared *shared = context;
    struct edge *edge = &shared->edge;
    if (edge->waiting_count >= ORDER_PENDING_COUNT_MAX || shared->is_stopped)
        return ERR_OVERLOADED;
    name_command(shared, command);
    bool is_shared_topic = !shared->config.topic_per_event;
    int32_t partition = place_partition(is_shared_topic ? &place->event_id : NULL, place->section,
                                        place->subsection, shared->config.partition_count);
    struct buf *out = &shared->out;
    buf_clear(out);
    wire_pack(command, shared->node_name, out);
    struct pending *pending = make_pending(shared, command);
    enum err err = buf_ok(out)
                       ? broker_send_command(shared->config.broker, topic_of(shared, &place->event_id),
                                             partition, &command->sent.id, out->data, out->size, pending)
                       : ERR_INTERNAL;
    if (err != ERR_OK) {
        free(pending);
        return err;
    }
    list_append(&edge->waiting, &pending->node);
    map_put(&edge->by_id, &pending->id, pending);
    edge->waiting_count++;
    return ERR_OK;
}

void edge_on_sent(void *context, void *owner, enum broker_outcome outcome)
{
    struct shared *shared = context;
    struct pending *pending = owner;
    pending->is_reported = true;
    if (list_empty(&pending->node)) { /* answered before the broker said that it has it */
        free(pending);
        return;
    }
    if (outcome == BROKER_UNKNOWN && pending->command != NULL)
        tell_pending(shared, pending);
    if (outcome != BROKER_NOT_STORED)
        return;
    static const struct result not_taken = {
        .err = ERR_STORE_UNAVAILABLE,
        .retry_after_seconds = 1,
        .message = "The broker did not take the command; nothing was done.",
    };
    struct command *command = release_command(shared, pending);
    if (command == NULL)
        late_put_result(shared, pending, &not_taken); /* its caller was told 202: this is the answer */
    forget(shared, pending);
    if (command != NULL)
        give_back(shared, command, &not_taken);
}

/* ---- And back ---- */

void edge_answer(struct shared *shared, const struct uuid *id, const void *answer, size_t size)
{
    struct pending *pending = map_get(&shared->edge.by_id, id);
    if (pending == NULL)
        return; /* from before a restart, or a second answer to a command that came twice */
    histogram_observe(HISTOGRAM_ORDER_ROUND_SECONDS, (double)(clock_monotonic_us() - pending->sent_us) / 1e6);
    struct command *command = release_command(shared, pending);
    if (command != NULL)
        lane_settle(shared->config.lane, command, answer, size);
    else
        late_put(shared, pending, answer, size);
    forget(shared, pending);
}

void edge_on_reply(void *context, const struct broker_message *message)
{
    struct uuid id;
    const void *answer;
    size_t size;
    if (wire_unpack_reply(message->value, message->size, &id, &answer, &size))
        edge_answer(context, &id, answer, size);
}

/* Each list is in the order of its ends. */
int64_t edge_turn(struct shared *shared)
{
    struct edge *edge = &shared->edge;
    while (!list_empty(&edge->waiting) && first(&edge->waiting)->until_ms <= shared->now_ms)
        tell_pending(shared, first(&edge->waiting));
    while (!list_empty(&edge->told) &&
           (first(&edge->told)->until_ms <= shared->now_ms || edge->told_count > TOLD_COUNT_MAX))
        forget_told(shared);
    late_turn(shared);
    return list_empty(&edge->waiting) ? INT64_MAX : first(&edge->waiting)->until_ms;
}
