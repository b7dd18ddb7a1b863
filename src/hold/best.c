/* SPDX-License-Identifier: Apache-2.0
 * Best available: which seats to offer someone who asks for a number of them,
 * and whether a choice of somebody's own leaves a single seat nobody will buy.
 * The lane calls it with the free seats of an event as bits, and holds what it
 * answers like named seats.
 *
 * Invariants:
 *  1. Every seat answered is free, in one of the rows given, and named once.
 *  2. A run never crosses the edge of a row, whether or not rows share a word.
 *  3. The same rows and the same question give the same answer.
 *  4. No memory is allocated, and no word outside the rows given is read.
 *
 * Pure: any thread. It does not know capacities, prices or who asks; it does
 * not weigh rows against each other beyond their order. */
#include "hold/best.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/limits.h"

#define WORD_BITS 64

/* row_has_run() looks at two neighbouring words at a time. */
_Static_assert(HOLD_SEAT_COUNT_MAX <= WORD_BITS, "a run asked for spans at most two words");

struct run { /* free seats side by side, as many as there are */
    int32_t first;
    int32_t count;
};

struct place { /* `quantity` seats side by side */
    int32_t first;
    int32_t stranded;
    int32_t offset_halves; /* from its middle to the row's, in half seats: stays a whole number */
};

/* ---- Bits to runs ---- */

static int32_t bits_next(const uint64_t *bits, int32_t from, int32_t end, bool value)
{
    while (from < end) {
        uint64_t word = bits[from / WORD_BITS];
        word = (value ? word : ~word) >> (from % WORD_BITS);
        if (word != 0) {
            int32_t found = from + __builtin_ctzll(word);
            return found < end ? found : end;
        }
        from = (from / WORD_BITS + 1) * WORD_BITS;
    }
    return end;
}

/* The next run at or after `*position` (start it at row->first); false at the end of the row. */
static bool run_next(const uint64_t *bits, const struct bit_row *row, int32_t *position, struct run *run)
{
    int32_t end = row->first + row->count;
    run->first = bits_next(bits, *position, end, true);
    if (run->first == end)
        return false;
    *position = bits_next(bits, run->first, end, false);
    run->count = *position - run->first;
    return true;
}

/* 64 bits from `from` on; those at `end` and after are 0. */
static uint64_t bits_window(const uint64_t *bits, int32_t from, int32_t end)
{
    if (from >= end)
        return 0;
    int32_t word = from / WORD_BITS, shift = from % WORD_BITS, count = end - from;
    uint64_t window = bits[word] >> shift;
    if (shift != 0 && WORD_BITS - shift < count)
        window |= bits[word + 1] << (WORD_BITS - shift);
    return count < WORD_BITS ? window & ((1ull << count) - 1) : window;
}

/* Whether a row has `quantity` free seats side by side, 64 starting places at a time: after
 * ANDing a window with itself shifted by 1, 2, 4, … bit i says "a run of that length begins at i". */
static bool row_has_run(const uint64_t *bits, const struct bit_row *row, int32_t quantity)
{
    int32_t end = row->first + row->count;
    for (int32_t from = row->first; from < end; from += WORD_BITS) {
        uint64_t low = bits_window(bits, from, end);
        uint64_t high = bits_window(bits, from + WORD_BITS, end);
        for (int32_t length = 1; length < quantity && low != 0;) {
            int32_t step = length < quantity - length ? length : quantity - length;
            low &= low >> step | high << (WORD_BITS - step);
            high &= high >> step;
            length += step;
        }
        if (low != 0)
            return true;
    }
    return false;
}

/* ---- One run in one row ---- */

/* From the middle of `count` seats at `first` to the middle of the row, in half seats. */
static int32_t offset_halves(const struct bit_row *row, int32_t first, int32_t count)
{
    return abs(2 * (first - row->first) + count - row->count);
}

