/* SPDX-License-Identifier: Apache-2.0
 * Delivery of domain events, as far as a node's options and parts are concerned:
 * which webhook, with which secret, which brokers, over which lane. Each of the
 * two has a deliverer of its own, and neither waits for the other. */
#ifndef HOLDFAST_CLI_DELIVER_H
#define HOLDFAST_CLI_DELIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/files.h"
#include "cli/options.h"
#include "lane/lane.h"
#include "store/store.h"

struct kafka_config; /* kafka/kafka.h */

enum { DELIVER_TRIES_DEFAULT = 8 }; /* as of --webhook-tries */

struct deliver_config {
    const char *url; /* NULL: no webhook */
    struct secret secret;
    int32_t tries_max;
    const struct kafka_config *kafka; /* borrows until deliver_destroy(); NULL: nothing goes to Kafka */
    const char *topic;                /* there; borrows the same */
    bool make_topic;                  /* if it is missing */
};

/* --webhook-url, --webhook-secret-file and --webhook-tries. False and one sentence if they do not go together. */
bool deliver_read(const struct options *options, struct deliver_config *out, char *why,
                  size_t why_size) MUST_CHECK;

struct deliver;

/* Before the lane is made: what is decided from here on will be delivered. */
enum err deliver_create(const struct deliver_config *config, struct store *store,
                        struct deliver **out) MUST_CHECK;
enum err deliver_start(struct deliver *deliver, struct lane *lane) MUST_CHECK; /* after the lane */
void deliver_stop(struct deliver *deliver);    /* before the lane; NULL is fine */
void deliver_destroy(struct deliver *deliver); /* after the lane and the store; the same */

#endif
