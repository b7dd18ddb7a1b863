/* SPDX-License-Identifier: Apache-2.0
 * An import file (organization, event, policy, layout) made into rows, and
 * the rows into a store. Used by `import`, and by `demo` and `bench` for the
 * events they make up. One thread; the store must be this process's own. */
#ifndef HOLDFAST_CLI_IMPORT_H
#define HOLDFAST_CLI_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/model.h"
#include "base/rng.h"
#include "cli/progress.h"
#include "hot/layout.h"
#include "store/store.h"

enum { IMPORT_SIZE_MAX = 40 * 1024 * 1024 }; /* a layout of the largest size, and what stands around it */

#define IMPORT_CURRENCY_DEFAULT "EUR"

struct import_plan { /* text and arrays are in the arena given to import_parse() */
    bool has_org_id;
    bool has_event_id;
    struct org_row org;
    struct event_row event;
    const char *document; /* the layout document, JSON */
    struct layout *layout;
};

/* Checks everything; ids that are not given are made. False: `why` says what is wrong and where. */
bool import_parse(const char *text, size_t size, struct rng *rng, int64_t now_ms, struct arena *arena,
                  struct import_plan *out, char *why, size_t why_size) MUST_CHECK;

/* One transaction: all of the plan or nothing. An organization that exists is used as it is; an
 * event that exists is an error. */
bool import_write(struct store *store, const struct import_plan *plan, struct rng *rng, int64_t now_ms,
                  struct progress *progress, char *why, size_t why_size) MUST_CHECK;

#endif
