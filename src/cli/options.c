/* SPDX-License-Identifier: Apache-2.0
 * Flags, environment and file made into one set of values.
 *
 * Read in the order of their strength: flags first, then what the flags left
 * open from the environment, then from the file, then defaults. Whoever comes
 * later never overwrites.
 *
 * Invariants: (1) an option that the subcommand does not take is refused on its
 * command line, but is no error in the environment or a file, which several
 * subcommands share; (2) an empty variable counts as not set; (3) unknown
 * variables that begin with HOLDFAST_ are left alone: container platforms make
 * some of their own from a service's name.
 *
 * It checks that options exist and have values, not what the values mean. */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option_row option_rows[OPTION_COUNT] = {
#define OPTION_ROW(id, name, scope, verbs, value, initial, help)                                             \
    [OPTION_##id] = {name, SCOPE_##scope, verbs, value, initial, help},
    OPTION_MAP(OPTION_ROW)
#undef OPTION_ROW
};

void option_variable(enum option option, char *out, size_t out_size)
{
    snprintf(out, out_size, "HOLDFAST_%s", option_rows[option].name);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

void options_origin(const struct options *options, enum option option, char *out, size_t out_size)
{
    switch (options->sources[option]) {
    case FROM_ENVIRONMENT:
        option_variable(option, out, out_size);
        break;
    case FROM_FILE:
        snprintf(out, out_size, "%s in %s", option_rows[option].name, options->values[OPTION_CONFIG]);
        break;
    default:
        snprintf(out, out_size, "--%s", option_rows[option].name);
        break;
    }
}

static size_t edit_distance(const char *a, const char *b)
{
    enum { LENGTH_MAX = 32 };
    size_t a_length = strlen(a), b_length = strlen(b);
    size_t row[LENGTH_MAX + 1];

    if (a_length > LENGTH_MAX || b_length > LENGTH_MAX)
        return LENGTH_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t above = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[b_length];
}

const char *options_nearest(const char *word, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t nearest_distance = 3; /* further away it is no typo */

    for (size_t i = 0; i < count; i++) {
        if (names[i] == NULL)
            continue;
        size_t distance = edit_distance(word, names[i]);
        if (distance < nearest_distance && distance < strlen(names[i])) {
            nearest_distance = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

static void explain_unknown(enum verb verb, const char *name, char *why, size_t why_size)
{
    const char *names[OPTION_COUNT] = {NULL};

    for (int option = 0; option < OPTION_COUNT; option++)
        if (option_rows[option].verbs & BIT(verb))
            names[option] = option_rows[option].name;
    const char *nearest = options_nearest(name, names, OPTION_COUNT);
    if (nearest != NULL)
        snprintf(why, why_size, "there is no option --%.64s; did you mean --%s?", name, nearest);
    else
        snprintf(why, why_size, "there is no option --%.64s here", name);
}

static int option_find(const char *name, size_t length)
{
    for (int option = 0; option < OPTION_COUNT; option++)
        if (strlen(option_rows[option].name) == length && memcmp(option_rows[option].name, name, length) == 0)
            return option;
    return -1;
}

/* One `--name`, `--name=value` or `--name value` at words[*index]. */
static bool parse_flag(struct options *options, enum verb verb, int count, char **words, int *index,
                       char *why, size_t why_size)
{
    const char *name = words[*index] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    int option = option_find(name, length);

    if (option < 0 || !(option_rows[option].verbs & BIT(verb))) {
        explain_unknown(verb, arena_text_n(&options->arena, name, length), why, why_size);
        return false;
    }
    const struct option_row *row = &option_rows[option];
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (row->value == NULL) {
        if (value != NULL) {
            snprintf(why, why_size, "--%s takes no value", row->name);
            return false;
        }
        value = "true";
    } else if (value == NULL) {
        if (*index + 1 >= count || strncmp(words[*index + 1], "--", 2) == 0) {
            snprintf(why, why_size, "--%s needs a value (%s)", row->name, row->value);
            return false;
        }
        value = words[++*index];
    }
    if (value[0] == '\0' || strlen(value) > OPTION_VALUE_SIZE_MAX) {
        snprintf(why, why_size, "--%s has %s value", row->name, value[0] == '\0' ? "an empty" : "too long a");
        return false;
    }
    options->values[option] = arena_text(&options->arena, value);
    options->sources[option] = FROM_FLAG;
    return true;
}

static bool parse_words(struct options *options, enum verb verb, int count, char **words, char *why,
                        size_t why_size)
{
    bool only_arguments = false;

    for (int i = 0; i < count; i++)
        if (strcmp(words[i], "--") == 0)
            break;
        else if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
            options->help = true;
    if (options->help)
        return true;

    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        if (!only_arguments && strcmp(word, "--") == 0) {
            only_arguments = true;
        } else if (!only_arguments && strncmp(word, "--", 2) == 0) {
            if (!parse_flag(options, verb, count, words, &i, why, why_size))
                return false;
        } else if (!only_arguments && word[0] == '-' && word[1] != '\0') {
            snprintf(why, why_size, "there is no option %.64s; options are written in full, with two dashes",
                     word);
            return false;
        } else if (options->argument_count == ARGUMENT_COUNT_MAX) {
            snprintf(why, why_size, "there are too many arguments");
            return false;
        } else {
            options->arguments[options->argument_count++] = word;
        }
    }
    return true;
}

static bool read_environment(struct options *options, char *(*get_environment)(const char *name), char *why,
                             size_t why_size)
{
    for (int option = 0; option < OPTION_COUNT; option++) {
        char variable[64];
        if (option_rows[option].scope != SCOPE_EVERYWHERE || options_given(options, (enum option)option))
            continue;
        option_variable((enum option)option, variable, sizeof variable);
        const char *value = get_environment(variable);
        if (value == NULL || value[0] == '\0')
            continue;
        if (strlen(value) > OPTION_VALUE_SIZE_MAX) {
            snprintf(why, why_size, "%s has too long a value", variable);
            return false;
        }
        options->values[option] = arena_text(&options->arena, value);
        options->sources[option] = FROM_ENVIRONMENT;
    }
    return true;
}

bool options_parse(struct options *options, enum verb verb, int count, char **words,
                   char *(*get_environment)(const char *name), char *why, size_t why_size)
{
    *options = (struct options){.argument_count = 0};
    arena_init(&options->arena);
    if (!parse_words(options, verb, count, words, why, why_size))
        return false;
    if (options->help)
        return true;
    if (!read_environment(options, get_environment, why, why_size))
        return false;
    if ((BIT(verb) & FOR_CONFIG) && options->values[OPTION_CONFIG] != NULL &&
        !config_read(options, options->values[OPTION_CONFIG], why, why_size))
        return false;
    for (int option = 0; option < OPTION_COUNT; option++)
        if (!options_given(options, (enum option)option))
            options->values[option] = option_rows[option].initial;
    return true;
}

void options_deinit(struct options *options)
{
    arena_deinit(&options->arena);
}

bool options_integer(const struct options *options, enum option option, int64_t least, int64_t most,
                     int64_t *out, char *why, size_t why_size)
{
    const char *text = options->values[option];
    char *end = NULL;

    CHECK(text != NULL);
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || isspace((unsigned char)text[0]) || value < least ||
        value > most) {
        char origin[512];
        options_origin(options, option, origin, sizeof origin);
        snprintf(why, why_size, "%s must be a whole number from %lld to %lld, not '%.64s'", origin,
                 (long long)least, (long long)most, text);
        return false;
    }
    *out = value;
    return true;
}
