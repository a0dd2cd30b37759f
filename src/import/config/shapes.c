/* shapes.c: what every object of a config is held to, whatever its type reads of it: sizes are whole numbers, switches
 * are true or false, and lists of layers have a known word for each layer.
 *
 * A key that a type passes over is a mistake all the same where it cannot mean what its name says: transformers refuses
 * such a config too (PreTrainedConfig's fields and validate_layer_type). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "import/config/architecture.h"

enum { DEEPEST = 4, MOST_WORDS = 16 };

static const char *const sizes[] = {
    "num_hidden_layers",
    "num_layers",
    "n_layers",
    "n_layer",
    "encoder_layers",
    "decoder_layers",
    "num_decoder_layers",
    "num_attention_heads",
    "num_heads",
    "n_heads",
    "n_head",
    "attention_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "num_key_value_heads",
    "num_kv_heads",
    "head_dim",
    "attention_head_dim",
    "hidden_size",
    "d_model",
    "d_kv",
    "embed_dim",
    "intermediate_size",
    "d_ff",
    "ffn_dim",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "mlp_dim",
    "encoder_hidden_size",
    "out_hidden_size",
    "projection_dim",
    "vocab_size",
    "max_position_embeddings",
    "max_source_positions",
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "n_group",
    "topk_group",
    "first_k_dense_replace",
    "num_dense_layers",
    "num_kv_shared_layers",
    "max_window_layers",
    "layer_group_size",
    "num_channels",
    "in_channels",
    "image_size",
    "patch_size",
    "temporal_patch_size",
    "depth",
    "num_mel_bins",
    "swa_head_dim",
    "num_codebooks",
    "resampler_depth",
    "resampler_n_heads",
    "resampler_head_dim",
    "resampler_n_latents",
}; /* clang-format keeps a column each otherwise */

static const char *const switches[] = {
    "tie_word_embeddings", "use_sliding_window",  "attention_bias", "qkv_bias", "mlp_bias",
    "attention_k_eq_v",    "add_cross_attention", "is_decoder"};

/* -- sizes and switches ---------------------------------------------------------------------------- */

/* A list of sizes is its reader's affair: one for each layer or stage, height and width. */
static ft_status check_size(const ft_reading *r, const char *key)
{
    const json_t *value = json_object_get(r->config, key);
    if (!value || json_is_null(value) || json_is_array(value) || json_is_object(value)) return FT_OK;
    int64_t size;
    return ft__json_whole(r->config, key, FT_OPTIONAL, 0, (int64_t)1 << 40, &size, r->where, r->err);
}

/* -- lists of layers -------------------------------------------------------------------------------- */

/* The words of transformers' validate_layer_type, and those that it still takes for them. */
static const char *const every_word[] = {"full_attention",
                                         "sliding_attention",
                                         "chunked_attention",
                                         "window_attention",
                                         "indexed_attention",
                                         "compressed_sparse_attention",
                                         "heavily_compressed_attention",
                                         "minimax_m3_sparse",
                                         "conv",
                                         "moe",
                                         "hybrid",
                                         "hybrid_sliding",
                                         "reference_sliding_attention",
                                         "linear_attention",
                                         "mamba",
                                         "attention",
                                         "recurrent"};
enum { WORDS = sizeof every_word / sizeof *every_word };

static ft_status unknown_word(const ft_reading *r, const char *key, size_t at, const char *said,
                              const char *const *words, size_t count)
{
    char expected[160];
    size_t used = 0;
    const char *nearest = ft__nearest(said, words, count);
    for (size_t i = 0; i < count; i++) {
        int wrote = snprintf(expected + used, sizeof expected - used, "%s\"%s\"", i ? ", " : "", words[i]);
        if (wrote < 0 || (size_t)wrote >= sizeof expected - used) break;
        used += (size_t)wrote;
    }
    expected[used] = '\0';
    return ft__config_fail(r, FT_E_NAME, key, "layer %zu is \"%.*s\"; %s%s%sexpected %s", at + 1,
                           (int)ft__utf8_cut(said, 60), said, nearest ? "did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"? " : "", expected);
}

static ft_status check_list(const ft_reading *r, const char *key, int64_t layers, const char *const *words,
                            size_t count)
{
    const json_t *list = json_object_get(r->config, key);
    if (!list || json_is_null(list)) return FT_OK;
    if (!json_is_array(list)) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list, one word a layer", key);
    for (size_t at = 0; at < json_array_size(list); at++) {
        const char *said = json_string_value(json_array_get(list, at));
        size_t i = 0;
        if (!said) return ft__config_fail(r, FT_E_TYPE, key, "layer %zu of \"%s\" must be a word", at + 1, key);
        while (i < count && strcmp(said, words[i]) != 0) i++;
        if (i == count) return unknown_word(r, key, at, said, words, count);
    }
    if (layers < 1 || (int64_t)json_array_size(list) == layers) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" has %zu entries for %" PRId64 " layers", key,
                           json_array_size(list), layers);
}

