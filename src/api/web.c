/* SPDX-License-Identifier: Apache-2.0
 * The web app: files of web/dist, which are part of the binary. Where the app
 * was left out of the build (Node was missing), `/` is a plain page of its own
 * that says so, and the other paths answer 404.
 *
 * Invariants: (1) A page runs no script but our files and talks to no other
 * host: its Content-Security-Policy says so. (2) What lies under /assets/ has a
 * hash of its content in its name, so it may be kept for ever; everything else
 * is asked for anew. (3) Files were compressed when they were built; nothing is
 * compressed here.
 *
 * Loops' threads; constant data. */
#include "api/api_int.h"

#include <stdio.h>
#include <string.h>

#include "base/embed.h"

extern const struct embed api_files[];
extern const struct embed web_files[];

enum { FILE_NAME_SIZE = 256 };

static const char *file_type(const char *name)
{
    static const char *const types[][2] = {
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".html", "text/html; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".webmanifest", "application/manifest+json"},
    };
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && i < COUNT_OF(types); i++) {
        if (strcmp(end, types[i][0]) == 0)
            return types[i][1];
    }
    return "application/octet-stream";
}

/* A client that lists gzip takes it; one that says "gzip;q=0" is not worth the parser. */
static bool takes_gzip(const struct http_request *request)
{
    const char *accept = http_header(request, "Accept-Encoding");
    return accept != NULL && strstr(accept, "gzip") != NULL && strstr(accept, "gzip;q=0") == NULL;
}

static void reply_file(struct http_request *request, const struct embed *file, const char *caching)
{
    const char *type = file_type(file->name);
    char packed_name[FILE_NAME_SIZE];
    snprintf(packed_name, sizeof packed_name, "%s.gz", file->name);
    const struct embed *packed = takes_gzip(request) ? embed_find(web_files, packed_name) : NULL;
    http_reply_header(request, "Content-Security-Policy",
                      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                      "img-src 'self' data:; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
                      "form-action 'none'; frame-ancestors 'none'");
    http_reply_header(request, "Referrer-Policy", "no-referrer");
    http_reply_header(request, "Vary", "Accept-Encoding");
    http_reply_header(request, "Cache-Control", caching);
    if (packed != NULL) {
        http_reply_header(request, "Content-Encoding", "gzip");
        file = packed;
    }
    http_reply_static(request, 200, type, file->data, file->size);
}

/* `/` and the few files beside it. The plain page's files are there in any case. */
void api_page(struct http_request *request)
{
    const char *path = http_route(request)->path;
    const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;
    const struct embed *file = embed_find(web_files, name);
    if (file == NULL)
        file = embed_find(api_files, name);
    if (file == NULL) {
        api_fail(api_call(request), ERR_NOT_FOUND);
        return;
    }
    reply_file(request, file, "no-cache");
}

void api_asset(struct http_request *request)
{
    char name[FILE_NAME_SIZE];
    int length = snprintf(name, sizeof name, "assets/%s", http_param(request, "file"));
    const struct embed *file = length < (int)sizeof name ? embed_find(web_files, name) : NULL;
    if (file == NULL) {
        api_fail(api_call(request), ERR_NOT_FOUND);
        return;
    }
    reply_file(request, file, "public, max-age=31536000, immutable");
}
