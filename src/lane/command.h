/* SPDX-License-Identifier: Apache-2.0
 * What can be asked of the lane, and what it answers.
 *
 * A command is made at the edge, complete and checked (lengths, UTF-8, ranges),
 * and belongs to whoever made it. While the lane has it, the lane alone may
 * touch it and its arena; on_done gives it back, exactly once, on the lane's
 * thread. Results point into the arena and hold references to seat maps:
 * command_deinit() lets go of them. */
#ifndef HOLDFAST_LANE_COMMAND_H
#define HOLDFAST_LANE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/model.h"
#include "hold/best.h"
#include "hot/seatmap.h"

enum command_kind {
    /* Buyers */
    COMMAND_HOLD_SEATS,        /* hold_seats: reserve, or several named seats: all or none */
    COMMAND_HOLD_BEST,         /* hold_best */
    COMMAND_HOLD_EXTEND,       /* id: hold */
    COMMAND_HOLD_RELEASE,      /* id: hold */
    COMMAND_CHECKOUT_START,    /* checkout_start */
    COMMAND_CHECKOUT_COMPLETE, /* id: checkout; payment_token */
    COMMAND_CHECKOUT_CANCEL,   /* id: checkout; notes */
    /* Admins */
    COMMAND_ORG_CREATE,    /* id (nil: made here), name */
    COMMAND_USER_PATCH,    /* id: user; disabled */
    COMMAND_EVENT_CREATE,  /* event */
    COMMAND_EVENT_PATCH,   /* id: event; event: only what is set changes */
    COMMAND_LAYOUT_PUT,    /* id: event; layout */
    COMMAND_BLOCK_PATCH,   /* id: event; block */
    COMMAND_SEATS_BLOCK,   /* id: event; seats */
    COMMAND_SEATS_UNBLOCK, /* id: event; seats */
    COMMAND_ADMIN_RELEASE, /* release */
    COMMAND_RECONCILE,     /* id: event */
    COMMAND_REGISTRY,      /* id: event; as RECONCILE, but nothing is put right */
    /* Reads that need the lane's own state; never wait for the store unless the thing has ended */
    COMMAND_HOLDS_LIST,   /* holds_list */
    COMMAND_HOLD_GET,     /* id: hold */
    COMMAND_CHECKOUT_GET, /* id: checkout */
    COMMAND_ANSWER_GET,   /* sent, key: what a command that was sent to another node was answered */
    COMMAND_SYNC,         /* answered when all that was committed before it came is in memory */
    /* The system's own */
    COMMAND_USER_SEEN,         /* actor's token was seen for the first time */
    COMMAND_PAYMENT_SETTLED,   /* payment */
    COMMAND_REFUND_SETTLED,    /* payment */
    COMMAND_PAYMENT_TAKE_OVER, /* id: checkout, whose node does not ask the gateway any more */
    COMMAND_KIND_COUNT
};

struct actor {          /* who asks, and for whom */
    struct uuid org_id; /* from the token; for an operator, the organization of what is asked about */
    struct uuid user_id;
    enum role role;
    struct uuid for_user_id; /* an agent acts for this buyer; otherwise the same as user_id */
    const char *ip;          /* or NULL */
    const char *user_agent;  /* or NULL */
    const char *request_id;  /* or NULL */
};

enum payment_outcome { PAYMENT_PAID, PAYMENT_DECLINED, PAYMENT_UNKNOWN };

/* Which fields of an EVENT_PATCH or BLOCK_PATCH are set. */
enum {
    PATCH_NAME = 1 << 0,
    PATCH_STATE = 1 << 1,
    PATCH_SALE_START = 1 << 2,
    PATCH_SALE_END = 1 << 3,
    PATCH_CURRENCY = 1 << 4,
    PATCH_CAPACITY = 1 << 5,
    PATCH_PRICE = 1 << 6,
};

struct hold_view {       /* one hold, as it may be shown to its owner and to admins */
    struct seatmap *map; /* borrows: the result holds a reference */
    int32_t seat_index;
    struct hold_row row;
};

struct seat_failure {
    struct uuid id; /* of the seat, or of the hold when releasing */
    enum err err;
    enum seat_state state; /* with ERR_SEAT_NOT_AVAILABLE */
    int64_t expires_ms; /* with ERR_SEAT_HELD: when to come back (held_until, plus grace once past); else 0 */
};

