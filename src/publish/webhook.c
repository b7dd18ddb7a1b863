/* SPDX-License-Identifier: Apache-2.0
 * POST by libcurl's multi interface: one request at a time on a connection that
 * is kept, driven by the deliverer's thread, which has a lease to renew
 * meanwhile. Redirects are not followed: a body that is signed for one place is
 * not carried to another. TLS is verified. No proxy from the environment.
 *
 * Deliverer's thread, but for wake(). */
#include "publish/webhook.h"

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct webhook {
    struct delivery_channel channel;
    CURLM *multi;
    CURL *easy;
    bool sending;
    int32_t count; /* of events in the request */
    struct curl_slist *headers;
    struct buf body;
    size_t answer_size;
    char error[CURL_ERROR_SIZE];
    char *url;
    unsigned char *secret;
    size_t secret_size;
};

bool webhook_url_check(const char *url, char *why, size_t why_size)
{
    CURLU *parsed = curl_url();
    char *scheme = NULL, *host = NULL, *user = NULL;
    bool good = false;

    CHECK(parsed != NULL);
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parsed, CURLUPART_HOST, &host, 0) != CURLUE_OK || host[0] == '\0')
        snprintf(why, why_size, "'%.200s' is not a URL", url);
    else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        snprintf(why, why_size, "a webhook is http:// or https://, not %.32s://", scheme);
    else if (curl_url_get(parsed, CURLUPART_USER, &user, 0) == CURLUE_OK)
        snprintf(why, why_size, "a webhook's URL has no user or password: requests are signed instead");
    else
        good = true;
    curl_free(scheme);
    curl_free(host);
    curl_free(user);
    curl_url_cleanup(parsed);
    return good;
}

/* ---- Signature ---- */

void webhook_sign(const void *secret, size_t secret_size, int64_t now_s, const char *body, size_t size,
                  char out[WEBHOOK_SIGNATURE_SIZE])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned int hash_size = 0;
    struct buf text;

    buf_init(&text);
    buf_put_int(&text, now_s);
    buf_put_char(&text, '.');
    buf_put(&text, body, size);
    CHECK(buf_ok(&text));
    CHECK(HMAC(EVP_sha256(), secret, (int)secret_size, (const unsigned char *)text.data, text.size, hash,
               &hash_size) != NULL);
    CHECK(hash_size == 32);
    int at = snprintf(out, WEBHOOK_SIGNATURE_SIZE, "t=%lld,v1=", (long long)now_s);
    for (unsigned int i = 0; i < hash_size; i++)
        at += snprintf(out + at, WEBHOOK_SIGNATURE_SIZE - (size_t)at, "%02x", hash[i]);
    buf_deinit(&text);
}

/* ---- Answers ---- */

enum delivery_answer webhook_judge(long status, int32_t count)
{
    if (status >= 200 && status <= 299)
        return ANSWER_DELIVERED;
    /* Who finds fault with an empty batch has read it, and is there: that was the question. */
    if (count == 0 && (status == 400 || status == 413 || status == 422))
        return ANSWER_DELIVERED;
    if (status >= 500 || status == 408 || status == 425 || status == 429)
        return ANSWER_FAILED;
    return ANSWER_REFUSED;
}

static void judge(struct webhook *webhook, CURLcode code, struct delivery_outcome *out)
{
    long status = 0;
    curl_off_t retry_after_s = 0;

    *out = (struct delivery_outcome){.answer = ANSWER_FAILED};
    /* Of an answer that is too long only its body was not read: its status was. */
    bool is_too_long = code == CURLE_WRITE_ERROR && webhook->answer_size > WEBHOOK_ANSWER_SIZE_MAX;
    if (code != CURLE_OK && !is_too_long) {
        snprintf(out->reason, sizeof out->reason, "no answer: %.140s",
                 webhook->error[0] != '\0' ? webhook->error : curl_easy_strerror(code));
        return;
    }
    curl_easy_getinfo(webhook->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(webhook->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    out->answer = webhook_judge(status, webhook->count);
    out->retry_after_ms = retry_after_s > 0 && retry_after_s < 3600 ? retry_after_s * 1000 : 0;
    if (out->answer != ANSWER_DELIVERED)
        snprintf(out->reason, sizeof out->reason, "HTTP %ld", status);
}

/* Read so that the connection can be kept, and forgotten. */
static size_t on_answer(char *data, size_t size, size_t count, void *context)
{
    struct webhook *webhook = context;

    (void)data;
    webhook->answer_size += size * count;
    return webhook->answer_size > WEBHOOK_ANSWER_SIZE_MAX ? 0 : size * count;
}

/* ---- Requests ---- */

static void set_headers(struct webhook *webhook, int64_t now_ms)
{
    char signature[WEBHOOK_SIGNATURE_SIZE], header[WEBHOOK_SIGNATURE_SIZE + 32];

    webhook_sign(webhook->secret, webhook->secret_size, now_ms / 1000, webhook->body.data, webhook->body.size,
                 signature);
    snprintf(header, sizeof header, "Holdfast-Signature: %s", signature);
    curl_slist_free_all(webhook->headers);
    webhook->headers =
        curl_slist_append(NULL, "Content-Type: application/cloudevents-batch+json; charset=utf-8");
    webhook->headers = curl_slist_append(webhook->headers, "Expect:");
    webhook->headers = curl_slist_append(webhook->headers, header);
    CHECK(webhook->headers != NULL);
}

static void set_request(struct webhook *webhook)
{
    CURL *easy = webhook->easy;

    curl_easy_reset(easy); /* keeps the connection */
    curl_easy_setopt(easy, CURLOPT_URL, webhook->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, webhook->body.data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)webhook->body.size);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, webhook->headers);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "holdfast/" HOLDFAST_VERSION);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, webhook);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, webhook->error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)WEBHOOK_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)WEBHOOK_WHOLE_MS);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
}

