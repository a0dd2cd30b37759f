/* infer.c: reading a request for inference over batches and lengths. */
#include "request/infer.h"

ft_status ft__infer_request_read(const json_t *object, ft_infer_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_infer_request){0};
    FT_TRY(ft__study_read(object, FT_ASK_INFER, &out->base, &said, err));
    ft__study_idle(FT_ASK_INFER, out->base, &out->idle);
    FT_TRY(ft__wholes_of(&said, FT_KEY_ID_INFER_BATCHES, "batch", out->batches, FT_INFER_SIDE, &out->batch_count, err));
    FT_TRY(ft__wholes_of(&said, FT_KEY_ID_INFER_SEQS, "seq", out->seqs, FT_INFER_SIDE, &out->seq_count, err));
    out->isl = ft__whole_of(&said, FT_KEY_ID_ISL);
    out->osl = ft__whole_of(&said, FT_KEY_ID_OSL);
    out->steps = ft__whole_of(&said, FT_KEY_ID_DENOISING_STEPS);
    out->guidance = ft__given(&said, FT_KEY_ID_GUIDANCE) ? ft__word_of(&said, FT_KEY_ID_GUIDANCE) : -1;
    out->tiling = ft__switch_of(&said, FT_KEY_ID_TILING);
    out->engine = said.at[FT_KEY_ID_INFER_ENGINE].json;
    out->advice = ft__switch_of(&said, FT_KEY_ID_INFER_ADVICE);
    out->techniques = ft__switch_of(&said, FT_KEY_ID_INFER_TECHNIQUES);
    return FT_OK;
}

void ft__infer_request_free(ft_infer_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}