struct result {
    enum err err;
    int status; /* of a success: 200, 201 or 202 */
    struct uuid event_id;
    /* Holds: made, found, extended, or released by an admin */
    struct hold_view *holds;
    int32_t hold_count;
    /* Best available */
    bool has_explanation;
    struct best_explanation explanation;
    /* Refusals: the first failure's code is `err`; these are all of them. Admin: what was skipped. */
    struct seat_failure *failures;
    int32_t failure_count;
    struct uuid *stranded; /* with ERR_WOULD_LEAVE_SINGLE_SEAT: seat ids */
    int32_t stranded_count;
    int64_t retry_after_seconds; /* with 429 and 503 */
    const char *message;         /* more than err_text() says, or NULL */
    /* Checkouts */
    bool has_checkout;
    struct checkout_row checkout;
    struct hold_view *checkout_holds; /* its seats */
    int32_t checkout_hold_count;
    struct ticket_row *tickets;
    int32_t ticket_count;
    /* Catalogue: id of what was made or changed */
    struct uuid id;
    bool disabled;          /* USER_PATCH */
    int64_t counts[2];      /* REGISTRY, RECONCILE: holds in memory and in Redis (−1: not there) */
    int64_t missing_count;  /* … what Redis lacked … */
    int64_t orphaned_count; /* … and what it had too much */
    struct uuid *seat_ids;  /* SEATS_BLOCK, SEATS_UNBLOCK: those done */
    int32_t seat_id_count;
    int64_t now_ms;  /* the lane's clock when it was decided */
    bool is_pending; /* status 202: it was sent to the node that decides it, whose answer has not come yet */
    enum command_kind kind; /* ANSWER_GET: of the command that all this is the answer to … */
    bool several;           /* … its hold_seats.several */
    struct uuid user_id;    /* … and who asked for it, and for whom */
    struct uuid for_user_id;
};

/* A command on its way through a broker: order/ fills it in. */
struct sent {
    struct uuid id;      /* names the command everywhere; not nil once it was sent */
    bool is_taken;       /* it came from the broker: this node decides it */
    bool is_key_made;    /* its key was made of its id: nobody gave it one */
    bool may_be_again;   /* it may have been decided before: its key is looked for first */
    bool is_fenced;      /* filled in: another node decides for the partition by now. Not to be answered. */
    int64_t deadline_ms; /* not begun after this; 0: whenever */
    bool is_written;     /* filled in: its answer rests on what was written for it, now or before */
    struct order_fence *fence; /* borrows: its partition */
    int64_t noted_offset;      /* filled in: the next_offset that was written with it, or 0 */
    const void *answer;        /* what the node that decided it answered, as result.c packs it; or NULL */
    size_t answer_size;
};

/* A partition that this node decides for. The lane's thread. */
struct order_fence {
    const char *topic;
    int32_t partition;
    int64_t epoch;
    int64_t next_offset; /* everything before it is answered */
    int64_t note_at_ms;  /* when that is worth writing next */
    struct list line;    /* command.line_node: those that cannot be decided yet */
    bool is_stalled;     /* something of it is to be tried again: nothing that has not begun begins */
};

struct map_reference {
    struct map_reference *next;
    struct seatmap *map;
};

