/* SPDX-License-Identifier: Apache-2.0
 * Inside the lane: its state, and what its files offer each other. A command
 * passes through: keys.c (was it answered before?) → decide_*.c (rules on hot
 * rows) → step.c (what it writes) → batch.c (commit, then hot, answer, news). */
#ifndef HOLDFAST_LANE_LANE_INT_H
#define HOLDFAST_LANE_LANE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/queue.h"
#include "base/rng.h"
#include "hot/hot.h"
#include "lane/follow.h"
#include "lane/lane.h"

/* What became of a command that was looked at. */
enum decision {
    DECIDED,    /* answered, or in the batch: the lane will answer it */
    DEFERRED,   /* rests on something uncommitted: look again after a commit */
    LOOKING_UP, /* the store was asked for something that is not in memory */
    IN_LINE,    /* others of its partition are in front of it (line.c) */
};

struct lane_batch {
    struct store_batch store;
    struct list node; /* in lane.spare_batches, or lane.at_store while its outcome is not known */
    int64_t number;   /* in the order they were given to the store */
    struct lane *lane;
    struct list steps;
    struct warm_round round; /* its locks in Redis */
    bool filtering;          /* the round is under way */
    int64_t submitted_us;
    int64_t resolve_at_ms; /* while its outcome is unknown */
    bool told;             /* its commands were told that the outcome is unknown */
};

/* One unit of a batch: what it writes, for whom, and what it touches. */
struct step {
    struct store_unit unit;
    struct list node; /* in lane_batch.steps */
    struct lane_batch *batch;
    struct command *command; /* to be answered when committed; or NULL */
    struct seat_job *job;    /* whose chunk this is; or NULL */
    struct seat_write **seats_end;
    struct hold_write **holds_end;
    struct checkout_write **checkouts_end;
    struct ticket_write **tickets_end;
    struct audit_write **audits_end;
    struct user_pending *users;
    struct block_pending *blocks;
    struct event_touch *events;
    struct hot_event *exclusive; /* its gate is ours until we are done */
    struct seatmap *new_map;     /* LAYOUT_PUT: put in place at the commit; owns */
    enum end_reason release;     /* counts as a release of this kind when it fails */
    struct command *keyed;       /* a waiting `complete` whose key this step writes */
    bool waits_for_payment;      /* command is answered by the payment, not by the commit */
    bool empties_event;          /* EVENT_PATCH: the event is no longer open */
    bool by_reaper;              /* the reaper found what this releases */
    struct warm_lock *locks;     /* of the holds it makes, in the batch's round */
    int32_t lock_count;
    bool takes_over; /* a payment that another node began: ask the gateway once more */
};

struct step_seat { /* a seat_write, and where it is in memory */
    struct seat_write write;
    struct hot_event *event;
    enum end_reason reason; /* why it became free */
};

struct step_checkout { /* a checkout_write, what it was before, and how many of its holds are left */
    struct checkout_write write;
    enum checkout_state before;
    enum refund_state refund_before;
    int32_t left_count;
};

struct payment_waiter {        /* a `complete` that waits for the gateway's answer */
    struct list checkout_node; /* in hot_checkout.waiters */
    struct list node;          /* in lane.paying, oldest first */
    struct command *command;
    int64_t until_ms;
};

struct user_pending {
    struct user_pending *next;
    struct hot_user *user;
    int32_t count; /* new holds */
    int32_t more;  /* of those, the ones that add to hold_count */
};

struct block_pending {
    struct block_pending *next;
    struct hot_event *event;
    int32_t block;
    int32_t count;
};

struct event_touch {
    struct event_touch *next;
    struct hot_event *event;
};

/* Work over many seats, done in chunks between other commands: an admin's release or block,
 * or the emptying of an event that is no longer open. */
enum seat_job_kind { JOB_RELEASE, JOB_BLOCK, JOB_UNBLOCK };

struct seat_job {
    struct list node;
    struct arena arena;
    enum seat_job_kind kind;
    struct command *command; /* answered at the end; or NULL */
    struct hot_event *event; /* whose seats; NULL: holds of any event */
    struct uuid org_id;
    struct uuid *ids; /* what is left: holds (JOB_RELEASE) or seats */
    int32_t count;
    struct uuid *later; /* of those, the ones that are not in the chunk under way */
    int32_t later_count;
    int32_t hold_count; /* of the answer, without the chunk under way … */
    int32_t seat_id_count;
    int32_t failure_count;
    int32_t total_count;  /* as many as there ever were: bounds the answer */
    int64_t retry_at_ms;  /* after a failure of the store */
    int64_t fresh_needed; /* after a miss: see follow.h */
    const char *notes;
    enum end_reason reason;
    bool in_flight;     /* a chunk is not committed yet */
    bool empties_event; /* must end, whatever happens */
};

