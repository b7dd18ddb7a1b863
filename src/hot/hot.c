/* SPDX-License-Identifier: Apache-2.0
 * Finding and changing what is in memory. See hot.h for what must hold; every
 * change here was committed by the store first. The lane's thread alone. */
#include "hot/hot.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "hold/rules.h"

enum err hot_create(struct directory *directory, int64_t now_ms, struct hot **out)
{
    struct hot *hot = calloc(1, sizeof(*hot));
    if (hot == NULL)
        return ERR_INTERNAL;
    hot->directory = directory;
    map_init(&hot->events);
    map_init(&hot->holds);
    map_init(&hot->checkouts);
    pool_init(&hot->hold_pool, sizeof(struct hot_hold));
    pool_init(&hot->user_pool, sizeof(struct hot_user));
    wheel_init(&hot->wheel, now_ms);
    wheel_init(&hot->checkout_wheel, now_ms);
    hot->notice_ms = HOLD_EXPIRING_NOTICE_MS;
    *out = hot;
    return ERR_OK;
}

static char *text_copy(const char *text)
{
    if (text == NULL)
        return NULL;
    char *copy = strdup(text);
    CHECK(copy != NULL);
    return copy;
}

static void event_drop_layout(struct hot_event *event)
{
    seatmap_release(event->map);
    event->map = NULL;
    free(event->seats);
    free(event->vacant);
    free(event->free);
    free(event->rows);
    free(event->pending_by_block);
}

static void hot_user_free(struct hot *hot, struct hot_user *user)
{
    rate_deinit(&user->rate);
    pool_release(&hot->user_pool, user);
}

static void checkout_free(struct hot_checkout *checkout)
{
    free((char *)checkout->row.payment_token);
    free((char *)checkout->row.notes);
    free(checkout);
}

void hot_destroy(struct hot *hot)
{
    if (hot == NULL)
        return;
    size_t position = 0;
    struct hot_hold *hold;
    while ((hold = map_next(&hot->holds, &position)) != NULL)
        free(hold->cart_token);
    position = 0;
    struct hot_checkout *checkout;
    while ((checkout = map_next(&hot->checkouts, &position)) != NULL)
        checkout_free(checkout);
    position = 0;
    struct hot_event *event;
    while ((event = map_next(&hot->events, &position)) != NULL) {
        size_t user_position = 0;
        struct hot_user *user;
        while ((user = map_next(&event->users, &user_position)) != NULL)
            hot_user_free(hot, user);
        map_deinit(&event->users);
        event_drop_layout(event);
        free((char *)event->row.name);
        free(event);
    }
    map_deinit(&hot->events);
    map_deinit(&hot->holds);
    map_deinit(&hot->checkouts);
    pool_deinit(&hot->hold_pool);
    pool_deinit(&hot->user_pool);
    free(hot);
}

/* ---- Finding ---- */

struct hot_event *hot_event(const struct hot *hot, const struct uuid *org_id, const struct uuid *event_id)
{
    struct hot_event *event = map_get(&hot->events, event_id);
    return event != NULL && uuid_equal(&event->row.org_id, org_id) ? event : NULL;
}

struct hot_hold *hot_hold(const struct hot *hot, const struct uuid *org_id, const struct uuid *hold_id)
{
    struct hot_hold *hold = map_get(&hot->holds, hold_id);
    return hold != NULL && uuid_equal(&hold->event->row.org_id, org_id) ? hold : NULL;
}

struct hot_checkout *hot_checkout(const struct hot *hot, const struct uuid *org_id,
                                  const struct uuid *checkout_id)
{
    struct hot_checkout *checkout = map_get(&hot->checkouts, checkout_id);
    return checkout != NULL && uuid_equal(&checkout->row.org_id, org_id) ? checkout : NULL;
}

struct hot_user *hot_user(struct hot *hot, struct hot_event *event, const struct uuid *user_id)
{
    (void)hot;
    return map_get(&event->users, user_id);
}

