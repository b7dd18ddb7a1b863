/* SPDX-License-Identifier: Apache-2.0
 * `holdfast demo`: a node with something on it to look at. Prints the line that
 * `serve` prints, then ids, tokens and curl lines to paste. Ends like `serve`
 * and takes its temporary directory along.
 *
 * Only a --store flag moves it out of the temporary directory: a store named by
 * the environment is somebody's real one, and simulated buyers do not belong
 * there. Guests get fresh identities from POST /api/demo/token. */
#include "cli/demo.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/setup.h"

enum { DEMO_TOKEN_MS = 24 * 3600 * 1000 };

struct demo {
    char directory[256]; /* temporary, or "" */
    char store_url[320];
    struct secret secret;
    struct demo_events events; /* as made at start */
    pthread_mutex_t lock;      /* guards rng: guests come on any loop's thread */
    struct rng rng;
};

/* ---- Guests ---- */

static bool sign_for(struct demo *demo, enum role role, const struct uuid *user_id, int64_t now_ms,
                     int64_t expires_ms, char *out)
{
    struct auth_claims claims = {
        .user_id = *user_id,
        .org_id = demo->events.org_id,
        .role = role,
        .expires_ms = expires_ms,
    };

    return auth_sign(demo->secret.bytes, demo->secret.size, &claims, now_ms, out, API_TOKEN_SIZE_MAX);
}

/* Any loop's thread. */
static bool mint_guest(void *context, int64_t now_ms, struct api_demo *out)
{
    struct demo *demo = context;

    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&demo->lock);
    out->buyer_id = uuid_make(&demo->rng, now_ms);
    out->admin_id = uuid_make(&demo->rng, now_ms);
    out->org_id = demo->events.org_id;
    out->event_id = demo->events.event_ids[0];
    pthread_mutex_unlock(&demo->lock);
    out->expires_ms = now_ms + DEMO_TOKEN_MS;
    return !uuid_is_nil(&out->org_id) &&
           sign_for(demo, ROLE_BUYER, &out->buyer_id, now_ms, out->expires_ms, out->buyer_token) &&
           sign_for(demo, ROLE_ADMIN, &out->admin_id, now_ms, out->expires_ms, out->admin_token);
}

/* ---- Where it lives ---- */

static bool prepare_store(struct demo *demo, const struct options *options, char *why, size_t why_size)
{
    char path[PATH_MAX];

    if (options->sources[OPTION_STORE] == FROM_FLAG) {
        if (!setup_check_store(options, why, why_size))
            return false;
        snprintf(demo->store_url, sizeof demo->store_url, "%s", options->values[OPTION_STORE]);
    } else if (directory_create_temporary("/tmp", "holdfast-demo", demo->directory, sizeof demo->directory,
                                          why, why_size)) {
        snprintf(demo->store_url, sizeof demo->store_url, "sqlite:%s/holdfast.db", demo->directory);
    } else {
        return false;
    }
    if (!secret_path(demo->store_url, path, sizeof path)) {
        /* Nothing lies beside a server's database: this secret lives as long as the demo. */
        if (!directory_create_temporary("/tmp", "holdfast-demo", demo->directory, sizeof demo->directory, why,
                                        why_size))
            return false;
        snprintf(path, sizeof path, "%s/secret", demo->directory);
    }
    return secret_read_or_create(path, &demo->secret, why, why_size);
}

/* ---- What it prints ---- */

/* A seat for the guest to try: in the middle of the lower bowl, if nobody has it. */
static void find_example_seat(const struct demo *demo, struct node *node, char out[UUID_TEXT_SIZE])
{
    struct event_view view = {.map = NULL};
    struct arena arena;

    snprintf(out, UUID_TEXT_SIZE, "SEAT");
    arena_init(&arena);
    if (directory_event(node_directory(node), &demo->events.org_id, &demo->events.event_ids[0], &arena,
                        &view) &&
        view.map != NULL) {
        int32_t count = view.map->layout->seat_count;
        for (int32_t i = 0; i < count; i++) {
            int32_t index = (count / 4 + i) % count;
            if (seatmap_state(view.map, index) == SEAT_AVAILABLE) {
                uuid_format(&view.map->seat_ids[index], out);
                break;
            }
        }
    }
    seatmap_release(view.map);
    arena_deinit(&arena);
}

