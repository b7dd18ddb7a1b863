/* SPDX-License-Identifier: Apache-2.0
 * What is published for other nodes and programs. */
#ifndef HOLDFAST_WARM_MESSAGES_H
#define HOLDFAST_WARM_MESSAGES_H

#include <stdbool.h>

#include "base/buf.h"
#include "warm/keys.h"
#include "warm/values.h"
#include "warm/warm.h"

bool message_is_due(const struct warm_write *write); /* of the event's channel */

/* Puts a PUBLISH on the seat's channel; false, and nothing, if there is none for this change. */
bool message_put_seat(struct buf *out, const struct keys_event *keys, struct value_times *times,
                      const struct warm_write *write, const char *seat);

/* The event's message, for all of a batch: begin, add each write that is due, end. */
void message_begin(struct buf *message);
void message_add(struct buf *message, const struct warm_write *write);
/* Puts the PUBLISH; false, and nothing, if nothing was added. */
bool message_put(struct buf *out, struct buf *message, const struct uuid *org_id, const struct uuid *event_id,
                 const char *node, struct value_times *times, int64_t now_ms);

#endif
