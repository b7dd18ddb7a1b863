/* SPDX-License-Identifier: Apache-2.0
 * How fast a store commits: holds a whole house in batches as the lane would
 * write them (check of the event, seat, hold, audit row, change row, statistics), a few batches in
 * flight, then releases it again, then loads it.
 *
 *   bench_store [--store sqlite:PATH] [--events 4] [--seats 100000] [--batch 500]
 *               [--flight 2] [--order random|layout] [--keep]
 *
 * Prints one line a phase. It measures the store alone: no HTTP, no rules. */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/rng.h"
#include "store/store.h"

enum { BLOCK_SEAT_COUNT = 500, ROW_SEAT_COUNT = 25, FLIGHT_COUNT_MAX = 16 };

struct bench_seat {
    struct uuid id, hold_id, block_id, event_id;
    int32_t index;
    int32_t version;
};

struct bench {
    struct store *store;
    struct rng rng;
    struct uuid org_id, user_id;
    struct bench_seat *seats;
    int32_t seat_count; /* of all events */
    int32_t flight;
    int32_t in_flight;
    int64_t commit_us_max;
    int64_t failed;
    int64_t loaded;
};

static void bench_on_done(struct store_batch *batch)
{
    struct bench *bench = batch->context;
    LIST_FOR_EACH(node, &batch->units) {
        if (CONTAINER_OF(node, struct store_unit, node)->result != UNIT_OK)
            bench->failed++;
    }
    if (batch->outcome != STORE_COMMITTED)
        bench->failed += batch->unit_count;
    if (batch->commit_us > bench->commit_us_max)
        bench->commit_us_max = batch->commit_us;
    bench->in_flight--;
    arena_deinit(&batch->arena);
    free(batch);
}

static struct store_batch *bench_batch(struct bench *bench)
{
    struct store_batch *batch = calloc(1, sizeof(*batch));
    CHECK(batch != NULL);
    arena_init(&batch->arena);
    list_init(&batch->units);
    batch->now_ms = clock_now_ms();
    batch->id = uuid_make(&bench->rng, batch->now_ms);
    batch->on_done = bench_on_done;
    batch->context = bench;
    return batch;
}

static struct store_unit *bench_unit(struct store_batch *batch)
{
    struct store_unit *unit = ARENA_NEW(&batch->arena, struct store_unit);
    list_append(&batch->units, &unit->node);
    batch->unit_count++;
    return unit;
}

static void bench_wait(struct bench *bench, int32_t until)
{
    while (bench->in_flight > until) {
        struct pollfd fd = {.fd = store_fd(bench->store), .events = POLLIN};
        (void)poll(&fd, 1, 1000);
        store_poll(bench->store);
    }
}

static void bench_submit(struct bench *bench, struct store_batch *batch)
{
    bench_wait(bench, bench->flight - 1);
    bench->in_flight++;
    CHECK(store_submit(bench->store, batch) == ERR_OK);
}

/* ---- What is written ---- */

