/* SPDX-License-Identifier: Apache-2.0
 * The side that decides: commands of the partitions that are this node's go to
 * the lane in the order they were sent, and their answers to whoever sent them.
 *
 * What the store did not take is tried again, and its partition waits: nothing
 * is skipped. What cannot be understood, or makes the store refuse its data, goes
 * to the dead letters, and who sent it is told. */
#include "base/log.h"
#include "base/metrics.h"
#include "order/shared_int.h"

enum {
    RETRY_MS_MIN = 50,
    RETRY_MS_MAX = 1000,
    DEAD_LETTER_SIZE_MAX =
        512 * 1024,      /* with its headers it must fit into a message: its beginning tells enough */
    FULL_RETRY_MS = 10,  /* until there is room for a dead letter */
    GIVE_COUNT_MAX = 64, /* a partition's commands to the lane at a time: others have some too */
    LINE_COUNT_MAX = ORDER_TAKEN_COUNT_MAX / 8,
};

void owner_init(struct shared *shared)
{
    list_init(&shared->owner.partitions);
    arena_init(&shared->owner.claiming.batch.arena);
}

void owner_stop(struct shared *shared)
{
    struct list *node;
    while ((node = list_pop(&shared->owner.partitions)) != NULL) {
        struct partition *partition = CONTAINER_OF(node, struct partition, node);
        struct list *running;
        while ((running = list_pop(&partition->running)) != NULL)
            taken_free(CONTAINER_OF(running, struct taken, node));
        list_init(&partition->fence.line); /* they stood there */
        partition_destroy(partition);
    }
    arena_deinit(&shared->owner.claiming.batch.arena);
}

static struct partition *find(struct shared *shared, const char *topic, int32_t number)
{
    LIST_FOR_EACH(node, &shared->owner.partitions) {
        struct partition *partition = CONTAINER_OF(node, struct partition, node);
        if (partition->fence.partition == number && partition->fence.topic == topic)
            return partition;
    }
    return NULL;
}

/* ---- What the broker says ---- */

void owner_on_assigned(void *context, const char *topic, int32_t number)
{
    struct shared *shared = context;
    struct partition *partition = find(shared, topic, number);
    if (partition == NULL)
        partition = partition_create(shared, topic, number);
    partition->is_assigned = true;
    partition->is_paused = false;
    partition->reading++;
    partition->anew_at_ms = 0;
    partition->resets = false;
    partition->seen_offset = 0;
    partition->has_seen_end = false;
    partition->retry_at_ms = 0;
    partition->is_doubted = false;
    if (partition->state == PARTITION_OPEN || partition->state == PARTITION_CLAIMABLE)
        partition->state = PARTITION_WANTED; /* somebody else may have had it meanwhile */
}

void owner_on_revoked(void *context, const char *topic, int32_t number, bool lost)
{
    struct shared *shared = context;
    struct partition *partition = find(shared, topic, number);
    if (partition == NULL)
        return;
    log_write(LOG_DEBUG, lost ? "partition lost" : "partition given up", "\"topic\":\"%s\",\"partition\":%d",
              topic, number);
    partition->is_assigned = false;
    partition_drop_waiting(partition); /* they come to whoever has it next */
    if (partition->state == PARTITION_OPEN || partition->state == PARTITION_CLAIMABLE)
        partition->state = PARTITION_WANTED;
}

void owner_on_confirmed(void *context, const char *topic, int32_t number)
{
    struct partition *partition = find(context, topic, number);
    if (partition == NULL || !partition->is_assigned || !partition->is_doubted)
        return;
    partition->is_doubted = false;
    partition->retry_at_ms = 0;
}

void owner_on_end(void *context, const char *topic, int32_t number, int64_t next_offset)
{
    struct partition *partition = find(context, topic, number);
    /* Before the claim, whoever had it may still decide what comes. */
    if (partition == NULL ||
        (partition->state != PARTITION_CATCHING_UP && partition->state != PARTITION_OPEN))
        return;
    partition->has_seen_end = true;
    /* Less was ever sent than is done: this is another log than that was. Or this end is an old one, and the rest of what
     * whoever had it before has done is on its way. */
    if (next_offset >= partition->fence.next_offset)
        partition->anew_at_ms = 0;
    else if (partition->anew_at_ms == 0)
        partition->anew_at_ms = partition->shared->now_ms + PARTITION_ANEW_MS;
}

