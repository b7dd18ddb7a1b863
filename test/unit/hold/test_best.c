/* SPDX-License-Identifier: Apache-2.0
 * Best available and the single-seat rule. Rows are drawn: '.' is free, 'x' is
 * taken, '/' ends a row; they are laid into the bits from an odd place on, so
 * that rows and words never agree. Random rows are compared with a plain model
 * that looks at every place one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/limits.h"
#include "hold/best.h"

enum { HALL_SEATS_MAX = 4096, HALL_ROWS_MAX = 64, HALL_OFFSET = 37 };

struct hall {
    uint64_t bits[HALL_SEATS_MAX / 64];
    struct bit_row row_list[HALL_ROWS_MAX];
    struct bit_rows rows;
    int32_t end;
};

static void hall_row_begin(struct hall *hall)
{
    hall->row_list[hall->rows.row_count++] = (struct bit_row){.first = hall->end};
}

static void hall_seat(struct hall *hall, bool is_free)
{
    bit_set(hall->bits, hall->end++, is_free);
    hall->row_list[hall->rows.row_count - 1].count++;
}

static void hall_empty(struct hall *hall)
{
    memset(hall, 0, sizeof *hall);
    /* Free neighbours in front and behind must never be chosen. */
    memset(hall->bits, 0xff, sizeof hall->bits);
    hall->rows = (struct bit_rows){.free = hall->bits, .rows = hall->row_list};
    hall->end = HALL_OFFSET;
}

static void hall_draw(struct hall *hall, const char *picture)
{
    hall_empty(hall);
    hall_row_begin(hall);
    for (const char *c = picture; *c != '\0'; c++) {
        if (*c == '/')
            hall_row_begin(hall);
        else
            hall_seat(hall, *c == '.');
    }
}

/* Expects the choice drawn with 'o' in `picture`, and says what it strands and splits. */
static struct best_explanation expect_choice(const char *picture, int32_t quantity, bool adjacent)
{
    struct hall hall;
    char free_picture[512];
    size_t length = strlen(picture);
    assert_true(length < sizeof free_picture);
    int32_t wanted[HOLD_SEAT_COUNT_MAX], wanted_count = 0, index = HALL_OFFSET;
    for (size_t i = 0; i <= length; i++) {
        free_picture[i] = picture[i] == 'o' ? '.' : picture[i];
        if (picture[i] == 'o')
            wanted[wanted_count++] = index;
        index += picture[i] != '/';
    }
    assert_int_equal(wanted_count, quantity);
    hall_draw(&hall, free_picture);
    int32_t seats[HOLD_SEAT_COUNT_MAX];
    struct best_explanation explanation;
    assert_int_equal(best_find(&hall.rows, quantity, adjacent, seats, &explanation), ERR_OK);
    for (int32_t i = 0; i < quantity; i++)
        assert_int_equal(seats[i], wanted[i]);
    return explanation;
}

static void expect_not_enough(const char *picture, int32_t quantity, bool adjacent)
{
    struct hall hall;
    hall_draw(&hall, picture);
    int32_t seats[HOLD_SEAT_COUNT_MAX];
    memset(seats, 0x7a, sizeof seats);
    struct best_explanation explanation;
    assert_int_equal(best_find(&hall.rows, quantity, adjacent, seats, &explanation), ERR_NOT_ENOUGH_SEATS);
    for (int32_t i = 0; i < HOLD_SEAT_COUNT_MAX; i++)
        assert_int_equal(seats[i], 0x7a7a7a7a);
}

/* ---- Named cases: best_find ---- */

static void test_takes_the_centre_of_an_empty_row(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice("...ooo...", 3, true);
    assert_true(e.adjacent);
    assert_int_equal(e.split, 1);
    assert_int_equal(e.stranded, 0);
    assert_float_equal(e.distance, 2.0 / 3, 1e-9);
    e = expect_choice("..o..", 1, true);
    assert_float_equal(e.distance, 0, 1e-9);
    e = expect_choice("...oo...", 2, true);
    assert_float_equal(e.distance, 0.5, 1e-9);
}

