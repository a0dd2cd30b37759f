/* quantized.c: where a config, or the record of a model, says how its weights are stored. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "import/config/quantization.h"
#include "import/config/type.h"

/* Methods that there are and that have no format here: of transformers 5 (quantizers/auto.py, AUTO_QUANTIZER_MAPPING),
 * vLLM 0.11 (model_executor/layers/quantization/__init__.py), SGLang 0.5 and ExLlamaV3. Weights are taken as computed
 * then, and the answer says so; a name that nobody has is a slip of the pen. */
static const char *const others[] = {"aqlm",         "bitblas",  "bitnet", "deepspeedfp", "exl2",         "exl3",
                                     "fouroversix",  "fp_quant", "higgs",  "hqq",         "inc",          "ipex",
                                     "experts_int8", "marlin",   "metal",  "moe_wna16",   "neuron_quant", "petit_nvfp4",
                                     "ptpc_fp8",     "qqq",      "quanto", "rtn",         "sinq",         "spqr",
                                     "tpu_int8",     "vptq",     "w4afp8", "w8a8_fp8",    "w8a8_int8"};
enum { OTHERS = sizeof others / sizeof *others, MOST_READ = 16 };

ft_status ft__quantization_method(const char *method, const char *const *read, size_t count, const char *where,
                                  ft_error *err)
{
    const char *names[OTHERS + MOST_READ];
    char path[256], expected[200] = "";
    size_t all = 0;
    for (size_t i = 0; i < count && i < MOST_READ; i++) names[all++] = read[i];
    for (size_t i = 0; i < OTHERS; i++) names[all++] = others[i];
    for (size_t i = 0; i < all; i++)
        if (!strncmp(method, names[i], strlen(names[i]))) return FT_OK;
    for (size_t i = 0, at = 0; i < count && at < sizeof expected; i++)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%s", i ? ", " : "", read[i]);
    snprintf(path, sizeof path, "%.160s%squant_method", where, *where ? ": " : "");
    const char *nearest = ft__nearest(method, names, all);
    return ft__fail_at(err, FT_E_NAME, path, 0, 0, "unknown method \"%.*s\"; %s%s%sexpected one of %s",
                       (int)ft__utf8_cut(method, 60), method, nearest ? "did you mean \"" : "", nearest ? nearest : "",
                       nearest ? "\"? " : "", expected);
}

ft_status ft__config_quantized(const ft_reading *r, ft_arch *a)
{
    const json_t *q = json_object_get(r->config, "quantization_config");
    if (!json_is_object(q)) q = json_object_get(r->whole, "quantization_config");
    if (q && !json_is_object(q) && !json_is_null(q))
        return ft__config_fail(r, FT_E_TYPE, "quantization_config", "\"quantization_config\" must be an object");
    if (!json_is_object(q)) q = json_object_get(r->whole, "quantization");
    if (!json_is_object(q)) return FT_OK;
    char where[256];
    snprintf(where, sizeof where, "%.200s%squantization_config", r->where, *r->where ? ": " : "");
    FT_TRY(ft__quantization_read(q, where, a, r->err));
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    const char *experts = json_string_value(json_object_get(r->config, "expert_dtype"));
    bool four = method && !strcmp(method, "fp8") && experts && !strcmp(experts, "fp4");
    if (four) ft__quantization_experts_fp4(a);
    return FT_OK;
}
