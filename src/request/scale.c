/* scale.c: reading a request for scaling. */
#include "request/scale.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const own[] = {"task", "gpus"};

static ft_status read_degrees(ft_scale_request *out, ft_error *err)
{
    int64_t zero = -1;
    const struct {
        const char *key;
        int64_t *at;
    } degrees[] = {{"tp", &out->tp}, {"pp", &out->pp}, {"vpp", &out->vpp}, {"cp", &out->cp}, {"ep", &out->ep}};
    for (size_t i = 0; i < COUNT(degrees); i++) {
        *degrees[i].at = 1;
        if (!out->parallel) continue;
        FT_TRY(ft__json_whole(out->parallel, degrees[i].key, FT_OPTIONAL, 1, 65536, degrees[i].at, "parallel", err));
    }
    if (out->parallel) FT_TRY(ft__json_whole(out->parallel, "zero", FT_OPTIONAL, 0, 3, &zero, "parallel", err));
    out->zero = zero >= 0 ? (int)zero : out->pp > 1 ? 1 : 3; /* a pipeline would gather for every micro-batch */
    return FT_OK;
}

ft_status ft__scale_request_read(const json_t *object, ft_scale_request *out, ft_error *err)
{
    *out = (ft_scale_request){.base = ft__study_base(object, own, COUNT(own)), .batch = 1};
    if (!out->base) return ft__fail(err, FT_E_MEMORY, "out of memory");
    out->parallel = json_object_get(object, "parallel");
    if (out->parallel && !json_is_object(out->parallel))
        return ft__fail_at(err, FT_E_TYPE, "parallel", 0, 0, "\"parallel\" must be an object: {\"tp\": 8}");
    FT_TRY(read_degrees(out, err));
    FT_TRY(ft__json_whole(object, "batch", FT_OPTIONAL, 1, 1 << 20, &out->batch, "", err));
    FT_TRY(ft__json_whole(object, "global_batch", FT_OPTIONAL, 1, (int64_t)1 << 40, &out->global, "", err));
    FT_TRY(ft__json_whole(object, "gpus", FT_OPTIONAL, 2, FT_SCALE_MOST_GPUS, &out->gpus, "", err));
    const json_t *cluster = json_object_get(object, "cluster");
    if (json_is_object(cluster))
        FT_TRY(ft__json_whole(cluster, "nodes", FT_OPTIONAL, 1, FT_SCALE_MOST_GPUS, &out->nodes, "cluster", err));
    /* Who trains on many GPUs fuses norms and activations; left alone they would be most of a layer cut eight ways. */
    if (json_object_get(out->base, "execution") || json_object_get(out->base, "stack")) return FT_OK;
    return json_object_set_new(out->base, "execution", json_string("fused")) == 0
               ? FT_OK
               : ft__fail(err, FT_E_MEMORY, "out of memory");
}

void ft__scale_request_free(ft_scale_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}

ft_status ft__scale_request_explain(ft_status status, ft_error *err)
{
    return ft__study_nearest(status, own, COUNT(own), err);
}
