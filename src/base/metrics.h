/* SPDX-License-Identifier: Apache-2.0
 * Counters, gauges and histograms, in one list: what is not in the list cannot
 * be counted, and docs/metrics.md is checked against it. Values are atomics
 * that any thread may touch. Rendered in Prometheus' text format. */
#ifndef HOLDFAST_BASE_METRICS_H
#define HOLDFAST_BASE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* X(identifier, "holdfast_name", "labels without braces" or "", "help").
 * Rows that share a name stand together. */
/* clang-format off */
#define COUNTER_MAP(X)                                                                                             \
    X(HOLD_ATTEMPTS_EMBEDDED, "holdfast_hold_attempts_total", "method=\"embedded\"", "Seats asked to be held, by what filters and decides") \
    X(HOLD_ATTEMPTS_POSTGRES, "holdfast_hold_attempts_total", "method=\"postgres\"", "")                            \
    X(HOLD_ATTEMPTS_REDIS,    "holdfast_hold_attempts_total", "method=\"redis\"", "")                               \
    X(HOLD_SUCCESSES_EMBEDDED, "holdfast_hold_success_total", "method=\"embedded\"", "Holds granted")               \
    X(HOLD_SUCCESSES_POSTGRES, "holdfast_hold_success_total", "method=\"postgres\"", "")                            \
    X(HOLD_SUCCESSES_REDIS,    "holdfast_hold_success_total", "method=\"redis\"", "")                               \
    X(HOLD_CONFLICTS,       "holdfast_hold_conflict_total", "", "Seats refused because somebody has them")          \
    X(HOLD_ERRORS,          "holdfast_hold_error_total", "", "Reserves that failed on our side")                    \
    X(HOLD_EXPIRED,         "holdfast_hold_expired_total", "", "Holds that ran out")                                \
    X(HOLD_EXTENDED,        "holdfast_hold_extended_total", "", "Holds extended")                                   \
    X(HOLD_EXPIRED_BEFORE_CHECKOUT, "holdfast_hold_expired_before_checkout_total", "", "Checkouts and extensions that came too late") \
    X(HOLD_EXTENSION_FAILED,"holdfast_hold_extension_failed_total", "", "Extensions that failed on our side")       \
    X(HOLD_CONVERTED,       "holdfast_hold_converted_total", "", "Holds that became tickets")                       \
    X(RELEASES_A,           "holdfast_releases_total", "scenario=\"A\",reason=\"ttl_expired\"", "Seats released by scenario") \
    X(RELEASES_B,           "holdfast_releases_total", "scenario=\"B\",reason=\"user_cancelled\"", "")              \
    X(RELEASES_C,           "holdfast_releases_total", "scenario=\"C\",reason=\"payment_failed\"", "")              \
    X(RELEASES_D,           "holdfast_releases_total", "scenario=\"D\",reason=\"admin_override\"", "")              \
    X(RELEASE_FAILURES_A,   "holdfast_release_failures_total", "scenario=\"A\"", "Releases that failed and will be tried again") \
    X(RELEASE_FAILURES_B,   "holdfast_release_failures_total", "scenario=\"B\"", "")                                \
    X(RELEASE_FAILURES_C,   "holdfast_release_failures_total", "scenario=\"C\"", "")                                \
    X(RELEASE_FAILURES_D,   "holdfast_release_failures_total", "scenario=\"D\"", "")                                \
    X(DECIDED_HOT,          "holdfast_tier_decisions_total", "tier=\"hot\"", "Requests for seats by the tier that settled them") \
    X(DECIDED_WARM,         "holdfast_tier_decisions_total", "tier=\"warm\"", "")                                   \
    X(DECIDED_STORE,        "holdfast_tier_decisions_total", "tier=\"store\"", "")                                  \
    X(FALLBACK_TIMEOUT,     "holdfast_fallback_total", "reason=\"timeout\"", "Batches decided without Redis although there is one") \
    X(FALLBACK_ERROR,       "holdfast_fallback_total", "reason=\"error\"", "")                                      \
    X(FALLBACK_OPEN,        "holdfast_fallback_total", "reason=\"breaker_open\"", "")                               \
    X(WARM_ERRORS_TIMEOUT,  "holdfast_warm_errors_total", "kind=\"timeout\"", "Rounds to Redis that failed")        \
    X(WARM_ERRORS_CONNECTION, "holdfast_warm_errors_total", "kind=\"connection\"", "")                              \
    X(WARM_ERRORS_REPLY,    "holdfast_warm_errors_total", "kind=\"reply\"", "")                                     \
    X(LOCKS_TAKEN,          "holdfast_warm_locks_total", "result=\"taken\"", "Locks asked for in Redis")            \
    X(LOCKS_OWN,            "holdfast_warm_locks_total", "result=\"own\"", "")                                      \
    X(LOCKS_REFUSED,        "holdfast_warm_locks_total", "result=\"refused\"", "")                                  \
    X(LOCKS_TAKEN_OVER,     "holdfast_warm_locks_total", "result=\"taken_over\"", "")                               \
    X(LOCKS_TIMEOUT,        "holdfast_warm_locks_total", "result=\"timeout\"", "")                                  \
    X(BREAKER_OPENED,       "holdfast_breaker_opened_total", "", "Times the breaker opened")                        \
    X(DRIFT_MISSING,        "holdfast_registry_drift_total", "direction=\"missing\"", "Keys of Redis put right by sweeps and reconciliation") \
    X(DRIFT_ORPHANED,       "holdfast_registry_drift_total", "direction=\"orphaned\"", "")                          \
    X(FEED_CHANGES,         "holdfast_feed_changes_total", "", "Batches of the change feed that were followed")      \
    X(NUDGES,               "holdfast_nudges_total", "", "Messages of other nodes that there is something to follow") \
    X(PAYMENTS_TAKEN_OVER,  "holdfast_payments_taken_over_total", "", "Payments that another node had begun")        \
    X(DELIVERIES_DELIVERED, "holdfast_deliveries_total", "delivery=\"webhook\",result=\"delivered\"", "Domain events by what became of them") \
    X(DELIVERIES_RETRIED,   "holdfast_deliveries_total", "delivery=\"webhook\",result=\"retried\"", "")             \
    X(DELIVERIES_DEAD,      "holdfast_deliveries_total", "delivery=\"webhook\",result=\"dead\"", "")                \
    X(DELIVERIES_KAFKA_DELIVERED, "holdfast_deliveries_total", "delivery=\"kafka\",result=\"delivered\"", "")       \
    X(DELIVERIES_KAFKA_RETRIED, "holdfast_deliveries_total", "delivery=\"kafka\",result=\"retried\"", "")           \
    X(DELIVERIES_KAFKA_DEAD, "holdfast_deliveries_total", "delivery=\"kafka\",result=\"dead\"", "")                 \
    X(ORDER_SENT,           "holdfast_order_sent_total", "result=\"stored\"", "Commands sent to the broker by what became of them")\
    X(ORDER_NOT_STORED,     "holdfast_order_sent_total", "result=\"not_stored\"", "")                               \
    X(ORDER_UNKNOWN,        "holdfast_order_sent_total", "result=\"unknown\"", "")                                  \
    X(ORDER_TAKEN,          "holdfast_order_taken_total", "", "Commands taken from partitions of this node")        \
    X(ORDER_REDELIVERED,    "holdfast_order_redelivered_total", "", "Commands that came again after they had been decided")\
    X(ORDER_FENCED,         "holdfast_order_fenced_total", "", "Commands dropped because their partition had gone to another node")\
    X(ORDER_DEAD_LETTERS,   "holdfast_order_dead_letters_total", "", "Commands that could not be understood and went to the dead letters")\
    X(ORDER_REPLIES,        "holdfast_order_replies_total", "", "Answers sent to the node that had asked")          \
    X(ORDER_PENDING_ANSWERS, "holdfast_order_pending_answers_total", "", "Requests answered with 202 because their reply was not there in time")\
    X(ORDER_LATE,           "holdfast_order_late_total", "", "Reserves refused because their deadline had passed")  \
    X(ORDER_RETRIES,        "holdfast_order_retries_total", "", "Commands tried again because the store had not taken them")\
    X(BROKER_ERRORS_CONNECTION, "holdfast_broker_errors_total", "kind=\"connection\"", "Errors of the broker")      \
    X(BROKER_ERRORS_CONSUME, "holdfast_broker_errors_total", "kind=\"consume\"", "")                                \
    X(BROKER_ERRORS_COMMIT, "holdfast_broker_errors_total", "kind=\"commit\"", "")                                  \
    X(BROKER_ERRORS_PRODUCE, "holdfast_broker_errors_total", "kind=\"produce\"", "")                                \
    X(BROKER_ERRORS_FATAL,  "holdfast_broker_errors_total", "kind=\"fatal\"", "")                                   \
    X(BROKER_ASSIGNED,      "holdfast_broker_partitions_total", "change=\"assigned\"", "Partitions that came to this node or left it")\
    X(BROKER_REVOKED,       "holdfast_broker_partitions_total", "change=\"revoked\"", "")                           \
    X(BROKER_LOST,          "holdfast_broker_partitions_total", "change=\"lost\"", "")                              \
    X(RELEASE_DOUBLE,       "holdfast_release_double_total", "", "Releases of holds that had ended already")        \
    X(RELEASE_EXHAUSTED,    "holdfast_release_retries_exhausted_total", "", "Expiries that failed three times and are left to the reaper") \
    X(REAPER_RUNS,          "holdfast_reaper_runs_total", "", "Reaper sweeps")                                      \
    X(REAPER_FOUND,         "holdfast_reaper_found_total", "", "Overdue holds found by the reaper")                 \
    X(REAPER_RELEASED,      "holdfast_reaper_released_total", "", "Holds released after the reaper found them")     \
    X(REAPER_FAILED,        "holdfast_reaper_failed_total", "", "Sweeps or releases by the reaper that failed")     \
    X(CHECKOUTS_STARTED,    "holdfast_checkouts_total", "outcome=\"started\"", "Checkouts by what happened to them") \
    X(CHECKOUTS_COMPLETED,  "holdfast_checkouts_total", "outcome=\"completed\"", "")                                \
    X(CHECKOUTS_CANCELLED,  "holdfast_checkouts_total", "outcome=\"cancelled\"", "")                                \
    X(CHECKOUTS_FAILED,     "holdfast_checkouts_total", "outcome=\"failed\"", "")                                   \
    X(CHECKOUTS_EXPIRED,    "holdfast_checkouts_total", "outcome=\"expired\"", "")                                  \
    X(CHECKOUTS_REFUNDED,   "holdfast_checkouts_total", "outcome=\"refunded\"", "")                                 \
    X(PAYMENTS_UNKNOWN,     "holdfast_payments_unknown_total", "", "Payment attempts with no known outcome")        \
    X(PAYMENTS_LATE,        "holdfast_payments_late_total", "", "Money that arrived after its checkout had failed") \
    X(STORE_BATCHES,        "holdfast_store_batches_total", "result=\"committed\"", "Batches by result")            \
    X(STORE_BATCHES_FAILED, "holdfast_store_batches_total", "result=\"failed\"", "")                                \
    X(STORE_BATCHES_UNKNOWN,"holdfast_store_batches_total", "result=\"unknown\"", "")                               \
    X(STORE_MISSES,         "holdfast_store_misses_total", "", "Compare-and-sets that found another version")       \
    X(STORE_BAD_UNITS,      "holdfast_store_bad_units_total", "", "Commands the store could not write")             \
    X(RETRIES,              "holdfast_command_retries_total", "", "Commands decided again after a miss")            \
    X(AUDIT_DROPPED,        "holdfast_audit_dropped_total", "", "Audit rows of failed reserves dropped because the queue was full") \
    X(OVERLOADED,           "holdfast_overloaded_total", "", "Commands refused because a queue was full or the wait too long") \
    X(IDEMPOTENT_REPLAYS,   "holdfast_idempotent_replays_total", "", "Answers given again for an Idempotency-Key")  \
    X(HTTP_2XX,             "holdfast_http_responses_total", "class=\"2xx\"", "Answers by status class")            \
    X(HTTP_3XX,             "holdfast_http_responses_total", "class=\"3xx\"", "")                                   \
    X(HTTP_4XX,             "holdfast_http_responses_total", "class=\"4xx\"", "")                                   \
    X(HTTP_5XX,             "holdfast_http_responses_total", "class=\"5xx\"", "")                                   \
    X(HTTP_TIMEOUTS,        "holdfast_http_timeouts_total", "", "Connections closed for being idle or slow")        \
    X(STREAM_FRAMES,        "holdfast_stream_frames_total", "", "Frames published to event streams")                \
    X(STREAM_DROPPED,       "holdfast_stream_dropped_total", "", "Stream readers dropped for being slow")

