/* SPDX-License-Identifier: Apache-2.0
 * Finds the subcommand, has its options read, runs it. The table of subcommands
 * stands here; each has its own file. Nothing else is decided here. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* clang-format off */
const struct verb_row verb_rows[VERB_COUNT] = {
    [VERB_SERVE] = {
        "serve", "[OPTIONS]", "serve the API",
        "Serves the HTTP API until it is told to stop. Without any option it keeps everything in ./holdfast.db, makes a "
        "secret beside it on first start, and answers on 127.0.0.1:8080. It prints one line when it is ready and logs to "
        "standard error as JSON. SIGTERM or Ctrl-C lets what is in flight finish; a second one ends at once.",
        "  holdfast serve --listen 0.0.0.0:8080 --store sqlite:/var/lib/holdfast/holdfast.db\n",
        serve_run,
    },
    [VERB_DEMO] = {
        "demo", "[OPTIONS]", "a running event to look at, with simulated buyers",
        "Starts a server with an arena of about 10,000 seats, two smaller events, and simulated buyers who hold, pay, give "
        "up and let holds run out. Prints a link and curl lines to paste. Everything is kept in a temporary directory that "
        "is removed at the end, unless --store names a place.",
        "  holdfast demo --listen 127.0.0.1:8080\n",
        demo_run,
    },
    [VERB_MIGRATE] = {
        "migrate", "[OPTIONS]", "bring a store to this version's schema",
        "Applies the migrations that are due, all of them or none, and says which version was reached. `serve` does the "
        "same at start; this is for doing it beforehand.",
        "  holdfast migrate --store sqlite:/var/lib/holdfast/holdfast.db\n",
        migrate_run,
    },
    [VERB_IMPORT] = {
        "import", "FILE [OPTIONS]", "put an organization, event and layout into a store",
        "Reads one JSON document with an organization, an event and its layout (`-`: standard input), checks it, writes it "
        "in one transaction and prints the ids as JSON. An organization whose id exists is used as it is. The store must "
        "not be in use by a server; beside a running one, use its admin API.",
        "  holdfast import arena.json --store sqlite:./holdfast.db\n",
        import_run,
    },
    [VERB_TOKEN] = {
        "token", "--org UUID [OPTIONS]", "make a token for a user",
        "Prints a signed token (JWT, HS256) on standard output, made with the secret that `serve` would use for the same "
        "--store or --jwt-secret-file.",
        "  holdfast token --org 0190a4c2-7d1e-7c3a-9f54-2b8d6e0f1a23 --role buyer --ttl 86400\n",
        token_run,
    },
    [VERB_REGISTRY] = {
        "registry", "status|reconcile [OPTIONS]", "compare the tiers of the hold registry, or rebuild them",
        "`status` counts held seats and active holds of each event and says whether they agree: in the store file itself, "
        "or with --url in every tier of a running server. `reconcile` asks the server at --url (or --listen) to rebuild its "
        "tiers from the store. Without a token, one is made for an operator with the secret that `serve` would use.",
        "  holdfast registry status --store sqlite:./holdfast.db\n"
        "  holdfast registry reconcile --url http://127.0.0.1:8080\n",
        registry_run,
    },
    [VERB_VERIFY] = {
        "verify", "[OPTIONS]", "walk a store and prove its promises",
        "Reads the whole store and checks every promise that can be checked in it: no seat held or sold twice, every "
        "counter equal to what it counts, every change audited. Also beside a running server; it only reads. Exit status 1 "
        "if a promise is broken.",
        "  holdfast verify --store sqlite:./holdfast.db\n",
        verify_run,
    },
    [VERB_DLQ] = {
        "dlq", "list|commands [OPTIONS]", "show the domain events, or the commands, that were given up",
        "`list` prints the dead letters of a store, newest first: domain events that their receiver would not take, with why and "
        "after how many tries. --org shows those of one organization; --json prints the events whole. `commands` prints those of "
        "--order kafka://...: commands that no node could make sense of, with why and where they came from. Also beside a "
        "running server; both only read.",
        "  holdfast dlq list --store sqlite:./holdfast.db\n"
        "  holdfast dlq commands --order kafka://127.0.0.1:9092 --limit 20\n",
        dlq_run,
    },
    [VERB_BENCH] = {
        "bench", "[OPTIONS]", "measure durable holds per second over HTTP",
        "Starts a server on a temporary store, fills it with seats and holds each of them once over HTTP, with every "
        "connection busy. Prints holds per second and latencies. With --rate requests are due at even intervals instead, and "
        "waiting counts from when they were due. With --readers that many streams are read meanwhile: how old are the news, "
        "and does anybody miss one? With --url it drives a running server instead: the seats that are available in the events "
        "its token sees are held.",
        "  holdfast bench --connections 256 --seconds 10\n",
        bench_run,
    },
};
/* clang-format on */

