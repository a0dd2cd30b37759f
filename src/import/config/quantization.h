/* How a checkpoint stores its weights: `quantization_config` of Hugging Face's layout, or the `hf_quant_config.json`
 * that NVIDIA's tool writes beside a config. */
#ifndef FT_IMPORT_CONFIG_QUANTIZATION_H
#define FT_IMPORT_CONFIG_QUANTIZATION_H
#include "base/error.h"
#include "base/json.h"
#include "model/arch.h"

/* Fills `quantized`, `quantized_bits`, `formats` and `kv_fp8` of an architecture whose layers are known. `where` is the
 * file, or the path of the object, for errors. A method that the program has no format for is remembered by name. */
ft_status ft__quantization_read(const json_t *object, const char *where, ft_arch *a, ft_error *err);
/* That somebody has a method of this name: one of those that are `read` here, or another (quantized.c). */
ft_status ft__quantization_method(const char *method, const char *const *read, size_t count, const char *where,
                                  ft_error *err);
/* The file beside a config ("X.hf_quant.json" of "X.json", "hf_quant_config.json" of a folder's "config.json"), where
 * there is one and the config itself says nothing or the same. */
ft_status ft__quantization_file(const char *config_path, ft_arch *a, ft_error *err);
/* For `expert_dtype: "fp4"` beside an fp8 quantization_config. */
void ft__quantization_experts_fp4(ft_arch *a);
/* The fewest bits of what is quantised: 4 or 8; 0 where nothing is. */
double ft__quantization_bits(const ft_formats *formats);
enum { FT_EVERY_LAYER = 1 << 20 };
/* Kinds that a name or pattern means, a bit each; 0: of none that is quantised (norms, routers, embeddings, towers). */
unsigned ft__quantized_kinds(const char *name);
/* One layer where the name has a number, else every one. */
int64_t ft__quantized_layers(const char *name);
#endif
