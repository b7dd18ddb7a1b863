/* SPDX-License-Identifier: Apache-2.0
 * Paths as clients send them. The first line is the method, the rest the path. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "http/router.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_route routes[] = {
    {.method = HTTP_GET, .path = "/"},
    {.method = HTTP_GET, .path = "/api/events"},
    {.method = HTTP_GET, .path = "/api/events/{e}"},
    {.method = HTTP_POST, .path = "/api/events/{e}/seats/{s}/reserve"},
    {.method = HTTP_DELETE, .path = "/api/holds/{h}"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct router *router;
    if (router == NULL)
        router = router_create(routes, COUNT_OF(routes));
    struct arena arena;
    struct http_match match;
    arena_init(&arena);
    char *method = arena_text_n(&arena, (const char *)data, size);
    char *path = strchr(method, '\n');
    if (path != NULL) {
        *path++ = '\0';
        router_match(router, method, path, &arena, &match);
        if (match.route != NULL)
            CHECK(match.methods != 0);
        for (size_t i = 0; match.route != NULL && i < match.param_count; i++)
            CHECK(strchr(match.params[i].value, '/') == NULL);
    }
    arena_deinit(&arena);
    return 0;
}