#define GAUGE_MAP(X)                                                                                               \
    X(HOLDS_ACTIVE,         "holdfast_holds_active", "", "Active holds")                                            \
    X(CHECKOUTS_OPEN,       "holdfast_checkouts_open", "", "Checkouts that are pending or processing")              \
    X(SEATS_LOADED,         "holdfast_seats_loaded", "", "Seats in memory")                                         \
    X(QUEUE_DEPTH,          "holdfast_queue_depth", "queue=\"inbox\"", "Commands waiting")                          \
    X(QUEUE_WAITING,        "holdfast_queue_depth", "queue=\"waiting\"", "")                                        \
    X(QUEUE_STORE,          "holdfast_queue_depth", "queue=\"store\"", "")                                          \
    X(CONNECTIONS,          "holdfast_http_connections", "", "Open connections")                                    \
    X(STREAM_READERS,       "holdfast_stream_readers", "", "Open event streams")                                    \
    X(REAPER_LAST_RUN,      "holdfast_reaper_last_run_timestamp_seconds", "", "When the reaper last finished a sweep") \
    X(HOLDS_OVERDUE,        "holdfast_holds_overdue", "", "Active holds past their release time")                   \
    X(STORE_UP,             "holdfast_store_up", "", "1 while the last batch or probe of the store succeeded")      \
    X(WARM_UP,              "holdfast_warm_up", "", "1 while Redis filters; 0 while it is away, or there is none")  \
    X(BREAKER_STATE,        "holdfast_breaker_state", "", "0 closed, 1 half open, 2 open, -1 without Redis")         \
    X(DELIVERY_LEADER,      "holdfast_delivery_leader", "delivery=\"webhook\"", "1 while this node delivers domain events") \
    X(DELIVERY_KAFKA_LEADER, "holdfast_delivery_leader", "delivery=\"kafka\"", "")                                  \
    X(DELIVERY_BACKLOG,     "holdfast_delivery_backlog_seconds", "delivery=\"webhook\"", "Age of the oldest domain event that waits") \
    X(DELIVERY_KAFKA_BACKLOG, "holdfast_delivery_backlog_seconds", "delivery=\"kafka\"", "")                        \
    X(ORDER_PENDING,        "holdfast_order_pending", "", "Commands sent to the broker that wait for their reply")  \
    X(ORDER_PARTITIONS,     "holdfast_order_partitions", "", "Partitions that this node has")                       \
    X(ORDER_LAG,            "holdfast_order_lag", "", "Commands in the partitions of this node that are not committed yet")\
    X(BROKER_UP,            "holdfast_broker_up", "", "1 while a broker answers, 0 while none does, -1 without Kafka")\
    X(START_TIME,           "holdfast_start_time_seconds", "", "When this process started")

