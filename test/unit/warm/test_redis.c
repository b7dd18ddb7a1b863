/* SPDX-License-Identifier: Apache-2.0
 * What the warm tier does in a real Redis: locks, keys, bits, members, and that
 * nothing touches what belongs to another hold or a newer version. */
#include "warm_fixture.h"

static struct fixture fixture;

static int setup_server(void **state)
{
    (void)state;
    fixture_start(&fixture);
    redis_server_start(&fixture.server, NULL);
    fixture_connect_plain(&fixture);
    fixture_create(&fixture, fixture.server.url);
    fixture_close(&fixture);
    return 0;
}

static int teardown_server(void **state)
{
    (void)state;
    fixture_stop(&fixture);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    fixture.org_id = fixture_uuid(&fixture);
    fixture.event_id = fixture_uuid(&fixture);
    return 0;
}

/* ---- Locks ---- */

static void test_a_free_lock_is_taken_and_then_found(void **state)
{
    (void)state;
    struct warm_write first = fixture_hold(&fixture, 0), second = first;
    second.hold_id = fixture_uuid(&fixture);
    second.user_id = fixture_uuid(&fixture);
    struct warm_lock lock = fixture_lock_of(&first), other = fixture_lock_of(&second);
    assert_int_equal(fixture_lock(&fixture, &lock, 1), WARM_ANSWERED);
    assert_int_equal(lock.result, WARM_LOCK_TAKEN);
    assert_int_equal(fixture_lock(&fixture, &other, 1), WARM_ANSWERED);
    assert_int_equal(other.result, WARM_LOCK_FOUND);
    assert_true(other.readable);
    assert_true(uuid_equal(&other.found_hold_id, &first.hold_id));
    assert_true(uuid_equal(&other.found_user_id, &first.user_id));
    assert_int_equal(other.found_held_at_ms, first.created_ms);
    assert_locked_by(&fixture, &first, &first.hold_id);
}

static void test_a_lock_outlives_its_hold_by_a_minute(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    fixture_lock(&fixture, &lock, 1);
    long long dies_ms = fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_LOCK));
    assert_int_equal(dies_ms, hold.held_until_ms + WARM_LOCK_EXTRA_MS);
}

static void test_a_round_of_many_gets_each_its_answer(void **state)
{
    enum { COUNT = 300 };
    static struct warm_lock locks[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        struct warm_write hold = fixture_hold(&fixture, i);
        if (i % 7 == 0)
            hold.event_id = fixture_uuid(&fixture);
        locks[i] = fixture_lock_of(&hold);
    }
    assert_int_equal(fixture_lock(&fixture, locks + 100, 100), WARM_ANSWERED);
    assert_int_equal(fixture_lock(&fixture, locks, COUNT), WARM_ANSWERED);
    for (int i = 0; i < COUNT; i++) {
        bool taken_before = i >= 100 && i < 200;
        assert_int_equal(locks[i].result, taken_before ? WARM_LOCK_FOUND : WARM_LOCK_TAKEN);
        if (taken_before)
            assert_true(uuid_equal(&locks[i].found_hold_id, &locks[i].hold_id));
    }
}

static void test_an_error_is_an_answer_and_does_not_open_the_breaker(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct warm_write hold = fixture_hold(&fixture, 0);
        fixture_command(&fixture, "RPUSH %s x", fixture_key(&hold, KEY_LOCK));
        struct warm_lock locks[2] = {fixture_lock_of(&hold), fixture_lock_of(&hold)};
        locks[1].seat_id = fixture_uuid(&fixture);
        assert_int_equal(fixture_lock(&fixture, locks, 2), WARM_ANSWERED);
        assert_int_equal(locks[0].result, WARM_LOCK_ERROR);
        assert_int_equal(locks[1].result, WARM_LOCK_TAKEN);
    }
    assert_int_equal(warm_state(fixture.warm), WARM_CLOSED);
}

static void test_scripts_that_redis_forgot_are_loaded_again(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture_reserve(&fixture, &hold);
    fixture_command(&fixture, "SCRIPT FLUSH");
    struct warm_read read = {
        .kind = WARM_HOLDS, .seat_ids = &hold.seat_id, .hold_ids = &hold.hold_id, .seat_count = 1};
    fixture_read(&fixture, &read);
    assert_true(read.whole[0]);
    fixture_command(&fixture, "SCRIPT FLUSH");
    hold.kind = WARM_RELEASED;
    hold.state = SEAT_AVAILABLE;
    hold.version = 3;
    warm_write(fixture.warm, &hold, 1);
    fixture_settle(&fixture);
    fixture_settle(&fixture); /* the call was made again after the first settling was asked for */
    assert_gone(&fixture, &hold);
    assert_int_equal(fixture_bit(&fixture, &hold), 0);
}

