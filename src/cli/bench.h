/* SPDX-License-Identifier: Apache-2.0
 * What the parts of `holdfast bench` share: seats to hold, whom to hold them
 * for, and what came of it. One thread. */
#ifndef HOLDFAST_CLI_BENCH_H
#define HOLDFAST_CLI_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/uuid.h"

enum {
    BENCH_ID_SIZE = UUID_TEXT_SIZE - 1,
    BENCH_EVENT_COUNT_MAX = 32,
    BENCH_LATENCY_STEP_US = 10,
    BENCH_LATENCY_STEP_COUNT = 200000, /* up to two seconds */
};

struct bench_seat {
    int32_t event;
    int32_t index;          /* in the event's layout order */
    char id[BENCH_ID_SIZE]; /* not NUL ended */
};

struct bench_load {
    const char *host; /* numeric */
    uint16_t port;
    int connection_count;
    int64_t
        rate; /* requests due a second, however long answers take; 0: as many as the connections bring about */
    int reader_count; /* streams of the first event, read meanwhile */
    int64_t seconds;
    char events[BENCH_EVENT_COUNT_MAX][BENCH_ID_SIZE];
    int event_count;
    struct bench_seat *seats;
    int64_t seat_count;
    int64_t seat_capacity;
    char **tokens; /* one for each connection, then one for each reader */
};

struct bench_result {
    int64_t held_count;    /* 201 */
    int64_t refused_count; /* other 2xx, and 4xx */
    int64_t failed_count;  /* 5xx, and connections that broke */
    int status_example;    /* the first that was not 201, or 0 */
    int64_t elapsed_us;
    bool seats_ran_out;
    int64_t latency_max_us;
    uint32_t *latencies;   /* BENCH_LATENCY_STEP_COUNT + 1 */
    struct bench_lag *lag; /* NULL: there were no readers */
};

/* What the readers saw: a seat's way from the moment its reserve was due to the frame that shows it. */
struct bench_lag {
    int64_t change_count;  /* seats held while the readers watched */
    int64_t missing_count; /* of change_count × readers: not seen by the end */
    int64_t broken_count;  /* readers whose stream ended */
    int64_t max_us;
    uint32_t steps[BENCH_LATENCY_STEP_COUNT + 1];
};

/* ---- bench_client.c ---- */

bool bench_drive(const struct bench_load *load, struct bench_result *result, char *why,
                 size_t why_size) MUST_CHECK;
/* A connected socket that does not block, or −1 and errno. */
int bench_connect(const struct bench_load *load);

/* ---- bench_steps.c: how often something took how long, in steps of BENCH_LATENCY_STEP_US ---- */

void bench_steps_add(uint32_t *steps, int64_t us);
/* What `share` (0 … 1) of them did not exceed; `max_us` is the longest. */
int64_t bench_steps_share_us(const uint32_t *steps, int64_t max_us, double share);

/* ---- bench_readers.c ---- */

struct bench_readers;
/* Opens the streams and waits until each has had its snapshot. NULL: see `why`. */
struct bench_readers *bench_readers_open(const struct bench_load *load, char *why,
                                         size_t why_size) MUST_CHECK;
void bench_readers_close(struct bench_readers *readers); /* NULL is fine */
/* To be polled for reading; then bench_readers_turn() takes what is there. */
int bench_readers_fd(const struct bench_readers *readers);
void bench_readers_turn(struct bench_readers *readers);
/* A seat was asked for at that time; and it was given. */
void bench_readers_asked(struct bench_readers *readers, const struct bench_seat *seat, int64_t due_us);
void bench_readers_held(struct bench_readers *readers, const struct bench_seat *seat);
/* Reads on until nobody lacks anything, or nothing comes any more; transfers what was seen. */
struct bench_lag *bench_readers_finish(struct bench_readers *readers);

/* ---- bench_server.c ---- */

struct bench_server {
    char directory[256];
    char store_url[320];
    pid_t pid; /* 0: none */
    char host[64];
    uint16_t port;
    struct uuid org_id;
};

/* Fills a temporary store with `event_count` events of 100,000 seats. */
bool bench_server_fill(struct bench_server *server, int event_count, char *why, size_t why_size) MUST_CHECK;
/* Starts this binary's `serve` on it, in a process of its own. */
bool bench_server_start(struct bench_server *server, char *why, size_t why_size) MUST_CHECK;
/* Asks it to end and waits. Safe to call twice. */
void bench_server_stop(struct bench_server *server);
void bench_server_remove(struct bench_server *server);

#endif
