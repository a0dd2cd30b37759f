/* quantization.c: methods, widths and exclusions of a quantised checkpoint -> a format for each kind of module.
 *
 * Methods write what they quantise in their own ways: a list of modules left out (names, globs, `re:` expressions, with
 * or without layer numbers), groups of targets, or every quantised module by name. All come down to kinds of modules
 * (graph/format.h): a kind is left out where most of its layers are. That is exact for checkpoints that treat a kind
 * alike in all layers, and a majority's verdict for those that spare a few. Scales are counted with the format. */
#include "import/config/quantization.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/operator.h"

typedef struct reading {
    const json_t *q;
    const char *where;
    ft_arch *a;
    ft_error *err;
    ft_weight_format format;  /* of what is quantised */
    int64_t out[FT_OF_COUNT]; /* layers left out; all of them counts as `every` */
    int64_t in[FT_OF_COUNT];  /* or layers named, where the file names what it quantises */
    ft_weight_format named[FT_OF_COUNT];
} reading;

static ft_status wrong(const reading *r, const char *key, const char *expected)
{
    char path[256];
    snprintf(path, sizeof path, "%.160s%s%s", r->where, *r->where ? ": " : "", key);
    return ft__fail_at(r->err, FT_E_RANGE, path, 0, 0, "contradictory quantisation: expected %s", expected);
}

static ft_weight_format format(ft_storage stored, ft_dtype math) { return (ft_weight_format){true, stored, math}; }

/* -- kinds of modules ------------------------------------------------------------------------------ */

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static void leave_out(reading *r, const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        const char *name = json_string_value(item);
        unsigned kinds = name ? ft__quantized_kinds(name) : 0;
        /* Four projections of one layer are one layer: those into attention are counted by their first. */
        if (name && (has(name, ".k_proj") || has(name, ".v_proj") || has(name, "_b_proj") || has(name, "kv_a_proj")))
            kinds &= ~(1u << FT_OF_ATTENTION);
        for (int c = 0; c < FT_OF_COUNT; c++)
            if (kinds >> c & 1) r->out[c] += ft__quantized_layers(name);
    }
}

static void take_in(reading *r, const char *name, ft_weight_format f)
{
    unsigned kinds = ft__quantized_kinds(name);
    for (int c = 0; c < FT_OF_COUNT; c++)
        if (kinds >> c & 1) r->in[c] += ft__quantized_layers(name), r->named[c] = f;
}

static void settle(reading *r, bool head)
{
    double most = 0.5 * (double)(r->a->layers > 0 ? r->a->layers : 1);
    bool listed = false;
    for (int c = 0; c < FT_OF_COUNT; c++) listed = listed || r->in[c] > 0;
    for (int c = 0; c < FT_OF_OTHER; c++) {
        ft_weight_format *f = &r->a->formats.of[c];
        *f = listed && r->in[c] > 0 ? r->named[c] : r->format;
        bool quantised = listed ? r->in[c] > 0 : (double)r->out[c] < (c == FT_OF_HEAD ? 1 : most);
        if (!quantised || (c == FT_OF_HEAD && !head)) f->given = false;
    }
}

/* -- formats by what files say of them ------------------------------------------------------------- */

static bool by_algorithm(const char *name, ft_weight_format *out)
{
    static const struct {
        const char *name;
        ft_storage stored;
        ft_dtype math;
    } known[] = {{"FP8_PB_WO", FT_STORED_FP8_BLOCK, FT_FP8},  {"FP8_BLOCK", FT_STORED_FP8_BLOCK, FT_FP8},
                 {"W4A16_AWQ", FT_STORED_INT4, FT_BF16},      {"W4A16_NVFP4", FT_STORED_NVFP4, FT_BF16},
                 {"W4A16", FT_STORED_INT4, FT_BF16},          {"W8A16", FT_STORED_INT8, FT_BF16},
                 {"NVFP4", FT_STORED_AS_COMPUTED, FT_FP4},    {"MXFP4", FT_STORED_MXFP4, FT_BF16},
                 {"W4A8_MXFP4_FP8", FT_STORED_MXFP4, FT_FP8}, {"INT8", FT_STORED_AS_COMPUTED, FT_INT8},
                 {"FP8", FT_STORED_AS_COMPUTED, FT_FP8}};
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i].name, strlen(known[i].name)))
            return *out = format(known[i].stored, known[i].math), true;
    return false;
}

