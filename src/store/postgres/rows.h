/* SPDX-License-Identifier: Apache-2.0
 * Values and rows out of a result, which is always in binary format. */
#ifndef HOLDFAST_STORE_POSTGRES_ROWS_H
#define HOLDFAST_STORE_POSTGRES_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/model.h"

struct pg_result; /* libpq's PGresult */

bool pg_cell_is_null(const struct pg_result *result, int row, int at);
int64_t pg_cell_int(const struct pg_result *result, int row, int at); /* of any width; NULL is 0 */
double pg_cell_real(const struct pg_result *result, int row, int at);
struct uuid pg_cell_uuid(const struct pg_result *result, int row, int at); /* NULL is nil */
const char *pg_cell_text(const struct pg_result *result, int row, int at); /* borrows; NULL is NULL */
const void *pg_cell_bytes(const struct pg_result *result, int row, int at, size_t *size);
int64_t pg_cell_time(const struct pg_result *result, int row, int at); /* milliseconds; NULL is 0 */
int64_t pg_cell_time_or(const struct pg_result *result, int row, int at, int64_t none);
void pg_cell_code(const struct pg_result *result, int row, int at, char out[4]); /* at most 3 characters */

/* Rows out of the statements that select them. False: a state that does not exist. Text is
 * copied into the arena, or borrowed from the result if it is NULL. */
bool pg_row_read_seat(const struct pg_result *result, int row, int32_t index, struct seat_row *out);
bool pg_row_read_hold(const struct pg_result *result, int row, struct arena *arena, struct hold_row *out);
bool pg_row_read_checkout(const struct pg_result *result, int row, struct arena *arena,
                          struct checkout_row *out);
bool pg_row_read_ticket(const struct pg_result *result, int row, struct ticket_row *out);
bool pg_row_read_event(const struct pg_result *result, int row, struct arena *arena, struct event_row *out);
void pg_row_read_block(const struct pg_result *result, int row, struct arena *arena, struct block_row *out);
void pg_row_read_organization(const struct pg_result *result, int row, struct arena *arena,
                              struct org_row *out);
void pg_row_read_user(const struct pg_result *result, int row, struct user_row *out);

#endif