struct hot_user *hot_user_make(struct hot *hot, struct hot_event *event, const struct uuid *user_id)
{
    struct hot_user *user = map_get(&event->users, user_id);
    if (user != NULL)
        return user;
    user = pool_acquire(&hot->user_pool);
    user->user_id = *user_id;
    user->event = event;
    list_init(&user->holds);
    map_put(&event->users, user_id, user);
    return user;
}

void hot_users_sweep(struct hot *hot, int64_t now_ms)
{
    size_t event_position = 0;
    struct hot_event *event;
    while ((event = map_next(&hot->events, &event_position)) != NULL) {
        struct hot_user **idle = malloc(sizeof(*idle) * (event->users.count + 1));
        CHECK(idle != NULL);
        size_t idle_count = 0, position = 0;
        struct hot_user *user;
        while ((user = map_next(&event->users, &position)) != NULL) {
            if (user->hold_count == 0 && user->pending_count == 0 &&
                rate_count(&user->rate, &event->row.policy, now_ms) == 0)
                idle[idle_count++] = user;
        }
        for (size_t i = 0; i < idle_count; i++) {
            map_remove(&event->users, &idle[i]->user_id);
            hot_user_free(hot, idle[i]);
        }
        free(idle);
    }
}

void hot_seat_row(const struct hot_event *event, int32_t index, struct seat_row *out)
{
    const struct hot_seat *seat = &event->seats[index];
    *out = (struct seat_row){
        .org_id = event->row.org_id,
        .event_id = event->row.id,
        .id = event->map->seat_ids[index],
        .index = index,
        .version = seat->version,
        .state = seatmap_state(event->map, index),
    };
    if (seat->hold != NULL) {
        out->hold_id = seat->hold->id;
        out->held_until_ms = seat->hold->held_until_ms;
        out->locked_ms = seat->hold->created_ms;
    }
}

void hot_hold_row(const struct hot_hold *hold, struct hold_row *out)
{
    *out = (struct hold_row){
        .org_id = hold->event->row.org_id,
        .event_id = hold->event->row.id,
        .id = hold->id,
        .seat_id = hold->event->map->seat_ids[hold->seat_index],
        .user_id = hold->user->user_id,
        .cart_token = hold->cart_token,
        .state = HOLD_ACTIVE,
        .reason = END_NONE,
        .source = hold->source,
        .price_cents = hold->price_cents,
        .created_ms = hold->created_ms,
        .held_until_ms = hold->held_until_ms,
    };
    if (hold->checkout != NULL)
        out->checkout_id = hold->checkout->row.id;
}

void hot_seat_set_busy(struct hot_event *event, int32_t index, bool busy)
{
    CHECK(event->seats[index].busy != busy);
    event->seats[index].busy = busy;
    bit_set(event->free, index, !busy && bit_get(event->vacant, index));
}

/* ---- Changing ---- */

void hot_put_event(struct hot *hot, const struct event_row *row)
{
    struct hot_event *event = map_get(&hot->events, &row->id);
    if (event == NULL) {
        event = calloc(1, sizeof(*event));
        CHECK(event != NULL);
        map_init(&event->users);
        map_put(&hot->events, &row->id, event);
    }
    char *name = text_copy(row->name);
    free((char *)event->row.name);
    event->row = *row;
    event->row.name = name;
    event->snapshot_due = true;
    directory_put_event(hot->directory, &event->row);
}

