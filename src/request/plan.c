/* plan.c: reading a request for a plan.
 *
 * Degrees are searched, so a plain `parallel` means "keep this": {"tp": 8} there is the same as in `search`. Keys of
 * `parallel` that are no degrees (overlap, cp_kind, ...) stay with the base. */
#include "request/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "layout/layout.h"
#include "request/keys.h"

/* -- what is searched -------------------------------------------------------------------------- */

typedef struct searched {
    ft_key_id id;
    ft_plan_set *set; /* of numbers; NULL: of words */
    unsigned *words;
} searched;

enum { SEARCHED = 10 };

static void list_searched(ft_plan_request *r, searched out[SEARCHED])
{
    const searched all[SEARCHED] = {{FT_KEY_ID_TRIED_TP, &r->tp, NULL},
                                    {FT_KEY_ID_TRIED_PP, &r->pp, NULL},
                                    {FT_KEY_ID_TRIED_VPP, &r->vpp, NULL},
                                    {FT_KEY_ID_TRIED_CP, &r->cp, NULL},
                                    {FT_KEY_ID_TRIED_EP, &r->ep, NULL},
                                    {FT_KEY_ID_TRIED_ETP, &r->etp, NULL},
                                    {FT_KEY_ID_TRIED_ZERO, &r->zero, NULL},
                                    {FT_KEY_ID_TRIED_BATCH, &r->batch, NULL},
                                    {FT_KEY_ID_TRIED_RECOMPUTE, NULL, &r->recompute},
                                    {FT_KEY_ID_TRIED_SCHEDULE, NULL, &r->schedules}};
    memcpy(out, all, sizeof all);
}

/* What is said of a search in `said` replaces what stands. */
static ft_status take(const ft_said *said, const searched *s, const char *where, ft_error *err)
{
    char path[64];
    if (!ft__given(said, s->id)) return FT_OK;
    snprintf(path, sizeof path, "%s%s%s", where, *where ? "." : "", ft__keys[s->id].key);
    if (s->words) return ft__tried_words_of(said, s->id, path, s->words, err);
    return ft__wholes_of(said, s->id, path, s->set->at, FT_PLAN_VALUES, &s->set->count, err);
}

/* One value, or several between bars: numbers where they are, words where not. */
static json_t *values_of(const char *text, size_t length)
{
    json_t *list = json_array();
    for (size_t at = 0; list && at < length;) {
        char one[64] = "";
        size_t end = at;
        int64_t number;
        while (end < length && text[end] != '|') end++;
        if (end - at < sizeof one) memcpy(one, text + at, end - at);
        json_t *value = ft__whole_parse(one, &number) ? json_integer(number) : json_string(one);
        if (json_array_append_new(list, value) != 0) {
            json_decref(list);
            return NULL;
        }
        at = end + 1;
    }
    return list;
}

/* "tp=4|8,recompute=full" of a command line as {"tp": [4, 8], "recompute": ["full"]}. */
static ft_status search_of(const char *text, json_t **out, ft_error *err)
{
    *out = json_object();
    if (!*out) return ft__no_memory(err);
    for (const char *at = text; at == text || *at;) {
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        size_t name = equals ? (size_t)(equals - at) : 0;
        char key[32] = "";
        if (!equals || name >= sizeof key)
            return ft__fail_at(err, FT_E_FORMAT, "search", 0, 0,
                               "\"search\" takes KEY=VALUE between commas, as tp=4,zero=1; got \"%.*s\"",
                               (int)ft__utf8_cut(at, length < 60 ? length : 60), at);
        memcpy(key, at, name);
        if (equals + 1 == at + length || equals[1] == '|' || at[length - 1] == '|')
            return ft__fail_at(err, FT_E_FORMAT, "search", 0, 0,
                               "\"%s\" lacks a value: write several with bars between them, as in "
                               "tp=4|8",
                               key);
        if (json_object_get(*out, key))
            return ft__fail_at(err, FT_E_FORMAT, "search", 0, 0,
                               "\"%s\" is given twice: write several values with bars between them, as in tp=4|8", key);
        if (json_object_set_new(*out, key, values_of(equals + 1, length - name - 1)) != 0) return ft__no_memory(err);
        at += length + (at[length] == ',');
        at += strspn(at, " "); /* as people write lists */
    }
    return FT_OK;
}

static ft_status data_ranks_follow(const char *where, ft_error *err)
{
    return ft__fail_at(err, FT_E_KEY, where, 0, 0, "\"dp\" follows from \"gpus\" and the other degrees: leave it out");
}