static int64_t layers_said(const json_t *config, int64_t otherwise)
{
    const json_t *said = json_object_get(config, "num_hidden_layers");
    return json_is_integer(said) ? json_integer_value(said) : otherwise;
}

/* How one of gpt_neo's lists is written short: [[["global", "local"], 12]] are 24 layers. */
static ft_status check_repeats(const ft_reading *r, const char *key, int64_t layers)
{
    const json_t *list = json_object_get(r->config, key);
    int64_t said = 0;
    if (!list || json_is_null(list)) return FT_OK;
    if (!json_is_array(list)) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list of [words, times]", key);
    for (size_t at = 0; at < json_array_size(list); at++) {
        const json_t *one = json_array_get(list, at), *words = json_array_get(one, 0), *times = json_array_get(one, 1);
        bool right = json_is_array(words) && json_is_integer(times) && json_integer_value(times) >= 0 &&
                     json_integer_value(times) <= FT_MOST_PLANNED;
        if (!right)
            return ft__config_fail(r, FT_E_TYPE, key, "entry %zu of \"%s\" must be [words, times]", at + 1, key);
        said += (int64_t)json_array_size(words) * json_integer_value(times);
    }
    if (said == layers) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" has %" PRId64 " entries for %" PRId64 " layers", key, said,
                           layers);
}

/* -- formats ----------------------------------------------------------------------------------------- */

/* What transformers looks up in torch, and the short words that people write. Without "torch." before it. */
static const char *const formats[] = {"float16", "bfloat16",      "float32",     "float64", "half",  "float",
                                      "double",  "float8_e4m3fn", "float8_e5m2", "int8",    "uint8", "auto",
                                      "fp16",    "bf16",          "fp32",        "fp64",    "fp8"};
enum { FORMATS = sizeof formats / sizeof *formats };

static ft_status check_format(const ft_reading *r, const char *key)
{
    const char *said = json_string_value(json_object_get(r->config, key));
    if (!said) return FT_OK; /* null; an object has a format for each part */
    const char *word = strncmp(said, "torch.", 6) ? said : said + 6;
    for (size_t i = 0; i < FORMATS; i++)
        if (!strcmp(word, formats[i])) return FT_OK;
    const char *nearest = ft__nearest(word, formats, FORMATS);
    return ft__config_fail(r, FT_E_NAME, key, "unknown format \"%.*s\"; %s%s%sexpected float16, bfloat16 or float32",
                           (int)ft__utf8_cut(said, 60), said, nearest ? "did you mean \"" : "", nearest ? nearest : "",
                           nearest ? "\"? " : "");
}

/* -- the whole --------------------------------------------------------------------------------------- */

/* Every object but `own`, whose lists have rules of their own or are checked against them. */
static ft_status check_object(const ft_reading *r, const json_t *own, int depth)
{
    const char *key;
    json_t *value;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) FT_TRY(check_size(r, sizes[i]));
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        const json_t *said = json_object_get(r->config, switches[i]);
        if (said && !json_is_null(said)) FT_TRY(ft__config_flag(r, switches[i], &(bool){false}));
    }
    FT_TRY(check_format(r, "torch_dtype"));
    if (depth == 0 || json_object_get(r->config, "model_type")) FT_TRY(check_format(r, "dtype"));
    if (r->config != own) FT_TRY(check_list(r, "layer_types", layers_said(r->config, 0), every_word, WORDS));
    if (depth == DEEPEST) return FT_OK;
    json_object_foreach ((json_t *)r->config, key, value) {
        ft_reading inside;
        ft_config_path path;
        if (!json_is_object(value) || !strcmp(key, "quantization_config") || !strcmp(key, "id2label")) continue;
        if (ft__config_inside(r, key, &inside, path)) FT_TRY(check_object(&inside, own, depth + 1));
    }
    return FT_OK;
}