enum err hot_put_layout(struct hot *hot, struct hot_event *event, struct seatmap *map)
{
    const struct layout *layout = map->layout;
    size_t words = (size_t)layout->seat_count / 64 + 1;
    struct hot_seat *seats = calloc((size_t)layout->seat_count + 1, sizeof(*seats));
    uint64_t *vacant = calloc(words, sizeof(*vacant));
    uint64_t *free_bits = calloc(words, sizeof(*free_bits));
    struct bit_row *rows = calloc((size_t)layout->row_count + 1, sizeof(*rows));
    int32_t *pending = calloc((size_t)layout->block_count + 1, sizeof(*pending));
    if (seats == NULL || vacant == NULL || free_bits == NULL || rows == NULL || pending == NULL)
        goto memory_failed;
    for (int32_t i = 0; i < layout->seat_count; i++) {
        bool available = seatmap_state(map, i) == SEAT_AVAILABLE;
        seats[i].version = 1;
        bit_set(vacant, i, available);
        bit_set(free_bits, i, available);
    }
    for (int32_t i = 0; i < layout->row_count; i++)
        rows[i] = (struct bit_row){.first = layout->rows[i].seat_first, .count = layout->rows[i].seat_count};
    if (event->map != NULL)
        gauge_add(GAUGE_SEATS_LOADED, -event->map->layout->seat_count);
    event_drop_layout(event);
    event->map = map;
    event->seats = seats;
    event->vacant = vacant;
    event->free = free_bits;
    event->rows = rows;
    event->pending_by_block = pending;
    event->snapshot_due = true;
    gauge_add(GAUGE_SEATS_LOADED, layout->seat_count);
    directory_put_map(hot->directory, &event->row.id, map);
    return ERR_OK;

memory_failed:
    free(seats);
    free(vacant);
    free(free_bits);
    free(rows);
    free(pending);
    return ERR_INTERNAL;
}

void hot_put_seat(struct hot *hot, struct hot_event *event, const struct seat_row *row)
{
    (void)hot;
    CHECK(row->index >= 0);
    CHECK(row->index < event->map->layout->seat_count);
    struct hot_seat *seat = &event->seats[row->index];
    if (row->version < seat->version)
        return; /* news that was overtaken */
    seat->version = row->version;
    seatmap_move(event->map, row->index, row->state);
    bit_set(event->vacant, row->index, row->state == SEAT_AVAILABLE);
    bit_set(event->free, row->index, row->state == SEAT_AVAILABLE && !seat->busy);
    event->snapshot_due = true;
}

/* All nodes have a timer for every hold; most of the time the one that wrote it last is the only one that needs it. */
int64_t hot_hold_release_ms(const struct hot_hold *hold)
{
    int64_t release_ms = hold_release_ms(hold->held_until_ms, &hold->event->row.policy);
    return hold->foreign ? release_ms + FOREIGN_RELEASE_DELAY_MS : release_ms;
}

/* A pinned hold is on no wheel: its payment's deadline is. */
static void hold_set_timer(struct hot *hot, struct hot_hold *hold, int64_t now_ms)
{
    if (hot_hold_paying(hold)) {
        wheel_cancel(&hold->timer);
        return;
    }
    int64_t notice_ms = hold->held_until_ms - hot->notice_ms;
    hold->noticed = notice_ms <= now_ms;
    wheel_set(&hot->wheel, &hold->timer, hold->noticed ? hot_hold_release_ms(hold) : notice_ms);
}

static void hold_remove(struct hot *hot, struct hot_hold *hold)
{
    struct hot_seat *seat = hot_seat_of(hold);
    if (seat->hold == hold)
        seat->hold = NULL;
    list_remove(&hold->user_node);
    hold->user->hold_count--;
    list_remove(&hold->checkout_node);
    wheel_cancel(&hold->timer);
    map_remove(&hot->holds, &hold->id);
    free(hold->cart_token);
    pool_release(&hot->hold_pool, hold);
    gauge_add(GAUGE_HOLDS_ACTIVE, -1);
}

static struct hot_hold *hold_add(struct hot *hot, struct hot_event *event, int32_t index,
                                 const struct hold_row *row)
{
    struct hot_hold *hold = pool_acquire(&hot->hold_pool);
    hold->id = row->id;
    hold->event = event;
    hold->user = hot_user_make(hot, event, &row->user_id);
    hold->cart_token = text_copy(row->cart_token);
    hold->price_cents = row->price_cents;
    hold->created_ms = row->created_ms;
    hold->seat_index = index;
    hold->source = (uint8_t)row->source;
    list_init(&hold->checkout_node);
    list_init(&hold->user_node);
    wheel_timer_init(&hold->timer);
    list_append(&hold->user->holds, &hold->user_node);
    hold->user->hold_count++;
    if (event->row.policy.rate_limit_holds > 0)
        rate_add(&hold->user->rate, row->created_ms);
    map_put(&hot->holds, &hold->id, hold);
    gauge_add(GAUGE_HOLDS_ACTIVE, 1);
    event->holds_ever++;
    return hold;
}

