/* SPDX-License-Identifier: Apache-2.0
 * Commands that went through the broker, and what must be true of them:
 *
 *  1. A command has one effect or none, however often it is delivered, and what
 *     its caller was told of it is that effect; a caller is told once.
 *  2. Who was told 202 can ask: at rest the answer is what the store has, or that
 *     there was no such command, and then it did nothing.
 *  3. Only the node that has claimed a partition last writes for its commands.
 *  4. The store's next offset never goes back, and never passes a command that
 *     was not answered; the broker's is never ahead of it.
 *  5. At rest every partition is read to its end, and nothing waits anywhere.
 *
 * Holds are known by their cart: in these worlds every command that makes holds
 * names one of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "lane/lane_int.h"
#include "order/order_int.h"
#include "order/shared_int.h"
#include "order/wire.h"
#include "store/sim/sim_int.h"
#include "store/store_int.h"
#include "world.h"

enum { FORGET_MS = 60000 }; /* a node waits no longer for an answer that nobody waits for */

struct said { /* an answer, as far as it is compared */
    enum err err;
    int status;
    int32_t hold_count;
    struct uuid hold_id;
    struct uuid checkout_id;
};

enum told { TOLD_NOTHING, TOLD_PENDING, TOLD_ANSWER };

struct mail {         /* a letter's other side */
    struct list node; /* in world.mails */
    struct letter *letter;
    enum command_kind kind;
    struct actor actor; /* ids and role */
    bool is_key_made;
    uint8_t key[32];
    uint8_t body[32];
    int64_t sent_ms;
    int64_t deadline_ms;
    int64_t basket; /* 0: it makes no holds */
    enum told told;
    bool has_answer; /* a final one */
    struct said answer;
    bool is_refused_5xx; /* its caller was told that nothing was done */
    bool is_done;        /* it was answered, wherever that answer went */
    bool was_kept;       /* its key is in the store, or the hold that has its id */
    bool is_sender_gone; /* nobody waits for an answer */
    int64_t epoch;       /* the highest under which it was written */
};

static struct world *watched;

static void show(struct world *world, const struct mail *mail)
{
    char text[UUID_TEXT_SIZE];
    uuid_format(&mail->letter->id, text);
    printf("command %s, kind %d, of node %d%s, partition %d, offset %lld, made key %d, deadline %lld (now "
           "%lld), told %d, "
           "answer %d (err %d, status %d, %d holds), replied %d, done %d, kept %d, epoch %lld of %lld\n",
           text, (int)mail->kind, (int)mail->letter->sender, mail->is_sender_gone ? " (gone)" : "",
           (int)mail->letter->partition->number, (long long)mail->letter->offset, mail->is_key_made,
           (long long)(mail->deadline_ms - 1700000000000), (long long)(world->now_ms - 1700000000000),
           (int)mail->told, mail->has_answer, (int)mail->answer.err, mail->answer.status,
           (int)mail->answer.hold_count, mail->letter->is_replied, mail->is_done, mail->was_kept,
           (long long)mail->epoch, (long long)mail->letter->partition->epoch);
}

static void mail_fail(struct world *world, const struct mail *mail, const char *what)
    __attribute__((noreturn));

static void mail_fail(struct world *world, const struct mail *mail, const char *what)
{
    show(world, mail);
    world_fail(world, what);
}

/* ---- Letters come into being ---- */

static struct uuid half(const uint8_t key[32])
{
    struct uuid id;
    memcpy(id.bytes, key, sizeof(id.bytes));
    return id;
}

static int64_t basket_of(const struct command *command)
{
    const char *cart = command->kind == COMMAND_HOLD_SEATS  ? command->hold_seats.cart_token
                       : command->kind == COMMAND_HOLD_BEST ? command->hold_best.cart_token
                                                            : NULL;
    return cart != NULL ? letters_basket(cart) : 0;
}

