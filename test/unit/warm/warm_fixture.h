/* SPDX-License-Identifier: Apache-2.0
 * A warm tier over a redis-server of its own, and a plain client beside it to
 * see what is in there. The tier's clock stands still unless a test moves it, so
 * that a busy machine makes nothing late. */
#ifndef HOLDFAST_TEST_WARM_FIXTURE_H
#define HOLDFAST_TEST_WARM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four first */
#include <cmocka.h>
#include <hiredis/hiredis.h>
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "redis_server.h"
#include "warm/warm.h"

enum { WAIT_MS_MAX = 20000, CREATED_SECONDS = 1764165600, HELD_SECONDS = 300 };

struct fixture {
    struct redis_server server;
    redisContext *redis; /* the plain client */
    struct warm *warm;
    struct arena arena;
    struct rng rng;
    int64_t now_us;
    int nudges;
    struct uuid org_id, event_id;
    char value[4096]; /* of the last get() */
};

static inline void fixture_on_nudge(void *context)
{
    ((struct fixture *)context)->nudges++;
}

static inline struct uuid fixture_uuid(struct fixture *fixture)
{
    return uuid_make(&fixture->rng, clock_now_ms());
}

/* One turn; then waits a moment for something to come. */
static inline void fixture_turn(struct fixture *fixture)
{
    int64_t due_us = warm_turn(fixture->warm, fixture->now_us);
    struct pollfd fd = {.fd = warm_fd(fixture->warm), .events = POLLIN};
    assert_true(due_us >= 0);
    poll(&fd, 1, 2);
}

