/* serve.c: reading a request for serving under load. */
#include "request/serve.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "request/keys.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Ranks of one engine, by the keys of one side of a disaggregated one: `parallel` has them too. */
static ft_status read_layout(const json_t *object, const char *where, ft_engine_layout *out, int64_t *workers,
                             ft_error *err)
{
    ft_said said;
    ft__said_init(&said);
    FT_TRY(ft__said_read_at(object, FT_SECTION_SIDE, where, &said, err));
    *out = (ft_engine_layout){.tp = ft__whole_of(&said, FT_KEY_ID_SIDE_TP),
                              .pp = ft__whole_of(&said, FT_KEY_ID_SIDE_PP),
                              .dp = ft__whole_of(&said, FT_KEY_ID_SIDE_DP),
                              .ep = ft__whole_of(&said, FT_KEY_ID_SIDE_EP),
                              .cp = ft__whole_of(&said, FT_KEY_ID_SIDE_CP)};
    if (workers) *workers = ft__whole_of(&said, FT_KEY_ID_SIDE_WORKERS);
    if (out->tp * out->dp % out->ep) {
        char key[80];
        snprintf(key, sizeof key, "%s.ep", where);
        return ft__fail_at(err, FT_E_RANGE, key, 0, 0,
                           "\"ep\" %lld must divide tp x dp, %lld: experts are spread over the ranks of one engine",
                           (long long)out->ep, (long long)out->tp * out->dp);
    }
    return FT_OK;
}

static ft_status read_parallel(const json_t *object, ft_serve_request *out, ft_error *err)
{
    static const char *const parts[] = {"tp", "pp", "dp", "ep", "cp"}; /* of the keys of a layout, an engine's */
    const json_t *p = ft__key_get(object, FT_KEY_ID_PARALLEL);
    if (p && !json_is_object(p))
        return ft__fail_at(err, FT_E_TYPE, "parallel", 0, 0, "\"parallel\" must be an object: {\"tp\": 4}");
    if (p) FT_TRY(ft__json_known_keys(p, parts, COUNT(parts), "parallel", err));
    out->layout = (ft_engine_layout){1, 1, 1, 1, 1};
    return p ? read_layout(p, "parallel", &out->layout, NULL, err) : FT_OK;
}

/* "0.8:1" of the command line, or [0.8, 1]. */
static ft_status read_range(const json_t *object, ft_serve_request *out, ft_error *err)
{
    const json_t *range = ft__key_get(object, FT_KEY_ID_LENGTH_RANGE);
    const char *text = json_string_value(range);
    out->range[0] = out->range[1] = 1;
    if (!range) return FT_OK;
    out->range_given = true;
    bool fine = json_is_array(range) && json_array_size(range) == 2 && json_is_number(json_array_get(range, 0)) &&
                json_is_number(json_array_get(range, 1));
    if (fine)
        for (size_t i = 0; i < 2; i++) out->range[i] = json_number_value(json_array_get(range, i));
    const char *colon = text ? strchr(text, ':') : NULL;
    char first[32] = "";
    if (colon && (size_t)(colon - text) < sizeof first) {
        memcpy(first, text, (size_t)(colon - text));
        fine = ft__number_parse(first, &out->range[0]) && ft__number_parse(colon + 1, &out->range[1]);
    }
    fine = fine && out->range[0] >= 0 && out->range[0] <= out->range[1] && out->range[1] > 0 && out->range[1] <= 1000;
    if (!fine)
        return ft__fail_at(err, FT_E_RANGE, "length_range", 0, 0,
                           "\"length_range\" must be two shares, the smaller first: [0.8, 1.0]");
    const ft_key_id lengths[] = {FT_KEY_ID_SERVE_ISL, FT_KEY_ID_SERVE_OSL};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const ft_key_row *k = &ft__keys[lengths[i]];
        double longest = out->range[1] * ft__real_of(&out->said, lengths[i]);
        if (longest > k->high)
            return ft__fail_at(err, FT_E_RANGE, "length_range", 0, 0,
                               "\"length_range\" up to %g makes \"%s\" up to %g tokens; at most %g are simulated",
                               out->range[1], k->key, longest, k->high);
    }
    return FT_OK;
}

