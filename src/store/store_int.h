/* SPDX-License-Identifier: Apache-2.0
 * For stores only: the table of functions behind store.h. */
#ifndef HOLDFAST_STORE_STORE_INT_H
#define HOLDFAST_STORE_STORE_INT_H

#include "store/store.h"

struct store_functions {
    enum err (*submit)(struct store *store, struct store_batch *batch);
    enum err (*resolve)(struct store *store, struct store_batch *batch);
    enum err (*lookup)(struct store *store, struct store_lookup *lookup);
    enum err (*follow)(struct store *store, struct store_follow *follow);
    enum err (*query)(struct store *store, struct store_query *query);
    enum err (*load)(struct store *store, const struct store_loader *loader, void *context);
    int (*fd)(struct store *store);
    void (*poll)(struct store *store);
    bool (*is_up)(struct store *store);
    int64_t (*now_ms)(struct store *store);
    enum err (*verify)(struct store *store,
                       void (*on_check)(void *context, const char *claim, int64_t broken,
                                        const char *example),
                       void *context);
    void (*close)(struct store *store);
};

struct store { /* a store embeds this as its first member */
    const struct store_functions *functions;
    bool shared; /* other nodes may write to it */
};

#endif
