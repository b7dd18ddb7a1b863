/* SPDX-License-Identifier: Apache-2.0
 * A redis-server of the test's own: on a unix socket (and, if asked, TCP or TLS
 * ports) in a folder that goes with it. Nothing is kept on disk. */
#ifndef HOLDFAST_TEST_WARM_REDIS_SERVER_H
#define HOLDFAST_TEST_WARM_REDIS_SERVER_H

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REDIS_ARGUMENT_COUNT_MAX = 48, REDIS_START_MS_MAX = 20000 };

struct redis_server {
    pid_t pid; /* 0: does not run */
    char folder[64];
    char socket[96];
    char url[128];
    const char *arguments[REDIS_ARGUMENT_COUNT_MAX]; /* besides those it always gets; NULL ended */
};

/* A TCP port of 127.0.0.1 that nobody has right now. */
static inline int redis_free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        abort();
    close(fd);
    return ntohs(address.sin_port);
}

/* Connects, waiting for the server to come up; −1: it did not. */
static inline int redis_server_connect(const struct redis_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->socket);
    for (int waited = 0; waited < REDIS_START_MS_MAX; waited += 5) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
            return fd;
        if (fd >= 0)
            close(fd);
        if (server->pid != 0 && waitpid(server->pid, NULL, WNOHANG) == server->pid)
            return -1;
        usleep(5000);
    }
    return -1;
}

static inline void redis_server_run(struct redis_server *server)
{
    const char *arguments[REDIS_ARGUMENT_COUNT_MAX + 16] = {
        "redis-server", "--port", "0", "--unixsocket", server->socket, "--dir",
        server->folder, "--save", "",  "--appendonly", "no",           "--logfile",
        "redis.log",
    };
    int count = 13;
    for (int i = 0; server->arguments[i] != NULL; i++)
        arguments[count++] = server->arguments[i];
    pid_t parent = getpid();
    server->pid = fork();
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing behind */
        if (getppid() == parent)
            execvp(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    int fd = redis_server_connect(server);
    if (fd < 0) {
        fprintf(stderr, "redis-server does not start\n");
        abort();
    }
    close(fd);
}

/* `arguments` end with NULL, or are NULL. */
static inline void redis_server_start(struct redis_server *server, const char *const *arguments)
{
    memset(server, 0, sizeof(*server));
    snprintf(server->folder, sizeof(server->folder), "/tmp/holdfast-warm-XXXXXX");
    if (mkdtemp(server->folder) == NULL)
        abort();
    snprintf(server->socket, sizeof(server->socket), "%s/redis.sock", server->folder);
    snprintf(server->url, sizeof(server->url), "unix://%s", server->socket);
    for (int i = 0; arguments != NULL && arguments[i] != NULL; i++)
        server->arguments[i] = arguments[i];
    redis_server_run(server);
}

static inline void redis_server_kill(struct redis_server *server)
{
    if (server->pid == 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    unlink(server->socket);
}

static inline void redis_server_stop(struct redis_server *server)
{
    redis_server_kill(server);
    DIR *folder = opendir(server->folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[400];
        snprintf(path, sizeof(path), "%s/%s", server->folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (folder != NULL)
        closedir(folder);
    rmdir(server->folder);
}

#endif
