/* SPDX-License-Identifier: Apache-2.0
 * A thin layer over SQLite's own page cache, which does all the work.
 *
 * After each commit SQLite drops the pages behind the file's end. Its cache
 * passes over that when it has seen no such page. But a rebalanced tree whose
 * pages are put in order borrows a number far behind the end, for a moment,
 * to swap two of them: the cache then thinks that it may hold such pages and
 * looks at every page it has, at nearly every commit. In a cache of 60,000
 * pages that was a quarter of the writing thread's time.
 *
 * Here a borrowed number is told from a page that stays: it counts only while
 * it is borrowed.
 *
 * Invariant: no page in the cache has a number above highest, but for the one
 * that is at borrowed. */
#include "store/sqlite/page_cache.h"

#include <sqlite3.h>
#include <stdlib.h>

struct page_cache {
    sqlite3_pcache *pages;
    unsigned highest;
    unsigned borrowed; /* 0: none */
};

static sqlite3_pcache_methods2 own; /* SQLite's */

static struct page_cache *of(sqlite3_pcache *cache)
{
    return (struct page_cache *)cache;
}

static sqlite3_pcache *cache_create(int page_size, int extra_size, int is_purgeable)
{
    struct page_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL)
        return NULL;
    cache->pages = own.xCreate(page_size, extra_size, is_purgeable);
    if (cache->pages != NULL)
        return (sqlite3_pcache *)cache;
    free(cache);
    return NULL;
}

static void cache_destroy(sqlite3_pcache *cache)
{
    own.xDestroy(of(cache)->pages);
    free(cache);
}

static sqlite3_pcache_page *cache_fetch(sqlite3_pcache *cache, unsigned number, int create)
{
    if (create != 0 && number > of(cache)->highest)
        of(cache)->highest = number;
    return own.xFetch(of(cache)->pages, number, create);
}

static void cache_renumber(sqlite3_pcache *cache, sqlite3_pcache_page *page, unsigned from, unsigned to)
{
    struct page_cache *this = of(cache);
    if (from == this->borrowed)
        this->borrowed = 0;
    if (to > this->highest && this->borrowed == 0)
        this->borrowed = to;
    else if (to > this->highest)
        this->highest = to;
    own.xRekey(this->pages, page, from, to);
}

static void cache_truncate(sqlite3_pcache *cache, unsigned from)
{
    struct page_cache *this = of(cache);
    if (from > this->highest && from > this->borrowed)
        return;
    own.xTruncate(this->pages, from);
    this->highest = from - 1;
    this->borrowed = 0;
}

/* ---- As it is ---- */

static void cache_resize(sqlite3_pcache *cache, int page_count)
{
    own.xCachesize(of(cache)->pages, page_count);
}

static int cache_count(sqlite3_pcache *cache)
{
    return own.xPagecount(of(cache)->pages);
}

static void cache_unpin(sqlite3_pcache *cache, sqlite3_pcache_page *page, int discard)
{
    own.xUnpin(of(cache)->pages, page, discard);
}

static void cache_shrink(sqlite3_pcache *cache)
{
    own.xShrink(of(cache)->pages);
}

void page_cache_set_up(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &own) != SQLITE_OK)
        return;
    sqlite3_pcache_methods2 layer = own;
    layer.xCreate = cache_create;
    layer.xDestroy = cache_destroy;
    layer.xFetch = cache_fetch;
    layer.xRekey = cache_renumber;
    layer.xTruncate = cache_truncate;
    layer.xCachesize = cache_resize;
    layer.xPagecount = cache_count;
    layer.xUnpin = cache_unpin;
    layer.xShrink = cache_shrink;
    (void)sqlite3_config(SQLITE_CONFIG_PCACHE2, &layer);
}
