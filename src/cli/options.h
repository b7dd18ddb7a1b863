/* SPDX-License-Identifier: Apache-2.0
 * Every option of every subcommand, in one table. The same row makes the flag
 * `--name`, the variable `HOLDFAST_NAME`, the key `name` of a configuration
 * file, and the line that --help prints; docs/options.md is checked against it.
 *
 * Where an option is set more than once, a flag wins over the environment over
 * the file over the default. Main thread only. */
#ifndef HOLDFAST_CLI_OPTIONS_H
#define HOLDFAST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/check.h"

enum verb {
    VERB_SERVE,
    VERB_DEMO,
    VERB_MIGRATE,
    VERB_IMPORT,
    VERB_TOKEN,
    VERB_REGISTRY,
    VERB_VERIFY,
    VERB_DLQ,
    VERB_BENCH,
    VERB_COUNT
};

/* Which subcommands take an option. */
enum {
    FOR_SERVE = 1 << VERB_SERVE,
    FOR_DEMO = 1 << VERB_DEMO,
    FOR_TOKEN = 1 << VERB_TOKEN,
    FOR_REGISTRY = 1 << VERB_REGISTRY,
    FOR_VERIFY = 1 << VERB_VERIFY,
    FOR_DLQ = 1 << VERB_DLQ,
    FOR_BENCH = 1 << VERB_BENCH,
    FOR_STORE = 1 << VERB_SERVE | 1 << VERB_DEMO | 1 << VERB_MIGRATE | 1 << VERB_IMPORT | 1 << VERB_TOKEN |
                1 << VERB_REGISTRY | 1 << VERB_VERIFY | 1 << VERB_DLQ,
    FOR_CONFIG = FOR_STORE & ~FOR_DEMO,
};

/* EVERYWHERE: flag, environment and file. FLAG: the command line alone, because it
 * belongs to one call and not to an installation. */
enum option_scope { SCOPE_EVERYWHERE, SCOPE_FLAG };