/* {"tokens": 3, "accepted": 2.3}, or "3:2.3". */
static ft_status read_speculation(const json_t *object, ft_serve_request *out, ft_error *err)
{
    const json_t *s = ft__key_get(object, FT_KEY_ID_SPECULATIVE);
    const char *text = json_string_value(s);
    out->accepted = 1;
    if (!s) return FT_OK;
    if (json_is_object(s)) {
        FT_TRY(ft__said_inside(object, FT_SECTION_SPECULATIVE, "", &out->said, err));
        FT_TRY(ft__json_number(s, FT_KEY(DRAFTS), FT_REQUIRED, 1, 64, &out->drafts, "speculative", err));
        return ft__json_number(s, FT_KEY(ACCEPTED), FT_REQUIRED, 1, out->drafts + 1, &out->accepted, "speculative",
                               err);
    }
    const char *colon = text ? strchr(text, ':') : NULL;
    char first[32] = "";
    if (colon && (size_t)(colon - text) < sizeof first) {
        memcpy(first, text, (size_t)(colon - text));
        if (ft__number_parse(first, &out->drafts) && ft__number_parse(colon + 1, &out->accepted) && out->drafts >= 1 &&
            out->drafts <= 64 && out->accepted >= 1 && out->accepted <= out->drafts + 1)
            return FT_OK;
    }
    return ft__fail_at(err, FT_E_TYPE, "speculative", 0, 0,
                       "\"speculative\" must be {\"tokens\": 3, \"accepted\": 2.3}: draft tokens per step, and tokens "
                       "that the step yields, from 1 to one more than the drafts");
}

/* "mtp": 3, or "draft": a model, and "acceptance": how often a draft is kept. */
static ft_status read_drafts(const json_t *object, ft_serve_request *out, ft_error *err)
{
    const ft_said *said = &out->said;
    bool own = ft__whole_of(said, FT_KEY_ID_SERVED_MTP) > 0;
    out->draft = ft__key_get(object, FT_KEY_ID_DRAFT);
    out->acceptance = ft__given(said, FT_KEY_ID_ACCEPTANCE) ? ft__real_of(said, FT_KEY_ID_ACCEPTANCE) : -1;
    int ways = own + (out->draft != NULL) + (ft__key_get(object, FT_KEY_ID_SPECULATIVE) != NULL);
    if (ways > 1)
        return ft__fail_at(err, FT_E_RANGE, own ? "mtp" : "draft", 0, 0,
                           "give at most one of \"speculative\", \"mtp\" and \"draft\", which say what makes draft "
                           "tokens; got several");
    if (out->acceptance >= 0 && !own && !out->draft)
        return ft__fail_at(err, FT_E_RANGE, "acceptance", 0, 0,
                           "\"acceptance\" needs drafts: set \"mtp\" or \"draft\"");
    if (ft__given(said, FT_KEY_ID_DRAFT_TOKENS) && !out->draft)
        return ft__fail_at(err, FT_E_RANGE, "draft_tokens", 0, 0,
                           "\"draft_tokens\" needs \"draft\", the model that makes them");
    if (!own && !out->draft) return FT_OK;
    out->own_drafts = own;
    out->drafts = (double)ft__whole_of(said, own ? FT_KEY_ID_SERVED_MTP : FT_KEY_ID_DRAFT_TOKENS);
    out->accepted = 0;
    return FT_OK;
}

static ft_status read_side(const json_t *disaggregated, ft_key_id id, ft_engine_layout *layout, int64_t *workers,
                           ft_error *err)
{
    char where[64];
    const char *name = ft__keys[id].key;
    const json_t *side = json_object_get(disaggregated, name);
    snprintf(where, sizeof where, "disaggregated.%s", name);
    if (!json_is_object(side))
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0, "\"%s\" is missing: {\"workers\": 1, \"tp\": 4}", name);
    FT_TRY(ft__keys_known_at(side, &(ft_section){FT_SECTION_SIDE}, 1, where, err));
    return read_layout(side, where, layout, workers, err);
}

