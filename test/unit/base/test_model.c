/* SPDX-License-Identifier: Apache-2.0
 * Names of states, and the ranges of a policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/model.h"

#define ASSERT_ROUND_TRIP(type, COUNT)                                                                       \
    for (int i = 0; i < (int)(COUNT); i++) {                                                                 \
        enum type value = (enum type)((i + 1) % (int)(COUNT));                                               \
        assert_true(type##_parse(type##_name((enum type)i), &value));                                        \
        assert_int_equal(value, i);                                                                          \
    }

static void test_every_name_reads_back(void **state)
{
    (void)state;
    ASSERT_ROUND_TRIP(seat_state, SEAT_STATE_COUNT)
    ASSERT_ROUND_TRIP(hold_state, HOLD_STATE_COUNT)
    ASSERT_ROUND_TRIP(end_reason, END_REASON_COUNT)
    ASSERT_ROUND_TRIP(checkout_state, CHECKOUT_STATE_COUNT)
    ASSERT_ROUND_TRIP(event_state, EVENT_STATE_COUNT)
    ASSERT_ROUND_TRIP(role, ROLE_COUNT)
    ASSERT_ROUND_TRIP(hold_source, HOLD_SOURCE_COUNT)
    ASSERT_ROUND_TRIP(refund_state, REFUND_STATE_COUNT)
    ASSERT_ROUND_TRIP(audit_action, AUDIT_ACTION_COUNT)
}

static void test_names_are_those_of_the_contract(void **state)
{
    (void)state;
    assert_string_equal(seat_state_name(SEAT_SOLD), "sold");
    assert_string_equal(checkout_state_name(CHECKOUT_PENDING_PAYMENT), "pending_payment");
    assert_string_equal(end_reason_name(END_TTL_EXPIRED), "ttl_expired");
    assert_string_equal(audit_action_name(AUDIT_SEAT_HOLD_EXPIRED), "seat_hold_expired");
    assert_int_equal(SEAT_AVAILABLE, 0); /* the two bits of the availability map */
    assert_int_equal(SEAT_HELD, 1);
    assert_int_equal(SEAT_SOLD, 2);
    assert_int_equal(SEAT_BLOCKED, 3);
}

static void test_unknown_names_are_refused_and_change_nothing(void **state)
{
    (void)state;
    enum role role = ROLE_AGENT;
    static const char *const wrong[] = {"", "Admin", "admin ", "adm", "root"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(role_parse(wrong[i], &role));
    assert_int_equal(role, ROLE_AGENT);
}

static void test_the_default_policy_is_valid_and_as_documented(void **state)
{
    (void)state;
    struct policy policy = policy_default();
    assert_true(policy_valid(&policy));
    assert_int_equal(policy.hold_ttl_seconds, 300);
    assert_int_equal(policy.hold_max_seconds, 1200);
    assert_int_equal(policy.release_grace_seconds, 10);
    assert_int_equal(policy.max_seats_per_user, 10);
    assert_int_equal(policy.rate_limit_holds, 10);
}

static void test_each_field_outside_its_range_is_refused(void **state)
{
    (void)state;
#define POLICY_TRY(name, initial, least, most)                                                               \
    {                                                                                                        \
        struct policy policy = policy_default();                                                             \
        policy.name = (least)-1;                                                                             \
        assert_false(policy_valid(&policy));                                                                 \
        policy.name = (most) + 1;                                                                            \
        assert_false(policy_valid(&policy));                                                                 \
    }
    POLICY_MAP(POLICY_TRY)
#undef POLICY_TRY
}

static void test_a_maximum_below_the_ttl_is_refused(void **state)
{
    (void)state;
    struct policy policy = policy_default();
    policy.hold_ttl_seconds = policy.hold_max_seconds = 600;
    assert_true(policy_valid(&policy));
    policy.hold_max_seconds = 599;
    assert_false(policy_valid(&policy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_reads_back),
        cmocka_unit_test(test_names_are_those_of_the_contract),
        cmocka_unit_test(test_unknown_names_are_refused_and_change_nothing),
        cmocka_unit_test(test_the_default_policy_is_valid_and_as_documented),
        cmocka_unit_test(test_each_field_outside_its_range_is_refused),
        cmocka_unit_test(test_a_maximum_below_the_ttl_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