/* ---- Writes ---- */

static void test_a_hold_has_all_its_keys_with_their_lives(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 37);
    char expected[256], hold_text[UUID_TEXT_SIZE], user[UUID_TEXT_SIZE], time[TIME_TEXT_SIZE];
    fixture_command(&fixture, "SET %s {}", fixture_key(&hold, KEY_OCCUPANCY));
    fixture_reserve(&fixture, &hold);
    assert_stands(&fixture, &hold);
    uuid_format(&hold.hold_id, hold_text);
    uuid_format(&hold.user_id, user);
    snprintf(expected, sizeof(expected), "%s:%s:%lld", hold_text, user, (long long)hold.held_until_ms / 1000);
    fixture_command(&fixture, "GET %s", fixture_key(&hold, KEY_HOLD));
    assert_string_equal(fixture.value, expected);
    assert_int_equal(fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_HOLD)),
                     hold.held_until_ms);
    assert_int_equal(fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_META)),
                     hold.held_until_ms);
    assert_int_equal(fixture_command(&fixture, "HLEN %s", fixture_key(&hold, KEY_META)), 7);
    fixture_command(&fixture, "HGET %s user_id", fixture_key(&hold, KEY_META));
    assert_string_equal(fixture.value, user);
    fixture_command(&fixture, "HGET %s status", fixture_key(&hold, KEY_META));
    assert_string_equal(fixture.value, "active");
    fixture_command(&fixture, "HGET %s source", fixture_key(&hold, KEY_META));
    assert_string_equal(fixture.value, "web");
    time_format(hold.held_until_ms, time);
    fixture_command(&fixture, "HGET %s held_until", fixture_key(&hold, KEY_META));
    assert_string_equal(fixture.value, time);
    time_format(hold.created_ms, time);
    fixture_command(&fixture, "HGET %s created_at", fixture_key(&hold, KEY_META));
    assert_string_equal(fixture.value, time);
    fixture_command(&fixture, "ZSCORE %s %s", fixture_key(&hold, KEY_MEMBERS),
                    fixture_member(&hold, hold.held_until_ms));
    assert_int_equal(atoll(fixture.value), hold.held_until_ms / 1000);
    assert_int_equal(fixture_command(&fixture, "BITCOUNT %s", fixture_key(&hold, KEY_BITS)), 1);
    assert_false(fixture_exists(&fixture, &hold, KEY_OCCUPANCY));
}

static struct warm_write ended(const struct warm_write *hold, enum warm_write_kind kind)
{
    struct warm_write write = *hold;
    write.kind = kind;
    write.state = kind == WARM_SOLD ? SEAT_SOLD : SEAT_AVAILABLE;
    write.version = hold->version + 1;
    write.reason = END_USER_CANCELLED;
    return write;
}

static void test_a_release_takes_only_its_own_member(void **state)
{
    (void)state;
    struct warm_write first = fixture_hold(&fixture, 0), second = fixture_hold(&fixture, 1);
    fixture_reserve(&fixture, &first);
    fixture_reserve(&fixture, &second);
    struct warm_write release = ended(&first, WARM_RELEASED);
    warm_write(fixture.warm, &release, 1);
    assert_int_equal(fixture_settle(&fixture), 1);
    assert_gone(&fixture, &first);
    assert_false(fixture_exists(&fixture, &first, KEY_LOCK));
    assert_int_equal(fixture_bit(&fixture, &first), 0);
    assert_stands(&fixture, &second);
}

static void test_a_late_release_leaves_the_next_hold_alone(void **state)
{
    (void)state;
    struct warm_write old = fixture_hold(&fixture, 3), next = old;
    next.hold_id = fixture_uuid(&fixture);
    next.user_id = fixture_uuid(&fixture);
    next.version = 4;
    fixture_reserve(&fixture, &next);
    struct warm_write release = ended(&old, WARM_RELEASED); /* version 3, after version 4 */
    warm_write(fixture.warm, &release, 1);
    fixture_settle(&fixture);
    assert_stands(&fixture, &next);
}

