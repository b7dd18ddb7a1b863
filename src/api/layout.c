/* SPDX-License-Identifier: Apache-2.0
 * The static map of an event: blocks, rows, seats, positions and list prices.
 * Up to 100,000 seats, megabytes of JSON, so it is written once for each
 * layout, revision and currency, and shared by everybody who asks.
 *
 * Invariants: (1) the ETag names exactly what the text was made from; equal
 * tags mean equal bytes. (2) The cache is bounded, and what it drops lives
 * until the last answer with it was sent. (3) Nothing is written under the
 * lock: two loops may both write a new layout, and one copy is kept.
 *
 * Any loop's thread. States of seats are seats.c's. */
#include "api/api_int.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/render.h"

enum {
    LAYOUT_CACHE_COUNT = 16,
    LAYOUT_SEAT_SIZE = 48, /* about what one seat takes in the text */
};

struct layout_text { /* shared: the cache has one reference, each answer under way another */
    _Atomic int32_t reference_count;
    char etag[LAYOUT_ETAG_SIZE];
    struct buf text;
};

struct layout_cache {
    pthread_mutex_t lock;
    struct layout_text *texts[LAYOUT_CACHE_COUNT]; /* most recently used first */
};

static void layout_text_release(void *context)
{
    struct layout_text *text = context;
    if (text == NULL || atomic_fetch_sub(&text->reference_count, 1) != 1)
        return;
    buf_deinit(&text->text);
    free(text);
}

enum err layout_cache_create(struct layout_cache **out)
{
    struct layout_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return ERR_INTERNAL;
    pthread_mutex_init(&cache->lock, NULL);
    *out = cache;
    return ERR_OK;
}

void layout_cache_destroy(struct layout_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; i < LAYOUT_CACHE_COUNT; i++)
        layout_text_release(cache->texts[i]);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Puts `text` first; what falls off the end is returned, to be released outside the lock. */
static struct layout_text *layout_cache_push(struct layout_cache *cache, size_t from,
                                             struct layout_text *text)
{
    struct layout_text *dropped = cache->texts[from];
    for (size_t i = from; i > 0; i--)
        cache->texts[i] = cache->texts[i - 1];
    cache->texts[0] = text;
    return dropped;
}

