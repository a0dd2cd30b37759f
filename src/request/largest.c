/* largest.c: reading a request for the largest model. */
#include "request/largest.h"

#include <string.h>

#include "request/keys.h"

/* Mixed precision with fp32 masters is how models are trained; "master_weights" and amp_* say otherwise. */
static bool set_defaults(const ft_largest_request *r)
{
    const char *dtype = json_string_value(ft__key_get(r->base, FT_KEY_ID_MODEL_DTYPE));
    bool low = !dtype || !strcmp(dtype, "bf16") || !strcmp(dtype, "fp16") || !strcmp(dtype, "fp8"), fine = true;
    bool said = ft__key_get(r->base, FT_KEY_ID_MASTER_WEIGHTS) || ft__key_get(r->base, FT_KEY_ID_STACK);
    if (r->training && low && !said) fine = ft__key_put(r->base, FT_KEY_ID_MASTER_WEIGHTS, json_true());
    if (!ft__key_get(r->base, FT_KEY_ID_SEQ)) fine = fine && ft__key_put(r->base, FT_KEY_ID_SEQ, json_integer(2048));
    if (!r->training && !ft__key_get(r->base, FT_KEY_ID_CACHE)) /* makes "memory" that of decoding */
        fine = fine && ft__key_put(r->base, FT_KEY_ID_CACHE, json_string("paged"));
    return fine;
}

ft_status ft__largest_request_read(const json_t *object, ft_largest_request *out, ft_error *err)
{
    ft_said said;
    *out = (ft_largest_request){0};
    if (ft__key_get(object, FT_KEY_ID_MODEL))
        return ft__fail_at(err, FT_E_KEY, "model", 0, 0, "\"largest\" makes its own models; choose their \"family\"");
    if (ft__key_get(object, FT_KEY_ID_PARALLEL))
        return ft__fail_at(err, FT_E_KEY, "parallel", 0, 0,
                           "\"largest\" lays its models out itself; say over how many \"gpus\"");
    FT_TRY(ft__study_read(object, FT_ASK_LARGEST, &out->base, &said, err));
    ft__study_idle(FT_ASK_LARGEST, out->base, &out->idle);
    out->gpus = ft__whole_of(&said, FT_KEY_ID_LARGEST_GPUS);
    out->tokens = ft__real_of(&said, FT_KEY_ID_LARGEST_TOKENS);
    out->gpt = ft__word_of(&said, FT_KEY_ID_SHAPES) == 1;
    out->training = ft__word_of(&said, FT_KEY_ID_USE) == 0;
    const ft_key_id cached[] = {FT_KEY_ID_CACHE, FT_KEY_ID_MODEL_KV_DTYPE}; /* would make "memory" that of decoding */
    for (size_t i = 0; i < sizeof cached / sizeof *cached && out->training; i++) {
        ft__idle_note(&out->idle, out->base, cached[i], "nothing is cached");
        ft__key_drop(out->base, cached[i]);
    }
    if (!out->training) ft__idle_note(&out->idle, object, FT_KEY_ID_LARGEST_TOKENS, "nothing is trained");
    return set_defaults(out) ? FT_OK : ft__no_memory(err);
}

void ft__largest_request_free(ft_largest_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}