struct lane {
    struct lane_config config;
    struct lane_router router; /* all NULL: this node decides everything itself */
    int64_t router_next_ms;
    struct hot *hot;
    struct rng rng;
    int64_t now_ms;
    bool shared; /* other nodes write to the store too */
    struct follow follow;
    struct queue calls; /* struct lane_call */
    int64_t sweep_at_ms;
    struct list registry_runs; /* the first is under way */
    int64_t registry_at_ms;    /* when Redis is swept next */
    bool registry_failed;      /* a run since `rebuilding` began did not get to its end */
    bool rebuilding;
    int32_t filtering_count; /* batches whose locks are being asked for */
    int64_t occupancy_at_ms;
    int64_t warm_next_us; /* when the warm tier wants its turn, monotonic */

    struct queue inbox;
    struct list ready;    /* to be decided, in order of arrival */
    struct list waiting;  /* deferred */
    struct list retrying; /* missed, or must not be lost: again at retry_at_ms */
    struct list paying;   /* struct payment_waiter */
    int32_t ready_count;
    _Atomic int32_t backlog; /* ready_count at the end of the last turn: any thread may read it */
    int32_t waiting_count;
    bool progress;          /* something was committed since the waiting were last looked at */
    struct map keys;        /* Idempotency-Keys under way: hash → command */
    struct map registering; /* users whose row is in an uncommitted batch */
    struct map settling;    /* ended checkouts that an uncommitted batch changes: late money */
    int64_t settled_count;  /* how often such a change came to its end */
    int32_t lookup_count;   /* lookups of commands that the store has not answered yet */

    struct lane_batch *gathering;
    int32_t in_flight;
    struct list at_store; /* of those, the ones that the store has, oldest first */
    int64_t batch_number;
    int32_t unknown_count; /* of those, the ones whose outcome was lost */
    struct list unknown;   /* batches whose outcome is not known: store_batch.node */
    struct list spare_batches;

    struct list due_holds;     /* wheel_timer of hot_hold */
    struct list due_checkouts; /* wheel_timer of hot_checkout */
    struct list jobs;
    struct list failures; /* failed reserves to be audited with the next batch */
    int32_t failure_count;

    int64_t reaper_at_ms;
    int64_t reaper_started_us;
    bool reaping;
    struct store_lookup reaper_lookup;
    struct arena reaper_arena;
    int64_t snapshot_at_ms;
    int64_t purge_at_ms;

    int64_t drain_ms; /* how long it may take to stop */
    pthread_t thread;
    bool started;
    _Atomic bool stopping;
};

/* ---- lane.c ---- */
void lane_reply(struct lane *lane, struct command *command); /* gives it back; result.err is set */
void lane_refuse(struct lane *lane, struct command *command, enum err err); /* nothing was done; try later */
void lane_make_ready(struct lane *lane, struct command *command);           /* decided again, in turn */
void lane_look_at(struct lane *lane, struct command *command);              /* decides it now, or defers it */
void lane_retry(struct lane *lane, struct command *command, int64_t delay_ms);
struct uuid lane_make_id(struct lane *lane);
/* How holds are made just now, for the metrics: an offset from …_EMBEDDED. */
int lane_method(const struct lane *lane);

/* ---- route.c: commands that another node decides ---- */
bool route_is_elsewhere(const struct lane *lane, const struct command *command);
/* is_here: it cannot be placed, and is decided by this node after all. */
enum decision route_send(struct lane *lane, struct command *command, bool *is_here);
enum decision route_settled(struct lane *lane, struct command *command); /* its answer came */
void route_leave_pending(struct command *command); /* the result of one whose answer has not come yet */
void route_event_seen(struct lane *lane, const struct event_row *row);
enum decision decide_answer_get(struct lane *lane, struct command *command);

