/* SPDX-License-Identifier: Apache-2.0
 * Tokens that were found good, by the SHA-256 of their whole text, so that the
 * same token costs one hash and one look instead of a signature check.
 *
 * Invariants:
 *  1. A hit compares all 32 bytes; a token that differs anywhere is not found.
 *  2. An entry is worth nothing from its `exp` on.
 *  3. At most TOKEN_CACHE_COUNT entries, allocated once: a full set gives up an
 *     expired entry, else one in turn.
 *
 * Any thread: each shard of sets has its own lock. Only good tokens come in,
 * so whoever has none can neither fill it nor learn from it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth_int.h"

enum {
    SHARD_COUNT = 64,
    WAY_COUNT = 4, /* entries in a set: where a hash may stand */
    SET_COUNT = TOKEN_CACHE_COUNT / WAY_COUNT,
};

_Static_assert((SET_COUNT & (SET_COUNT - 1)) == 0, "the set is chosen by bits of the hash");
_Static_assert(SET_COUNT % SHARD_COUNT == 0, "every shard has as many sets");

struct cache_entry {
    uint8_t hash[TOKEN_HASH_SIZE];
    struct auth_claims claims; /* expires_ms 0: empty */
};

struct cache_shard {
    pthread_mutex_t lock;
    uint32_t turn; /* which way gives up its entry next */
} __attribute__((aligned(64)));

struct token_cache {
    struct cache_shard shards[SHARD_COUNT];
    struct cache_entry *entries; /* owns; SET_COUNT × WAY_COUNT */
};

enum err token_cache_create(struct token_cache **out)
{
    struct token_cache *cache = aligned_alloc(64, sizeof *cache);
    if (cache == NULL)
        return ERR_INTERNAL;
    cache->entries = calloc((size_t)SET_COUNT * WAY_COUNT, sizeof *cache->entries);
    if (cache->entries == NULL) {
        free(cache);
        return ERR_INTERNAL;
    }
    for (int i = 0; i < SHARD_COUNT; i++) {
        pthread_mutex_init(&cache->shards[i].lock, NULL);
        cache->shards[i].turn = 0;
    }
    *out = cache;
    return ERR_OK;
}

void token_cache_destroy(struct token_cache *cache)
{
    if (cache == NULL)
        return;
    for (int i = 0; i < SHARD_COUNT; i++)
        pthread_mutex_destroy(&cache->shards[i].lock);
    free(cache->entries);
    free(cache);
}

static uint32_t set_of(const uint8_t hash[TOKEN_HASH_SIZE])
{
    uint32_t bits;
    memcpy(&bits, hash, sizeof bits);
    return bits & (SET_COUNT - 1);
}

bool token_cache_find(struct token_cache *cache, const uint8_t hash[TOKEN_HASH_SIZE], int64_t now_ms,
                      struct auth_claims *out)
{
    uint32_t set = set_of(hash);
    struct cache_shard *shard = &cache->shards[set % SHARD_COUNT];
    const struct cache_entry *entries = cache->entries + (size_t)set * WAY_COUNT;
    bool found = false;

    pthread_mutex_lock(&shard->lock);
    for (int way = 0; way < WAY_COUNT && !found; way++) {
        const struct cache_entry *entry = &entries[way];
        if (entry->claims.expires_ms > now_ms && memcmp(entry->hash, hash, TOKEN_HASH_SIZE) == 0) {
            *out = entry->claims;
            found = true;
        }
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

void token_cache_put(struct token_cache *cache, const uint8_t hash[TOKEN_HASH_SIZE], int64_t now_ms,
                     const struct auth_claims *claims)
{
    uint32_t set = set_of(hash);
    struct cache_shard *shard = &cache->shards[set % SHARD_COUNT];
    struct cache_entry *entries = cache->entries + (size_t)set * WAY_COUNT;
    struct cache_entry *place = NULL;

    pthread_mutex_lock(&shard->lock);
    for (int way = 0; way < WAY_COUNT; way++) {
        /* Two threads may have checked the same token at the same time: it is kept once. */
        if (memcmp(entries[way].hash, hash, TOKEN_HASH_SIZE) == 0) {
            place = &entries[way];
            break;
        }
        if (place == NULL && entries[way].claims.expires_ms <= now_ms)
            place = &entries[way];
    }
    if (place == NULL)
        place = &entries[shard->turn++ % WAY_COUNT];
    memcpy(place->hash, hash, TOKEN_HASH_SIZE);
    place->claims = *claims;
    pthread_mutex_unlock(&shard->lock);
}
