/* SPDX-License-Identifier: Apache-2.0
 * Who decides the partitions of the log, in the simulated store.
 *
 * What the server makes wait is not missed here: a commit happens at one moment,
 * so whoever compares finds a partition as the last claim left it, and a miss
 * always means that somebody else has it. */
#include <stdlib.h>
#include <string.h>

#include "store/sim/sim_int.h"

struct uuid sim_key_of_order(const char *topic, int32_t partition)
{
    struct uuid id = {{0}};
    for (size_t i = 0; topic[i] != '\0'; i++)
        id.bytes[i % 12] = (uint8_t)(id.bytes[i % 12] * 31 + (uint8_t)topic[i]);
    memcpy(id.bytes + 12, &partition, sizeof(partition));
    return id;
}

struct sim_order *sim_find_order(struct sim_tables *tables, const char *topic, int32_t partition)
{
    struct sim_order *order = tables->orders;
    while (order != NULL && (order->row.partition != partition || strcmp(order->row.topic, topic) != 0))
        order = order->next;
    return order;
}

bool sim_orders_compare(struct sim_store *sim, struct store_unit *unit)
{
    bool same = true;
    for (struct order_check *check = unit->order_checks; check != NULL; check = check->next) {
        const struct sim_order *order =
            sim_find_order(&sim->database->tables, check->topic, check->partition);
        check->missed = order == NULL || order->row.epoch != check->epoch;
        same = same && !check->missed;
    }
    for (struct order_claim *claim = unit->order_claims; claim != NULL; claim = claim->next) {
        const struct sim_order *order =
            sim_find_order(&sim->database->tables, claim->row.topic, claim->row.partition);
        claim->missed = (order != NULL ? order->row.epoch : 0) != claim->row.epoch - 1;
        same = same && !claim->missed;
    }
    return same;
}

static void order_claim(struct sim_tables *tables, const struct order_claim *claim)
{
    const struct order_row *row = &claim->row;
    struct sim_order *order = sim_find_order(tables, row->topic, row->partition);
    if (order == NULL) {
        order = malloc(sizeof(*order));
        CHECK(order != NULL);
        order->row = *row;
        order->row.topic = strdup(row->topic);
        CHECK(order->row.topic != NULL);
        order->next = tables->orders;
        tables->orders = order;
    }
    order->row.epoch = row->epoch;
    order->row.node = row->node;
    order->row.claimed_ms = row->claimed_ms;
    if (claim->resets)
        order->row.next_offset = row->next_offset;
}

void sim_orders_write(struct sim_store *sim, const struct store_unit *unit)
{
    struct sim_tables *tables = &sim->database->tables;
    for (const struct order_claim *claim = unit->order_claims; claim != NULL; claim = claim->next)
        order_claim(tables, claim);
    for (const struct order_check *check = unit->order_checks; check != NULL; check = check->next) {
        struct sim_order *order = sim_find_order(tables, check->topic, check->partition);
        CHECK(order != NULL);
        if (check->next_offset > order->row.next_offset)
            order->row.next_offset = check->next_offset;
    }
}

void sim_orders_deinit(struct sim_tables *tables)
{
    while (tables->orders != NULL) {
        struct sim_order *order = tables->orders;
        tables->orders = order->next;
        free((char *)order->row.topic);
        free(order);
    }
}