/* X(identifier, "name", scope, subcommands, "VALUE" or NULL for a switch, default or NULL, "help") */
/* clang-format off */
#define OPTION_MAP(X)                                                                                                  \
    X(LISTEN,          "listen",          EVERYWHERE, FOR_SERVE | FOR_DEMO | FOR_REGISTRY, "ADDRESS:PORT", "127.0.0.1:8080", \
      "where to answer HTTP; port 0 takes any free one")                                                               \
    X(STORE,           "store",           EVERYWHERE, FOR_STORE, "URL", "sqlite:./holdfast.db",                        \
      "where everything is kept: sqlite:PATH, or postgres://... with every option of libpq")                          \
    X(WARM,            "warm",            EVERYWHERE, FOR_SERVE, "URL", "none",                                        \
      "Redis beside PostgreSQL: none, or redis://..., rediss://... or unix://..., and another after a comma to fail over to") \
    X(WARM_PREFIX,     "warm-prefix",     EVERYWHERE, FOR_SERVE, "WORD", "voelgoed",                                   \
      "what the keys in Redis begin with")                                                                             \
    X(ORDER,           "order",           EVERYWHERE, FOR_SERVE | FOR_DLQ, "URL", "local",                             \
      "where commands wait in order: local, or kafka://BROKER[:PORT][,BROKER...] with properties of librdkafka behind a ?") \
    X(ORDER_CONFIG,    "order-config",    EVERYWHERE, FOR_SERVE | FOR_DLQ, "FILE", NULL,                               \
      "file of `property=value` lines for librdkafka, for what is secret; wins over those of --order")                 \
    X(ORDER_PREFIX,    "order-prefix",    EVERYWHERE, FOR_SERVE | FOR_DLQ, "WORD", "holdfast",                         \
      "what the topics in Kafka, and the group of nodes, are named after; nodes of one store have the same")           \
    X(ORDER_PARTITIONS, "order-partitions", EVERYWHERE, FOR_SERVE, "COUNT", "100",                                     \
      "partitions of a topic of commands, 1 to 1000, the same on every node")                                          \
    X(ORDER_WAIT,      "order-wait",      EVERYWHERE, FOR_SERVE, "SECONDS", "2",                                        \
      "how long a caller waits for the node that decides, 1 to 60; then the answer is 202 and where to ask")           \
    X(ORDER_TOPICS,    "order-topics",    EVERYWHERE, FOR_SERVE, "WORD", "shared",                                     \
      "topics of commands in Kafka: shared, one for all events, or event, one for each")                               \
    X(ORDER_MAKE_TOPICS, "order-make-topics", EVERYWHERE, FOR_SERVE, "WORD", "on",                                     \
      "whether topics that are missing in Kafka are made: on or off")                                                  \
    X(ORDER_EVENTS,    "order-events",    EVERYWHERE, FOR_SERVE, "WORD", "on",                                         \
      "whether domain events also go to the Kafka topic holdfast.events: on or off")                                   \
    X(NODE_NAME,       "node-name",       EVERYWHERE, FOR_SERVE, "NAME", NULL,                                         \
      "this node's own name in Kafka, no other's; the host's name and the port if not given")                 \
    X(JWT_SECRET_FILE, "jwt-secret-file", EVERYWHERE, FOR_SERVE | FOR_TOKEN | FOR_REGISTRY | FOR_BENCH, "PATH", NULL,  \
      "secret that signs tokens (HS256); made beside the store on first start if not given")                           \
    X(JWT_PUBLIC_KEY,  "jwt-public-key",  EVERYWHERE, FOR_SERVE, "PATH", NULL,                                         \
      "PEM public key that checks tokens (RS256 or ES256) instead of a secret")                                        \
    X(PAYMENTS,        "payments",        EVERYWHERE, FOR_SERVE, "NAME", "simulated",                                  \
      "payment gateway: simulated, or stripe")                                                                         \
    X(WEBHOOK_URL,     "webhook-url",     EVERYWHERE, FOR_SERVE, "URL", NULL,                                          \
      "where domain events are delivered: http:// or https://")                                                        \
    X(WEBHOOK_SECRET_FILE, "webhook-secret-file", EVERYWHERE, FOR_SERVE, "PATH", NULL,                                 \
      "secret that signs delivered events; needed with --webhook-url")                                                 \
    X(WEBHOOK_TRIES,   "webhook-tries",   EVERYWHERE, FOR_SERVE, "COUNT", "8",                                         \
      "failures in a row before a domain event may be given up, 1 to 100")                                             \
    X(METRICS_LISTEN,  "metrics-listen",  EVERYWHERE, FOR_SERVE | FOR_DEMO, "ADDRESS:PORT", NULL,                      \
      "a second address that answers /metrics and /healthz, without a token")                                          \
    X(TRUSTED_PROXY,   "trusted-proxy",   EVERYWHERE, FOR_SERVE, "ADDRESS", NULL,                                      \
      "address of a proxy whose X-Forwarded-For is believed")                                                          \
    X(HTTP_LOOPS,      "http-loops",      EVERYWHERE, FOR_SERVE | FOR_DEMO, "COUNT", "1",                              \
      "threads that answer HTTP, 1 to 8")                                                                              \
    X(LOG_LEVEL,       "log-level",       EVERYWHERE, FOR_SERVE | FOR_DEMO, "LEVEL", "info",                           \
      "least to log on standard error: debug, info, warn or error")                                                    \
    X(CONFIG,          "config",          EVERYWHERE, FOR_CONFIG, "FILE", NULL,                                        \
      "file of `name = value` lines with the options of this page, # for comments")                                    \
    X(BUYERS,          "buyers",          FLAG, FOR_DEMO, "COUNT", "300",                                              \
      "simulated buyers, 0 to 5000")                                                                                   \
    X(ORG,             "org",             FLAG, FOR_TOKEN | FOR_REGISTRY | FOR_DLQ | FOR_BENCH, "UUID", NULL,          \
      "organization; an operator needs none")                                                                          \
    X(USER,            "user",            FLAG, FOR_TOKEN, "UUID", NULL,                                               \
      "user; a new one, told on standard error, if not given")                                                         \
    X(ROLE,            "role",            FLAG, FOR_TOKEN, "ROLE", "buyer",                                            \
      "buyer, agent, admin or operator")                                                                               \
    X(TTL,             "ttl",             FLAG, FOR_TOKEN, "SECONDS", "3600",                                          \
      "how long the token is good, up to ten years")                                                                   \
    X(EVENT,           "event",           FLAG, FOR_REGISTRY, "UUID", NULL,                                            \
      "this event alone, not all")                                                                                     \
    X(URL,             "url",             EVERYWHERE, FOR_REGISTRY | FOR_BENCH, "URL", NULL,                           \
      "a running server, such as http://127.0.0.1:8080")                                                               \
    X(TOKEN_FILE,      "token-file",      EVERYWHERE, FOR_REGISTRY | FOR_BENCH, "PATH", NULL,                          \
      "file with the token to show to that server")                                                                    \
    X(TOKEN,           "token",           EVERYWHERE, FOR_REGISTRY | FOR_BENCH, "JWT", NULL,                           \
      "the token itself; better in the environment or a file than on the command line")                                \
    X(CONNECTIONS,     "connections",     FLAG, FOR_BENCH, "COUNT", "256",                                             \
      "connections kept busy, 1 to 10000")                                                                             \
    X(SECONDS,         "seconds",         FLAG, FOR_BENCH, "SECONDS", "10",                                            \
      "how long to measure, 1 to 600")                                                                                 \
    X(RATE,            "rate",            FLAG, FOR_BENCH, "COUNT", "0",                                               \
      "requests due a second however long answers take, up to 1000000; 0: every connection is kept busy")              \
    X(SPREAD,          "spread",          FLAG, FOR_BENCH, NULL, NULL,                                                  \
      "ask for seats all over the house instead of row by row")                                                        \
    X(READERS,         "readers",         FLAG, FOR_BENCH, "COUNT", "0",                                               \
      "streams of the first event to read meanwhile, 0 to 10000")                                                      \
    X(LIMIT,           "limit",           FLAG, FOR_DLQ, "COUNT", NULL,                                                \
      "the newest so many alone, 1 to 1000000")                                                                        \
    X(JSON,            "json",            FLAG, FOR_REGISTRY | FOR_VERIFY | FOR_DLQ | FOR_BENCH, NULL, NULL,           \
      "print the result as JSON")