void owner_on_command(void *context, const struct broker_message *message)
{
    struct shared *shared = context;
    struct partition *partition = find(shared, message->topic, message->partition);
    if (partition == NULL || !partition->is_assigned)
        return;
    if (message->offset + 1 >= partition->fence.next_offset)
        partition->anew_at_ms = 0;
    if (!partition_take(partition, message))
        return;
    if (partition->waiting_count >= ORDER_QUEUE_COUNT_MAX && !partition->is_paused) {
        partition->is_paused = true;
        broker_pause(shared->config.broker, message->topic, message->partition, true);
    }
}

/* ---- Answers ---- */

static void reply(struct shared *shared, struct taken *taken)
{
    size_t size;
    const void *answer = lane_pack_answer(&taken->command, &size);
    const char *node_name = taken->sender.node_name;
    if (strcmp(node_name, shared->node_name) == 0) {
        edge_answer(shared, &taken->sender.id, answer, size);
        return;
    }
    if (node_name[0] == '\0')
        return;
    struct buf *out = &shared->out;
    buf_clear(out);
    wire_pack_reply(&taken->sender.id, answer, size, out);
    /* Without room for it its caller gets 202, and finds the answer in the store. */
    if (buf_ok(out) && broker_send_reply(shared->config.broker, node_name, out->data, out->size) == ERR_OK)
        counter_add(COUNTER_ORDER_REPLIES, 1);
}

/* False: there is no room for it now. */
static bool bury(struct shared *shared, const struct taken *taken, const char *reason)
{
    const struct broker_message message = {
        .topic = taken->partition->fence.topic,
        .partition = taken->partition->fence.partition,
        .offset = taken->offset,
        .sent_ms = taken->sent_ms,
        .value = taken->value,
        .size = taken->size < DEAD_LETTER_SIZE_MAX ? taken->size : DEAD_LETTER_SIZE_MAX,
    };
    if (broker_send_dead_letter(shared->config.broker, &message, reason) == ERR_OVERLOADED)
        return false;
    counter_add(COUNTER_ORDER_DEAD_LETTERS, 1);
    log_write(LOG_ERROR, "a command went to the dead letters",
              "\"topic\":\"%s\",\"partition\":%d,\"offset\":%lld,\"reason\":\"%s\"", message.topic,
              message.partition, (long long)message.offset, reason);
    return true;
}

/* Past its deadline too: an earlier try may have done it, and only its key says so. With that looked for, and not found,
 * it is refused for being late, and that is written. */
static bool is_to_be_tried_again(const struct taken *taken)
{
    switch (taken->command.result.err) {
    case ERR_OUTCOME_UNKNOWN:
    case ERR_STORE_UNAVAILABLE:
    case ERR_OVERLOADED:
    case ERR_SEAT_RESERVATION_FAILED: /* told, but not written: the next owner might do it after all */
        return !taken->command.sent.is_written;
    default:
        return false;
    }
}

static void try_again(struct shared *shared, struct taken *taken)
{
    struct partition *partition = taken->partition;
    taken->was_unknown = taken->was_unknown || taken->command.result.err == ERR_OUTCOME_UNKNOWN;
    partition_put_back(partition, taken);
    counter_add(COUNTER_ORDER_RETRIES, 1);
    if (partition->fence.is_stalled)
        return; /* it was behind the one that failed */
    int64_t delay_ms = (int64_t)RETRY_MS_MIN << (partition->try_count < 5 ? partition->try_count : 5);
    partition->try_count++;
    partition->retry_at_ms = shared->now_ms + (delay_ms < RETRY_MS_MAX ? delay_ms : RETRY_MS_MAX);
    partition->fence.is_stalled = true;
}

static void answer(struct shared *shared, struct taken *taken)
{
    struct partition *partition = taken->partition;
    struct result *result = &taken->command.result;
    if (result->err == ERR_INTERNAL)
        (void)bury(shared, taken, "its data were refused, or its answer cannot be made");
    if (result->err == ERR_OVERLOADED && taken->was_unknown && !taken->command.sent.is_key_made)
        result->err = ERR_OUTCOME_UNKNOWN; /* “nothing was done” would be too much said */
    /* What comes here was written, or needs no store: it goes well again. */
    if (!partition->fence.is_stalled) {
        partition->try_count = 0;
        partition->retry_at_ms = 0;
    }
    reply(shared, taken);
    if (taken->command.sent.noted_offset > 0)
        partition_noted(partition, taken->command.sent.noted_offset);
    partition_forget(partition, taken);
}

