/* SPDX-License-Identifier: Apache-2.0
 * One node: store, directory, feed, lane, order, payments, tokens, API and HTTP,
 * put together in the order they need each other and taken apart in the
 * opposite one. `serve` and `demo` differ only in what they ask for here. */
#ifndef HOLDFAST_CLI_NODE_H
#define HOLDFAST_CLI_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/cli.h"

struct node;
struct deliver_config; /* cli/deliver.h */

struct node_config { /* borrows everything for the node's life */
    const char *store_url;
    const char *warm_url;          /* or NULL */
    const char *warm_prefix;       /* of its keys */
    const char *order_url;         /* or NULL: commands wait in this process alone */
    const char *order_config_path; /* or NULL */
    const char *node_name;         /* with order_url: no other node's */
    const char *order_prefix;      /* of topics */
    int64_t order_reply_ms;        /* how long a caller waits for the node that decides */
    int32_t order_partitions;      /* of a topic of commands */
    bool order_topic_per_event;
    bool order_make_topics;
    bool order_events; /* domain events go to the broker too */
    struct address listen;
    const struct address *metrics_listen; /* or NULL */
    int http_loop_count;
    enum log_level log_level;  /* once it is ready */
    const char *trusted_proxy; /* or NULL */
    /* One of the two: */
    const void *secret;
    size_t secret_size;
    const char *public_key; /* PEM, or NULL */
    size_t public_key_size;
    const char *public_key_path;          /* for messages */
    const struct deliver_config *webhook; /* or NULL: domain events are not delivered but to Kafka */
    /* The demo's guests; NULL: none */
    bool (*mint_demo)(void *context, int64_t now_ms, struct api_demo *out);
    void *demo_context;
};

enum { NODE_DRAIN_MS = 10000 };

/* Ready to answer when it returns ERR_OK; otherwise `why` is one sentence. The calling thread's
 * signal mask is inherited by every thread made here. */
enum err node_start(const struct node_config *config, struct node **out, char *why,
                    size_t why_size) MUST_CHECK;
void node_stop(struct node *node); /* drains; NULL is fine */
/* It asked to be stopped itself, because it fell behind the others: to be started again. */
bool node_is_lost(const struct node *node);

uint16_t node_port(const struct node *node);         /* the real one */
uint16_t node_metrics_port(const struct node *node); /* 0: none */
struct order *node_order(struct node *node);
struct directory *node_directory(struct node *node);

/* ---- signals.c ---- */

/* Main thread, before any other exists: SIGTERM and SIGINT wait until they are asked for. */
void signals_block(void);
/* Returns when one came; the next one ends the process at once. */
void signals_wait(void);

#endif
