/* SPDX-License-Identifier: Apache-2.0
 * --order and what belongs to it: several nodes that share the work through a
 * broker, or this process alone. Says in one sentence what is wrong with it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/setup.h"
#include "kafka/kafka.h"

static const char kafka_scheme[] = "kafka://";

bool setup_order_url(const struct options *options, const char **out, char *why, size_t why_size)
{
    const char *url = options->values[OPTION_ORDER];
    char origin[512];

    *out = NULL;
    if (strcmp(url, "local") == 0) {
        if (options->values[OPTION_ORDER_CONFIG] == NULL)
            return true;
        options_origin(options, OPTION_ORDER_CONFIG, origin, sizeof origin);
        snprintf(why, why_size, "%s goes together with an order of kafka://...", origin);
        return false;
    }
    if (strncmp(url, kafka_scheme, strlen(kafka_scheme)) == 0 && url[strlen(kafka_scheme)] != '\0') {
        *out = url;
        return true;
    }
    /* Not repeated as it is: a password may stand in it. */
    options_origin(options, OPTION_ORDER, origin, sizeof origin);
    snprintf(why, why_size, "%s must be local or kafka://BROKER[:PORT][,BROKER...], not '%.*s'", origin,
             (int)strcspn(url, "@?") > 64 ? 64 : (int)strcspn(url, "@?"), url);
    return false;
}

/* One of two words; true for the first. */
static bool parse_word(const struct options *options, enum option option, const char *yes, const char *no,
                       bool *out, char *why, size_t why_size)
{
    const char *word = options->values[option];
    char origin[512];

    *out = strcmp(word, yes) == 0;
    if (*out || strcmp(word, no) == 0)
        return true;
    options_origin(options, option, origin, sizeof origin);
    snprintf(why, why_size, "%s must be %s or %s, not '%.64s'", origin, yes, no, word);
    return false;
}

static bool is_name_character(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static bool check_name(const struct options *options, enum option option, char *why, size_t why_size)
{
    const char *name = options->values[option];
    size_t size = 0;
    char origin[512];

    while (is_name_character(name[size]))
        size++;
    if (size >= 1 && size <= NODE_NAME_SIZE_MAX && name[size] == '\0')
        return true;
    options_origin(options, option, origin, sizeof origin);
    snprintf(why, why_size, "%s must be 1 to %d letters, digits, dots, dashes or underscores, not '%.120s'",
             origin, NODE_NAME_SIZE_MAX, name);
    return false;
}

/* The host's name and the port: the same after a restart, and no other node's. */
static bool make_name(const struct address *listen, char out[NODE_NAME_SIZE_MAX + 1], char *why,
                      size_t why_size)
{
    enum { HOST_SIZE_MAX = NODE_NAME_SIZE_MAX - 6 };
    char host[256] = "";

    if (listen->port == 0) {
        snprintf(why, why_size, "give --node-name: with a port of 0 this node would have no name of its own");
        return false;
    }
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        snprintf(why, why_size, "give --node-name: this host has no name");
        return false;
    }
    for (char *c = host; *c != '\0'; c++)
        *c = is_name_character(*c) ? *c : '-';
    snprintf(out, NODE_NAME_SIZE_MAX + 1, "%.*s-%u", (int)HOST_SIZE_MAX, host, (unsigned)listen->port);
    return true;
}

/* The properties too, before anything is begun. */
static bool check_kafka(const struct options *options, const char *url, char *why, size_t why_size)
{
    struct kafka_config *kafka = NULL;
    bool good = kafka_config_parse(url, options->values[OPTION_ORDER_CONFIG], &kafka, why, why_size);

    kafka_config_free(kafka);
    return good;
}

bool setup_order(const struct options *options, struct node_config *config,
                 char node_name[NODE_NAME_SIZE_MAX + 1], char *why, size_t why_size)
{
    const char *name = options->values[OPTION_NODE_NAME];
    int64_t partitions, wait_seconds;

    if (!setup_order_url(options, &config->order_url, why, why_size) ||
        !parse_word(options, OPTION_ORDER_TOPICS, "event", "shared", &config->order_topic_per_event, why,
                    why_size) ||
        !parse_word(options, OPTION_ORDER_MAKE_TOPICS, "on", "off", &config->order_make_topics, why,
                    why_size) ||
        !parse_word(options, OPTION_ORDER_EVENTS, "on", "off", &config->order_events, why, why_size) ||
        !options_integer(options, OPTION_ORDER_PARTITIONS, 1, ORDER_PARTITION_COUNT_MAX, &partitions, why,
                         why_size) ||
        !options_integer(options, OPTION_ORDER_WAIT, 1, ORDER_WAIT_SECONDS_MAX, &wait_seconds, why,
                         why_size) ||
        !check_name(options, OPTION_ORDER_PREFIX, why, why_size) ||
        (name != NULL && !check_name(options, OPTION_NODE_NAME, why, why_size)))
        return false;
    config->order_prefix = options->values[OPTION_ORDER_PREFIX];
    config->order_partitions = (int32_t)partitions;
    config->order_reply_ms = wait_seconds * 1000;
    if (config->order_url == NULL)
        return true;
    if (strncmp(config->store_url, "sqlite:", 7) == 0) {
        snprintf(why, why_size,
                 "an order over Kafka is for several nodes, and those need a store that they share: "
                 "give --store postgres://...");
        return false;
    }
    if (!check_kafka(options, config->order_url, why, why_size))
        return false;
    config->order_config_path = options->values[OPTION_ORDER_CONFIG];
    if (name != NULL)
        snprintf(node_name, NODE_NAME_SIZE_MAX + 1, "%s", name);
    else if (!make_name(&config->listen, node_name, why, why_size))
        return false;
    config->node_name = node_name;
    return true;
}

void setup_report_order(const struct node_config *config)
{
    struct stat status;
    char quoted[1024];

    if (config->order_url == NULL)
        return;
    log_quote(config->node_name, quoted, sizeof quoted);
    log_write(LOG_INFO, "commands go through Kafka", "\"node_name\":\"%s\"", quoted);
    if (config->order_config_path == NULL || stat(config->order_config_path, &status) != 0 ||
        (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return;
    log_quote(config->order_config_path, quoted, sizeof quoted);
    log_write(LOG_WARN, "the properties for Kafka can be read by others: chmod 600 the file",
              "\"path\":\"%s\"", quoted);
}