ft_status ft__config_shapes(const ft_reading *r)
{
    ft_reading whole = *r;
    ft_config_path path;
    whole.config = r->whole;
    /* `where` of a nested language model ends in its key: the whole one's is what stands before it. */
    snprintf(path, sizeof path, "%s", r->where);
    if (r->config != r->whole) {
        const char *key;
        json_t *value;
        json_object_foreach ((json_t *)r->whole, key, value) {
            size_t length = strlen(key), all = strlen(path);
            if (value != r->config || all < length || strcmp(path + all - length, key) != 0) continue;
            path[all - length] = '\0';
            for (size_t end = all - length; end && strchr(".: ", path[end - 1]); end--) path[end - 1] = '\0';
        }
    }
    whole.where = path;
    return check_object(&whole, r->config, 0);
}

static bool has_rule(const json_t *rules, const char *key)
{
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *list = json_string_value(json_object_get(json_array_get(rules, i), "list"));
        if (list && !strcmp(list, key)) return true;
    }
    return false;
}

/* Words that a type's file adds under "words": {"layer_types": ["indexed_attention"]}. */
static size_t words_of(const ft_architecture *of, const char *key, const char **out, size_t count)
{
    for (size_t i = 0; i < of->count; i++) {
        const json_t *more = json_object_get(json_object_get(of->document[i], "words"), key);
        for (size_t at = 0; at < json_array_size(more) && count < MOST_WORDS; at++)
            out[count++] = json_string_value(json_array_get(more, at));
    }
    return count;
}

/* The library's list decides where experts are; ours is a number of leading layers. */
static ft_status check_dense(const ft_reading *r, const ft_arch *a)
{
    const json_t *list = json_object_get(r->config, "mlp_layer_types");
    if (a->experts < 1 || a->moe_every > 1) return FT_OK;
    for (size_t at = 0; at < json_array_size(list); at++) {
        bool dense = !strcmp(json_string_value(json_array_get(list, at)), "dense");
        if (dense == ((int64_t)at < a->first_dense)) continue;
        return ft__config_fail(r, FT_E_UNSUPPORTED, "mlp_layer_types",
                               "layer %zu is \"%s\", and the first %" PRId64
                               " layers are dense: say it by their number",
                               at + 1, dense ? "dense" : "sparse", a->first_dense);
    }
    return FT_OK;
}

ft_status ft__config_lists(const ft_architecture *of, const ft_reading *r, const ft_arch *a)
{
    const json_t *rules = NULL;
    const char *mixers[MOST_WORDS] = {"full_attention", "sliding_attention", "chunked_attention", "attention"};
    static const char *const indexers[] = {"full", "shared"};
    const char *feeds[MOST_WORDS] = {"dense", "sparse"};
    int64_t layers = layers_said(r->config, a->layers_each > 1 ? a->layers / a->layers_each : a->layers);
    for (size_t i = 0; i < of->count && !rules; i++) rules = json_object_get(of->document[i], "layers");
    if (!has_rule(rules, "layer_types"))
        FT_TRY(check_list(r, "layer_types", layers, mixers, words_of(of, "layer_types", mixers, 4)));
    if (!has_rule(rules, "indexer_types")) FT_TRY(check_list(r, "indexer_types", layers, indexers, 2));
    const char *ranges[MOST_WORDS];
    size_t known = words_of(of, "attention_layers", ranges, 0);
    if (known) FT_TRY(check_list(r, "attention_layers", layers, ranges, known));
    if (known) FT_TRY(check_repeats(r, "attention_types", layers));
    if (has_rule(rules, "mlp_layer_types")) return FT_OK;
    FT_TRY(check_list(r, "mlp_layer_types", layers, feeds, words_of(of, "mlp_layer_types", feeds, 2)));
    return check_dense(r, a);
}
