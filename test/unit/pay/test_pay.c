/* SPDX-License-Identifier: Apache-2.0
 * The payment thread and the simulated gateway: four tokens, each with its way;
 * nobody waits for somebody else's slow payment, and no money is taken twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "pay/pay_int.h"

enum { ANSWER_COUNT_MAX = 64, WAIT_MS_MAX = 30000 };

struct answer {
    struct pay_job job;
    enum pay_outcome outcome;
    int64_t after_ms;
};

struct desk {
    struct pay *pay;
    struct simulated *simulated; /* the pay's own */
    pthread_mutex_t lock;
    struct answer answers[ANSWER_COUNT_MAX];
    int count;
    int64_t start_us;
    bool refund_when_paid; /* on_outcome submits */
};

static struct pay_job job_of(uint8_t checkout, const char *token, int32_t attempt)
{
    struct pay_job job = {.amount_cents = 4200, .currency = "EUR", .attempt = attempt};
    job.checkout_id.bytes[0] = 1;
    job.checkout_id.bytes[15] = checkout;
    snprintf(job.token, sizeof job.token, "%s", token);
    return job;
}

static void on_outcome(void *context, const struct pay_job *job, enum pay_outcome outcome)
{
    struct desk *desk = context;
    pthread_mutex_lock(&desk->lock);
    if (desk->count < ANSWER_COUNT_MAX)
        desk->answers[desk->count++] = (struct answer){
            .job = *job,
            .outcome = outcome,
            .after_ms = (clock_monotonic_us() - desk->start_us) / 1000,
        };
    pthread_mutex_unlock(&desk->lock);
    if (desk->refund_when_paid && !job->refund && outcome == PAY_PAID) {
        struct pay_job refund = *job;
        refund.refund = true;
        refund.attempt = 1;
        pay_submit(desk->pay, &refund);
    }
}

static struct desk desk;

static int setup(void **state)
{
    memset(&desk, 0, sizeof desk);
    pthread_mutex_init(&desk.lock, NULL);
    desk.start_us = clock_monotonic_us();
    assert_int_equal(simulated_create(&desk.simulated), ERR_OK);
    assert_int_equal(pay_create(simulated_gateway(desk.simulated), on_outcome, &desk, &desk.pay), ERR_OK);
    *state = &desk;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pay_destroy(desk.pay);
    pthread_mutex_destroy(&desk.lock);
    return 0;
}

static void submit(uint8_t checkout, const char *token, int32_t attempt)
{
    struct pay_job job = job_of(checkout, token, attempt);
    pay_submit(desk.pay, &job);
}

