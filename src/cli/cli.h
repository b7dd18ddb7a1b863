/* SPDX-License-Identifier: Apache-2.0
 * The command line: one subcommand, its options, an exit status.
 * 0: done. 1: could not, or a promise is broken. 2: asked wrongly. Standard
 * output carries results alone; every failure is one sentence on standard error. */
#ifndef HOLDFAST_CLI_CLI_H
#define HOLDFAST_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/uuid.h"
#include "cli/options.h"

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct verb_row {
    const char *name;
    const char *arguments; /* after the name, on the usage line */
    const char *summary;   /* one line, in the list */
    const char *purpose;   /* a paragraph */
    const char *examples;  /* one a line */
    int (*run)(const struct options *options);
};
extern const struct verb_row verb_rows[VERB_COUNT];

int cli_main(int count, char **words);

/* Prints `holdfast: sentence.` on standard error; returns EXIT_FAILED or EXIT_USAGE. */
int cli_fail(const char *format, ...) PRINTF_LIKE(1, 2);
int cli_fail_usage(enum verb verb, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- help.c ---- */
void help_print_all(void);
void help_print_verb(enum verb verb);

/* ---- address.c ---- */
struct address {
    char host[64]; /* numeric */
    uint16_t port;
};
/* "127.0.0.1:8080", "[::1]:8080", "localhost:0". False and one sentence, which names the option. */
bool address_parse(const struct options *options, enum option option, struct address *out, char *why,
                   size_t why_size) MUST_CHECK;
/* "http://127.0.0.1:8080"; brackets around an IPv6 host. */
void address_format_url(const struct address *address, char *out, size_t out_size);
/* An option that must be a UUID; nil when it is not given. */
bool options_uuid(const struct options *options, enum option option, struct uuid *out, char *why,
                  size_t why_size) MUST_CHECK;

/* ---- The subcommands ---- */
int serve_run(const struct options *options);
int demo_run(const struct options *options);
int migrate_run(const struct options *options);
int import_run(const struct options *options);
int token_run(const struct options *options);
int registry_run(const struct options *options);
int verify_run(const struct options *options);
int dlq_run(const struct options *options);
int dlq_commands_run(const struct options *options); /* `dlq commands` */
int bench_run(const struct options *options);

#endif
