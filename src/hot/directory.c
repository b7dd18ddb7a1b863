/* SPDX-License-Identifier: Apache-2.0
 * Organizations, users, events and their maps, for threads that may not look
 * into the lane's own state: loops check tokens and show events with it.
 *
 *   directory ─▶ organization ─▶ users (id → standing)
 *       │             └────────▶ events, oldest first
 *       └──────▶ event ─▶ its row, its seat map (a reference)
 *
 * Invariants:
 *  1. Users are kept under their organization: the same user id in two
 *     organizations is two users.
 *  2. Readers get copies and references, never a pointer to what is kept here.
 *  3. Events and organizations stay until the directory ends; so does their order.
 *
 * The lane writes, rarely and briefly; the lock prefers it, so that a crowd of
 * readers cannot hold it up. It decides nothing: who may see what is the API's
 * affair. */
#include "hot/directory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/map.h"

struct event_entry {
    struct event_row row; /* row.name is owned */
    struct seatmap *map;  /* a reference, or NULL */
};

struct org_entry {
    bool exists;                 /* false: only users of it were heard of */
    struct map users;            /* to a standing, see standing_pack() */
    struct event_entry **events; /* by created_ms, then id; borrows from the directory's map */
    int32_t event_count;
    int32_t event_capacity;
};

struct directory {
    pthread_rwlock_t lock;
    struct map orgs;   /* to struct org_entry */
    struct map events; /* to struct event_entry */
};

/* ---- Life ---- */

static void lock_for_reading(struct directory *directory)
{
    int failure = pthread_rwlock_rdlock(&directory->lock);
    CHECK(failure == 0);
}

static void lock_for_writing(struct directory *directory)
{
    int failure = pthread_rwlock_wrlock(&directory->lock);
    CHECK(failure == 0);
}

static void unlock(struct directory *directory)
{
    int failure = pthread_rwlock_unlock(&directory->lock);
    CHECK(failure == 0);
}

