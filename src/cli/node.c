/* SPDX-License-Identifier: Apache-2.0
 * Puts a node together: store → directory → feed → payments → lane → order →
 * tokens → API → HTTP. Nothing is decided here but the order.
 *
 * Invariants: (1) a part is taken apart only after everything that calls it: HTTP first,
 * then the lane, then payments, whose last answers the lane's end frees. (2) The
 * feed wakes streams through `server`, which is cleared under its lock before the
 * server goes. (3) The clock is set from the store before anything asks the time.
 *
 * Main thread, but for the three callbacks that say otherwise. */
#include "cli/node.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "cli/deliver.h"
#include "kafka/kafka.h"
#include "lane/lane.h"
#include "order/kafka/broker_kafka.h"
#include "order/order.h"
#include "pay/pay.h"

struct node {
    struct store *store;
    struct warm *warm; /* NULL: none */
    struct directory *directory;
    struct feed *feed;
    struct pay *pay;
    struct lane *lane;
    struct deliver *deliver; /* NULL: domain events go nowhere */
    struct order *order;
    struct kafka_config *kafka; /* NULL: the order is local */
    char events_topic[KAFKA_TOPIC_SIZE];
    struct auth *auth;
    struct api *api;
    pthread_mutex_t order_lock;  /* held until `order` stands: the lane may charge while it loads */
    pthread_mutex_t server_lock; /* guards `server` against the feed's thread */
    struct http_server *server;
    struct http_server *metrics_server;
    bool lane_started;
    _Atomic bool lost; /* it must be started again */
};

/* ---- Payments: from the lane to the gateway and back ---- */

static void submit_job(struct node *node, const struct lane_charge *charge, bool refund)
{
    struct pay_job job = {
        .org_id = charge->org_id,
        .checkout_id = charge->checkout_id,
        .amount_cents = charge->amount_cents,
        .attempt = charge->attempt,
        .refund = refund,
    };

    snprintf(job.currency, sizeof job.currency, "%s", charge->currency != NULL ? charge->currency : "");
    snprintf(job.token, sizeof job.token, "%s", charge->token != NULL ? charge->token : "");
    pay_submit(node->pay, &job);
}

/* The lane's thread. */
static void node_charge(void *context, const struct lane_charge *charge)
{
    submit_job(context, charge, false);
}

/* The lane's thread. */
static void node_refund(void *context, const struct lane_charge *charge)
{
    submit_job(context, charge, true);
}

struct settlement {
    struct command command;
    struct arena arena;
};

static void settlement_free(struct settlement *settlement)
{
    command_deinit(&settlement->command);
    arena_deinit(&settlement->arena);
    free(settlement);
}

/* The lane's thread. */
static void on_settled(struct command *command)
{
    settlement_free(CONTAINER_OF(command, struct settlement, command));
}

/* The payment thread. A settlement is never refused for want of room; if the lane is gone,
 * the store still knows that the payment is open, and the next start asks again. */
static void on_outcome(void *context, const struct pay_job *job, enum pay_outcome outcome)
{
    static const enum payment_outcome outcomes[] = {
        [PAY_PAID] = PAYMENT_PAID,
        [PAY_DECLINED] = PAYMENT_DECLINED,
        [PAY_UNKNOWN] = PAYMENT_UNKNOWN,
    };
    struct node *node = context;
    struct settlement *settlement = calloc(1, sizeof *settlement);

    CHECK(settlement != NULL);
    arena_init(&settlement->arena);
    struct command *command = &settlement->command;
    command_init(command, job->refund ? COMMAND_REFUND_SETTLED : COMMAND_PAYMENT_SETTLED, &settlement->arena);
    command->actor.org_id = job->org_id;
    command->actor.role = ROLE_SYSTEM;
    command->id = job->checkout_id;
    command->payment.outcome = outcomes[outcome];
    command->payment.attempt = job->attempt;
    command->on_done = on_settled;
    pthread_mutex_lock(&node->order_lock);
    enum err err = node->order != NULL ? order_submit(node->order, command) : ERR_OVERLOADED;
    pthread_mutex_unlock(&node->order_lock);
    if (err != ERR_OK) {
        log_write(LOG_ERROR, "payment outcome not taken", "\"code\":\"%s\"", err_code(err));
        settlement_free(settlement);
    }
}

/* ---- Other nodes ---- */

/* The lane's thread: another node committed something. */
static void on_nudge(void *context)
{
    struct node *node = context;

    if (node->lane != NULL)
        lane_nudge(node->lane);
}

/* The lane's thread. Memory cannot be put right any more: whoever watches over the process starts it again. */
static void node_lost(void *context)
{
    struct node *node = context;

    atomic_store(&node->lost, true);
    kill(getpid(), SIGTERM);
}

/* ---- Streams ---- */

