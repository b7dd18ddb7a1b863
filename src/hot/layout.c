/* SPDX-License-Identifier: Apache-2.0
 * The layout document, from JSON to plain arrays. An admin or an import sends
 * it, the store keeps it as it came, and it is parsed here: once to be checked
 * when it is put, and once for every seat map made of it.
 *
 * Invariants of a layout that was accepted:
 *  1. Blocks, rows and seats stand in the order of the document; the seats of a
 *     row, and the rows of a block, are contiguous.
 *  2. No two blocks have the same section and subsection, no two rows of a block
 *     and no two seats of a row the same label.
 *  3. Every number is within limits.h, every text 1 … TEXT_SIZE_MAX characters.
 *  4. Labels cost little: numbers are kept once, and a row whose labels are
 *     those of the row before shares them.
 *
 * Any thread. Keys it does not know are ignored: venues keep notes in their
 * files. It gives out no ids and knows no state. */
#include "hot/layout.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"

#define PRICE_CENTS_MAX INT64_C(10000000000)
#define POSITION_MAX 1e9 /* either way, in whatever unit the venue draws */

enum {
    SUBSECTION_MAX = 9999,
    STAGE_SIZE_MAX = 64 * 1024,
    /* A tree takes up to 250 bytes a value, whatever the value is worth: the 32 MiB a document may
     * have could become gigabytes. 100,000 rows of one seat each, all placed, are 700,000. */
    VALUE_COUNT_MAX = 2000000,
    LABEL_SHOWN_MAX = 120, /* bytes of a label repeated in a message */
    NUMBER_TEXT_SIZE = 24,
};

struct parser {
    struct arena *arena; /* borrows */
    struct layout *layout;
    struct layout_block *block; /* where we are, for messages; NULL: not in a block */
    struct layout_row *row;     /* NULL: not in a row */
    char *why;
    size_t why_size;
    const char *numbers[ROW_SEAT_COUNT_MAX + 1]; /* texts of "1" …, as far as they were needed */
};

/* ---- Refusals ---- */

/* The message may end in the middle of a character, and repeats foreign text: it leaves as UTF-8
 * on one line. */
static void why_clean(char *why)
{
    bool ascii_only = !text_is_utf8(why, strlen(why));
    for (char *c = why; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && ascii_only))
            *c = '?';
    }
}

/* Says where, then what. Always ERR_INVALID_REQUEST. */
static enum err refuse(struct parser *parser, const char *format, ...) PRINTF_LIKE(2, 3);

static enum err refuse(struct parser *parser, const char *format, ...)
{
    char where[64 + LABEL_SHOWN_MAX] = "", what[256];
    int length = 0;
    if (parser->block != NULL && parser->block->subsection != 0)
        length = snprintf(where, sizeof where, "block %s-%d", parser->block->section,
                          (int)parser->block->subsection);
    else if (parser->block != NULL)
        length = snprintf(where, sizeof where, "block %d", (int)(parser->block - parser->layout->blocks) + 1);
    if (parser->row != NULL && parser->row->label != NULL)
        snprintf(where + length, sizeof where - (size_t)length, ", row \"%.*s\"", LABEL_SHOWN_MAX,
                 parser->row->label);
    else if (parser->row != NULL)
        snprintf(where + length, sizeof where - (size_t)length, ", row %d", (int)parser->row->ordinal);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (parser->why_size > 0) {
        snprintf(parser->why, parser->why_size, "%s%s%s", where, where[0] != '\0' ? ": " : "", what);
        why_clean(parser->why);
    }
    return ERR_INVALID_REQUEST;
}

/* ---- Single values ---- */

