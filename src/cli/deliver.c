/* SPDX-License-Identifier: Apache-2.0
 * Deliverers put beside a lane, one for a webhook and one for Kafka: each asks
 * the store on the lane's thread, one call at a time. Main thread, but for
 * post(). */
#include "cli/deliver.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "publish/delivery.h"
#include "publish/kafka_events.h"
#include "publish/webhook.h"

enum { TRIES_MAX = 100 };

bool deliver_read(const struct options *options, struct deliver_config *out, char *why, size_t why_size)
{
    const char *url = options->values[OPTION_WEBHOOK_URL];
    const char *secret_path = options->values[OPTION_WEBHOOK_SECRET_FILE];
    char origin[512], reason[300];
    int64_t tries;

    *out = (struct deliver_config){.url = url};
    if (!options_integer(options, OPTION_WEBHOOK_TRIES, 1, TRIES_MAX, &tries, why, why_size))
        return false;
    out->tries_max = (int32_t)tries;
    if (url == NULL && secret_path == NULL)
        return true;
    if (url == NULL || secret_path == NULL) {
        snprintf(why, why_size,
                 "webhook-url and webhook-secret-file go together: what is delivered is signed");
        return false;
    }
    if (!webhook_url_check(url, reason, sizeof reason)) {
        options_origin(options, OPTION_WEBHOOK_URL, origin, sizeof origin);
        snprintf(why, why_size, "%s: %s", origin, reason);
        return false;
    }
    return secret_read(secret_path, &out->secret, why, why_size);
}

enum { LINE_COUNT_MAX = 2 };

/* One channel with its deliverer. */
struct line {
    struct delivery_config config;
    struct delivery *delivery; /* NULL: not started; it has the channel then */
    struct lane *lane;
    struct lane_call call;
    struct delivery_task *task;
};

struct deliver {
    struct line lines[LINE_COUNT_MAX];
    int count;
};

/* Takes the channel. */
static void line_add(struct deliver *deliver, const struct delivery_config *config,
                     struct delivery_channel *channel)
{
    CHECK(deliver->count < LINE_COUNT_MAX);
    struct line *line = &deliver->lines[deliver->count++];
    line->config = *config;
    line->config.channel = channel;
    line->config.context = line;
}

static enum err add_webhook(struct deliver *deliver, const struct deliver_config *config,
                            const struct delivery_config *common)
{
    struct webhook_config webhook = {
        .url = config->url,
        .secret = config->secret.bytes,
        .secret_size = config->secret.size,
    };
    struct delivery_channel *channel;
    enum err err = webhook_create(&webhook, &channel);
    if (err == ERR_OK)
        line_add(deliver, common, channel);
    return err;
}

static enum err add_kafka(struct deliver *deliver, const struct deliver_config *config,
                          const struct delivery_config *common)
{
    struct kafka_events_config events = {
        .kafka = config->kafka, .topic = config->topic, .may_make = config->make_topic};
    struct delivery_channel *channel;
    enum err err = kafka_events_create(&events, &channel);
    if (err == ERR_OK)
        line_add(deliver, common, channel);
    return err;
}

enum err deliver_create(const struct deliver_config *config, struct store *store, struct deliver **out)
{
    struct deliver *deliver = calloc(1, sizeof *deliver);
    struct rng rng;

    CHECK(deliver != NULL);
    rng_init_system(&rng);
    struct delivery_config common = {
        .node = uuid_make(&rng, clock_now_ms()),
        .alone = !store_is_shared(store),
        .tries_max = config->tries_max,
    };
    enum err err = delivery_beginning(store, &common.beginning);
    if (err == ERR_OK && config->url != NULL)
        err = add_webhook(deliver, config, &common);
    if (err == ERR_OK && config->kafka != NULL)
        err = add_kafka(deliver, config, &common);
    if (err == ERR_OK)
        *out = deliver;
    else
        deliver_destroy(deliver);
    return err;
}

/* The lane's thread. */
static void run_call(struct lane_call *call, struct store *store)
{
    struct delivery_task *task = CONTAINER_OF(call, struct line, call)->task;
    task->run(task, store);
}

/* A deliverer's thread. */
static void post(void *context, struct delivery_task *task)
{
    struct line *line = context;

    line->task = task;
    line->call = (struct lane_call){.run = run_call};
    list_init(&line->call.node);
    lane_call(line->lane, &line->call);
}

enum err deliver_start(struct deliver *deliver, struct lane *lane)
{
    for (int i = 0; i < deliver->count; i++) {
        struct line *line = &deliver->lines[i];
        line->lane = lane;
        line->config.post = post;
        enum err err = delivery_start(&line->config, &line->delivery);
        if (err != ERR_OK) {
            line->config.channel = NULL; /* it has taken it */
            return err;
        }
    }
    return ERR_OK;
}

void deliver_stop(struct deliver *deliver)
{
    for (int i = 0; deliver != NULL && i < deliver->count; i++) {
        if (deliver->lines[i].delivery != NULL)
            delivery_stop(deliver->lines[i].delivery);
    }
}

void deliver_destroy(struct deliver *deliver)
{
    for (int i = 0; deliver != NULL && i < deliver->count; i++) {
        struct line *line = &deliver->lines[i];
        if (line->delivery != NULL)
            delivery_destroy(line->delivery);
        else if (line->config.channel != NULL)
            line->config.channel->destroy(line->config.channel);
    }
    free(deliver);
}
