/* SPDX-License-Identifier: Apache-2.0
 * The seat map that all threads read: finding, moving, counting, references,
 * and what other threads see meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/rng.h"
#include "map_fixture.h"

static int setup(void **state)
{
    *state = fixture_map();
    return *state == NULL;
}

static int teardown(void **state)
{
    seatmap_release(*state);
    return 0;
}

/* ---- Making ---- */

static void test_a_wrong_document_says_why(void **state)
{
    (void)state;
    struct uuid org = fixture_id('o', 1), event = fixture_id('e', 1);
    struct seatmap *map = NULL;
    char why[200];
    assert_int_equal(seatmap_create(&org, &event, "{\"blocks\":[1]}", NULL, 0, &map, why, sizeof why),
                     ERR_INVALID_REQUEST);
    assert_string_equal(why, "block 1: must be an object");
    assert_null(map);
}

static enum err create_with(const struct block_row *rows, int32_t count, struct seatmap **map)
{
    struct uuid org = fixture_id('o', 1), event = fixture_id('e', 1);
    char why[200];
    return seatmap_create(&org, &event, FIXTURE_DOCUMENT, rows, count, map, why, sizeof why);
}

static void test_block_rows_must_be_those_of_the_document(void **state)
{
    (void)state;
    struct block_row rows[FIXTURE_BLOCK_COUNT];
    struct seatmap *map = NULL;
    fixture_blocks(rows);
    assert_int_equal(create_with(rows, 2, &map), ERR_STORE_CORRUPT);
    rows[1].subsection = 3;
    assert_int_equal(create_with(rows, 3, &map), ERR_STORE_CORRUPT);
    fixture_blocks(rows);
    rows[2].ordinal = 3;
    assert_int_equal(create_with(rows, 3, &map), ERR_STORE_CORRUPT);
    fixture_blocks(rows);
    rows[1] = rows[0];
    assert_int_equal(create_with(rows, 3, &map), ERR_STORE_CORRUPT);
    assert_null(map);
}

static void test_block_rows_may_come_in_any_order(void **state)
{
    (void)state;
    struct block_row rows[FIXTURE_BLOCK_COUNT], swapped[FIXTURE_BLOCK_COUNT];
    fixture_blocks(rows);
    swapped[0] = rows[2];
    swapped[1] = rows[0];
    swapped[2] = rows[1];
    struct seatmap *map = NULL;
    assert_int_equal(create_with(swapped, FIXTURE_BLOCK_COUNT, &map), ERR_OK);
    assert_string_equal(seatmap_block_info(map, 0)->name, "Stalls");
    assert_string_equal(seatmap_block_info(map, 2)->name, "Box");
    seatmap_release(map);
}

static void test_what_an_admin_changed_wins_over_the_document(void **state)
{
    const struct block_info *info = seatmap_block_info(*state, 1);
    assert_string_equal(info->name, "Circle");
    assert_int_equal(info->price_cents, 200); /* 400 in the document */
    assert_int_equal(info->capacity, 4);
}

static void test_the_layout_id_is_the_same_for_the_same_content_only(void **state)
{
    const struct seatmap *map = *state;
    struct seatmap *same = NULL, *other = NULL;
    struct block_row rows[FIXTURE_BLOCK_COUNT];
    fixture_blocks(rows);
    assert_int_equal(create_with(rows, FIXTURE_BLOCK_COUNT, &same), ERR_OK);
    assert_true(uuid_equal(&map->layout_id, &same->layout_id));
    rows[1].price_cents++;
    assert_int_equal(create_with(rows, FIXTURE_BLOCK_COUNT, &other), ERR_OK);
    assert_false(uuid_equal(&map->layout_id, &other->layout_id));
    seatmap_release(other);
    fixture_blocks(rows);
    rows[0].id = fixture_id('b', 77);
    assert_int_equal(create_with(rows, FIXTURE_BLOCK_COUNT, &other), ERR_OK);
    assert_false(uuid_equal(&map->layout_id, &other->layout_id));
    seatmap_release(other);
    seatmap_release(same);
}

/* ---- Finding ---- */

static void test_every_seat_is_found_by_its_id_and_no_other(void **state)
{
    const struct seatmap *map = *state;
    for (int32_t i = 0; i < FIXTURE_SEAT_COUNT; i++) {
        struct uuid id = fixture_id('s', (uint32_t)i);
        assert_int_equal(seatmap_find(map, &id), i);
    }
    struct uuid stranger = fixture_id('s', FIXTURE_SEAT_COUNT), nil = {0};
    assert_int_equal(seatmap_find(map, &stranger), -1);
    assert_int_equal(seatmap_find(map, &nil), -1);
}

