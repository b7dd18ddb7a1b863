/* SPDX-License-Identifier: Apache-2.0
 * Holds, checkouts and events as JSON: each shape is written in one place. */
#ifndef HOLDFAST_API_RENDER_H
#define HOLDFAST_API_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/jsonw.h"
#include "hot/directory.h"
#include "lane/command.h"

/* A hold as its owner sees it; with_user adds whose it is, for agents and admins. */
void render_hold(const struct hold_view *hold, int64_t now_ms, bool with_user, struct jsonw *json);
void render_holds(const struct hold_view *holds, int32_t count, int64_t now_ms, bool with_user,
                  struct jsonw *json);
void render_explanation(const struct best_explanation *explanation, struct jsonw *json);

/* `event` gives its name and the places of tickets; both may be missing in it. */
void render_checkout(const struct result *result, const struct event_view *event, bool with_user,
                     struct jsonw *json);
void render_cancelled(const struct result *result, struct jsonw *json);

/* An event with its policy, blocks and prices; with_org adds whose it is, for those who administrate. */
void render_event(const struct event_view *event, bool with_org, struct jsonw *json);
void render_block(const struct seatmap *map, int32_t block, struct jsonw *json);

/* "block", "block_name", "row" and the seat's number under `number_key`. */
void render_place(const struct seatmap *map, int32_t seat_index, const char *number_key, struct jsonw *json);
/* "A-1" */
void render_block_label(const struct layout_block *block, char out[16]);

/* What a refused caller may know of a seat: its state, or when to come back. */
void render_failure_fields(const struct seat_failure *failure, int64_t now_ms, struct jsonw *json);

/* "5 minutes", "1 minute 30 seconds", "40 seconds" */
void render_duration(int64_t seconds, char *out, size_t out_size);

#endif
