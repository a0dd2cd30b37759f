/* formats.c: the number formats of a request for a whole model: what it computes in, what it stores its weights and its
 * cache in, and what a quantised checkpoint says of that. */
#include "request/formats.h"

#include <stdio.h>
#include <string.h>

#include "graph/operator.h"
#include "kernel/kernel.h"

/* What a parameter is kept in where nothing is said of it. Training keeps at least 16 bits. */
static double kept_bits(const ft_workload *w)
{
    double math = 8 * ft_dtype_bytes(w->dtype);
    if (w->autocast) return 32;
    return w->task == FT_TRAIN && math < 16 ? 16 : math;
}

/* Files of llama.cpp's have one library's kernels, products in 16 bits, and no gradients. */
static ft_status check_file(const ft_said *said, const ft_workload *w, const char *name, ft_error *err)
{
    static const char where[] = "weights_dtype";
    int by = ft__word_of(said, FT_KEY_ID_WEIGHTS_BY);
    if (w->task == FT_TRAIN)
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, where, 0, 0,
            "\"%s\" is a llama.cpp format, which is not trained on: \"nf4\" and \"int4\" with \"lora_rank\" train "
            "adapters on 4-bit weights",
            name);
    if (ft_dtype_bytes(w->dtype) != 2 || w->autocast)
        return ft__fail_at(err, FT_E_UNSUPPORTED, where, 0, 0,
                           "\"%s\" is forecast with \"dtype\" \"fp16\" or \"bf16\": llama.cpp computes in 8 bits in "
                           "any case",
                           name);
    if (by > 0 && by != FT_WEIGHTS_GGUF)
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0,
                           "\"%s\" is a llama.cpp format: \"weight_kernel\" \"gguf\" reads it, \"%s\" does not", name,
                           ft__weight_kernel_words[by]);
    return FT_OK;
}

/* fp32 weights beside 16-bit arithmetic are what amp_* means. Fewer bits than 16 are stored, not trained. */
static ft_status settle_weights(const ft_said *said, ft_model_request *out, ft_error *err)
{
    static const char where[] = "weights_dtype";
    ft_workload *w = &out->work;
    int stored = ft__word_of(said, FT_KEY_ID_WEIGHTS_DTYPE);
    if (stored < 0) return FT_OK;
    const char *name = ft__stored_words[stored];
    double bits = ft__stored_bits[stored], kept = kept_bits(w);
    if (w->autocast && bits == 16)
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0,
                           "\"weights_dtype\" \"%s\" contradicts \"dtype\" \"%s\", which keeps fp32 weights; "
                           "\"dtype\" \"%s\" keeps them in 16 bits",
                           name, out->dtype_name, out->dtype_name + strlen("amp_"));
    if (bits > kept && bits > 16) {
        if (w->dtype != FT_BF16 && w->dtype != FT_FP16)
            return ft__fail_at(err, FT_E_UNSUPPORTED, where, 0, 0,
                               "\"weights_dtype\" \"%s\" with \"dtype\" \"%s\" is not forecast: weights are kept in 16 "
                               "bits or fewer there",
                               name, out->dtype_name);
        w->autocast = true;
        out->dtype_name = w->dtype == FT_BF16 ? "amp_bf16" : "amp_fp16";
        return FT_OK;
    }
    if (ft__gguf_named(name) != FT_STORED_AS_COMPUTED) FT_TRY(check_file(said, w, name, err));
    if (w->task == FT_TRAIN && bits < 16 && ft__whole_of(said, FT_KEY_ID_LORA_RANK) < 1)
        return ft__fail_at(
            err, FT_E_UNSUPPORTED, where, 0, 0,
            "weights in \"%s\" are not trained: give \"lora_rank\" to train adapters on them (QLoRA), or leave "
            "\"weights_dtype\" out",
            name);
    w->weight_bits = bits == kept ? 0 : bits;
    w->unpack_openly = w->task == FT_TRAIN && !strcmp(name, "int4"); /* GPTQ's: its kernels have no gradients */
    return FT_OK;
}

