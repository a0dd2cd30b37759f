/* quantized.c: where a config, or the record of a model, says how its weights are stored. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "import/config/quantization.h"
#include "import/config/type.h"

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
