/* SPDX-License-Identifier: Apache-2.0
 * `holdfast import FILE`: reads, checks, writes, prints the ids as JSON. The
 * document is checked whole before the store is opened, and nothing is printed
 * on standard output before the commit. */
#include "cli/import.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "cli/setup.h"

static void print_ids(const struct import_plan *plan)
{
    struct buf out;
    struct jsonw json;

    buf_init(&out);
    jsonw_begin(&json, &out);
    jsonw_object_open(&json);
    jsonw_key_uuid(&json, "organization_id", &plan->org.id);
    jsonw_key_uuid(&json, "event_id", &plan->event.id);
    jsonw_key_int(&json, "blocks", plan->layout->block_count);
    jsonw_key_int(&json, "seats", plan->layout->seat_count);
    jsonw_object_close(&json);
    puts(buf_text(&out));
    buf_deinit(&out);
}

int import_run(const struct options *options)
{
    struct store_options store_options = {.read_only = false};
    struct import_plan plan;
    struct progress progress;
    struct store *store = NULL;
    struct arena arena;
    struct rng rng;
    struct buf text;
    char why[1024] = "";
    bool good = false;

    if (options->argument_count != 1)
        return cli_fail_usage(VERB_IMPORT, options->argument_count == 0 ? "import needs the name of a file"
                                                                        : "import takes one file at a time");
    const char *path = options->arguments[0];
    const char *shown = path[0] == '-' && path[1] == '\0' ? "standard input" : path;
    progress_init(&progress, false);
    arena_init(&arena);
    buf_init(&text);
    rng_init_system(&rng);
    if (!setup_check_store(options, why, sizeof why))
        goto done;
    progress_step(&progress, "reading", 0);
    if (!file_read(path, IMPORT_SIZE_MAX, &text, why, sizeof why))
        goto done;
    progress_step(&progress, "checking", 0.2);
    char what[900] = "";
    if (!import_parse(text.data != NULL ? text.data : "", text.size, &rng, clock_now_ms(), &arena, &plan,
                      what, sizeof what)) {
        snprintf(why, sizeof why, "%.100s: %s", shown, what);
        goto done;
    }
    progress_step(&progress, "opening the store", 0.4);
    enum err err = store_open(options->values[OPTION_STORE], &store_options, &store, why, sizeof why);
    if (err != ERR_OK) {
        if (why[0] == '\0')
            snprintf(why, sizeof why, "%s", err_text(err));
        goto done;
    }
    good = import_write(store, &plan, &rng, clock_now_ms(), &progress, why, sizeof why);
    store_close(store);
done:
    progress_end(&progress);
    if (good)
        print_ids(&plan);
    arena_deinit(&arena);
    buf_deinit(&text);
    return good ? EXIT_DONE : cli_fail("%s", why);
}
