/* SPDX-License-Identifier: Apache-2.0
 * The gateway: answers after a while, sometimes "unknown" first, sometimes very
 * late, sometimes twice at once. It keeps accounts: at rest every cent that it
 * was heard to have taken is paid for with tickets or was given back.
 *
 * What it is asked must be durable before: a charge its pin, a refund its debt. */
#include <stdlib.h>

#include "base/limits.h"
#include "hold/rules.h"
#include "world.h"

enum {
    /* Who has a payment's lease asks within it, even if they hear late that they have it. */
    OVER_MS_MAX = PAYER_LEASE_MS + 2 * WORLD_SKEW_MS_MAX,
    SETTLE_MS = 4000,         /* after bad weather every payment has somebody who asks for it, soon */
    PAYER_LATE_MS_MAX = 3500, /* a sweep, a commit, and clocks that differ */
    PAYMENT_OVER_MS_MAX = PAYER_LEASE_MS + PAYER_LATE_MS_MAX,
};

struct payment {
    struct list node;
    struct node *asker; /* who is told */
    struct uuid checkout_id;
    int64_t at_ms;
    int32_t attempt;
    bool refund;
};

static struct account *account_of(struct world *world, const struct uuid *checkout_id)
{
    struct account *account = map_get(&world->accounts, checkout_id);
    if (account == NULL) {
        account = calloc(1, sizeof(*account));
        CHECK(account != NULL);
        account->checkout_id = *checkout_id;
        map_put(&world->accounts, checkout_id, account);
    }
    return account;
}

static void gateway_ask(struct node *node, const struct lane_charge *charge, bool refund)
{
    struct world *world = node->world;
    account_of(world, &charge->checkout_id)->asked_start = world->restarts;
    if (!refund && rng_below(&world->rng, 12) == 0)
        return; /* and is never heard of again */
    struct payment *payment = calloc(1, sizeof(*payment));
    CHECK(payment != NULL);
    payment->asker = node;
    payment->checkout_id = charge->checkout_id;
    payment->attempt = charge->attempt;
    payment->refund = refund;
    int64_t longest = rng_below(&world->rng, 4) == 0 ? 60000 : 2000;
    payment->at_ms = world->now_ms + 1 + (int64_t)rng_below(&world->rng, (uint64_t)longest);
    list_append(&world->payments, &payment->node);
}

/* A hold that has run out is not paid for. */
static void check_holds(struct world *world, const struct checkout_row *checkout)
{
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        if (uuid_equal(&hold->row.checkout_id, &checkout->id) &&
            hold->row.held_until_ms <= checkout->paying_since_ms)
            world_fail(world, "money was asked for a hold that had run out");
    }
}

void gateway_charge(void *context, const struct lane_charge *charge)
{
    struct node *node = context;
    struct world *world = node->world;
    const struct sim_checkout *stored = world_checkout(world, &charge->checkout_id);
    if (stored == NULL || stored->row.state == CHECKOUT_PENDING_PAYMENT)
        world_fail(world, "money was asked for before its checkout was pinned");
    /* Another node may have settled it meanwhile; the gateway knows a checkout by its id. */
    bool is_over = stored->row.state != CHECKOUT_PROCESSING;
    if (is_over && (!world->shared || world->now_ms - stored->row.ended_ms > OVER_MS_MAX))
        world_fail(world, "money was asked for a checkout that is over");
    if (charge->amount_cents != stored->row.total_cents)
        world_fail(world, "another sum was asked for than the checkout's");
    if (charge->attempt == 1 && !world->shared &&
        !event_is_open(world_event(world, &stored->row.event_id)->row.state))
        world_fail(world, "money was asked for a closed event");
    if (!is_over)
        check_holds(world, &stored->row);
    if (world->shared && charge->attempt > 1 && world->fine &&
        stored->row.paying_since_ms > world->fine_ms + SETTLE_MS)
        world_fail(world, "a payment was taken over from a node that is well");
    struct account *account = account_of(world, &charge->checkout_id);
    if (account->amount_cents != 0 && account->amount_cents != charge->amount_cents)
        world_fail(world, "one checkout was charged with two sums");
    account->amount_cents = charge->amount_cents;
    gateway_ask(node, charge, false);
}

void gateway_refund(void *context, const struct lane_charge *charge)
{
    struct node *node = context;
    struct world *world = node->world;
    const struct sim_checkout *stored = world_checkout(world, &charge->checkout_id);
    if (stored == NULL || stored->row.refund == REFUND_NONE ||
        (stored->row.refund == REFUND_DONE && !world->shared))
        world_fail(world, "money was given back that was not owed");
    gateway_ask(node, charge, true);
}

/* The same checkout is always answered the same: it is the idempotency key. */
static bool gateway_pays(const struct uuid *checkout_id)
{
    return checkout_id->bytes[15] % 4 != 0;
}

static enum payment_outcome gateway_outcome(struct world *world, const struct payment *payment)
{
    if (!world->quiet && rng_below(&world->rng, 6) == 0)
        return PAYMENT_UNKNOWN;
    return payment->refund || gateway_pays(&payment->checkout_id) ? PAYMENT_PAID : PAYMENT_DECLINED;
}

