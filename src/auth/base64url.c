/* SPDX-License-Identifier: Apache-2.0
 * Base64 with the alphabet of URLs, as the three parts of a token are written.
 *
 * Invariants:
 *  1. Decoding accepts exactly what encoding makes: no padding, no white space,
 *     no other alphabet, no set bits after the last byte. So a token cannot be
 *     changed into another text that means the same.
 *  2. Decoding writes at most BASE64URL_DECODED_SIZE(length) bytes.
 *
 * Pure; any thread. The alphabet with '+' and '/' is base/text.h's. */
#include "auth/auth_int.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* 0 … 63, or −1 for what is not in the alphabet. */
static int sextet_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    if (c == '_')
        return 63;
    return -1;
}

bool base64url_decode(const char *text, size_t length, uint8_t *out, size_t *size)
{
    if (length % 4 == 1)
        return false; /* six bits make no byte */

    uint32_t bits = 0;
    int bit_count = 0;
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        int sextet = sextet_of(text[i]);
        if (sextet < 0)
            return false;
        bits = bits << 6 | (uint32_t)sextet;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[written++] = (uint8_t)(bits >> bit_count);
            bits &= (1u << bit_count) - 1;
        }
    }
    if (bits != 0)
        return false;
    *size = written;
    return true;
}

size_t base64url_encode(const uint8_t *data, size_t size, char *out)
{
    uint32_t bits = 0;
    int bit_count = 0;
    size_t written = 0;
    for (size_t i = 0; i < size; i++) {
        bits = bits << 8 | data[i];
        bit_count += 8;
        while (bit_count >= 6) {
            bit_count -= 6;
            out[written++] = alphabet[bits >> bit_count & 63];
        }
        bits &= (1u << bit_count) - 1;
    }
    if (bit_count > 0)
        out[written++] = alphabet[bits << (6 - bit_count) & 63];
    return written;
}
