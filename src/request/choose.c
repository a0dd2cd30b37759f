/* choose.c: reading a request for a choice of GPUs.
 *
 * Times and ranges may be said as people say them: "30d", "12h", "10min"; "8:512" are 8, 16, 32 and so on. */
#include "request/choose.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/cluster.h"
#include "request/choose_constants.h"
#include "request/keys.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MOST_GPUS = 1 << 20, DAY_S = 86400 };

/* Seconds of a text, "30d"; of a bare number in units of `unit` seconds. */
static ft_status read_seconds(const json_t *object, const char *key, const char *where, double unit, double *out,
                              ft_error *err)
{
    static const struct {
        const char *word;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", DAY_S}, {"w", 604800}};
    const json_t *value = json_object_get(object, key);
    if (!value) return FT_OK;
    double number = json_number_value(value);
    if (json_is_string(value)) {
        const char *said = json_string_value(value);
        char digits[40] = "";
        size_t length = strspn(said, "0123456789.eE+-");
        while (length && (said[length - 1] == 'e' || said[length - 1] == 'E')) length--;
        if (length < sizeof digits) memcpy(digits, said, length);
        if (said[length]) unit = 0;
        for (size_t i = 0; i < COUNT(units); i++)
            if (!strcmp(said + length, units[i].word)) unit = units[i].seconds;
        if (!ft__number_parse(digits, &number)) unit = 0;
    } else if (!json_is_number(value)) {
        unit = 0;
    }
    if (!(unit > 0))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0,
                           "\"%s\" must be a time such as \"30d\", \"12h\", \"10min\" or \"20s\"", key);
    if (!(number >= 0)) return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "\"%s\" must not be negative", key);
    const double most = ft__keys[FT_KEY_ID_DEADLINE_DAYS].high;
    if (!(number * unit <= most * DAY_S))
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "\"%s\" must be at most %.0f days", key, most);
    *out = number * unit;
    return FT_OK;
}

/* -- GPUs -------------------------------------------------------------------------------------- */

static ft_status read_words(const json_t *object, const char *key, const char **out, size_t most, size_t *count,
                            ft_error *err)
{
    const json_t *value = json_object_get(object, key);
    size_t items = json_is_array(value) ? json_array_size(value) : value ? 1 : 0;
    if (items > most) return ft__fail_at(err, FT_E_RANGE, key, 0, 0, "\"%s\" names at most %zu", key, most);
    if (value && !items) return ft__fail_at(err, FT_E_RANGE, key, 0, 0, "\"%s\" must not be an empty list", key);
    for (size_t i = 0; i < items; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(one))
            return ft__fail_at(err, FT_E_TYPE, key, 0, 0, "\"%s\" must be a name or a list of names", key);
        bool again = false; /* a name that is said twice is one choice */
        for (size_t k = 0; k < *count; k++) again = again || !strcmp(out[k], json_string_value(one));
        if (!again) out[(*count)++] = json_string_value(one);
    }
    return FT_OK;
}

static void add_count(ft_choose_request *r, int64_t gpus)
{
    for (size_t i = 0; i < r->count_count; i++)
        if (r->counts[i] == gpus) return;
    r->counts[r->count_count++] = gpus;
}

static bool trains_adapters(const json_t *object)
{
    return ft__key_get(object, FT_KEY_ID_LORA_RANK) || ft__key_get(object, FT_KEY_ID_LORA);
}

/* A number of GPUs up to the next ',' or ':', written as any other whole number is: 8, 1e3. Moves *at behind it. */
static bool count_at(const char **at, int64_t *out)
{
    char text[32];
    *out = 0;
    *at += strspn(*at, " ");
    size_t length = strcspn(*at, ",:"), kept = length;
    while (kept > 0 && (*at)[kept - 1] == ' ') kept--;
    if (kept >= sizeof text) return false;
    memcpy(text, *at, kept);
    text[kept] = '\0';
    *at += length;
    return ft__whole_parse(text, out) && *out >= 1 && *out <= MOST_GPUS;
}