/* The lane is done with it. */
static void on_done(struct command *command)
{
    struct taken *taken = CONTAINER_OF(command, struct taken, command);
    struct partition *partition = taken->partition;
    struct shared *shared = partition->shared;
    shared->owner.taken_count--;
    bool is_fenced = command->sent.is_fenced;
    bool is_again = !is_fenced && is_to_be_tried_again(taken);
    if (is_fenced) {
        counter_add(COUNTER_ORDER_FENCED, 1);
        partition_fenced(partition);
    }
    bool is_elsewhere = !partition->is_assigned || partition_comes_again(partition, taken);
    if (shared->is_stopped || ((is_fenced || is_again) && is_elsewhere)) {
        /* Whoever has the partition next decides and answers it; or this node, when it comes again. */
        partition_drop(partition, taken);
    } else if (is_fenced) {
        command->sent.is_fenced = false;
        partition_put_back(partition,
                           taken); /* if the broker still says that it is ours, it is claimed anew */
    } else if (is_again) {
        try_again(shared, taken);
    } else {
        answer(shared, taken);
    }
}

/* ---- To the lane ---- */

/* False: it waits for room in the broker's queue. */
static bool give_up(struct shared *shared, struct taken *taken)
{
    if (!bury(shared, taken, taken->fault))
        return false;
    command_init(&taken->command, COMMAND_HOLD_SEATS, &taken->arena);
    taken->command.result = (struct result){
        .err = ERR_INTERNAL, .message = "The command could not be processed.", .now_ms = shared->now_ms};
    reply(shared, taken);
    partition_forget(taken->partition, taken);
    return true;
}

static bool give_next(struct shared *shared, struct partition *partition)
{
    struct taken *taken = partition_give(partition);
    if (taken->fault != NULL) {
        if (give_up(shared, taken))
            return true;
        partition_put_back(partition, taken);
        return false;
    }
    partition->fence.is_stalled = false;
    taken->command.on_done = on_done;
    taken->command.sent.fence = &partition->fence;
    taken->command.sent.noted_offset = 0;
    taken->command.sent.is_written = false;
    shared->owner.taken_count++;
    lane_take(shared->config.lane, &taken->command);
    return true;
}

static bool may_give(const struct shared *shared, const struct partition *partition)
{
    if (partition->state != PARTITION_OPEN || partition->waiting_count == 0 || shared->is_leaving)
        return false;
    /* If they stand in line there, more would only take the place of other partitions' commands. */
    if (!list_empty(&partition->fence.line) && partition->running_count >= LINE_COUNT_MAX)
        return false;
    /* After a failure all of it comes back first, and is tried again in its order. */
    return partition->retry_at_ms == 0 ||
           (partition->running_count == 0 && shared->now_ms >= partition->retry_at_ms);
}

static void give(struct shared *shared, struct partition *partition)
{
    for (int32_t i = 0; i < GIVE_COUNT_MAX && may_give(shared, partition); i++) {
        if (shared->owner.taken_count >= ORDER_TAKEN_COUNT_MAX || !give_next(shared, partition))
            return;
        if (partition->retry_at_ms != 0)
            return; /* one, to see how it goes */
    }
    if (partition->is_paused && partition->waiting_count < ORDER_QUEUE_COUNT_MAX / 2) {
        partition->is_paused = false;
        broker_pause(shared->config.broker, partition->fence.topic, partition->fence.partition, false);
    }
}

/* When it is worth looking again; what the store or the lane has to say first wakes the lane by itself. */
static int64_t next_give_ms(const struct shared *shared, const struct partition *partition)
{
    if (partition->state != PARTITION_OPEN || partition->waiting_count == 0 || shared->is_leaving)
        return INT64_MAX;
    if (may_give(shared, partition) && shared->owner.taken_count >= ORDER_TAKEN_COUNT_MAX)
        return INT64_MAX;
    if (may_give(shared, partition)) {
        bool is_dead = CONTAINER_OF(partition->waiting.next, const struct taken, node)->fault != NULL;
        return shared->now_ms + (is_dead ? FULL_RETRY_MS : 0);
    }
    return partition->running_count == 0 ? partition->retry_at_ms : INT64_MAX;
}

int64_t owner_turn(struct shared *shared)
{
    int64_t next_ms = claim_turn(shared);
    LIST_FOR_EACH_SAFE(node, &shared->owner.partitions) {
        struct partition *partition = CONTAINER_OF(node, struct partition, node);
        give(shared, partition);
        int64_t at_ms = next_give_ms(shared, partition);
        next_ms = at_ms < next_ms ? at_ms : next_ms;
        if (partition_is_gone(partition))
            partition_destroy(partition);
    }
    /* The first give way to the others next time. */
    if (!list_empty(&shared->owner.partitions))
        list_append(&shared->owner.partitions, list_pop(&shared->owner.partitions));
    return next_ms;
}