static void test_a_tie_goes_to_the_lower_seat(void **state)
{
    (void)state;
    expect_choice("..oo...", 2, true);
    expect_choice("..oxx..", 1, true);    /* strands nobody: two are left */
    expect_choice("..ooxx....", 2, true); /* the other run's near end is as far */
}

static void test_the_front_row_wins_over_a_better_place_behind(void **state)
{
    (void)state;
    expect_choice("..ooxxxxxx/..........", 2, true);
    expect_choice("xxxx/.x.x./xoo.../......", 2, true);
}

static void test_the_centre_is_that_of_the_whole_row_not_of_the_run(void **state)
{
    (void)state;
    expect_choice("......oo"
                  "xxxxxxxx",
                  2, true);
    expect_choice("xxxxxxxx"
                  "oo......",
                  2, true);
}

static void test_prefers_a_place_that_strands_nobody_in_the_same_row(void **state)
{
    (void)state;
    /* The centre would leave one seat on each side. */
    struct best_explanation e = expect_choice("oo..", 2, true);
    assert_int_equal(e.stranded, 0);
    e = expect_choice("xxxoox...", 2, true); /* an exact fit */
    assert_int_equal(e.stranded, 0);
    e = expect_choice("ooo..", 3, true);
    assert_int_equal(e.stranded, 0);
}

static void test_goes_one_row_back_rather_than_strand(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice("...xxx/xoo.../......", 2, true);
    assert_int_equal(e.stranded, 0);
    e = expect_choice("...xxx/xxxxxx/..oo..", 2, true); /* the next that has a place at all */
    assert_int_equal(e.stranded, 0);
}

static void test_looks_at_one_row_further_only(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice(".ooxxx/...xxx/......", 2, true);
    assert_int_equal(e.stranded, 1);
}

static void test_strands_where_there_is_no_other_place(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice("oo.", 2, true);
    assert_int_equal(e.stranded, 1);
    e = expect_choice("x.ooxxx", 2, true);
    assert_int_equal(e.stranded, 1);
    assert_float_equal(e.distance, 0.5, 1e-9);
}

static void test_fills_a_row_exactly(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice("x/oooo/....", 4, true);
    assert_int_equal(e.stranded, 0);
    assert_float_equal(e.distance, 1, 1e-9);
}

static void test_a_run_does_not_cross_the_edge_of_a_row(void **state)
{
    (void)state;
    expect_not_enough("x../..x", 3, true);
    expect_not_enough("....", 5, true);
}

static void test_adjacent_is_refused_when_only_parts_are_free(void **state)
{
    (void)state;
    expect_not_enough("..x..x../..x..", 3, true);
    expect_not_enough("xxxx/xxxx", 1, true);
    expect_not_enough("", 1, true);
}

static void test_not_adjacent_still_takes_one_run_when_a_row_has_it(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice("..x..x../..xooox/...", 3, false);
    assert_true(e.adjacent);
    assert_int_equal(e.split, 1);
}

static void test_split_combines_the_largest_runs(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice(".x.x../ooox.x./.oox.x.", 5, false);
    assert_false(e.adjacent);
    assert_int_equal(e.split, 2);
    assert_int_equal(e.stranded, 1); /* two of a run of three always leave one */
}

static void test_split_prefers_earlier_rows_among_equal_runs(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice(".x.x/oox./oox./..x.", 4, false);
    assert_int_equal(e.split, 2);
    assert_int_equal(e.stranded, 0);
}

static void test_split_keeps_the_rest_of_its_last_run_together(void **state)
{
    (void)state;
    /* Five, then one of four: from its end nearer the centre, and three stay side by side. */
    struct best_explanation e = expect_choice("xxooooo/...oxxx", 6, false);
    assert_int_equal(e.split, 2);
    assert_int_equal(e.stranded, 0);
}

