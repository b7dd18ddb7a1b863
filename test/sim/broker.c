/* SPDX-License-Identifier: Apache-2.0
 * See broker.h.
 *
 *   a partition   wanted by the group: another node ─▶ asked back ─▶ given back ─▶ assigned
 *                 its owner is thrown out ────────────────────────────────────▶ assigned;
 *                                                 the old one hears later that it was lost */
#include "broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "order/place.h"
#include "order/wire.h"

enum {
    POLL_COUNT_MAX = 24,       /* messages of one poll */
    SILENT_MS_MAX = 8000,      /* a member that does not poll for so long is thrown out */
    MISSED_MS_MAX = 5000,      /* a dead one is missed after this at the latest */
    REWIND_COUNT_MAX = 100,    /* how far back a reader begins that was forgotten, mostly */
    LATE_STORED_MS_MAX = 3000, /* one of unknown fate may still come into the log after its sender gave up */
};

enum news_kind { NEWS_ASSIGNED, NEWS_REVOKED, NEWS_LOST, NEWS_CONFIRMED };

struct news { /* of the group, to one node */
    struct list node;
    enum news_kind kind;
    struct sim_partition *partition;
    int64_t at_ms;
};

struct report { /* what became of a command */
    struct list node;
    void *owner;
    enum broker_outcome outcome;
    int64_t at_ms;
};

struct reply {
    struct list node;
    int64_t at_ms;
    size_t size;
    char value[];
};

struct sim_broker {
    struct broker broker;
    struct sim_log *log;
    int32_t index;
    bool is_alive; /* somebody polls it, or will */
    bool is_member;
    bool is_leaving;
    bool is_thrown_out; /* and joins again when it has heard of that */
    int64_t polled_ms;
    struct list news;
    struct list reports;
    struct list replies;
};

/* ---- Dice ---- */

static bool dice(struct sim_log *log, uint32_t thousandths)
{
    return rng_below(&log->rng, 1000) < thousandths;
}

static int64_t delay(struct sim_log *log, int64_t longest_ms)
{
    return (int64_t)rng_below(&log->rng, (uint64_t)longest_ms + 1);
}

/* ---- Topics ---- */

static struct sim_partition *find_partition(const struct sim_log *log, const char *topic, int32_t number)
{
    LIST_FOR_EACH(node, &log->partitions) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (partition->number == number && strcmp(partition->topic, topic) == 0)
            return partition;
    }
    return NULL;
}

static int32_t any_member(struct sim_log *log)
{
    int32_t members[SIM_LOG_NODE_COUNT_MAX], count = 0;
    for (int32_t i = 0; i < SIM_LOG_NODE_COUNT_MAX; i++) {
        if (log->nodes[i] != NULL && log->nodes[i]->is_member)
            members[count++] = i;
    }
    return count > 0 ? members[rng_below(&log->rng, (uint64_t)count)] : -1;
}

static void make_topic(struct sim_log *log, const char *topic)
{
    if (find_partition(log, topic, 0) != NULL)
        return;
    const char *name = NULL;
    for (int32_t i = 0; i < log->partition_count; i++) {
        struct sim_partition *partition = calloc(1, sizeof(*partition));
        CHECK(partition != NULL);
        partition->log = log;
        snprintf(partition->topic, sizeof(partition->topic), "%s", topic);
        name = name != NULL ? name : partition->topic;
        partition->topic_name = name;
        partition->number = i;
        partition->owner = partition->wanted = -1;
        list_append(&log->partitions, &partition->node);
    }
}

/* ---- The log ---- */

struct sim_log *sim_log_create(uint64_t seed, int32_t partition_count)
{
    struct sim_log *log = calloc(1, sizeof(*log));
    CHECK(log != NULL);
    rng_init_seed(&log->rng, seed);
    log->partition_count = partition_count;
    list_init(&log->partitions);
    list_init(&log->letters);
    list_init(&log->sending);
    make_topic(log, ORDER_PREFIX ".commands");
    return log;
}

static void letter_free(struct letter *letter)
{
    free(letter->model);
    free(letter->value);
    free(letter);
}

void sim_log_destroy(struct sim_log *log)
{
    struct list *node;
    while ((node = list_pop(&log->letters)) != NULL)
        letter_free(CONTAINER_OF(node, struct letter, node));
    while ((node = list_pop(&log->partitions)) != NULL) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        free(partition->letters);
        free(partition);
    }
    free(log);
}

