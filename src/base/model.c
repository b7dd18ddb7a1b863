/* SPDX-License-Identifier: Apache-2.0
 * Names of the states of model.h, and the policy's defaults and ranges, made
 * from the lists there so that neither can be forgotten. Pure; any thread. */
#include "base/model.h"

#include <string.h>

#include "base/check.h"

/* The index of `text` among `names`, or −1. */
static int name_find(const char *const *names, int count, const char *text)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
    }
    return -1;
}

#define MODEL_TEXT(name, text) text,
#define MODEL_NAMES(type, LIST)                                                                              \
    static const char *const type##_names[] = {LIST(MODEL_TEXT)};                                            \
                                                                                                             \
    const char *type##_name(enum type value)                                                                 \
    {                                                                                                        \
        CHECK((unsigned)value < COUNT_OF(type##_names));                                                     \
        return type##_names[value];                                                                          \
    }                                                                                                        \
                                                                                                             \
    bool type##_parse(const char *text, enum type *out)                                                      \
    {                                                                                                        \
        int found = name_find(type##_names, (int)COUNT_OF(type##_names), text);                              \
        if (found < 0)                                                                                       \
            return false;                                                                                    \
        *out = (enum type)found;                                                                             \
        return true;                                                                                         \
    }

MODEL_NAMES(seat_state, SEAT_STATE_MAP)
MODEL_NAMES(hold_state, HOLD_STATE_MAP)
MODEL_NAMES(end_reason, END_REASON_MAP)
MODEL_NAMES(checkout_state, CHECKOUT_STATE_MAP)
MODEL_NAMES(event_state, EVENT_STATE_MAP)
MODEL_NAMES(role, ROLE_MAP)
MODEL_NAMES(hold_source, HOLD_SOURCE_MAP)
MODEL_NAMES(refund_state, REFUND_STATE_MAP)
MODEL_NAMES(audit_action, AUDIT_ACTION_MAP)

struct policy policy_default(void)
{
    return (struct policy){
#define POLICY_INITIAL(name, initial, least, most) .name = initial,
        POLICY_MAP(POLICY_INITIAL)
#undef POLICY_INITIAL
    };
}

bool policy_valid(const struct policy *policy)
{
#define POLICY_RANGE(name, initial, least, most)                                                             \
    if (policy->name < (least) || policy->name > (most))                                                     \
        return false;
    POLICY_MAP(POLICY_RANGE)
#undef POLICY_RANGE
    return policy->hold_max_seconds >= policy->hold_ttl_seconds;
}
