/* SPDX-License-Identifier: Apache-2.0
 * Hash map from UUID to pointer: open addressing, linear probing, deletion by
 * shifting back. Grows by itself; aborts when memory ends. One thread. */
#ifndef HOLDFAST_BASE_MAP_H
#define HOLDFAST_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/uuid.h"

struct map_slot {
    struct uuid key;
    void *value; /* NULL: empty */
};

struct map {
    struct map_slot *slots;
    size_t count;
    size_t capacity; /* zero or a power of two */
};

void map_init(struct map *map);
void map_deinit(struct map *map);
void *map_get(const struct map *map, const struct uuid *key);
void map_put(struct map *map, const struct uuid *key, void *value); /* replaces; value is not NULL */
void *map_remove(struct map *map, const struct uuid *key);          /* what was there, or NULL */

/* Iterate: `for (size_t i = 0; (v = map_next(map, &i)) != NULL;)`. No changes meanwhile. */
void *map_next(const struct map *map, size_t *position);

#endif