void sim_log_set_faults(struct sim_log *log, const struct sim_log_faults *faults)
{
    log->faults = *faults;
}

static void append(struct sim_log *log, struct letter *letter)
{
    struct sim_partition *partition = letter->partition;
    if (partition->count == partition->capacity) {
        partition->capacity = partition->capacity == 0 ? 64 : partition->capacity * 2;
        partition->letters =
            realloc(partition->letters, sizeof(*partition->letters) * (size_t)partition->capacity);
        CHECK(partition->letters != NULL);
    }
    letter->offset = partition->count;
    partition->letters[partition->count++] = letter;
    int64_t visible_ms = log->now_ms + delay(log, log->faults.delay_ms_max);
    if (visible_ms < partition->visible_ms)
        visible_ms = partition->visible_ms;
    partition->visible_ms = letter->at_ms = visible_ms;
}

static void append_due(struct sim_log *log)
{
    LIST_FOR_EACH_SAFE(node, &log->sending) {
        struct letter *letter = CONTAINER_OF(node, struct letter, sending);
        if (letter->at_ms > log->now_ms)
            continue;
        list_remove(node);
        append(log, letter);
    }
}

static struct letter *make_letter(struct sim_log *log, struct sim_partition *partition, const void *value,
                                  size_t size)
{
    struct letter *letter = calloc(1, sizeof(*letter));
    CHECK(letter != NULL);
    list_append(&log->letters, &letter->node);
    list_init(&letter->sending);
    letter->partition = partition;
    letter->offset = -1;
    letter->sender = -1;
    letter->value = malloc(size + 1);
    CHECK(letter->value != NULL);
    memcpy(letter->value, value, size);
    letter->size = size;
    return letter;
}

/* A sender's letters to a partition arrive in the order they were sent, whatever happens to one of them. */
static void send(struct sim_log *log, struct letter *letter, int64_t at_ms)
{
    LIST_FOR_EACH(node, &log->sending) {
        const struct letter *other = CONTAINER_OF(node, struct letter, sending);
        if (other->sender == letter->sender && other->partition == letter->partition && other->at_ms > at_ms)
            at_ms = other->at_ms;
    }
    letter->at_ms = at_ms;
    list_append(&log->sending, &letter->sending);
}

void sim_log_spoil(struct sim_log *log)
{
    int64_t partition_count = 0;
    LIST_FOR_EACH(node, &log->partitions)
        partition_count++;
    int64_t which = (int64_t)rng_below(&log->rng, (uint64_t)partition_count);
    struct sim_partition *partition = NULL;
    LIST_FOR_EACH(node, &log->partitions) {
        if (which-- == 0)
            partition = CONTAINER_OF(node, struct sim_partition, node);
    }
    struct letter *letter;
    if (partition->count > 0 && rng_below(&log->rng, 2) == 0) { /* half of one that was sent before */
        const struct letter *whole = partition->letters[rng_below(&log->rng, (uint64_t)partition->count)];
        letter = make_letter(log, partition, whole->value, (whole->size + 1) / 2);
    } else {
        char noise[64];
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)rng_below(&log->rng, 256);
        letter = make_letter(log, partition, noise, (size_t)rng_below(&log->rng, sizeof(noise)));
    }
    letter->is_spoiled = true;
    send(log, letter, log->now_ms);
}

/* ---- The group ---- */

static void tell(struct sim_broker *broker, enum news_kind kind, struct sim_partition *partition,
                 int64_t at_ms)
{
    struct news *news = calloc(1, sizeof(*news));
    CHECK(news != NULL);
    *news = (struct news){.kind = kind, .partition = partition, .at_ms = at_ms};
    list_append(&broker->news, &news->node);
}

static void forget_news(struct sim_broker *broker)
{
    struct list *node;
    while ((node = list_pop(&broker->news)) != NULL)
        free(CONTAINER_OF(node, struct news, node));
}

void sim_log_rebalance(struct sim_log *log)
{
    log->rebalance_count++;
    LIST_FOR_EACH(node, &log->partitions) {
        if (rng_below(&log->rng, 2) == 0)
            CONTAINER_OF(node, struct sim_partition, node)->wanted = any_member(log);
    }
}

static void join(struct sim_broker *broker)
{
    broker->is_member = true;
    broker->is_thrown_out = false;
    broker->polled_ms = broker->log->now_ms;
    sim_log_rebalance(broker->log);
}