static void bench_layout(struct bench *bench, int32_t first, int32_t count)
{
    struct store_batch *batch = bench_batch(bench);
    struct store_unit *unit = bench_unit(batch);
    struct event_write *event = ARENA_NEW(&batch->arena, struct event_write);
    event->insert = true;
    event->row = (struct event_row){.org_id = bench->org_id,
                                    .id = uuid_make(&bench->rng, batch->now_ms),
                                    .name = "Bench",
                                    .state = EVENT_LIVE,
                                    .sale_start_ms = TIME_NONE,
                                    .sale_end_ms = TIME_MAX,
                                    .currency = "EUR",
                                    .policy = policy_default(),
                                    .created_ms = batch->now_ms,
                                    .updated_ms = batch->now_ms,
                                    .version = 1};
    unit->events = event;
    int32_t block_count = (count + BLOCK_SEAT_COUNT - 1) / BLOCK_SEAT_COUNT;
    struct block_row *blocks = ARENA_ARRAY(&batch->arena, struct block_row, block_count);
    for (int32_t i = 0; i < block_count; i++) {
        blocks[i] = (struct block_row){.org_id = bench->org_id,
                                       .event_id = event->row.id,
                                       .section = "A",
                                       .id = uuid_make(&bench->rng, batch->now_ms),
                                       .subsection = i + 1,
                                       .ordinal = i,
                                       .name = "Block",
                                       .capacity = BLOCK_SEAT_COUNT,
                                       .price_cents = 4500};
    }
    struct layout_seat *seats = ARENA_ARRAY(&batch->arena, struct layout_seat, count);
    for (int32_t i = 0; i < count; i++) {
        seats[i] = (struct layout_seat){.id = uuid_make(&bench->rng, batch->now_ms),
                                        .block = i / BLOCK_SEAT_COUNT,
                                        .row = i % BLOCK_SEAT_COUNT / ROW_SEAT_COUNT + 1,
                                        .seat = i % ROW_SEAT_COUNT + 1,
                                        .row_label = "12",
                                        .seat_label = "34"};
        bench->seats[first + i] = (struct bench_seat){.id = seats[i].id,
                                                      .block_id = blocks[seats[i].block].id,
                                                      .event_id = event->row.id,
                                                      .index = i,
                                                      .version = 1};
    }
    struct layout_write *layout = ARENA_NEW(&batch->arena, struct layout_write);
    *layout = (struct layout_write){.org_id = bench->org_id,
                                    .event_id = event->row.id,
                                    .document = "{}",
                                    .blocks = blocks,
                                    .block_count = block_count,
                                    .seats = seats,
                                    .seat_count = count};
    unit->layouts = layout;
    bench_submit(bench, batch);
}

static void bench_audit(struct store_batch *batch, struct store_unit *unit, const struct hold_row *hold,
                        enum audit_action action)
{
    struct audit_write *audit = ARENA_NEW(&batch->arena, struct audit_write);
    audit->row = (struct audit_row){.org_id = hold->org_id,
                                    .actor_id = hold->user_id,
                                    .role = ROLE_BUYER,
                                    .action = action,
                                    .entity_type = "SeatHold",
                                    .entity_id = hold->id,
                                    .seat_id = hold->seat_id,
                                    .event_id = hold->event_id,
                                    .user_id = hold->user_id,
                                    .after = "{\"status\":\"held\",\"held_until\":\"2026-01-31T12:00:00Z\"}",
                                    .held_duration_seconds = -1,
                                    .ip = "203.0.113.17",
                                    .user_agent = "Mozilla/5.0 (X11; Linux x86_64)",
                                    .request_id = "0190b6a4-7f5e-7c3a-8d21-5b1f0c9e4a77",
                                    .created_ms = batch->now_ms};
    unit->audits = audit;
}

static void bench_change(struct bench *bench, struct store_batch *batch, struct bench_seat *seat, bool hold)
{
    struct store_unit *unit = bench_unit(batch);
    struct seat_write *write = ARENA_NEW(&batch->arena, struct seat_write);
    struct hold_write *held = ARENA_NEW(&batch->arena, struct hold_write);
    if (hold)
        seat->hold_id = uuid_make(&bench->rng, batch->now_ms);
    int64_t until_ms = time_ceil_second(batch->now_ms + 300000);
    held->insert = hold;
    held->block_id = seat->block_id;
    held->row = (struct hold_row){.org_id = bench->org_id,
                                  .event_id = seat->event_id,
                                  .id = seat->hold_id,
                                  .seat_id = seat->id,
                                  .user_id = bench->user_id,
                                  .cart_token = "0190b6a4-7f5e-7c3a-8d21-5b1f0c9e4a78",
                                  .state = hold ? HOLD_ACTIVE : HOLD_EXPIRED,
                                  .reason = hold ? END_NONE : END_TTL_EXPIRED,
                                  .price_cents = 4500,
                                  .created_ms = batch->now_ms,
                                  .held_until_ms = until_ms,
                                  .ended_ms = hold ? 0 : batch->now_ms};
    write->block_id = seat->block_id;
    write->before = hold ? SEAT_AVAILABLE : SEAT_HELD;
    write->row = (struct seat_row){.org_id = bench->org_id,
                                   .event_id = seat->event_id,
                                   .id = seat->id,
                                   .index = seat->index,
                                   .version = ++seat->version,
                                   .state = hold ? SEAT_HELD : SEAT_AVAILABLE};
    if (hold) {
        write->row.hold_id = seat->hold_id;
        write->row.held_until_ms = until_ms;
        write->row.locked_ms = batch->now_ms;
    }
    unit->seats = write;
    unit->holds = held;
    if (hold) {
        unit->checks = ARENA_NEW(&batch->arena, struct event_check);
        *unit->checks =
            (struct event_check){.org_id = bench->org_id, .event_id = seat->event_id, .version = 1};
    }
    bench_audit(batch, unit, &held->row, hold ? AUDIT_SEAT_RESERVED : AUDIT_SEAT_HOLD_EXPIRED);
}

