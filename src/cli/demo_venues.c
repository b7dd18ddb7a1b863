/* SPDX-License-Identifier: Apache-2.0
 * Places for the demo, as layout documents that look like places when drawn:
 * one unit is the distance between two neighbouring seats, y grows away
 * from the stage, rows are straight and stand across the line to the centre.
 *
 * Blocks stand in the order in which best available should try them: the
 * middle before the sides, near before far. */
#include <math.h>
#include <stdio.h>

#include "base/jsonw.h"
#include "cli/demo.h"

struct row_place {
    char label[8];
    int seat_count;
    double x, y;   /* of its first seat */
    double dx, dy; /* to the next one */
};

static void write_row(struct jsonw *json, const struct row_place *row)
{
    jsonw_object_open(json);
    jsonw_key_text(json, "label", row->label);
    jsonw_key_int(json, "seats", row->seat_count);
    jsonw_key_fixed(json, "x", row->x, 2);
    jsonw_key_fixed(json, "y", row->y, 2);
    jsonw_key_fixed(json, "dx", row->dx, 4);
    jsonw_key_fixed(json, "dy", row->dy, 4);
    jsonw_object_close(json);
}

static void open_block(struct jsonw *json, const char *section, int subsection, const char *name,
                       int64_t price_cents)
{
    jsonw_object_open(json);
    jsonw_key_text(json, "section", section);
    jsonw_key_int(json, "subsection", subsection);
    jsonw_key_text(json, "name", name);
    jsonw_key_int(json, "price_cents", price_cents);
    jsonw_key(json, "rows");
    jsonw_array_open(json);
}

static void close_block(struct jsonw *json)
{
    jsonw_array_close(json);
    jsonw_object_close(json);
}

static void open_document(struct jsonw *json, struct buf *out, const char *name, double x, double y,
                          double width, double height)
{
    jsonw_begin(json, out);
    jsonw_object_open(json);
    jsonw_key_text(json, "name", name);
    jsonw_key(json, "stage");
    jsonw_object_open(json);
    jsonw_key_text(json, "label", "Stage");
    jsonw_key_fixed(json, "x", x, 2);
    jsonw_key_fixed(json, "y", y, 2);
    jsonw_key_fixed(json, "width", width, 2);
    jsonw_key_fixed(json, "height", height, 2);
    jsonw_object_close(json);
    jsonw_key(json, "blocks");
    jsonw_array_open(json);
}

static void close_document(struct jsonw *json)
{
    jsonw_array_close(json);
    jsonw_object_close(json);
}

/* A, B, …, Z, AA, AB, … */
static void row_letters(int ordinal, char out[8])
{
    if (ordinal < 26)
        snprintf(out, 8, "%c", 'A' + ordinal);
    else
        snprintf(out, 8, "%c%c", 'A' + ordinal / 26 - 1, 'A' + ordinal % 26);
}

/* A straight block of rows, each centred on x, `grow` seats longer from row to row. */
static void write_straight_rows(struct jsonw *json, double x, double y, int row_count, int seat_count,
                                int grow, double pitch)
{
    for (int i = 0; i < row_count; i++) {
        struct row_place row = {.seat_count = seat_count + i * grow, .dx = 1, .dy = 0};
        row_letters(i, row.label);
        row.x = x - (row.seat_count - 1) / 2.0;
        row.y = y + i * pitch;
        write_row(json, &row);
    }
}

/* ---- The arena ---- */

enum { ARENA_CENTRE = 100 };

struct ring { /* wedges of a bowl, on an arc open towards the stage */
    const char *section;
    const char *name;
    int number_first;
    int wedge_count;
    int row_count;
    double radius;       /* of the first row */
    double arc;          /* of the whole ring, in radians */
    int64_t price_cents; /* facing the stage; the sides cost less */
};

static void write_wedge(struct jsonw *json, const struct ring *ring, int wedge)
{
    static const double row_pitch = 1.3, aisle = 2.4;
    double step = ring->arc / ring->wedge_count;
    double angle = -ring->arc / 2 + (wedge + 0.5) * step; /* 0: opposite the stage */
    double sideways = fabs(angle) / (ring->arc / 2);
    char name[64];

    snprintf(name, sizeof name, "%s %d", ring->name, ring->number_first + wedge);
    open_block(json, ring->section, wedge + 1, name,
               (int64_t)((double)ring->price_cents * (1 - 0.3 * sideways)) / 500 * 500);
    for (int i = 0; i < ring->row_count; i++) {
        double radius = ring->radius + i * row_pitch;
        struct row_place row = {.dx = cos(angle), .dy = -sin(angle)};
        row.seat_count = (int)(2 * radius * tan(step / 2) - aisle);
        double half = (row.seat_count - 1) / 2.0;
        row.x = ARENA_CENTRE + radius * sin(angle) - half * row.dx;
        row.y = ARENA_CENTRE + radius * cos(angle) - half * row.dy;
        row_letters(i, row.label);
        write_row(json, &row);
    }
    close_block(json);
}

/* From the wedge opposite the stage outwards, one on each side in turn. */
static void write_ring(struct jsonw *json, const struct ring *ring)
{
    int middle = ring->wedge_count / 2;

    for (int i = 0; i < ring->wedge_count; i++) {
        int offset = (i + 1) / 2;
        int wedge = i % 2 == 0 ? middle + offset : middle - offset;
        if (ring->wedge_count % 2 == 0)
            wedge = i % 2 == 0 ? middle + i / 2 : middle - 1 - i / 2;
        write_wedge(json, ring, wedge);
    }
}

void demo_arena_layout(struct buf *out)
{
    static const struct {
        int subsection;
        const char *name;
        double x;
        int64_t price_cents;
    } floors[] = {
        {2, "Floor centre", 0, 14500}, {1, "Floor left", -24, 12500}, {3, "Floor right", 24, 12500}};
    static const struct ring lower = {"B", "Lower bowl", 101, 13, 14, 46, 4.8, 9500};
    static const struct ring upper = {"C", "Upper bowl", 201, 17, 15, 70, 4.8, 6000};
    struct jsonw json;

    open_document(&json, out, "Harbour Arena", ARENA_CENTRE - 22, ARENA_CENTRE - 44, 44, 16);
    for (size_t i = 0; i < COUNT_OF(floors); i++) {
        open_block(&json, "A", floors[i].subsection, floors[i].name, floors[i].price_cents);
        write_straight_rows(&json, ARENA_CENTRE + floors[i].x, ARENA_CENTRE - 20, 32, i == 0 ? 20 : 18, 0,
                            1.4);
        close_block(&json);
    }
    write_ring(&json, &lower);
    write_ring(&json, &upper);
    close_document(&json);
}

/* ---- Smaller places ---- */

void demo_theatre_layout(struct buf *out)
{
    struct jsonw json;

    open_document(&json, out, "Old Theatre", 30, 0, 40, 10);
    open_block(&json, "A", 1, "Stalls", 5500);
    write_straight_rows(&json, 50, 16, 12, 18, 1, 1.3);
    close_block(&json);
    open_block(&json, "B", 1, "Balcony", 3500);
    write_straight_rows(&json, 50, 36, 6, 26, 2, 1.3);
    close_block(&json);
    close_document(&json);
}

void demo_club_layout(struct buf *out)
{
    struct jsonw json;

    open_document(&json, out, "Cellar Club", 6, 0, 12, 5);
    open_block(&json, "A", 1, "Room", 2000);
    write_straight_rows(&json, 12, 9, 8, 8, 1, 1.5);
    close_block(&json);
    close_document(&json);
}