void sim_log_expire(struct sim_log *log, int32_t index)
{
    struct sim_broker *broker = log->nodes[index];
    if (broker == NULL || !broker->is_member)
        return;
    log->expiry_count++;
    broker->is_member = false;
    broker->is_thrown_out = true;
    forget_news(broker);
    int64_t at_ms = log->now_ms + delay(log, log->faults.news_ms_max);
    LIST_FOR_EACH(node, &log->partitions) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (partition->owner == index) {
            partition->owner = -1;
            partition->is_asked_back = false;
        }
        if (partition->readers[index].has_it)
            tell(broker, NEWS_LOST, partition, at_ms);
    }
}

static bool is_member(const struct sim_log *log, int32_t index)
{
    return index >= 0 && log->nodes[index] != NULL && log->nodes[index]->is_member;
}

static void group_turn(struct sim_log *log)
{
    for (int32_t i = 0; i < SIM_LOG_NODE_COUNT_MAX; i++) {
        struct sim_broker *broker = log->nodes[i];
        if (broker != NULL && broker->is_member && log->now_ms - broker->polled_ms > SILENT_MS_MAX)
            sim_log_expire(log, i);
    }
    LIST_FOR_EACH(node, &log->partitions) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (!is_member(log, partition->wanted))
            partition->wanted = any_member(log);
        if (partition->wanted < 0 || partition->wanted == partition->owner)
            continue;
        int64_t at_ms = log->now_ms + delay(log, log->faults.delay_ms_max);
        if (partition->owner >= 0) {
            if (!partition->is_asked_back)
                tell(log->nodes[partition->owner], NEWS_REVOKED, partition, at_ms);
            partition->is_asked_back = true;
        } else if (log->now_ms >= partition->free_at_ms && !partition->readers[partition->wanted].has_it) {
            partition->owner = partition->wanted;
            partition->is_asked_back = false;
            tell(log->nodes[partition->owner], NEWS_ASSIGNED, partition, at_ms);
        }
    }
}

void sim_log_set_now(struct sim_log *log, int64_t now_ms)
{
    log->now_ms = now_ms;
    append_due(log);
    group_turn(log);
}

int64_t sim_log_next_ms(const struct sim_log *log)
{
    int64_t next_ms = INT64_MAX;
    LIST_FOR_EACH(node, &log->sending) {
        const struct letter *letter = CONTAINER_OF(node, struct letter, sending);
        next_ms = letter->at_ms < next_ms ? letter->at_ms : next_ms;
    }
    for (int32_t i = 0; i < SIM_LOG_NODE_COUNT_MAX; i++) {
        if (log->nodes[i] == NULL)
            continue;
        LIST_FOR_EACH(node, &log->nodes[i]->replies) {
            const struct reply *reply = CONTAINER_OF(node, struct reply, node);
            next_ms = reply->at_ms < next_ms ? reply->at_ms : next_ms;
        }
    }
    return next_ms;
}

bool sim_log_is_settled(const struct sim_log *log)
{
    if (!list_empty(&log->sending))
        return false;
    LIST_FOR_EACH(node, &log->partitions) {
        const struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (partition->owner < 0 || partition->owner != partition->wanted)
            return false;
        const struct sim_reader *reader = &partition->readers[partition->owner];
        if (!reader->has_it || reader->position < partition->count)
            return false;
    }
    return true;
}

/* ---- One node's ---- */

static struct sim_broker *broker_of(struct broker *broker)
{
    return (struct sim_broker *)broker;
}

static enum broker_outcome draw_outcome(struct sim_log *log)
{
    if (dice(log, log->faults.not_stored))
        return BROKER_NOT_STORED;
    return dice(log, log->faults.unknown) ? BROKER_UNKNOWN : BROKER_STORED;
}

static void report_later(struct sim_broker *broker, void *owner, enum broker_outcome outcome, int64_t at_ms)
{
    struct report *report = calloc(1, sizeof(*report));
    CHECK(report != NULL);
    *report = (struct report){.owner = owner, .outcome = outcome, .at_ms = at_ms};
    list_append(&broker->reports, &report->node);
}