static bool value_is_absent(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

/* jansson has checked that it is UTF-8 without NUL. */
static bool value_is_text(const json_t *value)
{
    if (!json_is_string(value))
        return false;
    size_t count = text_character_count(json_string_value(value), json_string_length(value));
    return count >= 1 && count <= TEXT_SIZE_MAX;
}

static bool value_is_integer(const json_t *value, int64_t least, int64_t most)
{
    return json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most;
}

static enum err parse_name(struct parser *parser, const json_t *object, const char *otherwise,
                           const char **out)
{
    const json_t *value = json_object_get(object, "name");
    if (value_is_absent(value) && otherwise != NULL) {
        *out = otherwise;
        return ERR_OK;
    }
    if (!value_is_text(value))
        return refuse(parser, "name must be text of 1 to %d characters", TEXT_SIZE_MAX);
    *out = arena_text_n(parser->arena, json_string_value(value), json_string_length(value));
    return ERR_OK;
}

static bool section_is_valid(const json_t *value)
{
    size_t length = json_is_string(value) ? json_string_length(value) : 0;
    if (length < 1 || length > 3)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (json_string_value(value)[i] < 'A' || json_string_value(value)[i] > 'Z')
            return false;
    }
    return true;
}

/* ---- Seats of a row ---- */

/* The text of a number, once; NULL if it is not one that is shared. */
static const char *number_label(struct parser *parser, int64_t number)
{
    if (number < 1 || number > ROW_SEAT_COUNT_MAX)
        return NULL;
    if (parser->numbers[number] == NULL) {
        char text[NUMBER_TEXT_SIZE];
        snprintf(text, sizeof text, "%d", (int)number);
        parser->numbers[number] = arena_text(parser->arena, text);
    }
    return parser->numbers[number];
}

