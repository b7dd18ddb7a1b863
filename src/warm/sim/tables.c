/* SPDX-License-Identifier: Apache-2.0
 * What happens inside the simulated Redis: the same comparisons as the scripts
 * make, on maps. Keys die by the simulator's clock. A hold's meta is left out:
 * nothing reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "warm/sim/sim_int.h"

static void *sim_new(size_t size)
{
    void *memory = calloc(1, size);
    CHECK(memory != NULL);
    return memory;
}

/* ---- Locks ---- */

static struct warm_sim_lock *lock_find(struct warm_sim *sim, const struct uuid *seat_id)
{
    struct warm_sim_lock *lock = map_get(&sim->tables.locks, seat_id);
    if (lock == NULL || lock->dies_ms > sim->now_ms)
        return lock;
    map_remove(&sim->tables.locks, seat_id);
    free(lock->text);
    free(lock);
    return NULL;
}

static void lock_delete(struct warm_sim *sim, const struct uuid *seat_id)
{
    struct warm_sim_lock *lock = map_remove(&sim->tables.locks, seat_id);
    if (lock == NULL)
        return;
    free(lock->text);
    free(lock);
}

static void lock_set_text(struct warm_sim *sim, const struct uuid *seat_id, const char *text, int64_t dies_ms)
{
    lock_delete(sim, seat_id);
    if (dies_ms <= sim->now_ms)
        return;
    struct warm_sim_lock *lock = sim_new(sizeof(*lock));
    lock->text = strdup(text);
    CHECK(lock->text != NULL);
    lock->dies_ms = dies_ms;
    map_put(&sim->tables.locks, seat_id, lock);
}

static void lock_set(struct warm_sim *sim, const struct warm_lock *as)
{
    char hold[UUID_TEXT_SIZE], user[UUID_TEXT_SIZE];
    uuid_format(&as->hold_id, hold);
    uuid_format(&as->user_id, user);
    buf_clear(&sim->text);
    value_put_lock(&sim->text, &sim->times,
                   &(struct value_lock){.hold = hold,
                                        .user = user,
                                        .cart_token = as->cart_token,
                                        .held_at_ms = as->held_at_ms,
                                        .held_until_ms = as->held_until_ms});
    /* It was put as an argument of a command: "$…\r\n" before, "\r\n" behind. */
    CHECK(sim->text.size > 2);
    sim->text.size -= 2;
    const char *text = strchr(buf_text(&sim->text), '\n') + 1;
    lock_set_text(sim, &as->seat_id, text, as->held_until_ms + WARM_LOCK_EXTRA_MS);
}

/* Whose it is; not readable: nobody's. */
static struct warm_lock lock_read(struct warm_sim *sim, const struct uuid *seat_id)
{
    struct warm_lock found = {0};
    const struct warm_sim_lock *lock = lock_find(sim, seat_id);
    if (lock != NULL)
        value_read_lock(lock->text, strlen(lock->text), &found);
    return found;
}

static void lock_answer(struct arena *arena, const struct warm_sim_lock *found, struct warm_lock *lock)
{
    lock->result = WARM_LOCK_FOUND;
    lock->found = arena_text(arena, found->text);
    value_read_lock(found->text, strlen(found->text), lock);
}

void sim_lock(struct warm_sim *sim, struct sim_node *node, struct warm_round *round)
{
    for (int32_t i = 0; i < round->count; i++) {
        struct warm_lock *lock = &round->locks[i];
        const struct warm_sim_lock *found = lock_find(sim, &lock->seat_id);
        if (sim_dice(&node->rng, sim->faults.error)) {
            lock->result = WARM_LOCK_ERROR;
            continue;
        }
        if (found != NULL) {
            lock_answer(round->arena, found, lock);
            continue;
        }
        lock->result = WARM_LOCK_TAKEN;
        lock_set(sim, lock);
        if (sim_dice(&node->rng, sim->faults.spoil))
            lock_set_text(sim, &lock->seat_id, "{\"user_id\":", lock->held_until_ms);
    }
}

/* ---- Members ---- */

/* A hold has one member for each end it was given. */
static struct uuid member_key(const struct warm_member *member)
{
    struct uuid key = member->hold_id;
    for (int i = 0; i < 8; i++)
        key.bytes[8 + i] ^= (uint8_t)((uint64_t)member->held_until_ms >> (8 * i));
    return key;
}

static struct warm_member member_of(const struct warm_write *write, int64_t held_until_ms)
{
    return (struct warm_member){.seat_id = write->seat_id,
                                .hold_id = write->hold_id,
                                .user_id = write->user_id,
                                .held_until_ms = held_until_ms,
                                .readable = true};
}

static void member_add(struct warm_sim *sim, const struct warm_write *write)
{
    struct warm_member member = member_of(write, write->held_until_ms);
    struct uuid key = member_key(&member);
    if (map_get(&sim->tables.members, &key) != NULL)
        return;
    struct warm_sim_member *entry = sim_new(sizeof(*entry));
    entry->org_id = write->org_id;
    entry->event_id = write->event_id;
    entry->member = member;
    map_put(&sim->tables.members, &key, entry);
}