static void letter_sent(void *context, struct letter *letter)
{
    struct world *world = context;
    struct arena arena;
    arena_init(&arena);
    struct command command;
    struct wire_sender sender;
    const char *why;
    if (!wire_unpack(letter->value, letter->size, &arena, &command, &sender, &why))
        world_fail(world, "a command was sent that cannot be read");
    if (!uuid_equal(&sender.id, &letter->id) ||
        strcmp(sender.node_name, sim_log_node_name(letter->sender)) != 0)
        world_fail(world, "a command was sent in another's name");
    struct mail *mail = calloc(1, sizeof(*mail));
    CHECK(mail != NULL);
    mail->letter = letter;
    mail->kind = command.kind;
    mail->actor = command.actor;
    mail->actor.ip = mail->actor.user_agent = mail->actor.request_id = NULL;
    mail->is_key_made = command.sent.is_key_made;
    memcpy(mail->key, command.key, sizeof(mail->key));
    memcpy(mail->body, command.body, sizeof(mail->body));
    mail->sent_ms = world->now_ms;
    mail->deadline_ms = command.sent.deadline_ms;
    mail->basket = basket_of(&command);
    letter->model = mail;
    if (map_get(&world->letters, &letter->id) != NULL)
        world_fail(world, "two commands were sent with one id");
    map_put(&world->letters, &letter->id, letter);
    if (mail->is_key_made) {
        struct uuid key = half(mail->key);
        map_put(&world->letters_by_key, &key, letter);
    }
    list_append(&world->mails, &mail->node);
    world->sent++;
    arena_deinit(&arena);
}

static struct letter *find_letter(void *context, const struct uuid *id)
{
    struct world *world = context;
    return map_get(&world->letters, id);
}

int64_t letters_basket(const char *cart)
{
    long long number;
    return sscanf(cart, "basket %lld", &number) == 1 ? number : 0;
}

/* ---- What is written ---- */

static enum err (*submit_unwatched)(struct store *store, struct store_batch *batch);

/* Whose command this writes: the one whose key it has, or that has made a hold of its own id. */
static struct letter *letter_of(const struct store_unit *unit)
{
    if (unit->key != NULL) {
        struct uuid key = half(unit->key->key);
        return map_get(&watched->letters_by_key, &key);
    }
    for (const struct hold_write *hold = unit->holds; hold != NULL; hold = hold->next) {
        if (hold->insert)
            return map_get(&watched->letters, &hold->row.id);
    }
    return NULL;
}

static void check_unit(const struct store_unit *unit)
{
    struct letter *letter = letter_of(unit);
    if (letter == NULL)
        return;
    struct mail *mail = letter->model;
    const struct order_check *check = unit->order_checks;
    /* What a payment came to is known to the node that asked for it, and written whoever has the partition. */
    if (check == NULL && mail->kind == COMMAND_CHECKOUT_COMPLETE && unit->checkouts != NULL) {
        mail->epoch = INT64_MAX;
        return;
    }
    if (check == NULL || check->partition != letter->partition->number ||
        strcmp(check->topic, letter->partition->topic_name) != 0)
        world_fail(watched, "a command is written without a look at who has its partition");
    if (check->epoch > mail->epoch)
        mail->epoch = check->epoch;
}

static enum err submit_watched(struct store *store, struct store_batch *batch)
{
    LIST_FOR_EACH(node, &batch->units) {
        check_unit(CONTAINER_OF(node, struct store_unit, node));
    }
    return submit_unwatched(store, batch);
}

static void watch(struct world *world)
{
    static struct store_functions functions;
    functions = *world->nodes[0].store->functions;
    submit_unwatched = functions.submit;
    functions.submit = submit_watched;
    for (int32_t i = 0; i < world->node_count; i++)
        world->nodes[i].store->functions = &functions;
    watched = world;
}

void letters_init(struct world *world)
{
    list_init(&world->mails);
    map_init(&world->letters);
    map_init(&world->letters_by_key);
    map_init(&world->started);
    if (world->log == NULL)
        return;
    world->log->on_letter = letter_sent;
    world->log->find_letter = find_letter;
    world->log->context = world;
    watch(world);
}

void letters_deinit(struct world *world)
{
    map_deinit(&world->letters);
    map_deinit(&world->letters_by_key);
    map_deinit(&world->started);
}

