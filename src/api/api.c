/* SPDX-License-Identifier: Apache-2.0
 * The API's own life: what it is given, and what it makes once for all calls.
 * The flow of a call is in api_int.h, its endpoints in routes.c. */
#include "api/api.h"

#include <stdlib.h>

#include "api/api_int.h"

enum err api_create(const struct api_config *config, struct api **out)
{
    struct api *api = calloc(1, sizeof *api);
    if (api == NULL)
        return ERR_INTERNAL;
    api->config = *config;
    enum err err = layout_cache_create(&api->layouts);
    if (err != ERR_OK)
        goto fail;
    err = openapi_make(config->mint_demo != NULL, &api->openapi, &api->openapi_size);
    if (err != ERR_OK)
        goto fail;
    *out = api;
    return ERR_OK;

fail:
    api_destroy(api);
    return err;
}

void api_destroy(struct api *api)
{
    if (api == NULL)
        return;
    layout_cache_destroy(api->layouts);
    free(api->openapi);
    free(api);
}