static enum err send_command(struct broker *base, const char *topic, int32_t number, const struct uuid *id,
                             const void *value, size_t size, void *owner)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_log *log = broker->log;
    if (dice(log, log->faults.full))
        return ERR_OVERLOADED;
    make_topic(log, topic);
    struct letter *letter = make_letter(log, find_partition(log, topic, number), value, size);
    CHECK(letter->partition != NULL);
    letter->id = *id;
    letter->sender = broker->index;
    log->on_letter(log->context, letter);
    enum broker_outcome outcome = draw_outcome(log);
    int64_t stored_ms = log->now_ms + delay(log, log->faults.delay_ms_max);
    int64_t told_ms = stored_ms + delay(log, log->faults.delay_ms_max);
    if (outcome != BROKER_STORED)
        told_ms = log->now_ms + delay(log, log->faults.send_ms_max);
    if (outcome == BROKER_UNKNOWN)
        stored_ms = log->now_ms + delay(log, LATE_STORED_MS_MAX);
    bool is_stored = outcome == BROKER_STORED || (outcome == BROKER_UNKNOWN && rng_below(&log->rng, 2) == 0);
    if (is_stored)
        send(log, letter, stored_ms);
    report_later(broker, owner, outcome, told_ms);
    return ERR_OK;
}

static void reply_later(struct sim_log *log, struct sim_broker *to, const void *value, size_t size,
                        int64_t at_ms)
{
    (void)log;
    struct reply *reply = calloc(1, sizeof(*reply) + size);
    CHECK(reply != NULL);
    reply->at_ms = at_ms;
    reply->size = size;
    memcpy(reply->value, value, size);
    list_append(&to->replies, &reply->node);
}

static enum err send_reply(struct broker *base, const char *node_name, const void *value, size_t size)
{
    struct sim_log *log = broker_of(base)->log;
    struct uuid id;
    const void *answer;
    size_t answer_size;
    CHECK(wire_unpack_reply(value, size, &id, &answer, &answer_size));
    struct letter *letter = log->find_letter(log->context, &id);
    if (letter != NULL)
        letter->is_replied = true;
    struct sim_broker *to = NULL;
    for (int32_t i = 0; i < SIM_LOG_NODE_COUNT_MAX; i++) {
        if (log->nodes[i] != NULL && strcmp(sim_log_node_name(i), node_name) == 0)
            to = log->nodes[i];
    }
    if (dice(log, log->faults.lose_reply))
        return rng_below(&log->rng, 2) == 0 ? ERR_OVERLOADED : ERR_OK;
    if (to == NULL)
        return ERR_OK;
    int64_t at_ms = log->now_ms + delay(log, log->faults.delay_ms_max);
    reply_later(log, to, value, size, at_ms);
    if (dice(log, log->faults.reply_twice))
        reply_later(log, to, value, size, at_ms + delay(log, 4000));
    return ERR_OK;
}

static enum err send_dead_letter(struct broker *base, const struct broker_message *message,
                                 const char *reason)
{
    struct sim_log *log = broker_of(base)->log;
    CHECK(reason != NULL);
    if (dice(log, log->faults.full))
        return ERR_OVERLOADED;
    struct sim_partition *partition = find_partition(log, message->topic, message->partition);
    CHECK(partition != NULL);
    CHECK(message->offset < partition->count);
    struct letter *letter = partition->letters[message->offset];
    CHECK(letter->size == message->size && memcmp(letter->value, message->value, message->size) == 0);
    letter->is_buried = true;
    log->dead_letter_count++;
    return ERR_OK;
}

static void pause_reading(struct broker *base, const char *topic, int32_t number, bool paused)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_partition *partition = find_partition(broker->log, topic, number);
    CHECK(partition != NULL);
    partition->readers[broker->index].is_paused = paused;
}

static void rewind_reading(struct broker *base, const char *topic, int32_t number)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_partition *partition = find_partition(broker->log, topic, number);
    CHECK(partition != NULL);
    struct sim_reader *reader = &partition->readers[broker->index];
    reader->position = 0;
    reader->is_end_due = reader->is_end_told = false;
}

/* Only its owner's word counts. */
static void commit(struct broker *base, const char *topic, int32_t number, int64_t next_offset)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_partition *partition = find_partition(broker->log, topic, number);
    CHECK(partition != NULL);
    CHECK(next_offset >= 0 && next_offset <= partition->count);
    if (partition->owner == broker->index)
        partition->committed = next_offset;
}

