/* SPDX-License-Identifier: Apache-2.0
 * Connections to PostgreSQL: opening them with checks, sending statements in
 * pipelines, waiting for answers up to a deadline, and the one place where the
 * server's errors are given a meaning.
 *
 * Invariants: (1) the socket never blocks: every wait is a poll() that ends at
 * the deadline, so a server that hangs costs a bounded time. (2) After PG_LOST
 * the connection is not used again, only closed. (3) The server's settings are
 * looked at on every connection, because it may have been restarted with
 * others. (4) Whatever the URL says about hosts, TLS, users and timeouts wins
 * over our defaults; the encoding is always UTF-8.
 *
 * Runs on the thread that owns the connection. It decides nothing about batches. */
#include "store/postgres/connection.h"

#include <errno.h>
#include <libpq-fe.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/embed.h"
#include "base/limits.h"

extern const struct embed postgres_sql[];

enum {
    SERVER_VERSION_MIN = 130000,
    OPEN_MS_MAX = 5000 * PATIENCE, /* settings and statements, once it is connected */
};

/* Division by zero: how statements that update say that they found too few rows. */
#define STATE_ROW_MISSING "22012"

static const char *const statement_names[PG_STATEMENT_COUNT] = {
#define STATEMENT_NAME(id, file, use) file,
    PG_STATEMENT_MAP(STATEMENT_NAME)
#undef STATEMENT_NAME
};

static const unsigned statement_uses[PG_STATEMENT_COUNT] = {
#define STATEMENT_USE(id, file, use) use,
    PG_STATEMENT_MAP(STATEMENT_USE)
#undef STATEMENT_USE
};

static const struct embed *sql_file(const char *name)
{
    char file[64];
    snprintf(file, sizeof(file), "%s.sql", name);
    const struct embed *found = embed_find(postgres_sql, file);
    CHECK(found != NULL);
    return found;
}

/* ---- What errors mean ---- */

/* libpq's messages have several lines; ours have one, without its full stop. */
static void why_set(char *why, size_t why_size, const char *text)
{
    size_t length = 0;
    for (; *text != '\0' && length + 1 < why_size; text++) {
        bool space = *text == '\n' || *text == '\t' || *text == ' ';
        if (!space || (length > 0 && why[length - 1] != ' '))
            why[length++] = space ? ' ' : *text;
    }
    while (length > 0 && strchr(" .?", why[length - 1]) != NULL)
        length--;
    why[length] = '\0';
}

static enum pg_trouble state_trouble(const char *state)
{
    static const struct {
        const char *prefix;
        enum pg_trouble trouble;
    } meanings[] = {
        {"22", PG_BAD_DATA}, /* data exception */
        {"23", PG_BAD_DATA}, /* constraint */
        {"21", PG_BAD_DATA}, /* the same row twice */
        {"54", PG_BAD_DATA}, /* too large for an index */
        {"40001", PG_AGAIN}, /* serialization */
        {"40P01", PG_AGAIN}, /* deadlock */
        {"55P03", PG_BUSY},  /* lock_timeout */
        {"25006", PG_LOST},  /* read-only: another server of the URL may be the one that writes */
        {"57P", PG_LOST},    /* shutdown, crash of another session, starting up */
        {"08", PG_LOST},     /* connection */
        {"26000", PG_LOST},  /* a pooler gave us a session that lacks our statements */
        {"42", PG_OURS},     /* wrong statement, missing right or table */
        {"0A000", PG_LOST},  /* a cached plan no longer fits a changed table: prepare again */
    };
    enum pg_trouble trouble = PG_OUTSIDE;
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        if (strncmp(state, meanings[i].prefix, strlen(meanings[i].prefix)) == 0)
            trouble = meanings[i].trouble;
    }
    return trouble;
}

static enum pg_trouble lost(struct pg_connection *connection, const char *why)
{
    why_set(connection->why, sizeof(connection->why), why);
    return PG_LOST;
}

static enum pg_trouble result_trouble(struct pg_connection *connection, const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_SINGLE_TUPLE)
        return PG_NONE;
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state != NULL && strcmp(state, STATE_ROW_MISSING) == 0)
        message = "a row to be written was not there";
    why_set(connection->why, sizeof(connection->why),
            message != NULL ? message : PQresultErrorMessage(result));
    if (PQstatus(connection->link) != CONNECTION_OK || state == NULL)
        return PG_LOST;
    return state_trouble(state);
}