/* clang-format on */

enum option {
#define OPTION_ENUM(id, ...) OPTION_##id,
    OPTION_MAP(OPTION_ENUM)
#undef OPTION_ENUM
        OPTION_COUNT
};

struct option_row {
    const char *name;
    enum option_scope scope;
    unsigned verbs;    /* FOR_… */
    const char *value; /* NULL: a switch */
    const char *initial;
    const char *help;
};
extern const struct option_row option_rows[OPTION_COUNT];

enum option_source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_FLAG };

enum { ARGUMENT_COUNT_MAX = 4, OPTION_VALUE_SIZE_MAX = 8192, CONFIG_SIZE_MAX = 256 * 1024 };

struct options {
    struct arena arena;
    const char *values[OPTION_COUNT]; /* NULL: not set, and no default. A switch: "true" */
    enum option_source sources[OPTION_COUNT];
    const char *arguments[ARGUMENT_COUNT_MAX]; /* what is not an option */
    int argument_count;
    bool help; /* --help was asked for; nothing else was checked */
};

/* Reads flags, environment and file. `get_environment` is getenv(), or a test's own. False: `why`
 * says in one sentence what is wrong. options_deinit() is due in either case. */
bool options_parse(struct options *options, enum verb verb, int count, char **words,
                   char *(*get_environment)(const char *name), char *why, size_t why_size) MUST_CHECK;
void options_deinit(struct options *options);

/* HOLDFAST_JWT_SECRET_FILE of jwt-secret-file. */
void option_variable(enum option option, char *out, size_t out_size);
/* Where a value came from, for messages: "--listen", "HOLDFAST_LISTEN" or "listen in FILE". */
void options_origin(const struct options *options, enum option option, char *out, size_t out_size);

static inline bool options_given(const struct options *options, enum option option)
{
    return options->sources[option] != FROM_DEFAULT;
}

/* A whole number in range, or false and one sentence. */
bool options_integer(const struct options *options, enum option option, int64_t least, int64_t most,
                     int64_t *out, char *why, size_t why_size) MUST_CHECK;

/* The name nearest to a mistyped one, or NULL if none is near. */
const char *options_nearest(const char *word, const char *const *names, size_t count);

/* ---- config.c ---- */

/* Reads `name = value` lines into options that are not set yet. */
bool config_read(struct options *options, const char *path, char *why, size_t why_size) MUST_CHECK;

#endif