void letters_sender_died(struct node *node)
{
    LIST_FOR_EACH(at, &node->world->mails) {
        struct mail *mail = CONTAINER_OF(at, struct mail, node);
        if (mail->letter->sender == node->index)
            mail->is_sender_gone = true;
    }
}

/* ---- What the callers are told ---- */

static bool is_final(const struct result *result)
{
    return err_http_status(result->err) < 500 && (result->err != ERR_OK || result->status != 202);
}

/* … and not of another command with the same key. */
static bool is_own(const struct result *result)
{
    return is_final(result) && result->err != ERR_REQUEST_IN_PROGRESS &&
           result->err != ERR_IDEMPOTENCY_KEY_REUSED;
}

static struct said said_of(const struct result *result)
{
    struct said said = {.err = result->err, .status = result->status, .hold_count = result->hold_count};
    if (result->hold_count > 0)
        said.hold_id = result->holds[0].row.id;
    if (result->has_checkout)
        said.checkout_id = result->checkout.id;
    return said;
}

/* Word for word the same, whenever it is said. */
static void note_answer(struct world *world, struct mail *mail, const struct result *result)
{
    struct said said = said_of(result);
    if (!mail->has_answer)
        mail->answer = said;
    mail->has_answer = true;
    const struct said *first = &mail->answer;
    if (first->err != said.err || first->status != said.status || first->hold_count != said.hold_count ||
        !uuid_equal(&first->hold_id, &said.hold_id) || !uuid_equal(&first->checkout_id, &said.checkout_id))
        mail_fail(world, mail, "one command has two answers");
}

bool letters_answered(struct world *world, const struct command *command)
{
    const struct result *result = &command->result;
    if (command->kind == COMMAND_ANSWER_GET)
        return false;
    struct letter *letter = map_get(&world->letters, &command->sent.id);
    if (letter == NULL) {
        if (result->is_pending)
            world_fail(world, "an answer is to come to a command that was not sent");
        return false;
    }
    struct mail *mail = letter->model;
    if (mail->told != TOLD_NOTHING)
        mail_fail(world, mail, "a caller was answered twice");
    mail->told = result->is_pending ? TOLD_PENDING : TOLD_ANSWER;
    if (result->is_pending) {
        world->pending++;
        world->pendings[world->pending % WORLD_PENDING_MEMORY] = letter->id;
        return true;
    }
    mail->is_done = true;
    mail->is_refused_5xx = err_http_status(result->err) == 503;
    if (is_own(result))
        note_answer(world, mail, result);
    return false;
}

static struct command *question_about(struct world *world, const struct mail *mail)
{
    struct command *command = world_command(world, COMMAND_ANSWER_GET, &mail->actor.user_id);
    command->actor = mail->actor;
    command->sent.id = mail->letter->id;
    command->sent.is_key_made = mail->is_key_made;
    memcpy(command->key, mail->key, sizeof(command->key));
    return command;
}

void letters_ask(struct world *world)
{
    struct uuid id = world->pendings[rng_below(&world->rng, WORLD_PENDING_MEMORY)];
    struct letter *letter = map_get(&world->letters, &id);
    if (letter == NULL)
        return;
    struct command *command = question_about(world, letter->model);
    if (command->actor.role == ROLE_BUYER && rng_below(&world->rng, 10) == 0)
        command->actor.user_id = command->actor.for_user_id = world->foreign_org_id; /* nobody here */
    world_post(world, command);
}

static const struct sim_key *kept_of(struct world *world, const struct mail *mail)
{
    /* The tables are read-only here but for their type. */
    struct sim_tables *tables = (struct sim_tables *)world->tables;
    return sim_find_key(tables, &mail->actor.org_id, mail->key, world->now_ms);
}

/* Granted one seat, it has no key in the store: the hold has its id. */
static const struct sim_hold *granted_to(struct world *world, const struct mail *mail)
{
    return mail->is_key_made ? world_hold(world, &mail->letter->id) : NULL;
}

