/* SPDX-License-Identifier: Apache-2.0
 * What a hold costs in Redis: locks a batch of seats, writes it as a commit
 * would, and later releases it, against a redis-server of its own on a unix
 * socket.
 *
 *   bench_warm [--holds 200000] [--batch 256] [--blocks 200] [--order random|layout]
 *
 * Prints processor time a hold, of redis-server and of the warm tier itself. */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/rng.h"
#include "unit/warm/redis_server.h"
#include "warm/warm.h"

enum { BLOCK_SEAT_COUNT = 500, HELD_MS = 300000, DEADLINE_US = 10000000 };

struct bench {
    struct warm *warm;
    struct rng rng;
    struct uuid org_id, event_id;
    struct warm_write *seats; /* as they are written */
    int32_t *order;
    int32_t seat_count;
    int32_t batch;
    bool done;
    int64_t not_taken;
    int64_t late;
};

static double own_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The scheduler's nanoseconds: /proc/PID/stat counts in hundredths of a second. */
static double process_seconds(pid_t pid)
{
    char path[64];
    unsigned long long nanoseconds = 0;
    snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%llu", &nanoseconds) != 1)
        nanoseconds = 0;
    if (file != NULL)
        fclose(file);
    return (double)nanoseconds / 1e9;
}

static void bench_on_nudge(void *context)
{
    (void)context;
}

static void bench_turn(struct bench *bench)
{
    int64_t now_us = clock_monotonic_us(), due_us = warm_turn(bench->warm, now_us);
    int64_t wait_us = due_us - now_us;
    struct pollfd fd = {.fd = warm_fd(bench->warm), .events = POLLIN};
    if (wait_us > 0 && !bench->done)
        poll(&fd, 1, wait_us > 10000 ? 10 : (int)(wait_us / 1000 + 1));
}

static void bench_on_locked(struct warm_round *round)
{
    struct bench *bench = round->context;
    bench->done = true;
    bench->late += round->outcome != WARM_ANSWERED;
    for (int32_t i = 0; i < round->count; i++)
        bench->not_taken += round->locks[i].result != WARM_LOCK_TAKEN;
}

static void bench_on_read(struct warm_read *read)
{
    ((struct bench *)read->context)->done = true;
}

/* Waits until everything that was written was answered. */
static int64_t bench_barrier(struct bench *bench, struct arena *arena)
{
    struct warm_read read = {.kind = WARM_COUNT,
                             .org_id = bench->org_id,
                             .event_id = bench->event_id,
                             .arena = arena,
                             .on_done = bench_on_read,
                             .context = bench};
    bench->done = false;
    if (warm_read(bench->warm, &read) != ERR_OK)
        return -1;
    while (!bench->done)
        bench_turn(bench);
    bench->late += read.outcome != WARM_ANSWERED;
    return read.count;
}

static void bench_prepare(struct bench *bench, int32_t count, int32_t blocks, bool random)
{
    bench->seats = calloc((size_t)count, sizeof(*bench->seats));
    bench->order = calloc((size_t)count, sizeof(*bench->order));
    bench->seat_count = count;
    int64_t now_ms = clock_now_ms();
    for (int32_t i = 0; i < count; i++) {
        struct warm_write *write = &bench->seats[i];
        int32_t block = i / BLOCK_SEAT_COUNT % blocks;
        *write = (struct warm_write){.kind = WARM_HELD,
                                     .org_id = bench->org_id,
                                     .event_id = bench->event_id,
                                     .state = SEAT_HELD,
                                     .version = 2,
                                     .section = {(char)('A' + block % 26)},
                                     .subsection = 1 + block / 26,
                                     .bit = i % BLOCK_SEAT_COUNT +
                                            i / (BLOCK_SEAT_COUNT * blocks) * BLOCK_SEAT_COUNT,
                                     .cart_token = "cart-0123456789abcdef",
                                     .locked = true};
        write->seat_id = uuid_make(&bench->rng, now_ms);
        bench->order[i] = i;
    }
    for (int32_t i = count - 1; random && i > 0; i--) {
        int32_t other = (int32_t)rng_below(&bench->rng, (uint64_t)i + 1), swap = bench->order[i];
        bench->order[i] = bench->order[other];
        bench->order[other] = swap;
    }
}

