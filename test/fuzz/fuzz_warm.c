/* SPDX-License-Identifier: Apache-2.0
 * What the warm tier reads from outside: addresses, locks, members, and Redis'
 * answers. The first byte says which. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "warm/reply.h"
#include "warm/url.h"
#include "warm/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_url(const char *text, size_t size)
{
    char copy[4096], why[256] = "";
    struct address_list list;
    if (size >= sizeof(copy))
        return;
    memcpy(copy, text, size);
    copy[size] = '\0';
    enum err err = url_parse(copy, &list, why, sizeof(why));
    CHECK((err == ERR_OK) == (why[0] == '\0'));
    CHECK(err != ERR_OK || (list.count > 0 && list.count <= ADDRESS_COUNT_MAX));
}

static void fuzz_values(const char *text, size_t size)
{
    struct warm_lock lock = {0};
    struct warm_member member = {0};
    value_read_lock(text, size, &lock);
    value_read_member(text, size, &member);
}

static void walk(const struct reply *reply)
{
    for (int i = 0; i < reply->count; i++) {
        if (reply->elements[i] != NULL)
            walk(reply->elements[i]);
    }
    if (reply->text != NULL)
        CHECK(reply->text[reply->size] == '\0');
}

/* In two pieces, and some of the answers are not wanted. */
static void fuzz_replies(const char *text, size_t size, uint8_t choice)
{
    struct reply_reader reader;
    const struct reply *reply;
    size_t cut = size > 0 ? choice % size : 0;
    reply_reader_init(&reader);
    for (int piece = 0; piece < 2; piece++) {
        bool good = piece == 0 ? reply_reader_feed(&reader, text, cut)
                               : reply_reader_feed(&reader, text + cut, size - cut);
        while (good) {
            reply = NULL;
            good = reply_reader_next(&reader, choice & 1, &reply) && reply != NULL;
            if (good)
                walk(reply);
            choice = (uint8_t)(choice >> 1 | choice << 7);
        }
        if (reader.reader->err != 0)
            break;
    }
    reply_reader_deinit(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *text = (const char *)data + 2;
    switch (data[0] % 3) {
    case 0:
        fuzz_url(text, size - 2);
        break;
    case 1:
        fuzz_values(text, size - 2);
        break;
    default:
        fuzz_replies(text, size - 2, data[1]);
        break;
    }
    return 0;
}