static void test_split_takes_singles_when_nothing_else_is_left(void **state)
{
    (void)state;
    struct best_explanation e = expect_choice("oxoxo/xoxox/xx.xx", 5, false);
    assert_int_equal(e.split, 5);
    assert_false(e.adjacent);
    assert_float_equal(e.distance, (2 + 0 + 2 + 1 + 1) / 5.0, 1e-9);
}

static void test_split_needs_enough_seats_in_all(void **state)
{
    (void)state;
    expect_not_enough(".x.x./x.x.x", 6, false);
    expect_choice("oxoxo/xoxox", 5, false);
}

static void test_split_seats_ascend_even_when_rows_do_not(void **state)
{
    (void)state;
    struct hall hall;
    hall_draw(&hall, "..x./..x.");
    struct bit_row swapped[2] = {hall.row_list[1], hall.row_list[0]};
    hall.rows.rows = swapped;
    int32_t seats[3];
    struct best_explanation e;
    assert_int_equal(best_find(&hall.rows, 3, false, seats, &e), ERR_OK);
    /* Both of the row that is in front, and one of the other, nearer its centre. */
    assert_int_equal(seats[0], HALL_OFFSET + 1);
    assert_int_equal(seats[1], HALL_OFFSET + 4);
    assert_int_equal(seats[2], HALL_OFFSET + 5);
}

static void test_runs_longer_than_a_word_are_found(void **state)
{
    (void)state;
    for (int32_t before = 0; before < 130; before++) {
        struct hall hall;
        hall_empty(&hall);
        hall_row_begin(&hall);
        for (int32_t i = 0; i < before; i++)
            hall_seat(&hall, i % 40 != 39); /* never fifty side by side */
        if (before > 0)
            bit_set(hall.bits, hall.end - 1, false);
        for (int32_t i = 0; i < HOLD_SEAT_COUNT_MAX; i++)
            hall_seat(&hall, true);
        int32_t seats[HOLD_SEAT_COUNT_MAX];
        struct best_explanation e;
        assert_int_equal(best_find(&hall.rows, HOLD_SEAT_COUNT_MAX, true, seats, &e), ERR_OK);
        assert_int_equal(seats[0], HALL_OFFSET + before);
        bit_set(hall.bits, HALL_OFFSET + before + 20, false);
        assert_int_equal(best_find(&hall.rows, HOLD_SEAT_COUNT_MAX, true, seats, &e), ERR_NOT_ENOUGH_SEATS);
    }
}

/* ---- Named cases: best_stranded ---- */

/* 'o' is asked for, '!' is free and expected to be named as stranded. */
static void expect_stranded(const char *picture)
{
    struct hall hall;
    char free_picture[256];
    size_t length = strlen(picture);
    assert_true(length < sizeof free_picture);
    int32_t seats[64], count = 0, wanted[64], wanted_count = 0, index = HALL_OFFSET;
    for (size_t i = 0; i <= length; i++) {
        free_picture[i] = picture[i] == 'o' || picture[i] == '!' ? '.' : picture[i];
        if (picture[i] == 'o')
            seats[count++] = index;
        if (picture[i] == '!')
            wanted[wanted_count++] = index;
        index += picture[i] != '/';
    }
    hall_draw(&hall, free_picture);
    int32_t stranded[128];
    assert_int_equal(best_stranded(&hall.rows, seats, count, stranded), wanted_count);
    for (int32_t i = 0; i < wanted_count; i++)
        assert_int_equal(stranded[i], wanted[i]);
}

static void test_a_gap_of_one_at_an_edge_is_stranded(void **state)
{
    (void)state;
    expect_stranded("!oo...");
    expect_stranded("...oo!");
    expect_stranded("xx!oo..xx");
}

static void test_a_gap_of_one_between_ones_own_seats_is_stranded(void **state)
{
    (void)state;
    expect_stranded("..o!o..");
    expect_stranded("!o!o..");
}