static ft_status read_disaggregated(const json_t *object, ft_serve_request *out, ft_error *err)
{
    const json_t *d = ft__key_get(object, FT_KEY_ID_DISAGGREGATED);
    if (!d) return FT_OK;
    FT_TRY(ft__said_inside(object, FT_SECTION_DISAGGREGATED,
                           "{\"prefill\": {\"workers\": 1, \"tp\": 4}, \"decode\": {...}}", &out->said, err));
    if (out->layout.cp > 1)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "parallel.cp", 0, 0,
                           "\"cp\" here is for engines that prefill and decode; \"disaggregated\" has one for each "
                           "side");
    FT_TRY(read_side(d, FT_KEY_ID_PREFILL_SIDE, &out->prefill_layout, &out->prefill_workers, err));
    return read_side(d, FT_KEY_ID_DECODE_SIDE, &out->layout, &out->decode_workers, err);
}

/* "500ms", "1.5s", "500". */
static bool read_time(const char *text, size_t length, double *ms)
{
    char number[32];
    double unit = 1;
    if (length > 2 && !strncmp(text + length - 2, "ms", 2)) {
        length -= 2;
    } else if (length > 1 && text[length - 1] == 's') {
        length -= 1;
        unit = 1e3;
    }
    if (length == 0 || length >= sizeof number) return false;
    memcpy(number, text, length);
    number[length] = '\0';
    if (!ft__number_parse(number, ms)) return false;
    *ms *= unit;
    return *ms > 0 && *ms < 1e9;
}

static ft_status slo_text(const char *text, ft_serve_request *out, ft_error *err)
{
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        double *into = NULL;
        if (equals && equals - at == 4 && !strncmp(at, "ttft", 4)) into = &out->slo_ttft_ms;
        if (equals && equals - at == 4 && !strncmp(at, "tpot", 4)) into = &out->slo_tpot_ms;
        if (equals && equals - at == 3 && !strncmp(at, "e2e", 3)) into = &out->slo_e2e_ms;
        if (!into || !read_time(equals + 1, length - (size_t)(equals + 1 - at), into))
            return ft__fail_at(err, FT_E_RANGE, "slo", 0, 0,
                               "\"%.*s\" is not an objective; expected NAME=TIME, in ms where no unit follows: "
                               "ttft=500ms,tpot=30ms,e2e=20s",
                               (int)ft__utf8_cut(at, length < 60 ? length : 60), at);
        at += length + (at[length] == ',');
        at += strspn(at, " ");
    }
    return FT_OK;
}

static ft_status read_slo(const json_t *object, ft_serve_request *out, ft_error *err)
{
    const json_t *slo = ft__key_get(object, FT_KEY_ID_SLO);
    if (json_is_string(slo))
        FT_TRY(slo_text(json_string_value(slo), out, err));
    else
        FT_TRY(ft__said_inside(object, FT_SECTION_SLO, "{\"ttft_ms\": 500, \"tpot_ms\": 30}", &out->said, err));
    if (json_is_object(slo)) {
        out->slo_ttft_ms = ft__real_of(&out->said, FT_KEY_ID_SLO_TTFT);
        out->slo_tpot_ms = ft__real_of(&out->said, FT_KEY_ID_SLO_TPOT);
        out->slo_e2e_ms = ft__real_of(&out->said, FT_KEY_ID_SLO_E2E);
    }
    out->slo_share = ft__real_of(&out->said, FT_KEY_ID_SLO_SHARE);
    return FT_OK;
}

static ft_status check_load(const ft_serve_request *r, ft_error *err)
{
    int ways = ft__given(&r->said, FT_KEY_ID_CONCURRENCY) + ft__given(&r->said, FT_KEY_ID_RATE) +
               ft__given(&r->said, FT_KEY_ID_REQUEST_LOG);
    bool slo = r->slo_ttft_ms > 0 || r->slo_tpot_ms > 0 || r->slo_e2e_ms > 0;
    if (r->find != FT_FIND_NOTHING && !slo)
        return ft__fail_at(err, FT_E_MISSING, "slo", 0, 0, "\"find\" needs \"slo\": the highest load that meets what?");
    if (ways == 1 || (ways == 0 && r->find != FT_FIND_NOTHING)) return FT_OK;
    return ft__fail_at(err, ways ? FT_E_RANGE : FT_E_MISSING, "concurrency", 0, 0,
                       "give exactly one of \"concurrency\", \"rate\" and \"trace\"; got %s",
                       ways ? "several" : "none");
}

