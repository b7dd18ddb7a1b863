/* SPDX-License-Identifier: Apache-2.0
 * The layer over SQLite's page cache, by itself and through SQLite: whatever
 * grows, shrinks or is taken back, what is read is what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/sqlite/connection.h"
#include "store/sqlite/page_cache.h"

static sqlite3_pcache_methods2 layer;

/* ---- By itself ---- */

static sqlite3_pcache *cache_with_pages(unsigned count)
{
    sqlite3_pcache *cache = layer.xCreate(512, 16, 1);
    assert_non_null(cache);
    layer.xCachesize(cache, 1000);
    for (unsigned number = 1; number <= count; number++) {
        sqlite3_pcache_page *page = layer.xFetch(cache, number, 2);
        assert_non_null(page);
        layer.xUnpin(cache, page, 0);
    }
    return cache;
}

static bool is_there(sqlite3_pcache *cache, unsigned number)
{
    sqlite3_pcache_page *page = layer.xFetch(cache, number, 0);
    if (page != NULL)
        layer.xUnpin(cache, page, 0);
    return page != NULL;
}

static void renumber(sqlite3_pcache *cache, unsigned from, unsigned to)
{
    sqlite3_pcache_page *page = layer.xFetch(cache, from, 0);
    assert_non_null(page);
    layer.xRekey(cache, page, from, to);
    layer.xUnpin(cache, page, 0);
}

static void test_pages_behind_the_end_are_dropped(void **state)
{
    (void)state;
    sqlite3_pcache *cache = cache_with_pages(10);
    layer.xTruncate(cache, 11);
    assert_int_equal(layer.xPagecount(cache), 10);
    layer.xTruncate(cache, 6);
    assert_true(is_there(cache, 5));
    assert_false(is_there(cache, 6));
    assert_int_equal(layer.xPagecount(cache), 5);
    layer.xTruncate(cache, 6);
    layer.xUnpin(cache, layer.xFetch(cache, 7, 2), 0); /* and comes back */
    layer.xTruncate(cache, 7);
    assert_false(is_there(cache, 7));
    layer.xDestroy(cache);
}

static void test_borrowed_number_is_dropped_only_while_a_page_is_there(void **state)
{
    (void)state;
    sqlite3_pcache *cache = cache_with_pages(10);
    renumber(cache, 3, 5000);
    renumber(cache, 4, 3);
    renumber(cache, 5000, 4);
    layer.xTruncate(cache, 11);
    assert_int_equal(layer.xPagecount(cache), 10);
    renumber(cache, 3, 5000);
    renumber(cache, 4, 6000); /* two at once */
    layer.xTruncate(cache, 11);
    assert_false(is_there(cache, 5000));
    assert_false(is_there(cache, 6000));
    assert_int_equal(layer.xPagecount(cache), 8);
    renumber(cache, 5, 20); /* one that stays there */
    layer.xTruncate(cache, 21);
    assert_true(is_there(cache, 20));
    layer.xTruncate(cache, 20);
    assert_false(is_there(cache, 20));
    layer.xDestroy(cache);
}

/* ---- Through SQLite ---- */

static char directory[64];
static char path[96];
static struct connection connection;

static void run(const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(connection.db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
}

static int64_t ask(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(connection.db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t answer = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return answer;
}

static void expect_sound(int64_t row_count)
{
    assert_int_equal(ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
    assert_int_equal(ask("SELECT count(*) FROM rows"), row_count);
    assert_int_equal(ask("SELECT count(*) FROM rows WHERE length(text) <> 100 + number % 50"), 0);
}

/* At random places of the tree, so that its pages split and are put in order. */
static void insert(int count, const char *end)
{
    char sql[400];
    snprintf(sql, sizeof(sql),
             "BEGIN IMMEDIATE;"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             "INSERT INTO rows SELECT randomblob(16), i, hex(zeroblob(100)) FROM n;"
             "UPDATE rows SET text = substr(text, 1, 100 + number %% 50) WHERE length(text) = 200;"
             "%s;",
             count, end);
    run(sql);
}

static int setup(void **state)
{
    (void)state;
    char why[256];
    snprintf(directory, sizeof(directory), "/tmp/holdfast-pages-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/file.db", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(connection_open(&connection, path, false, why, sizeof(why)), ERR_OK);
    assert_int_equal(connection_make_durable(&connection, path, why, sizeof(why)), ERR_OK);
    run("CREATE TABLE rows (id BLOB PRIMARY KEY, number INTEGER, text TEXT) STRICT, WITHOUT ROWID");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const ends[] = {"", "-wal", "-shm"};
    connection_close(&connection);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name);
    }
    return rmdir(directory);
}

static void test_trees_that_grow_at_random_stay_sound(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        insert(200, "COMMIT");
    expect_sound(4000);
}

static void test_what_is_rolled_back_is_not_seen_again(void **state)
{
    (void)state;
    insert(500, "COMMIT");
    for (int i = 0; i < 5; i++) {
        insert(2000, "ROLLBACK"); /* pages behind the end come and go */
        expect_sound(500 + 100 * i);
        insert(100, "COMMIT");
    }
    run("BEGIN; SAVEPOINT one; DELETE FROM rows WHERE number % 2 = 0; ROLLBACK TO one; COMMIT");
    expect_sound(1000);
}

static void test_file_that_shrinks_and_grows_again_is_read_anew(void **state)
{
    (void)state;
    insert(3000, "COMMIT");
    int64_t before = ask("PRAGMA page_count");
    run("DELETE FROM rows WHERE number > 100");
    run("VACUUM");
    assert_true(ask("PRAGMA page_count") < before / 2);
    expect_sound(100);
    insert(3000, "COMMIT"); /* pages of the same numbers, with something else in them */
    expect_sound(3100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_behind_the_end_are_dropped),
        cmocka_unit_test(test_borrowed_number_is_dropped_only_while_a_page_is_there),
        TEST(test_trees_that_grow_at_random_stay_sound),
        TEST(test_what_is_rolled_back_is_not_seen_again),
        TEST(test_file_that_shrinks_and_grows_again_is_read_anew),
    };
    page_cache_set_up();
    if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &layer) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK)
        return EXIT_FAILURE;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
