/* SPDX-License-Identifier: Apache-2.0
 * Memory that is freed all at once: one arena per request, one per batch.
 * Running out of memory aborts: everything that goes in here is bounded. */
#ifndef HOLDFAST_BASE_ARENA_H
#define HOLDFAST_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t used; /* of the first chunk */
};

void arena_init(struct arena *arena);
void arena_deinit(struct arena *arena);
void arena_reset(struct arena *arena);               /* keeps one chunk for reuse */
void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned to 16 */
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_text(struct arena *arena, const char *text); /* NULL stays NULL */
char *arena_text_n(struct arena *arena, const char *text, size_t length);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif
