/* SPDX-License-Identifier: Apache-2.0
 * kafka-mock COUNT [TOPIC:PARTITIONS...]: librdkafka's mock cluster as a
 * program, for tests of several processes. Prints its URL, then takes commands
 * on standard input, one a line, and answers each with `ok` or `error …`; ends
 * when the input does.
 *
 *   topic NAME PARTITIONS          leader TOPIC PARTITION BROKER
 *   down BROKER | up BROKER        coordinator GROUP BROKER
 *   delay BROKER MILLISECONDS      fail API_KEY ERROR_CODE COUNT   (of the next requests)
 *
 * Brokers count from 1. Topics are there only if they are made here: the mock
 * knows no request for it. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE = 1024, FAIL_COUNT_MAX = 1000 };

static rd_kafka_resp_err_t make_topic(rd_kafka_mock_cluster_t *cluster, const char *name, int partitions,
                                      int replicas)
{
    return partitions < 1 ? RD_KAFKA_RESP_ERR__INVALID_ARG
                          : rd_kafka_mock_topic_create(cluster, name, partitions, replicas);
}

static rd_kafka_resp_err_t fail_requests(rd_kafka_mock_cluster_t *cluster, int api_key, int code, int count)
{
    rd_kafka_resp_err_t errors[FAIL_COUNT_MAX];
    if (count < 1 || count > FAIL_COUNT_MAX)
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    for (int i = 0; i < count; i++)
        errors[i] = (rd_kafka_resp_err_t)code;
    rd_kafka_mock_push_request_errors_array(cluster, (int16_t)api_key, (size_t)count, errors);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Returns false if the line is no command. */
static bool obey(rd_kafka_mock_cluster_t *cluster, const char *line, int broker_count,
                 rd_kafka_resp_err_t *err)
{
    char name[LINE_SIZE];
    int a, b, c;
    if (sscanf(line, "topic %1000s %d", name, &a) == 2)
        *err = make_topic(cluster, name, a, broker_count);
    else if (sscanf(line, "down %d", &a) == 1)
        *err = rd_kafka_mock_broker_set_down(cluster, a);
    else if (sscanf(line, "up %d", &a) == 1)
        *err = rd_kafka_mock_broker_set_up(cluster, a);
    else if (sscanf(line, "delay %d %d", &a, &b) == 2)
        *err = rd_kafka_mock_broker_set_rtt(cluster, a, b);
    else if (sscanf(line, "leader %1000s %d %d", name, &a, &b) == 3)
        *err = rd_kafka_mock_partition_set_leader(cluster, name, a, b);
    else if (sscanf(line, "coordinator %1000s %d", name, &a) == 2)
        *err = rd_kafka_mock_coordinator_set(cluster, "group", name, a);
    else if (sscanf(line, "fail %d %d %d", &a, &b, &c) == 3)
        *err = fail_requests(cluster, a, b, c);
    else
        return false;
    return true;
}

static bool make_all(rd_kafka_mock_cluster_t *cluster, char **topics, int broker_count)
{
    for (; *topics != NULL; topics++) {
        char *partitions = strrchr(*topics, ':');
        if (partitions == NULL)
            return false;
        *partitions++ = '\0';
        if (make_topic(cluster, *topics, atoi(partitions), broker_count) != RD_KAFKA_RESP_ERR_NO_ERROR)
            return false;
    }
    return true;
}

int main(int count, char **arguments)
{
    char why[512], line[LINE_SIZE];
    int broker_count = count < 2 ? 0 : atoi(arguments[1]);
    if (broker_count < 1) {
        fprintf(stderr, "usage: kafka-mock COUNT [TOPIC:PARTITIONS...]\n");
        return 2;
    }
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "3", why, sizeof(why));
    rd_kafka_t *host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
    rd_kafka_mock_cluster_t *cluster = host == NULL ? NULL : rd_kafka_mock_cluster_new(host, broker_count);
    if (cluster == NULL || !make_all(cluster, arguments + 2, broker_count)) {
        fprintf(stderr, "kafka-mock: cannot start\n");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("kafka://%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
    while (fgets(line, sizeof(line), stdin) != NULL) {
        rd_kafka_resp_err_t err;
        if (!obey(cluster, line, broker_count, &err))
            printf("error no such command\n");
        else if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
            printf("error %s\n", rd_kafka_err2name(err));
        else
            printf("ok\n");
    }
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
    return 0;
}
