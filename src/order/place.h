/* SPDX-License-Identifier: Apache-2.0
 * Which partition of which topic a block's commands go to. */
#ifndef HOLDFAST_ORDER_PLACE_H
#define HOLDFAST_ORDER_PLACE_H

#include <stdint.h>

#include "base/uuid.h"

#define ORDER_PREFIX "holdfast"  /* what topics are named after, unless something else is said */
enum { ORDER_TOPIC_SIZE = 250 }; /* with its NUL: as long as Kafka allows */

/* "A" is 0, "Z" 25, "AA" 26. */
int32_t place_section_index(const char *section);

/* (section_index × ORDER_SUBSECTIONS_PER_SECTION + subsection − 1) mod partition_count. In the shared topic (event_id is
 * not NULL) offset by a hash of the event: its A-1 is not where every other event has its A-1. */
int32_t place_partition(const struct uuid *event_id, const char *section, int32_t subsection,
                        int32_t partition_count);

/* `{prefix}.commands`, and seed 004's `event-id-{event}______ticket-command-request______{prefix}`. */
void place_topic(const char *prefix, char out[ORDER_TOPIC_SIZE]);
void place_topic_of_event(const char *prefix, const struct uuid *event_id, char out[ORDER_TOPIC_SIZE]);

#endif