static void test_gaps_of_two_are_fine(void **state)
{
    (void)state;
    expect_stranded("oo..oo");
    expect_stranded("..oo..");
    expect_stranded("oo....");
}

static void test_no_objection_when_no_place_is_better(void **state)
{
    (void)state;
    expect_stranded(".oo");
    expect_stranded("o.o");
    expect_stranded("xo.x");
    expect_stranded("oooo.");
}

static void test_seats_that_stood_alone_before_are_not_counted(void **state)
{
    (void)state;
    expect_stranded(".x.xoo..x.");
    expect_stranded("ox.xo");
    expect_stranded("oooo");
}

static void test_each_run_is_judged_by_itself(void **state)
{
    (void)state;
    expect_stranded(".oox!o...x..o../!oo..");
    expect_stranded("..../oo./!o..");
}

static void test_rows_without_asked_seats_are_left_alone(void **state)
{
    (void)state;
    expect_stranded(".x.x./..oo../.x.x.");
    expect_stranded("......");
}

/* ---- Against a plain model ---- */

static uint64_t random_state = 0x9E3779B97F4A7C15ull;

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

static void hall_random(struct hall *hall)
{
    uint32_t row_count = 1 + random_below(5), density = 1 + random_below(9);
    hall_empty(hall);
    for (uint32_t r = 0; r < row_count; r++) {
        hall_row_begin(hall);
        for (uint32_t i = 1 + random_below(random_below(8) == 0 ? 150 : 14); i > 0; i--)
            hall_seat(hall, random_below(10) < density);
    }
}

/* Free, and in this row. */
static bool model_is_free(const struct hall *hall, int32_t row, int32_t index)
{
    const struct bit_row *r = &hall->row_list[row];
    return index >= r->first && index < r->first + r->count && bit_get(hall->bits, index);
}

static bool model_fits(const struct hall *hall, int32_t row, int32_t first, int32_t quantity)
{
    for (int32_t i = 0; i < quantity; i++) {
        if (!model_is_free(hall, row, first + i))
            return false;
    }
    return true;
}

static int32_t model_strands(const struct hall *hall, int32_t row, int32_t first, int32_t quantity)
{
    int32_t last = first + quantity - 1;
    return (model_is_free(hall, row, first - 1) && !model_is_free(hall, row, first - 2)) +
           (model_is_free(hall, row, last + 1) && !model_is_free(hall, row, last + 2));
}

static double model_distance(const struct hall *hall, int32_t row, int32_t first, int32_t quantity)
{
    const struct bit_row *r = &hall->row_list[row];
    double centre = r->first + (r->count - 1) / 2.0, middle = first + (quantity - 1) / 2.0;
    return middle > centre ? middle - centre : centre - middle;
}

/* The best first seat in a row, or −1. */
static int32_t model_row(const struct hall *hall, int32_t row, int32_t quantity)
{
    int32_t best = -1;
    for (int32_t first = hall->row_list[row].first;
         first < hall->row_list[row].first + hall->row_list[row].count; first++) {
        if (!model_fits(hall, row, first, quantity))
            continue;
        int32_t strands = model_strands(hall, row, first, quantity);
        if (best < 0 || strands < model_strands(hall, row, best, quantity) ||
            (strands == model_strands(hall, row, best, quantity) &&
             model_distance(hall, row, first, quantity) < model_distance(hall, row, best, quantity)))
            best = first;
    }
    return best;
}

/* The first seat of the best place in all rows, or −1. */
static int32_t model_find(const struct hall *hall, int32_t quantity, int32_t *row_out)
{
    int32_t found = -1;
    for (int32_t row = 0; row < hall->rows.row_count; row++) {
        int32_t first = model_row(hall, row, quantity);
        if (first < 0)
            continue;
        int32_t strands = model_strands(hall, row, first, quantity);
        if (found < 0 || strands == 0) {
            if (found < 0 || strands < model_strands(hall, *row_out, found, quantity)) {
                *row_out = row;
                if (found >= 0 || strands == 0)
                    return first;
                found = first;
                continue;
            }
        }
        break;
    }
    return found;
}

