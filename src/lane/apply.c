/* SPDX-License-Identifier: Apache-2.0
 * What was committed comes into memory here, and the news of it goes out: what
 * this node wrote, when the store says so, and what others wrote, when the
 * change feed brings it (follow.c).
 *
 * Invariants:
 *  1. Only what was committed is applied, and the hot tier is left as if it had
 *     been loaded from the store just now.
 *  2. Nothing older overwrites what is newer, in whatever order answers and feed
 *     come: a seat, checkout or event is applied if its version is higher than
 *     memory's, and a hold if the seat it is written with is. What has ended is
 *     in memory no more and cannot be compared; but what rests on a commit of
 *     ours is never applied before it (follow.c).
 *  3. A node counts in its metrics what it wrote itself, and tells its own
 *     streams about everything. */
#include "base/metrics.h"
#include "lane/lane_int.h"

/* ---- Holds and seats ---- */

static const struct step_seat *seat_of_write(const struct seat_write *write)
{
    return CONTAINER_OF(write, const struct step_seat, write);
}

static bool seat_is_news(const struct seat_write *write)
{
    return write->row.version > seat_of_write(write)->event->seats[write->row.index].version;
}

/* Every change of a hold is one of its seat too, in the same unit. */
static bool hold_is_news(const struct store_unit *unit, const struct hold_row *row)
{
    for (const struct seat_write *write = unit->seats; write != NULL; write = write->next) {
        if (uuid_equal(&write->row.id, &row->seat_id))
            return seat_is_news(write);
    }
    return false;
}

static void count_ended_hold(const struct hold_row *row)
{
    static const enum counter releases[END_REASON_COUNT] = {
        [END_TTL_EXPIRED] = COUNTER_RELEASES_A,
        [END_USER_CANCELLED] = COUNTER_RELEASES_B,
        [END_PAYMENT_FAILED] = COUNTER_RELEASES_C,
        [END_ADMIN_OVERRIDE] = COUNTER_RELEASES_D,
    };
    if (row->state == HOLD_CONVERTED) {
        counter_add(COUNTER_HOLD_CONVERTED, 1);
        return;
    }
    counter_add(releases[row->reason], 1);
    if (row->state == HOLD_EXPIRED)
        counter_add(COUNTER_HOLD_EXPIRED, 1);
    histogram_observe(HISTOGRAM_HOLD_TO_RELEASE_SECONDS, (double)(row->ended_ms - row->created_ms) / 1000.0);
}

static void count_hold(const struct lane *lane, const struct hold_write *write)
{
    if (write->row.state != HOLD_ACTIVE)
        count_ended_hold(&write->row);
    else if (write->insert)
        counter_add(COUNTER_HOLD_SUCCESSES_EMBEDDED + lane_method(lane), 1);
    else if (write->extended)
        counter_add(COUNTER_HOLD_EXTENDED, 1);
}

static void apply_hold(struct lane *lane, const struct hold_write *write, bool foreign)
{
    const struct hold_row *row = &write->row;
    if (row->state != HOLD_ACTIVE && row->state != HOLD_CONVERTED)
        news_hold_ended(lane, row);
    hot_put_hold(lane->hot, row, foreign, lane->now_ms);
}

static void apply_seat(struct lane *lane, const struct seat_write *write)
{
    const struct step_seat *seat = seat_of_write(write);
    bool moved = seatmap_state(seat->event->map, write->row.index) != write->row.state;
    hot_put_seat(lane->hot, seat->event, &write->row);
    if (moved)
        news_seat(lane, seat);
}

/* ---- Checkouts ---- */

static void count_checkout(const struct checkout_write *write)
{
    static const enum counter outcomes[CHECKOUT_STATE_COUNT] = {
        [CHECKOUT_COMPLETED] = COUNTER_CHECKOUTS_COMPLETED, [CHECKOUT_FAILED] = COUNTER_CHECKOUTS_FAILED,
        [CHECKOUT_CANCELLED] = COUNTER_CHECKOUTS_CANCELLED, [CHECKOUT_EXPIRED] = COUNTER_CHECKOUTS_EXPIRED,
        [CHECKOUT_REFUNDED] = COUNTER_CHECKOUTS_REFUNDED,
    };
    if (write->insert)
        counter_add(COUNTER_CHECKOUTS_STARTED, 1);
    else if (write->moved && write->row.ended_ms != 0)
        counter_add(outcomes[write->row.state], 1);
}

/* Is there something that its buyer would want to know? A lease that was renewed is not. */
static bool is_worth_telling(const struct hot_checkout *before, const struct checkout_row *row)
{
    return before == NULL || before->row.state != row->state || before->row.refund != row->refund ||
           before->row.total_cents != row->total_cents || before->row.expires_ms != row->expires_ms;
}

