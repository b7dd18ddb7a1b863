/* SPDX-License-Identifier: Apache-2.0
 * Commands and their answers as they travel: a version, a head of fixed size,
 * ids, texts; in the byte order of the machines, which is the same on all nodes.
 * Reading checks every length and every range: who may write to the topic is the
 * broker's business, but no message may bring a node down. */
#ifndef HOLDFAST_ORDER_WIRE_H
#define HOLDFAST_ORDER_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "lane/command.h"

/* Who is to be answered, and where. */
struct wire_sender {
    struct uuid id;        /* the command's */
    const char *node_name; /* in the arena; "": nobody */
};

void wire_pack(const struct command *command, const char *node_name, struct buf *out);
/* Into a command that is initialized here; everything of it is in the arena. False: `why` is one phrase, and `sender` is
 * filled in as far as it could be read. */
bool wire_unpack(const void *data, size_t size, struct arena *arena, struct command *command,
                 struct wire_sender *sender, const char **why);

/* For people: the kind and id of a packed command. False: it makes no sense. */
bool wire_describe(const void *data, size_t size, char *text, size_t text_size);

void wire_pack_reply(const struct uuid *id, const void *answer, size_t size, struct buf *out);
/* `answer` is borrowed from `data`. */
bool wire_unpack_reply(const void *data, size_t size, struct uuid *id, const void **answer,
                       size_t *answer_size);

#endif
