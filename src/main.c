/* SPDX-License-Identifier: Apache-2.0
 * Starts the command line. Decides nothing. */
#include <signal.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
    signal(SIGPIPE,
           SIG_IGN); /* a reader that went away is an error of one write, not the end of the process */
    return cli_main(argc, argv);
}
