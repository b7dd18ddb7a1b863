/* SPDX-License-Identifier: Apache-2.0
 * kafka-tool put BROKERS TOPIC PARTITION: sends standard input as one message.
 * kafka-tool get BROKERS TOPIC: all messages of the topic from its beginning to
 * its end, each as a line `partition offset key value`, key and value in hex.
 * kafka-tool delete BROKERS TOPIC: the topic is gone; not for the mock cluster.
 * For tests: what another program would put into a topic, or find there. */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 20000, SIZE_MAX_BYTES = 1 << 20 };

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "kafka-tool: %s: %s\n", what, why);
    exit(1);
}

static rd_kafka_t *connect_to(rd_kafka_type_t type, const char *brokers)
{
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof(why)) != RD_KAFKA_CONF_OK ||
        rd_kafka_conf_set(conf, "group.id", "kafka-tool", why, sizeof(why)) != RD_KAFKA_CONF_OK ||
        rd_kafka_conf_set(conf, "enable.partition.eof", "true", why, sizeof(why)) != RD_KAFKA_CONF_OK)
        fail("configuration", why);
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof(why));
    if (client == NULL)
        fail("client", why);
    return client;
}

static void put(const char *brokers, const char *name, int partition)
{
    static char value[SIZE_MAX_BYTES];
    size_t size = fread(value, 1, sizeof(value), stdin);
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, brokers);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, NULL) != 0)
        fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_resp_err_t err = rd_kafka_flush(client, WAIT_MS);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("flush", rd_kafka_err2str(err));
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
}

static void print_hex(const void *data, size_t size)
{
    if (size == 0)
        putchar('-');
    for (size_t i = 0; i < size; i++)
        printf("%02x", ((const unsigned char *)data)[i]);
}

/* All of its partitions; returns their number. */
static int assign(rd_kafka_t *client, const char *name)
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t err = rd_kafka_metadata(client, 0, topic, &metadata, WAIT_MS);
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("metadata", rd_kafka_err2str(err));
    int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(count);
    for (int i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(all, name, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(client, all);
    rd_kafka_topic_partition_list_destroy(all);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
    return count;
}

static void get(const char *brokers, const char *name)
{
    rd_kafka_t *client = connect_to(RD_KAFKA_CONSUMER, brokers);
    rd_kafka_poll_set_consumer(client);
    for (int left = assign(client, name); left > 0;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, WAIT_MS);
        if (message == NULL)
            fail("consume", "nothing came");
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            left--;
        } else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            printf("%d %lld ", message->partition, (long long)message->offset);
            print_hex(message->key, message->key_len);
            putchar(' ');
            print_hex(message->payload, message->len);
            putchar('\n');
        }
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

static void delete_topic(const char *brokers, const char *name)
{
    rd_kafka_t *client = connect_to(RD_KAFKA_PRODUCER, brokers);
    rd_kafka_DeleteTopic_t *wanted = rd_kafka_DeleteTopic_new(name);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DeleteTopics(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS);
    if (event == NULL)
        fail("delete", "no answer came");
    size_t count;
    const rd_kafka_topic_result_t **results =
        rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    if (rd_kafka_event_error(event) != 0 || count != 1 || rd_kafka_topic_result_error(results[0]) != 0)
        fail("delete", rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteTopic_destroy(wanted);
    rd_kafka_destroy(client);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "put") == 0)
        put(argv[2], argv[3], atoi(argv[4]));
    else if (argc == 4 && strcmp(argv[1], "get") == 0)
        get(argv[2], argv[3]);
    else if (argc == 4 && strcmp(argv[1], "delete") == 0)
        delete_topic(argv[2], argv[3]);
    else
        fail("usage", "kafka-tool put BROKERS TOPIC PARTITION | get BROKERS TOPIC | delete BROKERS TOPIC");
    return 0;
}
