/* SPDX-License-Identifier: Apache-2.0
 * `holdfast bench`: how many durable holds a second over HTTP. A hold counts
 * when its 201 is here, so after its commit was synced; afterwards the holds in
 * the store of its own server are counted, and fewer than were acknowledged is
 * a failure whatever the speed. docs/benchmarks.md says how to read the figures. */
#include "cli/bench.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/limits.h"
#include "base/rng.h"
#include "cli/census.h"
#include "cli/http_client.h"
#include "cli/setup.h"

enum {
    SEATS_PER_SECOND_GUESS = 60000, /* more than a small machine holds: seats should not run out first */
    BENCH_TOKEN_MS = 24 * 3600 * 1000,
};

struct bench {
    const struct options *options;
    struct bench_server server;
    struct bench_load load;
    struct bench_result result;
    char url[160];
    char host[64];
    int64_t stored_count; /* active holds found afterwards; −1: not looked */
    char *why;
    size_t why_size;
};

/* ---- Whom to hold for ---- */

static int token_count(const struct bench_load *load)
{
    return load->connection_count + load->reader_count;
}

/* One user a connection, so that no two requests wait for the same user. */
static bool sign_tokens(struct bench *bench, const struct secret *secret, const struct uuid *org_id)
{
    struct rng rng;

    rng_init_system(&rng);
    for (int i = 0; i < token_count(&bench->load); i++) {
        struct auth_claims claims = {.org_id = *org_id, .role = ROLE_BUYER};
        char token[TOKEN_SIZE_MAX];
        claims.user_id = uuid_make(&rng, clock_now_ms());
        claims.expires_ms = clock_now_ms() + BENCH_TOKEN_MS;
        if (!auth_sign(secret->bytes, secret->size, &claims, clock_now_ms(), token, sizeof token)) {
            snprintf(bench->why, bench->why_size, "the tokens could not be signed");
            return false;
        }
        bench->load.tokens[i] = strdup(token);
        CHECK(bench->load.tokens[i] != NULL);
    }
    return true;
}

static bool repeat_token(struct bench *bench)
{
    char token[TOKEN_SIZE_MAX];

    if (!setup_token(bench->options, token, sizeof token, bench->why, bench->why_size))
        return false;
    for (int i = 0; i < token_count(&bench->load); i++) {
        bench->load.tokens[i] = strdup(token);
        CHECK(bench->load.tokens[i] != NULL);
    }
    return true;
}

/* ---- Which seats ---- */

static bool add_seats(struct bench *bench, struct http_client *client, const char *event_id)
{
    struct bench_load *load = &bench->load;
    json_t *seats = NULL, *seat;
    char path[128];
    size_t i;

    snprintf(path, sizeof path, "/api/events/%s/seats", event_id);
    if (!http_client_call(client, "GET", path, &seats, bench->why, bench->why_size))
        return false;
    memcpy(load->events[load->event_count], event_id, BENCH_ID_SIZE);
    json_array_foreach(seats, i, seat)
    {
        const char *id = json_string_value(json_object_get(seat, "seat_id"));
        const char *status = json_string_value(json_object_get(seat, "status"));
        if (id == NULL || strlen(id) != BENCH_ID_SIZE || status == NULL || strcmp(status, "available") != 0)
            continue;
        if (load->seat_count == load->seat_capacity) {
            load->seat_capacity = load->seat_capacity * 2 + 100000;
            load->seats = reallocarray(load->seats, (size_t)load->seat_capacity, sizeof *load->seats);
            CHECK(load->seats != NULL);
        }
        load->seats[load->seat_count].event = load->event_count;
        load->seats[load->seat_count].index = (int32_t)i;
        memcpy(load->seats[load->seat_count++].id, id, BENCH_ID_SIZE);
    }
    load->event_count++;
    json_decref(seats);
    return true;
}

/* All over the house, as buyers ask, and the same way every time; otherwise row by row. */
static void spread_seats(struct bench_load *load)
{
    struct rng rng;

    rng_init_seed(&rng, 1);
    for (int64_t i = load->seat_count - 1; i > 0; i--) {
        int64_t other = (int64_t)rng_below(&rng, (uint64_t)i + 1);
        struct bench_seat seat = load->seats[i];
        load->seats[i] = load->seats[other];
        load->seats[other] = seat;
    }
}

static bool find_seats(struct bench *bench)
{
    struct http_client *client = http_client_create(bench->url, bench->load.tokens[0]);
    json_t *events = NULL, *event;
    size_t i;
    bool good = http_client_call(client, "GET", "/api/events", &events, bench->why, bench->why_size);

    json_array_foreach(events, i, event)
    {
        const char *id = json_string_value(json_object_get(event, "event_id"));
        if (good && id != NULL && strlen(id) == BENCH_ID_SIZE &&
            bench->load.event_count < BENCH_EVENT_COUNT_MAX)
            good = add_seats(bench, client, id);
    }
    json_decref(events);
    http_client_destroy(client);
    if (good && bench->load.seat_count == 0) {
        snprintf(bench->why, bench->why_size, "%s has no available seat that this token sees", bench->url);
        good = false;
    }
    if (bench->options->values[OPTION_SPREAD] != NULL)
        spread_seats(&bench->load);
    return good;
}

