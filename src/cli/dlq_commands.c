/* SPDX-License-Identifier: Apache-2.0
 * `holdfast dlq commands`: the commands that no node could make sense of, from
 * the broker's own topic of dead letters. Reads only and belongs to no group, so
 * it takes nothing away from anybody. What was in a command is not shown, only
 * what kind it was: it may carry a payment token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "cli/setup.h"
#include "kafka/kafka.h"
#include "order/kafka/broker_kafka.h"
#include "order/wire.h"

enum {
    SILENCE_MS_MAX = 10000, /* without a word from any broker */
    LETTER_COUNT_MAX = 1000000,
};

struct letter {
    int64_t dead_ms, sent_ms, offset;
    int32_t partition;
    size_t size;
    char *topic, *reason;
    char *command; /* what can be said of it, or NULL */
};

/* The newest `limit` of all that came: a ring, once it is full. */
struct letters {
    struct letter *rows;
    int64_t limit;
    int64_t capacity;
    int64_t seen;
};

static void letters_grow(struct letters *letters)
{
    int64_t old = letters->capacity, wanted = old > 0 ? old * 2 : 256;
    letters->capacity = wanted < letters->limit ? wanted : letters->limit;
    letters->rows = realloc(letters->rows, sizeof(*letters->rows) * (size_t)letters->capacity);
    CHECK(letters->rows != NULL);
    memset(letters->rows + old, 0, sizeof(*letters->rows) * (size_t)(letters->capacity - old));
}

static void letter_forget(struct letter *letter)
{
    free(letter->topic);
    free(letter->reason);
    free(letter->command);
}

static void letters_forget(struct letters *letters)
{
    for (int64_t i = 0; i < letters->capacity; i++)
        letter_forget(&letters->rows[i]);
    free(letters->rows);
}

static bool keep_letter(void *context, const struct broker_kafka_dead_letter *letter)
{
    struct letters *letters = context;
    char command[256];

    if (letters->seen == letters->capacity && letters->capacity < letters->limit)
        letters_grow(letters);
    struct letter *row = &letters->rows[letters->seen++ % letters->limit];
    letter_forget(row);
    *row = (struct letter){
        .dead_ms = letter->dead_ms,
        .sent_ms = letter->sent_ms,
        .offset = letter->offset,
        .partition = letter->partition,
        .size = letter->size,
        .topic = strdup(letter->topic),
        .reason = strdup(letter->reason),
    };
    CHECK(row->topic != NULL && row->reason != NULL);
    if (wire_describe(letter->value, letter->size, command, sizeof command))
        row->command = strdup(command);
    return true;
}

static void print_text(const struct letter *letter)
{
    char dead[TIME_TEXT_SIZE], from[320];

    time_format(letter->dead_ms, dead);
    snprintf(from, sizeof from, "%s/%d/%lld", letter->topic, letter->partition, (long long)letter->offset);
    printf("%-20s  %-40s  %7zu  %-54s  %s\n", dead, from, letter->size,
           letter->command != NULL ? letter->command : "-", letter->reason);
}

static void print_json(const struct letter *letter, struct buf *out, struct jsonw *json)
{
    jsonw_begin(json, out);
    jsonw_object_open(json);
    jsonw_key_time(json, "dead_at", letter->dead_ms);
    jsonw_key_text(json, "reason", letter->reason);
    jsonw_key_text(json, "topic", letter->topic);
    jsonw_key_int(json, "partition", letter->partition);
    jsonw_key_int(json, "offset", letter->offset);
    if (letter->sent_ms > 0)
        jsonw_key_time(json, "sent_at", letter->sent_ms);
    else
        jsonw_key_null(json, "sent_at");
    jsonw_key_int(json, "size", (int64_t)letter->size);
    jsonw_key_text(json, "command", letter->command); /* null if it makes no sense */
    jsonw_object_close(json);
}

/* Newest first, as the dead letters of a store. */
static void print_letters(const struct letters *letters, bool as_json)
{
    int64_t count = letters->seen < letters->limit ? letters->seen : letters->limit;
    struct buf out;
    struct jsonw json;

    buf_init(&out);
    if (as_json)
        printf("[");
    else if (count > 0)
        printf("%-20s  %-40s  %7s  %-54s  %s\n", "given up", "topic/partition/offset", "bytes", "command",
               "reason");
    for (int64_t i = 1; i <= count; i++) {
        const struct letter *letter = &letters->rows[(letters->seen - i) % letters->limit];
        if (!as_json) {
            print_text(letter);
            continue;
        }
        buf_clear(&out);
        print_json(letter, &out, &json);
        CHECK(buf_ok(&out));
        printf("%s%.*s", i > 1 ? ",\n" : "", (int)out.size, out.data);
    }
    if (as_json)
        printf("]\n");
    else
        printf("%lld dead letter%s\n", (long long)count, count == 1 ? "" : "s");
    buf_deinit(&out);
}

int dlq_commands_run(const struct options *options)
{
    struct letters letters = {.limit = LETTER_COUNT_MAX};
    struct kafka_config *kafka = NULL;
    const char *url;
    int64_t count = 0;
    char why[1024] = "";

    if (options->values[OPTION_LIMIT] != NULL &&
        !options_integer(options, OPTION_LIMIT, 1, LETTER_COUNT_MAX, &letters.limit, why, sizeof why))
        return cli_fail_usage(VERB_DLQ, "%s", why);
    if (options_given(options, OPTION_ORG))
        return cli_fail_usage(VERB_DLQ, "--org goes with `dlq list`: commands are told by their topics");
    if (!setup_order_url(options, &url, why, sizeof why))
        return cli_fail_usage(VERB_DLQ, "%s", why);
    if (url == NULL)
        return cli_fail_usage(VERB_DLQ, "give --order kafka://...: the dead letters of commands are there");
    if (!kafka_config_parse(url, options->values[OPTION_ORDER_CONFIG], &kafka, why, sizeof why))
        return cli_fail_usage(VERB_DLQ, "%s", why);
    enum err err = broker_kafka_dead_letters(kafka, options->values[OPTION_ORDER_PREFIX], INT64_MAX,
                                             SILENCE_MS_MAX, keep_letter, &letters, &count, why, sizeof why);
    if (err == ERR_OK)
        print_letters(&letters, options->values[OPTION_JSON] != NULL);
    letters_forget(&letters);
    kafka_config_free(kafka);
    return err == ERR_OK ? EXIT_DONE : cli_fail("%s", why[0] != '\0' ? why : err_text(err));
}
