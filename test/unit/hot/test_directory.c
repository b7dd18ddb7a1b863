/* SPDX-License-Identifier: Apache-2.0
 * The directory: tenants kept apart, copies that stay true, readers beside the
 * writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "hot/directory.h"
#include "map_fixture.h"

struct fixture {
    struct directory *directory;
    struct arena arena;
    struct uuid org, other;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(directory_create(&f->directory), ERR_OK);
    arena_init(&f->arena);
    f->org = fixture_id('o', 1);
    f->other = fixture_id('o', 2);
    directory_put_org(f->directory, &f->org);
    directory_put_org(f->directory, &f->other);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    directory_destroy(f->directory);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void put_event(struct fixture *f, uint32_t number, const struct uuid *org, enum event_state state,
                      int64_t created_ms)
{
    char name[32];
    snprintf(name, sizeof name, "event %u", number);
    struct event_row row = {
        .id = fixture_id('e', number),
        .org_id = *org,
        .name = name, /* gone after this call: the directory must have its own */
        .state = state,
        .policy = policy_default(),
        .created_ms = created_ms,
    };
    directory_put_event(f->directory, &row);
}

static void test_an_organization_exists_once_it_is_put(void **state)
{
    struct fixture *f = *state;
    struct uuid stranger = fixture_id('o', 3), nil = {0};
    assert_true(directory_has_org(f->directory, &f->org));
    assert_false(directory_has_org(f->directory, &stranger));
    assert_false(directory_has_org(f->directory, &nil));
    struct user_row user = {.org_id = stranger, .id = fixture_id('u', 1)};
    directory_put_user(f->directory, &user);
    assert_false(directory_has_org(f->directory, &stranger)); /* a user alone makes no organization */
}

static void test_a_user_belongs_to_one_organization(void **state)
{
    struct fixture *f = *state;
    struct user_row user = {.org_id = f->org, .id = fixture_id('u', 1)};
    assert_int_equal(directory_user(f->directory, &f->org, &user.id), USER_UNKNOWN);
    directory_put_user(f->directory, &user);
    assert_int_equal(directory_user(f->directory, &f->org, &user.id), USER_KNOWN);
    assert_int_equal(directory_user(f->directory, &f->other, &user.id), USER_UNKNOWN);
    /* The ids swapped are another pair. */
    assert_int_equal(directory_user(f->directory, &user.id, &f->org), USER_UNKNOWN);
}

static void test_disabling_a_user_leaves_their_namesake_elsewhere_alone(void **state)
{
    struct fixture *f = *state;
    struct user_row here = {.org_id = f->org, .id = fixture_id('u', 1)}, there = here;
    there.org_id = f->other;
    directory_put_user(f->directory, &here);
    directory_put_user(f->directory, &there);
    here.disabled = true;
    directory_put_user(f->directory, &here);
    assert_int_equal(directory_user(f->directory, &f->org, &here.id), USER_DISABLED);
    assert_int_equal(directory_user(f->directory, &f->other, &here.id), USER_KNOWN);
    here.disabled = false;
    directory_put_user(f->directory, &here);
    assert_int_equal(directory_user(f->directory, &f->org, &here.id), USER_KNOWN);
}

static void test_another_tenants_event_does_not_exist(void **state)
{
    struct fixture *f = *state;
    put_event(f, 1, &f->org, EVENT_LIVE, 1);
    struct uuid id = fixture_id('e', 1), nil = {0}, org, stranger = fixture_id('e', 2);
    struct event_view view;
    assert_true(directory_event(f->directory, &f->org, &id, &f->arena, &view));
    assert_string_equal(view.row.name, "event 1");
    assert_int_equal(view.row.state, EVENT_LIVE);
    assert_null(view.map);
    assert_false(directory_event(f->directory, &f->other, &id, &f->arena, &view));
    assert_true(directory_event(f->directory, &nil, &id, &f->arena, &view)); /* an operator's question */
    assert_false(directory_event(f->directory, &nil, &stranger, &f->arena, &view));
    assert_true(directory_event_org(f->directory, &id, &org));
    assert_true(uuid_equal(&org, &f->org));
    assert_false(directory_event_org(f->directory, &stranger, &org));
}

