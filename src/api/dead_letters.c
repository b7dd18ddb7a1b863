/* SPDX-License-Identifier: Apache-2.0
 * Domain events that were given up, newest first: an admin sees those of the
 * organization, an operator all. Read from the store on its own thread.
 * Loops' threads. */
#include "api/api_int.h"

void api_admin_dead_letters_list(struct http_request *request)
{
    struct api_call *call = api_call(request);

    if (!api_query_page(call))
        return;
    if (call->actor.role == ROLE_OPERATOR)
        call->actor.org_id = (struct uuid){{0}};
    call->query.kind = QUERY_DEAD_LETTERS;
    api_query(call, api_reply_rows);
}
