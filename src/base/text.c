/* SPDX-License-Identifier: Apache-2.0
 * Checks on text from outside, and two encodings. Pure; any thread. It does
 * not normalize: two spellings of one character are two texts. */
#include "base/text.h"

#define OPENSSL_SUPPRESS_DEPRECATED /* see sha256() */
#include <openssl/sha.h>
#include <string.h>

/* The length of the well-formed character that begins at `text`, or 0: no
 * overlong forms, no surrogates, nothing above U+10FFFF, no NUL (Unicode 15,
 * table 3-7). */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    unsigned char first = text[0];
    if (first < 0x80)
        return first != 0;
    size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length > left)
        return 0;
    unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < least || text[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    }
    return length;
}

bool text_is_utf8(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; i < length;) {
        size_t character = utf8_length(bytes + i, length - i);
        if (character == 0)
            return false;
        i += character;
    }
    return true;
}

size_t text_character_count(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80; /* continuation bytes begin nothing */
    return count;
}

void base64_encode(const uint8_t *data, size_t size, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t i = 0;
    for (; i + 2 < size; i += 3) {
        uint32_t group = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
        *out++ = digits[group >> 18];
        *out++ = digits[group >> 12 & 63];
        *out++ = digits[group >> 6 & 63];
        *out++ = digits[group & 63];
    }
    if (i < size) {
        bool two = i + 1 < size;
        uint32_t group = (uint32_t)data[i] << 16 | (two ? (uint32_t)data[i + 1] << 8 : 0);
        *out++ = digits[group >> 18];
        *out++ = digits[group >> 12 & 63];
        *out++ = two ? digits[group >> 6 & 63] : '=';
        *out++ = '=';
    }
    *out = '\0';
}

/* In steps, although OpenSSL would rather not: SHA256() looks the algorithm up by name and allocates a
 * context, which for the few bytes of a token or an id takes longer than the sum itself. */
void sha256(const void *data, size_t size, uint8_t out[32])
{
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, data, size);
    SHA256_Final(out, &context);
}