static ft_status read_counts(const json_t *object, ft_choose_request *r, ft_error *err)
{
    const json_t *value = ft__key_get(object, FT_KEY_ID_CHOOSE_GPUS);
    if (!value) {
        bool few = trains_adapters(object);
        int64_t most = (int64_t)(few ? FT_K_CHOOSE_ADAPTER_MOST : FT_K_CHOOSE_MOST);
        int64_t gpus = (int64_t)(few ? FT_K_CHOOSE_ADAPTER_FEWEST : FT_K_CHOOSE_FEWEST);
        for (; gpus <= most; gpus *= 2) r->counts[r->count_count++] = gpus;
        return FT_OK;
    }
    size_t items = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; !json_is_string(value) && i < items; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        int64_t number = 0;
        if (!ft__json_is_whole(one, &number) || number < 1 || number > MOST_GPUS || i == FT_CHOOSE_COUNTS)
            return ft__fail_at(err, FT_E_RANGE, "gpus", 0, 0,
                               "\"gpus\" must be whole numbers from 1 to 2^20, at most %d of them", FT_CHOOSE_COUNTS);
        add_count(r, number);
    }
    if (!items) return ft__fail_at(err, FT_E_RANGE, "gpus", 0, 0, "\"gpus\" must not be an empty list");
    if (!json_is_string(value)) return FT_OK;
    const char *said = json_string_value(value);
    for (const char *at = said; strchr(said, ',');) { /* as a command line lists them */
        int64_t one;
        if (!count_at(&at, &one) || (*at && *at != ',') || r->count_count == FT_CHOOSE_COUNTS)
            return ft__fail_at(err, FT_E_RANGE, "gpus", 0, 0,
                               "\"gpus\" must be whole numbers from 1 to 2^20, at most %d of them, got \"%.40s\"",
                               FT_CHOOSE_COUNTS, said);
        add_count(r, one);
        if (!*at++) return FT_OK;
    }
    const char *at = said;
    int64_t low, high;
    bool read = count_at(&at, &low);
    high = low;
    if (read && *at == ':') {
        at++;
        read = count_at(&at, &high);
    }
    if (!read || *at || high < low)
        return ft__fail_at(err, FT_E_RANGE, "gpus", 0, 0,
                           "\"gpus\" must be a number, a list or a range from 1 to 2^20, such as \"8:512\", got "
                           "\"%.40s\"",
                           said);
    for (int64_t n = low; r->count_count < FT_CHOOSE_COUNTS; n *= 2) {
        r->counts[r->count_count++] = n < high ? n : high;
        if (n >= high) break;
    }
    return FT_OK;
}

/* -- money ------------------------------------------------------------------------------------- */

/* "a=1,b=2" of a command line as {"a": 1, "b": 2}: numbers where they are, words where not; what is given again
 * replaces what was. NULL: no such text. */
static json_t *pairs_of(const char *text)
{
    json_t *object = *text ? json_object() : NULL;
    for (const char *at = text; object && *at;) {
        char part[160] = "";
        size_t length = strcspn(at, ",");
        double number;
        if (length < sizeof part) memcpy(part, at, length);
        char *value = strchr(part, '=');
        if (value) *value++ = '\0';
        json_t *one = !value ? NULL : ft__number_parse(value, &number) ? json_real(number) : json_string(value);
        if (!one || json_object_set_new(object, part, one) != 0) {
            json_decref(object);
            return NULL;
        }
        at += length + (at[length] == ',');
        at += strspn(at, " ");
    }
    return object;
}

