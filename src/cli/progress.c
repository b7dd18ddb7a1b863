/* SPDX-License-Identifier: Apache-2.0
 * A bar that is drawn over itself with a carriage return. Only drawn again when
 * a percent has passed, so it costs nothing to report often. */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { BAR_WIDTH = 30 };

void progress_init(struct progress *progress, bool silent)
{
    *progress = (struct progress){
        .silent = silent,
        .is_terminal = isatty(STDERR_FILENO) == 1,
        .percent = -1,
        .begun_us = clock_monotonic_us(),
    };
}

static void draw(struct progress *progress)
{
    char bar[BAR_WIDTH + 1];
    int full = progress->percent * BAR_WIDTH / 100;

    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3d%%  %s\033[K", bar, progress->percent, progress->step);
    fflush(stderr);
}

void progress_step(struct progress *progress, const char *step, double done)
{
    if (progress->silent)
        return;
    progress->step = step;
    progress->percent = (int)(done * 100);
    if (progress->is_terminal)
        draw(progress);
    else
        fprintf(stderr, "%s ...\n", step);
}

void progress_update(struct progress *progress, double done)
{
    int percent = (int)((done < 1 ? done : 1) * 100);

    if (progress->silent || !progress->is_terminal || percent == progress->percent)
        return;
    progress->percent = percent;
    draw(progress);
}

void progress_end(struct progress *progress)
{
    if (progress->silent || progress->step == NULL)
        return;
    progress->step = NULL;
    if (progress->is_terminal)
        fprintf(stderr, "\r\033[K");
}
