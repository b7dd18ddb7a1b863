/* SPDX-License-Identifier: Apache-2.0
 * The embedded store's file: who may open it, what is refused and how that is
 * said, versions, and that verify finds each kind of damage. */
#include "fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char why[512];

static enum err open_url(const char *url, struct store_options options)
{
    struct store *store = NULL;
    why[0] = '\0';
    enum err err = store_open(url, &options, &store, why, sizeof(why));
    if (err == ERR_OK)
        store_close(store);
    else
        assert_null(store);
    return err;
}

/* Refused, with one sentence. */
static void expect_refused(const char *url, struct store_options options, enum err expected)
{
    assert_int_equal(open_url(url, options), expected);
    assert_true(strlen(why) > 10);
    assert_int_equal(why[strlen(why) - 1], '.');
    assert_null(strchr(why, '\n'));
}

static void expect_refused_path(const char *path, enum err expected)
{
    char url[600];
    snprintf(url, sizeof(url), "sqlite:%s", path);
    expect_refused(url, (struct store_options){.read_only = false}, expected);
}

/* Runs SQL on the file behind the store's back. */
static void damage(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    sqlite3_close(db);
}

static void file_write(const char *path, const void *data, size_t size, off_t at)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, at), (ssize_t)size);
    close(fd);
}

static void fixture_close(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
}

/* ---- Opening ---- */

static void test_unknown_scheme_is_refused(void **state)
{
    (void)state;
    struct store_options none = {.read_only = false};
    expect_refused("mysql://host/db", none, ERR_CONFIG);
    expect_refused("", none, ERR_CONFIG);
    expect_refused("sqlite", none, ERR_CONFIG);
    expect_refused("sqlite:", none, ERR_STORE_OPEN);
}

static void test_second_server_is_refused_and_the_first_goes_on(void **state)
{
    struct fixture *f = *state;
    expect_refused(f->url, (struct store_options){.read_only = false}, ERR_STORE_IN_USE);
    assert_int_equal(hold_seat(f, 0, 1).state, HOLD_ACTIVE);
}

