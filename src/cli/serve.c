/* SPDX-License-Identifier: Apache-2.0
 * `holdfast serve`: options made into a node, one line when it is ready, then
 * waiting for a signal. Whatever keeps it from starting is one sentence on
 * standard error and a non-zero status; nothing has been answered by then.
 *
 * What this build has no backend for is refused by name, so that nobody
 * believes to run with a tier that is not there. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/deliver.h"
#include "cli/files.h"
#include "cli/node.h"
#include "cli/setup.h"
#include "warm/warm.h"

static bool check_backends(const struct options *options, char *why, size_t why_size)
{
    const char *payments = options->values[OPTION_PAYMENTS];

    if (strcmp(payments, "simulated") == 0)
        return setup_check_store(options, why, why_size);
    char origin[512];
    options_origin(options, OPTION_PAYMENTS, origin, sizeof origin);
    snprintf(why, why_size,
             "%s: this build does not have that payment gateway ('%.64s'); it takes 'simulated'", origin,
             payments);
    return false;
}

static bool check_proxy(const struct options *options, char *why, size_t why_size)
{
    const char *proxy = options->values[OPTION_TRUSTED_PROXY];
    unsigned char binary[sizeof(struct in6_addr)];

    if (proxy == NULL || inet_pton(AF_INET, proxy, binary) == 1 || inet_pton(AF_INET6, proxy, binary) == 1)
        return true;
    char origin[512];
    options_origin(options, OPTION_TRUSTED_PROXY, origin, sizeof origin);
    snprintf(why, why_size, "%s must be a numeric address, not '%.64s'", origin, proxy);
    return false;
}

static bool check_warm(const struct options *options, char *why, size_t why_size)
{
    const struct warm_config config = {.url = options->values[OPTION_WARM],
                                       .prefix = options->values[OPTION_WARM_PREFIX]};
    return strcmp(config.url, "none") == 0 || warm_check(&config, why, why_size) == ERR_OK;
}

/* The key that checks tokens: a public one, a given secret, or the store's own. */
static bool read_key(const struct options *options, struct secret *secret, struct buf *public_key, char *why,
                     size_t why_size)
{
    enum { PUBLIC_KEY_SIZE_MAX = 64 * 1024 };
    const char *key_path = options->values[OPTION_JWT_PUBLIC_KEY];

    if (key_path == NULL)
        return setup_secret(options, true, secret, why, why_size);
    if (options->values[OPTION_JWT_SECRET_FILE] != NULL) {
        snprintf(why, why_size, "give either jwt-secret-file or jwt-public-key, not both");
        return false;
    }
    if (!file_read(key_path, PUBLIC_KEY_SIZE_MAX, public_key, why, why_size))
        return false;
    if (public_key->size == 0)
        snprintf(why, why_size, "the public key file %s is empty", key_path);
    return public_key->size > 0;
}

static void print_ready(const struct node *node, const struct node_config *config)
{
    struct address real = config->listen;
    char url[128], store[STORE_SHOWN_SIZE];

    real.port = node_port(node);
    address_format_url(&real, url, sizeof url);
    printf("holdfast: listening on %s (store %s)\n", url, setup_show_store(config->store_url, store));
    fflush(stdout);
    log_write(LOG_INFO, "ready", "\"url\":\"%s\",\"metrics_port\":%u", url,
              (unsigned)node_metrics_port(node));
}

int serve_run(const struct options *options)
{
    struct address metrics_listen;
    struct node_config config = {.store_url = options->values[OPTION_STORE]};
    struct deliver_config webhook = {.url = NULL};
    struct secret secret = {.size = 0};
    struct buf public_key;
    struct node *node = NULL;
    char why[1024], node_name[NODE_NAME_SIZE_MAX + 1];
    int status = EXIT_FAILED;

    buf_init(&public_key);
    if (options->argument_count > 0)
        return cli_fail_usage(VERB_SERVE, "serve takes no argument '%.64s'", options->arguments[0]);
    if (!check_backends(options, why, sizeof why) || !check_proxy(options, why, sizeof why) ||
        !check_warm(options, why, sizeof why) ||
        !setup_node(options, &config, &metrics_listen, why, sizeof why) ||
        !setup_order(options, &config, node_name, why, sizeof why))
        return cli_fail_usage(VERB_SERVE, "%s", why);
    if (!deliver_read(options, &webhook, why, sizeof why) ||
        !read_key(options, &secret, &public_key, why, sizeof why))
        goto failed;
    config.trusted_proxy = options->values[OPTION_TRUSTED_PROXY];
    if (strcmp(options->values[OPTION_WARM], "none") != 0)
        config.warm_url = options->values[OPTION_WARM];
    config.warm_prefix = options->values[OPTION_WARM_PREFIX];
    config.webhook = webhook.url != NULL ? &webhook : NULL;
    config.secret = secret.bytes;
    config.secret_size = secret.size;
    if (public_key.size > 0) {
        config.public_key = public_key.data;
        config.public_key_size = public_key.size;
        config.public_key_path = options->values[OPTION_JWT_PUBLIC_KEY];
    }
    signals_block();
    if (node_start(&config, &node, why, sizeof why) != ERR_OK)
        goto failed;
    print_ready(node, &config);
    if (secret.size > 0)
        setup_report_secret(&secret);
    if (webhook.secret.size > 0)
        setup_report_secret(&webhook.secret);
    setup_report_order(&config);
    signals_wait();
    log_write(LOG_INFO, "draining", NULL);
    bool lost = node_is_lost(node);
    node_stop(node);
    log_write(LOG_INFO, "stopped", NULL);
    status = lost ? EXIT_FAILED : EXIT_DONE;
    snprintf(why, sizeof why, "fell behind the change feed; start it again");
failed:
    if (status != EXIT_DONE)
        cli_fail("%s", why);
    secret_wipe(&secret);
    secret_wipe(&webhook.secret);
    buf_deinit(&public_key);
    return status;
}
