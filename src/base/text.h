/* SPDX-License-Identifier: Apache-2.0
 * Checks on text from outside, made at the edge so that nothing below has to. */
#ifndef HOLDFAST_BASE_TEXT_H
#define HOLDFAST_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool text_is_utf8(const char *text, size_t length); /* well formed, and no NUL */
size_t text_character_count(const char *text, size_t length);
void base64_encode(const uint8_t *data, size_t size, char *out); /* out: 4*((size+2)/3)+1, NUL ended */
void sha256(const void *data, size_t size, uint8_t out[32]);

#endif