void sim_remove_member(struct warm_sim *sim, const struct warm_member *member)
{
    struct uuid key = member_key(member);
    free(map_remove(&sim->tables.members, &key));
}

/* ---- Writes ---- */

static struct warm_sim_hold *hold_find(struct warm_sim *sim, const struct uuid *seat_id)
{
    struct warm_sim_hold *hold = map_get(&sim->tables.holds, seat_id);
    if (hold == NULL || hold->dies_ms > sim->now_ms)
        return hold;
    free(map_remove(&sim->tables.holds, seat_id));
    return NULL;
}

static void hold_set(struct warm_sim *sim, const struct warm_write *write)
{
    free(map_remove(&sim->tables.holds, &write->seat_id));
    if (write->held_until_ms <= sim->now_ms)
        return;
    struct warm_sim_hold *hold = sim_new(sizeof(*hold));
    hold->hold_id = write->hold_id;
    hold->dies_ms = write->held_until_ms;
    map_put(&sim->tables.holds, &write->seat_id, hold);
}

/* False: Redis has seen a newer version. */
static bool bit_set(struct warm_sim *sim, const struct warm_write *write)
{
    struct warm_sim_seat *seat = map_get(&sim->tables.seats, &write->seat_id);
    if (seat != NULL && seat->version > write->version)
        return false;
    if (seat == NULL) {
        seat = sim_new(sizeof(*seat));
        seat->event_id = write->event_id;
        memcpy(seat->section, write->section, sizeof(seat->section));
        seat->subsection = write->subsection;
        seat->bit = write->bit;
        map_put(&sim->tables.seats, &write->seat_id, seat);
    }
    seat->version = write->version;
    seat->taken = write->state != SEAT_AVAILABLE;
    return true;
}

static void write_end(struct warm_sim *sim, const struct warm_write *write)
{
    struct warm_lock lock = lock_read(sim, &write->seat_id);
    if (lock.readable && uuid_equal(&lock.found_hold_id, &write->hold_id))
        lock_delete(sim, &write->seat_id);
    const struct warm_sim_hold *hold = hold_find(sim, &write->seat_id);
    if (hold != NULL && uuid_equal(&hold->hold_id, &write->hold_id))
        free(map_remove(&sim->tables.holds, &write->seat_id));
    struct warm_member member = member_of(write, write->held_until_ms);
    sim_remove_member(sim, &member);
    if (write->kind != WARM_UNLOCKED)
        bit_set(sim, write);
}

/* As keep_holds.lua: what is another's is overwritten only if that is older, or the user's own; an extension touches
 * nothing of another. */
static bool may_set(bool extend, bool is_there, int order)
{
    return !is_there || (extend ? order == 0 : order <= 0);
}

static void write_keep(struct warm_sim *sim, const struct warm_write *write)
{
    if (!bit_set(sim, write))
        return;
    bool extend = write->kind == WARM_EXTENDED && !write->repair;
    struct warm_lock lock = lock_read(sim, &write->seat_id);
    bool own = write->kind == WARM_HELD && !write->repair && lock.readable &&
               uuid_equal(&lock.found_user_id, &write->user_id);
    if (own || may_set(extend, lock.readable, uuid_compare(&lock.found_hold_id, &write->hold_id)))
        lock_set(sim, &(struct warm_lock){.seat_id = write->seat_id,
                                          .hold_id = write->hold_id,
                                          .user_id = write->user_id,
                                          .cart_token = write->cart_token,
                                          .held_at_ms = write->created_ms,
                                          .held_until_ms = write->held_until_ms});
    const struct warm_sim_hold *hold = hold_find(sim, &write->seat_id);
    int order = hold != NULL ? uuid_compare(&hold->hold_id, &write->hold_id) : 0;
    if (may_set(extend, hold != NULL, order))
        hold_set(sim, write);
    if (write->kind == WARM_EXTENDED && write->previous_until_ms != write->held_until_ms) {
        struct warm_member before = member_of(write, write->previous_until_ms);
        sim_remove_member(sim, &before);
    }
    member_add(sim, write);
}

void sim_write(struct warm_sim *sim, const struct warm_write *write)
{
    sim->tables.write_count++;
    switch (write->kind) {
    case WARM_HELD:
        if (write->locked && !write->repair) {
            hold_set(sim, write);
            member_add(sim, write);
            bit_set(sim, write);
        } else {
            write_keep(sim, write);
        }
        break;
    case WARM_EXTENDED:
        write_keep(sim, write);
        break;
    case WARM_SEAT:
        bit_set(sim, write);
        break;
    default:
        write_end(sim, write);
        break;
    }
}

/* ---- Readings ---- */

