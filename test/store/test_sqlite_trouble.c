/* SPDX-License-Identifier: Apache-2.0
 * The embedded store in trouble: the disk is full, somebody holds the write
 * lock, a reader never ends, nobody ever pauses. Batches fail cleanly, and are
 * written again when the trouble is over. */
#include "fixture.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

/* A file may not grow beyond this many bytes from where its longest part is now. */
static void limit_files(rlim_t size)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static off_t log_size(const struct fixture *f)
{
    char name[300];
    struct stat status;
    snprintf(name, sizeof(name), "%s-wal", f->path);
    return stat(name, &status) == 0 ? status.st_size : 0;
}

static bool wait_until_up(struct fixture *f)
{
    int64_t end_us = clock_monotonic_us() + 10 * 1000 * 1000;
    while (!store_is_up(f->store) && clock_monotonic_us() < end_us)
        usleep(10000);
    return store_is_up(f->store);
}

static void test_full_disk_fails_batches_and_ends_by_itself(void **state)
{
    struct fixture *f = *state;
    struct hold_row kept = hold_seat(f, 0, 1);
    assert_true(store_is_up(f->store));
    limit_files((rlim_t)log_size(f) + 100);
    struct store_batch *batch = batch_new(f);
    struct uuid lost = unit_hold(f, batch, unit_new(batch), 1, 1)->id;
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_FAILED);
    assert_int_equal(batch->err, ERR_STORE_UNAVAILABLE);
    batch_free(batch);
    assert_false(store_is_up(f->store));
    assert_true(lookup_run(f, LOOKUP_HOLD, &kept.id).found); /* reads go on */
    assert_false(lookup_run(f, LOOKUP_HOLD, &lost).found);

    limit_files(RLIM_INFINITY);
    assert_true(wait_until_up(f)); /* nobody submits: the store finds out itself */
    assert_int_equal(hold_seat(f, 1, 1).state, HOLD_ACTIVE);
    char claim[256];
    assert_int_equal(verify_run(f, claim), 0);
    fixture_reopen(f);
    assert_false(lookup_run(f, LOOKUP_HOLD, &lost).found);
    assert_true(lookup_run(f, LOOKUP_HOLD, &kept.id).found);
}

static void test_lock_held_by_somebody_fails_batches_until_it_ends(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct store_batch *batch = batch_new(f);
    (void)unit_hold(f, batch, unit_new(batch), 0, 1);
    batch_run(f, batch);
    assert_int_equal(batch->outcome, STORE_FAILED);
    assert_int_equal(batch->err, ERR_STORE_UNAVAILABLE);
    batch_free(batch);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_true(wait_until_up(f));
    assert_int_equal(hold_seat(f, 0, 1).state, HOLD_ACTIVE);
}

static void test_reader_that_never_ends_stops_nobody(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM seats", NULL, NULL, NULL), SQLITE_OK);
    char *text = malloc(60000);
    memset(text, 'n', 59999);
    text[59999] = '\0';
    int64_t longest_us = 0;
    for (int i = 0; i < 1600; i++) { /* well past the size at which the log is copied back */
        struct store_batch *batch = batch_new(f);
        struct store_unit *unit = unit_new(batch);
        struct hold_row hold = {.org_id = f->org_id, .event_id = f->event_id, .id = fixture_id(f)};
        unit_audit(f, batch, unit, AUDIT_EVENT_CHANGED, &hold);
        unit->audits->row.after = text;
        int64_t start_us = clock_monotonic_us();
        batch_run(f, batch);
        assert_int_equal(batch->outcome, STORE_COMMITTED);
        if (clock_monotonic_us() - start_us > longest_us)
            longest_us = clock_monotonic_us() - start_us;
        batch_free(batch);
    }
    free(text);
    assert_true(longest_us < 10 * 1000 * 1000);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_purge_deletes_old_keys_and_batch_ids_only(void **state)
{
    struct fixture *f = *state;
    struct store_batch *batch = batch_new(f);
    batch->now_ms = f->now_ms - 100000;
    struct uuid old_id = batch->id;
    unit_key(f, batch, unit_new(batch), 1)->created_ms = f->now_ms - 100000;
    (void)unit_key(f, batch, unit_new(batch), 2);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    batch = batch_new(f);
    batch->purge_before_ms = f->now_ms - 1000;
    (void)unit_hold(f, batch, unit_new(batch), 0, 1);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    assert_false(lookup_key_run(f, 1, f->now_ms).found);
    assert_true(lookup_key_run(f, 2, f->now_ms).found);
    batch = batch_new(f);
    batch->id = old_id;
    (void)unit_hold(f, batch, unit_new(batch), 1, 1);
    assert_int_equal(batch_commit(f, batch), UNIT_OK); /* forgotten */
}

/* Batches follow one another without a pause, as under full load: the log is copied back beside them and begins
 * again, instead of growing for as long as somebody writes. */
static void test_log_begins_again_while_batches_go_on(void **state)
{
    enum { BATCH_COUNT = 60, TEXT_SIZE = 1 << 16, TEXT_COUNT = 64, LOG_SIZE_MAX = 160 * 1024 * 1024 };
    struct fixture *f = *state;
    char *text = malloc(TEXT_SIZE);
    assert_non_null(text);
    memset(text, 'x', TEXT_SIZE - 1);
    text[TEXT_SIZE - 1] = '\0';
    off_t longest = 0;
    for (int i = 0; i < BATCH_COUNT; i++) { /* 4 MiB each */
        struct store_batch *batch = batch_new(f);
        struct store_unit *unit = unit_new(batch);
        struct hold_row nobodys = {.user_id = f->user_id};
        for (int k = 0; k < TEXT_COUNT; k++) {
            unit_audit(f, batch, unit, AUDIT_EVENT_CHANGED, &nobodys);
            unit->audits->row.after = text;
        }
        assert_int_equal(batch_commit(f, batch), UNIT_OK);
        longest = log_size(f) > longest ? log_size(f) : longest;
    }
    free(text);
    assert_in_range(longest, 64 * 1024 * 1024, LOG_SIZE_MAX); /* a quarter of a gigabyte went through it */
    fixture_reopen(f);
    struct store_query query = {.kind = QUERY_AUDIT, .limit = 5};
    query_run(f, &query);
    assert_true(query_has(&query, "event_changed"));
    buf_deinit(&query.rows);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_full_disk_fails_batches_and_ends_by_itself),
        TEST(test_lock_held_by_somebody_fails_batches_until_it_ends),
        TEST(test_reader_that_never_ends_stops_nobody),
        TEST(test_log_begins_again_while_batches_go_on),
        TEST(test_purge_deletes_old_keys_and_batch_ids_only),
    };
    unsetenv("HOLDFAST_TEST_STORE"); /* these are about SQLite */
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
