/* SPDX-License-Identifier: Apache-2.0
 * Assertions that stay on in production. CHECK is for programmer error only:
 * input, network and disk trouble is never a CHECK. One condition each, so
 * that the message names what broke. */
#ifndef HOLDFAST_BASE_CHECK_H
#define HOLDFAST_BASE_CHECK_H

#define CHECK(condition) ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__, __func__))

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define BIT(n) (1u << (n))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer) - __builtin_offsetof(type, member)))

/* Prints what failed and where, then aborts. */
void check_failed(const char *condition, const char *file, int line, const char *function)
    __attribute__((noreturn, cold));

#endif