static void test_a_view_is_a_copy_that_later_changes_leave_alone(void **state)
{
    struct fixture *f = *state;
    put_event(f, 1, &f->org, EVENT_LIVE, 1);
    struct uuid id = fixture_id('e', 1);
    struct event_view before, after;
    assert_true(directory_event(f->directory, &f->org, &id, &f->arena, &before));
    struct event_row row = before.row;
    row.name = "renamed";
    row.state = EVENT_CANCELLED;
    directory_put_event(f->directory, &row);
    assert_true(directory_event(f->directory, &f->org, &id, &f->arena, &after));
    assert_string_equal(before.row.name, "event 1");
    assert_string_equal(after.row.name, "renamed");
    assert_int_equal(after.row.state, EVENT_CANCELLED);
}

static void test_events_are_listed_oldest_first_by_state_and_organization(void **state)
{
    struct fixture *f = *state;
    put_event(f, 1, &f->org, EVENT_LIVE, 300);
    put_event(f, 2, &f->org, EVENT_DRAFT, 100);
    put_event(f, 3, &f->other, EVENT_LIVE, 50);
    put_event(f, 4, &f->org, EVENT_PUBLISHED, 200);
    put_event(f, 6, &f->org, EVENT_LIVE, 400);
    put_event(f, 5, &f->org, EVENT_LIVE, 400); /* the same moment: by id */
    put_event(f, 1, &f->org, EVENT_LIVE, 300); /* put again: not listed twice */
    struct event_view *views;
    int32_t count =
        directory_events(f->directory, &f->org, BIT(EVENT_LIVE) | BIT(EVENT_PUBLISHED), &f->arena, &views);
    assert_int_equal(count, 4);
    assert_string_equal(views[0].row.name, "event 4");
    assert_string_equal(views[1].row.name, "event 1");
    assert_string_equal(views[2].row.name, "event 5");
    assert_string_equal(views[3].row.name, "event 6");
    assert_int_equal(directory_events(f->directory, &f->org, UINT32_MAX, &f->arena, &views), 5);
    assert_string_equal(views[0].row.name, "event 2");
    assert_int_equal(directory_events(f->directory, &f->other, UINT32_MAX, &f->arena, &views), 1);
    assert_int_equal(directory_events(f->directory, &f->org, BIT(EVENT_ARCHIVED), &f->arena, &views), 0);
    assert_int_equal(directory_events(f->directory, &(struct uuid){0}, UINT32_MAX, &f->arena, &views), 6);
    assert_int_equal(
        directory_events(f->directory, &(struct uuid){0}, BIT(EVENT_ARCHIVED), &f->arena, &views), 0);
    struct uuid stranger = fixture_id('o', 3);
    assert_int_equal(directory_events(f->directory, &stranger, UINT32_MAX, &f->arena, &views), 0);
}

static void test_a_map_handed_out_survives_its_replacement(void **state)
{
    struct fixture *f = *state;
    put_event(f, 1, &f->org, EVENT_LIVE, 1);
    struct uuid id = fixture_id('e', 1);
    struct seatmap *first = fixture_map(), *second = fixture_map();
    directory_put_map(f->directory, &id, first);
    struct event_view view, *views;
    assert_true(directory_event(f->directory, &f->org, &id, &f->arena, &view));
    assert_ptr_equal(view.map, first);
    seatmap_release(first);
    directory_put_map(f->directory, &id, second);
    assert_int_equal(seatmap_state(view.map, 0), SEAT_AVAILABLE); /* a sanitizer would object */
    seatmap_release(view.map);
    assert_int_equal(directory_events(f->directory, &f->org, UINT32_MAX, &f->arena, &views), 1);
    assert_ptr_equal(views[0].map, second);
    seatmap_release(views[0].map);
    assert_int_equal(atomic_load(&second->reference_count), 2);
    directory_put_map(f->directory, &id, NULL);
    assert_int_equal(atomic_load(&second->reference_count), 1);
    seatmap_release(second);
    assert_true(directory_event(f->directory, &f->org, &id, &f->arena, &view));
    assert_null(view.map);
}

static void test_changing_an_event_keeps_its_map(void **state)
{
    struct fixture *f = *state;
    put_event(f, 1, &f->org, EVENT_DRAFT, 1);
    struct uuid id = fixture_id('e', 1);
    struct seatmap *map = fixture_map();
    directory_put_map(f->directory, &id, map);
    put_event(f, 1, &f->org, EVENT_PUBLISHED, 1);
    struct event_view view;
    assert_true(directory_event(f->directory, &f->org, &id, &f->arena, &view));
    assert_ptr_equal(view.map, map);
    seatmap_release(view.map);
    seatmap_release(map);
}