enum err pg_err(enum pg_trouble trouble)
{
    switch (trouble) {
    case PG_NONE:
        return ERR_OK;
    case PG_BAD_DATA:
    case PG_OURS:
        return ERR_INTERNAL;
    case PG_AGAIN:
    case PG_BUSY:
    case PG_OUTSIDE:
    case PG_LOST:
        break;
    }
    return ERR_STORE_UNAVAILABLE;
}

/* ---- Waiting ---- */

/* Sends and reads until a result can be taken without waiting. */
static bool link_wait(struct pg_connection *connection)
{
    for (;;) {
        int unsent = PQflush(connection->link);
        if (unsent < 0)
            return false;
        if (PQisBusy(connection->link) == 0)
            return true;
        /* What OpenSSL has read ahead makes no socket readable. */
        SSL *ssl = PQsslStruct(connection->link, "OpenSSL");
        if (ssl != NULL && SSL_pending(ssl) > 0) {
            if (PQconsumeInput(connection->link) == 0)
                return false;
            continue;
        }
        int wait_ms = -1;
        if (connection->deadline_us != 0) {
            int64_t left_us = connection->deadline_us - clock_monotonic_us();
            wait_ms = left_us > 0 ? (int)(left_us / 1000) + 1 : 0;
        }
        struct pollfd fd = {.fd = PQsocket(connection->link),
                            .events = (short)(POLLIN | (unsent > 0 ? POLLOUT : 0))};
        int ready = poll(&fd, 1, wait_ms);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return false;
        if (ready > 0 && (fd.revents & ~POLLOUT) != 0 && PQconsumeInput(connection->link) == 0)
            return false;
    }
}

/* False: lost, or not there in time. */
static bool link_next(struct pg_connection *connection, PGresult **result)
{
    if (!link_wait(connection))
        return false;
    *result = PQgetResult(connection->link);
    return true;
}

/* ---- Opening ---- */

static PGconn *link_open(const char *url)
{
    /* What stands before dbname yields to the URL, what stands after it wins. */
    static const char *const keys[] = {"connect_timeout",
                                       "tcp_user_timeout",
                                       "keepalives_idle",
                                       "fallback_application_name",
                                       "dbname",
                                       "client_encoding",
                                       NULL};
    const char *values[] = {"3", "5000", "10", "holdfast", url, "UTF8", NULL};
    return PQconnectdbParams(keys, values, 1);
}

/* The answer to the one thing that was sent; NULL: none came in time. */
static PGresult *answer_take(struct pg_connection *connection, int sent)
{
    PGresult *result = NULL, *end = NULL;
    if (sent != 1 || !link_next(connection, &result))
        return NULL;
    if (result != NULL && link_next(connection, &end))
        PQclear(end);
    return result;
}

static void open_why(const struct pg_connection *connection, char *why, size_t why_size)
{
    const char *text = PQerrorMessage(connection->link);
    why_set(why, why_size, text[0] != '\0' ? text : "no answer came in time");
}

/* Is this a server that keeps what it confirms? */
static bool server_check(struct pg_connection *connection, struct pg_server *server, char *why,
                         size_t why_size)
{
    int64_t before_us = clock_monotonic_us();
    PGresult *result = answer_take(connection, PQsendQuery(connection->link, sql_file("server")->data));
    int64_t after_us = clock_monotonic_us();
    bool good = false;
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        char text[PG_WHY_SIZE];
        open_why(connection, text, sizeof(text));
        snprintf(why, why_size, "The database cannot be asked about its settings: %.300s.", text);
    } else if (strcmp(PQgetvalue(result, 0, 0), "on") != 0) {
        snprintf(why, why_size, "PostgreSQL runs with fsync=off and would lose what it has confirmed.");
    } else if (strcmp(PQgetvalue(result, 0, 1), "off") == 0) {
        snprintf(why, why_size,
                 "PostgreSQL runs with synchronous_commit=off and would lose what it has confirmed.");
    } else if (strcmp(PQgetvalue(result, 0, 2), "UTF8") != 0) {
        snprintf(why, why_size, "The database has the encoding %.40s and must have UTF8.",
                 PQgetvalue(result, 0, 2));
    } else if (atoi(PQgetvalue(result, 0, 3)) < SERVER_VERSION_MIN) {
        snprintf(why, why_size, "PostgreSQL %d is too old; %d or later is needed.",
                 atoi(PQgetvalue(result, 0, 3)) / 10000, SERVER_VERSION_MIN / 10000);
    } else {
        good = true;
    }
    if (good && server != NULL)
        server->utc_minus_monotonic_ms =
            atoll(PQgetvalue(result, 0, 4)) - (before_us + (after_us - before_us) / 2) / 1000;
    PQclear(result);
    return good;
}