/* A reference of the caller's, or NULL. */
static struct layout_text *layout_cache_find(struct layout_cache *cache, const char *etag)
{
    struct layout_text *found = NULL;
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < LAYOUT_CACHE_COUNT && cache->texts[i] != NULL; i++) {
        if (strcmp(cache->texts[i]->etag, etag) == 0) {
            found = cache->texts[i];
            layout_cache_push(cache, i, found);
            atomic_fetch_add(&found->reference_count, 1);
            break;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

static void layout_cache_add(struct layout_cache *cache, struct layout_text *text)
{
    atomic_fetch_add(&text->reference_count, 1);
    pthread_mutex_lock(&cache->lock);
    struct layout_text *dropped = layout_cache_push(cache, LAYOUT_CACHE_COUNT - 1, text);
    pthread_mutex_unlock(&cache->lock);
    layout_text_release(dropped);
}

/* ---- The text ---- */

static void write_row(const struct seatmap *map, const struct layout_row *row, struct jsonw *json)
{
    jsonw_object_open(json);
    jsonw_key_text(json, "label", row->label);
    jsonw_key_int(json, "ordinal", row->ordinal);
    if (row->placed) {
        jsonw_key_fixed(json, "x", row->x, 3);
        jsonw_key_fixed(json, "y", row->y, 3);
        jsonw_key_fixed(json, "dx", row->dx, 3);
        jsonw_key_fixed(json, "dy", row->dy, 3);
    }
    jsonw_key(json, "seat_ids");
    jsonw_array_open(json);
    for (int32_t i = 0; i < row->seat_count; i++)
        jsonw_uuid(json, &map->seat_ids[row->seat_first + i]);
    jsonw_array_close(json);
    jsonw_key(json, "seat_numbers");
    jsonw_array_open(json);
    for (int32_t i = 0; i < row->seat_count; i++)
        jsonw_text(json, map->layout->seat_labels[row->seat_first + i]);
    jsonw_array_close(json);
    jsonw_object_close(json);
}

static void write_block(const struct seatmap *map, int32_t index, const char *currency, struct jsonw *json)
{
    const struct layout_block *block = &map->layout->blocks[index];
    const struct block_info *info = seatmap_block_info(map, index);
    char label[16];
    render_block_label(block, label);
    jsonw_object_open(json);
    jsonw_key_uuid(json, "block_id", &map->blocks[index].id);
    jsonw_key_text(json, "block", label);
    jsonw_key_text(json, "section", block->section);
    jsonw_key_int(json, "subsection", block->subsection);
    jsonw_key_text(json, "name", info->name);
    jsonw_key_int(json, "capacity", info->capacity);
    jsonw_key_int(json, "price_cents", info->price_cents);
    jsonw_key_text(json, "currency", currency);
    jsonw_key_int(json, "first_index", block->seat_first);
    jsonw_key_int(json, "seat_count", block->seat_count);
    jsonw_key(json, "rows");
    jsonw_array_open(json);
    for (int32_t i = 0; i < block->row_count; i++)
        write_row(map, &map->layout->rows[block->row_first + i], json);
    jsonw_array_close(json);
    jsonw_object_close(json);
}

static void write_layout(const struct event_view *event, struct buf *out)
{
    const struct seatmap *map = event->map;
    struct jsonw json;
    api_json_open(out, &json);
    if (map != NULL)
        buf_reserve(out, (size_t)map->layout->seat_count * LAYOUT_SEAT_SIZE); /* a failure sticks */
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "event_id", &event->row.id);
    jsonw_key_text(&json, "name", map != NULL ? map->layout->name : NULL);
    jsonw_key(&json, "stage");
    if (map != NULL && map->layout->stage != NULL)
        jsonw_raw(&json, map->layout->stage, strlen(map->layout->stage));
    else
        jsonw_null(&json);
    jsonw_key_int(&json, "seat_count", map != NULL ? map->layout->seat_count : 0);
    jsonw_key(&json, "blocks");
    jsonw_array_open(&json);
    for (int32_t i = 0; map != NULL && i < map->layout->block_count; i++)
        write_block(map, i, event->row.currency, &json);
    jsonw_array_close(&json);
    jsonw_object_close(&json);
    jsonw_object_close(&json);
}

static struct layout_text *layout_text_create(const struct event_view *event, const char *etag)
{
    struct layout_text *text = calloc(1, sizeof *text);
    if (text == NULL)
        return NULL;
    atomic_store(&text->reference_count, 1);
    snprintf(text->etag, sizeof text->etag, "%s", etag);
    write_layout(event, &text->text);
    if (buf_ok(&text->text))
        return text;
    layout_text_release(text);
    return NULL;
}

/* ---- GET …/layout ---- */

/* The revision is read before the text is written: a text that is newer than its tag is fetched
 * once more, one that is older never stays. */
void layout_etag(const struct event_view *event, char out[LAYOUT_ETAG_SIZE])
{
    char id[UUID_TEXT_SIZE];
    uuid_format(event->map != NULL ? &event->map->layout_id : &event->row.id, id);
    uint32_t revision = event->map != NULL ? atomic_load(&event->map->revision) : 0;
    snprintf(out, LAYOUT_ETAG_SIZE, "\"%s-%u-%s\"", id, revision, event->row.currency);
}

/* A list of tags, weak or strong, or a star. */
static bool etag_matches(const char *header, const char *etag)
{
    size_t size = strlen(etag);
    while (header != NULL && *header != '\0') {
        header += strspn(header, " \t,");
        if (*header == '*')
            return true;
        if (strncmp(header, "W/", 2) == 0)
            header += 2;
        if (strncmp(header, etag, size) == 0)
            return true;
        header += strcspn(header, ",");
    }
    return false;
}

void api_layout_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    struct layout_text *text;
    char etag[LAYOUT_ETAG_SIZE];
    if (!api_path_event(call, &event))
        return;
    layout_etag(&event, etag);
    http_reply_header(request, "ETag", arena_text(http_arena(request), etag));
    http_reply_header(request, "Cache-Control", "private, max-age=0, must-revalidate");
    if (etag_matches(http_header(request, "If-None-Match"), etag)) {
        http_reply_static(request, 304, "application/json", "", 0);
        goto out;
    }
    text = layout_cache_find(call->api->layouts, etag);
    if (text == NULL) {
        text = layout_text_create(&event, etag);
        if (text == NULL) {
            api_fail(call, ERR_INTERNAL);
            goto out;
        }
        layout_cache_add(call->api->layouts, text);
    }
    http_reply_shared(request, 200, "application/json", text->text.data, text->text.size, layout_text_release,
                      text);
out:
    seatmap_release(event.map);
}