/* ---- keys.c: a command with an Idempotency-Key ---- */
/* Answers with a result that was packed, here or elsewhere. */
enum decision answer_packed(struct lane *lane, struct command *command, const void *data, size_t size);
/* Was it granted a hold, which then has its id? True: `decision` is what came of asking. False: there is none. */
bool answer_by_hold(struct lane *lane, struct command *command, enum decision *decision);
enum decision key_check(struct lane *lane, struct command *command, bool *fresh);
void key_done(struct lane *lane, struct command *command);
struct key_write *key_write(struct step *step, struct command *command);

/* ---- line.c: the order of a partition's commands; others have none, and never wait ---- */
void line_join(struct command *command); /* it asks for its key: nobody passes it */
/* It had its turn, and waits for something uncommitted. */
void line_wait_for_seats(struct lane *lane, struct command *command);
/* True: somebody is in front. It is looked at again when they have gone. */
bool line_must_wait(struct lane *lane, struct command *command);
void line_leave(struct lane *lane, struct command *command); /* it is decided, or not in anybody's way */

/* ---- lookup.c ---- */
/* The finished lookup, or NULL: then it was started and the caller returns LOOKING_UP. */
struct store_lookup *lane_lookup(struct lane *lane, struct command *command, enum lookup_kind kind,
                                 const struct uuid *id);
void lane_lookups_forget(struct command *command);
/* An ended checkout was changed since the store was asked: what it said may be history. */
bool lane_lookup_is_stale(const struct lane *lane, const struct store_lookup *lookup);

/* ---- step.c ---- */
struct step *step_begin(struct lane *lane, struct command *command);
struct step_seat *step_seat(struct step *step, struct hot_event *event, int32_t index, enum seat_state to);
struct hold_write *step_hold(struct step *step, struct hot_hold *hold); /* its row, to be changed */
struct hold_write *step_hold_new(struct step *step, const struct hold_row *row, const struct uuid *block_id);
struct checkout_row *step_checkout(struct step *step, struct hot_checkout *checkout); /* one per step */
struct checkout_row *step_checkout_new(struct step *step, const struct checkout_row *row);
struct checkout_row *step_checkout_ended(struct step *step, const struct checkout_row *row);
struct ticket_row *step_ticket(struct step *step, const struct hold_row *hold);
void step_user_seen(struct step *step, const struct uuid *org_id, const struct uuid *user_id);
void step_user_change(struct step *step, const struct uuid *org_id, const struct uuid *user_id,
                      bool disabled);
struct event_row *step_event(struct step *step, const struct event_row *row, bool insert);
void step_check_event(struct step *step,
                      const struct hot_event *event); /* it must not have changed elsewhere */
void step_claim_block(struct step *step, const struct hot_event *event, int32_t block, int32_t count);
void step_pend_user(struct step *step, struct hot_user *user, int32_t count, int32_t more);
void step_pend_block(struct step *step, struct hot_event *event, int32_t block, int32_t count);
void step_touch_event(struct step *step, struct hot_event *event);
const char *step_printf(struct step *step, const char *format, ...) PRINTF_LIKE(2, 3);
struct arena *step_arena(struct step *step);
bool step_names_its_hold(const struct step *step); /* its command was granted a hold with its own id */
void step_submit(struct step *step);               /* marks what it touches; it will be written */
/* HOLD_BEST looks elsewhere next time; false for others, and if it did so already. */
bool step_avoid_seat(struct step *step, const struct uuid *seat_id);
void step_unmark(struct step *step); /* when its outcome is known */

/* ---- apply.c ---- */
/* What a command that was done before changed is told once more, as it is now: Redis and streams. */
void apply_again(struct lane *lane, const struct command *command);
/* Committed: hot and news. `step` is NULL for what came by the change feed; its seats are step_seats too. */
void apply_unit(struct lane *lane, const struct store_unit *unit, struct step *step);
/* The event itself, its layout or its prices are others now: whoever watches starts from a snapshot. */
void apply_tell_watchers(struct lane *lane, const struct uuid *event_id);

/* ---- filter.c: locks in Redis before the store is asked, registry keys after it answered ---- */
bool filter_ask(struct lane *lane, struct lane_batch *batch); /* true: batch_to_store() when it is answered */
void filter_committed(struct lane *lane, struct lane_batch *batch); /* what its units changed */
bool filter_lock_is_old(const struct lane *lane, const struct warm_lock *lock);
void filter_give_back(struct lane *lane, struct step *step); /* its locks: nothing was written */
void filter_turn(struct lane *lane);
/* A seat's keys, as it is now; `row` is a hold that was the seat's once. */
void filter_again(struct lane *lane, struct hot_event *event, int32_t index, const struct hold_row *row,
                  struct arena *arena);
