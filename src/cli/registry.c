/* SPDX-License-Identifier: Apache-2.0
 * `holdfast registry status|reconcile`: do the tiers that know of a hold agree?
 *
 * Without --url, `status` reads the store file alone and compares seats with
 * holds. With it, and always for `reconcile`, the running server is asked: the hot tier is
 * its memory. A token is made with the store's secret unless one is given.
 * Exit status 1 if something is stale. */
#include "cli/census.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/rng.h"
#include "cli/http_client.h"
#include "cli/setup.h"
#include "store/store.h"

struct registry {
    const struct options *options;
    bool reconcile;
    bool as_json;
    struct uuid event_id; /* nil: all */
    struct uuid org_id;   /* nil: all */
    json_t *results;      /* an array: one object an event */
    int stale_count;
    char *why;
    size_t why_size;
};

static void add_result(struct registry *registry, json_t *result, bool consistent)
{
    registry->stale_count += !consistent;
    json_array_append_new(registry->results, result);
}

/* ---- The store alone ---- */

static bool status_of_store(struct registry *registry)
{
    struct census census;
    bool good =
        census_take(&census, registry->options->values[OPTION_STORE], registry->why, registry->why_size);

    for (const struct census_event *event = census.first; good && event != NULL; event = event->next) {
        char id[UUID_TEXT_SIZE];
        if ((!uuid_is_nil(&registry->event_id) && !uuid_equal(&registry->event_id, &event->row.id)) ||
            (!uuid_is_nil(&registry->org_id) && !uuid_equal(&registry->org_id, &event->row.org_id)))
            continue;
        bool consistent = event->counts[SEAT_HELD] == event->active_hold_count;
        uuid_format(&event->row.id, id);
        add_result(registry,
                   json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:s}", "event_id", id, "name",
                             event->row.name, "available", event->counts[SEAT_AVAILABLE], "held",
                             event->counts[SEAT_HELD], "sold", event->counts[SEAT_SOLD], "blocked",
                             event->counts[SEAT_BLOCKED], "active_holds", event->active_hold_count,
                             "consistent", consistent, "status", consistent ? "ok" : "stale"),
                   consistent);
    }
    census_deinit(&census);
    return good;
}

/* ---- The running server ---- */

static bool ask_event(struct registry *registry, struct http_client *client, const char *event_id)
{
    char path[256];
    json_t *data = NULL;

    if (registry->reconcile) {
        snprintf(path, sizeof path, "/api/admin/events/%s/registry/reconcile", event_id);
        if (!http_client_call(client, "POST", path, &data, registry->why, registry->why_size))
            return false;
        json_decref(data);
    }
    snprintf(path, sizeof path, "/api/admin/events/%s/registry", event_id);
    if (!http_client_call(client, "GET", path, &data, registry->why, registry->why_size))
        return false;
    add_result(registry, data, json_is_true(json_object_get(data, "consistent")));
    return true;
}

/* With somebody's token: the events that token sees. */
static bool ask_listed_events(struct registry *registry, struct http_client *client)
{
    json_t *events = NULL, *event;
    size_t i;
    bool good =
        http_client_call(client, "GET", "/api/admin/events", &events, registry->why, registry->why_size);

    json_array_foreach(events, i, event)
    {
        const char *id = json_string_value(json_object_get(event, "event_id"));
        if (good && id != NULL)
            good = ask_event(registry, client, id);
    }
    json_decref(events);
    return good;
}

/* With an operator's token of our own making: the events the store has. */
static bool ask_stored_events(struct registry *registry, struct http_client *client)
{
    struct census census;
    json_t *events = NULL;

    /* A store without events must not make a server that is not there look well. */
    if (!http_client_call(client, "GET", "/api/admin/events", &events, registry->why, registry->why_size))
        return false;
    json_decref(events);
    bool good =
        census_take(&census, registry->options->values[OPTION_STORE], registry->why, registry->why_size);
    for (const struct census_event *event = census.first; good && event != NULL; event = event->next) {
        char id[UUID_TEXT_SIZE];
        if (!uuid_is_nil(&registry->org_id) && !uuid_equal(&registry->org_id, &event->row.org_id))
            continue;
        uuid_format(&event->row.id, id);
        good = ask_event(registry, client, id);
    }
    census_deinit(&census);
    return good;
}

static bool ask_server(struct registry *registry, const char *url)
{
    char token[TOKEN_SIZE_MAX], id[UUID_TEXT_SIZE];
    bool given =
        options_given(registry->options, OPTION_TOKEN) || options_given(registry->options, OPTION_TOKEN_FILE);
    bool good;

    if (!setup_token(registry->options, token, sizeof token, registry->why, registry->why_size))
        return false;
    struct http_client *client = http_client_create(url, token);
    if (!uuid_is_nil(&registry->event_id)) {
        uuid_format(&registry->event_id, id);
        good = ask_event(registry, client, id);
    } else if (given) {
        good = ask_listed_events(registry, client);
    } else {
        good = ask_stored_events(registry, client);
    }
    http_client_destroy(client);
    return good;
}

/* ---- What is printed ---- */

static void print_results(const struct registry *registry)
{
    json_t *result, *value;
    const char *key;
    size_t i;

    if (registry->as_json) {
        json_dumpf(registry->results, stdout, JSON_INDENT(2));
        putchar('\n');
        return;
    }
    json_array_foreach(registry->results, i, result)
    {
        printf("%s  %-5s", json_string_value(json_object_get(result, "event_id")),
               json_is_true(json_object_get(result, "consistent")) ? "ok" : "STALE");
        json_object_foreach(result, key, value)
        {
            if (json_is_integer(value))
                printf("  %s %lld", key, (long long)json_integer_value(value));
        }
        putchar('\n');
    }
    printf("%zu event%s%s, %d stale\n", json_array_size(registry->results),
           json_array_size(registry->results) == 1 ? "" : "s", registry->reconcile ? " reconciled" : "",
           registry->stale_count);
}

int registry_run(const struct options *options)
{
    char why[1024] = "", url[160];
    struct registry registry = {.options = options, .why = why, .why_size = sizeof why};
    struct address listen;
    bool good;

    if (options->argument_count != 1 ||
        (strcmp(options->arguments[0], "status") != 0 && strcmp(options->arguments[0], "reconcile") != 0))
        return cli_fail_usage(VERB_REGISTRY, "registry needs one word: status or reconcile");
    registry.reconcile = strcmp(options->arguments[0], "reconcile") == 0;
    registry.as_json = options->values[OPTION_JSON] != NULL;
    if (!options_uuid(options, OPTION_EVENT, &registry.event_id, why, sizeof why) ||
        !options_uuid(options, OPTION_ORG, &registry.org_id, why, sizeof why))
        return cli_fail_usage(VERB_REGISTRY, "%s", why);
    registry.results = json_array();
    if (!setup_check_store(options, why, sizeof why)) {
        good = false;
    } else if (options->values[OPTION_URL] != NULL) {
        good = ask_server(&registry, options->values[OPTION_URL]);
    } else if (registry.reconcile) {
        good = address_parse(options, OPTION_LISTEN, &listen, why, sizeof why);
        if (good) {
            address_format_url(&listen, url, sizeof url);
            good = ask_server(&registry, url);
        }
    } else {
        good = status_of_store(&registry);
    }
    if (good)
        print_results(&registry);
    json_decref(registry.results);
    if (!good)
        return cli_fail("%s", why);
    return registry.stale_count == 0 ? EXIT_DONE : EXIT_FAILED;
}