static void gateway_tell(struct world *world, const struct payment *payment, enum payment_outcome outcome)
{
    if (payment->refund && outcome == PAYMENT_PAID)
        account_of(world, &payment->checkout_id)->given_back = true;
    struct command *command = world_command(
        world, payment->refund ? COMMAND_REFUND_SETTLED : COMMAND_PAYMENT_SETTLED, &world->admin_id);
    command->actor.role = ROLE_SYSTEM;
    command->id = payment->checkout_id;
    command->payment.outcome = outcome;
    command->payment.attempt = payment->attempt;
    node_post(payment->asker, command);
}

void gateway_turn(struct world *world)
{
    LIST_FOR_EACH_SAFE(node, &world->payments) {
        struct payment *payment = CONTAINER_OF(node, struct payment, node);
        if (payment->at_ms > world->now_ms)
            continue;
        enum payment_outcome outcome = gateway_outcome(world, payment);
        gateway_tell(world, payment, outcome);
        /* It may well tell the same twice: at once, or later. */
        uint64_t twice = rng_below(&world->rng, 8);
        if (twice == 0)
            gateway_tell(world, payment, outcome);
        bool again = outcome == PAYMENT_UNKNOWN || (!world->quiet && twice == 1);
        payment->at_ms = world->now_ms + 1000;
        payment->attempt++;
        if (again)
            continue;
        list_remove(node);
        free(payment);
    }
}

void gateway_heard(struct world *world, const struct command *command)
{
    if (command->result.err != ERR_OK)
        world_fail(world, "a settlement was not taken");
    bool paid = command->kind == COMMAND_PAYMENT_SETTLED && command->payment.outcome == PAYMENT_PAID;
    if (paid)
        account_of(world, &command->id)->paid = true;
}

/* What the dead node asked for is not told to anybody, or to whoever has its address now. */
void gateway_forget_some(struct node *dead)
{
    struct world *world = dead->world;
    LIST_FOR_EACH_SAFE(node, &world->payments) {
        struct payment *payment = CONTAINER_OF(node, struct payment, node);
        if (payment->asker != dead)
            continue;
        payment->asker = node_any(world);
        if (rng_below(&world->rng, 2) == 0)
            continue;
        list_remove(node);
        free(payment);
    }
}

void gateway_check_start(struct world *world)
{
    size_t position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&world->tables->checkouts, &position)) != NULL) {
        bool open = checkout->row.state == CHECKOUT_PROCESSING || checkout->row.refund == REFUND_OWED;
        if (open && account_of(world, &checkout->row.id)->asked_start != world->restarts)
            world_fail(world, "a start forgot to ask the gateway again");
    }
}

/* Who asks for a payment says so in time, or another asks. */
static void check_payers(struct world *world)
{
    size_t position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&world->tables->checkouts, &position)) != NULL) {
        const struct checkout_row *row = &checkout->row;
        bool wants_payer = (row->state == CHECKOUT_PROCESSING && row->payment_deadline_ms > world->now_ms) ||
                           row->refund == REFUND_OWED;
        if (wants_payer && world->now_ms - row->payer_until_ms > PAYER_LATE_MS_MAX)
            world_fail(world, "nobody sees to a payment");
        if (row->state == CHECKOUT_PROCESSING &&
            world->now_ms - row->payment_deadline_ms > PAYMENT_OVER_MS_MAX)
            world_fail(world, "a payment took longer than it may");
    }
}

/* A cancelled event sells nothing. */
static void check_cancelled(struct world *world)
{
    for (int which = 0; which < WORLD_EVENT_COUNT; which++) {
        const struct seen *seen = &world->seen[which];
        if (seen->closed && seen_completed(world, &world->events[which]) > seen->completed)
            world_fail(world, "seats of a cancelled event were sold");
    }
}

void gateway_check(struct world *world, bool at_rest)
{
    check_cancelled(world);
    if (world->shared && world->fine && world->now_ms - world->fine_ms > SETTLE_MS)
        check_payers(world);
    size_t position = 0;
    const struct account *account;
    while ((account = map_next(&world->accounts, &position)) != NULL) {
        const struct sim_checkout *checkout = world_checkout(world, &account->checkout_id);
        bool completed = checkout->row.state == CHECKOUT_COMPLETED;
        if (completed && !gateway_pays(&account->checkout_id))
            world_fail(world, "seats were sold for money that was declined");
        if (completed && checkout->row.refund != REFUND_NONE)
            world_fail(world, "seats were sold and the money is given back");
        if (completed && checkout->row.total_cents != account->amount_cents)
            world_fail(world, "seats were sold for another sum than was asked");
        bool returned = checkout->row.refund == REFUND_DONE;
        if (returned && !account->given_back)
            world_fail(world, "a refund is called done that was not");
        if (at_rest && account->paid && !completed && !returned)
            world_fail(world, "money was taken, and there is nothing for it");
    }
}

void gateway_deinit(struct world *world)
{
    struct list *node;
    while ((node = list_pop(&world->payments)) != NULL)
        free(CONTAINER_OF(node, struct payment, node));
    size_t position = 0;
    struct account *account;
    while ((account = map_next(&world->accounts, &position)) != NULL)
        free(account);
    map_deinit(&world->accounts);
}