/* The same key as a plain request has it says nothing beside the search. */
static void note_beside(const json_t *object, ft_key_id tried, ft_plan_request *r)
{
    static const char why[] = "\"search\" says what is tried";
    const json_t *parallel = ft__key_get(object, FT_KEY_ID_PARALLEL);
    const ft_key_id degree = ft__key_find(FT_SECTION_PARALLEL, ft__keys[tried].key);
    if (degree != FT_KEY_COUNT && parallel) ft__idle_note(&r->idle, parallel, degree, why);
    if (tried == FT_KEY_ID_TRIED_BATCH) ft__idle_note(&r->idle, object, FT_KEY_ID_PLAN_BATCH, why);
    if (tried == FT_KEY_ID_TRIED_RECOMPUTE) ft__idle_note(&r->idle, object, FT_KEY_ID_PLAN_RECOMPUTE, why);
}

static ft_status read_search(const json_t *object, const json_t *search, ft_plan_request *r, ft_error *err)
{
    static const ft_section section = FT_SECTION_SEARCH;
    searched all[SEARCHED];
    ft_said said;
    ft__said_init(&said);
    if (json_is_string(search)) {
        FT_TRY(search_of(json_string_value(search), &r->typed, err));
        search = r->typed;
    }
    if (!search) return FT_OK;
    if (!json_is_object(search))
        return ft__fail_at(err, FT_E_TYPE, "search", 0, 0,
                           "\"search\" must be an object: {\"tp\": [4, 8], \"recompute\": \"auto\"}");
    if (ft__key_get(search, FT_KEY_ID_DP)) return data_ranks_follow("search.dp", err);
    FT_TRY(ft__keys_known(search, &section, 1, err));
    FT_TRY(ft__said_read(search, section, &said, err));
    list_searched(r, all);
    for (size_t i = 0; i < SEARCHED; i++) {
        if (ft__given(&said, all[i].id)) note_beside(object, all[i].id, r);
        FT_TRY(take(&said, &all[i], "search", err));
    }
    return FT_OK;
}

/* Degrees given as a plain request has them are kept as they stand. */
static ft_status keep_given(const json_t *object, const ft_said *top, ft_plan_request *r, ft_error *err)
{
    const json_t *parallel = ft__key_get(object, FT_KEY_ID_PARALLEL);
    searched all[SEARCHED];
    ft_said said;
    FT_TRY(ft__wholes_of(top, FT_KEY_ID_PLAN_BATCH, "batch", r->batch.at, FT_PLAN_VALUES, &r->batch.count, err));
    FT_TRY(ft__tried_words_of(top, FT_KEY_ID_PLAN_RECOMPUTE, "recompute", &r->recompute, err));
    if (!parallel) return FT_OK;
    if (!json_is_object(parallel))
        return ft__fail_at(err, FT_E_TYPE, "parallel", 0, 0, "\"parallel\" must be an object: {\"tp\": 8}");
    ft__idle_note(&r->idle, parallel, FT_KEY_ID_GPUS, "\"gpus\" beside \"parallel\" says how many there are");
    if (ft__key_get(parallel, FT_KEY_ID_DP)) return data_ranks_follow("parallel.dp", err);
    if (ft__key_get(parallel, FT_KEY_ID_SHARD))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.shard", 0, 0,
                           "plans shard over all data ranks: \"shard\" is forecast for a given layout, with the task "
                           "\"train\"");
    json_t *rest = ft__study_copy(parallel);
    if (!rest || !ft__key_set(r->base, FT_KEY_ID_PARALLEL, rest)) return ft__no_memory(err);
    ft__said_init(&said);
    FT_TRY(ft__said_read_at(parallel, FT_SECTION_SEARCH, "parallel", &said, err));
    list_searched(r, all);
    for (size_t i = 0; i < SEARCHED; i++) {
        if (ft__key_find(FT_SECTION_PARALLEL, ft__keys[all[i].id].key) == FT_KEY_COUNT) continue;
        FT_TRY(take(&said, &all[i], "parallel", err));
        ft__key_drop(rest, all[i].id);
    }
    return FT_OK;
}

/* -- the rest ---------------------------------------------------------------------------------- */

static ft_status read_allowed(const ft_said *said, ft_plan_request *r, ft_error *err)
{
    unsigned bits = 0;
    FT_TRY(ft__tried_words_of(said, FT_KEY_ID_ALLOW, "allow", &bits, err));
    r->allow_cp = bits & 1u;
    r->allow_ep = bits & 2u;
    r->allow_zero3 = bits & 4u;
    r->allow_offload = bits & 8u;
    r->allow_cp_kinds = bits & 16u;
    r->formats = bits >> 5;
    return FT_OK;
}