static void test_a_seat_knows_its_row_and_block(void **state)
{
    const struct seatmap *map = *state;
    static const int32_t row_of[] = {0, 0, 0, 1, 1, 2, 2, 2, 2, 3},
                         block_of[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 2};
    for (int32_t i = 0; i < FIXTURE_SEAT_COUNT; i++) {
        assert_ptr_equal(seatmap_row(map, i), &map->layout->rows[row_of[i]]);
        assert_ptr_equal(seatmap_block(map, i), &map->layout->blocks[block_of[i]]);
    }
}

static void test_blocks_are_found_by_id_and_by_section(void **state)
{
    const struct seatmap *map = *state;
    struct uuid box = fixture_id('b', 2), stranger = fixture_id('b', 9);
    assert_int_equal(seatmap_block_find(map, &box), 2);
    assert_int_equal(seatmap_block_find(map, &stranger), -1);

    int32_t position = 0;
    assert_int_equal(seatmap_block_next(map, "A", 0, &position), 0);
    assert_int_equal(seatmap_block_next(map, "A", 0, &position), 1);
    assert_int_equal(seatmap_block_next(map, "A", 0, &position), -1);
    assert_int_equal(seatmap_block_next(map, "A", 0, &position), -1);
    position = 0;
    assert_int_equal(seatmap_block_next(map, "A", 2, &position), 1);
    assert_int_equal(seatmap_block_next(map, "A", 2, &position), -1);
    position = 0;
    assert_int_equal(seatmap_block_next(map, "C", 0, &position), -1);
    position = 0;
    for (int32_t i = 0; i < FIXTURE_BLOCK_COUNT; i++)
        assert_int_equal(seatmap_block_next(map, "", 0, &position), i);
    assert_int_equal(seatmap_block_next(map, "", 0, &position), -1);
}

/* ---- States and counts ---- */

static void test_a_move_changes_the_state_and_two_counts(void **state)
{
    struct seatmap *map = *state;
    seatmap_move(map, 3, SEAT_HELD);
    seatmap_move(map, 4, SEAT_HELD);
    seatmap_move(map, 4, SEAT_SOLD);
    seatmap_move(map, 9, SEAT_BLOCKED);
    assert_int_equal(seatmap_state(map, 3), SEAT_HELD);
    assert_int_equal(seatmap_state(map, 4), SEAT_SOLD);
    assert_int_equal(seatmap_state(map, 5), SEAT_AVAILABLE);
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_block_counts(map, 0, counts);
    assert_int_equal(counts[SEAT_AVAILABLE], 3);
    assert_int_equal(counts[SEAT_HELD], 1);
    assert_int_equal(counts[SEAT_SOLD], 1);
    assert_int_equal(counts[SEAT_BLOCKED], 0);
    seatmap_counts(map, counts);
    assert_int_equal(counts[SEAT_AVAILABLE], 7);
    assert_int_equal(counts[SEAT_BLOCKED], 1);
    seatmap_move(map, 3, SEAT_AVAILABLE);
    seatmap_counts(map, counts);
    assert_int_equal(counts[SEAT_AVAILABLE], 8);
    assert_int_equal(counts[SEAT_HELD], 0);
}

static void test_a_move_to_the_same_state_changes_nothing(void **state)
{
    struct seatmap *map = *state;
    seatmap_move(map, 0, SEAT_HELD);
    seatmap_move(map, 0, SEAT_HELD);
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_counts(map, counts);
    assert_int_equal(counts[SEAT_HELD], 1);
    assert_int_equal(counts[SEAT_AVAILABLE], FIXTURE_SEAT_COUNT - 1);
}

static void test_seats_are_loaded_with_their_state(void **state)
{
    (void)state;
    struct block_row rows[FIXTURE_BLOCK_COUNT];
    fixture_blocks(rows);
    struct seatmap *map = NULL;
    assert_int_equal(create_with(rows, FIXTURE_BLOCK_COUNT, &map), ERR_OK);
    for (int32_t i = 0; i < FIXTURE_SEAT_COUNT; i++) {
        struct uuid id = fixture_id('s', (uint32_t)i);
        seatmap_set_seat(map, i, &id, (enum seat_state)(i % SEAT_STATE_COUNT));
    }
    int32_t counts[SEAT_STATE_COUNT];
    seatmap_counts(map, counts);
    assert_int_equal(counts[SEAT_AVAILABLE], 3);
    assert_int_equal(counts[SEAT_HELD], 3);
    assert_int_equal(counts[SEAT_SOLD], 2);
    assert_int_equal(counts[SEAT_BLOCKED], 2);
    seatmap_release(map);
}