#define TURN_UNTIL(fixture, condition)                                                                       \
    do {                                                                                                     \
        int64_t limit_us = clock_monotonic_us() + WAIT_MS_MAX * 1000LL;                                      \
        while (!(condition)) {                                                                               \
            if (clock_monotonic_us() > limit_us)                                                             \
                fail_msg("never: %s", #condition);                                                           \
            fixture_turn(fixture);                                                                           \
        }                                                                                                    \
    } while (0)

static inline void fixture_create(struct fixture *fixture, const char *url)
{
    struct warm_config config = {.url = url,
                                 .prefix = "voelgoed",
                                 .node_id = fixture_uuid(fixture),
                                 .on_nudge = fixture_on_nudge,
                                 .context = fixture};
    char why[256] = "";
    if (warm_create(&config, &fixture->warm, why, sizeof(why)) != ERR_OK)
        fail_msg("%s: %s", url, why);
}

static inline void fixture_on_read(struct warm_read *read)
{
    *(bool *)read->context = true;
}

/* A reading that must be answered. */
static inline void fixture_read(struct fixture *fixture, struct warm_read *read)
{
    bool done = false;
    read->org_id = fixture->org_id;
    read->event_id = fixture->event_id;
    read->arena = &fixture->arena;
    read->on_done = fixture_on_read;
    read->context = &done;
    assert_int_equal(warm_read(fixture->warm, read), ERR_OK);
    TURN_UNTIL(fixture, done);
    assert_int_equal(read->outcome, WARM_ANSWERED);
}

/* Until everything that was written so far has happened. */
static inline int64_t fixture_settle(struct fixture *fixture)
{
    struct warm_read read = {.kind = WARM_COUNT};
    fixture_read(fixture, &read);
    return read.count;
}

static inline void fixture_close(struct fixture *fixture)
{
    fixture_settle(fixture);
    warm_rebuilt(fixture->warm);
    assert_int_equal(warm_state(fixture->warm), WARM_CLOSED);
}

static inline void fixture_connect_plain(struct fixture *fixture)
{
    if (fixture->redis != NULL)
        redisFree(fixture->redis);
    fixture->redis = redisConnectUnix(fixture->server.socket);
    assert_non_null(fixture->redis);
    assert_int_equal(fixture->redis->err, 0);
}

static inline void fixture_start(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    log_set_level(LOG_ERROR);
    arena_init(&fixture->arena);
    rng_init_system(&fixture->rng);
    fixture->now_us = 1000000;
    fixture->org_id = fixture_uuid(fixture);
    fixture->event_id = fixture_uuid(fixture);
}

static inline void fixture_stop(struct fixture *fixture)
{
    warm_destroy(fixture->warm);
    if (fixture->redis != NULL)
        redisFree(fixture->redis);
    redis_server_stop(&fixture->server);
    arena_deinit(&fixture->arena);
}

/* A hold as the lane would write it, of a fresh seat. */
static inline struct warm_write fixture_hold(struct fixture *fixture, int32_t bit)
{
    int64_t created_ms = clock_now_ms() / 1000 * 1000;
    return (struct warm_write){.kind = WARM_HELD,
                               .org_id = fixture->org_id,
                               .event_id = fixture->event_id,
                               .seat_id = fixture_uuid(fixture),
                               .state = SEAT_HELD,
                               .version = 2,
                               .section = "A",
                               .subsection = 1,
                               .bit = bit,
                               .hold_id = fixture_uuid(fixture),
                               .user_id = fixture_uuid(fixture),
                               .cart_token = "cart",
                               .created_ms = created_ms,
                               .held_until_ms = created_ms + HELD_SECONDS * 1000,
                               .price_cents = 5000,
                               .source = SOURCE_WEB};
}

static inline struct warm_lock fixture_lock_of(const struct warm_write *write)
{
    return (struct warm_lock){.org_id = write->org_id,
                              .event_id = write->event_id,
                              .seat_id = write->seat_id,
                              .hold_id = write->hold_id,
                              .user_id = write->user_id,
                              .cart_token = write->cart_token,
                              .held_at_ms = write->created_ms,
                              .held_until_ms = write->held_until_ms};
}

static inline void fixture_on_round(struct warm_round *round)
{
    *(bool *)round->context = true;
}

static inline enum warm_outcome fixture_lock(struct fixture *fixture, struct warm_lock *locks, int32_t count)
{
    bool done = false;
    struct warm_round round = {.arena = &fixture->arena,
                               .locks = locks,
                               .count = count,
                               .on_done = fixture_on_round,
                               .context = &done};
    assert_int_equal(warm_lock(fixture->warm, &round), ERR_OK);
    TURN_UNTIL(fixture, done);
    return round.outcome;
}

/* Takes the lock and writes the hold, as a reserve does. */
static inline void fixture_reserve(struct fixture *fixture, struct warm_write *write)
{
    struct warm_lock lock = fixture_lock_of(write);
    assert_int_equal(fixture_lock(fixture, &lock, 1), WARM_ANSWERED);
    assert_int_equal(lock.result, WARM_LOCK_TAKEN);
    write->locked = true;
    warm_write(fixture->warm, write, 1);
    fixture_settle(fixture);
}

/* ---- The plain client ---- */

enum fixture_key { KEY_LOCK, KEY_HOLD, KEY_META, KEY_MEMBERS, KEY_BITS, KEY_OCCUPANCY };

static inline const char *fixture_key(const struct warm_write *write, enum fixture_key kind)
{
    static char key[512];
    char org[UUID_TEXT_SIZE], event[UUID_TEXT_SIZE], seat[UUID_TEXT_SIZE], hold[UUID_TEXT_SIZE];
    uuid_format(&write->org_id, org);
    uuid_format(&write->event_id, event);
    uuid_format(&write->seat_id, seat);
    uuid_format(&write->hold_id, hold);
    switch (kind) {
    case KEY_LOCK:
        snprintf(key, sizeof(key), "org:%s:event:%s:seat:%s", org, event, seat);
        break;
    case KEY_HOLD:
        snprintf(key, sizeof(key), "voelgoed:org:%s:seat:%s:hold", org, seat);
        break;
    case KEY_META:
        snprintf(key, sizeof(key), "voelgoed:org:%s:hold:%s:meta", org, hold);
        break;
    case KEY_MEMBERS:
        snprintf(key, sizeof(key), "voelgoed:org:%s:event:%s:seat_holds", org, event);
        break;
    case KEY_BITS:
        snprintf(key, sizeof(key), "voelgoed:org:%s:event:%s:seats_bf:%s-%d", org, event, write->section,
                 write->subsection);
        break;
    case KEY_OCCUPANCY:
        snprintf(key, sizeof(key), "voelgoed:org:%s:event:%s:occupancy", org, event);
        break;
    }
    return key;
}

/* The number or text that a command gives; errors fail the test. */
static inline long long fixture_command(struct fixture *fixture, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(fixture->redis, format, arguments);
    va_end(arguments);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply == NULL ? fixture->redis->errstr : reply->str);
    snprintf(fixture->value, sizeof(fixture->value), "%s",
             reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS ? reply->str : "");
    long long number = reply->integer;
    freeReplyObject(reply);
    return number;
}

