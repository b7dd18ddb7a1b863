/* SPDX-License-Identifier: Apache-2.0
 * `holdfast migrate`: brings a store to this version's schema and says where it
 * stands. What is applied, and how, is the store's. */
#include <stdio.h>

#include "cli/setup.h"
#include "store/store.h"

int migrate_run(const struct options *options)
{
    int applied = 0, version = 0;
    char why[1024] = "", store[STORE_SHOWN_SIZE];

    if (options->argument_count > 0)
        return cli_fail_usage(VERB_MIGRATE, "migrate takes no argument '%.64s'", options->arguments[0]);
    if (!setup_check_store(options, why, sizeof why))
        return cli_fail("%s", why);
    enum err err = store_migrate(options->values[OPTION_STORE], &applied, &version, why, sizeof why);
    if (err != ERR_OK)
        return cli_fail("%s", why[0] != '\0' ? why : err_text(err));
    setup_show_store(options->values[OPTION_STORE], store);
    if (applied == 0)
        printf("%s is at version %d; nothing was due\n", store, version);
    else
        printf("%s is now at version %d; %d migration%s applied\n", store, version, applied,
               applied == 1 ? "" : "s");
    return EXIT_DONE;
}
