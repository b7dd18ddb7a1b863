/* SPDX-License-Identifier: Apache-2.0
 * Asking the store for one thing that is not in memory: an Idempotency-Key, a
 * hold or checkout that has ended. The command comes back to be decided when
 * the answer is there; a finished lookup stays with its command. */
#include <string.h>

#include "lane/lane_int.h"

struct command_lookup {
    struct store_lookup lookup;
    struct command_lookup *next;
    struct lane *lane;
    struct command *command;
    int64_t settled_count; /* of the lane, when the store was asked */
    bool done;
};

static void lookup_done(struct store_lookup *lookup)
{
    struct command_lookup *own = lookup->context;
    own->done = true;
    own->lane->lookup_count--;
    lane_make_ready(own->lane, own->command);
}

struct store_lookup *lane_lookup(struct lane *lane, struct command *command, enum lookup_kind kind,
                                 const struct uuid *id)
{
    struct command_lookup *own = command->lane_state;
    for (; own != NULL; own = own->next) {
        if (own->lookup.kind == kind && (kind == LOOKUP_KEY || uuid_equal(&own->lookup.id, id))) {
            CHECK(own->done);
            return &own->lookup;
        }
    }
    own = ARENA_NEW(command->arena, struct command_lookup);
    own->lane = lane;
    own->command = command;
    own->settled_count = lane->settled_count;
    own->next = command->lane_state;
    command->lane_state = own;
    own->lookup.kind = kind;
    own->lookup.org_id = command->actor.org_id;
    if (id != NULL)
        own->lookup.id = *id;
    memcpy(own->lookup.key, command->key, sizeof(own->lookup.key));
    own->lookup.now_ms = lane->now_ms;
    own->lookup.arena = command->arena;
    own->lookup.on_done = lookup_done;
    own->lookup.context = own;
    list_init(&own->lookup.node);
    enum err err = store_lookup(lane->config.store, &own->lookup);
    if (err == ERR_OK) {
        lane->lookup_count++;
        return NULL;
    }
    own->done = true;
    own->lookup.err = err;
    return &own->lookup;
}

bool lane_lookup_is_stale(const struct lane *lane, const struct store_lookup *lookup)
{
    return CONTAINER_OF(lookup, const struct command_lookup, lookup)->settled_count != lane->settled_count;
}

void lane_lookups_forget(struct command *command)
{
    command->lane_state = NULL;
}
