/* SPDX-License-Identifier: Apache-2.0
 * libcurl's easy interface: connects within five seconds, answers within sixty,
 * bounded in size, no redirects, http and https only. */
#include "cli/http_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { ANSWER_SIZE_MAX = 64 * 1024 * 1024 };

struct http_client {
    CURL *curl;
    const char *base_url;
    struct curl_slist *headers;
};

struct http_client *http_client_create(const char *base_url, const char *token)
{
    struct http_client *client = calloc(1, sizeof *client);
    struct buf header;

    CHECK(client != NULL);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    client->curl = curl_easy_init();
    CHECK(client->curl != NULL);
    client->base_url = base_url;
    if (token != NULL) {
        buf_init(&header);
        buf_printf(&header, "Authorization: Bearer %s", token);
        client->headers = curl_slist_append(client->headers, buf_text(&header));
        buf_deinit(&header);
    }
    client->headers = curl_slist_append(client->headers, "Content-Type: application/json");
    client->headers = curl_slist_append(client->headers, "Expect:");
    return client;
}

void http_client_destroy(struct http_client *client)
{
    if (client == NULL)
        return;
    curl_slist_free_all(client->headers);
    curl_easy_cleanup(client->curl);
    free(client);
}

static size_t on_data(char *data, size_t size, size_t count, void *context)
{
    struct buf *answer = context;

    if (answer->size + size * count > ANSWER_SIZE_MAX)
        return 0;
    buf_put(answer, data, size * count);
    return buf_ok(answer) ? size * count : 0;
}

static CURLcode perform(struct http_client *client, const char *method, const char *path, struct buf *answer,
                        long *status, char *error)
{
    CURL *curl = client->curl;
    struct buf url;

    buf_init(&url);
    buf_printf(&url, "%s%s", client->base_url, path);
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, buf_text(&url));
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 5L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    if (strcmp(method, "POST") == 0) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{}");
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    buf_deinit(&url);
    return code;
}

bool http_client_call(struct http_client *client, const char *method, const char *path, json_t **data,
                      char *why, size_t why_size)
{
    char error[CURL_ERROR_SIZE] = "";
    struct buf answer;
    long status = 0;
    bool good = false;

    buf_init(&answer);
    CURLcode code = perform(client, method, path, &answer, &status, error);
    json_t *root = code == CURLE_OK && answer.size > 0 ? json_loadb(answer.data, answer.size, 0, NULL) : NULL;
    const char *message = json_string_value(json_object_get(json_object_get(root, "error"), "message"));
    if (code != CURLE_OK) {
        snprintf(why, why_size, "%s does not answer: %s", client->base_url,
                 error[0] != '\0' ? error : curl_easy_strerror(code));
    } else if (status < 200 || status > 299 || json_object_get(root, "data") == NULL) {
        snprintf(why, why_size, "%s answered %ld to %s %s: %s", client->base_url, status, method, path,
                 message != NULL ? message : "no data");
    } else {
        *data = json_incref(json_object_get(root, "data"));
        good = true;
    }
    json_decref(root);
    buf_deinit(&answer);
    return good;
}