/* compressed-tensors and modelopt: {"num_bits": 4, "type": "float", "group_size": 16}, activations beside it. */
static ft_status by_group(const reading *r, const json_t *group, ft_weight_format *out)
{
    const json_t *weights = json_object_get(group, "weights"), *inputs = json_object_get(group, "input_activations");
    json_int_t bits = json_integer_value(json_object_get(weights, "num_bits")),
               size = json_integer_value(json_object_get(weights, "group_size"));
    const char *type = json_string_value(json_object_get(weights, "type"));
    bool floats = type && !strcmp(type, "float"), low = json_is_object(inputs);
    const char *strategy = json_string_value(json_object_get(weights, "strategy"));
    *out = (ft_weight_format){0};
    if (type && !floats && strcmp(type, "int") != 0) return wrong(r, "config_groups", "weights of type int or float");
    if (strategy && !strcmp(strategy, "group") && size < 1)
        return wrong(r, "config_groups", "a group_size beside the strategy group");
    if (strategy && size > 0 && (!strcmp(strategy, "channel") || !strcmp(strategy, "tensor")))
        return wrong(r, "config_groups", "the strategy group beside a group_size");
    if (bits != 4 && bits != 8) return FT_OK; /* no format for it: a warning says so */
    if (low && bits < json_integer_value(json_object_get(inputs, "num_bits")) && bits == 8)
        return wrong(r, "config_groups", "activations of no more bits than 8-bit weights");
    if (floats && bits == 4) {
        if (size != 16 && size != 32) return wrong(r, "group_size", "16 (nvfp4) or 32 (mxfp4) for 4-bit floats");
        bool eight = low && json_integer_value(json_object_get(inputs, "num_bits")) == 8;
        *out = size == 32      ? format(FT_STORED_MXFP4, eight ? FT_FP8 : FT_BF16)
               : low && !eight ? format(FT_STORED_AS_COMPUTED, FT_FP4)
                               : format(FT_STORED_NVFP4, eight ? FT_FP8 : FT_BF16);
    } else if (floats) {
        bool blocks = strategy && !strcmp(strategy, "block");
        *out = low ? format(blocks ? FT_STORED_FP8_BLOCK : FT_STORED_AS_COMPUTED, FT_FP8)
                   : format(FT_STORED_FP8, FT_BF16);
    } else if (bits == 8) {
        *out = low ? format(FT_STORED_AS_COMPUTED, FT_INT8) : format(FT_STORED_INT8, FT_BF16);
    } else {
        *out = format(FT_STORED_INT4, low ? FT_FP8 : FT_BF16);
    }
    return FT_OK;
}

static ft_status by_groups(reading *r)
{
    const char *name;
    json_t *group;
    json_object_foreach (json_object_get(r->q, "config_groups"), name, group) {
        ft_weight_format f;
        size_t i;
        json_t *target;
        FT_TRY(by_group(r, group, &f));
        if (!f.given) return r->format.given = false, FT_OK;
        r->format = f;
        const json_t *targets = json_object_get(group, "targets");
        if (targets && !json_is_array(targets)) return wrong(r, "config_groups", "targets as a list of modules");
        json_array_foreach (targets, i, target)
            if (json_is_string(target) && strcmp(json_string_value(target), "Linear") != 0)
                take_in(r, json_string_value(target), f);
    }
    return FT_OK;
}

/* modelopt's own: one algorithm with what it leaves out, or every layer by name. */
static void by_modelopt(reading *r)
{
    const char *name;
    json_t *layer;
    const char *experts = json_string_value(json_object_get(r->q, "moe_quant_algo"));
    if (!by_algorithm(json_string_value(json_object_get(r->q, "quant_algo")), &r->format) && experts)
        by_algorithm(experts, &r->format);
    json_object_foreach (json_object_get(r->q, "quantized_layers"), name, layer) {
        ft_weight_format f;
        if (!by_algorithm(json_string_value(json_object_get(layer, "quant_algo")), &f)) continue;
        take_in(r, name, f);
        if (!r->format.given) r->format = f;
    }
}

/* -- methods --------------------------------------------------------------------------------------- */

