/* SPDX-License-Identifier: Apache-2.0
 * --help, printed from the tables of subcommands and options, so that it cannot
 * say anything else than what is taken. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

enum { HELP_COLUMN = 34, HELP_WIDTH = 100 };

void help_print_all(void)
{
    printf("Holdfast holds seats: one buyer per seat, for a limited time, through payment, durably.\n"
           "\n"
           "Usage: holdfast COMMAND [OPTIONS]\n"
           "\n"
           "Commands:\n");
    for (int verb = 0; verb < VERB_COUNT; verb++)
        printf("  %-10s %s\n", verb_rows[verb].name, verb_rows[verb].summary);
    printf("\n"
           "`holdfast COMMAND --help` explains one of them; `holdfast --version` prints the version.\n"
           "To look around: `holdfast demo`. To serve: `holdfast serve`.\n");
}

/* Words of `text`, wrapped, the following lines indented to the column where it began. */
static void print_wrapped(const char *text, int column)
{
    int at = column;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length > HELP_WIDTH) {
            printf("\n%*s", column, "");
            at = column;
        } else if (at > column) {
            putchar(' ');
            at++;
        }
        printf("%.*s", length, text);
        at += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(enum verb verb, enum option option)
{
    const struct option_row *row = &option_rows[option];
    char left[80], right[512];

    snprintf(left, sizeof left, "  --%s%s%s", row->name, row->value != NULL ? " " : "",
             row->value != NULL ? row->value : "");
    const char *initial = row->initial;
    if (verb == VERB_DEMO && option == OPTION_STORE)
        initial = "a temporary directory, removed at the end";
    if (verb == VERB_DEMO && option == OPTION_LOG_LEVEL)
        initial = "warn";
    snprintf(right, sizeof right, "%s%s%s%s", row->help, initial != NULL ? " (default: " : "",
             initial != NULL ? initial : "", initial != NULL ? ")" : "");
    if (strlen(left) < HELP_COLUMN)
        printf("%-*s", HELP_COLUMN, left);
    else
        printf("%s\n%*s", left, HELP_COLUMN, "");
    print_wrapped(right, HELP_COLUMN);
}

void help_print_verb(enum verb verb)
{
    const struct verb_row *row = &verb_rows[verb];

    printf("Usage: holdfast %s %s\n\n", row->name, row->arguments);
    print_wrapped(row->purpose, 0);
    printf("\nOptions:\n");
    for (int option = 0; option < OPTION_COUNT; option++)
        if (option_rows[option].verbs & BIT(verb))
            print_option(verb, (enum option)option);
    printf("%-*sthis page\n", HELP_COLUMN, "  --help");
    if (BIT(verb) & FOR_CONFIG)
        printf(
            "\nSettings may also stand in the environment (--jwt-secret-file as HOLDFAST_JWT_SECRET_FILE)\n"
            "or in the --config file; a flag wins over the environment over the file. See "
            "docs/options.md.\n");
    printf("\nExample:\n%s", row->examples);
}
