/* SPDX-License-Identifier: Apache-2.0
 * Readers of one event's stream, beside the load: when does each of them see
 * each seat, and does anybody miss one?
 *
 * Thousands of readers get every frame, so a byte may cost next to nothing:
 * nothing is copied or kept but where a reader is in the pattern
 * `[INDEX,"held"`, which stands in frames of seats and nowhere else.
 *
 * Invariants: (1) Every reader has had its snapshot before the first seat is
 * asked for, so that all it must see comes as a frame. (2) A seat counts once a
 * reader, however often it is shown. (3) All held seats of the event are the
 * load's: nobody else may hold there meanwhile. One thread, the load's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/bench.h"

enum {
    READ_SIZE = 65536,
    READER_EVENT_COUNT = 256,
    SNAPSHOT_US_MAX = 30000000, /* for all of them */
    QUIET_US_MAX = 5000000,     /* so long without news at the end: nothing comes any more */
    BITS_SIZE = EVENT_SEAT_COUNT_MAX / 8 + 1,
};

/* Where a reader is. The head ends with an empty line; `[` begins an index. */
enum reader_state { IN_HEAD, OUTSIDE, IN_INDEX, IN_WORD };
static const char head_end[] = "\r\n\r\n";
static const char held_word[] = "\"held\"";

struct reader {
    int fd;
    enum reader_state state;
    int matched; /* characters of the head's end, or of the word */
    int32_t index;
    bool has_snapshot;
    int32_t seen_count; /* bits set in `seen` */
    uint8_t seen[BITS_SIZE];
};

struct bench_readers {
    const struct bench_load *load;
    int epoll_fd;
    struct reader *readers;
    int snapshot_count;
    int64_t news_us; /* when something new was last seen */
    int64_t *due_us; /* by index; 0: not asked for */
    uint8_t held[BITS_SIZE];
    struct bench_lag *lag;
    char input[READ_SIZE];
};

static bool bit_set(uint8_t *bits, int32_t index) /* true if it was not set before */
{
    uint8_t bit = (uint8_t)(1u << (index % 8));
    bool is_new = (bits[index / 8] & bit) == 0;

    bits[index / 8] |= bit;
    return is_new;
}

/* ---- One reader ---- */

static void on_seat(struct bench_readers *readers, struct reader *reader, int64_t now_us)
{
    if (reader->index >= EVENT_SEAT_COUNT_MAX || readers->due_us[reader->index] == 0 ||
        !bit_set(reader->seen, reader->index))
        return;
    int64_t lag_us = now_us - readers->due_us[reader->index];
    reader->seen_count++;
    readers->news_us = now_us;
    bench_steps_add(readers->lag->steps, lag_us);
    if (lag_us > readers->lag->max_us)
        readers->lag->max_us = lag_us;
}

static void step(struct bench_readers *readers, struct reader *reader, char c, int64_t now_us)
{
    switch (reader->state) {
    case IN_HEAD:
        reader->matched = c == head_end[reader->matched] ? reader->matched + 1 : c == head_end[0];
        if (reader->matched == (int)sizeof head_end - 1)
            reader->state = OUTSIDE;
        break;
    case OUTSIDE:
        if (c == '[') {
            reader->state = IN_INDEX;
            reader->index = 0;
        }
        break;
    case IN_INDEX:
        if (c >= '0' && c <= '9' && reader->index < EVENT_SEAT_COUNT_MAX) {
            reader->index = reader->index * 10 + (c - '0');
        } else if (c != '[') { /* the list's own, before its first seat's */
            reader->state = c == ',' ? IN_WORD : OUTSIDE;
            reader->matched = 0;
        }
        break;
    case IN_WORD:
        if (c != held_word[reader->matched++]) {
            reader->state = OUTSIDE;
        } else if (reader->matched == (int)sizeof held_word - 1) {
            on_seat(readers, reader, now_us);
            reader->state = OUTSIDE;
        }
        break;
    }
}

static void reader_end(struct bench_readers *readers, struct reader *reader)
{
    close(reader->fd);
    reader->fd = -1;
    readers->lag->broken_count++;
}

static void reader_read(struct bench_readers *readers, struct reader *reader)
{
    ssize_t count = recv(reader->fd, readers->input, READ_SIZE, 0);
    int64_t now_us = clock_monotonic_us();

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        reader_end(readers, reader);
        return;
    }
    for (ssize_t i = 0; i < count; i++)
        step(readers, reader, readers->input[i], now_us);
    if (!reader->has_snapshot && reader->state != IN_HEAD &&
        memmem(readers->input, (size_t)count, "event: snapshot\n", 16) != NULL) {
        reader->has_snapshot = true;
        readers->snapshot_count++;
    }
}