/* Refused is what the libraries refuse: transformers' GPTQConfig and AwqConfig, vLLM's readers of both (inputs that
 * groups do not divide). Bits that have kernels and no format here are warned of. */
static ft_status whole_bits(reading *r, json_int_t bits)
{
    const json_t *size = json_object_get(r->q, "group_size");
    json_int_t group = json_integer_value(size);
    if (json_is_integer(size) && group < 1 && group != -1)
        return wrong(r, "group_size", "a whole number from 1 on, or -1 for whole rows");
    if (json_is_integer(size) && group > 0 && r->a->hidden > 0 && r->a->hidden % group != 0)
        return wrong(r, "group_size", "a divisor of the model's width");
    if (bits == 4) r->format = format(FT_STORED_INT4, FT_BF16);
    if (bits == 8) r->format = format(FT_STORED_INT8, FT_BF16);
    return FT_OK;
}

static ft_status gptq(reading *r)
{
    const json_t *said = json_object_get(r->q, "bits");
    json_int_t bits = json_integer_value(said);
    if (said && !json_is_integer(said)) return wrong(r, "bits", "a whole number such as 4 or 8");
    if (bits != 2 && bits != 3 && bits != 4 && bits != 8) return wrong(r, "bits", "2, 3, 4 or 8");
    return whole_bits(r, bits);
}

static ft_status awq(reading *r) /* four bits unless it says otherwise; w_bit is its older name for them */
{
    const json_t *said = json_object_get(r->q, "bits");
    if (!said) said = json_object_get(r->q, "w_bit");
    json_int_t bits = said ? json_integer_value(said) : 4;
    if (said && !json_is_integer(said)) return wrong(r, "bits", "a whole number such as 4 or 8");
    if (bits != 4 && bits != 8) return wrong(r, "bits", "4 or 8: AWQ has no kernels for others");
    return whole_bits(r, bits);
}

static ft_status loaded_bits(reading *r) /* bitsandbytes */
{
    bool four = json_is_true(json_object_get(r->q, "load_in_4bit")),
         eight = json_is_true(json_object_get(r->q, "load_in_8bit"));
    const char *type = json_string_value(json_object_get(r->q, "bnb_4bit_quant_type"));
    if (four && eight) return wrong(r, "load_in_8bit", "one of load_in_4bit and load_in_8bit");
    if (four && type && strcmp(type, "nf4") != 0 && strcmp(type, "fp4") != 0)
        return wrong(r, "bnb_4bit_quant_type", "nf4 or fp4");
    if (four) r->format = format(FT_STORED_NF4, FT_BF16);
    if (eight) r->format = format(FT_STORED_INT8, FT_BF16);
    r->a->formats.loaded = FT_WEIGHTS_BITSANDBYTES;
    return FT_OK;
}

static ft_status blocks_or_tensor(reading *r) /* fp8 */
{
    const json_t *block = json_object_get(r->q, "weight_block_size"), *bits = json_object_get(r->q, "bits");
    if (json_is_integer(bits) && json_integer_value(bits) != 8) return wrong(r, "bits", "8 or none beside fp8");
    const char *scales = json_string_value(json_object_get(r->q, "activation_scheme"));
    if (scales && strcmp(scales, "dynamic") != 0 && strcmp(scales, "static") != 0)
        return wrong(r, "activation_scheme", "dynamic or static");
    r->format = format(FT_STORED_AS_COMPUTED, FT_FP8);
    if (!block || json_is_null(block)) return FT_OK;
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(block) != 2 || json_integer_value(json_array_get(block, i)) < 1)
            return wrong(r, "weight_block_size", "two sizes such as [128, 128]");
    r->format = format(FT_STORED_FP8_BLOCK, FT_FP8);
    return FT_OK;
}

static ft_status by_torchao(reading *r)
{
    const json_t *type = json_object_get(r->q, "quant_type"), *inner = json_object_get(type, "default");
    const char *name = json_string_value(json_is_object(inner) ? json_object_get(inner, "_type") : type);
    if (!name) name = "";
    bool low = has(name, "Dynamic") || has(name, "dynamic");
    if (has(name, "nt4")) r->format = format(FT_STORED_INT4, low ? FT_INT8 : FT_BF16);
    if (has(name, "nt8")) r->format = low ? format(FT_STORED_AS_COMPUTED, FT_INT8) : format(FT_STORED_INT8, FT_BF16);
    if (has(name, "loat8")) r->format = low ? format(FT_STORED_AS_COMPUTED, FT_FP8) : format(FT_STORED_FP8, FT_BF16);
    r->a->formats.loaded = FT_WEIGHTS_TORCHAO;
    return FT_OK;
}

