/* SPDX-License-Identifier: Apache-2.0
 * What several subcommands make of their options in the same way. */
#ifndef HOLDFAST_CLI_SETUP_H
#define HOLDFAST_CLI_SETUP_H

#include "cli/files.h"
#include "cli/node.h"

/* False, with one sentence, for a store this build does not have. */
bool setup_check_store(const struct options *options, char *why, size_t why_size) MUST_CHECK;

/* The store's URL without its password, to be shown. */
enum { STORE_SHOWN_SIZE = 512 };
const char *setup_show_store(const char *url, char out[STORE_SHOWN_SIZE]);

/* --listen, --metrics-listen, --http-loops and --log-level. `metrics_listen` must live as long as the node. */
bool setup_node(const struct options *options, struct node_config *config, struct address *metrics_listen,
                char *why, size_t why_size) MUST_CHECK;

/* The secret of --jwt-secret-file, or the one beside the store, which is made if `create` or if the
 * store exists and has none yet. */
bool setup_secret(const struct options *options, bool create, struct secret *out, char *why,
                  size_t why_size) MUST_CHECK;
/* Logs that it was made, and warns when it is short or open to others. */
void setup_report_secret(const struct secret *secret);

/* ---- setup_order.c ---- */

/* --order alone; NULL for `local`. */
bool setup_order_url(const struct options *options, const char **out, char *why, size_t why_size) MUST_CHECK;
/* All of the order, after setup_node() and with the store; `node_name` must live as long as the node. */
enum { NODE_NAME_SIZE_MAX = 100 };
bool setup_order(const struct options *options, struct node_config *config,
                 char node_name[NODE_NAME_SIZE_MAX + 1], char *why, size_t why_size) MUST_CHECK;
/* Logs the node's name, and warns when the file of properties is open to others. */
void setup_report_order(const struct node_config *config);

/* The token to show to a running server: --token, --token-file, or one for an operator made with the
 * secret. */
bool setup_token(const struct options *options, char *out, size_t out_size, char *why,
                 size_t why_size) MUST_CHECK;

#endif
