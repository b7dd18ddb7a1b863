/* SPDX-License-Identifier: Apache-2.0
 * See wire.h. A kind's own fields are packed into the few that all kinds share:
 * an event, ids, a quantity, flags, two texts. */
#include "order/wire.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"

enum { WIRE_VERSION = 1 };

struct wire_head {
    uint8_t version;
    uint8_t kind;
    uint8_t role;
    uint8_t source;
    uint8_t is_key_made;
    uint8_t several;
    uint8_t adjacent;
    uint8_t reserved;
    char section[4];
    int32_t subsection;
    int32_t quantity;
    int32_t id_count;
    int64_t deadline_ms;
    struct uuid id;
    struct uuid org_id;
    struct uuid user_id;
    struct uuid for_user_id;
    struct uuid about_id;
    struct uuid event_id;
    uint8_t key[32];
    uint8_t body[32];
};

/* What the head does not hold. */
struct wire_rest {
    struct uuid *ids;
    const char *first;  /* cart token, payment token */
    const char *second; /* notes */
};

/* ---- Commands out ---- */

static void gather(const struct command *command, struct wire_head *head, struct wire_rest *rest)
{
    switch (command->kind) {
    case COMMAND_HOLD_SEATS:
        head->event_id = command->hold_seats.event_id;
        head->several = command->hold_seats.several;
        head->source = (uint8_t)command->hold_seats.source;
        head->id_count = command->hold_seats.count;
        rest->ids = command->hold_seats.seat_ids;
        rest->first = command->hold_seats.cart_token;
        break;
    case COMMAND_HOLD_BEST:
        head->event_id = command->hold_best.event_id;
        head->quantity = command->hold_best.quantity;
        memcpy(head->section, command->hold_best.section, sizeof(head->section));
        head->subsection = command->hold_best.subsection;
        head->adjacent = command->hold_best.adjacent;
        head->source = (uint8_t)command->hold_best.source;
        rest->first = command->hold_best.cart_token;
        break;
    case COMMAND_CHECKOUT_START:
        head->event_id = command->checkout_start.event_id;
        head->id_count = command->checkout_start.hold_count;
        head->several = command->checkout_start.hold_ids != NULL;
        rest->ids = command->checkout_start.hold_ids;
        rest->first = command->checkout_start.cart_token;
        break;
    case COMMAND_CHECKOUT_COMPLETE:
    case COMMAND_CHECKOUT_CANCEL:
        rest->first = command->checkout.payment_token;
        rest->second = command->checkout.notes;
        break;
    default: /* the id says it all */
        break;
    }
}

void wire_pack(const struct command *command, const char *node_name, struct buf *out)
{
    struct wire_head head;
    struct wire_rest rest = {0};
    memset(&head, 0, sizeof(head));
    head.version = WIRE_VERSION;
    head.kind = (uint8_t)command->kind;
    head.role = (uint8_t)command->actor.role;
    head.is_key_made = command->sent.is_key_made;
    head.deadline_ms = command->sent.deadline_ms;
    head.id = command->sent.id;
    head.org_id = command->actor.org_id;
    head.user_id = command->actor.user_id;
    head.for_user_id = command->actor.for_user_id;
    head.about_id = command->id;
    memcpy(head.key, command->key, sizeof(head.key));
    memcpy(head.body, command->body, sizeof(head.body));
    gather(command, &head, &rest);
    buf_put(out, &head, sizeof(head));
    bytes_put_text(out, node_name);
    buf_put(out, rest.ids, sizeof(struct uuid) * (size_t)head.id_count);
    bytes_put_text(out, rest.first);
    bytes_put_text(out, rest.second);
    bytes_put_text(out, command->actor.ip);
    bytes_put_text(out, command->actor.user_agent);
    bytes_put_text(out, command->actor.request_id);
}

/* ---- Commands in ---- */

static int32_t id_count_max(enum command_kind kind)
{
    return kind == COMMAND_HOLD_SEATS       ? HOLD_SEAT_COUNT_MAX
           : kind == COMMAND_CHECKOUT_START ? CHECKOUT_HOLD_COUNT_MAX
                                            : 0;
}

static bool section_is_right(const char section[4])
{
    size_t length = strnlen(section, 4);
    for (size_t i = 0; i < length; i++)
        if (section[i] < 'A' || section[i] > 'Z')
            return false;
    return length < 4;
}

static const char *head_fault(const struct wire_head *head)
{
    if (head->kind >= COMMAND_KIND_COUNT || !command_can_be_sent(head->kind))
        return "it is of a kind that is not sent";
    if (head->role >= ROLE_COUNT || head->role == ROLE_SYSTEM)
        return "its role is none";
    if (head->source >= HOLD_SOURCE_COUNT)
        return "its source is none";
    if (head->id_count < 0 || head->id_count > id_count_max(head->kind))
        return "it has too many ids";
    if (head->kind == COMMAND_HOLD_SEATS && head->id_count == 0)
        return "it names no seat";
    if (head->kind == COMMAND_HOLD_BEST && (head->quantity < 1 || head->quantity > HOLD_SEAT_COUNT_MAX))
        return "its quantity is out of range";
    if (!section_is_right(head->section) || head->subsection < 0)
        return "its section is none";
    return NULL;
}

/* Two of the same seat would be one hold written twice. */
static bool ids_are_distinct(const struct uuid *ids, int32_t count)
{
    for (int32_t i = 1; i < count; i++)
        for (int32_t j = 0; j < i; j++)
            if (uuid_equal(&ids[i], &ids[j]))
                return false;
    return true;
}

