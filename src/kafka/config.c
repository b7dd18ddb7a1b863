/* SPDX-License-Identifier: Apache-2.0
 * Reads where Kafka is and how to get in: the URL, then the file.
 *
 *  1. Every property is tried on librdkafka here, so that a wrong one is named
 *     at start and not when a connection is made.
 *  2. A value never gets into a sentence or a log line: any may be a secret.
 *  3. What the promises rest on is refused by name, aliases included. All else
 *     (TLS, SASL, buffers, timeouts) is the operator's. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "kafka/kafka_int.h"

enum { FILE_SIZE_MAX = 256 * 1024, NAME_SHOWN_MAX = 80 };

static const char *const promised[] = {
    /* what was said to be stored is stored, once, and its fate known in time */
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "enable.gapless.guarantee",
    "max.in.flight",
    "max.in.flight.requests.per.connection",
    "retries",
    "message.send.max.retries",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "delivery.report.only.error",
    "queuing.strategy",
    "partitioner",
    "transactional.id",
    "transaction.timeout.ms",
    /* what was sent is read, by one node at a time */
    "group.id",
    "group.instance.id",
    "group.protocol.type",
    "partition.assignment.strategy",
    "enable.auto.commit",
    "auto.commit.enable",
    "auto.commit.interval.ms",
    "enable.auto.offset.store",
    "offset.store.method",
    "auto.offset.reset",
    "enable.partition.eof",
    "isolation.level",
    "check.crcs",
    "topic.blacklist",
    "allow.auto.create.topics",
    /* how we hear of it */
    "enabled_events",
    "log.queue",
    "statistics.interval.ms",
    "test.mock.num.brokers",
};

struct reader { /* of one URL and file */
    struct kafka_config *config;
    rd_kafka_conf_t *scratch; /* on which properties are tried */
    char *why;
    size_t why_size;
};

static bool fail(struct reader *reader, const char *format, ...) PRINTF_LIKE(2, 3);

static bool fail(struct reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_promised(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(promised); i++)
        if (strcmp(name, promised[i]) == 0)
            return true;
    return false;
}

static bool is_brokers(const char *name)
{
    return strcmp(name, "bootstrap.servers") == 0 || strcmp(name, "metadata.broker.list") == 0;
}

/* Copies both. */
static bool take_property(struct reader *reader, const char *name, const char *value)
{
    struct kafka_config *config = reader->config;
    char ignored[64];

    if (name[0] == '\0')
        return fail(reader, "A Kafka property has no name.");
    if (is_brokers(name))
        return fail(reader, "The Kafka property %s cannot be set: the brokers stand in the URL.", name);
    if (is_promised(name))
        return fail(reader, "The Kafka property %s cannot be set: Holdfast's promises rest on it.", name);
    switch (rd_kafka_conf_set(reader->scratch, name, value, ignored, sizeof(ignored))) {
    case RD_KAFKA_CONF_OK:
        break;
    case RD_KAFKA_CONF_UNKNOWN:
        return fail(reader, "There is no Kafka property %.*s.", NAME_SHOWN_MAX, name);
    default:
        return fail(reader, "The Kafka property %.*s does not take the value that is given for it.",
                    NAME_SHOWN_MAX, name);
    }
    if (config->count == KAFKA_PROPERTY_COUNT_MAX)
        return fail(reader, "There are more than %d Kafka properties.", KAFKA_PROPERTY_COUNT_MAX);
    char *own_name = strdup(name), *own_value = strdup(value);
    CHECK(own_name != NULL);
    CHECK(own_value != NULL);
    config->properties[config->count++] = (struct kafka_property){own_name, own_value};
    return true;
}

/* ---- The URL ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* In place; false if an escape is broken or stands for NUL. */
static bool unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        char c = *from;
        if (c == '%') {
            int high = hex_digit(from[1]);
            int low = high < 0 ? -1 : hex_digit(from[2]);
            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high << 4 | low);
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

static bool take_url_property(struct reader *reader, char *text)
{
    char *value = strchr(text, '=');
    if (value == NULL)
        return fail(reader, "The Kafka property %.*s has no value: write property=value.", NAME_SHOWN_MAX,
                    text);
    *value++ = '\0';
    if (!unescape(text) || !unescape(value))
        return fail(reader, "The URL of Kafka has a %% that is not followed by two hexadecimal digits.");
    return take_property(reader, text, value);
}

