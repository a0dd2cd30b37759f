/* infer.c: reading a request for inference over batches and lengths. */
#include "request/infer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const own[] = {"task", "batch", "seq", "isl", "osl", "engine", "advice", "techniques"};

ft_status ft__infer_request_read(const json_t *object, ft_infer_request *out, ft_error *err)
{
    *out = (ft_infer_request){.base = ft__study_base(object, own, COUNT(own))};
    if (!out->base) return ft__fail(err, FT_E_MEMORY, "out of memory");
    FT_TRY(ft__study_wholes(object, "batch", 1, FT_LARGEST_SIZE, out->batches, FT_INFER_SIDE, &out->batch_count, err));
    FT_TRY(ft__study_wholes(object, "seq", 1, FT_LARGEST_SIZE, out->seqs, FT_INFER_SIDE, &out->seq_count, err));
    FT_TRY(ft__json_whole(object, "isl", FT_OPTIONAL, 1, 1 << 30, &out->isl, "", err));
    FT_TRY(ft__json_whole(object, "osl", FT_OPTIONAL, 1, 1 << 30, &out->osl, "", err));
    out->engine = json_object_get(object, "engine");
    FT_TRY(ft__json_bool(object, "advice", FT_OPTIONAL, &out->advice, "", err));
    return ft__json_bool(object, "techniques", FT_OPTIONAL, &out->techniques, "", err);
}

void ft__infer_request_free(ft_infer_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}

ft_status ft__infer_request_explain(ft_status status, ft_error *err)
{
    return ft__study_nearest(status, own, COUNT(own), err);
}