static bool place_better(const struct place *a, const struct place *b)
{
    if (a->stranded != b->stranded)
        return a->stranded < b->stranded;
    return a->offset_halves < b->offset_halves; /* a tie stays with the lower index, seen first */
}

/* The best place of a row that has one: strands least, then nearest the centre. */
static struct place row_place(const uint64_t *bits, const struct bit_row *row, int32_t quantity)
{
    struct place best = {.first = -1};
    struct run run;
    for (int32_t position = row->first; run_next(bits, row, &position, &run);) {
        for (int32_t left = 0; left + quantity <= run.count; left++) {
            int32_t right = run.count - quantity - left;
            struct place place = {
                .first = run.first + left,
                .stranded = (left == 1) + (right == 1),
                .offset_halves = offset_halves(row, run.first + left, quantity),
            };
            if (best.first < 0 || place_better(&place, &best))
                best = place;
        }
    }
    CHECK(best.first >= 0);
    return best;
}

/* The next row from `*position` on that has a run, or NULL; moves past it. */
static const struct bit_row *rows_next_with_run(const struct bit_rows *rows, int32_t quantity,
                                                int32_t *position)
{
    while (*position < rows->row_count) {
        const struct bit_row *row = &rows->rows[(*position)++];
        if (row_has_run(rows->free, row, quantity))
            return row;
    }
    return NULL;
}

/* Sum of the seats' distances from their row's centre, in half seats. */
static int64_t distance_halves(const struct bit_row *row, int32_t first, int32_t count)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += offset_halves(row, first + i, 1);
    return sum;
}

static bool find_adjacent(const struct bit_rows *rows, int32_t quantity, int32_t *seats,
                          struct best_explanation *out)
{
    int32_t position = 0;
    const struct bit_row *row = rows_next_with_run(rows, quantity, &position);
    if (row == NULL)
        return false;
    struct place place = row_place(rows->free, row, quantity);
    if (place.stranded > 0) {
        /* One row further back is a fair price for not stranding anybody; more is not. */
        const struct bit_row *next = rows_next_with_run(rows, quantity, &position);
        struct place behind = next != NULL ? row_place(rows->free, next, quantity) : place;
        if (behind.stranded == 0) {
            row = next;
            place = behind;
        }
    }
    for (int32_t i = 0; i < quantity; i++)
        seats[i] = place.first + i;
    *out = (struct best_explanation){
        .adjacent = true,
        .split = 1,
        .stranded = place.stranded,
        .distance = (double)distance_halves(row, place.first, quantity) / 2 / quantity,
    };
    return true;
}

/* ---- Several runs combined ---- */

struct split_plan {
    int32_t take[HOLD_SEAT_COUNT_MAX]; /* by length: how many runs of it are taken, the earliest first */
    int32_t length_last;               /* the shortest length taken: the last run of it is cut … */
    int32_t count_last;                /* … to this many seats */
};

/* False if all free seats together are not enough. No row has a run of `quantity`, so every
 * length is below it. */
static bool split_plan_make(const struct bit_rows *rows, int32_t quantity, struct split_plan *plan)
{
    int32_t available[HOLD_SEAT_COUNT_MAX] = {0};
    *plan = (struct split_plan){.length_last = 0};
    for (int32_t r = 0; r < rows->row_count; r++) {
        struct run run;
        for (int32_t position = rows->rows[r].first; run_next(rows->free, &rows->rows[r], &position, &run);) {
            CHECK(run.count < quantity);
            available[run.count]++;
        }
    }
    int32_t missing = quantity;
    for (int32_t length = quantity - 1; length > 0 && missing > 0; length--) {
        int32_t needed = (missing + length - 1) / length;
        int32_t taken = available[length] < needed ? available[length] : needed;
        if (taken == 0)
            continue;
        plan->take[length] = taken;
        plan->length_last = length;
        plan->count_last = length < missing - (taken - 1) * length ? length : missing - (taken - 1) * length;
        missing -= taken * length;
    }
    return missing <= 0;
}

