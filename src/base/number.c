/* number.c: numbers to decimal text and back, alike on every machine and in every locale.
 *
 * An answer holds about fifteen numbers, and printf's "%.6g" takes about 250 ns for each, most of an answer's time at
 * 60,000 answers a second. Most values are between 1e-9 and 1e12 and six digits are wanted, so one multiplication by
 * an exact power of ten (10^0 .. 10^22 are exact in a double) scales the value to an integer of that many digits.
 * The product is within half a unit in its last place of the truth; when its fraction lies further than that from
 * one half, rounding it gives the same digits as rounding the truth. Otherwise (real ties, values outside the table)
 * printf, which rounds exactly, is asked for the digits. Both ways give the same text: the test compares them.
 *
 * Reading goes the same way: up to 2^53 times an exact power of ten is exact (Clinger 1990); the rest is strtod's.
 */
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { LAST_EXACT_POWER = 22, MOST_DIGITS = 17, MOST_FAST_DIGITS = 15 };

static const double powers[LAST_EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Writes exactly `count` decimal digits of `whole`. */
static void put_digits(char *at, uint64_t whole, int count)
{
    while (count > 0) {
        at[--count] = (char)('0' + whole % 10);
        whole /= 10;
    }
}

/* floor(log10(value)) within the table's reach; false outside it. */
static bool decimal_exponent(double value, int *out)
{
    int binary;
    frexp(value, &binary);                                        /* value in [2^(binary-1), 2^binary) */
    int decimal = (int)floor((binary - 1) * 0.30102999566398120); /* log10 2; at most one too low */
    if (decimal < -LAST_EXACT_POWER || decimal >= LAST_EXACT_POWER) return false;
    if (decimal >= -1) {
        if (value >= powers[decimal + 1]) decimal++;
    } else if (value * powers[-decimal - 1] >= 1) {
        decimal++;
    }
    *out = decimal;
    return true;
}

/* The leading `digits` digits of value > 0 as text and its decimal exponent; false when in doubt. */
static bool fast_digits(double value, int digits, char *text, int *exponent)
{
    int decimal;
    if (digits > MOST_FAST_DIGITS || !decimal_exponent(value, &decimal)) return false;
    int shift = digits - 1 - decimal;
    if (shift > LAST_EXACT_POWER || shift < -LAST_EXACT_POWER) return false;
    double scaled = shift >= 0 ? value * powers[shift] : value / powers[-shift];
    double whole = floor(scaled);
    double from_half = scaled - whole - 0.5;
    /* scaled < 10^15 < 2^53; its error is at most scaled * 2^-53. Twice that, for good measure. */
    if (fabs(from_half) <= scaled * 0x1p-52) return false;
    uint64_t n = (uint64_t)whole + (from_half > 0);
    /* 9.9999996 with six digits is 10.0000; a value a hair under a power may scale a hair under too. */
    if (n >= (uint64_t)powers[digits]) {
        n /= 10;
        decimal++;
    } else if (n < (uint64_t)powers[digits - 1]) {
        return false;
    }
    put_digits(text, n, digits);
    *exponent = decimal;
    return true;
}

/* The same through printf. Only digits and the exponent are taken from it: its decimal point is the locale's. */
static void exact_digits(double value, int digits, char *text, int *exponent)
{
    char printed[64];
    snprintf(printed, sizeof printed, "%.*e", digits - 1, value);
    int found = 0;
    const char *at = printed;
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9' && found < digits) text[found++] = *at;
    *exponent = *at == 'e' ? atoi(at + 1) : 0;
}

/* Layout as of "%.*g": plain from 1e-5 up to 10^digits, scientific beyond. */
void ft__text_add_number(ft_text *t, double value, int digits)
{
    if (!isfinite(value)) {
        ft__text_add_n(t, "null", 4);
        return;
    }
    if (value == 0) { /* minus zero too: a time has no sign */
        ft__text_add_n(t, "0", 1);
        return;
    }
    if (digits < 1) digits = 1;
    if (digits > MOST_DIGITS) digits = MOST_DIGITS;

    char text[MOST_DIGITS], out[48];
    int exponent = 0, n = 0;
    double magnitude = fabs(value);
    if (!fast_digits(magnitude, digits, text, &exponent)) exact_digits(magnitude, digits, text, &exponent);
    int kept = digits;
    while (kept > 1 && text[kept - 1] == '0') kept--;

    if (value < 0) out[n++] = '-';
    if (exponent < -4 || exponent >= digits) {
        out[n++] = text[0];
        if (kept > 1) {
            out[n++] = '.';
            memcpy(out + n, text + 1, (size_t)kept - 1);
            n += kept - 1;
        }
        int size = exponent < 0 ? -exponent : exponent;
        out[n++] = 'e';
        out[n++] = exponent < 0 ? '-' : '+';
        int width = size >= 100 ? 3 : 2;
        put_digits(out + n, (uint64_t)size, width);
        n += width;
    } else if (exponent < 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int zero = -1; zero > exponent; zero--) out[n++] = '0';
        memcpy(out + n, text, (size_t)kept);
        n += kept;
    } else {
        int whole = exponent + 1; /* digits before the point; those cut as trailing zeros count here */
        memcpy(out + n, text, (size_t)whole);
        n += whole;
        if (kept > whole) {
            out[n++] = '.';
            memcpy(out + n, text + whole, (size_t)(kept - whole));
            n += kept - whole;
        }
    }
    ft__text_add_n(t, out, (size_t)n);
}

