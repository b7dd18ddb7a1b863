/* SPDX-License-Identifier: Apache-2.0
 * Locks are JSON objects, `{"user_id":…,"cart_token":…,"hold_id":…,
 * "expires_at":…,"held_at":…}`; holds `{hold}:{user}:{unix}`; members
 * `{seat}:{hold}:{user}:{iso}`.
 *
 * Other programs may write to these keys. A lock is readable if it is an object
 * that names a user and a hold by their ids; a time of taking that is missing or
 * broken makes it an old one. Pure. */
#include "warm/values.h"

#include <jansson.h>
#include <string.h>

#include "warm/keys.h"
#include "warm/resp.h"

enum { VALUE_SIZE_MAX = 16 * 1024 };

struct value_time value_time(struct value_times *times, int64_t time_ms)
{
    int64_t second = time_ms / 1000;
    struct value_time *slot = &times->slots[(uint64_t)second % COUNT_OF(times->slots)];
    if (slot->size == 0 || slot->second != second) {
        time_format(time_ms, slot->text);
        slot->second = second;
        slot->size = strlen(slot->text);
    }
    return *slot;
}

/* How many bytes text takes inside JSON's quotes: as many as it has, if nothing of it must be escaped. */
static size_t escaped_size(const char *text, size_t size)
{
    size_t more = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        more += c < 0x20 ? 5 : c == '"' || c == '\\' ? 1 : 0;
    }
    return size + more;
}

static void put_escaped(struct buf *out, const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    size_t begin = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
        buf_put(out, text + begin, i - begin);
        if (c < 0x20)
            buf_put(out, escape, sizeof(escape));
        else
            buf_put(out, (char[]){'\\', (char)c}, 2);
        begin = i + 1;
    }
    buf_put(out, text + begin, size - begin);
}

#define PUT_LITERAL(out, text) buf_put((out), (text), sizeof(text) - 1)

void value_put_lock(struct buf *out, struct value_times *times, const struct value_lock *lock)
{
    static const char user[] = "{\"user_id\":\"", cart[] = "\",\"cart_token\":\"",
                      hold[] = "\",\"hold_id\":\"", until[] = "\",\"expires_at\":\"",
                      since[] = "\",\"held_at\":\"", end[] = "\"}";
    enum {
        AROUND = sizeof(user) + sizeof(cart) + sizeof(hold) + sizeof(until) + sizeof(since) + sizeof(end) - 6
    };
    const char *token = lock->cart_token != NULL ? lock->cart_token : "";
    size_t token_size = strlen(token), token_room = escaped_size(token, token_size);
    struct value_time until_text = value_time(times, lock->held_until_ms);
    struct value_time since_text = value_time(times, lock->held_at_ms);
    resp_head(out, AROUND + 2 * KEY_ID_SIZE + token_room + until_text.size + since_text.size);
    PUT_LITERAL(out, user);
    buf_put(out, lock->user, KEY_ID_SIZE);
    PUT_LITERAL(out, cart);
    put_escaped(out, token, token_size);
    PUT_LITERAL(out, hold);
    buf_put(out, lock->hold, KEY_ID_SIZE);
    PUT_LITERAL(out, until);
    buf_put(out, until_text.text, until_text.size);
    PUT_LITERAL(out, since);
    buf_put(out, since_text.text, since_text.size);
    PUT_LITERAL(out, end);
    resp_tail(out);
}

void value_put_hold(struct buf *out, const char *hold, const char *user, int64_t held_until_ms)
{
    char text[2 * UUID_TEXT_SIZE + 24];
    memcpy(text, hold, KEY_ID_SIZE);
    text[KEY_ID_SIZE] = ':';
    memcpy(text + KEY_ID_SIZE + 1, user, KEY_ID_SIZE);
    text[2 * KEY_ID_SIZE + 1] = ':';
    char digits[24];
    char *at = digits + sizeof(digits);
    int64_t second = held_until_ms / 1000;
    uint64_t rest = second < 0 ? 0 : (uint64_t)second;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    size_t digit_count = (size_t)(digits + sizeof(digits) - at);
    memcpy(text + 2 * KEY_ID_SIZE + 2, at, digit_count);
    resp_bulk(out, text, 2 * KEY_ID_SIZE + 2 + digit_count);
}

void value_put_member(struct buf *out, struct value_times *times, const char *seat, const char *hold,
                      const char *user, int64_t held_until_ms)
{
    struct value_time until = value_time(times, held_until_ms);
    resp_head(out, 3 * (KEY_ID_SIZE + 1) + until.size);
    buf_put(out, seat, KEY_ID_SIZE);
    buf_put_char(out, ':');
    buf_put(out, hold, KEY_ID_SIZE);
    buf_put_char(out, ':');
    buf_put(out, user, KEY_ID_SIZE);
    buf_put_char(out, ':');
    buf_put(out, until.text, until.size);
    resp_tail(out);
}

/* ---- Reading ---- */

static bool read_uuid(const json_t *object, const char *name, struct uuid *out)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) && uuid_parse(json_string_value(value), json_string_length(value), out);
}

void value_read_lock(const char *text, size_t size, struct warm_lock *lock)
{
    lock->readable = false;
    lock->found_held_at_ms = 0;
    if (size > VALUE_SIZE_MAX)
        return;
    json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    lock->readable = json_is_object(object) && read_uuid(object, "user_id", &lock->found_user_id) &&
                     read_uuid(object, "hold_id", &lock->found_hold_id);
    const json_t *since = json_object_get(object, "held_at");
    if (lock->readable && json_is_string(since) &&
        !time_parse(json_string_value(since), json_string_length(since), &lock->found_held_at_ms))
        lock->found_held_at_ms = 0;
    json_decref(object);
}

void value_read_member(const char *text, size_t size, struct warm_member *member)
{
    enum { IDS = 3 * (KEY_ID_SIZE + 1) };
    member->readable = size > IDS && text[KEY_ID_SIZE] == ':' && text[2 * KEY_ID_SIZE + 1] == ':' &&
                       text[3 * KEY_ID_SIZE + 2] == ':' && uuid_parse(text, KEY_ID_SIZE, &member->seat_id) &&
                       uuid_parse(text + KEY_ID_SIZE + 1, KEY_ID_SIZE, &member->hold_id) &&
                       uuid_parse(text + 2 * (KEY_ID_SIZE + 1), KEY_ID_SIZE, &member->user_id) &&
                       time_parse(text + IDS, size - IDS, &member->held_until_ms);
}
