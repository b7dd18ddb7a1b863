/* SPDX-License-Identifier: Apache-2.0
 * Files the command line reads: whole, bounded, with one sentence when it does
 * not work. And the secret that signs tokens, which is made on first use. */
#ifndef HOLDFAST_CLI_FILES_H
#define HOLDFAST_CLI_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"

/* Appends the whole file ("-": standard input) to `out`. False and one sentence if it cannot
 * be read or is larger than size_max. */
bool file_read(const char *path, size_t size_max, struct buf *out, char *why, size_t why_size) MUST_CHECK;

/* A new directory of our own: `parent`/`name`-XXXXXX, or under TMPDIR if that is set. */
bool directory_create_temporary(const char *parent, const char *name, char *out, size_t out_size, char *why,
                                size_t why_size) MUST_CHECK;
/* Removes it with the files in it; "" is fine. Folders in it are left, and then it is too. */
void directory_remove(const char *path);

/* ---- secret.c ---- */

enum { SECRET_SIZE_MAX = 4096, SECRET_SIZE_ADVISED = 32 };

struct secret {
    char path[PATH_MAX];
    unsigned char bytes[SECRET_SIZE_MAX];
    size_t size;
    bool created;        /* made just now */
    bool open_to_others; /* the file can be read by group or others */
};

/* The place beside an embedded store: PATH.secret of sqlite:PATH. False for other stores. */
bool secret_path(const char *store_url, char *out, size_t out_size) MUST_CHECK;

/* Reads a secret; a trailing line end is not part of it. */
bool secret_read(const char *path, struct secret *out, char *why, size_t why_size) MUST_CHECK;

/* Reads it, or makes it: 0600, on disk before it is used, and never over an existing one. */
bool secret_read_or_create(const char *path, struct secret *out, char *why, size_t why_size) MUST_CHECK;

/* Forgets it: the compiler may not leave this out. */
void secret_wipe(struct secret *secret);

#endif