static void test_a_sold_seat_keeps_its_bit(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 9);
    fixture_reserve(&fixture, &hold);
    struct warm_write sold = ended(&hold, WARM_SOLD);
    warm_write(fixture.warm, &sold, 1);
    fixture_settle(&fixture);
    assert_gone(&fixture, &hold);
    assert_int_equal(fixture_bit(&fixture, &hold), 1);
}

static void test_a_lock_taken_for_nothing_goes_alone(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0), loser = hold;
    fixture_reserve(&fixture, &hold);
    loser.hold_id = fixture_uuid(&fixture);
    loser.kind = WARM_UNLOCKED;
    warm_write(fixture.warm, &loser, 1);
    fixture_settle(&fixture);
    assert_stands(&fixture, &hold);

    struct warm_write lost = fixture_hold(&fixture, 1);
    struct warm_lock lock = fixture_lock_of(&lost);
    fixture_lock(&fixture, &lock, 1);
    lost.kind = WARM_UNLOCKED;
    warm_write(fixture.warm, &lost, 1);
    fixture_settle(&fixture);
    assert_false(fixture_exists(&fixture, &lost, KEY_LOCK));
}

static void test_an_older_version_never_sets_a_bit(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 5), seat = hold, newer = hold;
    newer.kind = seat.kind = WARM_SEAT;
    newer.state = SEAT_AVAILABLE;
    newer.version = 7;
    seat.state = SEAT_BLOCKED;
    seat.version = 6;
    warm_write(fixture.warm, &newer, 1);
    warm_write(fixture.warm, &seat, 1);
    fixture_settle(&fixture);
    assert_int_equal(fixture_bit(&fixture, &hold), 0);
    seat.version = 8;
    warm_write(fixture.warm, &seat, 1);
    fixture_settle(&fixture);
    assert_int_equal(fixture_bit(&fixture, &hold), 1);
    warm_write(fixture.warm, &newer, 1);
    fixture_settle(&fixture);
    assert_int_equal(fixture_bit(&fixture, &hold), 1);
}

static void test_older_and_newer_versions_of_a_block_are_told_apart(void **state)
{
    enum { COUNT = 1500 };
    static struct warm_write seats[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        seats[i] = fixture_hold(&fixture, i);
        seats[i].kind = WARM_SEAT;
        seats[i].state = SEAT_BLOCKED;
        seats[i].version = 5;
        seats[i].subsection = 1 + i % 2; /* two blocks, mixed */
    }
    warm_write(fixture.warm, seats, COUNT);
    for (int i = 0; i < COUNT; i++) {
        seats[i].state = SEAT_AVAILABLE;
        seats[i].version = i % 3 == 0 ? 4 : 6;
    }
    warm_write(fixture.warm, seats, COUNT);
    fixture_settle(&fixture);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(fixture_bit(&fixture, &seats[i]), i % 3 == 0 ? 1 : 0);
}

static void test_a_seat_that_changes_twice_in_a_batch_ends_as_the_last(void **state)
{
    (void)state;
    struct warm_write old = fixture_hold(&fixture, 2), batch[2];
    fixture_reserve(&fixture, &old);
    batch[1] = ended(&old, WARM_RELEASED);
    batch[0] = old;
    batch[0].hold_id = fixture_uuid(&fixture);
    batch[0].version = 4;
    batch[0].locked = false;
    warm_write(fixture.warm, batch, 2); /* the newer one first: it is put in order */
    fixture_settle(&fixture);
    assert_gone(&fixture, &old);
    assert_stands(&fixture, &batch[0]);
}

static void test_an_extension_moves_everything_of_its_own(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4), extended = hold;
    fixture_reserve(&fixture, &hold);
    extended.kind = WARM_EXTENDED;
    extended.version = 3;
    extended.previous_until_ms = hold.held_until_ms;
    extended.held_until_ms = hold.held_until_ms + 300000;
    warm_write(fixture.warm, &extended, 1);
    assert_int_equal(fixture_settle(&fixture), 1);
    assert_stands(&fixture, &extended);
    assert_false(fixture_is_member(&fixture, &hold, hold.held_until_ms));
    assert_int_equal(fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_LOCK)),
                     extended.held_until_ms + WARM_LOCK_EXTRA_MS);
    assert_int_equal(fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_HOLD)),
                     extended.held_until_ms);
    assert_int_equal(fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_META)),
                     extended.held_until_ms);
    char until[TIME_TEXT_SIZE];
    time_format(extended.held_until_ms, until);
    fixture_command(&fixture, "GET %s", fixture_key(&hold, KEY_LOCK));
    assert_non_null(strstr(fixture.value, until));
}

