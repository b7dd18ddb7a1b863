/* SPDX-License-Identifier: Apache-2.0
 * Files that are part of the binary: SQL, web pages. scripts/embed turns them
 * into tables of this type at build time; its head shows how to ask for one. */
#ifndef HOLDFAST_BASE_EMBED_H
#define HOLDFAST_BASE_EMBED_H

#include <stddef.h>
#include <string.h>

/* One file. A table of them ends with a NULL name. */
struct embed {
    const char *name; /* without its folder */
    const char *data; /* a NUL follows that is not counted, so text may be used as it is */
    size_t size;
};

/* Borrows from the table; NULL when there is no such file. */
static inline const struct embed *embed_find(const struct embed *table, const char *name)
{
    for (; table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0)
            return table;
    }
    return NULL;
}

#endif