static bool can_be_asked_for(struct world *world, const struct mail *mail)
{
    return kept_of(world, mail) != NULL || granted_to(world, mail) != NULL;
}

bool letters_told(struct world *world, const struct command *command)
{
    struct letter *letter = map_get(&world->letters, &command->sent.id);
    const struct result *result = &command->result;
    CHECK(letter != NULL);
    struct mail *mail = letter->model;
    if (!uuid_equal(&command->actor.user_id, &mail->actor.user_id)) {
        if (result->hold_count > 0 || result->has_checkout ||
            (is_final(result) && result->err != ERR_COMMAND_NOT_FOUND))
            mail_fail(world, mail, "somebody was told of another's command");
        return false;
    }
    if (result->is_pending || err_http_status(result->err) >= 500) {
        if (world->at_rest && result->is_pending)
            mail_fail(world, mail, "a command is still pending at rest");
        /* Nothing fails at rest: it is what was said when it was decided. */
        mail->is_refused_5xx = world->at_rest && err_http_status(result->err) == 503;
        return false;
    }
    if (result->err == ERR_COMMAND_NOT_FOUND) {
        if (world->at_rest && can_be_asked_for(world, mail))
            mail_fail(world, mail, "a command was not found that was done");
        return false;
    }
    /* Who uses a key for something else is told of the first. */
    const struct sim_key *kept = kept_of(world, mail);
    if (kept != NULL && memcmp(kept->body, mail->body, sizeof(mail->body)) != 0)
        return false;
    if (is_own(result))
        note_answer(world, mail, result);
    return result->err == ERR_OK;
}

/* ---- After every step ---- */

/* Its sender waits for an answer until one comes, or for a minute. */
static bool is_waited_for(struct world *world, const struct mail *mail)
{
    const struct order *order = world->nodes[mail->letter->sender].order;
    return map_get(&order->shared->edge.by_id, &mail->letter->id) != NULL;
}

static void look_at(struct world *world, struct mail *mail)
{
    const struct letter *letter = mail->letter;
    if (!mail->was_kept && can_be_asked_for(world, mail)) {
        mail->was_kept = mail->is_done = true;
        if (mail->is_key_made && mail->epoch < letter->partition->epoch)
            mail_fail(world, mail,
                      "a command was written by a node that did not have its partition any more");
    }
    mail->is_done = mail->is_done || letter->is_replied;
    if (mail->is_done || mail->is_sender_gone || is_waited_for(world, mail))
        return;
    /* An answer came, or it was given up. */
    mail->is_done = world->now_ms - mail->sent_ms < FORGET_MS;
    mail->is_sender_gone = !mail->is_done;
}

/* Nobody is left to hear that it came too late, that its payment is under way, or that its key is another's: none of
 * that is kept. */
static bool is_over(const struct world *world, const struct mail *mail)
{
    bool is_late = mail->deadline_ms != 0 && world->now_ms + WORLD_SKEW_MS_MAX > mail->deadline_ms;
    return mail->is_sender_gone && (is_late || mail->kind == COMMAND_CHECKOUT_COMPLETE || !mail->is_key_made);
}

static bool is_done(const struct world *world, const struct letter *letter)
{
    if (letter->is_spoiled)
        return letter->is_buried;
    const struct mail *mail = letter->model;
    return mail == NULL || mail->is_done || is_over(world, mail);
}

static void check_partition(struct world *world, struct sim_partition *partition)
{
    const struct sim_order *row =
        sim_find_order((struct sim_tables *)world->tables, partition->topic_name, partition->number);
    if (row == NULL) {
        if (partition->epoch != 0)
            world_fail(world, "a partition's row is gone");
        return;
    }
    if (row->row.next_offset < partition->noted_offset || row->row.epoch < partition->epoch)
        world_fail(world, "the next offset of a partition, or its epoch, went back");
    if (row->row.next_offset > partition->count)
        world_fail(world, "the next offset of a partition is one that does not exist");
    for (int64_t i = partition->noted_offset; i < row->row.next_offset; i++) {
        if (is_done(world, partition->letters[i]))
            continue;
        if (partition->letters[i]->model != NULL)
            show(world, partition->letters[i]->model);
        world_fail(world, "the next offset of a partition passed a command that was not answered");
    }
    partition->noted_offset = row->row.next_offset;
    partition->epoch = row->row.epoch;
    if (partition->committed > partition->noted_offset)
        world_fail(world, "the broker was told of more than the store has");
}

