/* SPDX-License-Identifier: Apache-2.0
 * SQLite's page cache with one change: a commit does not walk all of it. */
#ifndef HOLDFAST_STORE_SQLITE_PAGE_CACHE_H
#define HOLDFAST_STORE_SQLITE_PAGE_CACHE_H

/* Before SQLite is first used in the process. Where it cannot be set, SQLite's own cache stays. */
void page_cache_set_up(void);

#endif