static bool reader_open(struct bench_readers *readers, struct reader *reader, const char *token)
{
    const struct bench_load *load = readers->load;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = reader};
    char *request = NULL;

    reader->fd = bench_connect(load);
    if (reader->fd < 0)
        return false;
    int length = asprintf(&request,
                          "GET /api/events/%.*s/stream HTTP/1.1\r\nHost: %s\r\n"
                          "Authorization: Bearer %s\r\n\r\n",
                          (int)BENCH_ID_SIZE, load->events[0], load->host, token);
    CHECK(length > 0);
    bool good = send(reader->fd, request, (size_t)length, MSG_NOSIGNAL) == length &&
                epoll_ctl(readers->epoll_fd, EPOLL_CTL_ADD, reader->fd, &event) == 0;
    free(request);
    return good;
}

/* ---- All of them ---- */

static void readers_wait(struct bench_readers *readers, int wait_ms)
{
    struct epoll_event events[READER_EVENT_COUNT];
    int count = epoll_wait(readers->epoll_fd, events, READER_EVENT_COUNT, wait_ms);

    for (int i = 0; i < count; i++)
        reader_read(readers, events[i].data.ptr);
}

struct bench_readers *bench_readers_open(const struct bench_load *load, char *why, size_t why_size)
{
    struct bench_readers *readers = calloc(1, sizeof *readers);

    CHECK(readers != NULL);
    readers->load = load;
    readers->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    readers->readers = calloc((size_t)load->reader_count, sizeof *readers->readers);
    readers->due_us = calloc(EVENT_SEAT_COUNT_MAX, sizeof *readers->due_us);
    readers->lag = calloc(1, sizeof *readers->lag);
    CHECK(readers->readers != NULL && readers->due_us != NULL && readers->lag != NULL);
    for (int i = 0; i < load->reader_count; i++)
        readers->readers[i].fd = -1;
    for (int i = 0; i < load->reader_count; i++) {
        if (!reader_open(readers, &readers->readers[i], load->tokens[load->connection_count + i])) {
            snprintf(why, why_size, "stream %d could not be opened: %s", i + 1, strerror(errno));
            bench_readers_close(readers);
            return NULL;
        }
        readers_wait(readers, 0);
    }
    int64_t end_us = clock_monotonic_us() + SNAPSHOT_US_MAX;
    while (readers->snapshot_count < load->reader_count && clock_monotonic_us() < end_us)
        readers_wait(readers, 100);
    if (readers->snapshot_count < load->reader_count) {
        snprintf(why, why_size, "only %d of %d streams began with a snapshot", readers->snapshot_count,
                 load->reader_count);
        bench_readers_close(readers);
        return NULL;
    }
    return readers;
}

void bench_readers_close(struct bench_readers *readers)
{
    if (readers == NULL)
        return;
    for (int i = 0; i < readers->load->reader_count; i++)
        if (readers->readers[i].fd >= 0)
            close(readers->readers[i].fd);
    close(readers->epoll_fd);
    free(readers->readers);
    free(readers->due_us);
    free(readers->lag);
    free(readers);
}

int bench_readers_fd(const struct bench_readers *readers)
{
    return readers->epoll_fd;
}

void bench_readers_turn(struct bench_readers *readers)
{
    readers_wait(readers, 0);
}

void bench_readers_asked(struct bench_readers *readers, const struct bench_seat *seat, int64_t due_us)
{
    if (seat->event == 0)
        readers->due_us[seat->index] = due_us;
}

void bench_readers_held(struct bench_readers *readers, const struct bench_seat *seat)
{
    if (seat->event == 0 && bit_set(readers->held, seat->index))
        readers->lag->change_count++;
}

static int64_t count_missing(const struct bench_readers *readers)
{
    int64_t missing = 0;

    for (int i = 0; i < readers->load->reader_count; i++) {
        const struct reader *reader = &readers->readers[i];
        if (reader->seen_count >= readers->lag->change_count)
            continue;
        for (int byte = 0; byte < BITS_SIZE; byte++)
            missing += __builtin_popcount((unsigned)(readers->held[byte] & ~reader->seen[byte]));
    }
    return missing;
}

struct bench_lag *bench_readers_finish(struct bench_readers *readers)
{
    struct bench_lag *lag = readers->lag;

    readers->news_us = clock_monotonic_us();
    do {
        readers_wait(readers, 100);
        lag->missing_count = count_missing(readers);
    } while (lag->missing_count > 0 && clock_monotonic_us() - readers->news_us < QUIET_US_MAX);
    readers->lag = NULL;
    return lag;
}
