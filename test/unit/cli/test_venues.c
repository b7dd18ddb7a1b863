/* SPDX-License-Identifier: Apache-2.0
 * The demo's places are layouts the system takes, of the size promised, in which
 * no two seats stand on each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "cli/demo.h"
#include "hot/layout.h"

static struct layout *make(void (*write)(struct buf *out), struct arena *arena)
{
    struct layout *layout = NULL;
    struct buf document;
    char why[256] = "";

    buf_init(&document);
    write(&document);
    enum err err = layout_parse(document.data, document.size, arena, &layout, why, sizeof why);
    buf_deinit(&document);
    if (err != ERR_OK)
        fail_msg("%s", why);
    return layout;
}

struct point {
    double x, y;
};

static int compare_points(const void *a, const void *b)
{
    double difference = ((const struct point *)a)->x - ((const struct point *)b)->x;
    return difference < 0 ? -1 : difference > 0;
}

static void assert_seats_apart(const struct layout *layout)
{
    struct point *points = calloc((size_t)layout->seat_count, sizeof *points);

    assert_non_null(points);
    for (int i = 0; i < layout->row_count; i++) {
        const struct layout_row *row = &layout->rows[i];
        assert_true(row->placed);
        for (int j = 0; j < row->seat_count; j++)
            points[row->seat_first + j] = (struct point){row->x + j * row->dx, row->y + j * row->dy};
    }
    qsort(points, (size_t)layout->seat_count, sizeof *points, compare_points);
    for (int i = 0; i < layout->seat_count; i++)
        for (int j = i + 1; j < layout->seat_count && points[j].x - points[i].x < 0.9; j++)
            if (fabs(points[j].y - points[i].y) < 0.9 &&
                hypot(points[j].x - points[i].x, points[j].y - points[i].y) < 0.9)
                fail_msg("two seats at %.1f, %.1f", points[i].x, points[i].y);
    free(points);
}

static void test_arena_has_about_ten_thousand_seats_that_stand_apart(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena);
    struct layout *layout = make(demo_arena_layout, &arena);
    assert_in_range(layout->seat_count, 9000, 11000);
    assert_true(layout->block_count > 20);
    assert_non_null(layout->stage);
    assert_seats_apart(layout);
    arena_deinit(&arena);
}

static void test_small_places_are_small_and_their_rows_differ(void **state)
{
    void (*const writers[])(struct buf * out) = {demo_theatre_layout, demo_club_layout};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(writers); i++) {
        struct arena arena;
        arena_init(&arena);
        struct layout *layout = make(writers[i], &arena);
        assert_in_range(layout->seat_count, 50, 600);
        assert_int_not_equal(layout->rows[0].seat_count, layout->rows[layout->row_count - 1].seat_count);
        assert_seats_apart(layout);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_has_about_ten_thousand_seats_that_stand_apart),
        cmocka_unit_test(test_small_places_are_small_and_their_rows_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
