/* SPDX-License-Identifier: Apache-2.0
 * The store: what was committed is the truth. One interface over SQLite,
 * PostgreSQL and the simulator.
 *
 * The store never decides. A batch is a list of units; a unit is what one
 * command writes, all of it or nothing. Every change of a seat, checkout, event
 * or delivery is a compare-and-set on its version: a unit that does not find all
 * of them at the expected version is left out whole (UNIT_MISSED) and its
 * neighbours go on. What a unit merely relies on is compared too: the event
 * (event_check), the room in a block (block_claim) and who decides a partition of
 * the log (order_check).
 *
 * Several nodes may write to one store (store_is_shared()). What any of them
 * committed comes to all by the change feed, store_follow().
 *
 * Contract of every asynchronous call here: an error returned means the
 * callback never runs; otherwise it runs exactly once. Callbacks of
 * store_submit(), store_resolve(), store_lookup() and store_follow() run inside store_poll(),
 * on the thread that calls it (the lane's); those of store_query() run on the
 * store's reading thread. */
#ifndef HOLDFAST_STORE_STORE_H
#define HOLDFAST_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/model.h"

struct store; /* opaque; its first member is a table of these functions: see store_int.h */

/* ---- What a unit writes: lists, each linked by `next`, in the batch's arena. ---- */

struct seat_write {
    struct seat_write *next;
    struct seat_row row;    /* the new row; the store must find version row.version − 1 */
    enum seat_state before; /* for the statistics */
    struct uuid block_id;   /* for the statistics */
    /* Filled in when the unit missed: */
    bool missed;
    struct seat_row current; /* what is there instead */
};

struct hold_write { /* insert, or update by id of all that may change */
    struct hold_write *next;
    bool insert;
    bool extended; /* for the change feed: this write is an extension */
    struct hold_row row;
    struct uuid block_id; /* for the statistics */
};

struct checkout_write { /* insert, or update by id */
    struct checkout_write *next;
    bool insert;             /* version 1 */
    bool moved;              /* for the change feed: this write changes the state */
    struct checkout_row row; /* an update must find version row.version − 1 */
    bool missed;             /* filled in when the unit missed */
};

struct ticket_write { /* insert, or update of refunded_ms by id */
    struct ticket_write *next;
    bool insert;
    struct ticket_row row;
};

struct audit_write {
    struct audit_write *next;
    struct audit_row row;
};

struct user_write { /* insert or update by (organization, id) */
    struct user_write *next;
    bool seen; /* insert only: a user who is there stays as they are */
    struct user_row row;
};

struct org_write { /* insert */
    struct org_write *next;
    struct org_row row;
};

struct event_write { /* insert, or update by id */
    struct event_write *next;
    bool insert;          /* version 1 */
    struct event_row row; /* an update must find version row.version − 1 */
    bool missed;          /* filled in when the unit missed */
};

/* The event must be at this version when the unit commits: nothing it was decided on has changed. Not for units that
 * write the event themselves. */
struct event_check {
    struct event_check *next;
    struct uuid org_id;
    struct uuid event_id;
    int32_t version;
    bool missed; /* filled in when the unit missed */
};

/* So many seats of the block become taken by the unit: held and sold ones must stay within its capacity, whoever else
 * takes some at the same time. For blocks whose capacity is below their number of seats. With the unit's own
 * block_write the new capacity counts. */
struct block_claim {
    struct block_claim *next;
    struct uuid org_id;
    struct uuid event_id;
    struct uuid block_id;
    int32_t count;
    bool missed; /* filled in when the unit missed: there is no room, or it cannot be told yet */
};

struct block_write { /* update of name, capacity and price by id */
    struct block_write *next;
    struct block_row row;
};

struct layout_seat {
    struct uuid id;
    int32_t block; /* ordinal of its block */
    int32_t row;   /* ordinals, from 1 */
    int32_t seat;
    const char *row_label;
    const char *seat_label;
};