void letters_check_step(struct world *world)
{
    if (world->log == NULL)
        return;
    LIST_FOR_EACH(node, &world->mails)
        look_at(world, CONTAINER_OF(node, struct mail, node));
    LIST_FOR_EACH(node, &world->log->partitions)
        check_partition(world, CONTAINER_OF(node, struct sim_partition, node));
}

/* A hold that was sold in the moment it was made: by late money, mostly, for a seat of an older one. */
static bool is_late_money(const struct hold_row *row)
{
    return row->state == HOLD_CONVERTED && row->created_ms == row->ended_ms;
}

/* One effect: whatever a command made, it made at one moment. */
void letters_check_holds(struct world *world)
{
    if (world->log == NULL)
        return;
    int64_t *made_ms = calloc((size_t)world->basket_count + 1, sizeof(*made_ms));
    CHECK(made_ms != NULL);
    size_t position = 0;
    const struct sim_hold *hold;
    while ((hold = map_next(&world->tables->holds, &position)) != NULL) {
        int64_t basket = hold->row.cart_token != NULL ? letters_basket(hold->row.cart_token) : 0;
        if (basket == 0 || is_late_money(&hold->row))
            continue;
        if (made_ms[basket] != 0 && made_ms[basket] != hold->row.created_ms)
            world_fail(world, "one command made holds twice");
        made_ms[basket] = hold->row.created_ms;
    }
    free(made_ms);
}

/* ---- At rest ---- */

static int32_t count_made(const struct world *world, int64_t basket, bool with_late_money)
{
    int32_t count = 0;
    size_t position = 0;
    const struct sim_hold *hold;
    while (basket != 0 && (hold = map_next(&world->tables->holds, &position)) != NULL) {
        count += hold->row.cart_token != NULL && letters_basket(hold->row.cart_token) == basket &&
                 (with_late_money || !is_late_money(&hold->row));
    }
    return count;
}

/* What was kept with its key speaks of what it made. */
static void check_kept(struct world *world, const struct mail *mail, const struct sim_key *kept)
{
    struct arena arena;
    arena_init(&arena);
    struct command command;
    command_init(&command, COMMAND_ANSWER_GET, &arena);
    command.actor = mail->actor;
    if (!result_unpack(world->nodes[0].lane, &command, kept->result, kept->result_size))
        world_fail(world, "what was kept of a command cannot be read");
    int32_t made = 0;
    for (int32_t i = 0; i < command.result.hold_count; i++) {
        const struct hold_row *row = &command.result.holds[i].row;
        if (world_hold(world, &row->id) == NULL)
            world_fail(world, "a command's answer names a hold that does not exist");
        made +=
            mail->basket != 0 && row->cart_token != NULL && letters_basket(row->cart_token) == mail->basket;
    }
    if (mail->is_key_made && mail->is_refused_5xx && err_http_status(command.result.err) != 503)
        mail_fail(world, mail, "a caller was told that nothing was done, and it was");
    if (mail->is_key_made && mail->basket != 0 &&
        (made < count_made(world, mail->basket, false) || made > count_made(world, mail->basket, true)))
        mail_fail(world, mail, "a command made other holds than its answer says");
    if (mail->kind == COMMAND_CHECKOUT_START && command.result.has_checkout)
        map_put(&world->started, &command.result.checkout.id, world);
    command_deinit(&command);
    arena_deinit(&arena);
}

/* … and a hold that has its id is all that it made. */
static void check_granted(struct world *world, const struct mail *mail, const struct sim_hold *hold)
{
    if (mail->is_refused_5xx)
        mail_fail(world, mail, "a caller was told that nothing was done, and it was");
    if (!uuid_equal(&hold->row.user_id, &mail->actor.for_user_id) ||
        (mail->has_answer && (mail->answer.err != ERR_OK || mail->answer.status != 201)) ||
        count_made(world, mail->basket, false) > 1)
        mail_fail(world, mail, "a command made another hold than its answer says");
}

