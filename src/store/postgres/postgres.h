/* SPDX-License-Identifier: Apache-2.0
 * The PostgreSQL store. `url` is the whole URL, with every option that libpq
 * knows; everything else is as store.h says. */
#ifndef HOLDFAST_STORE_POSTGRES_POSTGRES_H
#define HOLDFAST_STORE_POSTGRES_POSTGRES_H

#include <stddef.h>

#include "base/err.h"
#include "store/store.h"

enum err postgres_store_open(const char *url, const struct store_options *options, struct store **out,
                             char *why, size_t why_size) MUST_CHECK;
enum err postgres_store_migrate(const char *url, int *applied, int *version, char *why,
                                size_t why_size) MUST_CHECK;

#endif
