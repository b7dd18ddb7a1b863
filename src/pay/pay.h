/* SPDX-License-Identifier: Apache-2.0
 * Payments happen outside the lane: a thread of their own asks the gateway,
 * with the checkout's id as idempotency key, and asks again with backoff while
 * the outcome is unknown.
 *
 * The simulated gateway: tok_ok pays, tok_declined declines, tok_slow pays after
 * 3 s, tok_unknown times out and is settled by asking again; any other token is
 * declined. */
#ifndef HOLDFAST_PAY_PAY_H
#define HOLDFAST_PAY_PAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/uuid.h"

struct pay;

enum pay_outcome { PAY_PAID, PAY_DECLINED, PAY_UNKNOWN };

struct pay_job {
    struct uuid org_id;
    struct uuid checkout_id;
    int64_t amount_cents;
    char currency[4];
    char token[256];
    int32_t attempt; /* 1 for the first */
    bool refund;     /* give the money back instead */
};

/* Runs on the payment thread, after every attempt. After PAY_UNKNOWN the job is tried
 * again by itself (1, 2, 4 … 60 s apart) until it is known. */
typedef void (*pay_on_outcome)(void *context, const struct pay_job *job, enum pay_outcome outcome);

enum err pay_create_simulated(pay_on_outcome on_outcome, void *context, struct pay **out) MUST_CHECK;
void pay_destroy(struct pay *pay); /* drops jobs that are not done: the store has them */
void pay_submit(struct pay *pay, const struct pay_job *job); /* any thread; copies */

#endif
