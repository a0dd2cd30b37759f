/* step.c: one iteration of an engine by itself, for `infer`: every prompt or every sequence of a batch in it. */

#include "request/keys.h"
#include "serving/settle.h"

/* The base of an inference request has a layout of its own and keys of the framework's step. */
static ft_status read_base(const json_t *base, const json_t *engine, ft_serve_request *out, ft_error *err)
{
    static const ft_key_id others[] = {FT_KEY_ID_PARALLEL,    FT_KEY_ID_EXECUTION, FT_KEY_ID_CACHE,
                                       FT_KEY_ID_MICRO_BATCH, FT_KEY_ID_SEQ,       FT_KEY_ID_ADVICE,
                                       FT_KEY_ID_TECHNIQUES,  FT_KEY_ID_TASK};
    const json_t *p = ft__key_get(base, FT_KEY_ID_PARALLEL);
    *out = (ft_serve_request){.base = ft__study_copy(base), .engine = engine};
    if (!out->base) return ft__no_memory(err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) ft__key_drop(out->base, others[i]);
    ft__said_init(&out->said);
    out->layout = (ft_engine_layout){1, 1, 1, 1, 1};
    if (!p) return FT_OK;
    FT_TRY(ft__json_whole(p, FT_KEY(TP), FT_OPTIONAL, 1, 4096, &out->layout.tp, "parallel", err));
    FT_TRY(ft__json_whole(p, FT_KEY(EP), FT_OPTIONAL, 1, 4096, &out->layout.ep, "parallel", err));
    return FT_OK;
}

ft_status ft__serving_step(const ft_context *ft, ft_scratch *scratch, const json_t *base, const json_t *engine,
                           bool prefill, int64_t batch, int64_t seq, ft_infer_cell *out, ft_error *err)
{
    ft_serve_request r;
    ft_serving s = {0};
    double many = (double)batch, length = (double)seq;
    ft_status status = read_base(base, engine, &r, err);
    if (status == FT_OK) status = ft__settle_model(ft, scratch, &r, &s, err);
    if (status == FT_OK) {
        ft_iteration i = {.tokens_each = 1, .rows = many};
        s.costs.draft = NULL; /* one token of each */
        if (prefill) {
            i.prompts = many;
            i.prompt_tokens = many * length;
            i.prompt_ms = many * ft__prompt_ms(&s.costs, length);
        } else {
            i.decoders = many;
            i.context = many * length;
        }
        out->ms = ft__iteration_ms(&s.costs, &i);
        ft_bounds_ms b = ft__serving_bounds(&s, out->ms);
        out->low_ms = b.low;
        out->high_ms = b.high;
    }
    ft__serve_request_free(&r);
    ft__serving_free(&s);
    return status;
}