static void test_three_hundred_thousand_users_are_all_found(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    rng_init_seed(&rng, 11);
    enum { USER_COUNT = 300000 };
    struct uuid *ids = calloc(USER_COUNT, sizeof *ids);
    for (int32_t i = 0; i < USER_COUNT; i++) {
        struct user_row user = {
            .org_id = i % 2 ? f->org : f->other, .id = uuid_make(&rng, i), .disabled = i % 3 == 0};
        ids[i] = user.id;
        directory_put_user(f->directory, &user);
    }
    for (int32_t i = 0; i < USER_COUNT; i++) {
        enum user_standing wanted = i % 3 == 0 ? USER_DISABLED : USER_KNOWN;
        assert_int_equal(directory_user(f->directory, i % 2 ? &f->org : &f->other, &ids[i]), wanted);
        assert_int_equal(directory_user(f->directory, i % 2 ? &f->other : &f->org, &ids[i]), USER_UNKNOWN);
    }
    free(ids);
}

/* ---- Readers beside the writer ---- */

struct reader {
    struct fixture *fixture;
    _Atomic bool stop;
    int64_t reads;
    int64_t wrong;
};

static void *read_directory(void *context)
{
    struct reader *reader = context;
    struct directory *directory = reader->fixture->directory;
    struct uuid id = fixture_id('e', 1);
    struct arena arena;
    arena_init(&arena);
    do {
        struct event_view view, *views;
        reader->wrong += !directory_event(directory, &reader->fixture->org, &id, &arena, &view);
        /* Name and policy are put together; the map is one that still lives. */
        reader->wrong += atoi(view.row.name) != view.row.policy.hold_ttl_seconds;
        if (view.map != NULL)
            reader->wrong += seatmap_state(view.map, 0) != SEAT_AVAILABLE;
        seatmap_release(view.map);
        int32_t count = directory_events(directory, &reader->fixture->org, UINT32_MAX, &arena, &views);
        for (int32_t i = 0; i < count; i++)
            seatmap_release(views[i].map);
        arena_reset(&arena);
        reader->reads++;
    } while (!atomic_load(&reader->stop));
    arena_deinit(&arena);
    return NULL;
}

static void test_readers_see_whole_events_while_the_lane_writes(void **state)
{
    struct fixture *f = *state;
    struct event_row row = {.id = fixture_id('e', 1), .org_id = f->org, .name = "0", .state = EVENT_LIVE};
    directory_put_event(f->directory, &row);
    struct reader readers[2] = {{.fixture = f}, {.fixture = f}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_directory, &readers[i]), 0);
    int64_t deadline_us = clock_monotonic_us() + 10 * 1000 * 1000;
    for (int32_t round = 1; round <= 3000; round++) {
        char name[16];
        snprintf(name, sizeof name, "%d", (int)round);
        row.name = name;
        row.policy.hold_ttl_seconds = round;
        directory_put_event(f->directory, &row);
        struct user_row user = {.org_id = f->org, .id = fixture_id('u', (uint32_t)round)};
        directory_put_user(f->directory, &user);
        if (round % 50 == 0) {
            struct seatmap *map = fixture_map();
            directory_put_map(f->directory, &row.id, map);
            seatmap_release(map);
        }
        assert_true(clock_monotonic_us() < deadline_us); /* readers do not starve the lane */
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&readers[i].stop, true);
        pthread_join(threads[i], NULL);
        assert_true(readers[i].reads > 0);
        assert_int_equal(readers[i].wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_organization_exists_once_it_is_put, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_user_belongs_to_one_organization, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disabling_a_user_leaves_their_namesake_elsewhere_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_another_tenants_event_does_not_exist, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_view_is_a_copy_that_later_changes_leave_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_events_are_listed_oldest_first_by_state_and_organization, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_map_handed_out_survives_its_replacement, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changing_an_event_keeps_its_map, setup, teardown),
        cmocka_unit_test_setup_teardown(test_three_hundred_thousand_users_are_all_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readers_see_whole_events_while_the_lane_writes, setup, teardown),
    };
    return cmocka_run_group_tests_name("hot/directory", tests, NULL, NULL);
}
