/* SPDX-License-Identifier: Apache-2.0
 * What Redis answers, read by hiredis' reader into an arena, or not kept at all:
 * most answers are to writes, and only their errors matter. */
#ifndef HOLDFAST_WARM_REPLY_H
#define HOLDFAST_WARM_REPLY_H

#include <hiredis/read.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct reply {
    int type;         /* REDIS_REPLY_… */
    const char *text; /* STRING, STATUS, ERROR; NUL ended */
    size_t size;
    int64_t integer;
    struct reply **elements; /* ARRAY; one may be NULL if the answer broke off */
    int count;
};

struct reply_reader {
    redisReader *reader;
    struct arena arena; /* of the answer being read */
    bool skip;          /* the next answer is not wanted, unless it is an error */
};

void reply_reader_init(struct reply_reader *reader);
void reply_reader_deinit(struct reply_reader *reader);
void reply_reader_reset(struct reply_reader *reader); /* for a new connection */
bool reply_reader_feed(struct reply_reader *reader, const char *data, size_t size);
/* One answer, which lives until the next call; NULL in `out` when none is complete. False: this is not Redis. */
bool reply_reader_next(struct reply_reader *reader, bool skip, const struct reply **out);

bool reply_is_error(const struct reply *reply, const char *beginning); /* "" for any */

#endif