static bool take_brokers(struct reader *reader, const char *brokers)
{
    if (strchr(brokers, '@') != NULL)
        return fail(reader, "The URL of Kafka has no user or password: set sasl.username and sasl.password "
                            "in the file of properties.");
    if (strspn(brokers, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:,[]") !=
        strlen(brokers))
        return fail(reader, "The URL of Kafka has something else than brokers separated by commas.");
    for (const char *at = brokers;; at++) {
        size_t size = strcspn(at, ",");
        if (size == 0 || *at == ':')
            return fail(reader, "The URL of Kafka has no broker where there should be one: write "
                                "kafka://broker[:9092][,broker…].");
        at += size;
        if (*at == '\0')
            break;
    }
    reader->config->brokers = strdup(brokers);
    CHECK(reader->config->brokers != NULL);
    return true;
}

static bool take_url(struct reader *reader, char *url)
{
    static const char scheme[] = "kafka://";
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return fail(reader, "The URL of Kafka must begin with kafka://.");
    char *rest = strchr(url, '?');
    if (rest != NULL)
        *rest++ = '\0';
    if (!take_brokers(reader, url + sizeof(scheme) - 1))
        return false;
    for (char *property; (property = strsep(&rest, "&")) != NULL;)
        if (property[0] != '\0' && !take_url_property(reader, property))
            return false;
    return true;
}

/* ---- The file ---- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1]) != NULL)
        text[--size] = '\0';
    return text;
}

static bool take_lines(struct reader *reader, const char *path, char *text)
{
    int number = 0;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        number++;
        line = trim(line);
        if (line[0] == '\0' || line[0] == '#')
            continue;
        char *value = strchr(line, '=');
        if (value == NULL)
            return fail(reader, "Line %d of %.200s is no property=value.", number, path);
        *value++ = '\0';
        if (!take_property(reader, trim(line), trim(value)))
            return false;
    }
    return true;
}

static bool take_file(struct reader *reader, const char *path)
{
    bool good = false;
    struct buf text;
    buf_init(&text);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fail(reader, "The file of Kafka properties %.200s cannot be read: %s.", path, strerror(errno));
        goto no_file;
    }
    CHECK(buf_reserve(&text, FILE_SIZE_MAX + 1));
    text.size = fread(text.data, 1, FILE_SIZE_MAX + 1, file);
    if (ferror(file))
        fail(reader, "The file of Kafka properties %.200s cannot be read: %s.", path, strerror(errno));
    else if (text.size > FILE_SIZE_MAX || memchr(text.data, '\0', text.size) != NULL)
        fail(reader, "The file of Kafka properties %.200s is too large, or not text.", path);
    else {
        buf_put_char(&text, '\0');
        CHECK(buf_ok(&text));
        good = take_lines(reader, path, text.data);
    }
    fclose(file);
    explicit_bzero(text.data, text.size);
no_file:
    buf_deinit(&text);
    return good;
}

/* ---- Both ---- */

bool kafka_config_parse(const char *url, const char *file, struct kafka_config **out, char *why,
                        size_t why_size)
{
    struct reader reader = {
        .config = calloc(1, sizeof(*reader.config)),
        .scratch = rd_kafka_conf_new(),
        .why = why,
        .why_size = why_size,
    };
    char *text = strdup(url);

    CHECK(reader.config != NULL);
    CHECK(text != NULL);
    bool good = take_url(&reader, text) && (file == NULL || take_file(&reader, file));
    explicit_bzero(text, strlen(url));
    free(text);
    rd_kafka_conf_destroy(reader.scratch);
    if (!good) {
        kafka_config_free(reader.config);
        reader.config = NULL;
    }
    *out = reader.config;
    return good;
}

void kafka_config_free(struct kafka_config *config)
{
    if (config == NULL)
        return;
    for (int32_t i = 0; i < config->count; i++) {
        free((char *)config->properties[i].name);
        explicit_bzero((char *)config->properties[i].value, strlen(config->properties[i].value));
        free((char *)config->properties[i].value);
    }
    free(config->brokers);
    free(config);
}

const char *kafka_config_brokers(const struct kafka_config *config)
{
    return config->brokers;
}
