/* SPDX-License-Identifier: Apache-2.0
 * Answers that came when their callers had been told 202: their users' streams
 * are told, and they are kept for a while for those who ask (route.c). Those that
 * were kept with a key are in the store too, for every node and for a day; these
 * here are the others as well, like a 503. */
#include <stdlib.h>
#include <string.h>

#include "order/shared_int.h"

struct late {
    struct list node;
    struct uuid id;
    struct uuid org_id; /* nobody else is told */
    int64_t until_ms;
    size_t size;
    char answer[];
};

static void late_forget(struct shared *shared, struct late *late)
{
    map_remove(&shared->edge.late_by_id, &late->id);
    list_remove(&late->node);
    shared->edge.late_count--;
    free(late);
}

static struct late *oldest(struct shared *shared)
{
    return CONTAINER_OF(shared->edge.late.next, struct late, node);
}

/* ---- Telling ---- */

struct telling { /* goes through the lane, which alone can read an answer */
    struct command command;
    struct arena arena;
    struct shared *shared;
};

static void told(struct command *command)
{
    struct telling *telling = CONTAINER_OF(command, struct telling, command);
    struct shared *shared = telling->shared;
    if (!shared->is_stopped)
        lane_tell_settled(shared->config.lane, command);
    shared->edge.telling_count--;
    command_deinit(command);
    arena_deinit(&telling->arena);
    free(telling);
}

static void tell(struct shared *shared, const struct pending *pending, const void *answer, size_t size)
{
    struct telling *telling = calloc(1, sizeof(*telling));
    CHECK(telling != NULL);
    telling->shared = shared;
    arena_init(&telling->arena);
    struct command *command = &telling->command;
    command_init(command, COMMAND_ANSWER_GET, &telling->arena);
    command_arrives(command);
    command->actor = pending->actor;
    command->sent.id = pending->id;
    command->sent.is_key_made = !pending->has_given_key;
    memcpy(command->key, pending->key, sizeof(command->key));
    command->on_done = told;
    shared->edge.telling_count++;
    lane_settle(shared->config.lane, command, answer, size);
}

/* ---- Keeping ---- */

void late_put(struct shared *shared, const struct pending *pending, const void *answer, size_t size)
{
    struct edge *edge = &shared->edge;
    tell(shared, pending, answer, size);
    if (edge->late_count >= ORDER_LATE_COUNT_MAX)
        late_forget(shared, oldest(shared));
    struct late *late = malloc(sizeof(*late) + size);
    CHECK(late != NULL);
    late->id = pending->id;
    late->org_id = pending->actor.org_id;
    late->until_ms = shared->now_ms + ORDER_LATE_MS;
    late->size = size;
    memcpy(late->answer, answer, size);
    list_append(&edge->late, &late->node);
    map_put(&edge->late_by_id, &late->id, late);
    edge->late_count++;
}

void late_put_result(struct shared *shared, const struct pending *pending, const struct result *result)
{
    struct arena arena;
    struct command command;
    size_t size;
    arena_init(&arena);
    command_init(&command, COMMAND_HOLD_SEATS, &arena);
    command.actor = pending->actor;
    command.result = *result;
    command.result.now_ms = shared->now_ms;
    const void *answer = lane_pack_answer(&command, &size);
    late_put(shared, pending, answer, size);
    arena_deinit(&arena);
}

bool late_find(struct shared *shared, const struct uuid *org_id, const struct uuid *id, const void **answer,
               size_t *size)
{
    const struct late *late = map_get(&shared->edge.late_by_id, id);
    if (late == NULL || !uuid_equal(&late->org_id, org_id))
        return false;
    *answer = late->answer;
    *size = late->size;
    return true;
}

void late_turn(struct shared *shared)
{
    while (!list_empty(&shared->edge.late) && oldest(shared)->until_ms <= shared->now_ms)
        late_forget(shared, oldest(shared));
}

void late_stop(struct shared *shared)
{
    while (!list_empty(&shared->edge.late))
        late_forget(shared, oldest(shared));
    map_deinit(&shared->edge.late_by_id);
}
