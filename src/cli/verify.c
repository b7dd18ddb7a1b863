/* SPDX-License-Identifier: Apache-2.0
 * `holdfast verify`: the store walks itself, this prints each claim with ok or
 * BROKEN and one example. Reads only, so it may run beside a server. The exit
 * status is 1 if a claim is broken, and also if the walk could not be finished:
 * what was not looked at is not proved. */
#include <stdio.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "cli/setup.h"
#include "store/store.h"

struct verify_report {
    bool as_json;
    struct buf checks; /* JSON objects, with commas */
    struct jsonw json;
    int claim_count;
    int broken_count;
};

static void on_check(void *context, const char *claim, int64_t broken, const char *example)
{
    struct verify_report *report = context;

    report->claim_count++;
    report->broken_count += broken > 0;
    if (report->as_json) {
        jsonw_object_open(&report->json);
        jsonw_key_text(&report->json, "claim", claim);
        jsonw_key_bool(&report->json, "ok", broken == 0);
        jsonw_key_int(&report->json, "broken", broken);
        jsonw_key_text(&report->json, "example", broken > 0 ? example : NULL);
        jsonw_object_close(&report->json);
    } else if (broken == 0) {
        printf("ok      %s\n", claim);
    } else {
        printf("BROKEN  %s (%lld row%s, such as %s)\n", claim, (long long)broken, broken == 1 ? "" : "s",
               example != NULL ? example : "none shown");
    }
}

static void print_summary(struct verify_report *report, const char *store_url, int64_t taken_us)
{
    if (!report->as_json) {
        printf("%s: %d claims checked in %.1f s, %d broken\n", store_url, report->claim_count,
               (double)taken_us / 1e6, report->broken_count);
        return;
    }
    struct buf out;
    struct jsonw json;

    buf_init(&out);
    jsonw_begin(&json, &out);
    jsonw_object_open(&json);
    jsonw_key_text(&json, "store", store_url);
    jsonw_key_bool(&json, "ok", report->broken_count == 0);
    jsonw_key_int(&json, "claims", report->claim_count);
    jsonw_key_int(&json, "broken", report->broken_count);
    jsonw_key(&json, "checks");
    jsonw_raw(&json, report->checks.data, report->checks.size);
    jsonw_object_close(&json);
    puts(buf_text(&out));
    buf_deinit(&out);
}

int verify_run(const struct options *options)
{
    struct verify_report report = {.as_json = options->values[OPTION_JSON] != NULL};
    struct store_options store_options = {.read_only = true};
    const char *url = options->values[OPTION_STORE];
    struct store *store = NULL;
    int64_t begun_us = clock_monotonic_us();
    char why[1024] = "", shown[STORE_SHOWN_SIZE];

    if (options->argument_count > 0)
        return cli_fail_usage(VERB_VERIFY, "verify takes no argument '%.64s'", options->arguments[0]);
    if (!setup_check_store(options, why, sizeof why))
        return cli_fail("%s", why);
    enum err err = store_open(url, &store_options, &store, why, sizeof why);
    if (err != ERR_OK)
        return cli_fail("%s", why[0] != '\0' ? why : err_text(err));
    buf_init(&report.checks);
    jsonw_begin(&report.json, &report.checks);
    jsonw_array_open(&report.json);
    err = store_verify(store, on_check, &report);
    jsonw_array_close(&report.json);
    store_close(store);
    if (err == ERR_OK)
        print_summary(&report, setup_show_store(url, shown), clock_monotonic_us() - begun_us);
    buf_deinit(&report.checks);
    if (err != ERR_OK)
        return cli_fail("the store could not be read to the end, so nothing is proved: %s", err_text(err));
    return report.broken_count == 0 ? EXIT_DONE : EXIT_FAILED;
}