static ft_status experts_alone(reading *r) /* gpt-oss: attention, router and head are left out by name */
{
    r->format = format(FT_STORED_MXFP4, FT_BF16);
    return FT_OK;
}

static ft_status eight_bit_ints(reading *r)
{
    r->format = format(FT_STORED_INT8, FT_BF16);
    return FT_OK;
}

/* Files of many formats lie in a repository of GGUF: its name or tag says which, as `file` here (data/suffixes.json),
 * or as `bits` where it is one of the two usual ones. Of a file without a format none is taken. */
static ft_status gguf(reading *r)
{
    const char *file = json_string_value(json_object_get(r->q, "file"));
    if (!file) return whole_bits(r, json_integer_value(json_object_get(r->q, "bits")));
    ft_storage stored = ft__gguf_named(file);
    if (stored != FT_STORED_AS_COMPUTED) r->format = format(stored, FT_BF16);
    return FT_OK;
}

/* AMD's: formats of weights and of what they are multiplied by under one roof, by Quark's own words for them. */
static ft_status quark(reading *r)
{
    const json_t *all = json_object_get(r->q, "global_quant_config"), *weight = json_object_get(all, "weight");
    if (json_is_array(weight)) weight = json_array_get(weight, 0); /* in two steps: stored as by the first */
    const char *name = json_string_value(json_object_get(weight, "dtype"));
    bool low = json_is_object(json_object_get(all, "input_tensors"));
    if (!name) return wrong(r, "global_quant_config.weight.dtype", "a format such as fp4, fp8_e4m3, int4 or int8");
    if (has(name, "fp4")) r->format = low ? format(FT_STORED_AS_COMPUTED, FT_FP4) : format(FT_STORED_MXFP4, FT_BF16);
    if (has(name, "fp8")) r->format = low ? format(FT_STORED_AS_COMPUTED, FT_FP8) : format(FT_STORED_FP8, FT_BF16);
    if (has(name, "int4")) r->format = format(FT_STORED_INT4, FT_BF16);
    if (has(name, "int8")) r->format = low ? format(FT_STORED_AS_COMPUTED, FT_INT8) : format(FT_STORED_INT8, FT_BF16);
    return FT_OK;
}

/* Every recipe of its own spares the head (modelopt/torch/quantization/config.py, its default list of what is off): a
 * file without a list leaves that out and nothing else. */
static ft_status modelopt(reading *r)
{
    if (!json_object_get(r->q, "exclude_modules") && !json_object_get(r->q, "ignore"))
        r->out[FT_OF_HEAD] += FT_EVERY_LAYER;
    FT_TRY(by_groups(r));
    if (!r->format.given || json_object_get(r->q, "quantized_layers") || json_object_get(r->q, "moe_quant_algo"))
        by_modelopt(r);
    return FT_OK;
}

/* Names are matched from the front, so that modelopt_fp4 is modelopt. */
static const struct {
    const char *method;
    ft_status (*read)(reading *r);
    ft_weight_kernel by;
    bool head; /* its head may be quantised */
} methods[] = {{"awq", awq, FT_WEIGHTS_AWQ, false},
               {"gptq", gptq, FT_WEIGHTS_GPTQ, false},
               {"auto-round", gptq, FT_WEIGHTS_GPTQ, false},
               {"intel/auto-round", gptq, FT_WEIGHTS_GPTQ, false},
               {"bitsandbytes", loaded_bits, FT_WEIGHTS_BITSANDBYTES, false},
               {"compressed-tensors", by_groups, FT_WEIGHTS_ANY, true},
               {"fp8", blocks_or_tensor, FT_WEIGHTS_ANY, false},
               {"fbgemm_fp8", blocks_or_tensor, FT_WEIGHTS_ANY, false},
               {"eetq", eight_bit_ints, FT_WEIGHTS_ANY, false},
               {"gguf", gguf, FT_WEIGHTS_GGUF, true},
               {"modelopt", modelopt, FT_WEIGHTS_ANY, true},
               {"mxfp4", experts_alone, FT_WEIGHTS_ANY, false},
               {"quark", quark, FT_WEIGHTS_ANY, true},
               {"torchao", by_torchao, FT_WEIGHTS_TORCHAO, false}};