struct layout_write { /* replaces all blocks and seats of the event, unless one was ever held */
    struct layout_write *next;
    struct uuid org_id;
    struct uuid event_id;
    const char *document; /* the layout document, JSON */
    const struct block_row *blocks;
    int32_t block_count;
    const struct layout_seat *seats; /* in layout order; all available, version 1 */
    int32_t seat_count;
    bool missed; /* filled in when the unit missed: a seat of the event was held */
};

struct snapshot_write {
    struct snapshot_write *next;
    struct uuid org_id;
    struct uuid event_id;
    int64_t at_ms;
    int32_t counts[SEAT_STATE_COUNT];
};

struct key_write { /* an Idempotency-Key: insert; taken if it exists and is younger than 24 h */
    struct uuid org_id;
    uint8_t key[32];    /* hash of user, method, path and key */
    uint8_t body[32];   /* hash of the body */
    const void *result; /* packed ids and codes, see lane/result.h */
    size_t result_size;
    int64_t created_ms;
    bool is_new; /* made for this command, which nobody decided before: not looked for, if that is cheaper */
};

struct delivery_write { /* insert (version 1), or update by name, which must find version row.version − 1 */
    struct delivery_write *next;
    struct delivery_row row;
    bool missed; /* filled in when the unit missed */
};

struct dead_letter_write { /* insert; one that is there already is left alone */
    struct dead_letter_write *next;
    struct dead_letter_row row;
};

struct
    order_claim { /* a partition changes hands: insert (epoch 1), or update, which must find epoch row.epoch − 1 */
    struct order_claim *next;
    struct order_row row; /* an update leaves next_offset as it is … */
    bool resets;          /* … unless the log itself was made anew: then it is the row's */
    bool missed;          /* filled in when the unit missed: somebody else claimed it */
};

/* The partition must still be at this epoch when the unit commits: who was replaced meanwhile writes nothing. Waits for
 * a claim that is under way, and a claim for all who compare; those who compare do not wait for each other. */
struct order_check {
    struct order_check *next;
    const char *topic;
    int32_t partition;
    int64_t epoch;
    int64_t next_offset; /* set with the unit, unless it is 0 or what is there is higher */
    bool missed;         /* filled in when the unit missed */
};

enum unit_result {
    UNIT_OK,
    UNIT_MISSED, /* something was not at the expected version, or there was no room: see the `missed` marks */
    UNIT_KEY_TAKEN, /* its idempotency key was there already */
    UNIT_BAD,       /* the store refused its data; neighbours are not affected */
};

struct store_unit {
    struct list node; /* in store_batch.units */
    struct seat_write *seats;
    struct hold_write *holds;
    struct checkout_write *checkouts;
    struct ticket_write *tickets;
    struct audit_write *audits;
    struct user_write *users;
    struct org_write *orgs;
    struct event_write *events;
    struct block_write *blocks;
    struct layout_write *layouts;
    struct snapshot_write *snapshots;
    struct delivery_write *deliveries;
    struct dead_letter_write *dead_letters;
    struct event_check *checks;
    struct block_claim *claims;
    struct order_claim *order_claims;
    struct order_check *order_checks;
    struct key_write *key; /* or NULL */
    void *owner;           /* the lane's */
    enum unit_result result;
};

enum store_outcome {
    STORE_COMMITTED, /* each unit's result says what became of it */
    STORE_FAILED,    /* nothing was written, and never will be */
    STORE_UNKNOWN,   /* ask store_resolve() */
};

struct store_batch {
    struct list node; /* the store's, while it has the batch */
    struct uuid id;
    struct uuid node_id; /* who writes it: stands in the change feed */
    struct arena arena;  /* owns the units and all they point to */
    struct list units;
    int32_t unit_count;
    int64_t now_ms;
    /* Not 0: also delete some keys, batch ids and change rows older than this; change rows that a delivery has not
     * passed are kept for a week. */
    int64_t purge_before_ms;
    void (*on_done)(struct store_batch *batch);
    void *context;
    /* Filled in: */
    enum store_outcome outcome;
    enum err err;      /* why it failed */
    int64_t commit_us; /* how long it took */
};

