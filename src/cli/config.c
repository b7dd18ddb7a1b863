/* SPDX-License-Identifier: Apache-2.0
 * The configuration file: lines of `name = value`, the names of options.h
 * without dashes in front, `#` to the end of the line for comments, blank lines
 * where they help. A value that holds a `#` or outer spaces stands in double
 * quotes. Nothing nests, nothing is expanded.
 *
 * What is wrong is named with its line: an unknown name, a name given twice, a
 * line without `=`. Options that the subcommand does not take are allowed: one
 * file serves a whole installation. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/files.h"
#include "cli/options.h"

struct config_place {
    const char *path;
    int line;
    char *why;
    size_t why_size;
};

static bool config_complain(const struct config_place *place, const char *what, const char *name)
{
    snprintf(place->why, place->why_size, "%s, line %d: %s%.64s%s", place->path, place->line, what, name,
             name[0] != '\0' ? "'" : "");
    return false;
}

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL)
        text[--length] = '\0';
    return text;
}

/* Cuts the comment off; a quoted value keeps what is inside its quotes. NULL: the quote does not end. */
static char *config_value(char *text)
{
    text = trim(text);
    if (*text != '"') {
        char *comment = strchr(text, '#');
        if (comment != NULL)
            *comment = '\0';
        return trim(text);
    }
    char *end = strchr(text + 1, '"');
    if (end == NULL)
        return NULL;
    char *rest = trim(end + 1);
    if (*rest != '\0' && *rest != '#')
        return NULL;
    *end = '\0';
    return text + 1;
}

static bool config_line(struct options *options, char *line, int *lines_seen,
                        const struct config_place *place)
{
    line = trim(line);
    if (*line == '\0' || *line == '#')
        return true;
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return config_complain(place, "expected `name = value`, found '", line);
    *equals = '\0';
    const char *name = trim(line);
    int option = 0;
    while (option < OPTION_COUNT && strcmp(option_rows[option].name, name) != 0)
        option++;
    if (option == OPTION_COUNT || option_rows[option].scope != SCOPE_EVERYWHERE || option == OPTION_CONFIG)
        return config_complain(place, "unknown name '", name);
    if (lines_seen[option] != 0)
        return config_complain(place, "given a second time: '", name);
    lines_seen[option] = place->line;
    const char *value = config_value(equals + 1);
    if (value == NULL)
        return config_complain(place, "the quotes are not closed, or something follows them", "");
    if (value[0] == '\0')
        return config_complain(place, "no value for '", name);
    if (strlen(value) > OPTION_VALUE_SIZE_MAX)
        return config_complain(place, "too long a value for '", name);
    if (!options_given(options, (enum option)option)) {
        options->values[option] = arena_text(&options->arena, value);
        options->sources[option] = FROM_FILE;
    }
    return true;
}

bool config_read(struct options *options, const char *path, char *why, size_t why_size)
{
    struct config_place place = {.path = path, .why = why, .why_size = why_size};
    int lines_seen[OPTION_COUNT] = {0};
    struct buf text;
    bool good = false;

    buf_init(&text);
    if (!file_read(path, CONFIG_SIZE_MAX, &text, why, why_size))
        goto done;
    if (memchr(text.data != NULL ? text.data : "", '\0', text.size) != NULL) {
        snprintf(why, why_size, "%s is not a text file", path);
        goto done;
    }
    buf_put_char(&text, '\0');
    if (!buf_ok(&text)) {
        snprintf(why, why_size, "%s does not fit into memory", path);
        goto done;
    }
    for (char *line = text.data; line != NULL;) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        place.line++;
        if (!config_line(options, line, lines_seen, &place))
            goto done;
        line = next;
    }
    good = true;
done:
    buf_deinit(&text);
    return good;
}
