/* SPDX-License-Identifier: Apache-2.0
 * A client of librdkafka as we want it: properties in their order of weight,
 * its log lines in ours, and the first word with a broker.
 *
 * The log callback runs on librdkafka's own threads; all other callbacks only
 * where their client is polled. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "kafka/kafka_int.h"

enum { REACH_SLICE_MS = 500, LINE_SIZE = 1024 };
enum { SYSLOG_CRITICAL = 2, SYSLOG_WARNING = 4, SYSLOG_NOTICE = 5 };

/* A broker that went away is found again within about a second, and one that hangs is given up within a few. */
static const struct kafka_property general[] = {
    {"socket.nagle.disable", "true"},
    {"socket.keepalive.enable", "true"},
    {"socket.timeout.ms", "6000"},
    {"socket.connection.setup.timeout.ms", "3000"},
    {"reconnect.backoff.ms", "50"},
    {"reconnect.backoff.max.ms", "1000"},
    {"topic.metadata.refresh.interval.ms", "10000"},
    {"topic.metadata.refresh.fast.interval.ms", "100"},
    {NULL, NULL},
};

static void write_log(const rd_kafka_t *client, int level, const char *facility, const char *text)
{
    char quoted[LINE_SIZE];
    enum log_level ours = level <= SYSLOG_CRITICAL  ? LOG_ERROR
                          : level <= SYSLOG_WARNING ? LOG_WARN
                          : level <= SYSLOG_NOTICE  ? LOG_INFO
                                                    : LOG_DEBUG;
    /* Each client is given all properties; that some are not for it is no news. */
    if (strcmp(facility, "CONFWARN") == 0)
        ours = LOG_DEBUG;
    if (!log_is_on(ours))
        return;
    log_quote(text, quoted, sizeof(quoted));
    log_write(ours, "kafka", "\"client\":\"%s\",\"about\":\"%s\",\"text\":\"%s\"",
              client == NULL ? "" : rd_kafka_name(client), facility, quoted);
}

void kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    CHECK(rd_kafka_conf_set(conf, name, value, why, sizeof(why)) == RD_KAFKA_CONF_OK);
}

static void set_client_id(rd_kafka_conf_t *conf, const char *role)
{
    char given[256], id[400];
    size_t size = sizeof(given);
    /* "rdkafka" is what librdkafka calls itself when nobody said anything. */
    if (rd_kafka_conf_get(conf, "client.id", given, &size) != RD_KAFKA_CONF_OK ||
        strcmp(given, "rdkafka") == 0)
        snprintf(given, sizeof(given), "holdfast");
    snprintf(id, sizeof(id), "%s-%s", given, role);
    kafka_conf_set(conf, "client.id", id);
}

rd_kafka_conf_t *kafka_conf(const struct kafka_config *config, const char *role,
                            const struct kafka_property *preferred)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (const struct kafka_property *p = general; p->name != NULL; p++)
        kafka_conf_set(conf, p->name, p->value);
    for (const struct kafka_property *p = preferred; p != NULL && p->name != NULL; p++)
        kafka_conf_set(conf, p->name, p->value);
    for (int32_t i = 0; i < config->count; i++)
        kafka_conf_set(conf, config->properties[i].name, config->properties[i].value);
    kafka_conf_set(conf, "bootstrap.servers", config->brokers);
    /* A question for a topic must not make it, with who knows how many partitions. */
    kafka_conf_set(conf, "allow.auto.create.topics", "false");
    set_client_id(conf, role);
    rd_kafka_conf_set_log_cb(conf, write_log);
    return conf;
}

rd_kafka_t *kafka_client(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *why, size_t why_size)
{
    char text[512];
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof(text));
    if (client == NULL) {
        rd_kafka_conf_destroy(conf); /* which it takes only when it succeeds */
        snprintf(why, why_size, "Kafka cannot be spoken to with these properties: %s.", text);
    }
    return client;
}

bool kafka_reach(rd_kafka_t *client, const struct kafka_config *config, int timeout_ms, const char *trouble,
                 int *broker_count, char *why, size_t why_size)
{
    int64_t until_us = clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    rd_kafka_resp_err_t err;
    do {
        const struct rd_kafka_metadata *metadata;
        err = rd_kafka_metadata(client, 0, NULL, &metadata, REACH_SLICE_MS);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            *broker_count = metadata->broker_cnt;
            rd_kafka_metadata_destroy(metadata);
            return true;
        }
        rd_kafka_poll(client, 0); /* for `trouble` */
    } while (clock_monotonic_us() < until_us);
    bool told = trouble != NULL && trouble[0] != '\0';
    snprintf(why, why_size, "No broker of Kafka answered at %.200s within %d ms: %s.", config->brokers,
             timeout_ms, told ? trouble : rd_kafka_err2str(err));
    return false;
}
