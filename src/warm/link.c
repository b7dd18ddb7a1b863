/* SPDX-License-Identifier: Apache-2.0
 * One connection to Redis.
 *
 *   DOWN ──▶ RESOLVING ──▶ CONNECTING ──▶ GREETING ──▶ READY
 *     ▲    (names only)         │             │           │
 *     │        next address ◀───┴──────◀──────┘           │
 *     └── all were tried ◀─────┘                          │
 *     └───────────────────────◀───────────────────────────┘
 *
 * 1. What is put into `out` is sent only while READY, after the greeting was
 *    answered, so that it waits unharmed while addresses are tried.
 * 2. Answers come in the order of commands; `owed` has one entry for each, or
 *    one for a run of answers nobody waits for.
 * 3. Going DOWN loses `out` and everything owed; on_failed() is told once.
 * 4. It begins with the address that worked last, unless that one said that it
 *    is read-only or still loading.
 *
 * The lane's thread. It does not decide when to try again. */
#include "warm/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/check.h"
#include "base/metrics.h"
#include "warm/resp.h"

enum { READ_SIZE = 64 * 1024, OUT_KEPT_SIZE = 256 * 1024 };

static void link_try(struct link *link, int64_t now_us);

void link_init(struct link *link, const struct link_functions *functions, void *context,
               const struct address_list *list, struct tls *const *tls, int epoll)
{
    *link =
        (struct link){.functions = functions, .context = context, .list = list, .tls = tls, .epoll = epoll};
    socket_init(&link->socket);
    reply_reader_init(&link->reader);
}

static void link_forget_owed(struct link *link)
{
    for (size_t i = 0; i < link->owed_count; i++)
        free(link->owed[(link->owed_head + i) & (link->owed_capacity - 1)].again);
    link->owed_head = link->owed_count = 0;
    link->replies_owed = 0;
}

/* A socket leaves epoll with its closing; a lookup's descriptor may be held by its thread, and must be taken out. */
static void link_hang_up(struct link *link)
{
    socket_close(&link->socket);
    if (link->resolver != NULL)
        epoll_ctl(link->epoll, EPOLL_CTL_DEL, resolver_fd(link->resolver), NULL);
    resolver_drop(link->resolver);
    link->resolver = NULL;
    link->watched = 0;
    link->greeting_sent = 0;
    buf_clear(&link->greeting);
    link->state = LINK_DOWN;
}

void link_deinit(struct link *link)
{
    link_hang_up(link);
    link_forget_owed(link);
    free(link->owed);
    buf_deinit(&link->greeting);
    buf_deinit(&link->out);
    reply_reader_deinit(&link->reader);
}