static ft_status read_prices(const json_t *object, ft_key_id key, ft_choose_request *r, ft_error *err)
{
    const char *gpu;
    json_t *value, *prices = ft__key_get(object, key);
    if (!prices) return FT_OK;
    if (json_is_string(prices)) {
        const char *said = json_string_value(prices);
        prices = r->typed[0] = pairs_of(said);
        if (!prices)
            return ft__fail_at(err, FT_E_TYPE, "price", 0, 0,
                               "\"price\" is GPU=DOLLARS between commas, an hour of one GPU: "
                               "\"h100_sxm=2.1,l40s=0.9\"; got \"%.*s\"",
                               (int)ft__utf8_cut(said, 60), said);
    }
    if (!json_is_object(prices))
        return ft__fail_at(err, FT_E_TYPE, "price", 0, 0,
                           "\"price\" must be an object of dollars per GPU and hour: {\"h100_sxm\": 2.1}; as a "
                           "text \"h100_sxm=2.1\"");
    json_object_foreach (prices, gpu, value) {
        if (json_is_string(value))
            return ft__fail_at(
                err, FT_E_TYPE, "price", 0, 0,
                "the price of \"%.60s\" must be a plain number of US dollars an hour, such as 2.1; got \"%.40s\": no "
                "other currency or unit is known",
                gpu, json_string_value(value));
        if (!json_is_number(value))
            return ft__fail_at(err, FT_E_TYPE, "price", 0, 0, "the price of \"%.60s\" must be a number of US dollars",
                               gpu);
        if (!(json_number_value(value) >= 0))
            return ft__fail_at(err, FT_E_RANGE, "price", 0, 0, "the price of \"%.60s\" must not be negative", gpu);
        const double most = ft__keys[FT_KEY_ID_CHOOSE_BUDGET].high;
        if (!(json_number_value(value) <= most))
            return ft__fail_at(err, FT_E_RANGE, "price", 0, 0, "the price of \"%.60s\" must be at most %g dollars", gpu,
                               most);
        if (r->price_count == COUNT(r->price))
            return ft__fail_at(err, FT_E_RANGE, "price", 0, 0, "\"price\" names at most %d GPUs", FT_CHOOSE_GPUS);
        r->price[r->price_count].gpu = gpu;
        r->price[r->price_count++].usd = json_number_value(value);
    }
    return FT_OK;
}

static ft_status read_failures(const json_t *object, ft_choose_request *r, ft_error *err)
{
    static const ft_section section = FT_SECTION_FAILURES;
    const json_t *said = ft__key_get(object, FT_KEY_ID_FAILURES);
    ft_failures *f = &r->failures;
    ft_said each;
    *f = ft__failures_usual();
    if (!said) return FT_OK;
    if (json_is_string(said) && !strcmp(json_string_value(said), "none")) {
        *f = ft__failures_none();
        return FT_OK;
    }
    if (json_is_string(said)) said = r->typed[1] = pairs_of(json_string_value(said));
    if (!json_is_object(said))
        return ft__fail_at(err, FT_E_TYPE, "failures", 0, 0,
                           "\"failures\" must be \"none\" or an object: {\"rate\": 4e-3, \"restart\": \"10min\", "
                           "\"save\": \"20s\"}; as a text \"rate=4e-3,restart=10min,save=20s\"");
    ft__said_init(&each);
    FT_TRY(ft__keys_known(said, &section, 1, err));
    FT_TRY(ft__said_read(said, section, &each, err));
    if (ft__given(&each, FT_KEY_ID_FAILURE_RATE))
        f->per_node_day = f->low = f->high = ft__real_of(&each, FT_KEY_ID_FAILURE_RATE);
    if (ft__given(&each, FT_KEY_ID_FAILURE_STORAGE)) f->storage_gbps = ft__real_of(&each, FT_KEY_ID_FAILURE_STORAGE);
    FT_TRY(read_seconds(said, "restart", "failures.restart", 1, &f->restart_s, err));
    FT_TRY(read_seconds(said, "save", "failures.save", 1, &f->save_s, err));
    FT_TRY(read_seconds(said, "interval", "failures.interval", 1, &f->interval_s, err));
    if (ft__key_get(said, FT_KEY_ID_FAILURE_INTERVAL) && !(f->interval_s > 0))
        return ft__fail_at(err, FT_E_RANGE, "failures.interval", 0, 0,
                           "\"interval\" must be some time between two saves");
    return FT_OK;
}

static ft_status read_today(const char *date, ft_choose_request *r, ft_error *err)
{
    r->today = ft__today();
    if (date && !ft__day_of(date, &r->today))
        return ft__fail_at(err, FT_E_RANGE, "today", 0, 0,
                           "\"today\" must be a date such as \"2026-11-16\", got "
                           "\"%.40s\"",
                           date);
    return FT_OK;
}

/* -- the whole --------------------------------------------------------------------------------- */

int64_t ft__usual_global_batch(int64_t seq, int64_t gpus, bool adapters)
{
    double tokens = adapters ? FT_K_CHOOSE_ADAPTER_STEP_TOKENS : FT_K_CHOOSE_STEP_TOKENS;
    int64_t batch = (int64_t)tokens / (seq > 0 ? seq : (int64_t)FT_K_CHOOSE_SEQ), fitting = gpus;
    while (fitting % 2 == 0) fitting /= 2; /* data ranks divide the batch: 480 GPUs take 15 times a power of two */
    while (fitting * 2 <= batch) fitting *= 2;
    while (fitting < gpus) fitting *= 2;
    return fitting;
}

