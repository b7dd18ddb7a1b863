/* SPDX-License-Identifier: Apache-2.0
 * Objects of one size, taken from slabs and given back to a free list. Slabs
 * are kept until the pool ends. One thread. */
#ifndef HOLDFAST_BASE_POOL_H
#define HOLDFAST_BASE_POOL_H

#include <stddef.h>

struct pool_slab;

struct pool {
    size_t object_size;
    size_t used_count;
    struct pool_slab *slabs;
    void *free;
};

void pool_init(struct pool *pool, size_t object_size);
void pool_deinit(struct pool *pool);   /* all objects are gone */
void *pool_acquire(struct pool *pool); /* zeroed; aborts when memory ends */
void pool_release(struct pool *pool, void *object);

#endif