static void link_watch(struct link *link, int fd, uint32_t events)
{
    if (events == link->watched)
        return;
    struct epoll_event event = {.events = events, .data.ptr = link};
    int done = epoll_ctl(link->epoll, link->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    CHECK(done == 0);
    link->watched = events;
}

static void link_watch_socket(struct link *link)
{
    link_watch(link, link->socket.fd, link->socket.wants_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void link_drop_queue(struct link *link)
{
    CHECK(link->state != LINK_READY);
    link_forget_owed(link);
    buf_clear(&link->out);
    link->out_sent = 0;
}

void link_fail(struct link *link, bool timed_out, const char *why)
{
    char text[200];
    snprintf(text, sizeof(text), "%s", why); /* it may be the socket's own, or an answer's */
    link_hang_up(link);
    link_drop_queue(link);
    if (link->unusable)
        link->address = (link->address + 1) % link->list->count;
    link->unusable = false;
    link->tried = 0;
    link->functions->on_failed(link, timed_out, text);
}

/* This address is none: on to the next, if there is one that was not tried. */
static void link_move_on(struct link *link, int64_t now_us, bool timed_out, const char *why)
{
    char text[200];
    snprintf(text, sizeof(text), "%s", why);
    link_hang_up(link);
    link->unusable = false;
    link->resolved_index++;
    if (link->resolved_index < link->resolved.count) {
        link_try(link, now_us);
        return;
    }
    link->tried++;
    link->address = (link->address + 1) % link->list->count;
    if (link->tried >= link->list->count) {
        link_fail(link, timed_out, text);
        return;
    }
    link_connect(link, now_us);
}

static void link_greet(struct link *link)
{
    const struct address *address = &link->list->addresses[link->address];
    struct buf *out = &link->greeting;
    link->greeting_count = 0;
    link->greeting_index = 0;
    if (address->password[0] != '\0') {
        resp_array(out, address->user[0] != '\0' ? 3 : 2);
        resp_text(out, "AUTH");
        if (address->user[0] != '\0')
            resp_text(out, address->user);
        resp_text(out, address->password);
        link->greeting_index--; /* those of link_functions are counted from 0 */
    }
    if (address->database != 0) {
        resp_array(out, 2);
        resp_text(out, "SELECT");
        resp_int(out, address->database);
        link->greeting_index--;
    }
    link->greeting_count = link->functions->greet(link, out) - link->greeting_index;
    link->state = LINK_GREETING;
}

/* Connects to the next of the numbers that the address has. */
static void link_try(struct link *link, int64_t now_us)
{
    const struct resolved *resolved = &link->resolved;
    if (link->resolved_index >= resolved->count) {
        link_move_on(link, now_us, false, "the host's name is not known");
        return;
    }
    link->state = LINK_CONNECTING;
    link->deadline_us = now_us + LINK_GREETING_MS_MAX * 1000;
    reply_reader_reset(&link->reader);
    int i = link->resolved_index;
    if (!socket_connect(&link->socket, (const struct sockaddr *)&resolved->addresses[i], resolved->sizes[i],
                        link->tls[link->address])) {
        link_move_on(link, now_us, false, link->socket.why);
        return;
    }
    link_watch_socket(link);
}

void link_connect(struct link *link, int64_t now_us)
{
    CHECK(link->state == LINK_DOWN);
    const struct address *address = &link->list->addresses[link->address];
    link->resolved_index = 0;
    if (resolve_plain(address, &link->resolved)) {
        link_try(link, now_us);
        return;
    }
    link->resolved.count = 0;
    link->resolver = resolver_start(address);
    if (link->resolver == NULL) {
        link_move_on(link, now_us, false, "there is no thread to look up the host's name");
        return;
    }
    link->state = LINK_RESOLVING;
    link->deadline_us = now_us + LINK_GREETING_MS_MAX * 1000;
    link_watch(link, resolver_fd(link->resolver), EPOLLIN);
}

static void link_resolve(struct link *link, int64_t now_us)
{
    if (!resolver_take(link->resolver, &link->resolved))
        return;
    link_hang_up(link);
    link_try(link, now_us);
}

/* ---- Sending ---- */

/* False: the connection is over. */
static bool link_send(struct link *link, struct buf *buf, size_t *sent)
{
    while (*sent < buf->size) {
        ssize_t put = socket_write(&link->socket, buf->data + *sent, buf->size - *sent);
        if (put < 0)
            return false;
        if (put == 0)
            break;
        *sent += (size_t)put;
    }
    if (*sent < buf->size)
        return true;
    *sent = 0;
    if (buf->capacity > OUT_KEPT_SIZE)
        buf_deinit(buf);
    buf_clear(buf);
    return true;
}

void link_flush(struct link *link, int64_t now_us)
{
    if (link->state != LINK_READY || link->out.size == 0) /* READY: the greeting has long been sent */
        return;
    if (!buf_ok(&link->out)) {
        link_fail(link, false, "there is no memory for what is to be sent");
        return;
    }
    if (link->out_sent == 0 && link->progress_us == 0)
        link->progress_us = now_us;
    if (!link_send(link, &link->out, &link->out_sent)) {
        link_fail(link, false, link->socket.why);
        return;
    }
    link_watch_socket(link);
}

bool link_has_room(const struct link *link)
{
    return link->out.size < LINK_OUT_SIZE_MAX && link->replies_owed < LINK_OWED_COUNT_MAX;
}

static struct owed *link_owed_at(struct link *link, size_t i)
{
    return &link->owed[(link->owed_head + i) & (link->owed_capacity - 1)];
}

void link_owe(struct link *link, const struct owed *owed)
{
    if (link->owed_count == link->owed_capacity) {
        size_t capacity = link->owed_capacity == 0 ? 256 : link->owed_capacity * 2;
        struct owed *ring = malloc(capacity * sizeof(*ring));
        CHECK(ring != NULL);
        for (size_t i = 0; i < link->owed_count; i++)
            ring[i] = *link_owed_at(link, i);
        free(link->owed);
        link->owed = ring;
        link->owed_capacity = capacity;
        link->owed_head = 0;
    }
    *link_owed_at(link, link->owed_count++) = *owed;
    link->replies_owed += owed->count;
}

void link_owe_nobody(struct link *link, int32_t count)
{
    if (count == 0)
        return;
    struct owed *last = link->owed_count > 0 ? link_owed_at(link, link->owed_count - 1) : NULL;
    if (last != NULL && last->on_reply == NULL) {
        last->count += count;
        link->replies_owed += count;
        return;
    }
    link_owe(link, &(struct owed){.count = count});
}

/* ---- Receiving ---- */

static void link_note_error(struct link *link, const struct reply *reply)
{
    static const char *const not_the_one[] = {"READONLY", "LOADING", "MASTERDOWN"};
    for (size_t i = 0; i < COUNT_OF(not_the_one); i++)
        link->unusable |= reply_is_error(reply, not_the_one[i]);
    if (reply_is_error(reply, "") && !reply_is_error(reply, "NOSCRIPT"))
        counter_add(COUNTER_WARM_ERRORS_REPLY, 1);
}

static void link_take_owed(struct link *link, const struct reply *reply)
{
    struct owed *first = link_owed_at(link, 0);
    link->replies_owed--;
    if (--first->count > 0)
        return;
    struct owed owed = *first;
    link->owed_head = (link->owed_head + 1) & (link->owed_capacity - 1);
    link->owed_count--;
    if (owed.on_reply != NULL && !owed.on_reply(link, &owed, reply)) {
        owed.count = 1;
        link_owe(link, &owed);
        return;
    }
    free(owed.again);
}

/* One answer of the greeting; false: it will not do. */
static bool link_take_greeting(struct link *link, const struct reply *reply)
{
    int index = link->greeting_index++;
    link->greeting_count--;
    if (index < 0 && reply->type == REDIS_REPLY_ERROR)
        return false;
    if (index >= 0 && !link->functions->on_greeting(link, index, reply))
        return false;
    if (link->greeting_count > 0)
        return true;
    link->state = LINK_READY;
    link->tried = 0;
    link->progress_us = 0;
    link->functions->on_ready(link);
    return true;
}

static void link_take_replies(struct link *link, int64_t now_us)
{
    while (link->state >= LINK_GREETING) {
        bool greeting = link->state == LINK_GREETING;
        bool skip = !greeting && link->owed_count > 0 && link_owed_at(link, 0)->on_reply == NULL;
        const struct reply *reply = NULL;
        if (!reply_reader_next(&link->reader, skip, &reply)) {
            link_fail(link, false, "what answers does not speak Redis' protocol");
            return;
        }
        if (reply == NULL)
            return;
        link_note_error(link, reply);
        if (greeting) {
            if (!link_take_greeting(link, reply)) {
                char why[180];
                snprintf(why, sizeof(why), "greeting: %s",
                         reply->type == REDIS_REPLY_ERROR ? reply->text : "an unexpected answer");
                link_move_on(link, now_us, false, why);
            }
        } else if (link->owed_count > 0) {
            link_take_owed(link, reply);
        } else {
            link->functions->on_message(link, reply);
        }
    }
}

static void link_read(struct link *link, int64_t now_us)
{
    char data[READ_SIZE];
    while (link->state >= LINK_GREETING) {
        ssize_t got = socket_read(&link->socket, data, sizeof(data));
        if (got == 0)
            break;
        if (got < 0 && link->state == LINK_GREETING)
            link_move_on(link, now_us, false, link->socket.why);
        else if (got < 0)
            link_fail(link, false, link->socket.why);
        if (got < 0)
            return;
        link->progress_us = now_us;
        if (!reply_reader_feed(&link->reader, data, (size_t)got)) {
            link_fail(link, false, "an answer is too long");
            return;
        }
        link_take_replies(link, now_us);
        if ((size_t)got < sizeof(data) && link->socket.session == NULL)
            break;
    }
    if (link->state == LINK_READY && link->unusable)
        link_fail(link, false, "it is read-only or still loading");
}

/* Until the socket is open, then the greeting goes out. */
static void link_go_on(struct link *link, int64_t now_us)
{
    if (link->state == LINK_CONNECTING) {
        if (!socket_continue(&link->socket)) {
            link_move_on(link, now_us, false, link->socket.why);
            return;
        }
        if (link->socket.state == SOCKET_OPEN)
            link_greet(link);
    }
    if (link->state == LINK_GREETING && link->greeting.size > 0 &&
        !link_send(link, &link->greeting, &link->greeting_sent)) {
        link_move_on(link, now_us, false, link->socket.why);
        return;
    }
    if (link->state == LINK_CONNECTING || link->state == LINK_GREETING)
        link_watch_socket(link);
}

void link_turn(struct link *link, int64_t now_us, bool ready)
{
    if (ready && link->state == LINK_RESOLVING)
        link_resolve(link, now_us);
    else if (ready && link->state >= LINK_CONNECTING) {
        link_go_on(link, now_us);
        link_read(link, now_us);
    }
    if (link->state == LINK_READY && link->replies_owed == 0)
        link->progress_us = 0;
    else if (link->state == LINK_READY && link->progress_us == 0)
        link->progress_us = now_us;
    if (now_us < link_due_us(link))
        return;
    if (link->state == LINK_READY)
        link_fail(link, true, "it does not answer");
    else
        link_move_on(link, now_us, true, "it does not answer");
}

int64_t link_due_us(const struct link *link)
{
    if (link->state == LINK_DOWN)
        return INT64_MAX;
    if (link->state != LINK_READY)
        return link->deadline_us;
    return link->progress_us == 0 ? INT64_MAX : link->progress_us + LINK_STALL_MS_MAX * 1000;
}