/* Borrows the batch until on_done. Any number may be submitted; the store keeps their order. */
enum err store_submit(struct store *store, struct store_batch *batch) MUST_CHECK;

/* Finds out what became of a batch whose outcome is STORE_UNKNOWN, and sees to
 * it that it cannot commit later. Same callback, same results; may stay unknown. */
enum err store_resolve(struct store *store, struct store_batch *batch) MUST_CHECK;

/* ---- Looking up single things that are not in memory ---- */

enum lookup_kind {
    LOOKUP_KEY,
    LOOKUP_HOLD,
    LOOKUP_CHECKOUT,
    LOOKUP_DUE_HOLDS,
    LOOKUP_EVENT, /* with its layout: the ids of its seats, not what became of them */
    LOOKUP_USER,
    LOOKUP_DELIVERY,
    LOOKUP_ORDER, /* name: the topic; partition */
};

struct store_lookup {
    struct list node; /* the store's, while it has the lookup */
    enum lookup_kind kind;
    struct uuid org_id;
    struct uuid id;    /* of the hold, checkout, event or user */
    const char *name;  /* LOOKUP_DELIVERY, LOOKUP_ORDER */
    int32_t partition; /* LOOKUP_ORDER */
    uint8_t key[32];   /* LOOKUP_KEY */
    int64_t
        now_ms; /* LOOKUP_KEY: older than 24 h counts as absent. DUE_HOLDS: held_until + grace ≤ this, all tenants */
    int32_t limit;       /* LOOKUP_DUE_HOLDS */
    struct arena *arena; /* borrows: for the results */
    void (*on_done)(struct store_lookup *lookup);
    void *context;
    /* Filled in: */
    enum err err;
    bool found;
    uint8_t body[32]; /* LOOKUP_KEY */
    const void *result;
    size_t result_size;
    struct checkout_row checkout; /* LOOKUP_CHECKOUT, with its holds and tickets in seat order */
    struct hold_row *holds;       /* LOOKUP_HOLD: one; LOOKUP_CHECKOUT; LOOKUP_DUE_HOLDS */
    int32_t hold_count;
    struct ticket_row *tickets;
    int32_t ticket_count;
    struct event_row event; /* LOOKUP_EVENT … */
    const char *document;   /* … NULL: it has no layout */
    struct block_row *blocks;
    int32_t block_count;
    struct uuid *seat_ids; /* in layout order */
    int32_t seat_count;
    int64_t holds_ever;
    struct user_row user;         /* LOOKUP_USER */
    struct delivery_row delivery; /* LOOKUP_DELIVERY */
    struct order_row order;       /* LOOKUP_ORDER */
};

enum err store_lookup(struct store *store, struct store_lookup *lookup) MUST_CHECK;

/* ---- The change feed: what every node committed, in an order in which each seat's changes follow each other ---- */

struct store_change {
    int64_t id;
    int64_t created_ms; /* when its batch was decided, by its node's clock */
    const void *data;   /* packed: see store/changes.h */
    size_t size;
};

struct store_follow {
    struct list node; /* the store's, while it has it */
    struct feed_position after;
    struct uuid own_node; /* whose changes may come without their data: who asks knows them */
    int32_t limit;        /* so many changes at most */
    struct arena *arena;  /* borrows: for the results */
    void (*on_done)(struct store_follow *follow);
    void *context;
    /* Filled in: */
    enum err err;
    struct store_change *changes;
    int32_t count;
    struct feed_position position; /* to go on from */
    bool more;                     /* `limit` was in the way: ask again at once */
    bool lost; /* what follows `after` was purged: whoever follows must load everything anew */
    /* Everything committed before this call is below `horizon`; everything below `reached` was given out, by this call
     * or before it. A call that comes after a commit, and a later one whose `reached` is not below its horizon, have
     * shown that commit. */
    int64_t horizon;
    int64_t reached;
};

enum err store_follow(struct store *store, struct store_follow *follow) MUST_CHECK;
bool store_is_shared(const struct store *store); /* other nodes may write to it */