void hot_put_hold(struct hot *hot, const struct hold_row *row, bool foreign, int64_t now_ms)
{
    struct hot_hold *hold = map_get(&hot->holds, &row->id);
    if (row->state != HOLD_ACTIVE) {
        if (hold != NULL)
            hold_remove(hot, hold);
        return;
    }
    if (hold == NULL) {
        struct hot_event *event = hot_event(hot, &row->org_id, &row->event_id);
        int32_t index = event != NULL && event->map != NULL ? seatmap_find(event->map, &row->seat_id) : -1;
        if (index < 0)
            return; /* of no seat we know: verify says so */
        hold = hold_add(hot, event, index, row);
        event->seats[index].hold = hold;
    }
    hold->held_until_ms = row->held_until_ms;
    hold->try_count = 0;
    hold->foreign = foreign;
    if (hold->checkout == NULL || !uuid_equal(&hold->checkout->row.id, &row->checkout_id)) {
        list_remove(&hold->checkout_node);
        hold->checkout = hot_checkout(hot, &row->org_id, &row->checkout_id);
        if (hold->checkout != NULL)
            list_append(&hold->checkout->holds, &hold->checkout_node);
    }
    hold_set_timer(hot, hold, now_ms);
}

static bool checkout_is_kept(const struct checkout_row *row)
{
    return row->state == CHECKOUT_PENDING_PAYMENT || row->state == CHECKOUT_PROCESSING ||
           row->refund == REFUND_OWED;
}

/* Frees the checkout's texts, unless the new row has the very same. */
static void checkout_set_row(struct hot_checkout *checkout, const struct checkout_row *row)
{
    char *token = text_copy(row->payment_token);
    char *notes = text_copy(row->notes);
    free((char *)checkout->row.payment_token);
    free((char *)checkout->row.notes);
    checkout->row = *row;
    checkout->row.payment_token = token;
    checkout->row.notes = notes;
}

void hot_put_checkout(struct hot *hot, const struct checkout_row *row)
{
    struct hot_checkout *checkout = map_get(&hot->checkouts, &row->id);
    if (!checkout_is_kept(row)) {
        if (checkout == NULL)
            return;
        /* Whoever still waits is answered by the command that ended it, before this. */
        CHECK(list_empty(&checkout->waiters));
        LIST_FOR_EACH_SAFE(node, &checkout->holds) {
            CONTAINER_OF(node, struct hot_hold, checkout_node)->checkout = NULL;
            list_remove(node);
        }
        wheel_cancel(&checkout->timer);
        map_remove(&hot->checkouts, &row->id);
        checkout_free(checkout);
        gauge_set(GAUGE_CHECKOUTS_OPEN, (int64_t)hot->checkouts.count);
        return;
    }
    if (checkout == NULL) {
        checkout = calloc(1, sizeof(*checkout));
        CHECK(checkout != NULL);
        checkout->event = hot_event(hot, &row->org_id, &row->event_id);
        CHECK(checkout->event != NULL);
        list_init(&checkout->holds);
        list_init(&checkout->waiters);
        wheel_timer_init(&checkout->timer);
        map_put(&hot->checkouts, &row->id, checkout);
        gauge_set(GAUGE_CHECKOUTS_OPEN, (int64_t)hot->checkouts.count);
    }
    checkout_set_row(checkout, row);
    if (row->state != CHECKOUT_PROCESSING) {
        wheel_cancel(&checkout->timer);
        return;
    }
    wheel_set(&hot->checkout_wheel, &checkout->timer, row->payment_deadline_ms);
    LIST_FOR_EACH(node, &checkout->holds)
        wheel_cancel(&CONTAINER_OF(node, struct hot_hold, checkout_node)->timer);
}