static int64_t odd_part(int64_t n)
{
    while (n > 0 && n % 2 == 0) n /= 2;
    return n;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* What a batch for all these numbers of GPUs must be a multiple of, so that any data ranks divide it: of 1000 GPUs 125
 * times a power of two. Numbers that have nothing in common would ask for too much: then a power of two, and those that
 * it does not suit have fewer layouts. */
static int64_t divided_by_all(const ft_choose_request *r, int64_t usual)
{
    int64_t odd = 1, twos = 1, most = 1;
    for (size_t i = 0; i < r->count_count; i++) {
        const int64_t count = r->counts[i], own = odd_part(count);
        while (most < count) most *= 2;
        if (count / own > twos) twos = count / own;
        if (odd <= FT_MOST_RANKS) odd *= own / common_divisor(odd, own);
    }
    if (r->count_count == 1) return r->counts[0];
    return odd > 1 && odd * twos <= 2 * usual && odd <= FT_MOST_RANKS ? odd * twos : most;
}

/* Left open, a step trains on about as many tokens as large runs do, or as runs of adapters; the same for every number
 * of GPUs. */
static ft_status settle_batch(const json_t *object, int64_t asked, ft_choose_request *r, ft_error *err)
{
    int64_t seq = 0;
    const bool adapters = trains_adapters(object);
    FT_TRY(ft__json_whole(object, FT_KEY(SEQ), FT_OPTIONAL, 1, (int64_t)1 << 40, &seq, "", err));
    const int64_t gpus = divided_by_all(r, ft__usual_global_batch(seq, 1, adapters));
    if (!ft__key_set(r->base, FT_KEY_ID_PLAN_GLOBAL,
                     json_integer(asked > 0 ? asked : ft__usual_global_batch(seq, gpus, adapters))))
        return ft__no_memory(err);
    return FT_OK;
}

/* Keys with two names: which of them is said. Both at once are an error. */
static ft_status either(const ft_said *said, ft_key_id id, ft_key_id other, ft_key_id *out, ft_error *err)
{
    *out = ft__given(said, other) ? other : id;
    if (!ft__given(said, id) || !ft__given(said, other)) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, ft__keys[other].key, 0, 0, "\"%s\" and \"%s\" are the same key: leave one out",
                       ft__keys[other].key, ft__keys[id].key);
}

/* What a choice for training and one for serving have in common. */
static ft_status read_terms(const json_t *object, const ft_said *said, ft_choose_request *out, ft_error *err)
{
    double deadline_s = 0;
    ft_key_id deadline, budget, price, kwh, carbon;
    FT_TRY(either(said, FT_KEY_ID_DEADLINE, FT_KEY_ID_DEADLINE_DAYS, &deadline, err));
    FT_TRY(either(said, FT_KEY_ID_CHOOSE_BUDGET, FT_KEY_ID_BUDGET_USD, &budget, err));
    FT_TRY(either(said, FT_KEY_ID_OWN_PRICE, FT_KEY_ID_OWN_PRICES, &price, err));
    FT_TRY(either(said, FT_KEY_ID_KWH_PRICE, FT_KEY_ID_KWH_USD, &kwh, err));
    FT_TRY(either(said, FT_KEY_ID_CARBON, FT_KEY_ID_CARBON_KG, &carbon, err));
    FT_TRY(read_words(object, "gpu", out->gpu, COUNT(out->gpu), &out->gpu_count, err));
    FT_TRY(read_seconds(object, "deadline", "deadline", DAY_S, &deadline_s, err));
    out->deadline_days = deadline == FT_KEY_ID_DEADLINE ? deadline_s / DAY_S : ft__real_of(said, deadline);
    if (ft__given(said, deadline) && !(out->deadline_days > 0))
        return ft__fail_at(err, FT_E_RANGE, ft__keys[deadline].key, 0, 0, "\"%s\" must be later than the first step",
                           ft__keys[deadline].key);
    out->budget_usd = ft__real_of(said, budget);
    if (ft__given(said, budget) && !(out->budget_usd > 0))
        return ft__fail_at(err, FT_E_RANGE, ft__keys[budget].key, 0, 0, "\"%s\" must be above 0: no GPU is free",
                           ft__keys[budget].key);
    FT_TRY(read_words(object, "provider", out->provider, COUNT(out->provider), &out->provider_count, err));
    for (size_t i = 0; i < out->provider_count; i++) FT_TRY(ft__provider_check(out->provider[i], err));
    FT_TRY(read_prices(object, price, out, err));
    out->pricing = (ft_pricing)ft__word_of(said, FT_KEY_ID_PRICING);
    out->pue = ft__given(said, FT_KEY_ID_PUE) ? ft__real_of(said, FT_KEY_ID_PUE) : FT_K_CHOOSE_PUE;
    out->kg_per_kwh = ft__given(said, carbon) ? ft__real_of(said, carbon) : FT_K_CHOOSE_KG_PER_KWH;
    if (ft__given(said, kwh)) out->kwh_price = ft__real_of(said, kwh);
    out->goal = (ft_choose_goal)ft__word_of(said, FT_KEY_ID_CHOOSE_GOAL);
    return read_today(ft__given(said, FT_KEY_ID_TODAY) ? said->at[FT_KEY_ID_TODAY].text : NULL, out, err);
}

