/* SPDX-License-Identifier: Apache-2.0
 * The name under which a caller asks for the answer of a command that was sent
 * to another node: its id, and the hash of its Idempotency-Key if the caller
 * gave one, since the store keeps answers by their keys. Any node can look it
 * up; nothing in it is secret, and who may see the answer is the lane's to say. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "lane/command.h"

/* The id itself, then a hash of it, which no key of a caller's has there. Ids grow with time: keys that are written
 * together stand together in the store's index. */
void command_make_key(const struct uuid *id, uint8_t key[32])
{
    struct {
        char words[16]; /* no key of a caller's is the hash of these */
        struct uuid id;
    } hashed = {.words = "holdfast command", .id = *id};
    uint8_t hash[32];
    sha256(&hashed, sizeof(hashed), hash);
    memcpy(key, id->bytes, sizeof(id->bytes));
    memcpy(key + sizeof(id->bytes), hash, 32 - sizeof(id->bytes));
}

static bool has_callers_key(const struct command *command)
{
    return (command->has_key || command->kind == COMMAND_ANSWER_GET) && !command->sent.is_key_made;
}

void command_format_handle(const struct command *command, char out[COMMAND_HANDLE_SIZE])
{
    uuid_format(&command->sent.id, out);
    if (!has_callers_key(command))
        return;
    char *end = out + UUID_TEXT_SIZE - 1;
    *end++ = '.';
    for (size_t i = 0; i < sizeof(command->key); i++)
        end += snprintf(end, 3, "%02x", command->key[i]);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_key(const char *text, uint8_t key[32])
{
    if (strlen(text) != 64)
        return false;
    for (size_t i = 0; i < 32; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool command_parse_handle(const char *text, struct command *command)
{
    size_t size = strcspn(text, ".");
    if (!uuid_parse(text, size, &command->sent.id) || uuid_is_nil(&command->sent.id))
        return false;
    command->sent.is_key_made = text[size] == '\0';
    if (!command->sent.is_key_made)
        return parse_key(text + size + 1, command->key);
    command_make_key(&command->sent.id, command->key);
    return true;
}