/* ---- A server of its own, or a running one ---- */

static bool prepare_own_server(struct bench *bench)
{
    char path[PATH_MAX];
    struct secret secret;
    int64_t rate = bench->load.rate > 0 ? bench->load.rate : SEATS_PER_SECOND_GUESS;
    int64_t wanted = bench->load.seconds * rate / EVENT_SEAT_COUNT_MAX + 1;
    int event_count = wanted < BENCH_EVENT_COUNT_MAX ? (int)wanted : BENCH_EVENT_COUNT_MAX;

    fprintf(stderr, "filling a temporary store with %d seats ...\n", event_count * EVENT_SEAT_COUNT_MAX);
    if (!bench_server_fill(&bench->server, event_count, bench->why, bench->why_size) ||
        !secret_path(bench->server.store_url, path, sizeof path) ||
        !secret_read_or_create(path, &secret, bench->why, bench->why_size))
        return false;
    bool good = sign_tokens(bench, &secret, &bench->server.org_id);
    secret_wipe(&secret);
    if (!good || !bench_server_start(&bench->server, bench->why, bench->why_size))
        return false;
    bench->load.host = bench->server.host;
    bench->load.port = bench->server.port;
    snprintf(bench->url, sizeof bench->url, "http://%s:%u", bench->server.host, (unsigned)bench->server.port);
    return true;
}

static bool prepare_given_server(struct bench *bench)
{
    const struct options *options = bench->options;
    struct options listen = *options;
    struct address address;
    struct uuid org_id;
    struct secret secret;

    if (strncmp(options->values[OPTION_URL], "http://", 7) != 0) {
        snprintf(bench->why, bench->why_size, "--url must begin with http:// and end with a port");
        return false;
    }
    listen.values[OPTION_LISTEN] = options->values[OPTION_URL] + 7;
    if (!address_parse(&listen, OPTION_LISTEN, &address, bench->why, bench->why_size)) {
        snprintf(bench->why, bench->why_size, "--url must be http://ADDRESS:PORT, not '%.100s'",
                 options->values[OPTION_URL]);
        return false;
    }
    address_format_url(&address, bench->url, sizeof bench->url);
    memcpy(bench->host, address.host, sizeof bench->host);
    bench->load.host = bench->host;
    bench->load.port = address.port;
    if (options_given(options, OPTION_TOKEN) || options_given(options, OPTION_TOKEN_FILE))
        return repeat_token(bench);
    if (!options_given(options, OPTION_JWT_SECRET_FILE) || !options_given(options, OPTION_ORG)) {
        snprintf(bench->why, bench->why_size,
                 "--url needs --token or --token-file, or --jwt-secret-file and --org");
        return false;
    }
    if (!options_uuid(options, OPTION_ORG, &org_id, bench->why, bench->why_size) ||
        !secret_read(options->values[OPTION_JWT_SECRET_FILE], &secret, bench->why, bench->why_size))
        return false;
    bool good = sign_tokens(bench, &secret, &org_id);
    secret_wipe(&secret);
    return good;
}

/* What was acknowledged must be there. */
static bool count_stored(struct bench *bench)
{
    struct census census;
    bool good = census_take(&census, bench->server.store_url, bench->why, bench->why_size);

    bench->stored_count = 0;
    for (const struct census_event *event = census.first; event != NULL; event = event->next)
        bench->stored_count += event->active_hold_count;
    census_deinit(&census);
    if (good && bench->stored_count < bench->result.held_count) {
        snprintf(bench->why, bench->why_size, "%lld holds were acknowledged, but the store has %lld",
                 (long long)bench->result.held_count, (long long)bench->stored_count);
        good = false;
    }
    return good;
}

/* ---- What is printed ---- */

static double lag_ms(const struct bench_lag *lag, double share)
{
    return (double)bench_steps_share_us(lag->steps, lag->max_us, share) / 1000;
}

static void print_lag_json(const struct bench_load *load, const struct bench_lag *lag)
{
    printf(", \"readers\": %d, \"changes\": %lld, \"missing\": %lld, \"broken\": %lld, \"lag_p50_ms\": %.3f, "
           "\"lag_p99_ms\": %.3f, \"lag_max_ms\": %.3f",
           load->reader_count, (long long)lag->change_count, (long long)lag->missing_count,
           (long long)lag->broken_count, lag_ms(lag, 0.5), lag_ms(lag, 0.99), (double)lag->max_us / 1000);
}

