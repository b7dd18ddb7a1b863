/* SPDX-License-Identifier: Apache-2.0
 * Domain events: what happened, in the words of the business, for programs of
 * the organization itself. Made from the change feed and from nothing else, as
 * CloudEvents 1.0 in JSON; how they travel is a channel's (publish/delivery.h).
 *
 * Invariants:
 *  1. The same change gives the same events with the same ids, always: whoever
 *     receives one twice can tell.
 *  2. Events of one key come in the order in which things happened, and their
 *     `sequence` grows.
 *  3. No payment token, ticket code or cart token is in one. */
#ifndef HOLDFAST_PUBLISH_DOMAIN_EVENT_H
#define HOLDFAST_PUBLISH_DOMAIN_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/uuid.h"
#include "store/store.h"

/* clang-format off */
#define DOMAIN_EVENT_MAP(X)                                                                          \
    X(SEAT_RESERVED, "SeatReserved") X(SEAT_RELEASED, "SeatReleased") X(HOLD_EXTENDED, "HoldExtended") \
    X(CHECKOUT_STARTED, "CheckoutStarted") X(CHECKOUT_COMPLETED, "CheckoutCompleted")                \
    X(CHECKOUT_CANCELLED, "CheckoutCancelled") X(CHECKOUT_FAILED, "CheckoutFailed")                  \
    X(CHECKOUT_EXPIRED, "CheckoutExpired") X(CHECKOUT_REFUNDED, "CheckoutRefunded")
/* clang-format on */

enum domain_event_type {
#define DOMAIN_EVENT_ENUM(name, text) DOMAIN_##name,
    DOMAIN_EVENT_MAP(DOMAIN_EVENT_ENUM)
#undef DOMAIN_EVENT_ENUM
        DOMAIN_EVENT_TYPE_COUNT
};

const char *domain_event_type_name(enum domain_event_type type);

struct domain_event {
    struct uuid id;
    enum domain_event_type type;
    struct uuid org_id;
    struct uuid key;          /* of the seat or checkout: order is kept per key */
    const struct uuid *seats; /* a checkout's that it names: their order, too, includes it */
    int32_t seat_count;
    int64_t time_ms;
    const char *body; /* the whole event, JSON, NUL ended */
    size_t size;
};

struct domain_events {
    struct domain_event *list;
    int32_t count;
};

/* The events of one change, in order, in the arena. False if the change makes no sense from some byte on: then
 * the events before that byte are there. */
bool domain_events_of(const struct store_change *change, struct arena *arena, struct domain_events *out);

#endif