/* The nth answer about a checkout, waited for. */
static struct answer answer_of(uint8_t checkout, int n)
{
    int64_t end_us = clock_monotonic_us() + WAIT_MS_MAX * 1000;
    while (clock_monotonic_us() < end_us) {
        int seen = 0;
        pthread_mutex_lock(&desk.lock);
        for (int i = 0; i < desk.count; i++) {
            if (desk.answers[i].job.checkout_id.bytes[15] == checkout && seen++ == n) {
                struct answer answer = desk.answers[i];
                pthread_mutex_unlock(&desk.lock);
                return answer;
            }
        }
        pthread_mutex_unlock(&desk.lock);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("no answer %d about checkout %d", n, checkout);
    return (struct answer){0};
}

static void test_ok_pays_and_declined_declines_at_once(void **state)
{
    (void)state;
    submit(1, "tok_ok", 1);
    submit(2, "tok_declined", 1);
    submit(3, "tok_nonsense", 1);
    submit(4, "", 1);
    struct answer paid = answer_of(1, 0);
    assert_int_equal(paid.outcome, PAY_PAID);
    assert_int_equal(paid.job.amount_cents, 4200);
    assert_string_equal(paid.job.currency, "EUR");
    assert_int_equal(paid.job.attempt, 1);
    for (uint8_t checkout = 2; checkout <= 4; checkout++)
        assert_int_equal(answer_of(checkout, 0).outcome, PAY_DECLINED);
    assert_int_equal(simulated_charge_count(desk.simulated), 1);
}

/* Slow and unknown run side by side here, to keep the test short and to see that they do not wait for each other. */
static void test_slow_and_unknown_delay_nobody_but_themselves(void **state)
{
    (void)state;
    uint64_t unknown_before = counter_get(COUNTER_PAYMENTS_UNKNOWN);
    submit(1, "tok_slow", 1);
    submit(2, "tok_unknown", 1);
    submit(3, "tok_slow", 1);
    submit(4, "tok_ok", 1);
    assert_true(answer_of(4, 0).after_ms < 2900); /* before the slow ones, however busy the machine */

    struct answer first = answer_of(2, 0);
    assert_int_equal(first.outcome, PAY_UNKNOWN);
    assert_int_equal(first.job.attempt, 1);
    assert_in_range(first.after_ms, 950, WAIT_MS_MAX);
    assert_int_equal(counter_get(COUNTER_PAYMENTS_UNKNOWN) - unknown_before, 1);
    struct answer second = answer_of(2, 1);
    assert_int_equal(second.outcome, PAY_PAID);
    assert_int_equal(second.job.attempt, 2);
    assert_in_range(second.after_ms - first.after_ms, 950, WAIT_MS_MAX);

    assert_int_equal(answer_of(1, 0).outcome, PAY_PAID);
    assert_in_range(answer_of(1, 0).after_ms, 2950, WAIT_MS_MAX);
    assert_in_range(answer_of(3, 0).after_ms, 2950, WAIT_MS_MAX);
    assert_int_equal(simulated_charge_count(desk.simulated), 4);
}

static void test_unknown_asked_again_after_a_restart_is_settled_at_once(void **state)
{
    (void)state;
    submit(1, "tok_unknown", 2);
    assert_int_equal(answer_of(1, 0).outcome, PAY_PAID);
    assert_true(answer_of(1, 0).after_ms < 2900);
}

static void test_paid_checkout_is_never_charged_again(void **state)
{
    (void)state;
    submit(1, "tok_ok", 1);
    submit(1, "tok_ok", 1);
    submit(1, "tok_declined", 2);
    submit(1, "tok_unknown", 1);
    for (int n = 0; n < 4; n++)
        assert_int_equal(answer_of(1, n).outcome, PAY_PAID);
    assert_int_equal(simulated_charge_count(desk.simulated), 1);
}

static void test_refunds_are_done_at_once_and_may_be_submitted_by_on_outcome(void **state)
{
    (void)state;
    desk.refund_when_paid = true;
    submit(1, "tok_ok", 1);
    assert_false(answer_of(1, 0).job.refund);
    struct answer refund = answer_of(1, 1);
    assert_true(refund.job.refund);
    assert_int_equal(refund.outcome, PAY_PAID);

    struct pay_job slow = job_of(2, "tok_slow", 1);
    slow.refund = true;
    pay_submit(desk.pay, &slow);
    assert_int_equal(answer_of(2, 0).outcome, PAY_PAID);
    assert_true(answer_of(2, 0).after_ms < 2900);
    assert_int_equal(simulated_charge_count(desk.simulated), 1);
}

static void test_destroy_waits_for_nothing_slow(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 50; i++)
        submit(i, i % 2 ? "tok_slow" : "tok_unknown", 1);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    int64_t start_us = clock_monotonic_us();
    pay_destroy(desk.pay);
    desk.pay = NULL;
    assert_true(clock_monotonic_us() - start_us < 2500000); /* the slow ones take three seconds */
    assert_int_equal(desk.count, 0);
}

/* A gateway that never knows. */
struct vague {
    struct pay_gateway gateway;
    int attempt_count;
};

static void vague_charge(struct pay_gateway *gateway, struct pay *pay, struct pay_attempt *attempt,
                         int64_t now_us)
{
    (void)now_us;
    CONTAINER_OF(gateway, struct vague, gateway)->attempt_count++;
    pay_answer(pay, attempt, PAY_UNKNOWN, 0);
}

static void vague_destroy(struct pay_gateway *gateway)
{
    (void)gateway;
}

static void test_unknown_is_asked_again_with_growing_pauses(void **state)
{
    (void)state;
    struct vague vague = {
        .gateway = {.charge = vague_charge, .refund = vague_charge, .destroy = vague_destroy}};
    struct pay *pay = NULL;
    struct pay_job job = job_of(9, "any", 0);
    assert_int_equal(pay_create(&vague.gateway, on_outcome, &desk, &pay), ERR_OK);
    pay_submit(pay, &job);
    struct answer answers[3] = {answer_of(9, 0), answer_of(9, 1), answer_of(9, 2)};
    pay_destroy(pay);
    for (int n = 0; n < 3; n++)
        assert_int_equal(answers[n].job.attempt, n + 1);
    assert_in_range(answers[1].after_ms - answers[0].after_ms, 950, WAIT_MS_MAX);
    assert_in_range(answers[2].after_ms - answers[1].after_ms, 1950, WAIT_MS_MAX);
    assert_int_equal(vague.attempt_count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ok_pays_and_declined_declines_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_and_unknown_delay_nobody_but_themselves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_asked_again_after_a_restart_is_settled_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_paid_checkout_is_never_charged_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refunds_are_done_at_once_and_may_be_submitted_by_on_outcome,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_waits_for_nothing_slow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_is_asked_again_with_growing_pauses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
