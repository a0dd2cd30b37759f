/* price_dates.c: prices that are not of the request's day: too old to be trusted, or of days that are yet to come. */
#include "search/choose.h"

void ft__price_dates_told(const ft_offer *const *offers, size_t count, int64_t today, ft_text *warnings)
{
    const ft_offer *oldest = NULL, *latest = NULL;
    for (size_t i = 0; i < count; i++) {
        const ft_offer *o = offers[i];
        if (o && ft__offer_old(o, today) && (!oldest || o->day < oldest->day)) oldest = o;
        if (o && o->day > today && (!latest || o->day > latest->day)) latest = o;
    }
    if (oldest)
        ft__text_addf(warnings, "%sprices are up to %lld days old (%s, %s, %s): give your own with \"price\"",
                      warnings->length ? "\n" : "", (long long)(today - oldest->day), oldest->provider,
                      oldest->instance, oldest->date);
    if (latest)
        ft__text_addf(warnings,
                      "%sprices are from up to %lld days after \"today\" (%s, %s, %s): they did not apply "
                      "then",
                      warnings->length ? "\n" : "", (long long)(latest->day - today), latest->provider,
                      latest->instance, latest->date);
}