static void test_an_extension_does_not_touch_the_lock_of_another(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4), other = hold, extended = hold;
    other.hold_id = fixture_uuid(&fixture);
    struct warm_lock lock = fixture_lock_of(&other);
    fixture_lock(&fixture, &lock, 1);
    extended.kind = WARM_EXTENDED;
    extended.version = 3;
    extended.previous_until_ms = hold.held_until_ms;
    extended.held_until_ms = hold.held_until_ms + 300000;
    warm_write(fixture.warm, &extended, 1);
    fixture_settle(&fixture);
    assert_locked_by(&fixture, &hold, &other.hold_id);
    assert_int_equal(fixture_command(&fixture, "PEXPIRETIME %s", fixture_key(&hold, KEY_LOCK)),
                     other.held_until_ms + WARM_LOCK_EXTRA_MS);
}

static void test_a_hold_without_its_lock_gets_it(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4);
    warm_write(fixture.warm, &hold, 1);
    fixture_settle(&fixture);
    assert_stands(&fixture, &hold);
    struct warm_write wrong = fixture_hold(&fixture, 5);
    fixture_command(&fixture, "SET %s %s", fixture_key(&wrong, KEY_LOCK), "nonsense");
    warm_write(fixture.warm, &wrong, 1);
    fixture_settle(&fixture);
    assert_stands(&fixture, &wrong);
}

static void test_a_hold_without_its_lock_leaves_that_of_a_newer_one(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4), newer = hold;
    newer.hold_id = fixture_uuid(&fixture);
    newer.user_id = fixture_uuid(&fixture);
    struct warm_lock lock = fixture_lock_of(&newer);
    fixture_lock(&fixture, &lock, 1);
    warm_write(fixture.warm, &hold, 1);
    fixture_settle(&fixture);
    assert_locked_by(&fixture, &hold, &newer.hold_id);
}

/* Somebody who asks twice, at two nodes: the try that has the lock fails and gives it back. */
static void test_a_second_try_of_the_same_user_leaves_the_hold_its_lock(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4), second = hold;
    second.hold_id = fixture_uuid(&fixture);
    struct warm_lock lock = fixture_lock_of(&second);
    fixture_lock(&fixture, &lock, 1);
    warm_write(fixture.warm, &hold, 1);
    second.kind = WARM_UNLOCKED;
    warm_write(fixture.warm, &second, 1);
    fixture_settle(&fixture);
    assert_stands(&fixture, &hold);
}

static void test_a_repair_makes_good_what_was_lost(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    static struct warm_write holds[COUNT];
    for (int i = 0; i < COUNT; i++) {
        holds[i] = fixture_hold(&fixture, i);
        holds[i].repair = true;
    }
    warm_write(fixture.warm, holds, COUNT);
    assert_int_equal(fixture_settle(&fixture), COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_stands(&fixture, &holds[i]);
}

static void test_a_repair_does_not_bring_back_an_ended_hold(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4);
    fixture_reserve(&fixture, &hold);
    struct warm_write release = ended(&hold, WARM_RELEASED);
    warm_write(fixture.warm, &release, 1);
    struct warm_write repair = hold; /* read before the release, written after it */
    repair.repair = true;
    warm_write(fixture.warm, &repair, 1);
    assert_int_equal(fixture_settle(&fixture), 0);
    assert_gone(&fixture, &hold);
    assert_false(fixture_exists(&fixture, &hold, KEY_LOCK));
    assert_int_equal(fixture_bit(&fixture, &hold), 0);
}