static void test_adjacent_agrees_with_the_model_on_random_rows(void **state)
{
    (void)state;
    int32_t found = 0;
    for (int32_t round = 0; round < 60000; round++) {
        struct hall hall;
        hall_random(&hall);
        int32_t quantity = 1 + (int32_t)random_below(random_below(5) == 0 ? 50 : 6);
        int32_t seats[HOLD_SEAT_COUNT_MAX], row = -1;
        struct best_explanation e;
        int32_t wanted = model_find(&hall, quantity, &row);
        enum err err = best_find(&hall.rows, quantity, true, seats, &e);
        assert_int_equal(err, wanted < 0 ? ERR_NOT_ENOUGH_SEATS : ERR_OK);
        if (wanted < 0)
            continue;
        found++;
        double sum = 0;
        for (int32_t i = 0; i < quantity; i++) {
            assert_int_equal(seats[i], wanted + i);
            sum += model_distance(&hall, row, wanted + i, 1);
        }
        assert_int_equal(e.stranded, model_strands(&hall, row, wanted, quantity));
        assert_float_equal(e.distance, sum / quantity, 1e-9);
        assert_true(e.adjacent);
    }
    assert_true(found > 10000);
}

/* Lengths of all runs, largest first. */
static int32_t model_runs(const struct hall *hall, int32_t *lengths)
{
    int32_t count = 0;
    for (int32_t row = 0; row < hall->rows.row_count; row++) {
        for (int32_t i = 0; i < hall->row_list[row].count; i++) {
            int32_t index = hall->row_list[row].first + i;
            if (!model_is_free(hall, row, index))
                continue;
            if (model_is_free(hall, row, index - 1))
                lengths[count - 1]++;
            else
                lengths[count++] = 1;
        }
    }
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = i + 1; j < count; j++) {
            int32_t larger = lengths[i] > lengths[j] ? lengths[i] : lengths[j];
            lengths[j] = lengths[i] + lengths[j] - larger;
            lengths[i] = larger;
        }
    }
    return count;
}

/* Lengths of the groups a choice consists of, largest first. */
static int32_t choice_groups(const struct hall *hall, const int32_t *seats, int32_t quantity,
                             int32_t *lengths)
{
    struct hall chosen = *hall;
    chosen.rows.free = chosen.bits;
    for (int32_t i = HALL_OFFSET; i < chosen.end; i++)
        bit_set(chosen.bits, i, false);
    for (int32_t i = 0; i < quantity; i++)
        bit_set(chosen.bits, seats[i], true);
    return model_runs(&chosen, lengths);
}

static void test_split_agrees_with_the_model_on_random_rows(void **state)
{
    (void)state;
    int32_t split = 0;
    for (int32_t round = 0; round < 60000; round++) {
        struct hall hall;
        hall_random(&hall);
        int32_t quantity = 1 + (int32_t)random_below(20);
        int32_t seats[HOLD_SEAT_COUNT_MAX], lengths[HALL_SEATS_MAX], groups[HOLD_SEAT_COUNT_MAX];
        struct best_explanation e;
        int32_t run_count = model_runs(&hall, lengths), total = 0;
        for (int32_t i = 0; i < run_count; i++)
            total += lengths[i];
        enum err err = best_find(&hall.rows, quantity, false, seats, &e);
        assert_int_equal(err, total < quantity ? ERR_NOT_ENOUGH_SEATS : ERR_OK);
        if (err != ERR_OK)
            continue;
        for (int32_t i = 0; i < quantity; i++) {
            assert_true(bit_get(hall.bits, seats[i]));
            assert_true(i == 0 || seats[i] > seats[i - 1]);
            assert_true(seats[i] >= HALL_OFFSET && seats[i] < hall.end);
        }
        int32_t group_count = choice_groups(&hall, seats, quantity, groups);
        assert_int_equal(e.split, group_count);
        assert_int_equal(e.adjacent, group_count == 1);
        if (lengths[0] >= quantity) {
            assert_int_equal(group_count, 1);
            continue;
        }
        /* The largest runs whole, then the rest. */
        split++;
        int32_t missing = quantity, stranded = 0;
        for (int32_t i = 0; i < group_count; i++) {
            int32_t part = lengths[i] < missing ? lengths[i] : missing;
            assert_int_equal(groups[i], part);
            stranded += lengths[i] - part == 1;
            missing -= part;
        }
        assert_int_equal(missing, 0);
        assert_int_equal(e.stranded, stranded);
    }
    assert_true(split > 5000);
}