static void print_lag(const struct bench_load *load, const struct bench_lag *lag)
{
    printf("news            p50 %.1f ms, p99 %.1f ms, max %.1f ms after the reserve was due\n",
           lag_ms(lag, 0.5), lag_ms(lag, 0.99), (double)lag->max_us / 1000);
    printf("readers         %d, %lld changes to each: %lld missed, %lld streams ended\n", load->reader_count,
           (long long)lag->change_count, (long long)lag->missing_count, (long long)lag->broken_count);
}

static void print_result(const struct bench *bench)
{
    const struct bench_result *result = &bench->result;
    double seconds = (double)result->elapsed_us / 1e6;
    double rate = (double)result->held_count / seconds;
    double p50_ms = (double)bench_steps_share_us(result->latencies, result->latency_max_us, 0.5) / 1000;
    double p95_ms = (double)bench_steps_share_us(result->latencies, result->latency_max_us, 0.95) / 1000;
    double p99_ms = (double)bench_steps_share_us(result->latencies, result->latency_max_us, 0.99) / 1000;
    double max_ms = (double)result->latency_max_us / 1000;

    if (bench->options->values[OPTION_JSON] != NULL) {
        printf("{\"holds_per_second\": %.0f, \"seconds\": %.3f, \"connections\": %d, \"held\": %lld, "
               "\"refused\": %lld, "
               "\"failed\": %lld, \"p50_ms\": %.3f, \"p95_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f, "
               "\"stored\": %lld",
               rate, seconds, bench->load.connection_count, (long long)result->held_count,
               (long long)result->refused_count, (long long)result->failed_count, p50_ms, p95_ms, p99_ms,
               max_ms, (long long)bench->stored_count);
        if (result->lag != NULL)
            print_lag_json(&bench->load, result->lag);
        puts("}");
        return;
    }
    printf("durable holds   %.0f/s  (%lld in %.1f s over %d connections)\n", rate,
           (long long)result->held_count, seconds, bench->load.connection_count);
    printf("latency         p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, max %.1f ms\n", p50_ms, p95_ms, p99_ms,
           max_ms);
    printf("other answers   %lld refused, %lld failed", (long long)result->refused_count,
           (long long)result->failed_count);
    if (result->status_example != 0)
        printf(" (the first: %d)", result->status_example);
    putchar('\n');
    if (result->lag != NULL)
        print_lag(&bench->load, result->lag);
    if (bench->stored_count >= 0)
        printf("in the store    %lld active holds afterwards\n", (long long)bench->stored_count);
    if (result->seats_ran_out)
        printf("note            every seat was asked for before the time was over\n");
}

static void bench_deinit(struct bench *bench)
{
    bench_server_stop(&bench->server);
    bench_server_remove(&bench->server);
    for (int i = 0; bench->load.tokens != NULL && i < token_count(&bench->load); i++)
        free(bench->load.tokens[i]);
    free(bench->load.tokens);
    free(bench->load.seats);
    free(bench->result.latencies);
    free(bench->result.lag);
}

int bench_run(const struct options *options)
{
    char why[1024] = "";
    struct bench bench = {.options = options, .stored_count = -1, .why = why, .why_size = sizeof why};
    struct rlimit limit;
    int64_t connection_count, reader_count;

    if (options->argument_count > 0)
        return cli_fail_usage(VERB_BENCH, "bench takes no argument '%.64s'", options->arguments[0]);
    if (!options_integer(options, OPTION_CONNECTIONS, 1, 10000, &connection_count, why, sizeof why) ||
        !options_integer(options, OPTION_SECONDS, 1, 600, &bench.load.seconds, why, sizeof why) ||
        !options_integer(options, OPTION_RATE, 0, 1000000, &bench.load.rate, why, sizeof why) ||
        !options_integer(options, OPTION_READERS, 0, 10000, &reader_count, why, sizeof why))
        return cli_fail_usage(VERB_BENCH, "%s", why);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    bench.load.connection_count = (int)connection_count;
    bench.load.reader_count = (int)reader_count;
    bench.load.tokens = calloc((size_t)token_count(&bench.load), sizeof *bench.load.tokens);
    CHECK(bench.load.tokens != NULL);
    /* A server named by the environment is somebody's real one: only a flag sends load there. */
    bool own = options->sources[OPTION_URL] != FROM_FLAG;
    bool good = (own ? prepare_own_server(&bench) : prepare_given_server(&bench)) && find_seats(&bench) &&
                bench_drive(&bench.load, &bench.result, why, sizeof why);
    if (good && own) {
        bench_server_stop(&bench.server);
        good = count_stored(&bench);
    }
    if (good)
        print_result(&bench);
    good = good && bench.result.held_count > 0;
    bench_deinit(&bench);
    if (!good)
        return cli_fail("%s", why[0] != '\0' ? why : "no seat could be held");
    return EXIT_DONE;
}
