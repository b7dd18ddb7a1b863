/* SPDX-License-Identifier: Apache-2.0
 * How far something is, on standard error: a bar where a person watches, one
 * plain line per step elsewhere. */
#ifndef HOLDFAST_CLI_PROGRESS_H
#define HOLDFAST_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool silent;
    bool is_terminal;
    const char *step;
    int percent; /* shown last */
    int64_t begun_us;
};

void progress_init(struct progress *progress, bool silent);
/* The step that begins now, and how much is done in all. */
void progress_step(struct progress *progress, const char *step, double done);
void progress_update(struct progress *progress, double done);
void progress_end(struct progress *progress); /* leaves the line clean; safe to call twice */

#endif
