/* SPDX-License-Identifier: Apache-2.0
 * A webhook put beside a lane: the deliverer asks the store on the lane's
 * thread, one call at a time. Main thread, but for post(). */
#include "cli/deliver.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "publish/delivery.h"
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

struct deliver {
    struct delivery_config config;
    struct delivery *delivery; /* NULL: not started; it has the channel then */
    struct lane *lane;
    struct lane_call call;
    struct delivery_task *task;
};

enum err deliver_create(const struct deliver_config *config, struct store *store, struct deliver **out)
{
    struct deliver *deliver = calloc(1, sizeof *deliver);
    struct webhook_config webhook = {
        .url = config->url,
        .secret = config->secret.bytes,
        .secret_size = config->secret.size,
    };
    struct rng rng;

    CHECK(deliver != NULL);
    rng_init_system(&rng);
    deliver->config = (struct delivery_config){
        .node = uuid_make(&rng, clock_now_ms()),
        .alone = !store_is_shared(store),
        .tries_max = config->tries_max,
        .context = deliver,
    };
    enum err err = delivery_beginning(store, &deliver->config.beginning);
    if (err == ERR_OK)
        err = webhook_create(&webhook, &deliver->config.channel);
    if (err == ERR_OK)
        *out = deliver;
    else
        free(deliver);
    return err;
}

/* The lane's thread. */
static void run_call(struct lane_call *call, struct store *store)
{
    struct delivery_task *task = CONTAINER_OF(call, struct deliver, call)->task;
    task->run(task, store);
}

/* The deliverer's thread. */
static void post(void *context, struct delivery_task *task)
{
    struct deliver *deliver = context;

    deliver->task = task;
    deliver->call = (struct lane_call){.run = run_call};
    list_init(&deliver->call.node);
    lane_call(deliver->lane, &deliver->call);
}

enum err deliver_start(struct deliver *deliver, struct lane *lane)
{
    deliver->lane = lane;
    deliver->config.post = post;
    enum err err = delivery_start(&deliver->config, &deliver->delivery);
    if (err != ERR_OK)
        deliver->config.channel = NULL; /* it has taken it */
    return err;
}

void deliver_stop(struct deliver *deliver)
{
    if (deliver != NULL && deliver->delivery != NULL)
        delivery_stop(deliver->delivery);
}

void deliver_destroy(struct deliver *deliver)
{
    if (deliver == NULL)
        return;
    if (deliver->delivery != NULL)
        delivery_destroy(deliver->delivery);
    else if (deliver->config.channel != NULL)
        deliver->config.channel->destroy(deliver->config.channel);
    free(deliver);
}