/* Two kinds of engines have layouts and numbers of their own. With clients the number of engines still says what each
 * is started for. */
static void note_split(const json_t *object, bool closed, ft_serve_request *r)
{
    static const ft_key_id degrees[] = {FT_KEY_ID_TP, FT_KEY_ID_PP, FT_KEY_ID_DP, FT_KEY_ID_EP};
    static const char why[] = "\"disaggregated\" says what each side has";
    const json_t *parallel = ft__key_get(object, FT_KEY_ID_PARALLEL);
    for (size_t i = 0; i < COUNT(degrees) && parallel; i++) ft__idle_note(&r->idle, parallel, degrees[i], why);
    if (!closed) ft__idle_note(&r->idle, object, FT_KEY_ID_REPLICAS, why);
}

/* Keys of a load or of an engine that this one does not have. */
static void note_idle(const json_t *object, ft_serve_request *r)
{
    const ft_said *said = &r->said;
    bool one = ft__whole_of(said, FT_KEY_ID_REPLICAS) < 2 && r->prefill_workers < 2 && r->decode_workers < 2;
    bool open = ft__given(said, FT_KEY_ID_RATE) || r->find == FT_FIND_RATE;
    bool closed = ft__given(said, FT_KEY_ID_CONCURRENCY) || r->find == FT_FIND_CONCURRENCY;
    bool slo = r->slo_ttft_ms > 0 || r->slo_tpot_ms > 0 || r->slo_e2e_ms > 0;
    ft__study_idle(FT_ASK_SERVE, r->base, &r->idle);
    if (!open) ft__idle_note(&r->idle, object, FT_KEY_ID_BURSTINESS, "requests do not come at a \"rate\"");
    static const ft_key_id of_clients[] = {FT_KEY_ID_TURNS, FT_KEY_ID_THINK_MS, FT_KEY_ID_SERVE_START};
    for (size_t i = 0; i < COUNT(of_clients) && !closed; i++)
        ft__idle_note(&r->idle, object, of_clients[i], "nobody waits for answers: there is no \"concurrency\"");
    if (one) ft__idle_note(&r->idle, object, FT_KEY_ID_ROUTING, "there is one engine");
    if (r->prefill_workers > 0) note_split(object, closed, r);
    if (ft__whole_of(said, FT_KEY_ID_ADAPTERS) < 1)
        ft__idle_note(&r->idle, object, FT_KEY_ID_SERVED_RANK, "\"adapters\" is 0");
    if (!slo && json_is_object(ft__key_get(object, FT_KEY_ID_SLO)))
        ft__idle_note(&r->idle, ft__key_get(object, FT_KEY_ID_SLO), FT_KEY_ID_SLO_SHARE, "\"slo\" names no time");
}

ft_status ft__serve_request_read(const json_t *object, ft_serve_request *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    FT_TRY(ft__study_read(object, FT_ASK_SERVE, &out->base, &out->said, err));
    ft__key_drop(out->base, FT_KEY_ID_PARALLEL); /* the engine's */
    out->engine = ft__key_get(object, FT_KEY_ID_SERVING_ENGINE);
    out->find = (ft_find)ft__word_of(&out->said, FT_KEY_ID_FIND);
    FT_TRY(read_parallel(object, out, err));
    FT_TRY(read_range(object, out, err));
    FT_TRY(read_speculation(object, out, err));
    FT_TRY(read_drafts(object, out, err));
    FT_TRY(read_disaggregated(object, out, err));
    FT_TRY(read_slo(object, out, err));
    note_idle(object, out);
    return check_load(out, err);
}

void ft__serve_request_free(ft_serve_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}
