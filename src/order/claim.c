/* SPDX-License-Identifier: Apache-2.0
 * How a partition becomes this node's in the store, and how far it is done. The
 * broker says whose it is, but a node that slept does not hear that; so who
 * decides for a partition stands in the store, with an epoch that every batch
 * compares (partition.h shows the way). What is known of the next offset is
 * written with the commands themselves (lane/step.c), and here when there are
 * none. */
#include "base/log.h"
#include "base/metrics.h"
#include "order/shared_int.h"

enum {
    STORE_RETRY_MS = 500,
    NOTE_IDLE_MS = 5 * ORDER_NOTE_MS, /* no command has written it for so long */
};

/* ---- Is it ours? ---- */

static void confirm(struct shared *shared, struct partition *partition)
{
    broker_confirm(shared->config.broker, partition->fence.topic, partition->fence.partition,
                   partition->noted_offset);
    partition->retry_at_ms = shared->now_ms + PARTITION_CONFIRM_MS;
}

/* ---- The row as it is ---- */

static void looked_up(struct store_lookup *lookup)
{
    struct partition *partition = lookup->context;
    struct shared *shared = partition->shared;
    bool is_known = lookup->err == ERR_OK;
    partition->state = is_known && partition->is_assigned ? PARTITION_CLAIMABLE : PARTITION_WANTED;
    partition->retry_at_ms = is_known ? 0 : shared->now_ms + STORE_RETRY_MS;
    partition->fence.epoch = is_known && lookup->found ? lookup->order.epoch : 0;
    partition->fence.next_offset = is_known && lookup->found ? lookup->order.next_offset : 0;
    partition->noted_offset = partition->fence.next_offset;
}

static void look_up(struct shared *shared, struct partition *partition)
{
    arena_reset(&partition->arena);
    partition->lookup = (struct store_lookup){
        .kind = LOOKUP_ORDER,
        .name = partition->fence.topic,
        .partition = partition->fence.partition,
        .arena = &partition->arena,
        .on_done = looked_up,
        .context = partition,
    };
    list_init(&partition->lookup.node);
    if (store_lookup(shared->config.store, &partition->lookup) == ERR_OK)
        partition->state = PARTITION_LOOKING;
    else
        partition->retry_at_ms = shared->now_ms + STORE_RETRY_MS;
}

/* ---- Ours: memory is brought up to date before anything is decided ---- */

static void caught_up(struct command *command)
{
    struct partition *partition = CONTAINER_OF(command, struct partition, sync);
    bool is_fresh = command->result.err == ERR_OK;
    command_deinit(command);
    partition->state = is_fresh && partition->is_assigned ? PARTITION_OPEN : PARTITION_WANTED;
    partition->retry_at_ms = is_fresh ? 0 : partition->shared->now_ms + STORE_RETRY_MS;
}

static void catch_up(struct partition *partition)
{
    partition->state = PARTITION_CATCHING_UP;
    partition->has_seen_end = false; /* whoever had it may have decided what came until now */
    partition_skip(partition, partition->fence.next_offset);
    partition_doubt(partition);
    arena_reset(&partition->sync_arena);
    command_init(&partition->sync, COMMAND_SYNC, &partition->sync_arena);
    partition->sync.actor.role = ROLE_SYSTEM;
    partition->sync.on_done = caught_up;
    lane_take(partition->shared->config.lane, &partition->sync);
}

/* ---- What is written ---- */

static void claim_done(struct partition *partition, const struct store_unit *unit, bool was_written)
{
    struct shared *shared = partition->shared;
    partition->is_in_batch = false;
    if (was_written && unit->result == UNIT_OK) {
        partition->fence.epoch = unit->order_claims->row.epoch;
        if (unit->order_claims->resets) {
            partition->resets = false;
            partition->fence.next_offset = partition->noted_offset = 0;
        }
        log_write(LOG_DEBUG, "partition claimed", "\"topic\":\"%s\",\"partition\":%d,\"epoch\":%lld",
                  partition->fence.topic, partition->fence.partition, (long long)partition->fence.epoch);
        if (partition->is_assigned) {
            catch_up(partition);
            return;
        }
    }
    partition->state = PARTITION_WANTED;
    partition->is_doubted = was_written; /* it went to somebody else while we looked */
    partition->retry_at_ms = was_written ? 0 : shared->now_ms + STORE_RETRY_MS;
}

static void note_done(struct partition *partition, const struct store_unit *unit, bool was_written)
{
    partition->is_in_batch = false;
    if (was_written && unit->result == UNIT_OK)
        partition_noted(partition, unit->order_checks->next_offset);
    else if (was_written && unit->result == UNIT_MISSED)
        partition_fenced(partition);
}

