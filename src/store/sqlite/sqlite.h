/* SPDX-License-Identifier: Apache-2.0
 * The embedded store: one SQLite file, one writing thread, readers beside it.
 * `path` is what follows "sqlite:"; everything else is as store.h says. */
#ifndef HOLDFAST_STORE_SQLITE_SQLITE_H
#define HOLDFAST_STORE_SQLITE_SQLITE_H

#include <stddef.h>

#include "base/err.h"
#include "store/store.h"

enum err sqlite_store_open(const char *path, const struct store_options *options, struct store **out,
                           char *why, size_t why_size) MUST_CHECK;
enum err sqlite_store_migrate(const char *path, int *applied, int *version, char *why,
                              size_t why_size) MUST_CHECK;

#endif
