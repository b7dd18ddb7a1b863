/* SPDX-License-Identifier: Apache-2.0
 * Best available over any rows. The first byte is the quantity and whether the
 * seats must be adjacent; then rows: a length, and a bit for each seat. Words
 * are allocated to the exact size, so that a sanitizer sees a read beyond. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "hold/best.h"

enum { ROW_COUNT_MAX = 64, SEAT_COUNT_MAX = ROW_COUNT_MAX * 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct hall {
    struct bit_row rows[ROW_COUNT_MAX];
    int32_t row_count;
    int32_t seat_count;
    uint64_t *bits;
};

static void hall_read(struct hall *hall, const uint8_t *data, size_t size)
{
    uint8_t is_free[SEAT_COUNT_MAX];
    while (size > 0 && hall->row_count < ROW_COUNT_MAX) {
        struct bit_row *row = &hall->rows[hall->row_count++];
        *row = (struct bit_row){.first = hall->seat_count, .count = *data++};
        size--;
        for (int32_t i = 0; i < row->count; i++)
            is_free[hall->seat_count++] = (size_t)i / 8 < size && (data[i / 8] >> (i % 8) & 1);
        size_t used = ((size_t)row->count + 7) / 8;
        used = used < size ? used : size;
        data += used;
        size -= used;
    }
    hall->bits = calloc((size_t)(hall->seat_count + 63) / 64 + (hall->seat_count == 0), sizeof *hall->bits);
    CHECK(hall->bits != NULL);
    for (int32_t i = 0; i < hall->seat_count; i++)
        bit_set(hall->bits, i, is_free[i]);
}

static int32_t free_count(const struct hall *hall)
{
    int32_t count = 0;
    for (int32_t i = 0; i < hall->seat_count; i++)
        count += bit_get(hall->bits, i);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    int32_t quantity = 1 + (data[0] & 0x7f) % HOLD_SEAT_COUNT_MAX;
    bool adjacent = data[0] >> 7;
    struct hall hall = {.row_count = 0};
    hall_read(&hall, data + 1, size - 1);
    struct bit_rows rows = {.free = hall.bits, .rows = hall.rows, .row_count = hall.row_count};

    int32_t seats[HOLD_SEAT_COUNT_MAX], stranded[2 * HOLD_SEAT_COUNT_MAX];
    struct best_explanation explanation;
    enum err err = best_find(&rows, quantity, adjacent, seats, &explanation);
    if (err == ERR_OK) {
        for (int32_t i = 0; i < quantity; i++) {
            CHECK(seats[i] >= 0);
            CHECK(seats[i] < hall.seat_count);
            CHECK(bit_get(hall.bits, seats[i]));
            CHECK(i == 0 || seats[i] > seats[i - 1]);
        }
        CHECK(explanation.split >= 1);
        CHECK(explanation.adjacent == (explanation.split == 1));
        CHECK(explanation.adjacent || !adjacent);
        CHECK(explanation.distance >= 0);
        CHECK(explanation.distance <= 128);
        int32_t count = best_stranded(&rows, seats, quantity, stranded);
        CHECK(count <= explanation.stranded);
    } else {
        CHECK(err == ERR_NOT_ENOUGH_SEATS);
        CHECK(adjacent || free_count(&hall) < quantity);
    }
    free(hall.bits);
    return 0;
}
