/* SPDX-License-Identifier: Apache-2.0
 * Times, ids and text from outside: what is accepted must survive being written
 * and read again. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/text.h"
#include "base/uuid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_time(const char *text, size_t size)
{
    int64_t time_ms, again_ms;
    if (!time_parse(text, size, &time_ms))
        return;
    char written[TIME_TEXT_SIZE];
    time_format(time_ms, written);
    CHECK(time_parse(written, strlen(written), &again_ms));
    CHECK(again_ms <= time_ms);
    CHECK(time_ms - again_ms < 1000);
}

static void try_uuid(const char *text, size_t size)
{
    struct uuid uuid, again;
    char written[UUID_TEXT_SIZE];
    if (!uuid_parse(text, size, &uuid))
        return;
    uuid_format(&uuid, written);
    CHECK(uuid_parse(written, UUID_TEXT_SIZE - 1, &again));
    CHECK(uuid_equal(&uuid, &again));
}

static void try_json(const char *text, size_t size)
{
    if (!text_is_utf8(text, size))
        return;
    struct buf buf;
    struct jsonw json;
    buf_init(&buf);
    jsonw_begin(&json, &buf);
    jsonw_array_open(&json);
    jsonw_text_n(&json, text, size);
    jsonw_array_close(&json);
    json_t *tree = json_loadb(buf.data, buf.size, 0, NULL);
    CHECK(tree != NULL);
    json_t *value = json_array_get(tree, 0);
    CHECK(json_string_length(value) == size);
    CHECK(memcmp(json_string_value(value), text, size) == 0);
    json_decref(tree);
    buf_deinit(&buf);
}

static void try_quote(const char *text, size_t size)
{
    char copy[256], quoted[96];
    if (size >= sizeof(copy))
        size = sizeof(copy) - 1;
    memcpy(copy, text, size);
    copy[size] = '\0';
    log_quote(copy, quoted, sizeof(quoted));
    CHECK(text_is_utf8(quoted, strlen(quoted)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    try_time(text, size);
    try_uuid(text, size);
    try_json(text, size);
    try_quote(text, size);
    return 0;
}