static void spread(struct command *command, const struct wire_head *head, const struct wire_rest *rest)
{
    switch (command->kind) {
    case COMMAND_HOLD_SEATS:
        command->hold_seats.event_id = head->event_id;
        command->hold_seats.several = head->several != 0;
        command->hold_seats.source = (enum hold_source)head->source;
        command->hold_seats.count = head->id_count;
        command->hold_seats.seat_ids = rest->ids;
        command->hold_seats.cart_token = rest->first;
        break;
    case COMMAND_HOLD_BEST:
        command->hold_best.event_id = head->event_id;
        command->hold_best.quantity = head->quantity;
        memcpy(command->hold_best.section, head->section, sizeof(head->section));
        command->hold_best.subsection = head->subsection;
        command->hold_best.adjacent = head->adjacent != 0;
        command->hold_best.source = (enum hold_source)head->source;
        command->hold_best.cart_token = rest->first;
        break;
    case COMMAND_CHECKOUT_START:
        command->checkout_start.event_id = head->event_id;
        command->checkout_start.hold_count = head->id_count;
        command->checkout_start.hold_ids = head->several != 0 ? rest->ids : NULL;
        command->checkout_start.cart_token = rest->first;
        break;
    default:
        command->checkout.payment_token = rest->first;
        command->checkout.notes = rest->second;
        break;
    }
}

static void fill(struct command *command, const struct wire_head *head)
{
    command->actor.role = (enum role)head->role;
    command->actor.org_id = head->org_id;
    command->actor.user_id = head->user_id;
    command->actor.for_user_id = head->for_user_id;
    command->id = head->about_id;
    command->has_key = true;
    memcpy(command->key, head->key, sizeof(command->key));
    memcpy(command->body, head->body, sizeof(command->body));
    command->sent.id = head->id;
    command->sent.is_taken = true;
    command->sent.is_key_made = head->is_key_made != 0;
    command->sent.deadline_ms = head->deadline_ms;
}

bool wire_unpack(const void *data, size_t size, struct arena *arena, struct command *command,
                 struct wire_sender *sender, const char **why)
{
    struct bytes bytes = {.data = data, .left = size};
    struct wire_head head;
    *sender = (struct wire_sender){.node_name = ""};
    *why = "it is not a command of this version";
    if (!bytes_take(&bytes, &head, sizeof(head)) || head.version != WIRE_VERSION)
        return false;
    sender->id = head.id;
    *why = "it is cut short";
    if (!bytes_take_text(&bytes, arena, &sender->node_name) || sender->node_name == NULL) {
        sender->node_name = "";
        return false;
    }
    *why = head_fault(&head);
    if (*why != NULL)
        return false;
    command_init(command, (enum command_kind)head.kind, arena);
    struct wire_rest rest = {.ids = ARENA_ARRAY(arena, struct uuid, head.id_count + 1)};
    *why = "it is cut short";
    if (!bytes_take(&bytes, rest.ids, sizeof(struct uuid) * (size_t)head.id_count) ||
        !bytes_take_text(&bytes, arena, &rest.first) || !bytes_take_text(&bytes, arena, &rest.second) ||
        !bytes_take_text(&bytes, arena, &command->actor.ip) ||
        !bytes_take_text(&bytes, arena, &command->actor.user_agent) ||
        !bytes_take_text(&bytes, arena, &command->actor.request_id))
        return false;
    *why = "it names a seat or hold twice";
    if (!ids_are_distinct(rest.ids, head.id_count))
        return false;
    *why = "it names no payment token";
    if (head.kind == COMMAND_CHECKOUT_COMPLETE && rest.first == NULL)
        return false;
    fill(command, &head);
    spread(command, &head, &rest);
    return true;
}

bool wire_describe(const void *data, size_t size, char *text, size_t text_size)
{
    static const char *const names[COMMAND_KIND_COUNT] = {
        [COMMAND_HOLD_SEATS] = "hold seats",
        [COMMAND_HOLD_BEST] = "hold best available",
        [COMMAND_HOLD_EXTEND] = "extend a hold",
        [COMMAND_HOLD_RELEASE] = "release a hold",
        [COMMAND_CHECKOUT_START] = "start a checkout",
        [COMMAND_CHECKOUT_COMPLETE] = "complete a checkout",
        [COMMAND_CHECKOUT_CANCEL] = "cancel a checkout",
    };
    struct bytes bytes = {.data = data, .left = size};
    struct wire_head head;
    if (!bytes_take(&bytes, &head, sizeof(head)) || head.version != WIRE_VERSION ||
        head.kind >= COMMAND_KIND_COUNT || names[head.kind] == NULL)
        return false;
    char id[UUID_TEXT_SIZE];
    uuid_format(&head.id, id);
    snprintf(text, text_size, "%s, command %s", names[head.kind], id);
    return true;
}

/* ---- Replies ---- */

struct wire_reply_head {
    uint8_t version;
    uint8_t reserved[7];
    struct uuid id;
};

void wire_pack_reply(const struct uuid *id, const void *answer, size_t size, struct buf *out)
{
    struct wire_reply_head head = {.version = WIRE_VERSION, .id = *id};
    buf_put(out, &head, sizeof(head));
    buf_put(out, answer, size);
}

bool wire_unpack_reply(const void *data, size_t size, struct uuid *id, const void **answer,
                       size_t *answer_size)
{
    struct bytes bytes = {.data = data, .left = size};
    struct wire_reply_head head;
    if (!bytes_take(&bytes, &head, sizeof(head)) || head.version != WIRE_VERSION)
        return false;
    *id = head.id;
    *answer = bytes.data;
    *answer_size = bytes.left;
    return true;
}