/* In the order of the map, which a seed repeats; the cursor counts. */
static void read_members(struct warm_sim *sim, struct warm_read *read)
{
    uint64_t place = 0, from = read->cursor;
    struct warm_sim_member *entry;
    read->cursor = 0;
    read->members = ARENA_ARRAY(read->arena, struct warm_member, WARM_READ_COUNT_MAX);
    for (size_t i = 0; (entry = map_next(&sim->tables.members, &i)) != NULL;) {
        if (!uuid_equal(&entry->event_id, &read->event_id) || !uuid_equal(&entry->org_id, &read->org_id))
            continue;
        if (place++ < from)
            continue;
        if (read->member_count == WARM_READ_COUNT_MAX) {
            read->cursor = place - 1;
            return;
        }
        struct warm_member *member = &read->members[read->member_count++];
        char text[3 * UUID_TEXT_SIZE + TIME_TEXT_SIZE], ids[3][UUID_TEXT_SIZE], until[TIME_TEXT_SIZE];
        *member = entry->member;
        uuid_format(&member->seat_id, ids[0]);
        uuid_format(&member->hold_id, ids[1]);
        uuid_format(&member->user_id, ids[2]);
        time_format(member->held_until_ms, until);
        snprintf(text, sizeof(text), "%s:%s:%s:%s", ids[0], ids[1], ids[2], until);
        member->text = arena_text(read->arena, text);
        member->text_size = strlen(text);
    }
}

static void read_locks(struct warm_sim *sim, struct warm_read *read)
{
    read->locks = ARENA_ARRAY(read->arena, struct warm_lock, read->seat_count);
    for (int32_t i = 0; i < read->seat_count; i++) {
        struct warm_lock *lock = &read->locks[i];
        const struct warm_sim_lock *found = lock_find(sim, &read->seat_ids[i]);
        lock->org_id = read->org_id;
        lock->event_id = read->event_id;
        lock->seat_id = read->seat_ids[i];
        lock->result = WARM_LOCK_TAKEN;
        if (found != NULL)
            lock_answer(read->arena, found, lock);
    }
}

static void read_holds(struct warm_sim *sim, struct warm_read *read)
{
    read->whole = ARENA_ARRAY(read->arena, bool, read->seat_count);
    for (int32_t i = 0; i < read->seat_count; i++) {
        const struct warm_sim_hold *hold = hold_find(sim, &read->seat_ids[i]);
        read->whole[i] = hold != NULL && uuid_equal(&hold->hold_id, &read->hold_ids[i]);
    }
}

static void read_count(struct warm_sim *sim, struct warm_read *read)
{
    struct warm_sim_member *entry;
    for (size_t i = 0; (entry = map_next(&sim->tables.members, &i)) != NULL;)
        read->count +=
            uuid_equal(&entry->event_id, &read->event_id) && uuid_equal(&entry->org_id, &read->org_id);
}

static bool seat_is_of(const struct warm_sim_seat *seat, const struct warm_read *read)
{
    return uuid_equal(&seat->event_id, &read->event_id) && strcmp(seat->section, read->section) == 0 &&
           seat->subsection == read->subsection;
}

static void read_bits(struct warm_sim *sim, struct warm_read *read)
{
    const struct warm_sim_seat *seat;
    for (size_t i = 0; (seat = map_next(&sim->tables.seats, &i)) != NULL;) {
        size_t size = (size_t)seat->bit / 8 + 1;
        if (seat_is_of(seat, read) && size > read->bits_size)
            read->bits_size = size;
    }
    uint8_t *bits = ARENA_ARRAY(read->arena, uint8_t, read->bits_size + 1);
    for (size_t i = 0; (seat = map_next(&sim->tables.seats, &i)) != NULL;) {
        if (seat_is_of(seat, read) && seat->taken)
            bits[seat->bit / 8] |= (uint8_t)(0x80 >> seat->bit % 8);
    }
    read->bits = bits;
}

void sim_read(struct warm_sim *sim, struct warm_read *read)
{
    read->members = NULL;
    read->member_count = 0;
    read->whole = NULL;
    read->locks = NULL;
    read->count = 0;
    read->bits = NULL;
    read->bits_size = 0;
    switch (read->kind) {
    case WARM_MEMBERS:
        read_members(sim, read);
        break;
    case WARM_HOLDS:
        read_holds(sim, read);
        break;
    case WARM_LOCKS:
        read_locks(sim, read);
        break;
    case WARM_COUNT:
        read_count(sim, read);
        break;
    case WARM_BITS:
        read_bits(sim, read);
        break;
    }
}

static void map_free_all(struct map *map)
{
    void *value;
    for (size_t i = 0; (value = map_next(map, &i)) != NULL;)
        free(value);
    map_deinit(map);
    map_init(map);
}

void sim_clear(struct warm_sim *sim)
{
    struct warm_sim_lock *lock;
    for (size_t i = 0; (lock = map_next(&sim->tables.locks, &i)) != NULL;)
        free(lock->text);
    map_free_all(&sim->tables.locks);
    map_free_all(&sim->tables.holds);
    map_free_all(&sim->tables.members);
    map_free_all(&sim->tables.seats);
}