static void test_keys_of_another_type_do_not_stop_the_rest(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 4), good = fixture_hold(&fixture, 5);
    fixture_command(&fixture, "RPUSH %s x", fixture_key(&hold, KEY_LOCK));
    fixture_command(&fixture, "RPUSH %s x", fixture_key(&hold, KEY_HOLD));
    hold.repair = good.repair = true;
    struct warm_write both[2] = {hold, good};
    warm_write(fixture.warm, both, 2);
    assert_int_equal(fixture_settle(&fixture), 2);
    assert_stands(&fixture, &good);
    both[0] = ended(&hold, WARM_RELEASED);
    both[1] = ended(&good, WARM_RELEASED);
    warm_write(fixture.warm, both, 2);
    assert_int_equal(fixture_settle(&fixture), 0);
    assert_gone(&fixture, &good);
}

/* ---- Readings ---- */

static void test_members_are_read_and_removed_one_by_one(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture_reserve(&fixture, &hold);
    fixture_command(&fixture, "ZADD %s 5 %s", fixture_key(&hold, KEY_MEMBERS), "stranger");
    fixture_command(&fixture, "ZADD %s 6 %b", fixture_key(&hold, KEY_MEMBERS), "a\0b", (size_t)3);
    struct warm_read read = {.kind = WARM_MEMBERS};
    fixture_read(&fixture, &read);
    assert_int_equal(read.cursor, 0);
    assert_int_equal(read.member_count, 3);
    struct warm_member strangers[2];
    int stranger_count = 0;
    for (int i = 0; i < 3; i++) {
        if (read.members[i].readable) {
            assert_true(uuid_equal(&read.members[i].hold_id, &hold.hold_id));
            assert_int_equal(read.members[i].held_until_ms, hold.held_until_ms);
        } else if (stranger_count < 2) {
            strangers[stranger_count++] = read.members[i];
        }
    }
    assert_int_equal(stranger_count, 2);
    warm_remove_members(fixture.warm, &fixture.org_id, &fixture.event_id, strangers, 2);
    assert_int_equal(fixture_settle(&fixture), 1);
    assert_stands(&fixture, &hold);
}

static void test_many_members_are_read_by_and_by(void **state)
{
    enum { COUNT = 1200 };
    static struct warm_write holds[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        holds[i] = fixture_hold(&fixture, i);
        holds[i].locked = true;
    }
    warm_write(fixture.warm, holds, COUNT);
    assert_int_equal(fixture_settle(&fixture), COUNT);
    struct warm_read read = {.kind = WARM_MEMBERS};
    int total = 0, turns = 0;
    do {
        fixture_read(&fixture, &read);
        for (int i = 0; i < read.member_count; i++)
            assert_true(read.members[i].readable);
        total += read.member_count;
        turns++;
    } while (read.cursor != 0);
    assert_true(total >= COUNT); /* one may come twice */
    assert_true(turns > 1);
}

static void test_locks_and_bits_are_read(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 9), free_seat = fixture_hold(&fixture, 1);
    struct uuid seats[2] = {free_seat.seat_id, hold.seat_id};
    fixture_reserve(&fixture, &hold);
    struct warm_read read = {.kind = WARM_LOCKS, .seat_ids = seats, .seat_count = 2};
    fixture_read(&fixture, &read);
    assert_int_equal(read.locks[0].result, WARM_LOCK_TAKEN);
    assert_int_equal(read.locks[1].result, WARM_LOCK_FOUND);
    assert_true(read.locks[1].readable);
    assert_true(uuid_equal(&read.locks[1].found_hold_id, &hold.hold_id));

    struct warm_read bits = {.kind = WARM_BITS, .section = "A", .subsection = 1, .bit_count = 40};
    fixture_read(&fixture, &bits);
    assert_int_equal(bits.bits_size, 8);
    assert_int_equal(bits.bits[0], 0);
    assert_int_equal(bits.bits[1], 0x40);
    bits.subsection = 2;
    fixture_read(&fixture, &bits);
    for (size_t i = 0; i < bits.bits_size; i++)
        assert_int_equal(bits.bits[i], 0);
}

static void test_a_hold_without_one_of_its_keys_is_not_whole(void **state)
{
    enum { COUNT = 5 };
    (void)state;
    struct warm_write holds[COUNT];
    struct uuid seat_ids[COUNT], hold_ids[COUNT];
    for (int i = 0; i < COUNT; i++) {
        holds[i] = fixture_hold(&fixture, i);
        seat_ids[i] = holds[i].seat_id;
        hold_ids[i] = holds[i].hold_id;
        fixture_reserve(&fixture, &holds[i]);
    }
    fixture_command(&fixture, "DEL %s", fixture_key(&holds[1], KEY_HOLD));
    fixture_command(&fixture, "DEL %s", fixture_key(&holds[2], KEY_META));
    fixture_command(&fixture, "SET %s %s", fixture_key(&holds[3], KEY_HOLD), "somebody else's");
    struct warm_read read = {
        .kind = WARM_HOLDS, .seat_ids = seat_ids, .hold_ids = hold_ids, .seat_count = COUNT};
    fixture_read(&fixture, &read);
    assert_true(read.whole[0]);
    assert_false(read.whole[1]);
    assert_false(read.whole[2]);
    assert_false(read.whole[3]);
    assert_true(read.whole[4]);
}

