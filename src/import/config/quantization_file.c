/* quantization_file.c: what stands outside quantization_config and changes it: the file that NVIDIA's tool
 * writes beside a config, and the format of experts that DeepSeek's configs have as a key of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "import/config/quantization.h"

ft_status ft__quantization_file(const char *config_path, ft_arch *a, ft_error *err)
{
    char path[4096];
    size_t length = strlen(config_path);
    const char *slash = strrchr(config_path, '/');
    const char *name = slash ? slash + 1 : config_path;
    if (length < 5 || strcmp(config_path + length - 5, ".json") != 0) return FT_OK;
    int written = strcmp(name, "config.json")
                      ? snprintf(path, sizeof path, "%.*s.hf_quant.json", (int)(length - 5), config_path)
                      : snprintf(path, sizeof path, "%.*shf_quant_config.json", (int)(name - config_path), config_path);
    char *text;
    size_t size;
    json_t *object;
    if (written < 0 || (size_t)written >= sizeof path || !ft__file_exists(path)) return FT_OK;
    FT_TRY(ft__file_read(path, (size_t)64 << 20, &text, &size, err));
    ft_status status = ft__json_parse(text, size, path, &object, err);
    free(text);
    if (status != FT_OK) return status;
    ft_arch beside = *a;
    const char *algorithm = json_string_value(json_object_get(json_object_get(object, "quantization"), "quant_algo"));
    bool mixed = algorithm && !strcmp(algorithm, "MIXED_PRECISION");
    status = ft__quantization_read(object, path, &beside, err);
    json_decref(object);
    if (status != FT_OK) return status;
    a->kv_fp8 = a->kv_fp8 || beside.kv_fp8;
    if (mixed && a->quantized_bits > 0) { /* the modules that it names; the others are as the config has them */
        for (int c = 0; c < FT_OF_COUNT; c++)
            if (beside.formats.of[c].given) a->formats.of[c] = beside.formats.of[c];
        a->quantized_bits = ft__quantization_bits(&a->formats);
        return FT_OK;
    }
    if (a->quantized_bits > 0 && beside.quantized_bits > 0 && beside.quantized_bits != a->quantized_bits)
        return ft__fail_at(err, FT_E_RANGE, path, 0, 0,
                           "contradictory quantisation: expected the %.0f bits of the config's quantization_config, "
                           "found %.0f",
                           a->quantized_bits, beside.quantized_bits);
    if (!(a->quantized_bits > 0)) *a = beside;
    return FT_OK;
}

/* DeepSeek-V4: experts in MXFP4, multiplied in FP8; what else is quantised stays in FP8. */
void ft__quantization_experts_fp4(ft_arch *a)
{
    a->formats.of[FT_OF_EXPERTS] = (ft_weight_format){true, FT_STORED_MXFP4, FT_FP8};
    a->quantized_bits = ft__quantization_bits(&a->formats);
}