/* ---- Lists for people: rows as JSON ---- */

enum query_kind {
    QUERY_AUDIT,             /* newest first */
    QUERY_CHECKOUTS,         /* newest first */
    QUERY_OCCUPANCY_HISTORY, /* of event_id, oldest first, since `since_ms` */
    QUERY_ANALYTICS,         /* of event_id: per block and hour; see store/query.h */
    QUERY_HOLD_COUNT,        /* active holds of event_id: one row {count} */
    QUERY_USERS,             /* of the organization, with user_id: one row {user_id, disabled, created_at} */
    QUERY_DEAD_LETTERS,      /* newest first; nil organization: all; see store/query.h */
    QUERY_KIND_COUNT
};

struct store_query {
    struct list node; /* the store's, while it has the query */
    enum query_kind kind;
    struct uuid org_id; /* always */
    /* Filters; nil, NULL or 0: not set */
    struct uuid entity_id, seat_id, event_id, user_id, checkout_id;
    const char *action; /* audit action */
    const char *status; /* checkout state */
    int64_t since_ms;
    int64_t after; /* cursor: rows after this one, as `next` of the page before; 0: from the start */
    int32_t limit;
    void (*on_done)(struct store_query *query);
    void *context;
    /* Filled in: */
    enum err err;
    struct buf rows; /* owned by the query's owner: a JSON array of objects */
    int32_t row_count;
    int64_t next; /* cursor for the next page, or 0 */
};

enum err store_query(struct store *store, struct store_query *query) MUST_CHECK;

/* ---- Start, health, proof ---- */

/* Calls in this order: the place in the change feed to follow from (what is loaded may be newer), organizations, users, events each followed by its
 * layout (blocks, then the document, then seats in layout order, then per-block
 * totals of holds ever made), active holds, checkouts that are open or owe a
 * refund. What is passed is borrowed for the call. An error stops the load. */
struct store_loader {
    enum err (*on_position)(void *context,
                            const struct feed_position *position); /* NULL: nobody will follow */
    enum err (*on_org)(void *context, const struct org_row *org);
    enum err (*on_user)(void *context, const struct user_row *user);
    enum err (*on_event)(void *context, const struct event_row *event);
    enum err (*on_layout)(void *context, const struct uuid *event_id, const char *document,
                          const struct block_row *blocks, int32_t block_count, int64_t holds_ever);
    enum err (*on_seat)(void *context, const struct seat_row *seat);
    enum err (*on_hold)(void *context, const struct hold_row *hold);
    enum err (*on_checkout)(void *context, const struct checkout_row *checkout);
};
enum err store_load(struct store *store, const struct store_loader *loader, void *context) MUST_CHECK;

int store_fd(struct store *store);         /* readable when store_poll() has something to do */
void store_poll(struct store *store);      /* runs the callbacks that are due */
bool store_is_up(struct store *store);     /* any thread: did the last write or probe succeed */
int64_t store_now_ms(struct store *store); /* the store's clock */

/* Walks the whole store and proves the promises; calls back once per check with
 * the number of rows that break it (0: it holds) and one example. */
enum err store_verify(struct store *store,
                      void (*on_check)(void *context, const char *claim, int64_t broken, const char *example),
                      void *context) MUST_CHECK;

/* ---- Opening ---- */

struct store_options {
    bool read_only;  /* for verify: no migration, no lock */
    bool no_migrate; /* fail with ERR_STORE_OPEN if migrations are due */
};

/* url: "sqlite:PATH" or "postgres://…" as libpq takes it. On failure `why` says in one sentence what is wrong. */
enum err store_open(const char *url, const struct store_options *options, struct store **out, char *why,
                    size_t why_size) MUST_CHECK;
void store_close(struct store *store); /* waits for what was submitted; NULL is fine */

/* Applies what is due. On success says how many were applied and the version reached. */
enum err store_migrate(const char *url, int *applied, int *version, char *why, size_t why_size) MUST_CHECK;

#endif