ft_status ft__choose_request_read(const json_t *object, ft_choose_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_choose_request){0};
    FT_TRY(ft__study_read(object, FT_ASK_CHOOSE, &out->base, &said, err));
    if (!ft__key_set(out->base, FT_KEY_ID_TASK, json_string("plan")) ||
        !ft__key_set(out->base, FT_KEY_ID_PLAN_TOP, json_integer(1)))
        return ft__no_memory(err);
    if (!ft__given(&said, FT_KEY_ID_CHOOSE_TOKENS))
        return ft__fail_at(err, FT_E_MISSING, "tokens", 0, 0, "\"tokens\" is missing: those of the whole run");
    out->tokens = ft__real_of(&said, FT_KEY_ID_CHOOSE_TOKENS);
    FT_TRY(read_counts(object, out, err));
    FT_TRY(read_terms(object, &said, out, err));
    FT_TRY(read_failures(object, out, err));
    return settle_batch(
        object, ft__given(&said, FT_KEY_ID_CHOOSE_GLOBAL) ? ft__whole_of(&said, FT_KEY_ID_CHOOSE_GLOBAL) : 0, out, err);
}

ft_status ft__choose_serve_request_read(const json_t *object, ft_choose_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_choose_request){0};
    FT_TRY(ft__study_read(object, FT_ASK_CHOOSE_SERVE, &out->base, &said, err));
    if (!ft__key_set(out->base, FT_KEY_ID_TASK, json_string("plan_serve"))) return ft__no_memory(err);
    bool rate = ft__key_get(object, FT_KEY_ID_RATE);
    if (ft__key_get(object, FT_KEY_ID_CHOOSE_GPUS)) FT_TRY(read_counts(object, out, err));
    FT_TRY(read_terms(object, &said, out, err));
    if (!rate && !ft__key_get(object, FT_KEY_ID_REQUESTS))
        return ft__fail_at(
            err, FT_E_MISSING, "rate", 0, 0,
            "\"rate\" is missing: requests per second of a service; or \"requests\", how many a job has");
    FT_TRY(ft__json_number(object, FT_KEY(REQUESTS), FT_OPTIONAL, 1, 1e9, &out->requests, "", err));
    ft__key_drop(out->base, FT_KEY_ID_REQUESTS);
    if (rate && (out->deadline_days > 0 || out->requests > 0))
        return ft__fail_at(err, FT_E_RANGE, out->requests > 0 ? "requests" : "deadline", 0, 0,
                           "requests that come at a \"rate\" have no end: leave \"%s\" out, or \"rate\"",
                           out->requests > 0 ? "requests" : "deadline");
    return FT_OK;
}

void ft__choose_request_free(ft_choose_request *r)
{
    json_decref(r->base);
    json_decref(r->typed[0]);
    json_decref(r->typed[1]);
    r->base = r->typed[0] = r->typed[1] = NULL;
}
