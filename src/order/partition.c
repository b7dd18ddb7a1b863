/* SPDX-License-Identifier: Apache-2.0
 * See partition.h. */
#include "order/partition.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "order/shared_int.h"

struct partition *partition_create(struct shared *shared, const char *topic, int32_t number)
{
    struct partition *partition = calloc(1, sizeof(*partition));
    CHECK(partition != NULL);
    partition->shared = shared;
    partition->fence.topic = topic;
    partition->fence.partition = number;
    list_init(&partition->fence.line);
    list_init(&partition->waiting);
    list_init(&partition->running);
    arena_init(&partition->arena);
    arena_init(&partition->sync_arena);
    list_append(&shared->owner.partitions, &partition->node);
    return partition;
}

void partition_destroy(struct partition *partition)
{
    CHECK(list_empty(&partition->running));
    CHECK(list_empty(&partition->fence.line));
    partition_drop_waiting(partition);
    list_remove(&partition->node);
    arena_deinit(&partition->arena);
    arena_deinit(&partition->sync_arena);
    free(partition);
}

void taken_free(struct taken *taken)
{
    command_deinit(&taken->command);
    arena_deinit(&taken->arena);
    free(taken);
}

bool partition_take(struct partition *partition, const struct broker_message *message)
{
    if (message->offset < partition->seen_offset)
        return false;
    struct taken *taken = calloc(1, sizeof(*taken));
    CHECK(taken != NULL);
    arena_init(&taken->arena);
    taken->partition = partition;
    taken->offset = message->offset;
    taken->sent_ms = message->sent_ms;
    taken->reading = partition->reading;
    taken->value = arena_copy(&taken->arena, message->value, message->size);
    taken->size = message->size;
    const char *fault;
    if (!wire_unpack(taken->value, taken->size, &taken->arena, &taken->command, &taken->sender, &fault))
        taken->fault = fault;
    taken->command.sent.may_be_again = !partition->has_seen_end;
    partition->seen_offset = message->offset + 1;
    list_append(&partition->waiting, &taken->node);
    partition->waiting_count++;
    counter_add(COUNTER_ORDER_TAKEN, 1);
    return true;
}

static int64_t first_offset(const struct list *commands, int64_t otherwise)
{
    return list_empty(commands) ? otherwise : CONTAINER_OF(commands->next, const struct taken, node)->offset;
}

static void find_next(struct partition *partition)
{
    int64_t waiting = first_offset(&partition->waiting, partition->seen_offset);
    int64_t running = first_offset(&partition->running, partition->seen_offset);
    partition->fence.next_offset = waiting < running ? waiting : running;
}

void partition_skip(struct partition *partition, int64_t offset)
{
    LIST_FOR_EACH_SAFE(node, &partition->waiting) {
        struct taken *taken = CONTAINER_OF(node, struct taken, node);
        if (taken->offset >= offset)
            break;
        list_remove(node);
        partition->waiting_count--;
        taken_free(taken);
    }
    if (partition->seen_offset < offset)
        partition->seen_offset = offset;
    find_next(partition); /* some that came since may be answered already */
}

void partition_doubt(struct partition *partition)
{
    LIST_FOR_EACH(node, &partition->waiting)
        CONTAINER_OF(node, struct taken, node)->command.sent.may_be_again = true;
}

void partition_noted(struct partition *partition, int64_t offset)
{
    if (offset <= partition->noted_offset)
        return;
    partition->noted_offset = offset;
    if (partition->is_assigned)
        broker_commit(partition->shared->config.broker, partition->fence.topic, partition->fence.partition,
                      offset);
}

void partition_fenced(struct partition *partition)
{
    if (partition->state != PARTITION_OPEN)
        return;
    log_write(LOG_WARN, "another node has claimed the partition", "\"topic\":\"%s\",\"partition\":%d",
              partition->fence.topic, partition->fence.partition);
    partition->state = PARTITION_WANTED;
    partition->is_doubted = true;
    partition->retry_at_ms = 0;
}

void partition_begin_anew(struct partition *partition)
{
    log_write(LOG_ERROR, "the topic was made anew; it is read from its beginning",
              "\"topic\":\"%s\",\"partition\":%d,\"next_offset\":%lld", partition->fence.topic,
              partition->fence.partition, (long long)partition->fence.next_offset);
    partition_drop_waiting(partition);
    partition->resets = true;
    partition->anew_at_ms = 0;
    partition->reading++;
    partition->seen_offset = 0;
    partition->has_seen_end = false;
    partition->state = PARTITION_WANTED;
    partition->retry_at_ms = 0;
    broker_rewind(partition->shared->config.broker, partition->fence.topic, partition->fence.partition);
}

bool partition_is_gone(const struct partition *partition)
{
    bool is_under_way = partition->state == PARTITION_LOOKING || partition->state == PARTITION_CATCHING_UP;
    return !partition->is_assigned && !is_under_way && !partition->is_in_batch &&
           partition->running_count == 0;
}

bool partition_comes_again(const struct partition *partition, const struct taken *taken)
{
    return taken->reading != partition->reading;
}

/* It is not answered here: whatever still is, next_offset does not pass it. */
static void drop(struct partition *partition, struct taken *taken)
{
    list_remove(&taken->node);
    if (taken->offset < partition->seen_offset && !partition_comes_again(partition, taken))
        partition->seen_offset = taken->offset;
    taken_free(taken);
}

void partition_drop_waiting(struct partition *partition)
{
    while (!list_empty(&partition->waiting))
        drop(partition, CONTAINER_OF(partition->waiting.next, struct taken, node));
    partition->waiting_count = 0;
}

void partition_drop(struct partition *partition, struct taken *taken)
{
    partition->running_count--;
    drop(partition, taken);
}

void partition_put_back(struct partition *partition, struct taken *taken)
{
    list_remove(&taken->node);
    partition->running_count--;
    command_deinit(&taken->command);
    taken->command.result = (struct result){0};
    taken->command.has_key = true;
    taken->command.sent.may_be_again = true;
    struct list *before = &partition->waiting;
    LIST_FOR_EACH(node, &partition->waiting) {
        if (CONTAINER_OF(node, struct taken, node)->offset > taken->offset) {
            before = node;
            break;
        }
    }
    list_append(before, &taken->node); /* in front of it */
    partition->waiting_count++;
}

/* Mostly the last; one that is tried again may be older than what the lane has. */
struct taken *partition_give(struct partition *partition)
{
    struct taken *taken = CONTAINER_OF(list_pop(&partition->waiting), struct taken, node);
    partition->waiting_count--;
    struct list *after = partition->running.prev;
    while (after != &partition->running && CONTAINER_OF(after, struct taken, node)->offset > taken->offset)
        after = after->prev;
    list_append(after->next, &taken->node); /* in front of what follows it */
    partition->running_count++;
    return taken;
}

void partition_forget(struct partition *partition, struct taken *taken)
{
    list_remove(&taken->node);
    partition->running_count--;
    find_next(partition);
    taken_free(taken);
}
