/* SPDX-License-Identifier: Apache-2.0
 * Bodies of requests: every field is read as every type. */
#include <stddef.h>
#include <stdint.h>

#include "api/body.h"
#include "base/check.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_fields(struct body *body)
{
    const char *text;
    struct uuid id, *ids;
    int64_t number = 0, time_ms;
    int32_t count = 0;
    bool flag;
    body_text(body, "a", TEXT_SIZE_MAX, &text);
    body_uuid(body, "b", &id);
    if (body_int(body, "c", 1, 50, &number)) {
        CHECK(number >= 1);
        CHECK(number <= 50);
    }
    body_bool(body, "d", &flag);
    body_time(body, "e", &time_ms);
    if (body_uuids(body, "f", 1, HOLD_SEAT_COUNT_MAX, &ids, &count))
        CHECK(count > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct body body;
    arena_init(&arena);
    body_open(&body, &arena, (const char *)data, size);
    read_fields(&body);
    if (body_enter(&body, "g")) {
        read_fields(&body);
        body_leave(&body);
    }
    if (!body_close(&body))
        CHECK(body.message != NULL);
    arena_deinit(&arena);
    return 0;
}