/* -- reading ----------------------------------------------------------------------------------- */

/* The pieces of [+-]digits[.digits][e[+-]digits]; the first nineteen digits fit 64 bits. */
typedef struct decimal {
    bool negative, exact; /* exact: no digit was dropped */
    uint64_t digits;
    int exponent;
} decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool split(const char *s, decimal *out)
{
    decimal d = {.exact = true};
    int seen = 0, kept = 0;
    if (*s == '+' || *s == '-') d.negative = *s++ == '-';
    bool after_point = false;
    for (;; s++) {
        if (*s == '.' && !after_point) {
            after_point = true;
            continue;
        }
        if (!is_digit(*s)) break;
        seen = 1;
        if (kept == 0 && *s == '0') {
            if (after_point && d.exponent > -100000) d.exponent--;
        } else if (kept < 19) {
            d.digits = d.digits * 10 + (uint64_t)(*s - '0');
            kept++;
            if (after_point) d.exponent--;
        } else {
            d.exact = false;
            if (!after_point && d.exponent < 100000) d.exponent++;
        }
    }
    if (!seen) return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        bool negative = *s == '-';
        if (*s == '+' || *s == '-') s++;
        if (!is_digit(*s)) return false;
        int power = 0;
        for (; is_digit(*s); s++)
            if (power < 100000) power = power * 10 + (*s - '0');
        d.exponent += negative ? -power : power;
    }
    if (*s) return false;
    *out = d;
    return true;
}

/* strtod reads the locale's decimal point; ours is always '.'. */
static double slow_parse(const char *s)
{
    char local[512];
    const char *point = localeconv()->decimal_point;
    size_t length = strlen(s), point_length = strlen(point);
    const char *dot = strchr(s, '.');
    if (!dot || strcmp(point, ".") == 0) return strtod(s, NULL);
    if (point_length == 0 || length + point_length >= sizeof local) return NAN;
    size_t before = (size_t)(dot - s);
    memcpy(local, s, before);
    memcpy(local + before, point, point_length);
    memcpy(local + before + point_length, dot + 1, length - before); /* with the NUL */
    return strtod(local, NULL);
}

bool ft__number_parse(const char *s, double *out)
{
    decimal d;
    if (!split(s, &d)) return false;
    double value;
    if (d.digits == 0) {
        value = d.negative ? -0.0 : 0;
    } else if (d.exact && d.digits <= ((uint64_t)1 << 53) && d.exponent >= -LAST_EXACT_POWER &&
               d.exponent <= LAST_EXACT_POWER) {
        value = (double)d.digits;
        value = d.exponent < 0 ? value / powers[-d.exponent] : value * powers[d.exponent];
        if (d.negative) value = -value;
    } else {
        value = slow_parse(s);
    }
    if (!isfinite(value)) return false;
    *out = value;
    return true;
}

bool ft__whole_parse(const char *s, int64_t *out)
{
    decimal d;
    if (!split(s, &d) || !d.exact) return false;
    while (d.digits && d.exponent < 0) { /* 4096.0 */
        if (d.digits % 10) return false;
        d.digits /= 10;
        d.exponent++;
    }
    while (d.digits && d.exponent > 0) { /* 1e3 */
        if (d.digits > UINT64_MAX / 10) return false;
        d.digits *= 10;
        d.exponent--;
    }
    if (d.digits > (uint64_t)INT64_MAX) return false;
    *out = d.negative ? -(int64_t)d.digits : (int64_t)d.digits;
    return true;
}
