/* SPDX-License-Identifier: Apache-2.0
 * A stand-in for http/ and order/: runs one request through the real table of
 * routes, admission and handler, without sockets, and keeps the answer. */
#ifndef HOLDFAST_TEST_FAKE_HTTP_H
#define HOLDFAST_TEST_FAKE_HTTP_H

#include <jansson.h>
#include <stdbool.h>

#include "api/api_int.h"

enum { FAKE_FIELD_COUNT_MAX = 8 };

struct fake_field {
    const char *name;
    const char *value;
};

struct http_request { /* what a test fills in, then what it reads */
    enum http_method method;
    const char *path;
    struct fake_field headers[FAKE_FIELD_COUNT_MAX];
    struct fake_field query[FAKE_FIELD_COUNT_MAX];
    const char *body;
    bool is_remote;
    struct api *api;

    const struct http_route *route;
    struct fake_field params[FAKE_FIELD_COUNT_MAX];
    struct arena arena;
    void *user;
    void (*on_resume)(struct http_request *request);
    bool resumed;

    int status; /* 0: not replied */
    char *text; /* of the answer, NUL ended */
    size_t text_size;
    struct fake_field reply_headers[FAKE_FIELD_COUNT_MAX];
};

/* Runs it up to its reply, or to the command it submits. */
void fake_begin(struct http_request *request);
/* Answers the command it submitted. */
void fake_answer(struct http_request *request, struct result result);
void fake_end(struct http_request *request);

const char *fake_reply_header(const struct http_request *request, const char *name);
/* error.code of the answer, and error.details.field, or "". */
const char *fake_error(const struct http_request *request);
const char *fake_error_field(const struct http_request *request);
json_t *fake_json(const struct http_request *request); /* the answer; ended by fake_end() */

/* The last command submitted, or NULL; users registered in the background so far. */
extern struct command *fake_command;
extern int fake_user_seen_count;
extern enum err fake_submit_err; /* what order_submit() answers */

#endif
