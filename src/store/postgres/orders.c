/* SPDX-License-Identifier: Apache-2.0
 * Who decides the partitions of the log: compares the epochs that units rely
 * on, lets partitions change hands, and notes how far their commands are done.
 *
 * Invariants: (1) whoever relies on a partition shares its row until the end of
 * the transaction; whoever claims it has it alone. So a claim comes after all
 * transactions of the old owner that have compared already, and those that have
 * not find it. (2) Both pass a gate first, in turn, so that a claim is not
 * passed for ever by an owner who is busy. There are a few gates only, each for
 * many partitions: a batch may rely on hundreds. They are all that is waited
 * for, but for strangers who lock rows by hand. (3) Sharing is asked by a
 * statement after the gate's, so it sees what was waited for; its epoch is that
 * of the row as it was locked. (4) An offset is noted once a batch, of the units
 * that were written; the update changes no key, so those who share the row pass.
 *
 * Runs on the writer's thread. */
#include <libpq-fe.h>
#include <string.h>

#include "store/postgres/compare.h"
#include "store/postgres/rows.h"

enum { GATE_COUNT = 64 };

struct partition {
    struct partition *same_id; /* another one with the same key in the map */
    const char *topic;
    int32_t number;
    bool relied_on; /* it was asked for … */
    bool found;     /* … and is there, at this epoch */
    int64_t epoch;
    bool inserted;
    int64_t next_offset;
};

static struct partition *partition_find(const struct map *partitions, const char *topic, int32_t number)
{
    struct uuid id = pg_order_id(topic, number);
    struct partition *partition = map_get(partitions, &id);
    while (partition != NULL && (partition->number != number || strcmp(partition->topic, topic) != 0))
        partition = partition->same_id;
    return partition;
}

static struct partition *partition_add(struct pg_writer *writer, struct map *partitions, const char *topic,
                                       int32_t number)
{
    struct partition *partition = partition_find(partitions, topic, number);
    if (partition != NULL)
        return partition;
    struct uuid id = pg_order_id(topic, number);
    partition = ARENA_NEW(&writer->arena, struct partition);
    *partition = (struct partition){.same_id = map_get(partitions, &id), .topic = topic, .number = number};
    map_put(partitions, &id, partition);
    return partition;
}

/* ---- Gates ---- */

static int32_t gate_of(const char *topic, int32_t partition)
{
    struct uuid id = pg_order_id(topic, partition);
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        sum = sum * 31 + id.bytes[i];
    return (int32_t)(sum % GATE_COUNT);
}

void pg_orders_gate(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    bool shared[GATE_COUNT] = {false}, alone[GATE_COUNT] = {false};
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (const struct order_check *w = unit->order_checks; w != NULL; w = w->next)
            shared[gate_of(w->topic, w->partition)] = true;
        for (const struct order_claim *w = unit->order_claims; w != NULL; w = w->next)
            alone[gate_of(w->row.topic, w->row.partition)] = true;
    }
    for (int32_t i = 0; i < GATE_COUNT; i++) {
        if (!shared[i] && !alone[i])
            continue;
        pg_add_int(p, 0, i);
        pg_add_bool(p, 1, alone[i]);
        count++;
    }
    if (count > 0)
        (void)pg_send(&writer->connection, PG_ORDER_GATE, p);
}

/* ---- Comparing ---- */

static bool claim_is_new(const struct order_claim *claim)
{
    return claim->row.epoch == 1;
}

/* Each partition once, however many units rely on it. */
static void checks_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (const struct order_check *w = unit->order_checks; w != NULL; w = w->next) {
        struct partition *partition = partition_add(writer, &c->orders, w->topic, w->partition);
        if (partition->relied_on)
            continue;
        partition->relied_on = true;
        pg_add_text(p, 0, w->topic);
        pg_add_int(p, 1, w->partition);
        count++;
    }
    if (count > 0)
        c->orders_number = pg_send(&writer->connection, PG_ORDER_SHARE, p);
}

static void claims_insert(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct order_claim *w = unit->order_claims; w != NULL; w = w->next) {
        w->missed = true; /* until it was found, or inserted */
        if (!claim_is_new(w) || unit->result != UNIT_OK)
            continue;
        (void)partition_add(writer, &c->orders, w->row.topic, w->row.partition);
        pg_add_text(p, 0, w->row.topic);
        pg_add_int(p, 1, w->row.partition);
        pg_add_bigint(p, 2, w->row.epoch);
        pg_add_bigint(p, 3, w->row.next_offset);
        pg_add_uuid(p, 4, &w->row.node);
        pg_add_time_unless(p, 5, w->row.claimed_ms, INT64_MIN);
        count++;
    }
    if (count > 0)
        c->new_orders_number = pg_send(&writer->connection, PG_ORDER_INSERT, p);
}

