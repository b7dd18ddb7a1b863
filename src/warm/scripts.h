/* SPDX-License-Identifier: Apache-2.0
 * The scripts that run inside Redis, where comparing and setting must not be
 * told apart. They are loaded with every connection and called by their hash. */
#ifndef HOLDFAST_WARM_SCRIPTS_H
#define HOLDFAST_WARM_SCRIPTS_H

#include "warm/link.h"

enum script { SCRIPT_SET_BITS, SCRIPT_KEEP_HOLDS, SCRIPT_END_HOLDS, SCRIPT_WHOLE_HOLDS, SCRIPT_COUNT };

enum { SCRIPT_SEAT_COUNT_MAX = 512 }; /* in one call: Lua's unpack() and the time Redis is kept busy */

struct scripts {
    char hashes[SCRIPT_COUNT][41];
};

void scripts_init(struct scripts *scripts);
/* Puts the commands that load them all: SCRIPT_COUNT answers. */
void scripts_put_load(struct buf *out);

/* A call: begin, then the keys and arguments, then end, which owes its answer to `on_reply`. */
size_t script_begin(const struct scripts *scripts, struct link *link, enum script script, int64_t key_count,
                    int64_t argument_count);
/* on_reply NULL: nobody waits, errors are counted. */
void script_end(struct link *link, size_t begin,
                bool (*on_reply)(struct link *link, struct owed *owed, const struct reply *reply),
                void *object, int32_t index);
/* The answer says that Redis forgot the script: true, and it was loaded and called once more; the caller then tells
 * the link that the same is still owed. */
bool script_again(struct link *link, struct owed *owed, const struct reply *reply);

#endif
