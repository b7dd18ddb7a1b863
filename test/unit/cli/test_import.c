/* SPDX-License-Identifier: Apache-2.0
 * Import files: defaults, strictness, and complaints that name the place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "cli/import.h"

#define LAYOUT                                                                                               \
    "\"layout\":{\"name\":\"Hall\",\"blocks\":[{\"section\":\"A\",\"subsection\":1,\"name\":\"Stalls\","     \
    "\"price_cents\":100,"                                                                                   \
    "\"rows\":[{\"label\":\"1\",\"seats\":3},{\"label\":\"2\",\"seats\":[\"a\",\"b\"]}]}]}"
#define ORG "\"organization\":{\"name\":\"Org\"}"
#define EVENT "\"event\":{\"name\":\"Show\"}"

struct fixture {
    struct arena arena;
    struct rng rng;
    struct import_plan plan;
    char why[512];
};

static int setup(void **state)
{
    static struct fixture fixture;

    memset(&fixture, 0, sizeof fixture);
    arena_init(&fixture.arena);
    rng_init_seed(&fixture.rng, 7);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_deinit(&fixture->arena);
    return 0;
}

static bool parse(struct fixture *fixture, const char *text)
{
    fixture->why[0] = '\0';
    return import_parse(text, strlen(text), &fixture->rng, 1000, &fixture->arena, &fixture->plan,
                        fixture->why, sizeof fixture->why);
}

static void assert_refused(struct fixture *fixture, const char *text, const char *mention)
{
    if (parse(fixture, text))
        fail_msg("taken: %s", text);
    if (strstr(fixture->why, mention) == NULL)
        fail_msg("'%s' does not mention '%s'", fixture->why, mention);
}

static void test_shortest_document_gets_ids_and_defaults(void **state)
{
    struct fixture *fixture = *state;
    struct policy policy = policy_default();

    assert_true(parse(fixture, "{" ORG "," EVENT "," LAYOUT "}"));
    assert_false(fixture->plan.has_org_id);
    assert_false(uuid_is_nil(&fixture->plan.org.id));
    assert_false(uuid_is_nil(&fixture->plan.event.id));
    assert_true(uuid_equal(&fixture->plan.event.org_id, &fixture->plan.org.id));
    assert_int_equal(fixture->plan.event.state, EVENT_DRAFT);
    assert_string_equal(fixture->plan.event.currency, "EUR");
    assert_true(fixture->plan.event.sale_start_ms == TIME_NONE);
    assert_true(fixture->plan.event.sale_end_ms == TIME_MAX);
    assert_memory_equal(&fixture->plan.event.policy, &policy, sizeof policy);
    assert_int_equal(fixture->plan.layout->seat_count, 5);
}

static void test_everything_given_is_taken(void **state)
{
    struct fixture *fixture = *state;

    assert_true(parse(
        fixture,
        "{\"organization\":{\"id\":\"0190a4c2-7d1e-7c3a-9f54-2b8d6e0f1a23\",\"name\":\"Org\"},"
        "\"event\":{\"id\":\"0190a4c2-7d1e-7c3a-9f54-2b8d6e0f1a24\",\"name\":\"Show\",\"status\":\"live\","
        "\"sale_start\":\"2026-01-01T00:00:00Z\",\"sale_end\":\"2026-01-02T00:00:00+01:00\",\"currency\":"
        "\"ZAR\","
        "\"policy\":{\"hold_ttl_seconds\":900,\"forbid_single_seat_gaps\":true}}," LAYOUT "}"));
    assert_true(fixture->plan.has_org_id);
    assert_true(fixture->plan.has_event_id);
    assert_int_equal(fixture->plan.event.state, EVENT_LIVE);
    assert_string_equal(fixture->plan.event.currency, "ZAR");
    assert_int_equal(fixture->plan.event.policy.hold_ttl_seconds, 900);
    assert_int_equal(fixture->plan.event.policy.forbid_single_seat_gaps, 1);
    assert_int_equal(fixture->plan.event.sale_end_ms - fixture->plan.event.sale_start_ms, 23 * 3600 * 1000);
}

static void test_broken_json_is_named_with_line_and_column(void **state)
{
    assert_refused(*state, "{\n\n  what", "line 3");
    assert_refused(*state, "", "line 1");
    assert_refused(*state, "[]", "the document");
    assert_refused(*state, "{" ORG "," ORG "," EVENT "," LAYOUT "}", "line 1");
}

static void test_missing_parts_are_named(void **state)
{
    assert_refused(*state, "{}", "organization");
    assert_refused(*state, "{" ORG "," LAYOUT "}", "event");
    assert_refused(*state, "{" ORG "," EVENT "}", "layout");
    assert_refused(*state, "{\"organization\":{}," EVENT "," LAYOUT "}", "organization.name");
}

static void test_unknown_names_are_refused(void **state)
{
    assert_refused(*state, "{" ORG "," EVENT "," LAYOUT ",\"extra\":1}", "'extra'");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"statsu\":\"live\"}," LAYOUT "}", "'statsu'");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"policy\":{\"hold_ttl\":5}}," LAYOUT "}",
                   "'hold_ttl'");
}

static void test_wrong_values_are_named_with_their_place(void **state)
{
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"\"}," LAYOUT "}", "event.name");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"id\":\"no\"}," LAYOUT "}", "event.id");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"status\":\"open\"}," LAYOUT "}",
                   "event.status");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"currency\":\"eur\"}," LAYOUT "}",
                   "event.currency");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"currency\":null}," LAYOUT "}",
                   "event.currency");
    assert_refused(*state, "{" ORG ",\"event\":{\"name\":\"x\",\"sale_start\":\"soon\"}," LAYOUT "}",
                   "event.sale_start");
    assert_refused(*state,
                   "{" ORG ",\"event\":{\"name\":\"x\",\"policy\":{\"hold_ttl_seconds\":0}}," LAYOUT "}",
                   "event.policy.hold_ttl_seconds");
    assert_refused(*state,
                   "{" ORG ",\"event\":{\"name\":\"x\",\"policy\":{\"hold_ttl_seconds\":\"60\"}}," LAYOUT "}",
                   "event.policy.hold_ttl_seconds");
}

static void test_sale_that_ends_before_it_starts_is_refused(void **state)
{
    assert_refused(*state,
                   "{" ORG ",\"event\":{\"name\":\"x\",\"sale_start\":\"2026-01-02T00:00:00Z\",\"sale_end\":"
                   "\"2026-01-01T00:00:00Z\"}," LAYOUT "}",
                   "sale_end");
}

static void test_hold_max_follows_a_longer_ttl_unless_it_contradicts(void **state)
{
    struct fixture *fixture = *state;

    assert_true(parse(
        fixture, "{" ORG ",\"event\":{\"name\":\"x\",\"policy\":{\"hold_ttl_seconds\":3600}}," LAYOUT "}"));
    assert_int_equal(fixture->plan.event.policy.hold_max_seconds, 3600);
    assert_refused(
        fixture,
        "{" ORG
        ",\"event\":{\"name\":\"x\",\"policy\":{\"hold_ttl_seconds\":600,\"hold_max_seconds\":300}}," LAYOUT
        "}",
        "hold_max_seconds");
}

static void test_layout_complaints_say_so(void **state)
{
    assert_refused(*state, "{" ORG "," EVENT ",\"layout\":{\"name\":\"x\",\"blocks\":[]}}", "layout");
    assert_refused(*state, "{" ORG "," EVENT ",\"layout\":[]}", "layout");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shortest_document_gets_ids_and_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_everything_given_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_json_is_named_with_line_and_column, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_parts_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_names_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_values_are_named_with_their_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sale_that_ends_before_it_starts_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hold_max_follows_a_longer_ttl_unless_it_contradicts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_layout_complaints_say_so, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
