/* SPDX-License-Identifier: Apache-2.0
 * Memory that is freed all at once. A chain of chunks; the first is the one
 * that is being filled, and `used` counts in it.
 *
 * Invariants:
 *   1. What is handed out is zeroed, aligned to 16, and never moves.
 *   2. A request larger than the chunk being filled gets a chunk of its own
 *      behind it, so that the rest of the first is not lost.
 *   3. After a reset at most one chunk, of a bounded size, is kept.
 *
 * One arena belongs to one thread at a time. There is no freeing of parts. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum {
    ALIGNMENT = 16,
    CHUNK_SIZE_MIN = 4 * 1024,
    CHUNK_SIZE_MAX = 256 * 1024, /* of the chunks that are filled bit by bit */
    CHUNK_SIZE_KEPT = 64 * 1024,
};

struct arena_chunk {
    struct arena_chunk *next;
    size_t capacity;
    _Alignas(ALIGNMENT) unsigned char data[];
};

static struct arena_chunk *chunk_create(size_t capacity)
{
    struct arena_chunk *chunk = malloc(sizeof(*chunk) + capacity);
    CHECK(chunk != NULL);
    chunk->next = NULL;
    chunk->capacity = capacity;
    return chunk;
}

static void chunks_destroy(struct arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void arena_init(struct arena *arena)
{
    arena->chunks = NULL;
    arena->used = 0;
}

void arena_deinit(struct arena *arena)
{
    chunks_destroy(arena->chunks);
    arena_init(arena);
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *first = arena->chunks;
    arena->used = 0;
    if (first == NULL)
        return;
    chunks_destroy(first->next);
    first->next = NULL;
    if (first->capacity > CHUNK_SIZE_KEPT) {
        free(first);
        arena->chunks = NULL;
    }
}

/* Puts a chunk with room for `size` to the front and returns where to begin in it. */
static void *arena_grow(struct arena *arena, size_t size)
{
    struct arena_chunk *first = arena->chunks;
    if (first != NULL && size > CHUNK_SIZE_MIN && size > first->capacity / 2) {
        struct arena_chunk *own = chunk_create(size);
        own->next = first->next;
        first->next = own;
        return own->data;
    }
    size_t capacity = first == NULL ? CHUNK_SIZE_MIN : first->capacity * 2;
    if (capacity > CHUNK_SIZE_MAX)
        capacity = CHUNK_SIZE_MAX;
    if (capacity < size)
        capacity = size;
    struct arena_chunk *chunk = chunk_create(capacity);
    chunk->next = first;
    arena->chunks = chunk;
    arena->used = size;
    return chunk->data;
}

/* Not zeroed. Size zero gives a valid address that is nobody else's. */
static void *arena_take(struct arena *arena, size_t size)
{
    CHECK(size <= SIZE_MAX / 4);
    size = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena_chunk *first = arena->chunks;
    if (first == NULL || size > first->capacity - arena->used)
        return arena_grow(arena, size);
    void *memory = first->data + arena->used;
    arena->used += size;
    return memory;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return memset(arena_take(arena, size), 0, size);
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    void *memory = arena_take(arena, size);
    if (size > 0)
        memcpy(memory, data, size);
    return memory;
}

char *arena_text(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_copy(arena, text, strlen(text) + 1);
}

char *arena_text_n(struct arena *arena, const char *text, size_t length)
{
    char *memory = arena_take(arena, length + 1);
    if (length > 0)
        memcpy(memory, text, length);
    memory[length] = '\0';
    return memory;
}
