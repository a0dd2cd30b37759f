/* quantized.c: how a checkpoint's weights are stored, from `quantization_config` as transformers and vLLM write it.
 *
 * Read are the bits alone. What a method leaves in the model's own format (embeddings, norms, the modules in
 * `modules_to_not_convert`) and its scales are not counted apart: the program's weight formats are one for all weights.
 * A method or a width that the program has no format for is remembered by name, for a warning. */
#include <string.h>

#include "base/json.h"
#include "import/config/type.h"

static double whole_bits(const json_t *object, const char *key)
{
    json_int_t bits = json_integer_value(json_object_get(object, key));
    return bits == 4 || bits == 8 ? (double)bits : 0;
}

static double loaded_bits(const json_t *q) /* bitsandbytes */
{
    if (json_is_true(json_object_get(q, "load_in_4bit"))) return 4;
    return json_is_true(json_object_get(q, "load_in_8bit")) ? 8 : 0;
}

/* compressed-tensors: groups of layers; where they differ no one number says it. */
static double grouped_bits(const json_t *q)
{
    double bits = 0;
    const char *name;
    json_t *group;
    json_object_foreach (json_object_get(q, "config_groups"), name, group) {
        double its = whole_bits(json_object_get(group, "weights"), "num_bits");
        if (!its || (bits > 0 && its != bits)) return 0;
        bits = its;
    }
    return bits;
}

void ft__config_quantized(const ft_reading *r, ft_arch *a)
{
    static const struct {
        const char *method;
        double bits; /* 0: the config says */
    } known[] = {{"awq", 0},  {"gptq", 0}, {"bitsandbytes", 0}, {"compressed-tensors", 0},
                 {"fp8", 8},  {"eetq", 8}, {"fbgemm_fp8", 8},   {"modelopt_fp4", 4},
                 {"mxfp4", 4}};
    const json_t *q = json_object_get(r->config, "quantization_config");
    if (!json_is_object(q)) q = json_object_get(r->whole, "quantization_config");
    if (!json_is_object(q)) return;
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    a->quantized = "of a method that is not known";
    for (size_t i = 0; method && i < sizeof known / sizeof *known; i++) {
        if (strcmp(method, known[i].method) != 0) continue;
        a->quantized = known[i].method;
        a->quantized_bits = known[i].bits;
        if (!strcmp(method, "bitsandbytes"))
            a->quantized_bits = loaded_bits(q);
        else if (!strcmp(method, "compressed-tensors"))
            a->quantized_bits = grouped_bits(q);
        else if (!(known[i].bits > 0))
            a->quantized_bits = whole_bits(q, "bits");
    }
}
