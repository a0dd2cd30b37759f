/* largest.c: reading a request for the largest model. */
#include "request/largest.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const own[] = {"task", "family", "use", "gpus", "tokens"};

/* Mixed precision with fp32 masters is how models are trained; "master_weights" and amp_* say otherwise. */
static bool set_defaults(const ft_largest_request *r)
{
    const char *dtype = json_string_value(json_object_get(r->base, "dtype"));
    bool low = !dtype || !strcmp(dtype, "bf16") || !strcmp(dtype, "fp16") || !strcmp(dtype, "fp8"), fine = true;
    bool said = json_object_get(r->base, "master_weights") || json_object_get(r->base, "stack");
    if (r->training && low && !said) fine = json_object_set_new(r->base, "master_weights", json_true()) == 0;
    if (!json_object_get(r->base, "seq")) fine = fine && !json_object_set_new(r->base, "seq", json_integer(2048));
    if (!r->training && !json_object_get(r->base, "cache")) /* makes "memory" that of decoding */
        fine = fine && !json_object_set_new(r->base, "cache", json_string("paged"));
    return fine;
}

ft_status ft__largest_request_read(const json_t *object, ft_largest_request *out, ft_error *err)
{
    static const char *const families[] = {"llama", "gpt"}, *const uses[] = {"train", "infer"};
    int family = 0, use = 0;
    *out = (ft_largest_request){.base = ft__study_base(object, own, COUNT(own)), .gpus = 1};
    if (!out->base) return ft__fail(err, FT_E_MEMORY, "out of memory");
    if (json_object_get(object, "model"))
        return ft__fail_at(err, FT_E_KEY, "model", 0, 0, "\"largest\" makes its own models; say of which \"family\"");
    if (json_object_get(object, "parallel"))
        return ft__fail_at(err, FT_E_KEY, "parallel", 0, 0,
                           "\"largest\" lays its models out itself; say over how many \"gpus\"");
    FT_TRY(ft__request_word(object, "family", families, COUNT(families), &family, err));
    FT_TRY(ft__request_word(object, "use", uses, COUNT(uses), &use, err));
    FT_TRY(ft__json_whole(object, "gpus", FT_OPTIONAL, 1, 1 << 20, &out->gpus, "", err));
    FT_TRY(ft__json_number(object, "tokens", FT_OPTIONAL, 1, 1e18, &out->tokens, "", err));
    out->gpt = family == 1;
    out->training = use == 0;
    return set_defaults(out) ? FT_OK : ft__fail(err, FT_E_MEMORY, "out of memory");
}

void ft__largest_request_free(ft_largest_request *r)
{
    json_decref(r->base);
    r->base = NULL;
}

ft_status ft__largest_request_explain(ft_status status, ft_error *err)
{
    return ft__study_nearest(status, own, COUNT(own), err);
}