/* The feed's thread. */
static void on_frames(void *context)
{
    struct node *node = context;

    pthread_mutex_lock(&node->server_lock);
    if (node->server != NULL)
        http_streams_wake(node->server);
    pthread_mutex_unlock(&node->server_lock);
}

static void set_server(struct node *node, struct http_server *server)
{
    pthread_mutex_lock(&node->server_lock);
    node->server = server;
    pthread_mutex_unlock(&node->server_lock);
}

/* ---- Together ---- */

/* Every connection is a descriptor, and shells give out 1024. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    rlim_t wanted = CONNECTION_COUNT_MAX + 1024;
    rlim_t most = limit.rlim_max != RLIM_INFINITY && limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= most)
        return;
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Another one at every start: what the last one left half done is somebody else's now. */
static struct uuid make_node_id(void)
{
    struct rng rng;
    rng_init_system(&rng);
    return uuid_make(&rng, clock_now_ms());
}

static enum err start_warm(struct node *node, const struct node_config *config, const struct uuid *node_id,
                           char *why, size_t why_size)
{
    gauge_set(GAUGE_BREAKER_STATE, -1);
    if (config->warm_url == NULL)
        return ERR_OK;
    struct warm_config warm_config = {
        .url = config->warm_url,
        .prefix = config->warm_prefix,
        .node_id = *node_id,
        .on_nudge = on_nudge,
        .context = node,
    };
    return warm_create(&warm_config, &node->warm, why, why_size);
}

/* Domain events go to the webhook, and to the brokers that order the commands. */
static enum err start_deliver(struct node *node, const struct node_config *config)
{
    struct deliver_config deliver = {.tries_max = DELIVER_TRIES_DEFAULT};

    if (config->webhook != NULL)
        deliver = *config->webhook;
    if (config->order_events)
        deliver.kafka = node->kafka;
    snprintf(node->events_topic, sizeof node->events_topic, "%s.events", config->order_prefix);
    deliver.topic = node->events_topic;
    deliver.make_topic = config->order_make_topics;
    if (deliver.url == NULL && deliver.kafka == NULL)
        return ERR_OK;
    return deliver_create(&deliver, node->store, &node->deliver);
}

/* The broker's topics are made, and its replies heard, before anything is sent. */
static enum err start_order(struct node *node, const struct node_config *config, const struct uuid *node_id,
                            char *why, size_t why_size)
{
    if (node->kafka == NULL) {
        gauge_set(GAUGE_BROKER_UP, -1);
        return order_local_create(node->lane, &node->order);
    }
    struct broker *broker;
    struct broker_kafka_config broker_config = {
        .kafka = node->kafka,
        .node_name = config->node_name,
        .topic_prefix = config->order_prefix,
        .partition_count = config->order_partitions,
        .topic_per_event = config->order_topic_per_event,
        .topics_exist = !config->order_make_topics,
    };
    enum err err = broker_kafka_create(&broker_config, &broker, why, why_size);
    if (err != ERR_OK)
        return err;
    struct order_shared_config order_config = {
        .lane = node->lane,
        .store = node->store,
        .broker = broker,
        .node_id = *node_id,
        .node_name = config->node_name,
        .topic_prefix = config->order_prefix,
        .topic_per_event = config->order_topic_per_event,
        .partition_count = config->order_partitions,
        .reply_ms = config->order_reply_ms,
        .now_ms = clock_now_ms(),
    };
    return order_shared_create(&order_config, &node->order);
}

static enum err start_core(struct node *node, const struct node_config *config, char *why, size_t why_size)
{
    struct store_options store_options = {.read_only = false};
    enum err err = store_open(config->store_url, &store_options, &node->store, why, why_size);

    if (err != ERR_OK)
        return err;
    clock_set_offset_ms(store_now_ms(node->store) - clock_monotonic_us() / 1000);
    if ((err = directory_create(&node->directory)) != ERR_OK ||
        (err = feed_create(FRAME_COALESCE_MS, on_frames, node, &node->feed)) != ERR_OK ||
        (err = pay_create_simulated(on_outcome, node, &node->pay)) != ERR_OK)
        return err;
    if (config->order_url != NULL &&
        !kafka_config_parse(config->order_url, config->order_config_path, &node->kafka, why, why_size))
        return ERR_CONFIG;
    if ((err = start_deliver(node, config)) != ERR_OK)
        return err;
    struct uuid node_id = make_node_id();
    if ((err = start_warm(node, config, &node_id, why, why_size)) != ERR_OK)
        return err;
    struct lane_config lane_config = {
        .store = node->store,
        .warm = node->warm,
        .node_id = node_id,
        .directory = node->directory,
        .feed = node->feed,
        .charge = node_charge,
        .refund = node_refund,
        .on_lost = node_lost,
        .context = node,
    };
    if ((err = lane_create(&lane_config, clock_now_ms(), &node->lane, why, why_size)) != ERR_OK)
        return err;
    return start_order(node, config, &node_id, why, why_size);
}

