/* SPDX-License-Identifier: Apache-2.0
 * One clock, and the text form of times. The monotonic clock plus an offset:
 * it never steps, whatever happens to the machine's idea of the date.
 *
 * Invariants:
 *   1. The offset is learned once, from the wall clock at the first question
 *      unless clock_set_offset_ms() came before.
 *   2. Formatting rounds down to the second, before 1970 too.
 *   3. What time_parse() accepts lies in the years 0001 to 9999 in UTC.
 *
 * Any thread. Calendar arithmetic is done here, in a few divisions, because
 * the C library's takes a lock on the time zone at every call. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define OFFSET_UNKNOWN INT64_MIN
#define MS_PER_DAY INT64_C(86400000)
#define DAYS_PER_ERA 146097                    /* 400 years */
#define DAYS_TO_1970 719468                    /* from 0000-03-01, where an era begins */
#define TIME_MS_FIRST INT64_C(-62135596800000) /* 0001-01-01T00:00:00Z */
#define TIME_MS_LAST INT64_C(253402300799999)  /* 9999-12-31T23:59:59.999Z */

static _Atomic int64_t offset_ms = OFFSET_UNKNOWN;

static int64_t clock_read_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_monotonic_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC);
}

void clock_set_offset_ms(int64_t utc_minus_monotonic_ms)
{
    atomic_store_explicit(&offset_ms, utc_minus_monotonic_ms, memory_order_relaxed);
}

int64_t clock_now_ms(void)
{
    int64_t monotonic_ms = clock_monotonic_us() / 1000;
    int64_t offset = atomic_load_explicit(&offset_ms, memory_order_relaxed);
    if (offset == OFFSET_UNKNOWN) {
        int64_t learned = clock_read_us(CLOCK_REALTIME) / 1000 - monotonic_ms;
        /* Two threads may ask first at once: one of them is believed by both. */
        if (atomic_compare_exchange_strong(&offset_ms, &offset, learned))
            offset = learned;
    }
    return monotonic_ms + offset;
}

static int64_t floor_divide(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. Years begin in
 * March here, so that the leap day is the last of its year. */
static int64_t days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = floor_divide(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

static int64_t civil_from_days(int64_t days, int *month, int *day)
{
    days += DAYS_TO_1970;
    int64_t era = floor_divide(days, DAYS_PER_ERA);
    int64_t day_of_era = days - era * DAYS_PER_ERA;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    *month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    return year_of_era + era * 400 + (*month <= 2);
}

static char *put_digits(char *out, int64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

void time_format(int64_t time_ms, char out[TIME_TEXT_SIZE])
{
    int month, day;
    int64_t days = floor_divide(time_ms, MS_PER_DAY);
    int64_t of_day_ms = time_ms % MS_PER_DAY; /* not by multiplying days: TIME_NONE would overflow */
    int64_t second_of_day = (of_day_ms < 0 ? of_day_ms + MS_PER_DAY : of_day_ms) / 1000;
    int64_t year = civil_from_days(days, &month, &day);
    if (year >= 0 && year <= 9999)
        out = put_digits(out, year, 4);
    else
        out += snprintf(out, 16, "%lld", (long long)year);
    *out++ = '-';
    out = put_digits(out, month, 2);
    *out++ = '-';
    out = put_digits(out, day, 2);
    *out++ = 'T';
    out = put_digits(out, second_of_day / 3600, 2);
    *out++ = ':';
    out = put_digits(out, second_of_day / 60 % 60, 2);
    *out++ = ':';
    out = put_digits(out, second_of_day % 60, 2);
    *out++ = 'Z';
    *out = '\0';
}

/* What is left to read of a text. */
struct cursor {
    const char *at;
    const char *end;
};

static bool take_char(struct cursor *text, char c)
{
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

static bool take_digits(struct cursor *text, int count, int *value)
{
    if (text->end - text->at < count)
        return false;
    *value = 0;
    for (int i = 0; i < count; i++) {
        char c = *text->at++;
        if (c < '0' || c > '9')
            return false;
        *value = *value * 10 + (c - '0');
    }
    return true;
}

static bool take_date(struct cursor *text, int64_t *days)
{
    static const int month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    if (!take_digits(text, 4, &year) || !take_char(text, '-') || !take_digits(text, 2, &month) ||
        !take_char(text, '-') || !take_digits(text, 2, &day))
        return false;
    if (month < 1 || month > 12)
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day < 1 || day > month_days[month - 1] + (month == 2 && leap))
        return false;
    *days = days_from_civil(year, month, day);
    return true;
}

/* Hours and minutes, then seconds and a fraction if they are there. */
static bool take_time(struct cursor *text, int64_t *ms)
{
    int hour, minute, second = 0, fraction_ms = 0;
    if (!take_digits(text, 2, &hour) || !take_char(text, ':') || !take_digits(text, 2, &minute))
        return false;
    if (take_char(text, ':')) {
        if (!take_digits(text, 2, &second))
            return false;
        if (take_char(text, '.') || take_char(text, ',')) {
            int scale = 100, digit;
            if (!take_digits(text, 1, &digit))
                return false;
            fraction_ms = digit * scale;
            while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
                scale /= 10; /* zero past milliseconds: the rest is read and dropped */
                fraction_ms += (*text->at++ - '0') * scale;
            }
        }
    }
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ms = ((int64_t)hour * 3600 + minute * 60 + second) * 1000 + fraction_ms;
    return true;
}

static bool take_zone(struct cursor *text, int64_t *ms)
{
    int hour, minute = 0, sign;
    *ms = 0;
    if (take_char(text, 'Z') || take_char(text, 'z'))
        return true;
    if (take_char(text, '+'))
        sign = 1;
    else if (take_char(text, '-'))
        sign = -1;
    else
        return false;
    if (!take_digits(text, 2, &hour))
        return false;
    if (text->at < text->end) {
        take_char(text, ':');
        if (!take_digits(text, 2, &minute))
            return false;
    }
    if (hour > 23 || minute > 59)
        return false;
    *ms = sign * ((int64_t)hour * 3600 + minute * 60) * 1000;
    return true;
}

bool time_parse(const char *text, size_t length, int64_t *time_ms)
{
    struct cursor rest = {text, text + length};
    int64_t days, of_day_ms, zone_ms;
    if (!take_date(&rest, &days))
        return false;
    if (!take_char(&rest, 'T') && !take_char(&rest, 't'))
        return false;
    if (!take_time(&rest, &of_day_ms) || !take_zone(&rest, &zone_ms) || rest.at != rest.end)
        return false;
    int64_t result = days * MS_PER_DAY + of_day_ms - zone_ms;
    if (result < TIME_MS_FIRST || result > TIME_MS_LAST)
        return false;
    *time_ms = result;
    return true;
}
