/* SPDX-License-Identifier: Apache-2.0
 * Feeds hiredis' reader and gives it functions that build answers in an arena,
 * so that reading thousands of answers a batch allocates nothing. An answer that
 * is to be skipped becomes one fixed object, unless it is an error. */
#include "warm/reply.h"

#include <string.h>

#include "base/check.h"

enum { REPLY_ELEMENT_COUNT_MAX = 1 << 20 };

static struct reply skipped = {.type = REDIS_REPLY_NIL};

static struct reply *reply_make(const redisReadTask *task)
{
    struct reply_reader *reader = task->privdata;
    struct reply *reply = &skipped;
    if (!reader->skip || task->type == REDIS_REPLY_ERROR) {
        reply = ARENA_NEW(&reader->arena, struct reply);
        reply->type = task->type;
    }
    if (task->parent != NULL) {
        struct reply *parent = task->parent->obj;
        if (parent != &skipped && task->idx < parent->count)
            parent->elements[task->idx] = reply;
    }
    return reply;
}

static void *reply_create_string(const redisReadTask *task, char *text, size_t size)
{
    struct reply_reader *reader = task->privdata;
    struct reply *reply = reply_make(task);
    if (reply != &skipped) {
        reply->text = arena_text_n(&reader->arena, text, size);
        reply->size = size;
    }
    return reply;
}

static void *reply_create_array(const redisReadTask *task, int count)
{
    struct reply_reader *reader = task->privdata;
    struct reply *reply = reply_make(task);
    if (reply == &skipped)
        return reply;
    if (count > REPLY_ELEMENT_COUNT_MAX)
        return NULL; /* the reader gives up */
    reply->elements = ARENA_ARRAY(&reader->arena, struct reply *, count);
    reply->count = count;
    return reply;
}

static void *reply_create_integer(const redisReadTask *task, long long value)
{
    struct reply *reply = reply_make(task);
    if (reply != &skipped)
        reply->integer = value;
    return reply;
}

static void *reply_create_nil(const redisReadTask *task)
{
    struct reply *reply = reply_make(task);
    reply->type = REDIS_REPLY_NIL; /* the task only knows what it might have been */
    return reply;
}

static void reply_free(void *reply)
{
    (void)reply; /* the arena's */
}

static redisReplyObjectFunctions reply_functions = {
    .createString = reply_create_string,
    .createArray = reply_create_array,
    .createInteger = reply_create_integer,
    .createNil = reply_create_nil,
    .freeObject = reply_free,
};

static void reader_open(struct reply_reader *reader)
{
    reader->reader = redisReaderCreateWithFunctions(&reply_functions);
    CHECK(reader->reader != NULL);
    reader->reader->privdata = reader;
    reader->reader->maxbuf = 0; /* keeps its memory */
}

void reply_reader_init(struct reply_reader *reader)
{
    arena_init(&reader->arena);
    reader->skip = false;
    reader_open(reader);
}

void reply_reader_deinit(struct reply_reader *reader)
{
    redisReaderFree(reader->reader);
    arena_deinit(&reader->arena);
}

void reply_reader_reset(struct reply_reader *reader)
{
    redisReaderFree(reader->reader);
    arena_reset(&reader->arena);
    reader_open(reader);
}

bool reply_reader_feed(struct reply_reader *reader, const char *data, size_t size)
{
    return redisReaderFeed(reader->reader, data, size) == REDIS_OK;
}

bool reply_reader_next(struct reply_reader *reader, bool skip, const struct reply **out)
{
    /* In the midst of an answer nothing changes: its parts are in the arena already. */
    if (reader->reader->ridx == -1) {
        reader->skip = skip;
        arena_reset(&reader->arena);
    }
    void *reply = NULL;
    if (redisReaderGetReply(reader->reader, &reply) != REDIS_OK)
        return false;
    *out = reply;
    return true;
}

bool reply_is_error(const struct reply *reply, const char *beginning)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->text, beginning, strlen(beginning)) == 0;
}