static ft_status read_emitted(const ft_said *said, ft_plan_request *r, ft_error *err)
{
    const json_t *value = said->at[FT_KEY_ID_EMIT].json;
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

static ft_status needed(const ft_said *said, ft_key_id id, const char *what, ft_error *err)
{
    const char *key = ft__keys[id].key;
    if (ft__given(said, id)) return FT_OK;
    return ft__fail_at(err, FT_E_MISSING, key, 0, 0, "\"%s\" is missing: %s", key, what);
}

ft_status ft__plan_request_read(const json_t *object, ft_plan_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_plan_request){0};
    FT_TRY(ft__study_read(object, FT_ASK_PLAN, &out->base, &said, err));
    if (!ft__key_set(out->base, FT_KEY_ID_TASK, json_string("train"))) return ft__no_memory(err);
    ft__study_note(FT_ASK_PLAN, out->base, &out->idle);
    FT_TRY(needed(&said, FT_KEY_ID_PLAN_GPUS, "how many there are, as 64", err));
    FT_TRY(needed(&said, FT_KEY_ID_PLAN_GLOBAL, "sequences that a step trains on, over all GPUs, as 256", err));
    out->gpus = ft__whole_of(&said, FT_KEY_ID_PLAN_GPUS);
    out->global = ft__whole_of(&said, FT_KEY_ID_PLAN_GLOBAL);
    if (ft__given(&said, FT_KEY_ID_FRAMEWORK)) out->framework = said.at[FT_KEY_ID_FRAMEWORK].text;
    out->top = ft__whole_of(&said, FT_KEY_ID_PLAN_TOP);
    out->exhaustive = ft__switch_of(&said, FT_KEY_ID_EXHAUSTIVE);
    out->by_gpus = ft__switch_of(&said, FT_KEY_ID_BY_GPUS);
    int goal = ft__word_of(&said, FT_KEY_ID_OBJECTIVE);
    out->goal = goal < FT_GOAL_COUNT ? (ft_plan_goal)goal : FT_GOAL_TIME; /* "time" is "step_ms" */
    FT_TRY(keep_given(object, &said, out, err));
    FT_TRY(read_search(object, said.at[FT_KEY_ID_SEARCH].json, out, err));
    FT_TRY(ft__said_inside(object, FT_SECTION_CONSTRAINTS, "{\"memory_margin\": 0.04}", &said, err));
    out->margin = ft__real_of(&said, FT_KEY_ID_MEMORY_MARGIN);
    FT_TRY(read_allowed(&said, out, err));
    return read_emitted(&said, out, err);
}

/* What is left of `parallel` without its degrees is about training, or the engine's own. */
static void note_left(ft_plan_request *r)
{
    const json_t *left = ft__key_get(r->base, FT_KEY_ID_PARALLEL);
    for (int k = 0; k < FT_KEY_COUNT && left; k++)
        if (ft__keys[k].section == FT_SECTION_PARALLEL)
            ft__idle_note(&r->idle, left, (ft_key_id)k, "of a layout, engines have only tp, pp, dp and ep");
}

ft_status ft__plan_serve_request_read(const json_t *object, ft_plan_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_plan_request){.framework = ""};
    FT_TRY(ft__study_read(object, FT_ASK_PLAN_SERVE, &out->base, &said, err));
    if (ft__given(&said, FT_KEY_ID_PLAN_GPUS)) out->gpus = ft__whole_of(&said, FT_KEY_ID_PLAN_GPUS);
    out->top = ft__whole_of(&said, FT_KEY_ID_PLAN_TOP);
    out->exhaustive = ft__switch_of(&said, FT_KEY_ID_EXHAUSTIVE);
    if (ft__key_get(ft__key_get(object, FT_KEY_ID_PARALLEL), FT_KEY_ID_GPUS))
        return ft__fail_at(err, FT_E_KEY, "parallel.gpus", 0, 0,
                           "how many GPUs a plan may have is \"gpus\" itself, not part of \"parallel\"");
    ft__study_note(FT_ASK_PLAN_SERVE, out->base, &out->idle);
    ft__idle_note(&out->idle, object, FT_KEY_ID_REQUESTS, "a plan simulates as many as it needs");
    FT_TRY(keep_given(object, &said, out, err));
    note_left(out);
    ft__key_drop(out->base, FT_KEY_ID_PARALLEL);
    FT_TRY(read_search(object, said.at[FT_KEY_ID_SEARCH].json, out, err));
    if (out->vpp.count || out->cp.count || out->etp.count || out->zero.count || out->batch.count || out->recompute ||
        out->schedules)
        return ft__fail_at(err, FT_E_KEY, "search", 0, 0,
                           "engines have tp, pp and ep; dp, replicas and settings follow");
    return read_emitted(&said, out, err);
}

void ft__plan_request_free(ft_plan_request *r)
{
    json_decref(r->base);
    json_decref(r->typed);
    r->base = r->typed = NULL;
}