static void print_welcome(struct demo *demo, struct node *node, const struct address *listen)
{
    struct api_demo guest;
    struct address real = *listen;
    char url[128], org[UUID_TEXT_SIZE], event[UUID_TEXT_SIZE], seat[UUID_TEXT_SIZE];
    char store[STORE_SHOWN_SIZE];

    real.port = node_port(node);
    address_format_url(&real, url, sizeof url);
    uuid_format(&demo->events.org_id, org);
    uuid_format(&demo->events.event_ids[0], event);
    find_example_seat(demo, node, seat);
    if (!mint_guest(demo, clock_now_ms(), &guest))
        return;
    printf("holdfast: listening on %s (store %s)\n", url, setup_show_store(demo->store_url, store));
    printf("\n"
           "  Open %s/ to watch it. Ctrl-C ends it.\n"
           "\n"
           "  organization  %s\n"
           "  event         %s  (holds last 60 s here)\n"
           "\n"
           "  # Tokens for a buyer and an admin (more: curl -X POST %s/api/demo/token)\n"
           "  export BUYER=%s\n"
           "  export ADMIN=%s\n",
           url, org, event, url, guest.buyer_token, guest.admin_token);
    printf("\n"
           "  # Hold a seat; ask again, and it is the same hold\n"
           "  curl -s -X POST %s/api/events/%s/seats/%s/reserve -H \"Authorization: Bearer $BUYER\"\n"
           "  # See it, wait a minute, see it gone\n"
           "  curl -s %s/api/holds -H \"Authorization: Bearer $BUYER\"\n"
           "  sleep 63; curl -s %s/api/holds -H \"Authorization: Bearer $BUYER\"\n",
           url, event, seat, url, url);
    printf("\n"
           "  # Two seats side by side, then pay for them\n"
           "  curl -s -X POST %s/api/events/%s/holds -H \"Authorization: Bearer $BUYER\" -H 'Content-Type: "
           "application/json' "
           "-d '{\"quantity\": 2}'\n"
           "  CHECKOUT=$(curl -s -X POST %s/api/checkouts -H \"Authorization: Bearer $BUYER\" -H "
           "'Content-Type: application/json' "
           "-d '{\"event_id\": \"%s\"}' | sed 's/.*\"checkout_id\":\"\\([^\"]*\\).*/\\1/')\n"
           "  curl -s -X POST %s/api/checkouts/$CHECKOUT/complete -H \"Authorization: Bearer $BUYER\" -H "
           "'Content-Type: application/json' "
           "-d '{\"payment_token\": \"tok_ok\"}'\n",
           url, event, url, event, url);
    printf("\n"
           "  # Watch the seats change; count them; see who holds what (admin)\n"
           "  curl -sN %s/api/events/%s/stream -H \"Authorization: Bearer $BUYER\"\n"
           "  curl -s %s/api/events/%s/occupancy -H \"Authorization: Bearer $BUYER\"\n"
           "  curl -s %s/api/admin/events/%s/holds -H \"Authorization: Bearer $ADMIN\"\n\n",
           url, event, url, event, url, event);
    fflush(stdout);
}

/* ---- The whole of it ---- */

int demo_run(const struct options *options)
{
    struct demo demo = {.directory = ""};
    struct node_config config = {.mint_demo = mint_guest, .demo_context = &demo};
    struct address metrics_listen;
    struct demo_buyers *buyers = NULL;
    struct node *node = NULL;
    int64_t buyer_count;
    char why[1024] = "";
    bool good = false;

    if (options->argument_count > 0)
        return cli_fail_usage(VERB_DEMO, "demo takes no argument '%.64s'", options->arguments[0]);
    if (!setup_node(options, &config, &metrics_listen, why, sizeof why) ||
        !options_integer(options, OPTION_BUYERS, 0, 5000, &buyer_count, why, sizeof why))
        return cli_fail_usage(VERB_DEMO, "%s", why);
    pthread_mutex_init(&demo.lock, NULL);
    rng_init_system(&demo.rng);
    if (!prepare_store(&demo, options, why, sizeof why))
        goto done;
    if (!options_given(options, OPTION_LOG_LEVEL))
        config.log_level = LOG_WARN; /* the terminal is for the curl lines */
    config.store_url = demo.store_url;
    config.secret = demo.secret.bytes;
    config.secret_size = demo.secret.size;
    signals_block();
    if (node_start(&config, &node, why, sizeof why) != ERR_OK)
        goto done;
    struct demo_events events;
    enum err err = demo_events_create(&events, node);
    pthread_mutex_lock(&demo.lock);
    demo.events = events;
    pthread_mutex_unlock(&demo.lock);
    if (err == ERR_OK)
        err = demo_buyers_start(&events, (int)buyer_count, &buyers);
    if (err != ERR_OK) {
        snprintf(why, sizeof why, "the demo's events could not be made: %s", err_text(err));
        goto done;
    }
    print_welcome(&demo, node, &config.listen);
    signals_wait();
    good = true;
done:
    demo_buyers_stop(buyers);
    node_stop(node);
    directory_remove(demo.directory);
    secret_wipe(&demo.secret);
    pthread_mutex_destroy(&demo.lock);
    return good ? EXIT_DONE : cli_fail("%s", why);
}
