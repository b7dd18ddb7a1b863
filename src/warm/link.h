/* SPDX-License-Identifier: Apache-2.0
 * One connection to Redis: finds an address that answers, greets it, sends what
 * is queued and matches the answers, in order, to those who wait for them. */
#ifndef HOLDFAST_WARM_LINK_H
#define HOLDFAST_WARM_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "warm/reply.h"
#include "warm/resolve.h"
#include "warm/socket.h"
#include "warm/url.h"

enum {
    LINK_GREETING_MS_MAX = 500, /* from connecting until it is ready, for each address */
    LINK_STALL_MS_MAX = 1000,   /* something is owed, and nothing comes; rounds do not wait as long */
    LINK_OUT_SIZE_MAX = 32 * 1024 * 1024,
    LINK_OWED_COUNT_MAX = 1 << 20, /* answers */
};

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_GREETING, LINK_READY };

struct link;

/* Who waits for an answer, or for `count` of them that only matter if they are errors. */
struct owed {
    /* NULL: nobody; errors are counted. True: that answer is dealt with; false: the same is owed again. */
    bool (*on_reply)(struct link *link, struct owed *owed, const struct reply *reply);
    void *object;
    int32_t index;
    int32_t count;
    /* A script's call is kept until it was answered, because Redis may have forgotten the script. */
    char *again; /* owns */
    size_t again_size;
};

struct link_functions {
    /* Puts what every connection begins with; how many answers that makes. */
    int (*greet)(struct link *link, struct buf *out);
    bool (*on_greeting)(struct link *link, int index, const struct reply *reply); /* false: unusable */
    void (*on_ready)(struct link *link);
    /* It is down: everything that was owed is lost. `why` says one phrase. */
    void (*on_failed)(struct link *link, bool timed_out, const char *why);
    void (*on_message)(struct link *link, const struct reply *reply); /* owed by nobody */
};

struct link {
    const struct link_functions *functions;
    void *context;
    const struct address_list *list; /* borrows */
    struct tls *const *tls;          /* borrows; one per address */
    int epoll;                       /* borrows */
    enum link_state state;
    int32_t address; /* the one in use, or being tried … */
    int32_t tried;   /* … and how many were, since the last that worked */
    struct resolved resolved;
    int resolved_index;
    struct resolver *resolver; /* owns, while RESOLVING */
    struct stream_socket socket;
    uint32_t watched; /* the events that epoll has for it */
    struct buf greeting;
    size_t greeting_sent;
    int greeting_count; /* answers still owed … */
    int greeting_index; /* … from this one on */
    struct buf out;
    size_t out_sent;
    struct owed *owed; /* ring */
    size_t owed_head, owed_count, owed_capacity;
    int64_t replies_owed;
    int64_t deadline_us; /* of the greeting */
    int64_t progress_us; /* when something last came, or began to be owed */
    bool unusable;       /* it answered that it is not the one to ask */
    struct reply_reader reader;
};

void link_init(struct link *link, const struct link_functions *functions, void *context,
               const struct address_list *list, struct tls *const *tls, int epoll);
void link_deinit(struct link *link); /* silently */

void link_connect(struct link *link, int64_t now_us);          /* while DOWN */
void link_turn(struct link *link, int64_t now_us, bool ready); /* reads, if `ready`, and sees to its state */
void link_flush(struct link *link, int64_t now_us);            /* writes */
void link_fail(struct link *link, bool timed_out, const char *why);
int64_t link_due_us(const struct link *link); /* INT64_MAX: when something comes */

void link_drop_queue(struct link *link); /* while it is not READY: nothing of it was sent */

bool link_has_room(const struct link *link);
/* After a command was put into `out`: */
void link_owe(struct link *link, const struct owed *owed);
void link_owe_nobody(struct link *link, int32_t count);

#endif
