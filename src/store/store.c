/* SPDX-License-Identifier: Apache-2.0
 * The face of every store: picks one by the URL's scheme and passes each call
 * on through its table of functions (store_int.h).
 *
 * Invariants: (1) a store that was handed out has every function of the table.
 * (2) A scheme that is not known is refused with a sentence that lists those
 * that are.
 *
 * Runs on the caller's thread. It keeps no state of its own and decides
 * nothing: what a call means is written in store.h, how it is done in the
 * store's own folder. */
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"
#include "store/store_int.h"

struct scheme {
    const char *prefix;
    bool whole; /* the store takes the whole URL, not what follows the prefix */
    enum err (*open)(const char *address, const struct store_options *options, struct store **out, char *why,
                     size_t why_size);
    enum err (*migrate)(const char *address, int *applied, int *version, char *why, size_t why_size);
};

static const struct scheme schemes[] = {
    {"sqlite:", false, sqlite_store_open, sqlite_store_migrate},
    {"postgres://", true, postgres_store_open, postgres_store_migrate},
    {"postgresql://", true, postgres_store_open, postgres_store_migrate},
};

/* The scheme of the URL, and where the rest begins; NULL, and why, if it is not known. */
static const struct scheme *scheme_find(const char *url, const char **address, char *why, size_t why_size)
{
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        size_t length = strlen(schemes[i].prefix);
        if (strncmp(url, schemes[i].prefix, length) == 0) {
            *address = schemes[i].whole ? url : url + length;
            return &schemes[i];
        }
    }
    snprintf(why, why_size,
             "The store \"%.200s\" is of no known kind; it must be sqlite:PATH or postgres://HOST/DATABASE.",
             url);
    return NULL;
}

enum err store_open(const char *url, const struct store_options *options, struct store **out, char *why,
                    size_t why_size)
{
    static const struct store_options none;
    const char *address = NULL;
    const struct scheme *scheme = scheme_find(url, &address, why, why_size);
    if (scheme == NULL)
        return ERR_CONFIG;
    return scheme->open(address, options != NULL ? options : &none, out, why, why_size);
}

enum err store_migrate(const char *url, int *applied, int *version, char *why, size_t why_size)
{
    const char *address = NULL;
    const struct scheme *scheme = scheme_find(url, &address, why, why_size);
    if (scheme == NULL)
        return ERR_CONFIG;
    return scheme->migrate(address, applied, version, why, why_size);
}

enum err store_submit(struct store *store, struct store_batch *batch)
{
    CHECK(batch->on_done != NULL);
    return store->functions->submit(store, batch);
}

enum err store_resolve(struct store *store, struct store_batch *batch)
{
    CHECK(batch->outcome == STORE_UNKNOWN);
    return store->functions->resolve(store, batch);
}

enum err store_lookup(struct store *store, struct store_lookup *lookup)
{
    CHECK(lookup->on_done != NULL);
    CHECK(lookup->arena != NULL);
    return store->functions->lookup(store, lookup);
}

enum err store_follow(struct store *store, struct store_follow *follow)
{
    return store->functions->follow(store, follow);
}

bool store_is_shared(const struct store *store)
{
    return store->shared;
}

enum err store_query(struct store *store, struct store_query *query)
{
    CHECK(query->on_done != NULL);
    CHECK(query->kind < QUERY_KIND_COUNT);
    return store->functions->query(store, query);
}

enum err store_load(struct store *store, const struct store_loader *loader, void *context)
{
    return store->functions->load(store, loader, context);
}

int store_fd(struct store *store)
{
    return store->functions->fd(store);
}

void store_poll(struct store *store)
{
    store->functions->poll(store);
}

bool store_is_up(struct store *store)
{
    return store->functions->is_up(store);
}

int64_t store_now_ms(struct store *store)
{
    return store->functions->now_ms(store);
}

enum err store_verify(struct store *store,
                      void (*on_check)(void *context, const char *claim, int64_t broken, const char *example),
                      void *context)
{
    return store->functions->verify(store, on_check, context);
}

void store_close(struct store *store)
{
    if (store != NULL)
        store->functions->close(store);
}
