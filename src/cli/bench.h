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
    char id[BENCH_ID_SIZE]; /* not NUL ended */
};

struct bench_load {
    const char *host; /* numeric */
    uint16_t port;
    int connection_count;
    int64_t seconds;
    char events[BENCH_EVENT_COUNT_MAX][BENCH_ID_SIZE];
    int event_count;
    struct bench_seat *seats;
    int64_t seat_count;
    int64_t seat_capacity;
    char **tokens; /* one for each connection */
};

struct bench_result {
    int64_t held_count;    /* 201 */
    int64_t refused_count; /* other 2xx, and 4xx */
    int64_t failed_count;  /* 5xx, and connections that broke */
    int status_example;    /* the first that was not 201, or 0 */
    int64_t elapsed_us;
    bool seats_ran_out;
    int64_t latency_max_us;
    uint32_t *latencies; /* BENCH_LATENCY_STEP_COUNT + 1 */
};

/* ---- bench_client.c ---- */

bool bench_drive(const struct bench_load *load, struct bench_result *result, char *why,
                 size_t why_size) MUST_CHECK;
/* The latency that `share` (0 … 1) of the answers did not exceed. */
int64_t bench_latency_us(const struct bench_result *result, double share);

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