/* The number that `text` is the decimal text of, or 0. */
static int64_t text_to_shared_number(const char *text, size_t length)
{
    int64_t number = 0;
    if (length > 4 || text[0] == '0')
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* `before`: the label at the same place of the row before, or NULL. NULL: not a label. */
static const char *parse_seat_label(struct parser *parser, const json_t *value, const char *before)
{
    char digits[NUMBER_TEXT_SIZE];
    const char *text = digits;
    int64_t number;
    size_t length;
    if (json_is_integer(value)) {
        number = json_integer_value(value);
        length = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number);
    } else if (value_is_text(value)) {
        text = json_string_value(value);
        length = json_string_length(value);
        number = text_to_shared_number(text, length);
    } else {
        return NULL;
    }
    const char *shared = number_label(parser, number);
    if (shared != NULL)
        return shared;
    return before != NULL && strcmp(before, text) == 0 ? before : arena_text_n(parser->arena, text, length);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A label that stands twice among `labels`, or NULL. Sorts them. */
static const char *labels_repeated(const char **labels, int32_t count)
{
    qsort(labels, (size_t)count, sizeof *labels, compare_texts);
    for (int32_t i = 1; i < count; i++) {
        if (strcmp(labels[i - 1], labels[i]) == 0)
            return labels[i];
    }
    return NULL;
}

static enum err parse_labels(struct parser *parser, const json_t *seats, int32_t count)
{
    struct layout *layout = parser->layout;
    struct layout_row *row = parser->row;
    const char **labels = layout->seat_labels + row->seat_first;
    const struct layout_row *before = row > layout->rows ? row - 1 : NULL;
    for (int32_t i = 0; i < count; i++) {
        bool shares = before != NULL && i < before->seat_count;
        labels[i] = parse_seat_label(parser, json_array_get(seats, (size_t)i),
                                     shares ? layout->seat_labels[before->seat_first + i] : NULL);
        if (labels[i] == NULL)
            return refuse(parser, "label of seat %d must be text of 1 to %d characters, or a whole number",
                          (int)i + 1, TEXT_SIZE_MAX);
    }
    const char *sorted[ROW_SEAT_COUNT_MAX];
    memcpy(sorted, labels, (size_t)count * sizeof *labels);
    const char *repeated = labels_repeated(sorted, count);
    if (repeated != NULL)
        return refuse(parser, "seat \"%.*s\" stands there twice", LABEL_SHOWN_MAX, repeated);
    return ERR_OK;
}

/* How many seats "seats" asks for; 0 if it is wrong. */
static int32_t seats_count(const json_t *seats)
{
    if (json_is_array(seats) && json_array_size(seats) <= ROW_SEAT_COUNT_MAX)
        return (int32_t)json_array_size(seats);
    return value_is_integer(seats, 1, ROW_SEAT_COUNT_MAX) ? (int32_t)json_integer_value(seats) : 0;
}

static enum err parse_seats(struct parser *parser, const json_t *seats)
{
    struct layout *layout = parser->layout;
    struct layout_row *row = parser->row;
    int32_t count = seats_count(seats);
    if (count == 0)
        return refuse(parser, "seats must be 1 to %d, as a number or a list of labels", ROW_SEAT_COUNT_MAX);
    if (json_is_array(seats)) {
        enum err err = parse_labels(parser, seats, count);
        if (err != ERR_OK)
            return err;
    } else {
        for (int32_t i = 0; i < count; i++)
            layout->seat_labels[row->seat_first + i] = number_label(parser, i + 1);
    }
    row->seat_count = count;
    layout->seat_count += count;
    return ERR_OK;
}

/* ---- Rows ---- */

static enum err parse_coordinate(struct parser *parser, const json_t *object, const char *key,
                                 double otherwise, bool *given, double *out)
{
    const json_t *value = json_object_get(object, key);
    *given = !value_is_absent(value);
    *out = *given ? json_number_value(value) : otherwise;
    if (*given && !(json_is_number(value) && fabs(*out) <= POSITION_MAX))
        return refuse(parser, "%s must be a number between -%.0f and %.0f", key, POSITION_MAX, POSITION_MAX);
    return ERR_OK;
}

/* x, y is the first seat's place, dx, dy the step to the next. Each may be given alone: the others
 * are then what a plain block would have, rows one below the other, seats one to the right. */
static enum err parse_position(struct parser *parser, const json_t *object)
{
    struct layout_row *row = parser->row;
    bool has_x, has_y, has_dx, has_dy;
    enum err err = parse_coordinate(parser, object, "x", 0, &has_x, &row->x);
    if (err == ERR_OK)
        err = parse_coordinate(parser, object, "y", row->ordinal - 1, &has_y, &row->y);
    if (err == ERR_OK)
        err = parse_coordinate(parser, object, "dx", 1, &has_dx, &row->dx);
    if (err == ERR_OK)
        err = parse_coordinate(parser, object, "dy", 0, &has_dy, &row->dy);
    if (err != ERR_OK)
        return err;
    row->placed = has_x || has_y || has_dx || has_dy;
    return ERR_OK;
}

static enum err parse_row(struct parser *parser, const json_t *object)
{
    if (!json_is_object(object))
        return refuse(parser, "must be an object");
    const json_t *label = json_object_get(object, "label");
    if (!value_is_text(label))
        return refuse(parser, "label must be text of 1 to %d characters", TEXT_SIZE_MAX);
    parser->row->label = arena_text_n(parser->arena, json_string_value(label), json_string_length(label));
    enum err err = parse_position(parser, object);
    return err != ERR_OK ? err : parse_seats(parser, json_object_get(object, "seats"));
}

static enum err parse_rows(struct parser *parser, const json_t *rows)
{
    struct layout *layout = parser->layout;
    struct layout_block *block = parser->block;
    if (!json_is_array(rows) || json_array_size(rows) < 1 || json_array_size(rows) > BLOCK_ROW_COUNT_MAX)
        return refuse(parser, "rows must be a list of 1 to %d rows", BLOCK_ROW_COUNT_MAX);
    block->row_first = layout->row_count;
    block->seat_first = layout->seat_count;
    block->row_count = (int32_t)json_array_size(rows);
    for (int32_t i = 0; i < block->row_count; i++) {
        struct layout_row *row = parser->row = &layout->rows[layout->row_count];
        *row = (struct layout_row){
            .block = (int32_t)(block - layout->blocks),
            .ordinal = i + 1,
            .seat_first = layout->seat_count,
        };
        enum err err = parse_row(parser, json_array_get(rows, (size_t)i));
        if (err != ERR_OK)
            return err;
        layout->row_count++;
        if (row->seat_count > block->column_count)
            block->column_count = row->seat_count;
    }
    parser->row = NULL;
    block->seat_count = layout->seat_count - block->seat_first;
    const char *labels[BLOCK_ROW_COUNT_MAX];
    for (int32_t i = 0; i < block->row_count; i++)
        labels[i] = layout->rows[block->row_first + i].label;
    const char *repeated = labels_repeated(labels, block->row_count);
    return repeated == NULL ? ERR_OK
                            : refuse(parser, "row \"%.*s\" stands there twice", LABEL_SHOWN_MAX, repeated);
}

/* ---- Blocks ---- */

static enum err parse_block(struct parser *parser, const json_t *object)
{
    struct layout_block *block = parser->block;
    if (!json_is_object(object))
        return refuse(parser, "must be an object");
    const json_t *section = json_object_get(object, "section");
    const json_t *subsection = json_object_get(object, "subsection");
    if (!section_is_valid(section))
        return refuse(parser, "section must be one to three letters A to Z");
    if (!value_is_integer(subsection, 1, SUBSECTION_MAX))
        return refuse(parser, "subsection must be a whole number from 1 to %d", SUBSECTION_MAX);
    snprintf(block->section, sizeof block->section, "%s", json_string_value(section));
    block->subsection = (int32_t)json_integer_value(subsection);
    enum err err = parse_name(parser, object, NULL, &block->name);
    if (err != ERR_OK)
        return err;
    const json_t *price = json_object_get(object, "price_cents");
    if (!value_is_integer(price, 0, PRICE_CENTS_MAX))
        return refuse(parser, "price_cents must be a whole number from 0 to %lld",
                      (long long)PRICE_CENTS_MAX);
    block->price_cents = json_integer_value(price);
    err = parse_rows(parser, json_object_get(object, "rows"));
    if (err != ERR_OK)
        return err;
    const json_t *capacity = json_object_get(object, "capacity");
    block->capacity = block->seat_count;
    if (value_is_absent(capacity))
        return ERR_OK;
    if (!value_is_integer(capacity, 1, block->seat_count))
        return refuse(parser, "capacity must be a whole number from 1 to %d, its number of seats",
                      (int)block->seat_count);
    block->capacity = (int32_t)json_integer_value(capacity);
    return ERR_OK;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct layout_block *left = *(const struct layout_block *const *)a;
    const struct layout_block *right = *(const struct layout_block *const *)b;
    int sections = strcmp(left->section, right->section);
    return sections != 0 ? sections : left->subsection - right->subsection;
}

static enum err check_blocks_differ(struct parser *parser)
{
    const struct layout *layout = parser->layout;
    const struct layout_block *sorted[EVENT_BLOCK_COUNT_MAX];
    for (int32_t i = 0; i < layout->block_count; i++)
        sorted[i] = &layout->blocks[i];
    qsort(sorted, (size_t)layout->block_count, sizeof sorted[0], compare_blocks);
    for (int32_t i = 1; i < layout->block_count; i++) {
        if (compare_blocks(&sorted[i - 1], &sorted[i]) == 0)
            return refuse(parser, "block %s-%d stands there twice", sorted[i]->section,
                          (int)sorted[i]->subsection);
    }
    return ERR_OK;
}

/* ---- The document ---- */

/* Makes room for all that the document may have: what is wrong in it is found later, and counts
 * for nothing here. */
static enum err layout_allocate(struct parser *parser, const json_t *blocks)
{
    int64_t row_count = 0, seat_count = 0;
    size_t i, j;
    const json_t *block, *row;
    json_array_foreach((json_t *)blocks, i, block)
    {
        json_array_foreach(json_object_get(block, "rows"), j, row)
        {
            row_count++;
            seat_count += seats_count(json_object_get(row, "seats"));
        }
    }
    if (row_count > EVENT_SEAT_COUNT_MAX)
        return refuse(parser, "the layout has more than %d rows", EVENT_SEAT_COUNT_MAX);
    if (seat_count > EVENT_SEAT_COUNT_MAX)
        return refuse(parser, "the layout has %lld seats; an event can have %d", (long long)seat_count,
                      EVENT_SEAT_COUNT_MAX);
    struct layout *layout = parser->layout;
    layout->blocks = ARENA_ARRAY(parser->arena, struct layout_block, json_array_size(blocks));
    layout->rows = ARENA_ARRAY(parser->arena, struct layout_row, row_count);
    layout->seat_labels = ARENA_ARRAY(parser->arena, const char *, seat_count);
    return ERR_OK;
}

static enum err parse_blocks(struct parser *parser, const json_t *blocks)
{
    if (!json_is_array(blocks) || json_array_size(blocks) < 1 ||
        json_array_size(blocks) > EVENT_BLOCK_COUNT_MAX)
        return refuse(parser, "blocks must be a list of 1 to %d blocks", EVENT_BLOCK_COUNT_MAX);
    enum err err = layout_allocate(parser, blocks);
    if (err != ERR_OK)
        return err;
    struct layout *layout = parser->layout;
    for (size_t i = 0; i < json_array_size(blocks); i++) {
        parser->block = &layout->blocks[i];
        err = parse_block(parser, json_array_get(blocks, i));
        if (err != ERR_OK)
            return err;
        layout->block_count++;
    }
    parser->block = NULL;
    return check_blocks_differ(parser);
}

static enum err parse_stage(struct parser *parser, const json_t *stage)
{
    if (value_is_absent(stage))
        return ERR_OK;
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    size_t size = json_dumpb(stage, NULL, 0, flags);
    if (size == 0 || size > STAGE_SIZE_MAX)
        return refuse(parser, "stage must be at most %d bytes of JSON", STAGE_SIZE_MAX);
    char *text = arena_alloc(parser->arena, size + 1);
    json_dumpb(stage, text, size, flags);
    parser->layout->stage = text;
    return ERR_OK;
}

static enum err parse_document(struct parser *parser, const json_t *document)
{
    if (!json_is_object(document))
        return refuse(parser, "the layout must be an object");
    enum err err = parse_name(parser, document, "Layout", &parser->layout->name);
    if (err == ERR_OK)
        err = parse_stage(parser, json_object_get(document, "stage"));
    return err != ERR_OK ? err : parse_blocks(parser, json_object_get(document, "blocks"));
}

/* Every value but the first follows one of these three. */
static bool document_is_bounded(const char *document, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += document[i] == '{' || document[i] == '[' || document[i] == ',';
    return count <= VALUE_COUNT_MAX;
}

enum err layout_parse(const char *document, size_t size, struct arena *arena, struct layout **out, char *why,
                      size_t why_size)
{
    struct parser parser = {
        .arena = arena,
        .layout = ARENA_NEW(arena, struct layout),
        .why = why,
        .why_size = why_size,
    };
    if (!document_is_bounded(document, size))
        return refuse(&parser, "the layout has more than %d values", VALUE_COUNT_MAX);
    json_error_t error;
    json_t *tree = json_loadb(document, size, JSON_REJECT_DUPLICATES, &error);
    if (tree == NULL)
        return refuse(&parser, "not valid JSON, line %d: %s", error.line, error.text);
    enum err err = parse_document(&parser, tree);
    json_decref(tree);
    if (err == ERR_OK)
        *out = parser.layout;
    return err;
}