static void apply_checkout(struct lane *lane, const struct checkout_write *write, struct step *step)
{
    struct hot_checkout *checkout = map_get(&lane->hot->checkouts, &write->row.id);
    if (step != NULL)
        count_checkout(write);
    if (checkout != NULL && write->row.version <= checkout->row.version)
        return;
    bool tell = is_worth_telling(checkout, &write->row);
    struct list waiters;
    list_init(&waiters);
    if (checkout != NULL && write->row.state != CHECKOUT_PROCESSING)
        list_splice(&waiters, &checkout->waiters);
    struct checkout_row row = write->row;
    if (checkout != NULL && row.payment_token == NULL)
        row.payment_token = checkout->row.payment_token; /* the feed does not carry it */
    hot_put_checkout(lane->hot, &row);
    if (tell)
        news_checkout(lane, &write->row);
    if (step != NULL)
        payment_waiters_answer(lane, &waiters, step);
    else
        payment_waiters_decide_again(lane, &waiters, &write->row);
}

/* ---- The catalogue ---- */

void apply_tell_watchers(struct lane *lane, const struct uuid *event_id)
{
    if (lane->config.feed != NULL)
        feed_event_reset(lane->config.feed, event_id);
}

static void apply_layout(struct lane *lane, struct step *step, const struct layout_write *write)
{
    struct hot_event *event = map_get(&lane->hot->events, &write->event_id);
    CHECK(event != NULL);
    CHECK(step->new_map != NULL);
    enum err err = hot_put_layout(lane->hot, event, step->new_map);
    CHECK(err == ERR_OK); /* only memory can end here, and the layout is committed */
    step->new_map = NULL;
}

static void apply_block(struct lane *lane, const struct block_row *row)
{
    struct hot_event *event = map_get(&lane->hot->events, &row->event_id);
    CHECK(event != NULL);
    seatmap_set_block_info(event->map, seatmap_block_find(event->map, &row->id), row->name, row->capacity,
                           row->price_cents);
}

/* An event that is newer in memory already was read from the store, with all of this and more. */
static bool event_is_news(const struct lane *lane, const struct event_row *row)
{
    const struct hot_event *event = map_get(&lane->hot->events, &row->id);
    return event == NULL || row->version > event->row.version;
}

static void apply_catalogue(struct lane *lane, const struct store_unit *unit, struct step *step)
{
    for (const struct org_write *write = unit->orgs; write != NULL; write = write->next)
        directory_put_org(lane->hot->directory, &write->row.id);
    for (const struct event_write *write = unit->events; write != NULL; write = write->next) {
        if (!event_is_news(lane, &write->row))
            return;
        hot_put_event(lane->hot, &write->row);
        route_event_seen(lane, &write->row);
    }
    for (const struct layout_write *write = unit->layouts; write != NULL; write = write->next)
        apply_layout(lane, step, write);
    for (const struct block_write *write = unit->blocks; write != NULL; write = write->next)
        apply_block(lane, &write->row);
    for (const struct event_write *write = unit->events; write != NULL; write = write->next)
        apply_tell_watchers(lane, &write->row.id);
}

static void apply_user(struct lane *lane, const struct user_write *write)
{
    struct directory *directory = lane->hot->directory;
    if (write->seen && directory_user(directory, &write->row.org_id, &write->row.id) != USER_UNKNOWN)
        return;
    directory_put_user(directory, &write->row);
}

static void tell_seats_again(struct lane *lane, const struct command *command, const struct hold_view *views,
                             int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        struct hot_event *event = hot_event(lane->hot, &command->actor.org_id, &views[i].row.event_id);
        int32_t index = views[i].seat_index;
        if (event == NULL || event->map != views[i].map || event->seats[index].busy)
            continue; /* what is under way tells of itself */
        filter_again(lane, event, index, &views[i].row, command->arena);
        if (lane->config.feed != NULL)
            feed_seat(lane->config.feed, &event->row.id, index, seatmap_state(event->map, index), END_NONE);
    }
}

void apply_again(struct lane *lane, const struct command *command)
{
    const struct result *result = &command->result;
    tell_seats_again(lane, command, result->holds, result->hold_count);
    tell_seats_again(lane, command, result->checkout_holds, result->checkout_hold_count);
}

/* Things before what points to them: events, checkouts, holds, seats. */
void apply_unit(struct lane *lane, const struct store_unit *unit, struct step *step)
{
    for (const struct user_write *write = unit->users; write != NULL; write = write->next)
        apply_user(lane, write);
    apply_catalogue(lane, unit, step);
    for (const struct checkout_write *write = unit->checkouts; write != NULL; write = write->next)
        apply_checkout(lane, write, step);
    for (const struct hold_write *write = unit->holds; write != NULL; write = write->next) {
        if (step != NULL)
            count_hold(lane, write);
        if (hold_is_news(unit, &write->row))
            apply_hold(lane, write, step == NULL);
    }
    for (const struct seat_write *write = unit->seats; write != NULL; write = write->next) {
        if (seat_is_news(write))
            apply_seat(lane, write);
    }
}