static void claims_lock(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    struct pg_params *p = pg_writer_params(writer);
    PG_WAVE_FOR_EACH(unit, wave)
    for (struct order_claim *w = unit->order_claims; w != NULL; w = w->next) {
        if (claim_is_new(w))
            continue;
        pg_add_text(p, 0, w->row.topic);
        pg_add_int(p, 1, w->row.partition);
        pg_add_bigint(p, 2, w->row.epoch - 1);
        pg_add_int(p, 3, pg_marks_add(writer, &c->order_claims, &w->missed));
    }
    pg_marks_send(writer, &c->order_claims, PG_ORDER_LOCK);
}

void pg_orders_ask(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    pg_orders_gate(writer, wave);
    checks_ask(writer, wave, c);
    claims_insert(writer, wave, c);
    claims_lock(writer, wave, c);
}

static struct partition *partition_of_row(const PGresult *rows, int row, const struct pg_comparison *c)
{
    struct partition *partition =
        partition_find(&c->orders, pg_cell_text(rows, row, 0), (int32_t)pg_cell_int(rows, row, 1));
    CHECK(partition != NULL);
    return partition;
}

void pg_orders_judge(struct pg_writer *writer, const struct pg_wave *wave, struct pg_comparison *c)
{
    const PGresult *rows = c->orders_number >= 0 ? writer->reply.results[c->orders_number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++) {
        struct partition *partition = partition_of_row(rows, i, c);
        partition->found = true;
        partition->epoch = pg_cell_int(rows, i, 2);
    }
    rows = c->new_orders_number >= 0 ? writer->reply.results[c->new_orders_number] : NULL;
    for (int i = 0; rows != NULL && i < PQntuples(rows); i++)
        partition_of_row(rows, i, c)->inserted = true;
    pg_marks_judge(writer, &c->order_claims);
    PG_WAVE_FOR_EACH(unit, wave)
    {
        for (struct order_check *w = unit->order_checks; w != NULL; w = w->next) {
            const struct partition *partition = partition_find(&c->orders, w->topic, w->partition);
            CHECK(partition != NULL);
            w->missed = !partition->found || partition->epoch != w->epoch;
        }
        for (struct order_claim *w = unit->order_claims; w != NULL; w = w->next) {
            if (!claim_is_new(w) || unit->result != UNIT_OK)
                continue;
            w->missed = !partition_find(&c->orders, w->row.topic, w->row.partition)->inserted;
        }
    }
}

void pg_orders_give_back(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (const struct order_claim *w = unit->order_claims; w != NULL; w = w->next) {
        if (unit->result == UNIT_OK || !claim_is_new(w) || w->missed)
            continue;
        pg_add_text(p, 0, w->row.topic);
        pg_add_int(p, 1, w->row.partition);
        count++;
    }
    if (count > 0)
        (void)pg_send(&writer->connection, PG_ORDER_GIVE_BACK, p);
}

/* ---- Writing ---- */

void pg_orders_update(struct pg_writer *writer, const struct pg_wave *wave)
{
    struct pg_params *p = pg_writer_params(writer);
    int32_t count = 0;
    PG_WAVE_FOR_EACH(unit, wave)
    for (const struct order_claim *w = unit->order_claims; w != NULL && unit->result == UNIT_OK;
         w = w->next) {
        if (claim_is_new(w))
            continue;
        pg_add_text(p, 0, w->row.topic);
        pg_add_int(p, 1, w->row.partition);
        pg_add_bigint(p, 2, w->row.epoch);
        pg_add_uuid(p, 3, &w->row.node);
        pg_add_time_unless(p, 4, w->row.claimed_ms, INT64_MIN);
        pg_add_bool(p, 6, w->resets);
        pg_add_bigint(p, 7, w->row.next_offset);
        count++;
    }
    if (count == 0)
        return;
    pg_set_int(p, 5, count);
    (void)pg_send(&writer->connection, PG_ORDER_UPDATE, p);
}

void pg_orders_note(struct pg_writer *writer, const struct store_batch *batch)
{
    struct pg_params *p = pg_writer_params(writer);
    struct map partitions;
    struct partition *partition;
    map_init(&partitions);
    LIST_FOR_EACH(node, &batch->units) {
        const struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        if (unit->result != UNIT_OK)
            continue;
        for (const struct order_check *w = unit->order_checks; w != NULL; w = w->next) {
            if (w->next_offset == 0)
                continue;
            partition = partition_add(writer, &partitions, w->topic, w->partition);
            if (w->next_offset > partition->next_offset)
                partition->next_offset = w->next_offset;
        }
    }
    for (size_t i = 0; (partition = map_next(&partitions, &i)) != NULL;) {
        for (; partition != NULL; partition = partition->same_id) {
            pg_add_text(p, 0, partition->topic);
            pg_add_int(p, 1, partition->number);
            pg_add_bigint(p, 2, partition->next_offset);
        }
    }
    if (partitions.count > 0)
        (void)pg_send(&writer->connection, PG_ORDER_NOTE, p);
    map_deinit(&partitions);
}