/* A process that has the store open until it is killed. */
static pid_t other_server(const char *url)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = NULL;
        char text[512], byte = store_open(url, NULL, &store, text, sizeof(text)) == ERR_OK ? 'y' : 'n';
        ssize_t ignored = write(ready[1], &byte, 1);
        (void)ignored;
        pause();
        _exit(0);
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void other_server_kill(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_second_process_is_refused_through_any_link(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {.read_only = false};
    static int (*const make[])(const char *, const char *) = {symlink, link};
    fixture_close(f);
    for (size_t i = 0; i < COUNT_OF(make); i++) {
        char path[300], url[400];
        snprintf(path, sizeof(path), "%s.link%zu", f->path, i);
        snprintf(url, sizeof(url), "sqlite:%s", path);
        assert_int_equal(make[i](f->path, path), 0);
        pid_t child = other_server(f->url);
        expect_refused(url, options, ERR_STORE_IN_USE);
        expect_refused(f->url, options, ERR_STORE_IN_USE);
        other_server_kill(child); /* the lock dies with its owner */
        assert_int_equal(open_url(url, options), ERR_OK);
        fixture_remove(path);
    }
}

/* The log goes by the name: a new file under it would get the old one's. */
static void test_second_process_is_refused_when_the_file_was_replaced(void **state)
{
    struct fixture *f = *state;
    char moved[300];
    fixture_close(f);
    pid_t child = other_server(f->url);
    snprintf(moved, sizeof(moved), "%s.moved", f->path);
    assert_int_equal(rename(f->path, moved), 0);
    expect_refused(f->url, (struct store_options){.read_only = false}, ERR_STORE_IN_USE);
    assert_int_not_equal(access(f->path, F_OK), 0);
    other_server_kill(child);
    fixture_remove(moved);
}

static void test_read_only_store_takes_no_lock(void **state)
{
    struct fixture *f = *state;
    struct store_options options = {.read_only = true};
    struct store *reader = NULL;
    fixture_close(f);
    assert_int_equal(store_open(f->url, &options, &reader, why, sizeof(why)), ERR_OK);
    other_server_kill(other_server(f->url));
    store_close(reader);
}

static void test_read_only_store_works_beside_a_server(void **state)
{
    struct fixture *f = *state;
    struct hold_row hold = hold_seat(f, 0, 1);
    struct store_options options = {.read_only = true};
    struct fixture reader = {.store = NULL};
    char claim[256];
    assert_int_equal(store_open(f->url, &options, &reader.store, why, sizeof(why)), ERR_OK);
    assert_int_equal(verify_run(&reader, claim), 0);
    struct store_batch *batch = batch_new(f);
    assert_int_not_equal(store_submit(reader.store, batch), ERR_OK);
    batch_free(batch);
    store_close(reader.store);
    assert_int_equal(hold_seat(f, 1, 1).state, HOLD_ACTIVE); /* the server lost no lock by it */
    assert_true(lookup_run(f, LOOKUP_HOLD, &hold.id).found);
}

static void test_read_only_store_invents_no_file(void **state)
{
    struct fixture *f = *state;
    char path[300], url[400];
    snprintf(path, sizeof(path), "%s.none", f->path);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    expect_refused(url, (struct store_options){.read_only = true}, ERR_STORE_OPEN);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_new_file_is_its_owners_alone(void **state)
{
    struct fixture *f = *state;
    char path[300], url[400];
    struct stat status;
    struct store *store = NULL;
    snprintf(path, sizeof(path), "%s.new", f->path);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    assert_int_equal(store_open(url, NULL, &store, why, sizeof(why)), ERR_OK);
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char name[320];
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        assert_int_equal(stat(name, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
    }
    store_close(store);
    fixture_remove(path);
}

static void test_folders_and_missing_folders_are_refused(void **state)
{
    struct fixture *f = *state;
    char path[300];
    expect_refused_path("/tmp", ERR_STORE_OPEN);
    expect_refused_path("/dev/null", ERR_STORE_OPEN);
    snprintf(path, sizeof(path), "%s.missing/a.db", f->path);
    expect_refused_path(path, ERR_STORE_OPEN);
    char *longest = malloc(10000);
    memset(longest, 'a', 9999);
    longest[9999] = '\0';
    memcpy(longest, "sqlite:/", 8);
    expect_refused(longest, (struct store_options){.read_only = false}, ERR_STORE_OPEN);
    free(longest);
}

static void test_file_that_is_no_database_is_refused_unchanged(void **state)
{
    struct fixture *f = *state;
    char path[300], text[4096], after[4096];
    snprintf(path, sizeof(path), "%s.txt", f->path);
    memset(text, 'x', sizeof(text));
    file_write(path, text, sizeof(text), 0);
    expect_refused_path(path, ERR_STORE_CORRUPT);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, after, sizeof(after)), (ssize_t)sizeof(after));
    close(fd);
    assert_memory_equal(text, after, sizeof(text));
    fixture_remove(path);
}

static void test_database_of_another_program_is_refused_unchanged(void **state)
{
    struct fixture *f = *state;
    struct fixture other = {.store = NULL};
    snprintf(other.path, sizeof(other.path), "%.200s.other", f->path);
    damage(&other, "CREATE TABLE songs (name TEXT)");
    expect_refused_path(other.path, ERR_STORE_OPEN);
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(other.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(statement, 0), "delete");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    fixture_remove(other.path);
}

static void test_newer_version_is_refused(void **state)
{
    struct fixture *f = *state;
    int applied = 0, version = 0;
    fixture_close(f);
    damage(f, "PRAGMA user_version = 9999");
    expect_refused(f->url, (struct store_options){.read_only = false}, ERR_STORE_NEWER);
    expect_refused(f->url, (struct store_options){.read_only = true}, ERR_STORE_NEWER);
    assert_int_equal(store_migrate(f->url, &applied, &version, why, sizeof(why)), ERR_STORE_NEWER);
}

static void test_corrupted_pages_are_refused(void **state)
{
    struct fixture *f = *state;
    struct stat status;
    char noise[4096];
    for (int32_t seat = 0; seat < FIXTURE_SEAT_COUNT; seat++)
        (void)hold_seat(f, seat, 1);
    fixture_close(f);
    assert_int_equal(stat(f->path, &status), 0);
    memset(noise, 0xA5, sizeof(noise));
    for (off_t at = 4096 * 3; at + 4096 <= status.st_size; at += 4096 * 2)
        file_write(f->path, noise, sizeof(noise), at);
    expect_refused(f->url, (struct store_options){.read_only = false}, ERR_STORE_CORRUPT);
}

static void test_truncated_file_is_refused(void **state)
{
    struct fixture *f = *state;
    fixture_close(f);
    assert_int_equal(truncate(f->path, 4096 * 5), 0);
    expect_refused(f->url, (struct store_options){.read_only = false}, ERR_STORE_CORRUPT);
}

static void test_migrate_applies_what_is_due_once(void **state)
{
    struct fixture *f = *state;
    char path[300], url[400];
    int applied = -1, version = -1, again = -1;
    snprintf(path, sizeof(path), "%s.migrate", f->path);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    expect_refused(url, (struct store_options){.no_migrate = true}, ERR_STORE_OPEN);
    assert_int_equal(store_migrate(url, &applied, &version, why, sizeof(why)), ERR_OK);
    assert_true(applied >= 1);
    assert_int_equal(applied, version);
    assert_int_equal(store_migrate(url, &again, &version, why, sizeof(why)), ERR_OK);
    assert_int_equal(again, 0);
    assert_int_equal(open_url(url, (struct store_options){.no_migrate = true}), ERR_OK);
    fixture_remove(path);
}

static void test_rows_from_before_versions_begin_at_the_first(void **state)
{
    struct fixture *f = *state;
    int applied = 0, version = 0;
    struct uuid checkout = buy_seat(f, 0, 1);
    fixture_close(f);
    damage(f, "ALTER TABLE events DROP COLUMN version; ALTER TABLE checkouts DROP COLUMN version;"
              "ALTER TABLE checkouts DROP COLUMN payer; ALTER TABLE checkouts DROP COLUMN payer_until;"
              "DROP INDEX checkouts_by_user; DROP TABLE deliveries; DROP TABLE dead_letters;"
              "DROP TABLE order_partitions; PRAGMA user_version = 1;");
    assert_int_equal(store_migrate(f->url, &applied, &version, why, sizeof(why)), ERR_OK);
    assert_int_equal(applied, version - 1);
    assert_int_equal(store_open(f->url, NULL, &f->store, why, sizeof(why)), ERR_OK);
    assert_int_equal(lookup_run(f, LOOKUP_EVENT, &f->event_id).event.version, 1);
    struct store_lookup lookup = lookup_run(f, LOOKUP_CHECKOUT, &checkout);
    assert_int_equal(lookup.checkout.version, 1);
    assert_true(uuid_is_nil(&lookup.checkout.payer));
    assert_int_equal(lookup.checkout.payer_until_ms, 0);
    assert_int_equal(verify_run(f, (char[256]){0}), 0);
}

/* ---- Verify ---- */

struct harm {
    const char *sql;
    const char *claim; /* of the first that must be broken */
};

static const struct harm harms[] = {
    {"DROP INDEX seat_holds_active;"
     "INSERT INTO seat_holds SELECT organization_id, randomblob(16), event_id, seat_id, user_id, "
     "checkout_id, "
     "cart_token, status, source, price_cents, created_at, held_until, expired_at, converted_at, "
     "cancelled_at, "
     "cancellation_reason, notes FROM seat_holds WHERE status = 'active'",
     "A seat has at most one active hold."},
    {"UPDATE seats SET seat_hold_id = randomblob(16) WHERE status = 'held'",
     "Every held seat points to an active hold of that seat."},
    {"UPDATE seats SET status = 'available', seat_hold_id = NULL, held_until = NULL WHERE status = 'held'",
     "Every active hold has its seat, in its organization and event."},
    {"UPDATE seat_holds SET event_id = randomblob(16) WHERE status = 'active'",
     "Every held seat points to an active hold of that seat."},
    {"UPDATE seat_holds SET held_until = held_until + 1 WHERE status = 'active'",
     "A held seat and its hold end at the same time."},
    {"UPDATE tickets SET refunded_at = 1", "Every sold seat has a valid ticket of that seat."},
    {"UPDATE seats SET status = 'available', ticket_id = NULL WHERE status = 'sold'",
     "Every valid ticket has its seat, sold."},
    {"DROP INDEX tickets_valid;"
     "INSERT INTO tickets SELECT organization_id, randomblob(16), event_id, seat_id, seat_hold_id, "
     "checkout_id, "
     "user_id, price_cents, code, created_at, refunded_at FROM tickets",
     "Every valid ticket has its seat, sold."},
    {"UPDATE seats SET seat_hold_id = randomblob(16) WHERE status = 'available' AND seat = 9",
     "A seat that is not held has no hold, and one that is not sold no ticket."},
    {"UPDATE seat_holds SET cancellation_reason = NULL WHERE status = 'expired'",
     "Every ended hold says when and why, and no active one does."},
    {"UPDATE seat_holds SET converted_at = NULL WHERE status = 'converted'",
     "Every ended hold says when and why, and no active one does."},
    {"UPDATE subsection_stats SET available = available + 1",
     "The statistics of every block count its seats as they are."},
    {"UPDATE blocks SET capacity = 0", "No block has more seats held and sold than its capacity."},
    {"UPDATE subsection_stats SET holds_created = holds_created + 1",
     "The statistics of every block count its holds and how they ended."},
    {"UPDATE subsection_hours SET holds_expired = holds_expired + 1",
     "The statistics by the hour sum to those of the block."},
    {"UPDATE checkouts SET status = 'pending_payment', total_cents = 7",
     "The total of every open checkout is the sum of its active holds."},
    {"UPDATE tickets SET checkout_id = randomblob(16)",
     "Every completed checkout has tickets, one for each of its converted holds."},
    {"DELETE FROM audit_log WHERE action = 'seat_reserved'", "Every hold has the audit row of its making."},
    {"DELETE FROM audit_log WHERE action = 'seat_hold_expired'",
     "Every ended hold has the audit row of its end; that of a sold one is its checkout's."},
    {"DELETE FROM audit_log WHERE action = 'checkout_completed'",
     "Every ended hold has the audit row of its end; that of a sold one is its checkout's."},
    {"UPDATE layouts SET seat_count = seat_count + 1",
     "Every event's seats lie together, as many as its layout says."},
    {"DELETE FROM organizations", "Nothing points to something that does not exist."},
    {"DELETE FROM users", "Nothing points to something that does not exist."},
    {"UPDATE seat_holds SET user_id = randomblob(16) WHERE status = 'expired'",
     "Nothing points to something that does not exist."},
    {"UPDATE checkouts SET user_id = randomblob(16)", "Nothing points to something that does not exist."},
    {"UPDATE seats SET version = 0 WHERE status = 'available'",
     "Every state is one that exists, and every version counts from 1."},
    {"UPDATE events SET version = 0", "Every state is one that exists, and every version counts from 1."},
    {"UPDATE checkouts SET version = 0", "Every state is one that exists, and every version counts from 1."},
    {"INSERT INTO deliveries VALUES ('webhook', 0, 0, 0, NULL, 0, 0)",
     "Every state is one that exists, and every version counts from 1."},
    {"INSERT INTO order_partitions VALUES ('commands', 7, 0, 0, NULL, 0)",
     "Every state is one that exists, and every version counts from 1."},
    {"INSERT INTO order_partitions VALUES ('commands', 7, 1, -1, NULL, 0)",
     "Every state is one that exists, and every version counts from 1."},
    {"DELETE FROM changes WHERE id = 2", "The change feed has no gap."},
    {"UPDATE tickets SET price_cents = price_cents + 1",
     "Every ticket has the user and the price of its hold."},
    {"UPDATE seat_holds SET price_cents = 1 WHERE status = 'converted'",
     "Every ticket has the user and the price of its hold."},
    {"UPDATE tickets SET user_id = randomblob(16)", "Every ticket has the user and the price of its hold."},
    {"UPDATE checkouts SET total_cents = total_cents + 1",
     "The total of every checkout that has tickets is the sum of their prices."},
    {"UPDATE checkouts SET total_cents = 0, status = 'refunded', refund = 'done'",
     "The total of every checkout that has tickets is the sum of their prices."},
    {"UPDATE tickets SET price_cents = 1; UPDATE seat_holds SET price_cents = 1 WHERE status = 'converted'",
     "The total of every checkout that has tickets is the sum of their prices."},
};

static void test_verify_finds_each_kind_of_damage(void **state)
{
    struct fixture *f = *state;
    struct hold_row expired = hold_seat(f, 0, 1);
    struct store_batch *batch = batch_new(f);
    unit_end(f, batch, unit_new(batch), &expired, 0, 2, HOLD_EXPIRED, END_TTL_EXPIRED);
    assert_int_equal(batch_commit(f, batch), UNIT_OK);
    (void)hold_seat(f, 1, 1);
    (void)buy_seat(f, 2, 1);
    char claim[256];
    assert_int_equal(verify_run(f, claim), 0);
    fixture_close(f);
    for (size_t i = 0; i < COUNT_OF(harms); i++) {
        struct fixture copy = {.store = NULL};
        struct store_options options = {.read_only = true};
        char sql[400];
        snprintf(copy.path, sizeof(copy.path), "%.200s.%zu", f->path, i);
        snprintf(copy.url, sizeof(copy.url), "sqlite:%s", copy.path);
        snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", copy.path);
        damage(f, sql);
        damage(&copy, harms[i].sql);
        assert_int_equal(store_open(copy.url, &options, &copy.store, why, sizeof(why)), ERR_OK);
        if (verify_run(&copy, claim) == 0)
            fail_msg("not found: %s", harms[i].sql);
        assert_string_equal(claim, harms[i].claim);
        store_close(copy.store);
        fixture_remove(copy.path);
    }
}

/* What is left when an event is cancelled while a payment is under way. */
static void test_verify_takes_a_refunded_checkout_without_tickets_as_sound(void **state)
{
    struct fixture *f = *state;
    char claim[256];
    (void)buy_seat(f, 0, 1);
    damage(f,
           "INSERT INTO checkouts (organization_id, id, event_id, user_id, status, refund, reason, currency, "
           "total_cents, created_at, expires_at, ended_at) "
           "SELECT organization_id, randomblob(16), event_id, user_id, 'refunded', 'done', 'admin_override', "
           "currency, total_cents, created_at, expires_at, ended_at FROM checkouts");
    assert_int_equal(verify_run(f, claim), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_scheme_is_refused),
        TEST(test_second_server_is_refused_and_the_first_goes_on),
        TEST(test_second_process_is_refused_through_any_link),
        TEST(test_second_process_is_refused_when_the_file_was_replaced),
        TEST(test_read_only_store_takes_no_lock),
        TEST(test_read_only_store_works_beside_a_server),
        TEST(test_read_only_store_invents_no_file),
        TEST(test_new_file_is_its_owners_alone),
        TEST(test_folders_and_missing_folders_are_refused),
        TEST(test_file_that_is_no_database_is_refused_unchanged),
        TEST(test_database_of_another_program_is_refused_unchanged),
        TEST(test_newer_version_is_refused),
        TEST(test_corrupted_pages_are_refused),
        TEST(test_truncated_file_is_refused),
        TEST(test_migrate_applies_what_is_due_once),
        TEST(test_rows_from_before_versions_begin_at_the_first),
        TEST(test_verify_finds_each_kind_of_damage),
        TEST(test_verify_takes_a_refunded_checkout_without_tickets_as_sound),
    };
    unsetenv("HOLDFAST_TEST_STORE"); /* these are about SQLite's file */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
