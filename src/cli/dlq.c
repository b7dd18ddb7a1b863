/* SPDX-License-Identifier: Apache-2.0
 * `holdfast dlq list`: the domain events that were given up, from the store
 * itself, page by page. Reads only, so it may run beside a server. The commands
 * that were given up are dlq_commands.c's. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "cli/setup.h"
#include "store/store.h"

enum { LIMIT_MAX = 1000000 };

struct page {
    struct store_query query;
    pthread_mutex_t lock; /* guards `done`: the answer comes on the store's thread */
    pthread_cond_t changed;
    bool done;
};

static void on_page(struct store_query *query)
{
    struct page *page = query->context;

    pthread_mutex_lock(&page->lock);
    page->done = true;
    pthread_cond_signal(&page->changed);
    pthread_mutex_unlock(&page->lock);
}

static enum err read_page(struct store *store, const struct uuid *org_id, int64_t after, int64_t limit,
                          struct page *page)
{
    page->query = (struct store_query){
        .kind = QUERY_DEAD_LETTERS,
        .org_id = *org_id,
        .after = after,
        .limit = (int32_t)(limit < PAGE_COUNT_MAX ? limit : PAGE_COUNT_MAX),
        .on_done = on_page,
        .context = page,
    };
    list_init(&page->query.node);
    buf_init(&page->query.rows);
    page->done = false;
    enum err err = store_query(store, &page->query);
    if (err != ERR_OK)
        return err;
    pthread_mutex_lock(&page->lock);
    while (!page->done)
        pthread_cond_wait(&page->changed, &page->lock);
    pthread_mutex_unlock(&page->lock);
    return page->query.err;
}

static const char *text_of(const json_t *letter, const char *key)
{
    const char *text = json_string_value(json_object_get(letter, key));
    return text != NULL ? text : "-";
}

static void print_letter(const json_t *letter)
{
    printf("%-20s  %-17s  %5lld  %-36s  %-36s  %s\n", text_of(letter, "created_at"), text_of(letter, "type"),
           (long long)json_integer_value(json_object_get(letter, "tries")),
           text_of(letter, "organization_id"), text_of(letter, "id"), text_of(letter, "reason"));
}

/* Prints a page and says where the next one begins; 0: nowhere. */
static enum err list_page(struct store *store, const struct uuid *org_id, bool as_json, int64_t limit,
                          int64_t *after, size_t *count)
{
    struct page page = {.done = false};
    json_t *letter;
    size_t i;

    pthread_mutex_init(&page.lock, NULL);
    pthread_cond_init(&page.changed, NULL);
    enum err err = read_page(store, org_id, *after, limit - (int64_t)*count, &page);
    json_t *letters = err == ERR_OK && page.query.rows.size > 0
                          ? json_loadb(page.query.rows.data, page.query.rows.size, 0, NULL)
                          : NULL;
    json_array_foreach(letters, i, letter)
    {
        if (as_json) {
            fputs(*count > 0 ? ",\n" : "", stdout);
            json_dumpf(letter, stdout, JSON_INDENT(2));
        } else {
            if (*count == 0)
                printf("%-20s  %-17s  %5s  %-36s  %-36s  %s\n", "given up", "type", "tries", "organization",
                       "event", "reason");
            print_letter(letter);
        }
        ++*count;
    }
    *after = page.query.next;
    json_decref(letters);
    buf_deinit(&page.query.rows);
    pthread_cond_destroy(&page.changed);
    pthread_mutex_destroy(&page.lock);
    return err;
}

static int list_run(const struct options *options)
{
    struct store_options store_options = {.read_only = true};
    bool as_json = options->values[OPTION_JSON] != NULL;
    struct store *store = NULL;
    struct uuid org_id;
    int64_t after = 0, limit = INT64_MAX;
    size_t count = 0;
    char why[1024] = "";

    if (!options_uuid(options, OPTION_ORG, &org_id, why, sizeof why) ||
        (options->values[OPTION_LIMIT] != NULL &&
         !options_integer(options, OPTION_LIMIT, 1, LIMIT_MAX, &limit, why, sizeof why)))
        return cli_fail_usage(VERB_DLQ, "%s", why);
    if (!setup_check_store(options, why, sizeof why))
        return cli_fail("%s", why);
    enum err err = store_open(options->values[OPTION_STORE], &store_options, &store, why, sizeof why);
    if (err != ERR_OK)
        return cli_fail("%s", why[0] != '\0' ? why : err_text(err));
    fputs(as_json ? "[" : "", stdout);
    do
        err = list_page(store, &org_id, as_json, limit, &after, &count);
    while (err == ERR_OK && after != 0 && (int64_t)count < limit);
    store_close(store);
    if (err != ERR_OK)
        return cli_fail("the dead letters could not be read: %s", err_text(err));
    if (as_json)
        printf("]\n");
    else
        printf("%zu dead letter%s\n", count, count == 1 ? "" : "s");
    return EXIT_DONE;
}

int dlq_run(const struct options *options)
{
    bool order_is_asked = options->sources[OPTION_ORDER] == FROM_FLAG;
    const char *word = options->argument_count > 0 ? options->arguments[0] : order_is_asked ? "commands" : "";

    if (options->argument_count <= 1 && strcmp(word, "commands") == 0)
        return dlq_commands_run(options);
    if (options->argument_count != 1 || strcmp(word, "list") != 0)
        return cli_fail_usage(VERB_DLQ, "dlq needs one word: list or commands");
    if (order_is_asked)
        return cli_fail_usage(VERB_DLQ,
                              "`dlq list` shows domain events of the store; `dlq commands` takes --order");
    return list_run(options);
}
