/* SPDX-License-Identifier: Apache-2.0
 * Asks a running server something, one call at a time. For the command line's
 * few questions; load is bench_client.c's. */
#ifndef HOLDFAST_CLI_HTTP_CLIENT_H
#define HOLDFAST_CLI_HTTP_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct http_client;

/* Borrows both; `token` may be NULL. */
struct http_client *http_client_create(const char *base_url, const char *token);
void http_client_destroy(struct http_client *client); /* NULL is fine */

/* Calls base_url + path and gives back the answer's "data", a reference of the caller's. False:
 * one sentence, with the server's own words if it had any. */
bool http_client_call(struct http_client *client, const char *method, const char *path, json_t **data,
                      char *why, size_t why_size) MUST_CHECK;

#endif