/* Formats that nobody computes in, and the tools that make them. */
ft_status ft__stored_not_computed(const char *word, const char *where, const char *key, ft_error *err)
{
    static const struct {
        const char *word, *stored, *by;
    } said[] = {{"nf4", "nf4", NULL},
                {"int4", "int4", NULL},
                {"mxfp4", "mxfp4", NULL},
                {"nvfp4", "fp4", NULL},
                {"awq", "int4", "awq"},
                {"gptq", "int4", "gptq"},
                {"bitsandbytes", "nf4", "bitsandbytes"},
                {"gguf", "q4_k_m", NULL},
                {"q4_k", "q4_k_m", NULL},
                {"q5_k", "q5_k_m", NULL},
                {"q3_k", "q3_k_m", NULL},
                {"w4a16", "int4", NULL},
                {"w8a16", "int8", NULL}};
    const char *weights = ft__keys[FT_KEY_ID_WEIGHTS_DTYPE].key, *by = ft__keys[FT_KEY_ID_WEIGHTS_BY].key;
    bool computes = !strcmp(key, ft__keys[FT_KEY_ID_MODEL_DTYPE].key);
    if (!computes && strcmp(key, weights) != 0) return FT_OK;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        if (strcmp(word, said[i].word) != 0) continue;
        const char *also = said[i].by ? said[i].by : "";
        return ft__fail_at(err, FT_E_NAME, where, 0, 0,
                           "unknown %s \"%s\"%s; to store weights that way: \"%s\" \"%s\"%s%s%s%s%s", key, word,
                           computes ? ": no arithmetic is done in it" : "", weights, said[i].stored,
                           *also ? " with \"" : "", *also ? by : "", *also ? "\" \"" : "", also, *also ? "\"" : "");
    }
    return FT_OK;
}

ft_status ft__settle_dtypes(const ft_said *said, ft_model_request *out, ft_error *err)
{
    int recipe = ft__word_of(said, FT_KEY_ID_MODEL_DTYPE);
    out->dtype_name = ft__recipe_words[recipe];
    out->work.dtype = ft__recipe_of(recipe, &out->work.autocast);
    return settle_weights(said, out, err);
}

/* One format for every product's weights. */
static void settle_uniform(ft_workload *w, int stored)
{
    static const struct {
        const char *word;
        ft_storage stored;
    } of[] = {{"fp8", FT_STORED_FP8},   {"int8", FT_STORED_INT8}, {"fp4", FT_STORED_NVFP4},
              {"int4", FT_STORED_INT4}, {"nf4", FT_STORED_NF4},   {"mxfp4", FT_STORED_MXFP4}};
    for (size_t i = 0; w->weight_bits > 0 && i < sizeof of / sizeof *of; i++)
        if (!strcmp(ft__stored_words[stored], of[i].word)) ft__store_uniformly(w, of[i].stored);
    ft_storage file = ft__gguf_named(ft__stored_words[stored]);
    if (file != FT_STORED_AS_COMPUTED) ft__store_uniformly(w, file);
}

/* Stored as computed elsewhere, computed in `math` here. */
static void widen(ft_weight_format *f, ft_dtype math)
{
    if (f->stored == FT_STORED_AS_COMPUTED)
        f->stored = f->math == FT_FP4 ? FT_STORED_NVFP4 : f->math == FT_INT8 ? FT_STORED_INT8 : FT_STORED_FP8;
    f->math = math;
}

/* As the checkpoint has them. What the device lacks is widened instead (fp8 weights on Ampere, nvfp4's on Hopper), and
 * so is everything where the request says what it computes in. */
static void settle_checkpoint(const ft_said *said, ft_model_request *out)
{
    const ft_arch *a = out->arch;
    ft_workload *w = &out->work;
    bool asked = ft__given(said, FT_KEY_ID_MODEL_DTYPE);
    if (ft_dtype_bytes(w->dtype) != 2 || w->autocast) return; /* computed in what was asked for */
    ft_weight_kernel by = w->formats.said;
    w->by_module = true;
    w->formats = a->formats;
    w->formats.said = by;
    for (int c = 0; c < FT_OF_OTHER; c++) {
        ft_weight_format *f = &w->formats.of[c];
        bool wide = ft_dtype_bytes(f->math) == 2;
        if (f->given && (asked || wide || !(out->device->peak_tflops[f->math] > 0))) widen(f, w->dtype);
    }
    if (ft__widened_by(w) == FT_WEIGHTS_GGUF) ft__store_as_gguf(w, a);
    if (a->kv_fp8 && !out->kv_given && !asked && out->device->peak_tflops[FT_FP8] > 0) w->kv_dtype = FT_FP8;
}