void filter_place(struct warm_write *write, const struct hot_event *event, int32_t index);
void filter_hold(struct warm_write *write, const struct hold_row *row);

/* ---- batch.c ---- */
void batch_to_store(struct lane *lane, struct lane_batch *batch);
struct lane_batch *batch_gathering(struct lane *lane);
bool batch_has_room(struct lane *lane);
bool batch_has_room_for_commands(struct lane *lane);       /* leaves some to what nobody asked for */
void batch_withdraw(struct lane *lane, struct step *step); /* one that was not submitted yet */
void batch_submit(struct lane *lane);
void batch_resolve_due(struct lane *lane);
void batch_free(struct lane_batch *batch);

/* ---- answer.c ---- */
/* No writes but its key. DEFERRED if the answer rests on something that another node may have changed. */
enum decision lane_answer(struct lane *lane, struct command *command, enum err err);
void lane_answer_now(struct lane *lane, struct command *command, enum err err);
void answer_add_hold(struct command *command, struct hot_event *event, int32_t index,
                     const struct hold_row *row, int32_t count_max);
void answer_checkout(struct lane *lane, struct command *command, const struct checkout_row *row,
                     const struct hold_row *holds, int32_t hold_count, const struct ticket_row *tickets,
                     int32_t ticket_count);
void answer_hot_checkout(struct lane *lane, struct command *command, struct hot_checkout *checkout);
struct seat_failure *answer_add_failure(struct command *command, const struct uuid *id, enum err err,
                                        int32_t count_max);
/* Single seats that taking `seats` would strand go into the result. `bits`: what counts as free. */
bool answer_stranded(struct command *command, const struct hot_event *event, const uint64_t *bits,
                     int32_t *seats, int32_t count);
bool lane_may_act_for(const struct command *command, const struct uuid *owner_id);

/* ---- decide_*.c, reads.c: one per kind of command ---- */
enum decision decide(struct lane *lane, struct command *command);
enum decision decide_hold_seats(struct lane *lane, struct command *command);
enum decision decide_hold_best(struct lane *lane, struct command *command);
enum decision decide_hold_extend(struct lane *lane, struct command *command);
enum decision decide_hold_release(struct lane *lane, struct command *command);
enum decision decide_checkout_start(struct lane *lane, struct command *command);
enum decision decide_checkout_complete(struct lane *lane, struct command *command);
enum decision decide_checkout_cancel(struct lane *lane, struct command *command);
enum decision decide_payment_settled(struct lane *lane, struct command *command);
enum decision decide_refund_settled(struct lane *lane, struct command *command);
enum decision decide_payment_take_over(struct lane *lane, struct command *command);
enum decision decide_org_create(struct lane *lane, struct command *command);
enum decision decide_user_patch(struct lane *lane, struct command *command);
enum decision decide_user_seen(struct lane *lane, struct command *command);
enum decision decide_event_create(struct lane *lane, struct command *command);
enum decision decide_event_patch(struct lane *lane, struct command *command);
enum decision decide_layout_put(struct lane *lane, struct command *command);
enum decision decide_block_patch(struct lane *lane, struct command *command);
enum decision decide_seats_block(struct lane *lane, struct command *command);
enum decision decide_admin_release(struct lane *lane, struct command *command);
enum decision decide_registry(struct lane *lane, struct command *command);
enum decision decide_holds_list(struct lane *lane, struct command *command);
enum decision decide_hold_get(struct lane *lane, struct command *command);
enum decision decide_checkout_get(struct lane *lane, struct command *command);
enum decision decide_sync(struct lane *lane, struct command *command);

/* ---- audit.c ---- */
struct audit_row *step_audit(struct step *step, enum audit_action action, const char *entity_type,
                             const struct uuid *entity_id);
struct audit_row *audit_hold(struct step *step, enum audit_action action, const struct hold_row *row);
struct audit_row *audit_checkout(struct step *step, enum audit_action action, const struct checkout_row *row);
void audit_failed_reserve(struct lane *lane, const struct command *command, const struct uuid *event_id,
                          const struct uuid *seat_id, enum err err);
void audit_failures_write(struct lane *lane);