static void check_mail(struct world *world, struct mail *mail)
{
    const struct sim_key *kept = kept_of(world, mail);
    if (mail->letter->offset >= 0 && !is_done(world, mail->letter))
        mail_fail(world, mail, "a command was never answered");
    const struct sim_hold *granted = granted_to(world, mail);
    if (kept != NULL)
        check_kept(world, mail, kept);
    else if (granted != NULL)
        check_granted(world, mail, granted);
    else if (count_made(world, mail->basket, false) != 0)
        mail_fail(world, mail, "a command made holds, and nobody can ask for them");
    if (kept == NULL && granted == NULL && mail->has_answer)
        mail_fail(world, mail, "an answer was given that was not kept");
}

static void check_checkouts(struct world *world)
{
    size_t position = 0;
    const struct sim_checkout *checkout;
    while ((checkout = map_next(&world->tables->checkouts, &position)) != NULL) {
        if (map_get(&world->started, &checkout->row.id) == NULL)
            world_fail(world, "a checkout began that no command's answer names");
    }
}

static void check_node(struct world *world, const struct node *node)
{
    const struct shared *shared = node->order->shared;
    if (!list_empty(&shared->edge.waiting) || !list_empty(&shared->edge.told) ||
        shared->edge.waiting_count != 0 || shared->edge.telling_count != 0)
        world_fail(world, "a node still waits for answers at rest");
    if (shared->owner.taken_count != 0 || shared->owner.claiming.is_under_way)
        world_fail(world, "a node still decides something at rest");
    LIST_FOR_EACH(at, &shared->owner.partitions) {
        const struct partition *partition = CONTAINER_OF(at, struct partition, node);
        if (!partition->is_assigned)
            world_fail(world, "a node keeps a partition that it does not have");
        if (partition->state != PARTITION_OPEN)
            world_fail(world, "a partition is not open at rest");
        if (partition->waiting_count != 0 || partition->running_count != 0 || partition->is_paused)
            world_fail(world, "commands wait in a partition at rest");
    }
}

void letters_check_rest(struct world *world)
{
    if (world->log == NULL)
        return;
    letters_check_step(world);
    if (!sim_log_is_settled(world->log))
        world_fail(world, "a partition is not read to its end at rest");
    for (int32_t i = 0; i < world->node_count; i++)
        check_node(world, &world->nodes[i]);
    LIST_FOR_EACH(node, &world->log->partitions) {
        const struct sim_partition *partition = CONTAINER_OF(node, struct sim_partition, node);
        if (partition->noted_offset != partition->count)
            world_fail(world, "the store does not know at rest how far a partition is done");
        for (int64_t i = 0; i < partition->count; i++) {
            if (partition->letters[i]->is_buried != partition->letters[i]->is_spoiled)
                world_fail(world, "a command is among the dead letters, or what is none is not");
        }
    }
    /* Who was told that the answer is to come asks for it now. */
    world->at_rest = true;
    LIST_FOR_EACH(node, &world->mails) {
        const struct mail *mail = CONTAINER_OF(node, struct mail, node);
        if (mail->told == TOLD_PENDING)
            world_post(world, question_about(world, mail));
    }
    world_run_until_answered(world);
    world->at_rest = false;
    LIST_FOR_EACH(node, &world->mails)
        check_mail(world, CONTAINER_OF(node, struct mail, node));
    check_checkouts(world);
    letters_check_holds(world);
    /* All that is history. */
    struct list *node;
    while ((node = list_pop(&world->mails)) != NULL) {
        struct letter *letter = CONTAINER_OF(node, struct mail, node)->letter;
        free(letter->model);
        letter->model = NULL;
    }
    map_deinit(&world->letters);
    map_init(&world->letters);
    map_deinit(&world->letters_by_key);
    map_init(&world->letters_by_key);
}