static void webhook_begin(struct delivery_channel *channel, const struct domain_event *events, int32_t count,
                          int64_t now_ms)
{
    struct webhook *webhook = CONTAINER_OF(channel, struct webhook, channel);

    CHECK(!webhook->sending);
    buf_clear(&webhook->body);
    buf_put_char(&webhook->body, '[');
    for (int32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_put_char(&webhook->body, ',');
        buf_put(&webhook->body, events[i].body, events[i].size);
    }
    buf_put_char(&webhook->body, ']');
    CHECK(buf_ok(&webhook->body));
    webhook->count = count;
    webhook->answer_size = 0;
    webhook->error[0] = '\0';
    set_headers(webhook, now_ms);
    set_request(webhook);
    CHECK(curl_multi_add_handle(webhook->multi, webhook->easy) == CURLM_OK);
    webhook->sending = true;
}

static void webhook_cancel(struct delivery_channel *channel)
{
    struct webhook *webhook = CONTAINER_OF(channel, struct webhook, channel);

    if (webhook->sending)
        curl_multi_remove_handle(webhook->multi, webhook->easy);
    webhook->sending = false;
}

/* True once the request has ended. */
static bool webhook_drive(struct webhook *webhook, struct delivery_outcome *out)
{
    int left = 0;

    curl_multi_perform(webhook->multi, &left);
    for (CURLMsg *message; (message = curl_multi_info_read(webhook->multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE)
            continue;
        judge(webhook, message->data.result, out);
        webhook_cancel(&webhook->channel);
        return true;
    }
    return false;
}

static bool webhook_wait(struct delivery_channel *channel, int64_t timeout_ms, struct delivery_outcome *out)
{
    struct webhook *webhook = CONTAINER_OF(channel, struct webhook, channel);

    if (webhook->sending && webhook_drive(webhook, out))
        return true;
    curl_multi_poll(webhook->multi, NULL, 0, (int)timeout_ms, NULL);
    return webhook->sending && webhook_drive(webhook, out);
}

static void webhook_wake(struct delivery_channel *channel)
{
    curl_multi_wakeup(CONTAINER_OF(channel, struct webhook, channel)->multi);
}

static void webhook_destroy(struct delivery_channel *channel)
{
    struct webhook *webhook = CONTAINER_OF(channel, struct webhook, channel);

    webhook_cancel(channel);
    curl_easy_cleanup(webhook->easy);
    curl_multi_cleanup(webhook->multi);
    curl_slist_free_all(webhook->headers);
    buf_deinit(&webhook->body);
    explicit_bzero(webhook->secret, webhook->secret_size);
    free(webhook->secret);
    free(webhook->url);
    free(webhook);
}

static const struct delivery_metrics metrics = {
    .delivered = COUNTER_DELIVERIES_DELIVERED,
    .retried = COUNTER_DELIVERIES_RETRIED,
    .dead = COUNTER_DELIVERIES_DEAD,
    .leader = GAUGE_DELIVERY_LEADER,
    .backlog = GAUGE_DELIVERY_BACKLOG,
};

enum err webhook_create(const struct webhook_config *config, struct delivery_channel **out)
{
    struct webhook *webhook = calloc(1, sizeof *webhook);

    CHECK(webhook != NULL);
    CHECK(config->secret_size > 0);
    webhook->channel = (struct delivery_channel){
        .name = "webhook",
        .metrics = &metrics,
        .begin = webhook_begin,
        .wait = webhook_wait,
        .cancel = webhook_cancel,
        .wake = webhook_wake,
        .destroy = webhook_destroy,
    };
    buf_init(&webhook->body);
    webhook->url = strdup(config->url);
    webhook->secret = malloc(config->secret_size);
    CHECK(webhook->url != NULL);
    CHECK(webhook->secret != NULL);
    memcpy(webhook->secret, config->secret, config->secret_size);
    webhook->secret_size = config->secret_size;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    webhook->multi = curl_multi_init();
    webhook->easy = curl_easy_init();
    if (webhook->multi == NULL || webhook->easy == NULL) {
        webhook_destroy(&webhook->channel);
        return ERR_INTERNAL;
    }
    *out = &webhook->channel;
    return ERR_OK;
}
