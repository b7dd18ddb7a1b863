/* SPDX-License-Identifier: Apache-2.0
 * The database's file: where it is, who may have it, and a sentence for each
 * way it can be wrong. Used while opening, before SQLite sees the file.
 *
 * Invariants: (1) one server at a time: PATH.lock is locked while the process
 * lives, and the kernel lets go of it when the process dies, however it dies.
 * (2) The lock file stays: removing it would let two servers lock two files of
 * one name. (3) The database itself is never opened and closed here once it
 * exists: closing any descriptor of it would drop SQLite's own locks in this
 * process. (4) A new database can be read by its owner alone. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/sqlite_int.h"

/* The folder without symbolic links, then the name. */
static enum err file_resolve_new(struct file *file, const char *path, char *why, size_t why_size)
{
    char folder_copy[SQLITE_PATH_SIZE], name_copy[SQLITE_PATH_SIZE], folder[PATH_MAX];
    snprintf(folder_copy, sizeof(folder_copy), "%s", path);
    snprintf(name_copy, sizeof(name_copy), "%s", path);
    const char *parent = dirname(folder_copy);
    if (realpath(parent, folder) == NULL) {
        snprintf(why, why_size, "The folder \"%s\" for the database cannot be used: %s.", parent,
                 strerror(errno));
        return ERR_STORE_OPEN;
    }
    const char *name = basename(name_copy);
    int length =
        snprintf(file->path, sizeof(file->path), "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    if (length < 0 || (size_t)length >= sizeof(file->path)) {
        snprintf(why, why_size, "The path of the database is too long.");
        return ERR_STORE_OPEN;
    }
    return ERR_OK;
}

enum err file_resolve(struct file *file, const char *path, bool must_exist, char *why, size_t why_size)
{
    file->lock_fd = -1;
    size_t length = strlen(path);
    if (length == 0 || length >= SQLITE_PATH_SIZE - sizeof(".lock")) {
        snprintf(why, why_size,
                 length == 0 ? "The store needs a path: sqlite:PATH."
                             : "The path of the database is too long.");
        return ERR_STORE_OPEN;
    }
    char resolved[PATH_MAX];
    struct stat status;
    if (realpath(path, resolved) == NULL) {
        if (errno != ENOENT || must_exist) {
            snprintf(why, why_size, "The database \"%s\" cannot be opened: %s.", path, strerror(errno));
            return ERR_STORE_OPEN;
        }
        return file_resolve_new(file, path, why, why_size);
    }
    snprintf(file->path, sizeof(file->path), "%s", resolved);
    if (stat(file->path, &status) != 0) {
        snprintf(why, why_size, "The database \"%s\" cannot be opened: %s.", path, strerror(errno));
        return ERR_STORE_OPEN;
    }
    if (!S_ISREG(status.st_mode)) {
        snprintf(why, why_size, "\"%s\" is %s, not a database.", path,
                 S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
        return ERR_STORE_OPEN;
    }
    if (access(file->path, must_exist ? R_OK : R_OK | W_OK) != 0) {
        snprintf(why, why_size, "The database \"%s\" cannot be opened: %s.", path, strerror(errno));
        return ERR_STORE_OPEN;
    }
    return ERR_OK;
}

enum err file_lock(struct file *file, char *why, size_t why_size)
{
    char path[SQLITE_PATH_SIZE + sizeof(".lock")];
    snprintf(path, sizeof(path), "%s.lock", file->path);
    file->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->lock_fd < 0) {
        snprintf(why, why_size, "The lock \"%s\" cannot be made: %s.", path, strerror(errno));
        return ERR_STORE_OPEN;
    }
    if (flock(file->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return ERR_OK;
    bool in_use = errno == EWOULDBLOCK;
    if (in_use)
        snprintf(why, why_size, "The database \"%s\" is in use by another server.", file->path);
    else
        snprintf(why, why_size, "The lock \"%s\" cannot be taken: %s.", path, strerror(errno));
    close(file->lock_fd);
    file->lock_fd = -1;
    return in_use ? ERR_STORE_IN_USE : ERR_STORE_OPEN;
}

enum err file_create(struct file *file, char *why, size_t why_size)
{
    int fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        close(fd);
        return ERR_OK;
    }
    if (errno == EEXIST)
        return ERR_OK;
    snprintf(why, why_size, "The database \"%s\" cannot be made: %s.", file->path, strerror(errno));
    return ERR_STORE_OPEN;
}

void file_unlock(struct file *file)
{
    if (file->lock_fd >= 0)
        close(file->lock_fd);
    file->lock_fd = -1;
}