static void test_occupancy_lives_ten_seconds(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0);
    warm_occupancy(fixture.warm, &fixture.org_id, &fixture.event_id, "{\"held\":1}", 10);
    fixture_settle(&fixture);
    fixture_command(&fixture, "GET %s", fixture_key(&hold, KEY_OCCUPANCY));
    assert_string_equal(fixture.value, "{\"held\":1}");
    long long left = fixture_command(&fixture, "PTTL %s", fixture_key(&hold, KEY_OCCUPANCY));
    assert_true(left > 0);
    assert_true(left <= 10000);
}

/* ---- Messages ---- */

static void test_messages_of_others_nudge_and_ones_own_do_not(void **state)
{
    (void)state;
    TURN_UNTIL(&fixture, fixture.nudges > 0); /* the subscription has begun */
    struct warm_write hold = fixture_hold(&fixture, 0);
    fixture.nudges = 0;
    fixture_reserve(&fixture, &hold);
    char org[UUID_TEXT_SIZE], event[UUID_TEXT_SIZE];
    uuid_format(&fixture.org_id, org);
    uuid_format(&fixture.event_id, event);
    /* Everything before this message was heard when it is. */
    assert_int_equal(fixture_command(&fixture, "PUBLISH occupancy:%s:%s {}", org, event), 1);
    TURN_UNTIL(&fixture, fixture.nudges > 0);
    for (int i = 0; i < 5; i++)
        fixture_turn(&fixture);
    assert_int_equal(fixture.nudges, 1);
}

/* The next message that the plain client hears; its channel is in fixture.value. */
static const char *next_message(redisReply **reply)
{
    if (*reply != NULL)
        freeReplyObject(*reply);
    void *got = NULL;
    assert_int_equal(redisGetReply(fixture.redis, &got), REDIS_OK);
    *reply = got;
    assert_int_equal((*reply)->elements, 4);
    snprintf(fixture.value, sizeof(fixture.value), "%s", (*reply)->element[2]->str);
    return (*reply)->element[3]->str;
}

static void test_messages_are_those_of_the_contract_and_name_nobody(void **state)
{
    (void)state;
    struct warm_write hold = fixture_hold(&fixture, 0);
    struct warm_lock lock = fixture_lock_of(&hold);
    fixture_lock(&fixture, &lock, 1);
    hold.locked = true;
    char user[UUID_TEXT_SIZE], seat[UUID_TEXT_SIZE], org[UUID_TEXT_SIZE], channel[200];
    uuid_format(&hold.user_id, user);
    uuid_format(&hold.seat_id, seat);
    uuid_format(&fixture.org_id, org);
    freeReplyObject(redisCommand(fixture.redis, "PSUBSCRIBE *%s*", org));
    warm_write(fixture.warm, &hold, 1);
    struct warm_write repair = hold, release = ended(&hold, WARM_RELEASED);
    repair.repair = true;
    warm_write(fixture.warm, &repair, 1); /* says nothing */
    warm_write(fixture.warm, &release, 1);
    fixture_settle(&fixture);

    redisReply *reply = NULL;
    const char *message = next_message(&reply);
    snprintf(channel, sizeof(channel), "org:%s:event:", org);
    assert_memory_equal(fixture.value, channel, strlen(channel));
    assert_non_null(strstr(fixture.value, ":seating:seat:held"));
    assert_non_null(strstr(message, "\"event\":\"seat_held\""));
    assert_non_null(strstr(message, seat));
    assert_null(strstr(message, user));
    message = next_message(&reply);
    assert_memory_equal(fixture.value, "occupancy:", 10);
    assert_non_null(
        strstr(message, "],\"event\":\"seat_held\",\"seat_id\":\"")); /* one seat: as the seeds have it */
    assert_non_null(strstr(message, "\"node\":\""));
    assert_null(strstr(message, user));
    message = next_message(&reply);
    assert_non_null(strstr(fixture.value, ":seating:seat:released"));
    assert_non_null(strstr(message, "\"reason\":\"user_cancelled\""));
    message = next_message(&reply);
    assert_non_null(strstr(message, "\"event\":\"seat_released\""));
    freeReplyObject(reply);
    fixture_connect_plain(&fixture);
}