/* Single seats a choice makes, and whether another place in the same run makes none, one by one. */
static int32_t model_stranded(const struct hall *hall, const int32_t *seats, int32_t count, int32_t *stranded)
{
    struct hall after = *hall;
    after.rows.free = after.bits;
    for (int32_t i = 0; i < count; i++)
        bit_set(after.bits, seats[i], false);
    int32_t found = 0;
    for (int32_t row = 0; row < hall->rows.row_count; row++) {
        int32_t end = hall->row_list[row].first + hall->row_list[row].count;
        for (int32_t s = hall->row_list[row].first; s < end; s++) {
            bool single = model_is_free(&after, row, s) && !model_is_free(&after, row, s - 1) &&
                          !model_is_free(&after, row, s + 1);
            bool single_before = !model_is_free(hall, row, s - 1) && !model_is_free(hall, row, s + 1);
            if (!single || single_before)
                continue;
            int32_t first = s, last = s, taken = 0;
            while (model_is_free(hall, row, first - 1))
                first--;
            while (model_is_free(hall, row, last + 1))
                last++;
            for (int32_t i = 0; i < count; i++)
                taken += seats[i] >= first && seats[i] <= last;
            bool other = false;
            for (int32_t start = first; start + taken - 1 <= last; start++)
                other = other || model_strands(hall, row, start, taken) == 0;
            if (other)
                stranded[found++] = s;
        }
    }
    return found;
}

static void test_stranded_agrees_with_the_model_on_random_choices(void **state)
{
    (void)state;
    int32_t objections = 0;
    for (int32_t round = 0; round < 60000; round++) {
        struct hall hall;
        hall_random(&hall);
        int32_t seats[HALL_SEATS_MAX], count = 0, stranded[2 * 1024], wanted[2 * 1024];
        uint32_t appetite = 1 + random_below(6);
        for (int32_t i = HALL_OFFSET; i < hall.end; i++) {
            if (bit_get(hall.bits, i) && random_below(8) < appetite)
                seats[count++] = i;
        }
        int32_t wanted_count = model_stranded(&hall, seats, count, wanted);
        assert_int_equal(best_stranded(&hall.rows, seats, count, stranded), wanted_count);
        assert_true(wanted_count <= 2 * count);
        for (int32_t i = 0; i < wanted_count; i++)
            assert_int_equal(stranded[i], wanted[i]);
        objections += wanted_count > 0;
    }
    assert_true(objections > 5000);
}

static void test_what_best_find_chooses_without_stranding_is_never_objected_to(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 20000; round++) {
        struct hall hall;
        hall_random(&hall);
        int32_t quantity = 1 + (int32_t)random_below(8), seats[8], stranded[16];
        struct best_explanation e;
        if (best_find(&hall.rows, quantity, true, seats, &e) == ERR_OK && e.stranded == 0)
            assert_int_equal(best_stranded(&hall.rows, seats, quantity, stranded), 0);
    }
}

/* ---- A large hall ---- */

