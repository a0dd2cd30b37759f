/* plan.c: reading a request for a plan.
 *
 * Degrees are searched, so a plain `parallel` means "keep this": {"tp": 8} there is the same as in `search`. Keys of
 * `parallel` that are no degrees (overlap, cp_kind, ...) stay with the base. */
#include "request/plan.h"

#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "layout/layout.h"
#include "request/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *const ft__plan_goals[FT_GOAL_COUNT] = {"step_ms", "memory"};

static const char *const own[] = {"task",        "gpus",         "framework",   "search",     "objective",
                                  "constraints", "top",          "emit",        "exhaustive", "allow",
                                  "batch",       "global_batch", "micro_batch", "recompute"};
static const char *const searched[] = {"tp", "pp", "vpp", "cp", "ep", "etp", "zero", "batch", "recompute", "schedule"};
enum { MOST_GPUS = 1 << 20 };

/* -- what is searched -------------------------------------------------------------------------- */

static ft_plan_set *set_of(ft_plan_request *r, const char *key)
{
    const struct {
        const char *key;
        ft_plan_set *set;
    } sets[] = {{"tp", &r->tp}, {"pp", &r->pp},   {"vpp", &r->vpp},   {"cp", &r->cp},
                {"ep", &r->ep}, {"etp", &r->etp}, {"zero", &r->zero}, {"batch", &r->batch}};
    for (size_t i = 0; i < COUNT(sets); i++)
        if (!strcmp(sets[i].key, key)) return sets[i].set;
    return NULL;
}

/* "auto", one of some words, or several of them. */
static ft_status read_words(const json_t *value, const char *key, const char *const *words, size_t count,
                            unsigned *bits, ft_error *err)
{
    char where[64];
    int word = 0;
    snprintf(where, sizeof where, "search.%s", key);
    size_t items = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < items; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        const char *said = json_string_value(one);
        if (!said)
            return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"%s\" must be \"auto\", a word or a list of words", key);
        if (!strcmp(said, "auto")) continue;
        FT_TRY(ft__request_word_said(said, where, key, words, count, &word, err));
        *bits |= 1u << word;
    }
    return FT_OK;
}

static ft_status read_set(const json_t *object, const char *where, const char *key, ft_plan_set *out, ft_error *err)
{
    const json_t *value = json_object_get(object, key);
    int64_t low = !strcmp(key, "zero") ? 0 : 1, high = !strcmp(key, "zero") ? 3 : MOST_GPUS;
    char path[64];
    snprintf(path, sizeof path, "%s.%s", where, key);
    if (json_is_string(value) && !strcmp(json_string_value(value), "auto")) return FT_OK;
    if (json_is_string(value))
        return ft__fail_at(err, FT_E_TYPE, path, 0, 0, "\"%s\" must be \"auto\", a number or a list of numbers", key);
    if (json_array_size(value) > FT_PLAN_VALUES || (json_is_array(value) && !json_array_size(value)))
        return ft__fail_at(err, FT_E_RANGE, path, 0, 0, "\"%s\" must be a number or a list of 1 to %d", key,
                           FT_PLAN_VALUES);
    ft_status status = ft__study_wholes(object, key, low, high, out->at, FT_PLAN_VALUES, &out->count, err);
    if (status != FT_OK && err && !strcmp(err->where, key)) snprintf(err->where, sizeof err->where, "%s", path);
    return status;
}

static ft_status read_search(const json_t *search, ft_plan_request *r, ft_error *err)
{
    const char *key;
    json_t *value;
    if (!search) return FT_OK;
    if (!json_is_object(search))
        return ft__fail_at(err, FT_E_TYPE, "search", 0, 0,
                           "\"search\" must be an object: {\"tp\": [4, 8], \"recompute\": \"auto\"}");
    FT_TRY(ft__json_known_keys(search, searched, COUNT(searched), "search", err));
    json_object_foreach ((json_t *)(uintptr_t)search, key, value) {
        ft_plan_set *set = set_of(r, key);
        if (set)
            FT_TRY(read_set(search, "search", key, set, err));
        else if (!strcmp(key, "recompute"))
            FT_TRY(read_words(value, key, ft__recompute_words, COUNT(ft__recompute_words), &r->recompute, err));
        else
            FT_TRY(read_words(value, key, ft__schedule_words, FT_SCHEDULE_COUNT, &r->schedules, err));
    }
    return FT_OK;
}

