/* SPDX-License-Identifier: Apache-2.0
 * Loading and calling scripts. A call is kept until it was answered: Redis
 * forgets scripts when it is told to (SCRIPT FLUSH), and then says NOSCRIPT;
 * the call is then made once more, after loading. Twice in a row is an error
 * like any other. */
#include "warm/scripts.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/embed.h"
#include "base/metrics.h"
#include "warm/resp.h"

extern const struct embed warm_scripts[]; /* in the order of enum script */

void scripts_init(struct scripts *scripts)
{
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        CHECK(warm_scripts[i].name != NULL);
        unsigned char hash[SHA_DIGEST_LENGTH];
        SHA1((const unsigned char *)warm_scripts[i].data, warm_scripts[i].size, hash);
        for (size_t j = 0; j < sizeof(hash); j++)
            snprintf(scripts->hashes[i] + 2 * j, 3, "%02x", hash[j]);
    }
}

void scripts_put_load(struct buf *out)
{
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        resp_array(out, 3);
        resp_text(out, "SCRIPT");
        resp_text(out, "LOAD");
        resp_bulk(out, warm_scripts[i].data, warm_scripts[i].size);
    }
}

size_t script_begin(const struct scripts *scripts, struct link *link, enum script script, int64_t key_count,
                    int64_t argument_count)
{
    size_t begin = link->out.size;
    resp_array(&link->out, 3 + key_count + argument_count);
    resp_text(&link->out, "EVALSHA");
    resp_bulk(&link->out, scripts->hashes[script], 40);
    resp_int(&link->out, key_count);
    return begin;
}

static bool script_on_reply(struct link *link, struct owed *owed, const struct reply *reply)
{
    return !script_again(link, owed, reply);
}

void script_end(struct link *link, size_t begin,
                bool (*on_reply)(struct link *link, struct owed *owed, const struct reply *reply),
                void *object, int32_t index)
{
    struct owed owed = {.on_reply = on_reply != NULL ? on_reply : script_on_reply,
                        .object = object,
                        .index = index,
                        .count = 1};
    if (buf_ok(&link->out)) {
        owed.again_size = link->out.size - begin;
        owed.again = malloc(owed.again_size);
        CHECK(owed.again != NULL);
        memcpy(owed.again, link->out.data + begin, owed.again_size);
    }
    link_owe(link, &owed);
}

bool script_again(struct link *link, struct owed *owed, const struct reply *reply)
{
    if (!reply_is_error(reply, "NOSCRIPT"))
        return false;
    if (owed->again == NULL) {
        counter_add(COUNTER_WARM_ERRORS_REPLY, 1);
        return false;
    }
    scripts_put_load(&link->out);
    link_owe_nobody(link, SCRIPT_COUNT);
    buf_put(&link->out, owed->again, owed->again_size);
    free(owed->again);
    owed->again = NULL;
    return true;
}