/* Some questions and answers are lost, and none comes to who has lost the partition. */
static void confirm(struct broker *base, const char *topic, int32_t number, int64_t next_offset)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_log *log = broker->log;
    struct sim_partition *partition = find_partition(log, topic, number);
    CHECK(partition != NULL);
    CHECK(next_offset >= 0);
    if (partition->owner == broker->index && !broker->is_thrown_out && rng_below(&log->rng, 4) != 0)
        tell(broker, NEWS_CONFIRMED, partition, log->now_ms + delay(log, log->faults.delay_ms_max));
}

static void make_topic_of(struct broker *base, const char *topic)
{
    make_topic(broker_of(base)->log, topic);
}

static bool is_idle(struct broker *base)
{
    return list_empty(&broker_of(base)->reports);
}

static int fd(struct broker *base)
{
    (void)base;
    return -1;
}

/* ---- Polling ---- */

static int64_t begin_offset(struct sim_log *log, const struct sim_partition *partition)
{
    if (!dice(log, log->faults.forget))
        return partition->committed;
    uint64_t furthest = rng_below(&log->rng, 8) == 0 ? (uint64_t)partition->committed : REWIND_COUNT_MAX;
    int64_t offset = partition->committed - (int64_t)rng_below(&log->rng, furthest + 1);
    return offset > 0 ? offset : 0;
}

static void hear(struct sim_broker *broker, const struct news *news)
{
    struct sim_partition *partition = news->partition;
    struct sim_reader *reader = &partition->readers[broker->index];
    const struct broker_events *events = &broker->broker.events;
    if (news->kind == NEWS_ASSIGNED) {
        if (partition->owner != broker->index)
            return;
        *reader = (struct sim_reader){.has_it = true, .position = begin_offset(broker->log, partition)};
        events->on_assigned(events->context, partition->topic_name, partition->number);
        return;
    }
    if (news->kind == NEWS_CONFIRMED) {
        if (reader->has_it)
            events->on_confirmed(events->context, partition->topic_name, partition->number);
        return;
    }
    if (partition->owner == broker->index) {
        partition->owner = -1;
        partition->is_asked_back = false;
    }
    if (!reader->has_it)
        return; /* it was taken away before it came */
    reader->has_it = false;
    events->on_revoked(events->context, partition->topic_name, partition->number, news->kind == NEWS_LOST);
}

static void poll_news(struct sim_broker *broker)
{
    LIST_FOR_EACH_SAFE(node, &broker->news) {
        struct news *news = CONTAINER_OF(node, struct news, node);
        if (news->at_ms > broker->log->now_ms)
            break;
        list_remove(node);
        hear(broker, news);
        free(news);
    }
    if (broker->is_thrown_out && list_empty(&broker->news) && !broker->is_leaving)
        join(broker);
}

static void poll_reports(struct sim_broker *broker)
{
    LIST_FOR_EACH_SAFE(node, &broker->reports) {
        struct report *report = CONTAINER_OF(node, struct report, node);
        if (report->at_ms > broker->log->now_ms)
            continue;
        list_remove(node);
        broker->broker.events.on_sent(broker->broker.events.context, report->owner, report->outcome);
        free(report);
    }
}

static void poll_replies(struct sim_broker *broker)
{
    LIST_FOR_EACH_SAFE(node, &broker->replies) {
        struct reply *reply = CONTAINER_OF(node, struct reply, node);
        if (reply->at_ms > broker->log->now_ms)
            continue;
        list_remove(node);
        struct broker_message message = {.topic = "replies", .value = reply->value, .size = reply->size};
        broker->broker.events.on_reply(broker->broker.events.context, &message);
        free(reply);
    }
}

/* The end of it is told as it was when the reader came there; something may have been sent since. */
static void read_end(struct sim_broker *broker, struct sim_partition *partition)
{
    struct sim_reader *reader = &partition->readers[broker->index];
    const struct broker_events *events = &broker->broker.events;
    if (reader->is_end_due) {
        reader->is_end_due = false;
        reader->is_end_told = true;
        events->on_end(events->context, partition->topic_name, partition->number, reader->position);
    } else if (!reader->is_end_told && reader->position >= partition->count) {
        reader->is_end_due = true;
    }
}