static void test_several_changes_make_one_message(void **state)
{
    (void)state;
    struct warm_write holds[3];
    for (int i = 0; i < 3; i++) {
        holds[i] = fixture_hold(&fixture, i);
        holds[i].locked = true;
    }
    char org[UUID_TEXT_SIZE];
    uuid_format(&fixture.org_id, org);
    freeReplyObject(redisCommand(fixture.redis, "PSUBSCRIBE occupancy:%s*", org));
    warm_write(fixture.warm, holds, 3);
    fixture_settle(&fixture);
    redisReply *reply = NULL;
    const char *message = next_message(&reply);
    for (int i = 0; i < 3; i++) {
        char seat[UUID_TEXT_SIZE];
        uuid_format(&holds[i].seat_id, seat);
        assert_non_null(strstr(message, seat));
    }
    assert_non_null(strstr(message, "}],\"event_id\":\""));
    freeReplyObject(reply);
    fixture_connect_plain(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_free_lock_is_taken_and_then_found, setup),
        cmocka_unit_test_setup(test_a_lock_outlives_its_hold_by_a_minute, setup),
        cmocka_unit_test_setup(test_a_round_of_many_gets_each_its_answer, setup),
        cmocka_unit_test_setup(test_an_error_is_an_answer_and_does_not_open_the_breaker, setup),
        cmocka_unit_test_setup(test_scripts_that_redis_forgot_are_loaded_again, setup),
        cmocka_unit_test_setup(test_a_hold_has_all_its_keys_with_their_lives, setup),
        cmocka_unit_test_setup(test_a_release_takes_only_its_own_member, setup),
        cmocka_unit_test_setup(test_a_late_release_leaves_the_next_hold_alone, setup),
        cmocka_unit_test_setup(test_a_sold_seat_keeps_its_bit, setup),
        cmocka_unit_test_setup(test_a_lock_taken_for_nothing_goes_alone, setup),
        cmocka_unit_test_setup(test_an_older_version_never_sets_a_bit, setup),
        cmocka_unit_test_setup(test_older_and_newer_versions_of_a_block_are_told_apart, setup),
        cmocka_unit_test_setup(test_a_seat_that_changes_twice_in_a_batch_ends_as_the_last, setup),
        cmocka_unit_test_setup(test_an_extension_moves_everything_of_its_own, setup),
        cmocka_unit_test_setup(test_an_extension_does_not_touch_the_lock_of_another, setup),
        cmocka_unit_test_setup(test_a_hold_without_its_lock_gets_it, setup),
        cmocka_unit_test_setup(test_a_hold_without_its_lock_leaves_that_of_a_newer_one, setup),
        cmocka_unit_test_setup(test_a_second_try_of_the_same_user_leaves_the_hold_its_lock, setup),
        cmocka_unit_test_setup(test_a_repair_makes_good_what_was_lost, setup),
        cmocka_unit_test_setup(test_a_repair_does_not_bring_back_an_ended_hold, setup),
        cmocka_unit_test_setup(test_keys_of_another_type_do_not_stop_the_rest, setup),
        cmocka_unit_test_setup(test_members_are_read_and_removed_one_by_one, setup),
        cmocka_unit_test_setup(test_many_members_are_read_by_and_by, setup),
        cmocka_unit_test_setup(test_locks_and_bits_are_read, setup),
        cmocka_unit_test_setup(test_a_hold_without_one_of_its_keys_is_not_whole, setup),
        cmocka_unit_test_setup(test_occupancy_lives_ten_seconds, setup),
        cmocka_unit_test_setup(test_messages_of_others_nudge_and_ones_own_do_not, setup),
        cmocka_unit_test_setup(test_messages_are_those_of_the_contract_and_name_nobody, setup),
        cmocka_unit_test_setup(test_several_changes_make_one_message, setup),
    };
    return cmocka_run_group_tests(tests, setup_server, teardown_server);
}
