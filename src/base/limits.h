/* SPDX-License-Identifier: Apache-2.0
 * Every bound of the system, in one place. */
#ifndef HOLDFAST_BASE_LIMITS_H
#define HOLDFAST_BASE_LIMITS_H

/* Limits of waiting that a busy machine may reach by itself. A build for the sanitizers is several times slower, and so are
 * its limits; nothing else about it differs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PATIENCE = 4 };
#else
enum { PATIENCE = 1 };
#endif

enum {
    /* Edge */
    BODY_SIZE_MAX = 64 * 1024,
    LAYOUT_BODY_SIZE_MAX = 32 * 1024 * 1024,
    HEADER_SIZE_MAX = 16 * 1024,
    CONNECTION_COUNT_MAX = 20000,
    CONNECTION_IDLE_SECONDS = 60, /* no request begun */
    REQUEST_RECEIVE_SECONDS = 30, /* a request begun, its body not complete */
    TEXT_SIZE_MAX = 255,          /* names, labels, cart tokens, in characters */
    NOTES_SIZE_MAX = 2000,
    IDEMPOTENCY_KEY_SIZE_MAX = 255,
    IDEMPOTENCY_HOURS = 24,
    TOKEN_SIZE_MAX = 4096,
    TOKEN_CACHE_COUNT = 65536,

    /* Catalogue */
    EVENT_SEAT_COUNT_MAX = 100000,
    EVENT_BLOCK_COUNT_MAX = 2000,
    BLOCK_ROW_COUNT_MAX = 2000,
    ROW_SEAT_COUNT_MAX = 2000,
    HOLD_SEAT_COUNT_MAX = 50, /* seats in one request */
    CHECKOUT_HOLD_COUNT_MAX = 1000,
    ADMIN_ID_COUNT_MAX = 1000, /* ids in one admin request that fits the body limit */

    /* Lane */
    INBOX_COUNT_MAX = 32768,
    WAITING_COUNT_MAX = 32768, /* deferred until an uncommitted seat is settled */
    COMMAND_WAIT_MS_MAX = 2000 * PATIENCE,
    TURN_COMMAND_COUNT_MAX = 512,
    BATCH_COUNT_IN_FLIGHT_MAX = 4,
    EXPIRY_COUNT_PER_TURN_MAX = 512,
    RETRY_COUNT_MAX = 3,      /* 10, 20, 40 ms */
    EXPIRY_TRY_COUNT_MAX = 3, /* 10, 20, 40 s; then alarmed, and the reaper goes on */
    AUDIT_QUEUE_COUNT_MAX = 8192,
    TRANSACTION_MS_MAX = 2000 * PATIENCE,
    LAYOUT_MS_MAX = 60000 * PATIENCE, /* of a transaction that writes a layout */
    REAPER_INTERVAL_MS = 30000,
    SNAPSHOT_INTERVAL_MS = 60000,
    HOLD_EXPIRING_NOTICE_MS = 30000,
    PAYMENT_WAIT_MS_MAX = 10000, /* how long `complete` waits before it says 202 */

    /* Several nodes */
    FOREIGN_RELEASE_DELAY_MS = 1000,  /* so much later than its own are another node's holds released */
    FOLLOW_INTERVAL_MS = 100,         /* how often the change feed is asked … */
    FOLLOW_INTERVAL_NUDGED_MS = 5000, /* … and while Redis tells when there is something */
    FOLLOW_GAP_MS = 2,                /* at most every so often, however many ask for it */
    FOLLOW_COUNT_MAX = 256,           /* changes in one answer */
    PAYER_LEASE_MS = 10000,           /* a payment is its node's for so long without a sign of life */
    PAYER_RENEW_MS = 5000,
    SWEEP_INTERVAL_MS = 1000, /* how often leases and emptied events are looked at */

    /* Order by a broker */
    ORDER_REPLY_MS = 2000,    /* a caller waits so long for the answer, unless said otherwise; then 202 … */
    ORDER_SEND_MS_MAX = 1500, /* … and by then the broker has taken the command, or has not */
    ORDER_WAIT_SECONDS_MAX = 60,
    ORDER_DEADLINE_MS = 10000 * PATIENCE, /* nobody waits any more for what was not begun by then */
    ORDER_PENDING_COUNT_MAX = 32768,      /* commands under way that this node was asked for */
    ORDER_LATE_COUNT_MAX = 16384,         /* answers that came late, kept to be asked for … */
    ORDER_LATE_MS = 600000,               /* … for so long */
    ORDER_TAKEN_COUNT_MAX = 4096,         /* commands of the node's partitions that the lane has at once */
    ORDER_QUEUE_COUNT_MAX = 1024,         /* … and that wait for it, of one partition; then it is paused */
    ORDER_NOTE_MS = 100,                  /* how often a partition's next_offset is written */
    ORDER_PARTITION_COUNT = 100,          /* of a topic of commands, unless said otherwise … */
    ORDER_PARTITION_COUNT_MAX = 1000,
    ORDER_SUBSECTIONS_PER_SECTION = 10,

    /* Lists */
    PAGE_COUNT_DEFAULT = 100,
    PAGE_COUNT_MAX = 1000,

    /* Streams */
    FRAME_COALESCE_MS = 50,
    FRAME_RING_COUNT = 1024,
    FRAME_RING_SIZE_MAX = 4 * 1024 * 1024,
    STREAM_HEARTBEAT_MS = 15000,
    STREAM_STATS_MS = 1000, /* an event's statistics are told no more often */
    STREAM_READERS_PER_TURN = 256,
};

_Static_assert(TURN_COMMAND_COUNT_MAX <= INBOX_COUNT_MAX, "a turn takes from the inbox");
_Static_assert(BODY_SIZE_MAX < LAYOUT_BODY_SIZE_MAX, "a layout is the large body");
_Static_assert(PAGE_COUNT_DEFAULT <= PAGE_COUNT_MAX, "the default page is allowed");

#endif