static bool session_set(struct pg_connection *connection, unsigned use, char *why, size_t why_size)
{
    const char *name = (use & PG_USE_WRITE) != 0    ? "session_write"
                       : (use & PG_USE_LOOKUP) != 0 ? "session_lookup"
                       : (use & PG_USE_FOLLOW) != 0 ? "session_lookup"
                       : (use & PG_USE_QUERY) != 0  ? "session_query"
                                                    : "session_load";
    PGresult *result = answer_take(connection, PQsendQuery(connection->link, sql_file(name)->data));
    bool good = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (!good) {
        char text[PG_WHY_SIZE];
        open_why(connection, text, sizeof(text));
        snprintf(why, why_size, "The database does not take the session's settings: %.300s.", text);
    }
    PQclear(result);
    return good;
}

static bool statements_prepare(struct pg_connection *connection, unsigned use, char *why, size_t why_size)
{
    bool good = true;
    for (int i = 0; i < PG_STATEMENT_COUNT && good; i++) {
        if ((statement_uses[i] & use) == 0)
            continue;
        PGresult *result =
            answer_take(connection, PQsendPrepare(connection->link, statement_names[i],
                                                  sql_file(statement_names[i])->data, 0, NULL));
        good = PQresultStatus(result) == PGRES_COMMAND_OK;
        if (!good) {
            char text[PG_WHY_SIZE];
            open_why(connection, text, sizeof(text));
            snprintf(why, why_size, "The database does not take the statement %s: %.300s.",
                     statement_names[i], text);
        }
        PQclear(result);
    }
    return good;
}

/* Notices ("constraint already exists") are nobody's news here. */
static void on_notice(void *context, const char *message)
{
    (void)context;
    (void)message;
}

enum err pg_connection_open(struct pg_connection *connection, const char *url, unsigned use,
                            struct pg_server *server, char *why, size_t why_size)
{
    memset(connection, 0, sizeof(*connection));
    PGconn *link = link_open(url);
    CHECK(link != NULL);
    connection->link = link;
    if (PQstatus(link) != CONNECTION_OK) {
        char text[PG_WHY_SIZE];
        why_set(text, sizeof(text), PQerrorMessage(link));
        snprintf(why, why_size, "PostgreSQL cannot be reached: %.400s.", text);
        goto failed;
    }
    PQsetNoticeProcessor(link, on_notice, NULL);
    connection->deadline_us = clock_monotonic_us() + (int64_t)OPEN_MS_MAX * 1000;
    bool bare = (use & PG_USE_BARE) != 0;
    if (PQsetnonblocking(link, 1) != 0 || !server_check(connection, server, why, why_size) ||
        !session_set(connection, use, why, why_size) || !statements_prepare(connection, use, why, why_size))
        goto failed;
    if (bare ? PQsetnonblocking(link, 0) != 0 : PQenterPipelineMode(link) != 1) {
        snprintf(why, why_size, "The connection to PostgreSQL cannot be used in pipelines.");
        goto failed;
    }
    connection->deadline_us = 0;
    return ERR_OK;

failed:
    pg_connection_close(connection);
    return ERR_STORE_OPEN;
}

void pg_connection_close(struct pg_connection *connection)
{
    if (connection->link != NULL)
        PQfinish(connection->link);
    connection->link = NULL;
    connection->queue_count = 0;
    connection->broken = false;
}

/* ---- Pipelines ---- */

