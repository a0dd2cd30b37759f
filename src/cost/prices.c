/* prices.c: which offers a job can take.
 *
 * A job of several nodes takes instances that are joined by RDMA (or what a provider has in its place) and are as large
 * as the nodes that its layout was made for; what is rented one by one over plain Ethernet is no choice. One of a
 * single node takes any instance with enough GPUs, and pays for all of them. */
#include "cost/prices.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cost/failures_constants.h"

const char *const ft__pricing_words[FT_PRICING_COUNT] = {"on_demand", "spot", "reserved"};

double ft__offer_per_hour(const ft_offer *o, int64_t gpus, int64_t joined)
{
    int64_t each = joined > 0 && joined <= o->gpus ? o->gpus / joined * joined : o->gpus; /* of them that are used */
    return o->usd_per_hour * (double)((gpus + each - 1) / each);
}

static int64_t joined_of(const ft_price_search *s) { return s->joined > 0 ? s->joined : s->gpus; }

static bool asked_for(const ft_price_search *s, const ft_offer *o)
{
    if (strcmp(o->gpu, s->gpu) != 0 || o->pricing != s->pricing) return false;
    if (!s->providers) return true;
    for (size_t i = 0; i < s->provider_count; i++)
        if (!strcmp(s->providers[i], o->provider)) return true;
    return false;
}

/* Instances of the job: one that is large enough, or whole nodes that are joined. */
static bool joined(const ft_price_search *s, const ft_offer *o) { return joined_of(s) <= o->gpus || o->network; }
static bool large(const ft_price_search *s, const ft_offer *o)
{
    return o->gpus >= (joined_of(s) < s->node_gpus ? joined_of(s) : s->node_gpus);
}

ft_priced ft__price_of(const ft_price_search *s)
{
    enum { MOST = 64 };
    const ft_offer *taken[MOST];
    size_t count = 0;
    ft_priced p = {0};
    for (size_t i = 0; i < ft__offer_count && count < MOST; i++) {
        const ft_offer *o = &ft__offers[i];
        if (!asked_for(s, o)) continue;
        p.known++;
        if (!large(s, o)) continue;
        if (!joined(s, o)) {
            p.network_lacks = true;
            continue;
        }
        size_t at = count++; /* in order of what the job pays */
        double hourly = ft__offer_per_hour(o, s->gpus, s->joined);
        for (; at > 0 && ft__offer_per_hour(taken[at - 1], s->gpus, s->joined) > hourly; at--)
            taken[at] = taken[at - 1];
        taken[at] = o;
    }
    if (!count) return p;
    p.cheapest = taken[0];
    p.median = taken[(count - 1) / 2];
    for (size_t i = count; i-- > 0;)
        if (taken[i]->hyperscaler) p.hyperscaler = taken[i];
    return p;
}

bool ft__offer_old(const ft_offer *o, int64_t today) { return today - o->day > (int64_t)FT_K_FAILURES_OLD_DAYS; }

/* Days since 1970 in the Gregorian calendar (H. Hinnant, days_from_civil). */
static int64_t civil(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool ft__day_of(const char *date, int64_t *out)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 0, month = 0, day = 0, length = 0;
    if (sscanf(date, "%4d-%2d-%2d%n", &year, &month, &day, &length) != 3 || date[length]) return false;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days[month - 1]) return false;
    *out = civil(year, month, day);
    return true;
}

int64_t ft__today(void) { return (int64_t)time(NULL) / 86400; }

ft_status ft__provider_check(const char *name, ft_error *err)
{
    enum { MOST = 64 };
    const char *known[MOST] = {0};
    size_t count = 0;
    for (size_t i = 0; i < ft__offer_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(known[at], ft__offers[i].provider) != 0) at++;
        if (at == count && count < MOST) known[count++] = ft__offers[i].provider;
    }
    for (size_t i = 0; i < count; i++)
        if (!strcmp(known[i], name)) return FT_OK;
    const char *near = ft__nearest(name, known, count);
    ft_text all = {0};
    for (size_t i = 0; i < count; i++) ft__text_addf(&all, "%s%s", i ? ", " : "", known[i]);
    ft_status status =
        near ? ft__fail_at(err, FT_E_NAME, "provider", 0, 0, "no provider \"%.60s\"; did you mean \"%s\"?", name, near)
             : ft__fail_at(err, FT_E_NAME, "provider", 0, 0, "no provider \"%.60s\"; prices are known of %s", name,
                           all.failed ? "some" : all.at);
    ft__text_free(&all);
    return status;
}
