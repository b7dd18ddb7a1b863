/* SPDX-License-Identifier: Apache-2.0
 * What a gateway is to the payment thread: something that begins an attempt at
 * once and answers it some time later.
 *
 *   pay_submit ─▶ due ──charge / refund──▶ with the gateway ──pay_answer──▶ answered
 *                  ▲                                                           │
 *                  └────────── unknown: 1, 2, 4 … 60 s later ◀── on_outcome ───┘
 *
 * To add a gateway: a file beside simulated.c that makes a struct pay_gateway,
 * and a pay_create_… that gives it to pay_create(). A gateway answers every
 * attempt exactly once, from any thread, and uses the checkout's id as its
 * idempotency key: asking twice never takes money twice. */
#ifndef HOLDFAST_PAY_PAY_INT_H
#define HOLDFAST_PAY_PAY_INT_H

#include "base/list.h"
#include "pay/pay.h"

enum {
    PAY_BACKOFF_MS_FIRST = 1000,
    PAY_BACKOFF_MS_MAX = 60000,
    SIMULATED_SLOW_MS = 3000,
    SIMULATED_TIMEOUT_MS = 1000,      /* how long tok_unknown keeps one waiting */
    SIMULATED_PAID_COUNT_MAX = 65536, /* checkouts remembered as paid */
};

enum pay_attempt_state { ATTEMPT_WAITING, ATTEMPT_STARTED, ATTEMPT_ANSWERED };

struct pay_attempt {
    struct pay_job job;
    enum pay_attempt_state state;
    enum pay_outcome outcome; /* once answered */
    int64_t due_us;           /* when to start it, or to tell its outcome */
    int64_t started_us;
    uint64_t order;   /* of those due at the same time: first come, first served */
    struct list node; /* while started */
};

struct pay_gateway {
    /* Each begins, without blocking, and answers later with pay_answer(). Payment thread. */
    void (*charge)(struct pay_gateway *gateway, struct pay *pay, struct pay_attempt *attempt, int64_t now_us);
    void (*refund)(struct pay_gateway *gateway, struct pay *pay, struct pay_attempt *attempt, int64_t now_us);
    /* No pay_answer() after this. */
    void (*destroy)(struct pay_gateway *gateway);
};

/* Takes the gateway, also when it fails. */
enum err pay_create(struct pay_gateway *gateway, pay_on_outcome on_outcome, void *context,
                    struct pay **out) MUST_CHECK;

/* The outcome of a started attempt, known `delay_ms` from now. Any thread. */
void pay_answer(struct pay *pay, struct pay_attempt *attempt, enum pay_outcome outcome, int64_t delay_ms);

struct simulated;
enum err simulated_create(struct simulated **out) MUST_CHECK;
struct pay_gateway *simulated_gateway(struct simulated *simulated);
/* How many charges took money: never twice for one checkout. Any thread. */
int64_t simulated_charge_count(const struct simulated *simulated);

#endif