static void test_a_new_block_info_raises_the_revision_and_keeps_the_old_readable(void **state)
{
    struct seatmap *map = *state;
    const struct block_info *before = seatmap_block_info(map, 0);
    uint32_t revision = atomic_load(&map->revision);
    seatmap_set_block_info(map, 0, "Parterre", 2, 12345);
    seatmap_set_block_info(map, 0, "Parkett", 3, 54321);
    assert_int_equal(atomic_load(&map->revision), revision + 2);
    assert_string_equal(before->name, "Stalls");
    const struct block_info *after = seatmap_block_info(map, 0);
    assert_string_equal(after->name, "Parkett");
    assert_int_equal(after->capacity, 3);
    assert_int_equal(after->price_cents, 54321);
}

static void test_a_map_lives_as_long_as_its_last_reference(void **state)
{
    (void)state;
    struct seatmap *map = fixture_map();
    assert_ptr_equal(seatmap_acquire(map), map);
    seatmap_release(map);
    assert_int_equal(seatmap_state(map, 0), SEAT_AVAILABLE); /* a sanitizer would object */
    seatmap_release(map);
    seatmap_release(NULL);
}

/* ---- Occupancy ---- */

static void test_occupancy_has_counts_and_percentages_with_one_decimal(void **state)
{
    struct seatmap *map = *state;
    struct buf buf;
    struct jsonw json;
    buf_init(&buf);
    seatmap_move(map, 5, SEAT_SOLD);
    seatmap_move(map, 6, SEAT_HELD);
    seatmap_move(map, 9, SEAT_BLOCKED);
    jsonw_begin(&json, &buf);
    seatmap_write_occupancy(map, 1767225600999, false, &json);
    assert_string_equal(buf_text(&buf),
                        "{\"available\":7,\"held\":1,\"sold\":1,\"blocked\":1,\"total\":10,"
                        "\"percent_available\":70.0,\"percent_held\":10.0,\"percent_sold\":10.0,"
                        "\"timestamp\":\"2026-01-01T00:00:00Z\"}");
    buf_deinit(&buf);
}

static void test_occupancy_per_block_names_the_block_and_rounds(void **state)
{
    struct seatmap *map = *state;
    struct buf buf;
    struct jsonw json;
    buf_init(&buf);
    seatmap_move(map, 0, SEAT_HELD);
    seatmap_set_block_info(map, 2, "Bo\"x", 1, 1);
    jsonw_begin(&json, &buf);
    seatmap_write_occupancy(map, 0, true, &json);
    const char *text = buf_text(&buf);
    assert_non_null(strstr(
        text,
        "\"timestamp\":\"1970-01-01T00:00:00Z\",\"blocks\":[{\"block\":\"A-1\",\"block_id\":\"01906200-"));
    assert_non_null(strstr(
        text, "\"name\":\"Stalls\",\"available\":4,\"held\":1,\"sold\":0,\"blocked\":0,\"total\":5,"
              "\"percent_available\":80.0,\"percent_held\":20.0,\"percent_sold\":0.0},{\"block\":\"A-2\""));
    assert_non_null(strstr(text, "\"name\":\"Bo\\\"x\""));
    assert_string_equal(text + strlen(text) - 3, "}]}");
    buf_deinit(&buf);
}

/* ---- Large, and from several threads ---- */

static struct seatmap *large_map(struct rng *rng)
{
    struct buf document;
    buf_init(&document);
    buf_put_text(&document, "{\"blocks\":[");
    struct block_row rows[25] = {0};
    for (int32_t b = 0; b < 25; b++) {
        buf_printf(&document,
                   "%s{\"section\":\"A\",\"subsection\":%d,\"name\":\"n\",\"price_cents\":1,\"rows\":[",
                   b ? "," : "", (int)b + 1);
        for (int r = 0; r < 80; r++)
            buf_printf(&document, "%s{\"label\":\"%d\",\"seats\":50}", r ? "," : "", r + 1);
        buf_put_text(&document, "]}");
        rows[b] = (struct block_row){.id = uuid_make(rng, 1),
                                     .section = "A",
                                     .subsection = b + 1,
                                     .ordinal = b,
                                     .name = "n",
                                     .capacity = 4000};
    }
    buf_put_text(&document, "]}");
    struct uuid org = fixture_id('o', 1), event = fixture_id('e', 1);
    struct seatmap *map = NULL;
    char why[200];
    assert_int_equal(seatmap_create(&org, &event, buf_text(&document), rows, 25, &map, why, sizeof why),
                     ERR_OK);
    buf_deinit(&document);
    for (int32_t i = 0; i < map->layout->seat_count; i++) {
        struct uuid id = uuid_make(rng, 1767225600000 + i / 1000);
        seatmap_set_seat(map, i, &id, SEAT_AVAILABLE);
    }
    return map;
}