struct command {
    struct list node; /* whoever has it */
    enum command_kind kind;
    struct actor actor;
    struct arena *arena; /* borrows: arguments and results live there */
    bool has_key;        /* Idempotency-Key */
    uint8_t key[32];     /* hash of user, method, path and key */
    uint8_t body[32];    /* hash of the body */
    struct uuid id;      /* what it is about: see the kinds */
    union {
        struct {
            struct uuid event_id;
            struct uuid *seat_ids; /* distinct */
            int32_t count;
            bool several;           /* the several-seats call: its errors carry details.seats */
            const char *cart_token; /* or NULL */
            enum hold_source source;
        } hold_seats;
        struct {
            struct uuid event_id;
            int32_t quantity;
            char section[4];    /* "": the whole event */
            int32_t subsection; /* 0: the whole section */
            bool adjacent;
            const char *cart_token; /* or NULL */
            enum hold_source source;
        } hold_best;
        struct {
            struct uuid event_id;
            struct uuid *hold_ids; /* or NULL: all of mine, or of the cart */
            int32_t hold_count;
            const char *cart_token; /* or NULL */
        } checkout_start;
        struct {
            const char *payment_token; /* CHECKOUT_COMPLETE */
            const char *notes;         /* CHECKOUT_CANCEL */
        } checkout;
        struct {
            const char *name;
            bool disabled;
        } admin;
        struct {
            uint32_t fields;        /* PATCH_… */
            uint32_t policy_fields; /* bit n: field n of POLICY_MAP */
            struct event_row row;   /* id nil: made here */
        } event;
        struct {
            const char *document;
            size_t size;
        } layout;
        struct {
            uint32_t fields; /* PATCH_NAME, PATCH_CAPACITY, PATCH_PRICE */
            struct uuid block_id;
            const char *name;
            int32_t capacity;
            int64_t price_cents;
        } block;
        struct {
            struct uuid *seat_ids;
            int32_t count;
            const char *notes; /* or NULL */
        } seats;
        struct { /* exactly one is set */
            struct uuid *hold_ids;
            int32_t hold_count;
            struct uuid *seat_ids;
            int32_t seat_count;
            struct uuid checkout_id;
            struct uuid event_id;
            const char *notes; /* or NULL */
        } release;
        struct {
            bool everybody;       /* admin: all active holds of event_id; else actor.for_user_id's */
            struct uuid event_id; /* nil: all events */
            struct uuid user_id;  /* everybody: only this one's, unless nil */
            struct uuid block_id; /* everybody: only this block's, unless nil */
            struct uuid after;    /* everybody: cursor, holds with a greater id */
            int32_t limit;        /* everybody */
        } holds_list;
        struct {
            enum payment_outcome outcome;
            int32_t attempt;
        } payment;
    };
    struct result result;
    struct map_reference *maps;
    void (*on_done)(struct command *command); /* the lane's thread; takes it back */
    void *owner;

    struct sent sent;

    /* The lane's own */
    int64_t arrived_ms;
    int64_t arrived_us; /* monotonic, for the latency histogram */
    int64_t retry_at_ms;
    int32_t try_count;
    struct avoided_seat *avoided; /* HOLD_BEST: seats that somebody turned out to have locked … */
    int32_t avoid_count;          /* … and how often that was so */
    struct strange_lock *locks;   /* in Redis, in its way, of holds that memory does not know */
    int64_t fresh_needed;         /* not decided before this question to the change feed is answered */
    bool key_found;               /* fresh_needed is of a question asked since */
    bool counted;                 /* as an attempt: deciding again is not another one */
    int64_t came_number; /* the question to the change feed that was next when it had to wait in line; or 0 */
    struct list line_node; /* in sent.fence->line, if it cannot be decided yet (line.c) */
    bool has_begun;        /* decided, or not in anybody's way: not in line any more */
    bool is_uncalled;      /* in line, and in no other list: looked at when those in front have gone */
    void *lane_state;
};

struct avoided_seat {
    struct avoided_seat *next;
    struct uuid seat_id;
};

/* False: it was avoided before. */
bool command_avoid_seat(struct command *command, const struct uuid *seat_id);

struct strange_lock {
    struct strange_lock *next;
    struct uuid hold_id;
    bool has_ended; /* the store knows that this hold is over */
};

struct strange_lock *command_strange_lock(const struct command *command, const struct uuid *hold_id);

/* The hold that it makes has its id. So that it was done can be seen there, and no key need be written for it. */
bool command_names_its_hold(const struct command *command);
/* Is it decided by the node that has its block, if several share the work? */
bool command_can_be_sent(enum command_kind kind);
void command_arrives(struct command *command); /* the lane's own fields, before it decides */
void command_init(struct command *command, enum command_kind kind, struct arena *arena);
void command_deinit(struct command *command); /* releases the seat maps; the arena is the owner's */
/* A reference that lasts until command_deinit(). */
struct seatmap *command_hold_map(struct command *command, struct seatmap *map);

/* ---- handle.c ---- */

/* The key of a command that nobody gave one. */
void command_make_key(const struct uuid *id, uint8_t key[32]);
/* What /api/commands/{command} takes: "id", or "id.key" with the key that the caller gave. */
enum { COMMAND_HANDLE_SIZE = UUID_TEXT_SIZE + 1 + 64 };
#define COMMAND_LOCATION "/api/commands/"
void command_format_handle(const struct command *command, char out[COMMAND_HANDLE_SIZE]);
/* Fills in sent.id, sent.is_key_made and key of an ANSWER_GET. False: it is no handle. */
bool command_parse_handle(const char *text, struct command *command);

#endif
