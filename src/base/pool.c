/* SPDX-License-Identifier: Apache-2.0
 * Objects of one size: what the hot tier makes and ends by the thousand.
 *
 * Invariants:
 *   1. A free object's first word links to the next free one.
 *   2. Slabs double up to SLAB_COUNT_MAX objects and are kept until the pool
 *      ends: the peak of one sale is the working size of the next.
 *
 * One thread. It does not shrink, and it does not find double releases. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { ALIGNMENT = 16, SLAB_COUNT_MIN = 32, SLAB_COUNT_MAX = 1024 };

struct pool_slab {
    struct pool_slab *next;
    size_t count;
    _Alignas(ALIGNMENT) unsigned char objects[];
};

struct free_object {
    struct free_object *next;
};

void pool_init(struct pool *pool, size_t object_size)
{
    if (object_size < sizeof(struct free_object))
        object_size = sizeof(struct free_object);
    *pool = (struct pool){.object_size = (object_size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT};
}

void pool_deinit(struct pool *pool)
{
    while (pool->slabs != NULL) {
        struct pool_slab *next = pool->slabs->next;
        free(pool->slabs);
        pool->slabs = next;
    }
    *pool = (struct pool){.object_size = pool->object_size};
}

static void pool_put_free(struct pool *pool, void *memory)
{
    struct free_object *object = memory;
    object->next = pool->free;
    pool->free = object;
}

static void pool_grow(struct pool *pool)
{
    size_t count = pool->slabs == NULL ? SLAB_COUNT_MIN : pool->slabs->count * 2;
    if (count > SLAB_COUNT_MAX)
        count = SLAB_COUNT_MAX;
    struct pool_slab *slab = malloc(sizeof(*slab) + count * pool->object_size);
    CHECK(slab != NULL);
    slab->next = pool->slabs;
    slab->count = count;
    pool->slabs = slab;
    for (size_t i = count; i > 0; i--) /* so that they are handed out in the order of their addresses */
        pool_put_free(pool, slab->objects + (i - 1) * pool->object_size);
}

void *pool_acquire(struct pool *pool)
{
    if (pool->free == NULL)
        pool_grow(pool);
    struct free_object *object = pool->free;
    pool->free = object->next;
    pool->used_count++;
    return memset(object, 0, pool->object_size);
}

void pool_release(struct pool *pool, void *object)
{
    CHECK(object != NULL);
    CHECK(pool->used_count > 0);
    pool->used_count--;
    pool_put_free(pool, object);
}