/* One whose outcome is not known counts as not written: the row is looked up again, and compared. */
static void batch_done(struct store_batch *batch)
{
    struct shared *shared = batch->context;
    bool was_written = batch->outcome == STORE_COMMITTED;
    shared->owner.claiming.is_under_way = false;
    LIST_FOR_EACH(node, &batch->units) {
        const struct store_unit *unit = CONTAINER_OF(node, struct store_unit, node);
        if (unit->order_claims != NULL)
            claim_done(unit->owner, unit, was_written);
        else
            note_done(unit->owner, unit, was_written);
    }
    if (!was_written)
        shared->owner.claiming.at_ms = shared->now_ms + STORE_RETRY_MS;
}

static struct store_unit *add_unit(struct store_batch *batch, struct partition *partition)
{
    struct store_unit *unit = ARENA_NEW(&batch->arena, struct store_unit);
    unit->owner = partition;
    list_append(&batch->units, &unit->node);
    batch->unit_count++;
    partition->is_in_batch = true;
    return unit;
}

static void add_claim(struct store_batch *batch, struct partition *partition)
{
    struct shared *shared = partition->shared;
    struct order_claim *claim = ARENA_NEW(&batch->arena, struct order_claim);
    claim->row = (struct order_row){
        .topic = partition->fence.topic,
        .partition = partition->fence.partition,
        .epoch = partition->fence.epoch + 1,
        .next_offset = partition->fence.next_offset,
        .node = shared->config.node_id,
        .claimed_ms = shared->now_ms,
    };
    claim->resets = partition->resets;
    if (claim->resets)
        claim->row.next_offset = 0;
    add_unit(batch, partition)->order_claims = claim;
    partition->state = PARTITION_CLAIMING;
}

static void add_note(struct store_batch *batch, struct partition *partition)
{
    struct order_check *check = ARENA_NEW(&batch->arena, struct order_check);
    *check = (struct order_check){
        .topic = partition->fence.topic,
        .partition = partition->fence.partition,
        .epoch = partition->fence.epoch,
        .next_offset = partition->fence.next_offset,
    };
    add_unit(batch, partition)->order_checks = check;
    partition->fence.note_at_ms = partition->shared->now_ms + ORDER_NOTE_MS;
}

static bool is_to_be_noted(const struct partition *partition)
{
    return partition->state == PARTITION_OPEN && partition->fence.next_offset > partition->noted_offset &&
           partition->shared->now_ms >= partition->fence.note_at_ms + NOTE_IDLE_MS;
}

static void write_batch(struct shared *shared)
{
    struct claiming *claiming = &shared->owner.claiming;
    if (claiming->is_under_way || shared->now_ms < claiming->at_ms)
        return;
    struct store_batch *batch = &claiming->batch;
    arena_reset(&batch->arena);
    list_init(&batch->node);
    list_init(&batch->units);
    batch->unit_count = 0;
    LIST_FOR_EACH(node, &shared->owner.partitions) {
        struct partition *partition = CONTAINER_OF(node, struct partition, node);
        if (partition->state == PARTITION_CLAIMABLE && partition->is_assigned)
            add_claim(batch, partition);
        else if (is_to_be_noted(partition))
            add_note(batch, partition);
    }
    if (batch->unit_count == 0)
        return;
    batch->id = uuid_make(&shared->rng, shared->now_ms);
    batch->node_id = shared->config.node_id;
    batch->now_ms = shared->now_ms;
    batch->on_done = batch_done;
    batch->context = shared;
    claiming->is_under_way = true;
    enum err err = store_submit(shared->config.store, batch);
    if (err != ERR_OK) {
        batch->outcome = STORE_FAILED;
        batch_done(batch);
    }
}

int64_t claim_turn(struct shared *shared)
{
    int64_t next_ms = shared->now_ms + NOTE_IDLE_MS;
    LIST_FOR_EACH(node, &shared->owner.partitions) {
        struct partition *partition = CONTAINER_OF(node, struct partition, node);
        if (partition->state == PARTITION_OPEN && partition->anew_at_ms != 0 &&
            shared->now_ms >= partition->anew_at_ms)
            partition_begin_anew(partition);
        /* What the lane still has of the last time it was ours goes first: it would be found to be in progress. */
        if (partition->state != PARTITION_WANTED || !partition->is_assigned || partition->running_count > 0 ||
            shared->is_leaving)
            continue;
        if (shared->now_ms >= partition->retry_at_ms && partition->is_doubted)
            confirm(shared, partition);
        else if (shared->now_ms >= partition->retry_at_ms)
            look_up(shared, partition);
        else if (partition->retry_at_ms < next_ms)
            next_ms = partition->retry_at_ms;
    }
    write_batch(shared);
    return next_ms;
}
