/* SPDX-License-Identifier: Apache-2.0
 * See place.h. Every node must come to the same place: nothing here may change
 * while commands wait in a topic. */
#include "order/place.h"

#include <stdio.h>

#include "base/limits.h"

int32_t place_section_index(const char *section)
{
    int32_t index = 0;
    for (const char *c = section; *c != '\0'; c++)
        index = index * 26 + (*c - 'A' + 1);
    return index - 1;
}

int32_t place_partition(const struct uuid *event_id, const char *section, int32_t subsection,
                        int32_t partition_count)
{
    uint64_t index =
        (uint64_t)place_section_index(section) * ORDER_SUBSECTIONS_PER_SECTION + (uint64_t)subsection - 1;
    uint64_t offset = event_id != NULL ? uuid_hash(event_id) % (uint64_t)partition_count : 0;
    return (int32_t)((index + offset) % (uint64_t)partition_count);
}

void place_topic(const char *prefix, char out[ORDER_TOPIC_SIZE])
{
    snprintf(out, ORDER_TOPIC_SIZE, "%s.commands", prefix);
}

void place_topic_of_event(const char *prefix, const struct uuid *event_id, char out[ORDER_TOPIC_SIZE])
{
    char text[UUID_TEXT_SIZE];
    uuid_format(event_id, text);
    snprintf(out, ORDER_TOPIC_SIZE, "event-id-%s______ticket-command-request______%s", text, prefix);
}