/* One batch as the lane makes it: a round of locks, then the writes; the next round's answers come after theirs. */
static void bench_hold(struct bench *bench, struct warm_write *writes, struct warm_lock *locks, int32_t count,
                       struct arena *arena)
{
    int64_t now_ms = clock_now_ms(), until_ms = time_ceil_second(now_ms + HELD_MS);
    for (int32_t i = 0; i < count; i++) {
        writes[i].hold_id = uuid_make(&bench->rng, now_ms);
        writes[i].user_id = uuid_make(&bench->rng, now_ms);
        writes[i].created_ms = now_ms;
        writes[i].held_until_ms = until_ms;
        locks[i] = (struct warm_lock){.org_id = bench->org_id,
                                      .event_id = bench->event_id,
                                      .seat_id = writes[i].seat_id,
                                      .hold_id = writes[i].hold_id,
                                      .user_id = writes[i].user_id,
                                      .cart_token = writes[i].cart_token,
                                      .held_at_ms = now_ms,
                                      .held_until_ms = until_ms};
    }
    struct warm_round round = {
        .arena = arena, .locks = locks, .count = count, .on_done = bench_on_locked, .context = bench};
    bench->done = false;
    if (warm_lock(bench->warm, &round) != ERR_OK) {
        bench->late++;
        return;
    }
    while (!bench->done)
        bench_turn(bench);
    warm_write(bench->warm, writes, count);
    warm_turn(bench->warm, clock_monotonic_us());
}

static void bench_phase(struct bench *bench, const char *name, pid_t pid, bool hold)
{
    struct warm_write *writes = calloc((size_t)bench->batch, sizeof(*writes));
    struct warm_lock *locks = calloc((size_t)bench->batch, sizeof(*locks));
    struct arena arena;
    arena_init(&arena);
    double own = own_seconds(), redis = process_seconds(pid);
    int64_t began_us = clock_monotonic_us();
    for (int32_t at = 0; at < bench->seat_count; at += bench->batch) {
        int32_t count = bench->seat_count - at < bench->batch ? bench->seat_count - at : bench->batch;
        for (int32_t i = 0; i < count; i++)
            writes[i] = bench->seats[bench->order[at + i]];
        if (hold)
            bench_hold(bench, writes, locks, count, &arena);
        for (int32_t i = 0; i < count && !hold; i++) {
            writes[i].kind = WARM_RELEASED;
            writes[i].state = SEAT_AVAILABLE;
            writes[i].version = 3;
            writes[i].reason = END_TTL_EXPIRED;
        }
        if (!hold) {
            warm_write(bench->warm, writes, count);
            bench_barrier(bench, &arena);
        }
        for (int32_t i = 0; i < count && hold; i++)
            bench->seats[bench->order[at + i]] = writes[i];
        arena_reset(&arena);
    }
    int64_t members = bench_barrier(bench, &arena);
    double seconds = (double)(clock_monotonic_us() - began_us) / 1e6;
    printf("%-8s %7.0f /s   Redis %5.2f us   own %5.2f us   members %lld\n", name,
           bench->seat_count / seconds, (process_seconds(pid) - redis) * 1e6 / bench->seat_count,
           (own_seconds() - own) * 1e6 / bench->seat_count, (long long)members);
    arena_deinit(&arena);
    free(writes);
    free(locks);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"holds", required_argument, NULL, 'h'},
                                            {"batch", required_argument, NULL, 'b'},
                                            {"blocks", required_argument, NULL, 'k'},
                                            {"order", required_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    int32_t holds = 200000, blocks = 200;
    bool random = true;
    struct bench bench = {.batch = 256};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'h':
            holds = atoi(optarg);
            break;
        case 'b':
            bench.batch = atoi(optarg);
            break;
        case 'k':
            blocks = atoi(optarg);
            break;
        case 'o':
            random = strcmp(optarg, "random") == 0;
            break;
        default:
            return 2;
        }
    }
    if (holds <= 0 || bench.batch <= 0 || blocks <= 0)
        return 2;
    struct redis_server server;
    redis_server_start(&server, NULL);
    rng_init_system(&bench.rng);
    bench.org_id = uuid_make(&bench.rng, 1);
    bench.event_id = uuid_make(&bench.rng, 1);
    struct warm_config config = {.url = server.url,
                                 .prefix = "voelgoed",
                                 .node_id = uuid_make(&bench.rng, 1),
                                 .on_nudge = bench_on_nudge};
    char why[256];
    if (warm_create(&config, &bench.warm, why, sizeof(why)) != ERR_OK) {
        fprintf(stderr, "%s\n", why);
        redis_server_stop(&server);
        return 1;
    }
    struct arena arena;
    arena_init(&arena);
    bench_barrier(&bench, &arena);
    warm_rebuilt(bench.warm);
    bench_prepare(&bench, holds, blocks, random);
    bench_phase(&bench, "hold", server.pid, true);
    bench_phase(&bench, "release", server.pid, false);
    printf("batches of %d over %d blocks, %s; rounds late %lld, locks not taken %lld\n", bench.batch, blocks,
           random ? "random" : "in order", (long long)bench.late, (long long)bench.not_taken);
    arena_deinit(&arena);
    warm_destroy(bench.warm);
    redis_server_stop(&server);
    free(bench.seats);
    free(bench.order);
    return bench.late + bench.not_taken > 0;
}
