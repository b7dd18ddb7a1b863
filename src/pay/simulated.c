/* SPDX-License-Identifier: Apache-2.0
 * A gateway that takes no money: what it answers depends on the token alone, so
 * that every way a payment can go can be tried by hand.
 *
 *   tok_ok        paid at once
 *   tok_declined  declined at once, like every token it does not know
 *   tok_slow      paid, but says so 3 s later
 *   tok_unknown   says nothing for 1 s (unknown); asked again, it was paid
 *
 * Invariants:
 *  1. A checkout that was paid is answered "paid" ever after, with any token,
 *     and its money is taken once. The last SIMULATED_PAID_COUNT_MAX are known.
 *  2. Refunds succeed at once.
 *
 * Payment thread; it has no timers of its own, pay.c keeps them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "pay/pay_int.h"

struct paid {
    struct uuid checkout_id;
    int64_t known_us; /* when the gateway says so */
};

struct simulated {
    struct pay_gateway gateway;
    struct map by_checkout; /* → struct paid */
    struct paid *paid;      /* owns; the oldest place is used again */
    size_t paid_next;
    _Atomic int64_t charge_count;
};

static void paid_remember(struct simulated *simulated, const struct uuid *checkout_id, int64_t known_us)
{
    struct paid *paid = &simulated->paid[simulated->paid_next];
    simulated->paid_next = (simulated->paid_next + 1) % SIMULATED_PAID_COUNT_MAX;
    if (!uuid_is_nil(&paid->checkout_id))
        map_remove(&simulated->by_checkout, &paid->checkout_id);
    *paid = (struct paid){.checkout_id = *checkout_id, .known_us = known_us};
    map_put(&simulated->by_checkout, checkout_id, paid);
    atomic_fetch_add(&simulated->charge_count, 1);
}

static void simulated_charge(struct pay_gateway *gateway, struct pay *pay, struct pay_attempt *attempt,
                             int64_t now_us)
{
    struct simulated *simulated = CONTAINER_OF(gateway, struct simulated, gateway);
    const struct pay_job *job = &attempt->job;
    const struct paid *paid = map_get(&simulated->by_checkout, &job->checkout_id);

    if (paid != NULL) {
        int64_t left_us = paid->known_us - now_us;
        pay_answer(pay, attempt, PAY_PAID, left_us > 0 ? (left_us + 999) / 1000 : 0);
    } else if (strcmp(job->token, "tok_ok") == 0) {
        paid_remember(simulated, &job->checkout_id, now_us);
        pay_answer(pay, attempt, PAY_PAID, 0);
    } else if (strcmp(job->token, "tok_slow") == 0) {
        paid_remember(simulated, &job->checkout_id, now_us + SIMULATED_SLOW_MS * 1000);
        pay_answer(pay, attempt, PAY_PAID, SIMULATED_SLOW_MS);
    } else if (strcmp(job->token, "tok_unknown") == 0 && job->attempt <= 1) {
        pay_answer(pay, attempt, PAY_UNKNOWN, SIMULATED_TIMEOUT_MS);
    } else if (strcmp(job->token, "tok_unknown") == 0) {
        paid_remember(simulated, &job->checkout_id, now_us);
        pay_answer(pay, attempt, PAY_PAID, 0);
    } else {
        pay_answer(pay, attempt, PAY_DECLINED, 0);
    }
}

static void simulated_refund(struct pay_gateway *gateway, struct pay *pay, struct pay_attempt *attempt,
                             int64_t now_us)
{
    (void)gateway;
    (void)now_us;
    pay_answer(pay, attempt, PAY_PAID, 0);
}

static void simulated_destroy(struct pay_gateway *gateway)
{
    struct simulated *simulated = CONTAINER_OF(gateway, struct simulated, gateway);
    map_deinit(&simulated->by_checkout);
    free(simulated->paid);
    free(simulated);
}

enum err simulated_create(struct simulated **out)
{
    struct simulated *simulated = calloc(1, sizeof *simulated);
    if (simulated == NULL)
        goto no_simulated;
    simulated->paid = calloc(SIMULATED_PAID_COUNT_MAX, sizeof *simulated->paid);
    if (simulated->paid == NULL)
        goto no_paid;
    simulated->gateway = (struct pay_gateway){
        .charge = simulated_charge,
        .refund = simulated_refund,
        .destroy = simulated_destroy,
    };
    map_init(&simulated->by_checkout);
    *out = simulated;
    return ERR_OK;

no_paid:
    free(simulated);
no_simulated:
    return ERR_INTERNAL;
}

struct pay_gateway *simulated_gateway(struct simulated *simulated)
{
    return &simulated->gateway;
}

int64_t simulated_charge_count(const struct simulated *simulated)
{
    return atomic_load(&simulated->charge_count);
}

enum err pay_create_simulated(pay_on_outcome on_outcome, void *context, struct pay **out)
{
    struct simulated *simulated;
    enum err err = simulated_create(&simulated);
    if (err != ERR_OK)
        return err;
    return pay_create(&simulated->gateway, on_outcome, context, out);
}