enum err directory_create(struct directory **out)
{
    struct directory *directory = calloc(1, sizeof *directory);
    CHECK(directory != NULL);
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int failure = pthread_rwlock_init(&directory->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    if (failure != 0) {
        free(directory);
        return ERR_INTERNAL;
    }
    map_init(&directory->orgs);
    map_init(&directory->events);
    *out = directory;
    return ERR_OK;
}

void directory_destroy(struct directory *directory)
{
    if (directory == NULL)
        return;
    struct org_entry *org;
    for (size_t i = 0; (org = map_next(&directory->orgs, &i)) != NULL;) {
        map_deinit(&org->users);
        free(org->events);
        free(org);
    }
    struct event_entry *event;
    for (size_t i = 0; (event = map_next(&directory->events, &i)) != NULL;) {
        seatmap_release(event->map);
        free((char *)event->row.name);
        free(event);
    }
    map_deinit(&directory->orgs);
    map_deinit(&directory->events);
    pthread_rwlock_destroy(&directory->lock);
    free(directory);
}

/* ---- Organizations and users ---- */

/* A million users are a million slots and nothing else: the standing is the pointer. */
static void *standing_pack(enum user_standing standing)
{
    return (void *)(uintptr_t)standing;
}

static enum user_standing standing_unpack(const void *value)
{
    return (enum user_standing)(uintptr_t)value;
}

_Static_assert(USER_UNKNOWN == 0, "a user who is not in the map has no standing");

/* Made on first mention. Under the lock, for writing. */
static struct org_entry *org_obtain(struct directory *directory, const struct uuid *org_id)
{
    struct org_entry *org = map_get(&directory->orgs, org_id);
    if (org == NULL) {
        org = calloc(1, sizeof *org);
        CHECK(org != NULL);
        map_init(&org->users);
        map_put(&directory->orgs, org_id, org);
    }
    return org;
}

bool directory_has_org(struct directory *directory, const struct uuid *org_id)
{
    lock_for_reading(directory);
    const struct org_entry *org = map_get(&directory->orgs, org_id);
    bool exists = org != NULL && org->exists;
    unlock(directory);
    return exists;
}

enum user_standing directory_user(struct directory *directory, const struct uuid *org_id,
                                  const struct uuid *user_id)
{
    lock_for_reading(directory);
    const struct org_entry *org = map_get(&directory->orgs, org_id);
    enum user_standing standing = org != NULL ? standing_unpack(map_get(&org->users, user_id)) : USER_UNKNOWN;
    unlock(directory);
    return standing;
}

void directory_put_org(struct directory *directory, const struct uuid *org_id)
{
    lock_for_writing(directory);
    org_obtain(directory, org_id)->exists = true;
    unlock(directory);
}

void directory_put_user(struct directory *directory, const struct user_row *user)
{
    lock_for_writing(directory);
    struct org_entry *org = org_obtain(directory, &user->org_id);
    map_put(&org->users, &user->id, standing_pack(user->disabled ? USER_DISABLED : USER_KNOWN));
    unlock(directory);
}

/* ---- Events ---- */

static void event_view_fill(const struct event_entry *event, struct arena *arena, struct event_view *out)
{
    out->row = event->row;
    out->row.name = arena_text(arena, event->row.name);
    out->map = event->map != NULL ? seatmap_acquire(event->map) : NULL;
}

bool directory_event(struct directory *directory, const struct uuid *org_id, const struct uuid *event_id,
                     struct arena *arena, struct event_view *out)
{
    lock_for_reading(directory);
    const struct event_entry *event = map_get(&directory->events, event_id);
    bool found = event != NULL && (uuid_is_nil(org_id) || uuid_equal(&event->row.org_id, org_id));
    if (found)
        event_view_fill(event, arena, out);
    unlock(directory);
    return found;
}

static int32_t org_event_count(const struct org_entry *org, uint32_t states)
{
    int32_t count = 0;
    for (int32_t i = 0; i < org->event_count; i++)
        count += (states & BIT(org->events[i]->row.state)) != 0;
    return count;
}

static struct event_view *org_events_fill(const struct org_entry *org, uint32_t states, struct arena *arena,
                                          struct event_view *view)
{
    for (int32_t i = 0; i < org->event_count; i++) {
        if ((states & BIT(org->events[i]->row.state)) != 0)
            event_view_fill(org->events[i], arena, view++);
    }
    return view;
}

int32_t directory_events(struct directory *directory, const struct uuid *org_id, uint32_t states,
                         struct arena *arena, struct event_view **out)
{
    static const struct org_entry nobody;
    const struct org_entry *org;
    int32_t count = 0;
    lock_for_reading(directory);
    if (uuid_is_nil(org_id)) {
        for (size_t i = 0; (org = map_next(&directory->orgs, &i)) != NULL;)
            count += org_event_count(org, states);
        *out = ARENA_ARRAY(arena, struct event_view, count);
        struct event_view *view = *out;
        for (size_t i = 0; (org = map_next(&directory->orgs, &i)) != NULL;)
            view = org_events_fill(org, states, arena, view);
    } else {
        org = map_get(&directory->orgs, org_id);
        org = org != NULL ? org : &nobody;
        count = org_event_count(org, states);
        *out = ARENA_ARRAY(arena, struct event_view, count);
        org_events_fill(org, states, arena, *out);
    }
    unlock(directory);
    return count;
}

bool directory_event_org(struct directory *directory, const struct uuid *event_id, struct uuid *org_id)
{
    lock_for_reading(directory);
    const struct event_entry *event = map_get(&directory->events, event_id);
    if (event != NULL)
        *org_id = event->row.org_id;
    unlock(directory);
    return event != NULL;
}

static bool event_is_older(const struct event_row *a, const struct event_row *b)
{
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    return uuid_compare(&a->id, &b->id) < 0;
}

/* New events are nearly always the youngest: looked for from the end. */
static void org_insert_event(struct org_entry *org, struct event_entry *event)
{
    if (org->event_count == org->event_capacity) {
        org->event_capacity = org->event_capacity == 0 ? 4 : org->event_capacity * 2;
        org->events = realloc(org->events, sizeof org->events[0] * (size_t)org->event_capacity);
        CHECK(org->events != NULL);
    }
    int32_t at = org->event_count++;
    for (; at > 0 && event_is_older(&event->row, &org->events[at - 1]->row); at--)
        org->events[at] = org->events[at - 1];
    org->events[at] = event;
}

void directory_put_event(struct directory *directory, const struct event_row *event)
{
    char *name = strdup(event->name);
    CHECK(name != NULL);
    lock_for_writing(directory);
    struct event_entry *entry = map_get(&directory->events, &event->id);
    char *name_before = NULL;
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        CHECK(entry != NULL);
        entry->row = *event;
        map_put(&directory->events, &event->id, entry);
        org_insert_event(org_obtain(directory, &event->org_id), entry);
    } else {
        CHECK(uuid_equal(&entry->row.org_id, &event->org_id));
        CHECK(entry->row.created_ms == event->created_ms); /* or the order would be wrong */
        name_before = (char *)entry->row.name;
        entry->row = *event;
    }
    entry->row.name = name;
    unlock(directory);
    free(name_before);
}

void directory_put_map(struct directory *directory, const struct uuid *event_id, struct seatmap *map)
{
    struct seatmap *acquired = map != NULL ? seatmap_acquire(map) : NULL;
    lock_for_writing(directory);
    struct event_entry *event = map_get(&directory->events, event_id);
    CHECK(event != NULL);
    struct seatmap *before = event->map;
    event->map = acquired;
    unlock(directory);
    seatmap_release(before); /* outside the lock: it may be the last reference to a large map */
}