/* Histograms of seconds, but for sizes. */
#define HISTOGRAM_MAP(X)                                                                                           \
    X(BATCH_SIZE,           "holdfast_batch_size", COUNTS, "Commands in a batch")                                   \
    X(COMMIT_SECONDS,       "holdfast_commit_seconds", SECONDS, "Time to commit a batch")                           \
    X(COMMAND_SECONDS,      "holdfast_command_seconds", SECONDS, "Time from a command's arrival to its answer")     \
    X(REQUEST_SECONDS,      "holdfast_http_request_seconds", SECONDS, "Time from a request's headers to its answer") \
    X(WARM_SECONDS,         "holdfast_warm_round_seconds", SECONDS, "Time of a round trip to Redis")                 \
    X(INVALIDATION_SECONDS, "holdfast_invalidation_seconds", SECONDS, "Time from another node's commit until memory here shows it") \
    X(DELIVERY_SECONDS,     "holdfast_delivery_lag_seconds", LIFETIMES, "Age of a domain event when it was delivered") \
    X(ORDER_PRODUCE_SECONDS, "holdfast_order_produce_seconds", SECONDS, "Time until the broker had stored a command")\
    X(ORDER_COMMIT_SECONDS, "holdfast_order_commit_seconds", SECONDS, "Time to commit offsets to the broker")       \
    X(ORDER_ROUND_SECONDS,  "holdfast_order_round_seconds", SECONDS, "Time from sending a command to its reply")    \
    X(HOLD_TO_RELEASE_SECONDS, "holdfast_hold_to_release_seconds", LIFETIMES, "Age of a hold when it was released") \
    X(REAPER_SECONDS,       "holdfast_reaper_run_seconds", SECONDS, "Duration of a reaper sweep")                   \
    X(PAYMENT_SECONDS,      "holdfast_payment_seconds", SECONDS, "Time for the gateway to answer")