enum { METHODS = sizeof methods / sizeof *methods };

double ft__quantization_bits(const ft_formats *formats)
{
    double bits = 0;
    for (int c = 0; c < FT_OF_OTHER; c++)
        if (formats->of[c].given) {
            const ft_weight_format *f = &formats->of[c];
            double its = ft__gguf_stores(f->stored) ? ft__gguf_bits(f->stored) : ft__format_bytes(f) < 1 ? 4 : 8;
            bits = bits > 0 && bits < its ? bits : its;
        }
    return bits;
}

/* An fp8 checkpoint whose experts alone were converted once more (nvidia/DeepSeek-V4-Flash-NVFP4): what its lists leave
 * out was left out of that, and is as it was. */
static ft_weight_format experts_apart(const reading *r, const char *method)
{
    ft_weight_format experts = {0};
    if (!strcmp(method, "fp8")) by_algorithm(json_string_value(json_object_get(r->q, "moe_quant_algo")), &experts);
    return experts;
}

/* modelopt writes "FP8", compressed-tensors and newer modelopt a scheme of bits and type. */
static bool narrow_cache(const json_t *q)
{
    const json_t *said = json_object_get(q, "kv_cache_quant_algo");
    if (!json_is_string(said)) said = json_object_get(q, "kv_cache_scheme");
    const char *name = json_string_value(said), *type = json_string_value(json_object_get(said, "type"));
    if (name) return !strcmp(name, "FP8");
    return type && !strcmp(type, "float") && json_integer_value(json_object_get(said, "num_bits")) == 8;
}

ft_status ft__quantization_read(const json_t *object, const char *where, ft_arch *a, ft_error *err)
{
    static const char *const lists[] = {"modules_to_not_convert", "ignore",  "ignored_layers",
                                        "exclude_modules",        "exclude", "llm_int8_skip_modules"};
    reading r = {.q = object, .where = where, .a = a, .err = err};
    const json_t *inner = json_object_get(object, "quantization"); /* hf_quant_config.json */
    if (json_is_object(inner)) r.q = inner;
    const char *method = json_string_value(json_object_get(r.q, "quant_method"));
    if (!method && (json_object_get(r.q, "quant_algo") || json_object_get(r.q, "moe_quant_algo"))) method = "modelopt";
    if (!method && (json_object_get(r.q, "load_in_4bit") || json_object_get(r.q, "load_in_8bit")))
        method = "bitsandbytes";
    if (!method) return wrong(&r, "quant_method", "a method such as fp8, awq, gptq, bitsandbytes, compressed-tensors");
    const char *names[METHODS];
    for (size_t i = 0; i < METHODS; i++) names[i] = methods[i].method;
    FT_TRY(ft__quantization_method(method, names, METHODS, where, err));
    a->quantized = "of a method that is not forecast";
    a->quantized_bits = 0;
    memset(&a->formats, 0, sizeof a->formats);
    for (size_t i = 0; i < METHODS; i++) {
        if (strncmp(method, methods[i].method, strlen(methods[i].method)) != 0) continue;
        a->quantized = methods[i].method;
        a->formats.loaded = methods[i].by;
        FT_TRY(methods[i].read(&r));
        if (!r.format.given) break;
        ft_weight_format experts = experts_apart(&r, method);
        for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
            const json_t *list = json_object_get(r.q, lists[l]);
            if (list && !json_is_null(list) && !json_is_array(list)) return wrong(&r, lists[l], "a list of modules");
        }
        for (size_t l = 0; !experts.given && l < sizeof lists / sizeof *lists; l++)
            leave_out(&r, json_object_get(r.q, lists[l]));
        settle(&r, methods[i].head);
        if (experts.given) a->formats.of[FT_OF_EXPERTS] = experts;
        a->quantized_bits = ft__quantization_bits(&a->formats);
        break;
    }
    a->kv_fp8 = narrow_cache(r.q);
    return FT_OK;
}