int pg_send(struct pg_connection *connection, enum pg_statement statement, struct pg_params *params)
{
    const char *values[PG_PARAM_COUNT_MAX];
    int lengths[PG_PARAM_COUNT_MAX], formats[PG_PARAM_COUNT_MAX];
    int count = params != NULL ? params->count : 0;
    CHECK(connection->queue_count < PG_PIPELINE_COUNT_MAX);
    bool good = params == NULL || pg_params_finish(params, values, lengths, formats);
    good = good && PQsendQueryPrepared(connection->link, statement_names[statement], count, values, lengths,
                                       formats, 1) == 1;
    if (!good)
        connection->broken = true;
    return connection->queue_count++;
}

static enum pg_trouble no_answer(struct pg_connection *connection)
{
    if (PQstatus(connection->link) != CONNECTION_OK)
        return lost(connection, PQerrorMessage(connection->link));
    return lost(connection, "no answer came in time");
}

/* Of one statement: its result, then the NULL that ends it. */
static enum pg_trouble reply_read_one(struct pg_connection *connection, struct pg_reply *reply, int number)
{
    PGresult *result = NULL, *end = NULL;
    if (!link_next(connection, &result))
        return no_answer(connection);
    if (result == NULL)
        return lost(connection, PQerrorMessage(connection->link));
    reply->results[number] = result;
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED)
        return link_next(connection, &end) ? PG_NONE : no_answer(connection);
    enum pg_trouble trouble = result_trouble(connection, result);
    if (PQstatus(connection->link) != CONNECTION_OK)
        return PG_LOST;
    if (!link_next(connection, &end))
        return no_answer(connection);
    PQclear(end);
    return trouble;
}

enum pg_trouble pg_receive(struct pg_connection *connection, struct pg_reply *reply)
{
    int count = connection->queue_count;
    enum pg_trouble first = PG_NONE;
    memset(reply, 0, sizeof(*reply));
    reply->count = count;
    reply->failed = -1;
    connection->queue_count = 0;
    if (count == 0)
        return PG_NONE;
    if (connection->broken || PQpipelineSync(connection->link) != 1) {
        reply->failed = 0;
        return lost(connection, PQerrorMessage(connection->link));
    }
    for (int i = 0; i < count; i++) {
        enum pg_trouble trouble = reply_read_one(connection, reply, i);
        if (trouble != PG_NONE && first == PG_NONE) {
            first = trouble;
            reply->failed = i;
        }
        if (trouble == PG_LOST)
            return PG_LOST;
    }
    PGresult *sync = NULL;
    if (!link_next(connection, &sync))
        return no_answer(connection);
    bool good = PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
    PQclear(sync);
    return good ? first : lost(connection, PQerrorMessage(connection->link));
}

void pg_reply_clear(struct pg_reply *reply)
{
    for (int i = 0; i < reply->count; i++) {
        PQclear(reply->results[i]);
        reply->results[i] = NULL;
    }
    reply->count = 0;
}

enum err pg_each(struct pg_connection *connection, enum pg_statement statement, struct pg_params *params,
                 enum err (*on_row)(void *context, struct pg_result *result), void *context)
{
    enum pg_trouble trouble = PG_NONE;
    enum err err = ERR_OK;
    (void)pg_send(connection, statement, params);
    connection->queue_count = 0;
    if (connection->broken || PQpipelineSync(connection->link) != 1 ||
        PQsetSingleRowMode(connection->link) != 1)
        return pg_err(lost(connection, PQerrorMessage(connection->link)));
    for (bool synced = false; !synced;) {
        PGresult *result = NULL;
        if (!link_next(connection, &result))
            return pg_err(no_answer(connection));
        synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        bool row = PQresultStatus(result) == PGRES_SINGLE_TUPLE;
        if (result != NULL && !synced && !row && trouble == PG_NONE)
            trouble = result_trouble(connection, result);
        if (row && err == ERR_OK)
            err = on_row(context, result);
        PQclear(result);
        if (PQstatus(connection->link) != CONNECTION_OK)
            return ERR_STORE_UNAVAILABLE;
    }
    return err != ERR_OK ? err : pg_err(trouble);
}

struct pg_result *pg_execute(struct pg_connection *connection, const char *text)
{
    PGresult *result = PQexec(connection->link, text);
    if (result_trouble(connection, result) == PG_NONE)
        return result;
    PQclear(result);
    return NULL;
}
