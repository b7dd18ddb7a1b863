/* SPDX-License-Identifier: Apache-2.0
 * Every result a fallible function can return, in one list: name, number,
 * HTTP status, code on the wire, text for people. Numbers are stored with
 * idempotency keys: they are never changed and never used again.
 * docs/errors.md is checked against this list. */
#ifndef HOLDFAST_BASE_ERR_H
#define HOLDFAST_BASE_ERR_H

#include "base/check.h"

/* clang-format off */
#define ERR_MAP(X)                                                                                                       \
    X(OK,                       0, 200, "ok",                        "Done.")                                            \
    X(INVALID_REQUEST,          1, 400, "invalid_request",           "The request is malformed.")                        \
    X(EVENT_NOT_AVAILABLE,      2, 400, "event_not_available",       "This event is not open for reservations.")         \
    X(EVENT_SALES_CLOSED,       3, 400, "event_sales_closed",        "Sales for this event are not open now.")           \
    X(NO_ACTIVE_HOLDS,          4, 400, "no_active_holds",           "There are no active holds to check out.")          \
    X(MIXED_EVENTS,             5, 400, "mixed_events",              "All holds of a checkout must be of one event.")    \
    X(UNAUTHORIZED,             6, 401, "unauthorized",              "A valid bearer token is required.")                \
    X(FORBIDDEN,                7, 403, "forbidden",                 "Your role does not allow this.")                   \
    X(NOT_HOLD_OWNER,           8, 403, "not_hold_owner",            "Only the owner of a hold may do this.")            \
    X(PAYMENT_FAILED,           9, 402, "payment_failed",            "The payment was declined; the seats were released.") \
    X(EVENT_NOT_FOUND,         10, 404, "event_not_found",           "No such event.")                                   \
    X(SEAT_NOT_FOUND,          11, 404, "seat_not_found",            "No such seat.")                                    \
    X(HOLD_NOT_FOUND,          12, 404, "hold_not_found",            "No such hold.")                                    \
    X(CHECKOUT_NOT_FOUND,      13, 404, "checkout_not_found",        "No such checkout.")                                \
    X(NOT_FOUND,               14, 404, "not_found",                 "There is nothing here.")                           \
    X(METHOD_NOT_ALLOWED,      15, 405, "method_not_allowed",        "This path does not take that method.")             \
    X(BODY_TOO_LARGE,          16, 413, "body_too_large",            "The body is too large.")                           \
    X(UNSUPPORTED_MEDIA_TYPE,  17, 415, "unsupported_media_type",    "The body must be application/json.")               \
    X(HEADERS_TOO_LARGE,       18, 431, "headers_too_large",         "The headers are too large.")                       \
    X(SEAT_NOT_AVAILABLE,      19, 409, "seat_not_available",        "This seat is not available.")                      \
    X(SEAT_HELD,               20, 409, "seat_held_by_another_user", "Someone else is holding this seat.")               \
    X(SEAT_NO_LONGER_AVAILABLE,21, 409, "seat_no_longer_available",  "This seat was taken a moment ago.")                \
    X(BLOCK_AT_CAPACITY,       22, 409, "block_at_capacity",         "This block is at capacity.")                       \
    X(HOLD_LIMIT_REACHED,      23, 409, "hold_limit_reached",        "You hold as many seats as this event allows.")     \
    X(NOT_ENOUGH_SEATS,        24, 409, "not_enough_seats",          "There are not enough seats to satisfy this.")      \
    X(WOULD_LEAVE_SINGLE_SEAT, 25, 409, "would_leave_single_seat",   "This choice would leave a single seat stranded.")  \
    X(EXTENSION_LIMIT_REACHED, 26, 409, "extension_limit_reached",   "This hold cannot be extended any further.")        \
    X(HOLDS_EXPIRED,           27, 409, "holds_expired",             "One or more holds have expired.")                  \
    X(PAYMENT_IN_PROGRESS,     28, 409, "payment_in_progress",       "A payment for this checkout is in progress.")      \
    X(CHECKOUT_NOT_PAYABLE,    29, 409, "checkout_not_payable",      "This checkout can no longer be paid.")             \
    X(CHECKOUT_NOT_CANCELLABLE,30, 409, "checkout_not_cancellable",  "This checkout can no longer be cancelled.")        \
    X(LAYOUT_IN_USE,           31, 409, "layout_in_use",             "A seat of this layout was already held.")          \
    X(INVALID_TRANSITION,      32, 409, "invalid_transition",        "That change of status is not allowed.")            \
    X(IDEMPOTENCY_KEY_REUSED,  33, 409, "idempotency_key_reused",    "This Idempotency-Key was used with another body.") \
    X(REQUEST_IN_PROGRESS,     34, 409, "request_in_progress",       "A request with this key is still in progress.")    \
    X(RATE_LIMITED,            35, 429, "rate_limited",              "Too many new holds; try again later.")             \
    X(SEAT_RESERVATION_FAILED, 36, 500, "seat_reservation_failed",   "The seat could not be reserved; try again.")       \
    X(INTERNAL,                37, 500, "internal_error",            "Something went wrong on our side.")                \
    X(OVERLOADED,              38, 503, "overloaded",                "Too busy; try again in a moment.")                 \
    X(STORE_UNAVAILABLE,       39, 503, "store_unavailable",         "The store is unavailable; nothing was changed.")   \
    X(OUTCOME_UNKNOWN,         40, 504, "outcome_unknown",           "The outcome is unknown; retry with the same key.") \
    X(COMMAND_NOT_FOUND,       41, 404, "command_not_found",         "No such command, or it is older than a day, or its answer was not kept; repeat the request with its Idempotency-Key.") \
    /* Never on the wire: reasons not to start, or trouble below the API. */                                             \
    X(CONFIG,                 100, 500, "internal_error",            "The configuration is wrong.")                      \
    X(STORE_CORRUPT,          101, 500, "internal_error",            "The database file is corrupted.")                  \
    X(STORE_NEWER,            102, 500, "internal_error",            "The database was written by a newer version.")     \
    X(STORE_IN_USE,           103, 500, "internal_error",            "The database is in use by another server.")        \
    X(STORE_OPEN,             104, 500, "internal_error",            "The database cannot be opened.")                   \
    X(LISTEN,                 105, 500, "internal_error",            "The address cannot be listened on.")
/* clang-format on */

enum err {
#define ERR_ENUM(name, number, status, code, text) ERR_##name = number,
    ERR_MAP(ERR_ENUM)
#undef ERR_ENUM
};

int err_http_status(enum err err);
const char *err_code(enum err err); /* as on the wire */
const char *err_text(enum err err);

#endif