/* Degrees given as a plain request has them are kept as they stand. */
static ft_status keep_given(const json_t *object, ft_plan_request *r, ft_error *err)
{
    const json_t *parallel = json_object_get(object, "parallel");
    if (json_object_get(object, "batch")) FT_TRY(read_set(object, "", "batch", &r->batch, err));
    const json_t *recompute = json_object_get(object, "recompute");
    if (recompute)
        FT_TRY(read_words(recompute, "recompute", ft__recompute_words, COUNT(ft__recompute_words), &r->recompute, err));
    if (!parallel) return FT_OK;
    if (!json_is_object(parallel))
        return ft__fail_at(err, FT_E_TYPE, "parallel", 0, 0, "\"parallel\" must be an object: {\"tp\": 8}");
    if (json_object_get(parallel, "dp"))
        return ft__fail_at(err, FT_E_KEY, "parallel.dp", 0, 0,
                           "\"dp\" follows from \"gpus\" and the other degrees: leave it out");
    json_t *rest = ft__study_copy(parallel);
    if (!rest || json_object_set_new(r->base, "parallel", rest) != 0)
        return ft__fail(err, FT_E_MEMORY, "out of memory");
    for (size_t i = 0; i < COUNT(searched); i++) {
        const json_t *value = json_object_get(parallel, searched[i]);
        ft_plan_set *set = set_of(r, searched[i]);
        if (!value) continue;
        if (set)
            FT_TRY(read_set(parallel, "parallel", searched[i], set, err));
        else
            FT_TRY(read_words(value, searched[i], ft__schedule_words, FT_SCHEDULE_COUNT, &r->schedules, err));
        json_object_del(rest, searched[i]);
    }
    return FT_OK;
}

/* -- the rest ---------------------------------------------------------------------------------- */

static ft_status read_allowed(const json_t *object, ft_plan_request *r, ft_error *err)
{
    static const char *const words[] = {"cp", "ep", "zero3"};
    unsigned bits = 0;
    const json_t *value = json_object_get(object, "allow");
    if (value) FT_TRY(read_words(value, "allow", words, COUNT(words), &bits, err));
    r->allow_cp = bits & 1u;
    r->allow_ep = bits & 2u;
    r->allow_zero3 = bits & 4u;
    return FT_OK;
}

static ft_status read_emitted(const json_t *object, ft_plan_request *r, ft_error *err)
{
    const json_t *value = json_object_get(object, "emit");
    size_t count = json_is_array(value) ? json_array_size(value) : value ? 1 : 0;
    if (count > FT_PLAN_MOST_EMITTED)
        return ft__fail_at(err, FT_E_RANGE, "emit", 0, 0, "\"emit\" names at most %d files", FT_PLAN_MOST_EMITTED);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(one))
            return ft__fail_at(err, FT_E_TYPE, "emit", 0, 0, "\"emit\" must be a list of words: [\"megatron\"]");
        r->emit[r->emit_count++] = json_string_value(one);
    }
    return FT_OK;
}

static ft_status read_constraints(const json_t *object, ft_plan_request *r, ft_error *err)
{
    static const char *const known[] = {"memory_margin"};
    const json_t *constraints = json_object_get(object, "constraints");
    if (!constraints) return FT_OK;
    if (!json_is_object(constraints))
        return ft__fail_at(err, FT_E_TYPE, "constraints", 0, 0,
                           "\"constraints\" must be an object: {\"memory_margin\": 0.04}");
    FT_TRY(ft__json_known_keys(constraints, known, COUNT(known), "constraints", err));
    return ft__json_number(constraints, "memory_margin", FT_OPTIONAL, 0, 0.9, &r->margin, "constraints", err);
}

ft_status ft__plan_request_read(const json_t *object, ft_plan_request *out, ft_error *err)
{
    int goal = 0;
    *out = (ft_plan_request){.base = ft__study_base(object, own, COUNT(own)), .top = 5, .framework = "megatron"};
    if (!out->base) return ft__fail(err, FT_E_MEMORY, "out of memory");
    if (json_object_set_new(out->base, "task", json_string("train")) != 0)
        return ft__fail(err, FT_E_MEMORY, "out of memory");
    FT_TRY(ft__json_whole(object, "gpus", FT_REQUIRED, 1, MOST_GPUS, &out->gpus, "", err));
    FT_TRY(ft__json_whole(object, "global_batch", FT_REQUIRED, 1, (int64_t)1 << 40, &out->global, "", err));
    FT_TRY(ft__json_string(object, "framework", FT_OPTIONAL, &out->framework, "", err));
    FT_TRY(ft__json_whole(object, "top", FT_OPTIONAL, 1, FT_PLAN_MOST_TOP, &out->top, "", err));
    FT_TRY(ft__json_bool(object, "exhaustive", FT_OPTIONAL, &out->exhaustive, "", err));
    FT_TRY(ft__request_word(object, "objective", ft__plan_goals, FT_GOAL_COUNT, &goal, err));
    out->goal = (ft_plan_goal)goal;
    FT_TRY(keep_given(object, out, err));
    FT_TRY(read_search(json_object_get(object, "search"), out, err));
    FT_TRY(read_constraints(object, out, err));
    FT_TRY(read_allowed(object, out, err));
    return read_emitted(object, out, err);
}

void ft__plan_request_free(ft_plan_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}

ft_status ft__plan_request_explain(ft_status status, ft_error *err)
{
    return ft__study_nearest(status, own, COUNT(own), err);
}
