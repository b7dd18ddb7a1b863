/* SPDX-License-Identifier: Apache-2.0
 * Structured logs. A line is made on the stack and leaves in one write(), so
 * lines of different threads never mix and no lock is held.
 *
 * Invariants:
 *   1. A line is at most LINE_SIZE_MAX, newline included: a pipe takes it whole.
 *   2. A line is always one valid JSON object, provided its fields are; fields
 *      that do not fit are left out, and the line says so.
 *
 * Any thread. It does not buffer, rotate or retry: whoever reads standard
 * error does. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum {
    LINE_SIZE_MAX = 4096, /* PIPE_BUF: what a pipe never splits */
    MESSAGE_SIZE_MAX = 512,
};

static const char *const level_names[LOG_LEVEL_COUNT] = {"debug", "info", "warn", "error"};
static _Atomic int level_least = LOG_INFO;

void log_set_level(enum log_level level)
{
    CHECK(level < LOG_LEVEL_COUNT);
    atomic_store_explicit(&level_least, (int)level, memory_order_relaxed);
}

bool log_is_on(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&level_least, memory_order_relaxed);
}

void log_write(enum log_level level, const char *message, const char *fields, ...)
{
    if (!log_is_on(level))
        return;
    char line[LINE_SIZE_MAX], time[TIME_TEXT_SIZE], quoted[MESSAGE_SIZE_MAX];
    int64_t now_ms = clock_now_ms();
    time_format(now_ms, time);
    time[strlen(time) - 1] = '\0'; /* the Z: milliseconds come before it */
    log_quote(message, quoted, sizeof(quoted));
    size_t used =
        (size_t)snprintf(line, sizeof(line), "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"message\":\"%s\"",
                         time, (int)(((now_ms % 1000) + 1000) % 1000), level_names[level], quoted);
    if (fields != NULL) {
        size_t room = sizeof(line) - used - sizeof(",}\n");
        va_list arguments;
        va_start(arguments, fields);
        int length = vsnprintf(line + used + 1, room, fields, arguments);
        va_end(arguments);
        if (length < 0 || (size_t)length >= room) {
            used += (size_t)snprintf(line + used, sizeof(line) - used, ",\"truncated\":true");
        } else if (length > 0) {
            line[used] = ',';
            used += (size_t)length + 1;
        }
    }
    line[used++] = '}';
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        return; /* nobody reads: there is nowhere left to say so */
}

/* The length of the well-formed UTF-8 character at `text`, or 0. */
static size_t character_length(const char *text, size_t length)
{
    for (size_t size = 1; size <= 4 && size <= length; size++) {
        if (text_is_utf8(text, size))
            return size;
    }
    return 0;
}

void log_quote(const char *text, char *out, unsigned out_size)
{
    CHECK(out_size > 0);
    size_t length = strlen(text), used = 0;
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        char piece[8];
        size_t size = character_length(text + i, length - i);
        size_t piece_size;
        if (c == '"' || c == '\\')
            piece_size = (size_t)snprintf(piece, sizeof(piece), "\\%c", c);
        else if (c < 0x20)
            piece_size = (size_t)snprintf(piece, sizeof(piece), "\\u%04x", c);
        else if (size == 0)
            piece_size = (size_t)snprintf(piece, sizeof(piece), "\\ufffd");
        else
            memcpy(piece, text + i, piece_size = size);
        if (used + piece_size >= out_size)
            break;
        memcpy(out + used, piece, piece_size);
        used += piece_size;
        i += size == 0 ? 1 : size;
    }
    out[used] = '\0';
}