static void test_a_hundred_thousand_seats_take_at_most_forty_bytes_each(void **state)
{
    (void)state;
    struct rng rng;
    rng_init_seed(&rng, 7);
    struct seatmap *map = large_map(&rng);
    assert_int_equal(map->layout->seat_count, EVENT_SEAT_COUNT_MAX);
    size_t size = sizeof *map->seat_ids * EVENT_SEAT_COUNT_MAX + sizeof *map->states * EVENT_SEAT_COUNT_MAX +
                  sizeof *map->slots * map->slot_count +
                  sizeof *map->layout->seat_labels * EVENT_SEAT_COUNT_MAX +
                  sizeof *map->layout->rows * (size_t)map->layout->row_count;
    assert_true(size / EVENT_SEAT_COUNT_MAX <= 40);
    assert_true((size_t)EVENT_SEAT_COUNT_MAX * 4 <= (size_t)map->slot_count * 3); /* probes stay short */
    for (int32_t i = 0; i < EVENT_SEAT_COUNT_MAX; i++)
        assert_int_equal(seatmap_find(map, &map->seat_ids[i]), i);
    for (int32_t i = 0; i < 1000; i++) {
        struct uuid stranger = uuid_make(&rng, 1767225600000);
        assert_int_equal(seatmap_find(map, &stranger), -1);
    }
    for (int32_t i = 0; i < EVENT_SEAT_COUNT_MAX; i += 997) {
        assert_int_equal(seatmap_row(map, i) - map->layout->rows, i / 50);
        assert_int_equal(seatmap_block(map, i) - map->layout->blocks, i / 4000);
    }
    seatmap_release(map);
}

struct reader {
    struct seatmap *map;
    _Atomic bool *stop;
    int64_t reads;
    int64_t uneven; /* times a block's counts did not sum to its seats, or its info was torn */
};

static void *read_counts(void *context)
{
    struct reader *reader = context;
    do {
        int32_t counts[SEAT_STATE_COUNT];
        seatmap_block_counts(reader->map, 0, counts);
        reader->uneven += counts[0] + counts[1] + counts[2] + counts[3] != 5;
        reader->uneven += seatmap_block_info(reader->map, 0)->name[0] != 'n';
        reader->reads++;
    } while (!atomic_load(reader->stop));
    seatmap_release(reader->map);
    return NULL;
}

static void test_other_threads_see_counts_that_add_up(void **state)
{
    (void)state;
    struct seatmap *map = fixture_map();
    _Atomic bool stop = false;
    seatmap_set_block_info(map, 0, "n", 1, 1);
    struct reader readers[2] = {{.map = seatmap_acquire(map), .stop = &stop},
                                {.map = seatmap_acquire(map), .stop = &stop}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_counts, &readers[i]), 0);
    for (int32_t round = 0; round < 300000; round++) {
        seatmap_move(map, round % 5, (enum seat_state)(round / 5 % SEAT_STATE_COUNT));
        if (round % 10000 == 0)
            seatmap_set_block_info(map, 0, "n", round, round);
    }
    seatmap_release(map); /* the readers have their own */
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_true(readers[i].reads > 0);
        assert_int_equal(readers[i].uneven, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wrong_document_says_why),
        cmocka_unit_test(test_block_rows_must_be_those_of_the_document),
        cmocka_unit_test(test_block_rows_may_come_in_any_order),
        cmocka_unit_test_setup_teardown(test_what_an_admin_changed_wins_over_the_document, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_layout_id_is_the_same_for_the_same_content_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_every_seat_is_found_by_its_id_and_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_seat_knows_its_row_and_block, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_are_found_by_id_and_by_section, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_changes_the_state_and_two_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_move_to_the_same_state_changes_nothing, setup, teardown),
        cmocka_unit_test(test_seats_are_loaded_with_their_state),
        cmocka_unit_test_setup_teardown(test_a_new_block_info_raises_the_revision_and_keeps_the_old_readable,
                                        setup, teardown),
        cmocka_unit_test(test_a_map_lives_as_long_as_its_last_reference),
        cmocka_unit_test_setup_teardown(test_occupancy_has_counts_and_percentages_with_one_decimal, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_occupancy_per_block_names_the_block_and_rounds, setup, teardown),
        cmocka_unit_test(test_a_hundred_thousand_seats_take_at_most_forty_bytes_each),
        cmocka_unit_test(test_other_threads_see_counts_that_add_up),
    };
    return cmocka_run_group_tests_name("hot/seatmap", tests, NULL, NULL);
}
