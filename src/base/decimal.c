/* decimal.c: decimal points.
 *
 * A program that has called setlocale(LC_ALL, "") where numbers have commas would get launch files that say
 * "--gpu-memory-utilization 0,9", and traces read as if "12.5" were 12: printf and strtod follow the locale. JSON does
 * not (number.c); for all the rest this thread has the C locale's numbers until the answer is made. */
#define _POSIX_C_SOURCE 200809L /* newlocale, uselocale */
#include "base/decimal.h"

#include <locale.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

void ft__decimal_begin(ft_decimal *d)
{
    d->plain = d->before = NULL;
    if (!strcmp(localeconv()->decimal_point, ".")) return; /* nearly always */
    locale_t own = duplocale(uselocale((locale_t)0)), plain = own ? newlocale(LC_NUMERIC_MASK, "C", own) : (locale_t)0;
    if (plain)
        d->before = uselocale(plain);
    else if (own)
        freelocale(own);
    d->plain = plain;
}

void ft__decimal_end(ft_decimal *d)
{
    if (!d->plain) return;
    uselocale((locale_t)d->before);
    freelocale((locale_t)d->plain);
}
