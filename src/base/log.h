/* SPDX-License-Identifier: Apache-2.0
 * Structured logs: one JSON object a line on standard error, with time, level,
 * message and fields. The sink is the one mutable global besides metrics. */
#ifndef HOLDFAST_BASE_LOG_H
#define HOLDFAST_BASE_LOG_H

#include <stdbool.h>

#include "base/check.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_COUNT };

void log_set_level(enum log_level level);
bool log_is_on(enum log_level level); /* is it worth putting the fields together */

/* fields is a format that gives `"key":value` pairs without braces, or NULL:
 *   log_write(LOG_INFO, "ready", "\"listen\":\"%s\",\"seats\":%d", address, count);
 * The values must already be safe inside JSON; use log_quote() for foreign text. */
void log_write(enum log_level level, const char *message, const char *fields, ...) PRINTF_LIKE(3, 4);
void log_quote(const char *text, char *out, unsigned out_size); /* escapes, truncates, NUL ends */

#endif