static void test_a_hundred_thousand_seats_take_well_under_a_millisecond(void **state)
{
    (void)state;
    enum { ROW_COUNT = 2500, ROW_SEATS = 40, ROUNDS = 20 };
    uint64_t *bits = calloc(ROW_COUNT * ROW_SEATS / 64 + 1, 8);
    struct bit_row *list = calloc(ROW_COUNT, sizeof *list);
    for (int32_t r = 0; r < ROW_COUNT; r++)
        list[r] = (struct bit_row){.first = r * ROW_SEATS, .count = ROW_SEATS};
    for (int32_t i = 0; i < ROW_COUNT * ROW_SEATS; i++)
        bit_set(bits, i, i % 5 != 4); /* nowhere five side by side */
    struct bit_rows rows = {.free = bits, .rows = list, .row_count = ROW_COUNT};
    int32_t seats[HOLD_SEAT_COUNT_MAX];
    struct best_explanation e;
    double best_us = 1e9; /* the quickest of some: the machine may be busy with other things */
    for (int32_t round = 0; round < ROUNDS; round++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(best_find(&rows, 5, true, seats, &e), ERR_NOT_ENOUGH_SEATS);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double us = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
        best_us = us < best_us ? us : best_us;
    }
    print_message("# 2,500 rows of 40 searched in %.0f us\n", best_us);
    assert_true(best_us < 1000);
    assert_int_equal(best_find(&rows, 5, false, seats, &e), ERR_OK);
    assert_int_equal(e.split, 2);
    free(list);
    free(bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_the_centre_of_an_empty_row),
        cmocka_unit_test(test_a_tie_goes_to_the_lower_seat),
        cmocka_unit_test(test_the_front_row_wins_over_a_better_place_behind),
        cmocka_unit_test(test_the_centre_is_that_of_the_whole_row_not_of_the_run),
        cmocka_unit_test(test_prefers_a_place_that_strands_nobody_in_the_same_row),
        cmocka_unit_test(test_goes_one_row_back_rather_than_strand),
        cmocka_unit_test(test_looks_at_one_row_further_only),
        cmocka_unit_test(test_strands_where_there_is_no_other_place),
        cmocka_unit_test(test_fills_a_row_exactly),
        cmocka_unit_test(test_a_run_does_not_cross_the_edge_of_a_row),
        cmocka_unit_test(test_adjacent_is_refused_when_only_parts_are_free),
        cmocka_unit_test(test_not_adjacent_still_takes_one_run_when_a_row_has_it),
        cmocka_unit_test(test_split_combines_the_largest_runs),
        cmocka_unit_test(test_split_prefers_earlier_rows_among_equal_runs),
        cmocka_unit_test(test_split_keeps_the_rest_of_its_last_run_together),
        cmocka_unit_test(test_split_takes_singles_when_nothing_else_is_left),
        cmocka_unit_test(test_split_needs_enough_seats_in_all),
        cmocka_unit_test(test_split_seats_ascend_even_when_rows_do_not),
        cmocka_unit_test(test_runs_longer_than_a_word_are_found),
        cmocka_unit_test(test_a_gap_of_one_at_an_edge_is_stranded),
        cmocka_unit_test(test_a_gap_of_one_between_ones_own_seats_is_stranded),
        cmocka_unit_test(test_gaps_of_two_are_fine),
        cmocka_unit_test(test_no_objection_when_no_place_is_better),
        cmocka_unit_test(test_seats_that_stood_alone_before_are_not_counted),
        cmocka_unit_test(test_each_run_is_judged_by_itself),
        cmocka_unit_test(test_rows_without_asked_seats_are_left_alone),
        cmocka_unit_test(test_adjacent_agrees_with_the_model_on_random_rows),
        cmocka_unit_test(test_split_agrees_with_the_model_on_random_rows),
        cmocka_unit_test(test_stranded_agrees_with_the_model_on_random_choices),
        cmocka_unit_test(test_what_best_find_chooses_without_stranding_is_never_objected_to),
        cmocka_unit_test(test_a_hundred_thousand_seats_take_well_under_a_millisecond),
    };
    return cmocka_run_group_tests_name("hold/best", tests, NULL, NULL);
}