static inline bool fixture_exists(struct fixture *fixture, const struct warm_write *write,
                                  enum fixture_key kind)
{
    return fixture_command(fixture, "EXISTS %s", fixture_key(write, kind)) == 1;
}

static inline const char *fixture_member(const struct warm_write *write, int64_t held_until_ms)
{
    static char member[256];
    char seat[UUID_TEXT_SIZE], hold[UUID_TEXT_SIZE], user[UUID_TEXT_SIZE], until[TIME_TEXT_SIZE];
    uuid_format(&write->seat_id, seat);
    uuid_format(&write->hold_id, hold);
    uuid_format(&write->user_id, user);
    time_format(held_until_ms, until);
    snprintf(member, sizeof(member), "%s:%s:%s:%s", seat, hold, user, until);
    return member;
}

static inline bool fixture_is_member(struct fixture *fixture, const struct warm_write *write,
                                     int64_t held_until_ms)
{
    fixture_command(fixture, "ZSCORE %s %s", fixture_key(write, KEY_MEMBERS),
                    fixture_member(write, held_until_ms));
    return fixture->value[0] != '\0';
}

static inline long long fixture_bit(struct fixture *fixture, const struct warm_write *write)
{
    return fixture_command(fixture, "GETBIT %s %d", fixture_key(write, KEY_BITS), write->bit);
}

/* Whose lock it is, as text; "": nobody's. */
static inline const char *fixture_lock_holder(struct fixture *fixture, const struct warm_write *write)
{
    fixture_command(fixture, "GET %s", fixture_key(write, KEY_LOCK));
    char *hold = strstr(fixture->value, "\"hold_id\":\"");
    if (hold == NULL)
        return "";
    hold += strlen("\"hold_id\":\"");
    hold[UUID_TEXT_SIZE - 1] = '\0';
    return hold;
}

static inline void assert_locked_by(struct fixture *fixture, const struct warm_write *write,
                                    const struct uuid *hold_id)
{
    char hold[UUID_TEXT_SIZE];
    uuid_format(hold_id, hold);
    assert_string_equal(fixture_lock_holder(fixture, write), hold);
}

/* Everything that a hold has in Redis is there, or nothing of it is. */
static inline void assert_stands(struct fixture *fixture, const struct warm_write *write)
{
    assert_locked_by(fixture, write, &write->hold_id);
    assert_true(fixture_exists(fixture, write, KEY_HOLD));
    assert_true(fixture_exists(fixture, write, KEY_META));
    assert_true(fixture_is_member(fixture, write, write->held_until_ms));
    assert_int_equal(fixture_bit(fixture, write), 1);
}

static inline void assert_gone(struct fixture *fixture, const struct warm_write *write)
{
    char hold[UUID_TEXT_SIZE];
    uuid_format(&write->hold_id, hold);
    assert_string_not_equal(fixture_lock_holder(fixture, write), hold);
    fixture_command(fixture, "GET %s", fixture_key(write, KEY_HOLD));
    assert_int_not_equal(strncmp(fixture->value, hold, strlen(hold)), 0);
    assert_false(fixture_exists(fixture, write, KEY_META));
    assert_false(fixture_is_member(fixture, write, write->held_until_ms));
}

#endif
