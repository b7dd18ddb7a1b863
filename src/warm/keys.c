/* SPDX-License-Identifier: Apache-2.0
 * The names of keys and channels:
 *
 *   org:{org}:event:{event}:seat:{seat}                              the lock
 *   {prefix}:org:{org}:event:{event}:seat_holds                      members
 *   {prefix}:org:{org}:seat:{seat}:hold
 *   {prefix}:org:{org}:hold:{hold}:meta
 *   {prefix}:org:{org}:event:{event}:occupancy
 *   {prefix}:org:{org}:event:{event}:seats_bf:{section}-{subsection} bits
 *   {prefix}:org:{org}:event:{event}:seats_bf_version:{section}-…    guard: u32 a seat, the version its bit is of
 *   {prefix}:registry                                                the mark
 *   {prefix}:probe                                                   lives for no time at all
 *   channels: occupancy:{org}:{event}, org:{org}:event:{event}:seating:seat:held|released|sold
 *
 * Pure. */
#include "warm/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "warm/resp.h"

void keys_event_init(struct keys_event *keys, const char *prefix, const struct uuid *org_id,
                     const struct uuid *event_id)
{
    char org[UUID_TEXT_SIZE], event[UUID_TEXT_SIZE];
    CHECK(strlen(prefix) <= KEY_PREFIX_SIZE_MAX);
    uuid_format(org_id, org);
    uuid_format(event_id, event);
    keys->bare_size = (size_t)snprintf(keys->bare, sizeof(keys->bare), "org:%s:event:%s:", org, event);
    keys->tenant_size = (size_t)snprintf(keys->tenant, sizeof(keys->tenant), "%s:org:%s:", prefix, org);
    keys->event_size =
        (size_t)snprintf(keys->event, sizeof(keys->event), "%s:org:%s:event:%s:", prefix, org, event);
}

/* Head, name and an id, then what follows it. */
static void put_key(struct buf *out, const char *head, size_t head_size, const char *name, size_t name_size,
                    const char *id, size_t id_size, const char *end, size_t end_size)
{
    resp_head(out, head_size + name_size + id_size + end_size);
    buf_put(out, head, head_size);
    buf_put(out, name, name_size);
    buf_put(out, id, id_size);
    buf_put(out, end, end_size);
    resp_tail(out);
}

#define LITERAL(text) (text), sizeof(text) - 1

void keys_put_lock(struct buf *out, const struct keys_event *keys, const char *seat)
{
    put_key(out, keys->bare, keys->bare_size, LITERAL("seat:"), seat, KEY_ID_SIZE, LITERAL(""));
}

void keys_put_hold(struct buf *out, const struct keys_event *keys, const char *seat)
{
    put_key(out, keys->tenant, keys->tenant_size, LITERAL("seat:"), seat, KEY_ID_SIZE, LITERAL(":hold"));
}

void keys_put_meta(struct buf *out, const struct keys_event *keys, const char *hold)
{
    put_key(out, keys->tenant, keys->tenant_size, LITERAL("hold:"), hold, KEY_ID_SIZE, LITERAL(":meta"));
}

void keys_put_members(struct buf *out, const struct keys_event *keys)
{
    put_key(out, keys->event, keys->event_size, LITERAL("seat_holds"), "", 0, "", 0);
}

void keys_put_occupancy(struct buf *out, const struct keys_event *keys)
{
    put_key(out, keys->event, keys->event_size, LITERAL("occupancy"), "", 0, "", 0);
}

static void put_block(struct buf *out, const struct keys_event *keys, const char *name, const char *section,
                      int32_t subsection)
{
    char block[24];
    int size = snprintf(block, sizeof(block), ":%s-%d", section, (int)subsection);
    put_key(out, keys->event, keys->event_size, name, strlen(name), block, (size_t)size, "", 0);
}

void keys_put_bits(struct buf *out, const struct keys_event *keys, const char *section, int32_t subsection)
{
    put_block(out, keys, "seats_bf", section, subsection);
}

void keys_put_guard(struct buf *out, const struct keys_event *keys, const char *section, int32_t subsection)
{
    put_block(out, keys, "seats_bf_version", section, subsection);
}

void keys_put_mark(struct buf *out, const char *prefix)
{
    put_key(out, prefix, strlen(prefix), LITERAL(":registry"), "", 0, "", 0);
}

void keys_put_probe(struct buf *out, const char *prefix)
{
    put_key(out, prefix, strlen(prefix), LITERAL(":probe"), "", 0, "", 0);
}

void keys_put_occupancy_channel(struct buf *out, const struct uuid *org_id, const struct uuid *event_id)
{
    char org[UUID_TEXT_SIZE], channel[16 + 2 * UUID_TEXT_SIZE], event[UUID_TEXT_SIZE];
    uuid_format(org_id, org);
    uuid_format(event_id, event);
    int size = snprintf(channel, sizeof(channel), "occupancy:%s:%s", org, event);
    resp_bulk(out, channel, (size_t)size);
}

void keys_put_seat_channel(struct buf *out, const struct keys_event *keys, const char *change)
{
    put_key(out, keys->bare, keys->bare_size, LITERAL("seating:seat:"), change, strlen(change), "", 0);
}