/* What this process used, on every thread. */
static double cpu_seconds(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void bench_phase(struct bench *bench, const char *name, const int32_t *order, int32_t batch_size,
                        bool hold)
{
    int64_t start_us = clock_monotonic_us();
    double start_cpu = cpu_seconds();
    bench->commit_us_max = 0;
    for (int32_t at = 0; at < bench->seat_count;) {
        struct store_batch *batch = bench_batch(bench);
        for (int32_t i = 0; i < batch_size && at < bench->seat_count; i++)
            bench_change(bench, batch, &bench->seats[order[at++]], hold);
        bench_submit(bench, batch);
    }
    bench_wait(bench, 0);
    double seconds = (double)(clock_monotonic_us() - start_us) / 1e6;
    printf("%-8s %9.0f/s   %d in %.2f s, %.1f us of CPU each, longest commit %.1f ms, failed %lld\n", name,
           bench->seat_count / seconds, bench->seat_count, seconds,
           (cpu_seconds() - start_cpu) * 1e6 / bench->seat_count, (double)bench->commit_us_max / 1000,
           (long long)bench->failed);
}

/* ---- Loading ---- */

static enum err load_position(void *context, const struct feed_position *position)
{
    (void)context;
    (void)position;
    return ERR_OK;
}
static enum err load_org(void *context, const struct org_row *row)
{
    (void)context;
    (void)row;
    return ERR_OK;
}
static enum err load_user(void *context, const struct user_row *row)
{
    (void)context;
    (void)row;
    return ERR_OK;
}
static enum err load_event(void *context, const struct event_row *row)
{
    (void)context;
    (void)row;
    return ERR_OK;
}
static enum err load_layout(void *context, const struct uuid *event_id, const char *document,
                            const struct block_row *blocks, int32_t count, int64_t holds_ever)
{
    (void)context;
    (void)event_id;
    (void)document;
    (void)blocks;
    (void)count;
    (void)holds_ever;
    return ERR_OK;
}
static enum err load_seat(void *context, const struct seat_row *row)
{
    (void)row;
    ((struct bench *)context)->loaded++;
    return ERR_OK;
}
static enum err load_hold(void *context, const struct hold_row *row)
{
    (void)row;
    ((struct bench *)context)->loaded++;
    return ERR_OK;
}
static enum err load_checkout(void *context, const struct checkout_row *row)
{
    (void)context;
    (void)row;
    return ERR_OK;
}

static void bench_load(struct bench *bench)
{
    static const struct store_loader loader = {.on_position = load_position,
                                               .on_org = load_org,
                                               .on_user = load_user,
                                               .on_event = load_event,
                                               .on_layout = load_layout,
                                               .on_seat = load_seat,
                                               .on_hold = load_hold,
                                               .on_checkout = load_checkout};
    int64_t start_us = clock_monotonic_us();
    bench->loaded = 0;
    CHECK(store_load(bench->store, &loader, bench) == ERR_OK);
    printf("load     %9lld seats and holds in %.2f s\n", (long long)bench->loaded,
           (double)(clock_monotonic_us() - start_us) / 1e6);
}

static void on_claim(void *context, const char *claim, int64_t broken, const char *example)
{
    if (broken != 0) {
        printf("broken: %s %lld (%s)\n", claim, (long long)broken, example);
        ++*(int64_t *)context;
    }
}

static void bench_verify(struct bench *bench)
{
    int64_t start_us = clock_monotonic_us(), broken = 0;
    CHECK(store_verify(bench->store, on_claim, &broken) == ERR_OK);
    printf("verify   %9s in %.2f s\n", broken == 0 ? "clean" : "broken",
           (double)(clock_monotonic_us() - start_us) / 1e6);
}

struct bench_options {
    const char *url;
    int32_t events, seats, batch, flight;
    bool random, keep, verify;
};

static bool options_parse(int argc, char **argv, struct bench_options *out)
{
    static const struct option names[] = {
        {"store", 1, NULL, 's'}, {"events", 1, NULL, 'e'}, {"seats", 1, NULL, 'n'},
        {"batch", 1, NULL, 'b'}, {"flight", 1, NULL, 'f'}, {"order", 1, NULL, 'o'},
        {"keep", 0, NULL, 'k'},  {"verify", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (letter) {
        case 's':
            out->url = optarg;
            break;
        case 'e':
            out->events = atoi(optarg);
            break;
        case 'n':
            out->seats = atoi(optarg);
            break;
        case 'b':
            out->batch = atoi(optarg);
            break;
        case 'f':
            out->flight = atoi(optarg);
            break;
        case 'o':
            out->random = strcmp(optarg, "random") == 0;
            break;
        case 'k':
            out->keep = true;
            break;
        case 'v':
            out->verify = true;
            break;
        default:
            return false;
        }
    }
    return out->events > 0 && out->seats > 0 && out->seats <= EVENT_SEAT_COUNT_MAX && out->batch > 0 &&
           out->flight > 0 && out->flight <= FLIGHT_COUNT_MAX;
}

static void files_remove(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    char name[512];
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

int main(int argc, char **argv)
{
    char path[64], own_url[80], why[512] = "";
    snprintf(path, sizeof(path), "bench-store-%d.db", (int)getpid());
    snprintf(own_url, sizeof(own_url), "sqlite:%s", path);
    struct bench_options options = {.url = own_url,
                                    .events = 4,
                                    .seats = EVENT_SEAT_COUNT_MAX,
                                    .batch = 500,
                                    .flight = 2,
                                    .random = true};
    if (!options_parse(argc, argv, &options)) {
        fprintf(stderr, "usage: see the head of bench_store.c\n");
        return 2;
    }
    struct bench bench = {.seat_count = options.events * options.seats, .flight = options.flight};
    rng_init_system(&bench.rng);
    if (store_open(options.url, NULL, &bench.store, why, sizeof(why)) != ERR_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    bench.seats = calloc((size_t)bench.seat_count, sizeof(*bench.seats));
    int32_t *order = calloc((size_t)bench.seat_count, sizeof(*order));
    CHECK(bench.seats != NULL);
    CHECK(order != NULL);

    struct store_batch *batch = bench_batch(&bench);
    struct org_write *org = ARENA_NEW(&batch->arena, struct org_write);
    bench.org_id = uuid_make(&bench.rng, batch->now_ms);
    org->row = (struct org_row){.id = bench.org_id, .name = "Bench", .created_ms = batch->now_ms};
    struct user_write *user = ARENA_NEW(&batch->arena, struct user_write);
    bench.user_id = uuid_make(&bench.rng, batch->now_ms);
    user->row = (struct user_row){.org_id = bench.org_id, .id = bench.user_id, .created_ms = batch->now_ms};
    struct store_unit *unit = bench_unit(batch);
    unit->orgs = org;
    unit->users = user;
    bench_submit(&bench, batch);
    int64_t start_us = clock_monotonic_us();
    for (int32_t i = 0; i < options.events; i++)
        bench_layout(&bench, i * options.seats, options.seats);
    bench_wait(&bench, 0);
    printf("layouts  %d seats in %.2f s\n", bench.seat_count,
           (double)(clock_monotonic_us() - start_us) / 1e6);

    for (int32_t i = 0; i < bench.seat_count; i++)
        order[i] = i;
    for (int32_t i = bench.seat_count - 1; options.random && i > 0; i--) {
        int32_t j = (int32_t)rng_below(&bench.rng, (uint64_t)i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    bench_phase(&bench, "hold", order, options.batch, true);
    bench_load(&bench);
    bench_phase(&bench, "release", order, options.batch, false);
    bench_phase(&bench, "again", order, options.batch, true);
    if (options.verify)
        bench_verify(&bench);
    store_close(bench.store);
    if (!options.keep && options.url == own_url)
        files_remove(path);
    free(order);
    free(bench.seats);
    return bench.failed == 0 ? 0 : 1;
}
