/* SPDX-License-Identifier: Apache-2.0
 * The database's file: where it is, who may have it, and a sentence for each
 * way it can be wrong. Used while opening, before SQLite sees the file.
 *
 * Invariants: (1) one server at a time, by two locks that the kernel drops when
 * the process dies, however it dies: the file itself is locked, under whatever
 * name or link it was opened, and PATH.lock, because the write-ahead log goes
 * by the name and stays when the file is replaced. (2) PATH.lock stays:
 * removing it would let two servers lock two files of one name. (3) The file's
 * descriptor is closed after SQLite's: closing any descriptor of a file drops
 * the locks that SQLite has on it in this process. (4) The name comes first, so
 * that a second store of this process is refused before it has such a
 * descriptor to close; one process does not open one file under two names.
 * (5) A new database can be read by its owner alone. */
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
    file->name_fd = -1;
    file->fd = -1;
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

/* Opens what may have to be made, and takes its lock. */
static enum err file_take(const struct file *file, const char *path, int *fd, char *why, size_t why_size)
{
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (*fd < 0) {
        snprintf(why, why_size, "The file \"%s\" cannot be made: %s.", path, strerror(errno));
        return ERR_STORE_OPEN;
    }
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
        return ERR_OK;
    bool in_use = errno == EWOULDBLOCK;
    if (in_use)
        snprintf(why, why_size, "The database \"%s\" is in use by another server.", file->path);
    else
        snprintf(why, why_size, "The file \"%s\" cannot be locked: %s.", path, strerror(errno));
    close(*fd);
    *fd = -1;
    return in_use ? ERR_STORE_IN_USE : ERR_STORE_OPEN;
}

enum err file_lock(struct file *file, char *why, size_t why_size)
{
    char name[SQLITE_PATH_SIZE + sizeof(".lock")];
    snprintf(name, sizeof(name), "%s.lock", file->path);
    enum err err = file_take(file, name, &file->name_fd, why, why_size);
    return err == ERR_OK ? file_take(file, file->path, &file->fd, why, why_size) : err;
}

void file_unlock(struct file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    if (file->name_fd >= 0)
        close(file->name_fd);
    file->name_fd = -1;
}