/* clang-format on */

enum counter {
#define METRIC_ENUM(id, ...) COUNTER_##id,
    COUNTER_MAP(METRIC_ENUM)
#undef METRIC_ENUM
        COUNTER_COUNT
};
enum gauge {
#define METRIC_ENUM(id, ...) GAUGE_##id,
    GAUGE_MAP(METRIC_ENUM)
#undef METRIC_ENUM
        GAUGE_COUNT
};
enum histogram {
#define METRIC_ENUM(id, ...) HISTOGRAM_##id,
    HISTOGRAM_MAP(METRIC_ENUM)
#undef METRIC_ENUM
        HISTOGRAM_COUNT
};

void counter_add(enum counter counter, uint64_t by);
uint64_t counter_get(enum counter counter);
/* All rows of a name together, whatever their labels; zero if there are none. */
uint64_t counter_sum(const char *name);
void gauge_set(enum gauge gauge, int64_t value);
void gauge_add(enum gauge gauge, int64_t by);
int64_t gauge_get(enum gauge gauge);
void histogram_observe(enum histogram histogram, double value);

enum { HISTOGRAM_BUCKET_COUNT_MAX = 21 };
struct histogram_bucket {
    double upper;   /* the last one's is infinite */
    uint64_t count; /* of all values up to it */
};
/* How many buckets it has. Counts never fall from one bucket to the next. */
int histogram_read(enum histogram histogram, struct histogram_bucket out[HISTOGRAM_BUCKET_COUNT_MAX]);
void metrics_render(struct buf *out);

#endif
