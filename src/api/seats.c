/* SPDX-License-Identifier: Apache-2.0
 * The state of seats: as a list with the caller's own holds marked, and packed
 * in two bits a seat for a client that draws the whole map.
 *
 * Invariants: (1) a list says who holds a seat only when it is the caller.
 * (2) The stream id of a packed answer is read before the states: a client that
 * goes on from that id may see a change twice, never miss one.
 *
 * Loops' threads. States are read from the published array; only the caller's
 * own holds are asked of the lane. */
#include "api/api_int.h"

#include <stdlib.h>
#include <string.h>

#include "api/render.h"
#include "base/limits.h"
#include "base/text.h"

enum { SEAT_JSON_SIZE = 160 }; /* about what one seat takes; for sizing the answer */

struct seats_request {
    struct seatmap *map; /* borrows: the command holds a reference; NULL without a layout */
    char section[4];     /* "": all */
    int32_t subsection;  /* 0: all of the section */
};

/* ---- GET …/seats ---- */

static bool seats_parse_block(struct api_call *call, struct seats_request *seats)
{
    const char *section = http_query(call->http, "section");
    int64_t subsection = 0;
    if (!api_query_int(call, "subsection", 1, 999999, &subsection))
        return false;
    if (section == NULL && subsection != 0) {
        api_refuse(call, "section", "subsection needs a section.");
        return false;
    }
    if (section != NULL && !api_section_valid(section)) {
        api_refuse(call, "section", "section must be one to three capital letters.");
        return false;
    }
    if (section != NULL)
        strcpy(seats->section, section); /* at most three letters: checked above */
    seats->subsection = (int32_t)subsection;
    return true;
}

static int compare_hold_indexes(const void *a, const void *b)
{
    const struct hold_view *left = a, *right = b;
    return (left->seat_index > right->seat_index) - (left->seat_index < right->seat_index);
}

/* The caller's holds, in seat order, met as the seats are written. */
struct own_holds {
    const struct hold_view *next;
    const struct hold_view *end;
};

static const struct hold_view *own_hold_at(struct own_holds *own, const struct seatmap *map, int32_t index)
{
    while (own->next < own->end && (own->next->seat_index < index || own->next->map != map))
        own->next++;
    return own->next < own->end && own->next->seat_index == index ? own->next : NULL;
}

static void write_seat(const struct seatmap *map, int32_t index, const char *block, const char *row,
                       const struct hold_view *mine, struct jsonw *json)
{
    jsonw_object_open(json);
    jsonw_key_uuid(json, "seat_id", &map->seat_ids[index]);
    jsonw_key_text(json, "block", block);
    jsonw_key_text(json, "row", row);
    jsonw_key_text(json, "seat_number", map->layout->seat_labels[index]);
    jsonw_key_text(json, "status", mine != NULL ? "held" : seat_state_name(seatmap_state(map, index)));
    if (mine != NULL) {
        jsonw_key(json, "mine");
        jsonw_object_open(json);
        jsonw_key_uuid(json, "hold_id", &mine->row.id);
        jsonw_key_time(json, "held_until", mine->row.held_until_ms);
        jsonw_object_close(json);
    }
    jsonw_object_close(json);
}

static void write_block_seats(const struct seatmap *map, int32_t block, struct own_holds *own,
                              struct jsonw *json)
{
    const struct layout_block *place = &map->layout->blocks[block];
    char label[16];
    render_block_label(place, label);
    buf_reserve(json->buf, (size_t)place->seat_count * SEAT_JSON_SIZE); /* a failure sticks in the buffer */
    for (int32_t r = place->row_first; r < place->row_first + place->row_count; r++) {
        const struct layout_row *row = &map->layout->rows[r];
        for (int32_t i = row->seat_first; i < row->seat_first + row->seat_count; i++)
            write_seat(map, i, label, row->label, own_hold_at(own, map, i), json);
    }
}

static void seats_reply(struct api_call *call)
{
    struct seats_request *seats = call->state;
    struct seatmap *map = seats->map;
    struct result *result = &call->command.result;
    if (result->hold_count > 0)
        qsort(result->holds, (size_t)result->hold_count, sizeof *result->holds, compare_hold_indexes);
    struct own_holds own = {result->holds, result->holds + result->hold_count};
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_array_open(&json);
    for (int32_t block = 0; map != NULL && block < map->layout->block_count; block++) {
        const struct layout_block *place = &map->layout->blocks[block];
        if ((seats->section[0] == '\0' || strcmp(seats->section, place->section) == 0) &&
            (seats->subsection == 0 || seats->subsection == place->subsection))
            write_block_seats(map, block, &own, &json);
    }
    jsonw_array_close(&json);
    api_reply(call, 200, &out, &json);
}

void api_seats_list(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct seats_request *seats = ARENA_NEW(http_arena(request), struct seats_request);
    struct event_view event;
    if (!seats_parse_block(call, seats) || !api_path_event(call, &event))
        return;
    command_init(&call->command, COMMAND_HOLDS_LIST, http_arena(request));
    call->command.holds_list.event_id = event.row.id;
    if (event.map != NULL)
        seats->map = command_hold_map(&call->command, event.map);
    seatmap_release(event.map);
    call->state = seats;
    api_submit(call, seats_reply);
}

/* ---- GET …/availability ---- */

static uint8_t *pack_states(struct arena *arena, const struct seatmap *map, size_t *size)
{
    int32_t count = map != NULL ? map->layout->seat_count : 0;
    *size = ((size_t)count + 3) / 4;
    uint8_t *packed = arena_alloc(arena, *size + 1);
    for (int32_t i = 0; i < count; i++)
        packed[i / 4] |= (uint8_t)(seatmap_state(map, i) << (2 * (i % 4)));
    return packed;
}

void api_availability_get(struct http_request *request)
{
    struct api_call *call = api_call(request);
    struct event_view event;
    if (!api_path_event(call, &event))
        return;
    char stream_id[64], etag[LAYOUT_ETAG_SIZE];
    feed_stream_id(call->api->config.feed, &event.row.id, stream_id);
    layout_etag(&event, etag);
    size_t size;
    uint8_t *packed = pack_states(http_arena(request), event.map, &size);
    char *text = arena_alloc(http_arena(request), 4 * ((size + 2) / 3) + 1);
    base64_encode(packed, size, text);
    struct buf out;
    struct jsonw json;
    api_json_open(&out, &json);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "stream_id", stream_id);
    jsonw_key_text(&json, "layout_etag", etag); /* whose order the states are in */
    jsonw_key_int(&json, "count", event.map != NULL ? event.map->layout->seat_count : 0);
    jsonw_key_text(&json, "states", text);
    jsonw_object_close(&json);
    seatmap_release(event.map);
    api_reply(call, 200, &out, &json);
}
