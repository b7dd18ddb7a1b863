/* SPDX-License-Identifier: Apache-2.0
 * Hash map from UUID to pointer, for the hot tier: open addressing, linear
 * probing.
 *
 * Invariants:
 *   1. Every key is reachable from its home slot over full slots only.
 *      Removal keeps this by shifting later keys back, so there are no
 *      tombstones and lookups stay short for ever.
 *   2. At most three quarters of the slots are full.
 *
 * One thread. It does not own the values, and it does not shrink: events that
 * filled it once fill it again. */
#include "base/map.h"

#include <stdlib.h>

#include "base/check.h"

enum { CAPACITY_MIN = 16 };

void map_init(struct map *map)
{
    *map = (struct map){0};
}

void map_deinit(struct map *map)
{
    free(map->slots);
    map_init(map);
}

/* The slot that has the key, or the empty one where it would go. */
static size_t slot_find(const struct map *map, const struct uuid *key)
{
    size_t mask = map->capacity - 1;
    size_t at = uuid_hash(key) & mask;
    while (map->slots[at].value != NULL && !uuid_equal(&map->slots[at].key, key))
        at = (at + 1) & mask;
    return at;
}

static void map_grow(struct map *map)
{
    struct map old = *map;
    map->capacity = old.capacity == 0 ? CAPACITY_MIN : old.capacity * 2;
    map->slots = calloc(map->capacity, sizeof(*map->slots));
    CHECK(map->slots != NULL);
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i].value != NULL)
            map->slots[slot_find(map, &old.slots[i].key)] = old.slots[i];
    }
    free(old.slots);
}

void *map_get(const struct map *map, const struct uuid *key)
{
    return map->count == 0 ? NULL : map->slots[slot_find(map, key)].value;
}

void map_put(struct map *map, const struct uuid *key, void *value)
{
    CHECK(value != NULL);
    if ((map->count + 1) * 4 > map->capacity * 3)
        map_grow(map);
    struct map_slot *slot = &map->slots[slot_find(map, key)];
    map->count += slot->value == NULL;
    slot->key = *key;
    slot->value = value;
}

void *map_remove(struct map *map, const struct uuid *key)
{
    if (map->count == 0)
        return NULL;
    size_t mask = map->capacity - 1;
    size_t hole = slot_find(map, key);
    void *value = map->slots[hole].value;
    if (value == NULL)
        return NULL;
    for (size_t at = (hole + 1) & mask; map->slots[at].value != NULL; at = (at + 1) & mask) {
        size_t home = uuid_hash(&map->slots[at].key) & mask;
        /* It may fill the hole unless its home lies after the hole: it would no longer be found. */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].value = NULL;
    map->count--;
    return value;
}

void *map_next(const struct map *map, size_t *position)
{
    while (*position < map->capacity) {
        void *value = map->slots[(*position)++].value;
        if (value != NULL)
            return value;
    }
    return NULL;
}