/* Four-bit checkpoints of bitsandbytes and GPTQ are made to have adapters beside them: who asks for adapters over one
 * means its weights as they are stored. */
void ft__settle_loaded(const ft_said *said, ft_model_request *out)
{
    const ft_arch *a = out->arch;
    ft_workload *w = &out->work;
    bool adapters = w->task == FT_TRAIN && ft__whole_of(said, FT_KEY_ID_LORA_RANK) > 0;
    bool gptq = a->formats.loaded == FT_WEIGHTS_GPTQ, tool = gptq || a->formats.loaded == FT_WEIGHTS_BITSANDBYTES;
    if (!adapters || !tool || a->quantized_bits != 4 || ft__given(said, FT_KEY_ID_WEIGHTS_DTYPE) || w->autocast) return;
    w->weight_bits = a->quantized_bits;
    w->unpack_openly = gptq;
    ft__store_uniformly(w, gptq ? FT_STORED_INT4 : FT_STORED_NF4);
}

/* Weights are served as the checkpoint stores them, unless the request says how. Nobody trains them so, adapters over
 * four bits apart (ft__settle_loaded). */
void ft__settle_quantized(const ft_said *said, ft_model_request *out)
{
    const ft_arch *a = out->arch;
    ft_workload *w = &out->work;
    int stored = ft__word_of(said, FT_KEY_ID_WEIGHTS_DTYPE), by = ft__word_of(said, FT_KEY_ID_WEIGHTS_BY);
    w->formats.said = by > 0 ? (ft_weight_kernel)by : FT_WEIGHTS_ANY;
    if (stored >= 0) settle_uniform(w, stored);
    if (stored >= 0 && ft__widened_by(w) == FT_WEIGHTS_GGUF) ft__store_as_gguf(w, a);
    if (!a->quantized || stored >= 0) return;
    if (a->quantized_bits > 8 * ft_dtype_bytes(w->dtype)) return; /* asked for in fewer bits than it comes in */
    if (a->quantized_bits > 0 && w->task != FT_TRAIN) {
        w->weight_bits = a->quantized_bits == 8 * ft_dtype_bytes(w->dtype) ? 0 : a->quantized_bits;
        settle_checkpoint(said, out);
        return;
    }
    if (w->task == FT_TRAIN && w->weight_bits > 0) return; /* ft__settle_loaded's */
    /* Checkpoints in fp8 or mxfp4 are trained on in 16 bits; those of a tool for serving are not. */
    if (a->quantized_bits > 0 && a->formats.loaded == FT_WEIGHTS_ANY) return;
    snprintf(out->quantized, sizeof out->quantized,
             "quantization_config (%s) is ignored: weights are taken as %s; set weights_dtype for another format",
             a->quantized, out->dtype_name);
}

void ft__settle_kv(const ft_said *said, ft_model_request *out)
{
    int word = ft__word_of(said, FT_KEY_ID_MODEL_KV_DTYPE);
    ft_workload *w = &out->work;
    const bool has_bf16 = out->device->peak_tflops[FT_BF16] > 0;
    out->kv_given = word >= 0;
    w->kv_dtype = out->kv_given ? ft__kv_dtypes[word] : ft__usual_kv_dtype(w->dtype, has_bf16);
    w->flows_fp16 = ft_dtype_bytes(w->dtype) < 2 && !has_bf16;
}

/* A device without the format is refused once, here, and not by whichever kernel comes first. */
ft_status ft__check_dtype(const ft_model_request *r, ft_error *err)
{
    ft_op op;
    ft__op_init("gemm", &op);
    op.dtype = r->work.dtype;
    op.u.gemm.m = op.u.gemm.n = op.u.gemm.k = 1024;
    ft_status status = ft__op_check(&op, r->device, err);
    if (status != FT_E_UNSUPPORTED || !err) return status;
    const char *name = ft_dtype_name(op.dtype);
    for (size_t i = 0; i < sizeof ft__stored_words / sizeof *ft__stored_words; i++)
        if (ft_dtype_bytes(op.dtype) < 2 && !strcmp(name, ft__stored_words[i])) {
            char said[sizeof err->message];
            snprintf(said, sizeof said, "%s", err->message);
            return ft__fail_at(err, status, "dtype", 0, 0,
                               "%.400s; \"weights_dtype\" \"%s\" stores only the weights "
                               "in it",
                               said, name);
        }
    return status;
}
