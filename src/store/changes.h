/* SPDX-License-Identifier: Apache-2.0
 * The packed change row: what a batch changed, as one binary value. It is the
 * outbox, the change feed and what other nodes follow.
 *
 * Format, little endian: one byte of version, then records of
 *   kind (1 byte) · length (4 bytes) · that many bytes.
 * A scope record names the organization and event of those that follow it. A
 * record of a kind that is not known is skipped, and bytes after the known
 * fields of a record are ignored, so that a newer writer does not stop an
 * older reader. Kinds and fields are never given another meaning. */
#ifndef HOLDFAST_STORE_CHANGES_H
#define HOLDFAST_STORE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/model.h"
#include "store/store.h"

enum { CHANGES_VERSION = 1 };

enum change_kind {
    CHANGE_SCOPE = 1, /* never handed out */
    CHANGE_SEAT = 2,
    CHANGE_HOLD = 3,
    CHANGE_CHECKOUT = 4,
    CHANGE_TICKET = 5,
    CHANGE_USER =
        7, /* one who is new; or a mark, because users have no version that would tell which is newer */
    /* Marks: the thing itself is to be read from the store */
    CHANGE_ORGANIZATION = 6,
    CHANGE_EVENT = 8,  /* the event or one of its blocks */
    CHANGE_LAYOUT = 9, /* all blocks and seats of the event */
    CHANGE_NODE = 10,  /* never handed out: who wrote all this */
};

struct change {
    enum change_kind kind;
    bool inserted; /* a hold, checkout or ticket that is new */
    bool extended; /* a hold that lives longer now */
    bool moved;    /* a checkout whose state changed */
    bool seen;     /* a user who is only news to those who did not know them */
    union {
        struct seat_row seat;
        struct hold_row hold;         /* text is in the reader's arena */
        struct checkout_row checkout; /* the same; payment_token is left out: it is nobody else's */
        struct ticket_row ticket;     /* code is left out, for the same reason */
        struct user_row user;
        struct {
            struct uuid org_id;
            struct uuid id; /* of the organization or event */
        } mark;
    };
};

struct changes_packer {
    struct buf *out;     /* borrows */
    struct uuid node_id; /* who writes */
    struct uuid org_id;  /* the scope in force */
    struct uuid event_id;
};

/* Adds to `out`, which is left empty if no unit adds anything. */
void changes_pack_begin(struct changes_packer *packer, struct buf *out, const struct uuid *node_id);
void changes_pack_unit(struct changes_packer *packer, const struct store_unit *unit);

struct changes_reader {
    const uint8_t *data; /* borrows */
    size_t size;
    size_t at;
    struct arena *arena; /* borrows: for text */
    struct uuid node_id; /* who wrote it; known after changes_read_begin() */
    struct uuid org_id;
    struct uuid event_id;
    bool failed;
};

void changes_read_begin(struct changes_reader *reader, const void *data, size_t size, struct arena *arena);
/* False at the end, or at the first byte that makes no sense: then `failed` is set. */
bool changes_read_next(struct changes_reader *reader, struct change *out);

#endif