static void print_sentence(const char *format, va_list arguments)
{
    char sentence[2048];
    int length = vsnprintf(sentence, sizeof sentence - 1, format, arguments);

    if (length < 0)
        length = 0;
    if ((size_t)length > sizeof sentence - 2)
        length = (int)sizeof sentence - 2;
    for (int i = 0; i < length; i++)
        if (sentence[i] == '\n')
            sentence[i] = ' ';
    bool ended = length > 0 && strchr(".?!", sentence[length - 1]) != NULL;
    fprintf(stderr, "holdfast: %.*s%s", length, sentence, ended ? "" : ".");
}

int cli_fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_sentence(format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int cli_fail_usage(enum verb verb, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_sentence(format, arguments);
    va_end(arguments);
    fprintf(stderr, " See `holdfast %s --help`.\n", verb_rows[verb].name);
    return EXIT_USAGE;
}

static int fail_unknown_verb(const char *word)
{
    const char *names[VERB_COUNT];

    for (int verb = 0; verb < VERB_COUNT; verb++)
        names[verb] = verb_rows[verb].name;
    const char *nearest = options_nearest(word, names, VERB_COUNT);
    if (nearest != NULL)
        cli_fail("there is no command '%.64s'; did you mean `holdfast %s`?", word, nearest);
    else if (word[0] == '-')
        cli_fail("there is no option %.64s without a command; see `holdfast --help`", word);
    else
        cli_fail("there is no command '%.64s'; see `holdfast --help`", word);
    return EXIT_USAGE;
}

static int run_verb(enum verb verb, int count, char **words)
{
    struct options options;
    char why[1024];
    int status;

    if (!options_parse(&options, verb, count, words, getenv, why, sizeof why)) {
        status = cli_fail_usage(verb, "%s", why);
    } else if (options.help) {
        help_print_verb(verb);
        status = EXIT_DONE;
    } else {
        if (verb != VERB_SERVE && verb != VERB_DEMO)
            log_set_level(LOG_ERROR); /* the result is told, not logged */
        status = verb_rows[verb].run(&options);
    }
    options_deinit(&options);
    return status;
}

/* A full disk or a closed pipe must not look like success. */
static int finish_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return status == EXIT_DONE ? cli_fail("standard output could not be written") : status;
}

int cli_main(int count, char **words)
{
    if (count < 2) {
        help_print_all();
        return finish_output(EXIT_DONE);
    }
    const char *word = words[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        for (int verb = 0; verb < VERB_COUNT && count > 2; verb++)
            if (strcmp(words[2], verb_rows[verb].name) == 0) {
                help_print_verb((enum verb)verb);
                return finish_output(EXIT_DONE);
            }
        help_print_all();
        return finish_output(EXIT_DONE);
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 || strcmp(word, "version") == 0) {
        printf("holdfast %s\n", HOLDFAST_VERSION);
        return finish_output(EXIT_DONE);
    }
    for (int verb = 0; verb < VERB_COUNT; verb++)
        if (strcmp(word, verb_rows[verb].name) == 0)
            return finish_output(run_verb((enum verb)verb, count - 2, words + 2));
    return fail_unknown_verb(word);
}
