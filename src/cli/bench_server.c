/* SPDX-License-Identifier: Apache-2.0
 * A server to measure: a temporary store filled with seats, and this very
 * binary's `serve` on it, on a free port of 127.0.0.1, in a process of its own
 * that ends with ours. Settings from the environment are kept away from it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/files.h"
#include "cli/import.h"

enum { START_MS_MAX = 60000, STOP_MS_MAX = 30000 };

/* ---- The store ---- */

/* 10 blocks of 100 rows of 100 seats, no limits, holds of an hour. */
static void write_document(struct buf *out, const char *org_id, int number)
{
    buf_printf(out, "{\"organization\":{\"id\":\"%s\",\"name\":\"Bench\"},", org_id);
    buf_printf(
        out,
        "\"event\":{\"name\":\"Bench %d\",\"status\":\"published\",\"policy\":{\"hold_ttl_seconds\":3600,"
        "\"hold_max_seconds\":3600,\"max_seats_per_user\":0,\"rate_limit_holds\":0}},",
        number);
    buf_put_text(out, "\"layout\":{\"name\":\"Field\",\"blocks\":[");
    for (int block = 0; block < 10; block++) {
        buf_printf(
            out,
            "%s{\"section\":\"A\",\"subsection\":%d,\"name\":\"Field %d\",\"price_cents\":1000,\"rows\":[",
            block > 0 ? "," : "", block + 1, block + 1);
        for (int row = 0; row < 100; row++)
            buf_printf(out, "%s{\"label\":\"%d\",\"seats\":100}", row > 0 ? "," : "", row + 1);
        buf_put_text(out, "]}");
    }
    buf_put_text(out, "]}}");
}

static bool fill_event(struct store *store, const struct uuid *org_id, int number, struct rng *rng, char *why,
                       size_t why_size)
{
    char org_text[UUID_TEXT_SIZE];
    struct import_plan plan;
    struct progress progress;
    struct arena arena;
    struct buf document;

    progress_init(&progress, true);
    arena_init(&arena);
    buf_init(&document);
    uuid_format(org_id, org_text);
    write_document(&document, org_text, number);
    bool good =
        import_parse(document.data, document.size, rng, clock_now_ms(), &arena, &plan, why, why_size) &&
        import_write(store, &plan, rng, clock_now_ms(), &progress, why, why_size);
    buf_deinit(&document);
    arena_deinit(&arena);
    return good;
}

bool bench_server_fill(struct bench_server *server, int event_count, char *why, size_t why_size)
{
    struct store_options options = {.read_only = false};
    struct store *store = NULL;
    struct rng rng;

    rng_init_system(&rng);
    server->org_id = uuid_make(&rng, clock_now_ms());
    /* Not /tmp, which is often memory: there nothing is durable, and the figure would lie. */
    if (!directory_create_temporary("/var/tmp", "holdfast-bench", server->directory, sizeof server->directory,
                                    why, why_size))
        return false;
    snprintf(server->store_url, sizeof server->store_url, "sqlite:%s/holdfast.db", server->directory);
    if (store_open(server->store_url, &options, &store, why, why_size) != ERR_OK)
        return false;
    bool good = true;
    for (int i = 0; i < event_count && good; i++)
        good = fill_event(store, &server->org_id, i + 1, &rng, why, why_size);
    store_close(store);
    return good;
}

/* ---- The process ---- */

static void run_child(const struct bench_server *server, int output)
{
    char *arguments[] = {"holdfast",    "serve",   "--listen",
                         "127.0.0.1:0", "--store", (char *)server->store_url,
                         "--log-level", "error",   NULL};
    extern char **environ;
    size_t kept = 0;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "HOLDFAST_", 9) != 0)
            environ[kept++] = *variable;
    environ[kept] = NULL;
    dup2(output, STDOUT_FILENO);
    execv("/proc/self/exe", arguments);
    _exit(127);
}

/* The line a server prints when it is ready, or false after START_MS_MAX. */
static bool read_ready_line(int fd, char *line, size_t line_size)
{
    int64_t end_us = clock_monotonic_us() + START_MS_MAX * INT64_C(1000);
    size_t size = 0;

    while (size + 1 < line_size) {
        struct pollfd descriptor = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (end_us - clock_monotonic_us()) / 1000;
        if (left_ms <= 0 || poll(&descriptor, 1, (int)left_ms) <= 0)
            return false;
        if (read(fd, line + size, 1) != 1)
            return false;
        if (line[size] == '\n')
            break;
        size++;
    }
    line[size] = '\0';
    return true;
}

bool bench_server_start(struct bench_server *server, char *why, size_t why_size)
{
    char line[1024] = "";
    unsigned port = 0;
    int pipes[2];

    if (pipe(pipes) != 0) {
        snprintf(why, why_size, "cannot make a pipe: %s", strerror(errno));
        return false;
    }
    server->pid = fork();
    if (server->pid == 0) {
        close(pipes[0]);
        run_child(server, pipes[1]);
    }
    close(pipes[1]);
    bool good = server->pid > 0 && read_ready_line(pipes[0], line, sizeof line) &&
                sscanf(line, "holdfast: listening on http://127.0.0.1:%u", &port) == 1;
    close(pipes[0]);
    if (!good)
        snprintf(why, why_size, "the server to be measured did not start");
    snprintf(server->host, sizeof server->host, "127.0.0.1");
    server->port = (uint16_t)port;
    return good;
}

void bench_server_stop(struct bench_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGTERM);
    for (int waited_ms = 0; waitpid(server->pid, NULL, WNOHANG) == 0; waited_ms += 20) {
        if (waited_ms >= STOP_MS_MAX)
            kill(server->pid, SIGKILL);
        usleep(20000);
    }
    server->pid = 0;
}

void bench_server_remove(struct bench_server *server)
{
    directory_remove(server->directory);
    server->directory[0] = '\0';
}
