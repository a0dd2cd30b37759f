/* scale.c: reading a request for scaling. */
#include "request/scale.h"

#include "request/keys.h"

ft_status ft__scale_request_read(const json_t *object, ft_scale_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_scale_request){0};
    FT_TRY(ft__study_read(object, FT_ASK_SCALE, &out->base, &said, err));
    ft__study_idle(FT_ASK_SCALE, out->base, &out->idle);
    FT_TRY(ft__said_read(object, FT_SECTION_MODEL, &said, err));
    FT_TRY(ft__said_inside(object, FT_SECTION_PARALLEL, "{\"tp\": 8}", &said, err));
    out->parallel = ft__key_get(object, FT_KEY_ID_PARALLEL);
    out->tp = ft__whole_of(&said, FT_KEY_ID_TP);
    out->pp = ft__whole_of(&said, FT_KEY_ID_PP);
    out->vpp = ft__whole_of(&said, FT_KEY_ID_VPP);
    out->cp = ft__whole_of(&said, FT_KEY_ID_CP);
    out->ep = ft__whole_of(&said, FT_KEY_ID_EP);
    out->zero = out->pp > 1 ? 1 : 3; /* a pipeline would gather for every micro-batch */
    if (ft__given(&said, FT_KEY_ID_ZERO)) out->zero = (int)ft__whole_of(&said, FT_KEY_ID_ZERO);
    ft__idle_note(&out->idle, out->parallel, FT_KEY_ID_DP, "the curves go over data ranks");
    ft__idle_note(&out->idle, out->parallel, FT_KEY_ID_GPUS, "\"gpus\" beside \"parallel\" ends the curves");
    if (out->pp < 2) ft__idle_note(&out->idle, out->parallel, FT_KEY_ID_SCHEDULE, "\"pp\" is 1");
    if (out->cp < 2) ft__idle_note(&out->idle, out->parallel, FT_KEY_ID_CP_KIND, "\"cp\" is 1");
    if (out->cp < 2) ft__idle_note(&out->idle, out->parallel, FT_KEY_ID_ULYSSES, "\"cp\" is 1");
    if (out->ep < 2) ft__idle_note(&out->idle, out->parallel, FT_KEY_ID_EXPERT_OVERLAP, "\"ep\" is 1");
    out->batch = ft__whole_of(&said, FT_KEY_ID_MICRO_BATCH);
    out->global = ft__whole_of(&said, FT_KEY_ID_GLOBAL_BATCH);
    out->gpus = ft__whole_of(&said, FT_KEY_ID_SCALE_GPUS);
    const json_t *cluster = ft__key_get(object, FT_KEY_ID_CLUSTER);
    if (json_is_object(cluster)) FT_TRY(ft__said_read(cluster, FT_SECTION_CLUSTER, &said, err));
    out->nodes = ft__whole_of(&said, FT_KEY_ID_NODES);
    /* Who trains on many GPUs fuses norms and activations; left alone they would be most of a layer cut eight ways. */
    if (ft__key_get(out->base, FT_KEY_ID_EXECUTION) || ft__key_get(out->base, FT_KEY_ID_STACK)) return FT_OK;
    return ft__key_put(out->base, FT_KEY_ID_EXECUTION, json_string("fused")) ? FT_OK : ft__no_memory(err);
}

void ft__scale_request_free(ft_scale_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}