static void read_some(struct sim_broker *broker, struct sim_partition *partition, int64_t *left)
{
    struct sim_log *log = broker->log;
    struct sim_reader *reader = &partition->readers[broker->index];
    const struct broker_events *events = &broker->broker.events;
    while (*left > 0 && reader->has_it && !reader->is_paused && !reader->is_end_due &&
           reader->position < partition->count) {
        const struct letter *letter = partition->letters[reader->position];
        if (letter->at_ms > log->now_ms)
            return;
        struct broker_message message = {
            .topic = partition->topic_name,
            .partition = partition->number,
            .offset = reader->position++,
            .value = letter->value,
            .size = letter->size,
        };
        reader->is_end_told = rng_below(&log->rng, 2) == 0 && reader->is_end_told;
        *left -= 1;
        events->on_command(events->context, &message);
    }
}

static int64_t poll(struct broker *base, int64_t now_ms)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_log *log = broker->log;
    broker->polled_ms = log->now_ms;
    poll_news(broker);
    poll_reports(broker);
    poll_replies(broker);
    int64_t left = 1 + (int64_t)rng_below(&log->rng, POLL_COUNT_MAX);
    LIST_FOR_EACH(node, &log->partitions) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (!partition->readers[broker->index].has_it)
            continue;
        read_end(broker, partition);
        read_some(broker, partition, &left);
    }
    return now_ms + 100;
}

static void leave(struct broker *base)
{
    struct sim_broker *broker = broker_of(base);
    broker->is_leaving = true;
    broker->is_member = false;
    forget_news(broker);
    LIST_FOR_EACH(node, &broker->log->partitions) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (partition->readers[broker->index].has_it)
            tell(broker, broker->is_thrown_out ? NEWS_LOST : NEWS_REVOKED, partition, broker->log->now_ms);
        else if (partition->owner == broker->index)
            partition->owner = -1;
    }
}

/* ---- Beginning and end ---- */

/* Its own letters that are on their way get there or not; its partitions are missed after a while. */
void sim_log_kill(struct sim_log *log, int32_t index)
{
    struct sim_broker *broker = log->nodes[index];
    broker->is_member = broker->is_thrown_out = false;
    LIST_FOR_EACH_SAFE(node, &log->sending) {
        struct letter *letter = CONTAINER_OF(node, struct letter, sending);
        if (letter->sender == index && rng_below(&log->rng, 2) == 0)
            list_remove(node);
    }
    int64_t missed_ms = log->now_ms + delay(log, MISSED_MS_MAX);
    LIST_FOR_EACH(node, &log->partitions) {
        struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        partition->readers[index] = (struct sim_reader){.has_it = false};
        if (partition->owner != index)
            continue;
        partition->owner = -1;
        partition->is_asked_back = false;
        partition->free_at_ms = missed_ms;
    }
    forget_news(broker);
}

static void destroy(struct broker *base)
{
    struct sim_broker *broker = broker_of(base);
    struct sim_log *log = broker->log;
    struct list *node;
    while ((node = list_pop(&broker->reports)) != NULL) {
        struct report *report = CONTAINER_OF(node, struct report, node);
        broker->broker.events.on_sent(broker->broker.events.context, report->owner, BROKER_UNKNOWN);
        free(report);
    }
    while ((node = list_pop(&broker->replies)) != NULL)
        free(CONTAINER_OF(node, struct reply, node));
    forget_news(broker);
    log->nodes[broker->index] = NULL;
    free(broker);
}

static const struct broker_functions functions = {
    .send_command = send_command,
    .send_reply = send_reply,
    .send_dead_letter = send_dead_letter,
    .pause = pause_reading,
    .rewind = rewind_reading,
    .commit = commit,
    .confirm = confirm,
    .make_topic = make_topic_of,
    .is_idle = is_idle,
    .fd = fd,
    .poll = poll,
    .leave = leave,
    .destroy = destroy,
};

const char *sim_log_node_name(int32_t index)
{
    static const char *const names[SIM_LOG_NODE_COUNT_MAX] = {"node-1", "node-2", "node-3", "node-4"};
    return names[index];
}

struct broker *sim_log_attach(struct sim_log *log, int32_t index)
{
    struct sim_broker *broker = calloc(1, sizeof(*broker));
    CHECK(broker != NULL);
    CHECK(log->nodes[index] == NULL);
    broker->broker.functions = &functions;
    broker->log = log;
    broker->index = index;
    list_init(&broker->news);
    list_init(&broker->reports);
    list_init(&broker->replies);
    log->nodes[index] = broker;
    join(broker);
    return &broker->broker;
}
