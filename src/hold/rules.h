/* SPDX-License-Identifier: Apache-2.0
 * The rules: what may happen to a seat, a hold, a checkout and an event.
 * Pure functions of (row, request, now); nothing here knows a store, a thread
 * or a clock. Every rule of the system stands here and nowhere else.
 *
 *   seat      available ──▶ held ──▶ sold        available ◀──▶ blocked
 *                 ▲──────────┘         │
 *                 ▲────────────────────┘ (refund)
 *   hold      active ──▶ converted | expired | cancelled
 *   checkout  pending_payment ──▶ processing ──▶ completed ──▶ refunded
 *                    │                  └──────▶ failed ──▶ completed (late money)
 *                    └──▶ cancelled | expired
 *   event     draft ──▶ published ──▶ live ──▶ archived; any but archived ──▶ cancelled */
#ifndef HOLDFAST_HOLD_RULES_H
#define HOLDFAST_HOLD_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"

/* The one mutator of each machine: checks the move against the diagram. */
void seat_move(enum seat_state *state, enum seat_state to);
void hold_move(enum hold_state *state, enum hold_state to);
void checkout_move(enum checkout_state *state, enum checkout_state to);

/* ERR_INVALID_TRANSITION unless the diagram has it; staying is allowed. */
enum err event_move(enum event_state from, enum event_state to) MUST_CHECK;
bool event_is_open(enum event_state state); /* published or live: seats may be held */
enum err event_check_open(const struct event_row *event) MUST_CHECK; /* ERR_EVENT_NOT_AVAILABLE */
enum err event_check_window(const struct event_row *event,
                            int64_t now_ms) MUST_CHECK; /* ERR_EVENT_SALES_CLOSED */

/* ---- Asking for a seat ---- */

enum reserve_verdict {
    RESERVE_GRANT, /* the seat is free */
    RESERVE_MINE,  /* the asker holds it: that hold is the answer */
    RESERVE_RENEW, /* the asker's own hold has run out and is not released yet: end it, grant a new one */
    RESERVE_REFUSE
};

struct reserve_decision {
    enum reserve_verdict verdict;
    enum err err;       /* of a refusal */
    int64_t expires_ms; /* of ERR_SEAT_HELD: when to come back */
};

/* What the rules need to know of the active hold of a seat. */
struct holder {
    struct uuid user_id;
    int64_t held_until_ms;
    bool paying; /* pinned by a payment in flight */
};

/* holder: of the active hold when the seat is held, else NULL. */
struct reserve_decision rule_reserve(enum seat_state seat, const struct holder *holder,
                                     const struct uuid *user_id, const struct policy *policy, int64_t now_ms);
int64_t rule_hold_until(const struct policy *policy, int64_t now_ms); /* of a new hold */

/* ---- Time ---- */

/* At held_until a hold is worth nothing, unless a payment pins it. */
static inline bool hold_is_lapsed(int64_t held_until_ms, bool paying, int64_t now_ms)
{
    return !paying && now_ms >= held_until_ms;
}

static inline int64_t hold_release_ms(int64_t held_until_ms, const struct policy *policy)
{
    return held_until_ms + policy->release_grace_seconds * 1000ll;
}

/* ERR_HOLDS_EXPIRED, ERR_PAYMENT_IN_PROGRESS or ERR_EXTENSION_LIMIT_REACHED. */
enum err rule_extend(int64_t created_ms, int64_t held_until_ms, bool paying, const struct policy *policy,
                     int64_t now_ms, int64_t *new_until_ms) MUST_CHECK;
/* What starting a checkout gives: as an extension, but the cap is no error. Never less than before. */
int64_t rule_checkout_until(int64_t created_ms, int64_t held_until_ms, const struct policy *policy);

/* ---- Checkouts ---- */

enum err
rule_checkout_pay(enum checkout_state state) MUST_CHECK; /* OK: pending; ERR_CHECKOUT_NOT_PAYABLE: ended */
enum err rule_checkout_cancel(enum checkout_state state) MUST_CHECK; /* OK: pending or cancelled already */
/* What a checkout becomes that lost its last seat for this reason. */
enum checkout_state rule_checkout_emptied(enum end_reason reason);
/* What a hold becomes that ends for this reason. */
enum hold_state rule_hold_ended(enum end_reason reason);
/* "A" … "D": the scenario of a release, as seed documents number them. */
const char *end_reason_scenario(enum end_reason reason);

/* ---- Limits ---- */

/* Active holds per user and event. 0: no limit. */
bool rule_hold_limit_allows(const struct policy *policy, int32_t held_count, int32_t adding);

#endif