/* ---- decide_catalogue.c ---- */
void gate_abandon(struct lane *lane, const struct command *command); /* it gives up waiting for its event */

/* ---- decide_release.c ---- */
struct hold_row *extend_hold(struct step *step, struct hot_hold *hold,
                             int64_t until_ms); /* hold, seat, audit */

/* ---- ending.c: how a hold ends, shared by every way it can ---- */
/* Ends the hold in this step: hold, seat, its place in a pending checkout, audit. */
void end_hold(struct step *step, struct hot_hold *hold, enum end_reason reason, enum seat_state seat_to,
              const char *notes);
/* The same where the caller writes the seat himself. */
void end_hold_keep_seat(struct step *step, struct hot_hold *hold, enum end_reason reason, const char *notes);
/* The same where the caller ends the whole checkout: the hold stays its item. */
void end_hold_with_checkout(struct step *step, struct hot_hold *hold, enum end_reason reason,
                            const char *notes);
void checkout_lose(struct step *step, struct hot_hold *hold, enum end_reason reason); /* the hold leaves it */
bool end_hold_must_wait(const struct hot_hold *hold); /* something of it is uncommitted */
void due_holds_release(struct lane *lane);            /* those whose time is up, in chunks */
void reaper_turn(struct lane *lane);
void due_hold_failed(struct lane *lane, struct step *step); /* the store did not take an expiry */
/* Another node was there first: what is still there when its change is known has its timer set again. */
void due_step_missed(struct lane *lane, struct step *step);

/* ---- jobs.c ---- */
struct seat_job *job_create(struct lane *lane, struct command *command, enum seat_job_kind kind);
void job_over_event(struct seat_job *job, struct hot_event *event); /* all holds of the event */
void jobs_turn(struct lane *lane);
void job_step_done(struct lane *lane, struct step *step, bool written);
void job_step_missed(struct lane *lane, struct step *step); /* another node was there first: look again */
void job_free(struct seat_job *job);

/* ---- payment.c ---- */
void payment_started(struct lane *lane, struct step *step); /* the pin is committed: ask the gateway */
void payment_waiters_answer(struct lane *lane, struct list *waiters, const struct step *step);
/* Another node settled it. */
void payment_waiters_decide_again(struct lane *lane, struct list *waiters, const struct checkout_row *row);
void payment_key_taken(struct lane *lane, const struct step *step);
void payments_wait_turn(struct lane *lane);                     /* those who waited long enough get 202 */
void payments_abandon(struct lane *lane);                       /* the lane ends: so does the waiting */
void due_checkouts_fail(struct lane *lane);                     /* payments past their deadline */
void due_checkout_failed(struct lane *lane, struct step *step); /* the store did not take such an end */
void payment_taken_over(struct lane *lane, struct step *step);  /* from another node: ask the gateway again */
void payment_refund(struct lane *lane, const struct checkout_row *row); /* money is owed: give it back */
void payment_resume(struct lane *lane, struct hot_checkout *checkout);  /* after a restart */

/* ---- registry.c: Redis put right ---- */
void registry_turn(struct lane *lane);
int64_t registry_next_ms(const struct lane *lane);
void registry_abandon(struct lane *lane);

/* ---- sweep.c: what another node began and may not finish ---- */
void sweep_turn(struct lane *lane);
void payer_take(const struct lane *lane, struct checkout_row *row); /* this node asks the gateway */
bool payer_is_elsewhere(const struct lane *lane, const struct checkout_row *row);

/* ---- news.c ---- */
void news_seat(struct lane *lane, const struct step_seat *seat);
void news_hold_ended(struct lane *lane, const struct hold_row *row);
void news_hold_expiring(struct lane *lane, const struct hot_hold *hold);
void news_checkout(struct lane *lane, const struct checkout_row *row);
/* Its answer came late. Readers of an event's stream hear it if result.event_id names it. */
void news_command(struct lane *lane, const struct command *command);

/* ---- result.c: results as kept with an Idempotency-Key ---- */
const void *result_pack(const struct command *command, struct arena *arena, size_t *size);
/* The answer to the command that made a hold of its own id. */
bool result_of_hold(struct lane *lane, struct command *command, const struct hold_row *row);
bool result_unpack(struct lane *lane, struct command *command, const void *data, size_t size);

/* ---- load.c ---- */
enum err lane_load(struct lane *lane, char *why, size_t why_size);

#endif
