/* SPDX-License-Identifier: Apache-2.0
 * SIGTERM and SIGINT. They are blocked in every thread, so that nothing is ever
 * interrupted by them, and the main thread waits for them; the first one asks
 * to end, the second one does not ask. */
#include <signal.h>
#include <unistd.h>

#include "cli/node.h"

static void signal_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
}

void signals_block(void)
{
    sigset_t set;

    signal_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void on_second_signal(int number)
{
    _exit(128 + number);
}

void signals_wait(void)
{
    struct sigaction action = {.sa_handler = on_second_signal};
    sigset_t set;
    int number;

    signal_set(&set);
    while (sigwait(&set, &number) != 0)
        continue;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