/* Seats come in the order of rows, which the caller may have chosen. */
static void seat_insert(int32_t *seats, int32_t count, int32_t seat)
{
    for (; count > 0 && seats[count - 1] > seat; count--)
        seats[count] = seats[count - 1];
    seats[count] = seat;
}

static bool find_split(const struct bit_rows *rows, int32_t quantity, int32_t *seats,
                       struct best_explanation *out)
{
    struct split_plan plan;
    if (!split_plan_make(rows, quantity, &plan))
        return false;
    *out = (struct best_explanation){.adjacent = false};
    int64_t halves = 0;
    int32_t chosen = 0;
    for (int32_t r = 0; r < rows->row_count && chosen < quantity; r++) {
        const struct bit_row *row = &rows->rows[r];
        struct run run;
        for (int32_t position = row->first; run_next(rows->free, row, &position, &run);) {
            if (plan.take[run.count] == 0)
                continue;
            plan.take[run.count]--;
            struct run part = run;
            if (run.count == plan.length_last && plan.take[run.count] == 0) {
                /* At an end, what is left stays together; the end nearer the centre. */
                part.count = plan.count_last;
                int32_t far = run.first + run.count - part.count;
                if (offset_halves(row, far, part.count) < offset_halves(row, run.first, part.count))
                    part.first = far;
            }
            for (int32_t i = 0; i < part.count; i++)
                seat_insert(seats, chosen++, part.first + i);
            out->split++;
            out->stranded += run.count - part.count == 1;
            halves += distance_halves(row, part.first, part.count);
        }
    }
    CHECK(chosen == quantity);
    out->distance = (double)halves / 2 / quantity;
    return true;
}

enum err best_find(const struct bit_rows *rows, int32_t quantity, bool adjacent, int32_t *seats,
                   struct best_explanation *out)
{
    CHECK(quantity >= 1);
    CHECK(quantity <= HOLD_SEAT_COUNT_MAX);
    if (find_adjacent(rows, quantity, seats, out))
        return ERR_OK;
    if (!adjacent && find_split(rows, quantity, seats, out))
        return ERR_OK;
    return ERR_NOT_ENOUGH_SEATS;
}

/* ---- The rule against single seats ---- */

/* First of the ascending `seats` that is at or after `index`. */
static int32_t seats_lower_bound(const int32_t *seats, int32_t count, int32_t index)
{
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (seats[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The seats of `run` that stand alone once the `count` seats, all in it, are taken. */
static int32_t run_singles(const struct run *run, const int32_t *seats, int32_t count, int32_t *singles)
{
    int32_t found = 0, gap_first = run->first;
    for (int32_t i = 0; i <= count; i++) {
        int32_t gap_end = i < count ? seats[i] : run->first + run->count;
        if (gap_end - gap_first == 1)
            singles[found++] = gap_first;
        gap_first = gap_end + 1;
    }
    return found;
}

int32_t best_stranded(const struct bit_rows *rows, const int32_t *seats, int32_t count, int32_t *stranded)
{
    int32_t found = 0;
    for (int32_t r = 0; r < rows->row_count; r++) {
        const struct bit_row *row = &rows->rows[r];
        int32_t end = row->first + row->count;
        int32_t i = seats_lower_bound(seats, count, row->first);
        int32_t position = row->first;
        struct run run;
        while (i < count && seats[i] < end && run_next(rows->free, row, &position, &run)) {
            int32_t first = i;
            for (; i < count && seats[i] < run.first + run.count; i++)
                CHECK(seats[i] >= run.first); /* a taken seat is no choice */
            /* As many seats at an end of the run leave the rest together: that strands nobody,
             * unless the rest is one seat, and then no other place is better either. */
            if (i > first && run.count - (i - first) != 1)
                found += run_singles(&run, seats + first, i - first, stranded + found);
        }
    }
    return found;
}
