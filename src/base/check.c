/* SPDX-License-Identifier: Apache-2.0
 * The end of a process that found its own mistake: going on could sell a seat
 * twice, and recovery from the store is always right. Any thread; writes
 * without allocating. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *condition, const char *file, int line, const char *function)
{
    char message[512];
    int length = snprintf(message, sizeof(message), "holdfast: CHECK(%s) failed in %s() at %s:%d\n",
                          condition, function, file, line);
    if (length > (int)sizeof(message) - 1)
        length = (int)sizeof(message) - 1;
    if (length > 0 && write(STDERR_FILENO, message, (size_t)length) < 0)
        abort();
    abort();
}
