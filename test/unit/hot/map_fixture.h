/* SPDX-License-Identifier: Apache-2.0
 * Small seat maps for tests: blocks A-1 (rows of 3 and 2 seats), A-2 (4) and
 * B-1 (1), ids that can be told apart. */
#ifndef HOLDFAST_TEST_MAP_FIXTURE_H
#define HOLDFAST_TEST_MAP_FIXTURE_H

#include <string.h>

#include "hot/seatmap.h"

enum { FIXTURE_BLOCK_COUNT = 3, FIXTURE_SEAT_COUNT = 10 };

#define FIXTURE_DOCUMENT                                                                                     \
    "{\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"Stalls\",\"price_cents\":500,"              \
    "\"rows\":[{\"label\":\"A\",\"seats\":3},{\"label\":\"B\",\"seats\":2}]},"                               \
    "{\"section\":\"A\",\"subsection\":2,\"name\":\"Circle\",\"price_cents\":400,"                           \
    "\"rows\":[{\"label\":\"A\",\"seats\":4}]},"                                                             \
    "{\"section\":\"B\",\"subsection\":1,\"name\":\"Box\",\"price_cents\":900,"                              \
    "\"rows\":[{\"label\":\"A\",\"seats\":1}]}]}"

static inline struct uuid fixture_id(uint8_t kind, uint32_t number)
{
    struct uuid id = {.bytes = {0x01, 0x90, kind}};
    memcpy(id.bytes + 12, &number, sizeof number);
    return id;
}

static inline void fixture_blocks(struct block_row rows[FIXTURE_BLOCK_COUNT])
{
    static const char *const sections[] = {"A", "A", "B"}, *const names[] = {"Stalls", "Circle", "Box"};
    static const int32_t subsections[] = {1, 2, 1}, capacities[] = {5, 4, 1};
    for (int32_t i = 0; i < FIXTURE_BLOCK_COUNT; i++) {
        rows[i] = (struct block_row){
            .id = fixture_id('b', (uint32_t)i),
            .subsection = subsections[i],
            .ordinal = i,
            .name = names[i],
            .capacity = capacities[i],
            .price_cents = 100 * (i + 1),
        };
        strcpy(rows[i].section, sections[i]);
    }
}

/* All seats available, ids fixture_id('s', index). */
static inline struct seatmap *fixture_map(void)
{
    struct uuid org = fixture_id('o', 1), event = fixture_id('e', 1);
    struct block_row rows[FIXTURE_BLOCK_COUNT];
    struct seatmap *map = NULL;
    char why[200];
    fixture_blocks(rows);
    if (seatmap_create(&org, &event, FIXTURE_DOCUMENT, rows, FIXTURE_BLOCK_COUNT, &map, why, sizeof why) !=
        ERR_OK)
        return NULL;
    for (int32_t i = 0; i < FIXTURE_SEAT_COUNT; i++) {
        struct uuid id = fixture_id('s', (uint32_t)i);
        seatmap_set_seat(map, i, &id, SEAT_AVAILABLE);
    }
    return map;
}

#endif
