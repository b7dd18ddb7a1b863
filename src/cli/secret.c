/* SPDX-License-Identifier: Apache-2.0
 * The secret that signs tokens. Without an option it lives beside the embedded
 * store, made on first use: 32 random bytes as hexadecimal text.
 *
 * Invariants: (1) a secret that was ever used is never overwritten: a new one is
 * written under a name of its own, synced, and then linked, which fails if another
 * process was first; then theirs is used. (2) A crash leaves either no
 * secret or a whole one. (3) Nobody but the owner may read what is made here. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "cli/files.h"

bool secret_path(const char *store_url, char *out, size_t out_size)
{
    static const char scheme[] = "sqlite:";

    if (strncmp(store_url, scheme, strlen(scheme)) != 0)
        return false;
    int length = snprintf(out, out_size, "%s.secret", store_url + strlen(scheme));
    return length > 0 && (size_t)length < out_size;
}

void secret_wipe(struct secret *secret)
{
    explicit_bzero(secret, sizeof *secret);
}

bool secret_read(const char *path, struct secret *out, char *why, size_t why_size)
{
    struct stat status;
    struct buf text;
    bool good = false;

    *out = (struct secret){.size = 0};
    buf_init(&text);
    if (!file_read(path, SECRET_SIZE_MAX, &text, why, why_size))
        goto done;
    if (text.size > 0 && text.data[text.size - 1] == '\n')
        text.size--;
    if (text.size > 0 && text.data[text.size - 1] == '\r')
        text.size--;
    if (text.size == 0) {
        snprintf(why, why_size, "the secret file %s is empty", path);
        goto done;
    }
    snprintf(out->path, sizeof out->path, "%s", path);
    memcpy(out->bytes, text.data, text.size);
    out->size = text.size;
    out->open_to_others = stat(path, &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0;
    good = true;
done:
    if (text.data != NULL)
        explicit_bzero(text.data, text.capacity);
    buf_deinit(&text);
    return good;
}

/* A directory entry is on disk only when its directory is. */
static bool sync_directory_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = fsync(fd) == 0;
    close(fd);
    return good;
}

static bool secret_create(const char *path, char *why, size_t why_size)
{
    char temporary[PATH_MAX], text[65];
    unsigned char bytes[32];
    bool good = false;

    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    random_secret(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[64] = '\n';
    unlink(temporary); /* of an earlier process with this number that did not live to remove it */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        goto failed_open;
    if (write(fd, text, sizeof text) != (ssize_t)sizeof text || fsync(fd) != 0)
        goto failed_write;
    if (link(temporary, path) != 0 && errno != EEXIST)
        goto failed_write;
    good = sync_directory_of(path);
failed_write:
    if (!good)
        snprintf(why, why_size, "cannot write the secret file %s: %s", path, strerror(errno));
    close(fd);
    unlink(temporary);
failed_open:
    if (fd < 0)
        snprintf(why, why_size, "cannot make the secret file %s: %s", path, strerror(errno));
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(text, sizeof text);
    return good;
}

bool secret_read_or_create(const char *path, struct secret *out, char *why, size_t why_size)
{
    if (access(path, F_OK) == 0)
        return secret_read(path, out, why, why_size);
    if (!secret_create(path, why, why_size) || !secret_read(path, out, why, why_size))
        return false;
    out->created = true;
    return true;
}
