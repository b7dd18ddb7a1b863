/* SPDX-License-Identifier: Apache-2.0
 * Which partition of which topic a block's commands go to. */
#ifndef HOLDFAST_ORDER_PLACE_H
#define HOLDFAST_ORDER_PLACE_H

#include <stdint.h>

#include "base/uuid.h"

#define ORDER_TOPIC "holdfast.commands"
#define ORDER_TOPIC_OF_EVENT "event-id-%s______ticket-command-request______holdfast"
enum { ORDER_TOPIC_SIZE = 96 };

/* "A" is 0, "Z" 25, "AA" 26. */
int32_t place_section_index(const char *section);

/* (section_index × ORDER_SUBSECTIONS_PER_SECTION + subsection − 1) mod partition_count. In the shared topic (event_id is
 * not NULL) offset by a hash of the event: its A-1 is not where every other event has its A-1. */
int32_t place_partition(const struct uuid *event_id, const char *section, int32_t subsection,
                        int32_t partition_count);

void place_topic_of_event(const struct uuid *event_id, char out[ORDER_TOPIC_SIZE]);

#endif
