/* SPDX-License-Identifier: Apache-2.0
 * Reads a whole file, or standard input, up to a limit. A directory, a missing
 * file, a file that may not be read: one sentence each. Makes and removes
 * temporary directories. */
#include "cli/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(const char *path, size_t size_max, struct buf *out, char *why, size_t why_size)
{
    bool from_input = strcmp(path, "-") == 0;
    const char *name = from_input ? "standard input" : path;
    int fd = from_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    char chunk[65536];
    bool good = false;

    if (fd < 0) {
        snprintf(why, why_size, "cannot read %s: %s", name, strerror(errno));
        return false;
    }
    for (;;) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            snprintf(why, why_size, "cannot read %s: %s", name, strerror(errno));
            break;
        }
        if (count == 0) {
            good = buf_ok(out);
            if (!good)
                snprintf(why, why_size, "%s does not fit into memory", name);
            break;
        }
        if (out->size + (size_t)count > size_max) {
            snprintf(why, why_size, "%s is larger than %zu bytes", name, size_max);
            break;
        }
        buf_put(out, chunk, (size_t)count);
    }
    if (!from_input)
        close(fd);
    return good;
}

bool directory_create_temporary(const char *parent, const char *name, char *out, size_t out_size, char *why,
                                size_t why_size)
{
    const char *chosen = getenv("TMPDIR");
    int length =
        snprintf(out, out_size, "%s/%s-XXXXXX", chosen != NULL && chosen[0] != '\0' ? chosen : parent, name);

    if (length > 0 && (size_t)length < out_size && mkdtemp(out) != NULL)
        return true;
    snprintf(why, why_size, "cannot make a temporary directory under %.200s: %s",
             chosen != NULL && chosen[0] != '\0' ? chosen : parent, strerror(errno));
    out[0] = '\0';
    return false;
}

void directory_remove(const char *path)
{
    DIR *directory = path[0] != '\0' ? opendir(path) : NULL;
    struct dirent *entry;

    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(path);
}