static enum err start_auth(struct node *node, const struct node_config *config, char *why, size_t why_size)
{
    char reason[256] = "";

    if (config->public_key == NULL)
        return auth_create_secret(config->secret, config->secret_size, &node->auth);
    enum err err = auth_create_public_key(config->public_key, config->public_key_size, &node->auth, reason,
                                          sizeof reason);
    if (err != ERR_OK)
        snprintf(why, why_size, "%s: %s", config->public_key_path, reason);
    return err;
}

static enum err start_edge(struct node *node, const struct node_config *config, char *why, size_t why_size)
{
    struct api_config api_config = {
        .order = node->order,
        .store = node->store,
        .shared = store_is_shared(node->store),
        .has_broker = config->order_url != NULL,
        .directory = node->directory,
        .feed = node->feed,
        .auth = node->auth,
        .mint_demo = config->mint_demo,
        .demo_context = config->demo_context,
    };
    struct http_config http_config = {
        .address = config->listen.host,
        .port = config->listen.port,
        .loop_count = config->http_loop_count,
        .trusted_proxy = config->trusted_proxy,
    };
    struct http_server *server = NULL;
    enum err err = api_create(&api_config, &node->api);

    if (err != ERR_OK)
        return err;
    if (config->metrics_listen != NULL) {
        struct http_config metrics_config = {
            .address = config->metrics_listen->host,
            .port = config->metrics_listen->port,
            .loop_count = 1,
        };
        api_fill_metrics_http(node->api, &metrics_config);
        err = http_server_start(&metrics_config, &node->metrics_server, why, why_size);
        if (err != ERR_OK)
            return err;
    }
    api_fill_http(node->api, &http_config);
    err = http_server_start(&http_config, &server, why, why_size);
    if (err != ERR_OK)
        return err;
    set_server(node, server);
    return ERR_OK;
}

enum err node_start(const struct node_config *config, struct node **out, char *why, size_t why_size)
{
    struct node *node = calloc(1, sizeof *node);
    char reason[512] = "";
    enum err err;

    CHECK(node != NULL);
    pthread_mutex_init(&node->server_lock, NULL);
    pthread_mutex_init(&node->order_lock, NULL);
    raise_descriptor_limit();
    pthread_mutex_lock(&node->order_lock);
    err = start_core(node, config, reason, sizeof reason);
    pthread_mutex_unlock(&node->order_lock);
    if (err != ERR_OK)
        goto failed;
    reason[0] = '\0'; /* a step that succeeded may have left words there */
    err = start_auth(node, config, reason, sizeof reason);
    if (err != ERR_OK)
        goto failed;
    err = lane_start(node->lane);
    if (err != ERR_OK)
        goto failed;
    node->lane_started = true;
    if (node->deliver != NULL && (err = deliver_start(node->deliver, node->lane)) != ERR_OK)
        goto failed;
    err = start_edge(node, config, reason, sizeof reason);
    if (err != ERR_OK)
        goto failed;
    gauge_set(GAUGE_START_TIME, clock_now_ms() / 1000);
    log_set_level(config->log_level);
    *out = node;
    return ERR_OK;
failed:
    snprintf(why, why_size, "%s", reason[0] != '\0' ? reason : err_text(err));
    node_stop(node);
    return err;
}

void node_stop(struct node *node)
{
    if (node == NULL)
        return;
    struct http_server *server = node->server;
    set_server(node, NULL);
    if (server != NULL)
        http_server_stop(server, NODE_DRAIN_MS);
    if (node->metrics_server != NULL)
        http_server_stop(node->metrics_server, 0);
    deliver_stop(node->deliver);
    if (node->lane_started)
        lane_stop(node->lane, NODE_DRAIN_MS);
    store_close(node->store); /* its last answers are the lane's */
    warm_destroy(node->warm); /* which still wrote to this */
    if (node->pay != NULL)
        pay_destroy(node->pay);
    order_stop(node->order);
    if (node->lane != NULL)
        lane_destroy(node->lane);
    order_destroy(node->order);
    deliver_destroy(node->deliver);
    kafka_config_free(node->kafka); /* which both had borrowed */
    api_destroy(node->api);
    if (node->feed != NULL)
        feed_destroy(node->feed);
    if (node->directory != NULL)
        directory_destroy(node->directory);
    if (node->auth != NULL)
        auth_destroy(node->auth);
    pthread_mutex_destroy(&node->server_lock);
    pthread_mutex_destroy(&node->order_lock);
    free(node);
}

bool node_is_lost(const struct node *node)
{
    return atomic_load(&node->lost);
}

uint16_t node_port(const struct node *node)
{
    return http_server_port(node->server);
}

uint16_t node_metrics_port(const struct node *node)
{
    return node->metrics_server != NULL ? http_server_port(node->metrics_server) : 0;
}

struct order *node_order(struct node *node)
{
    return node->order;
}

struct directory *node_directory(struct node *node)
{
    return node->directory;
}
