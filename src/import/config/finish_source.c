/* finish_source.c: what a table cannot say of decoders that look at an encoder of images or of words. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "import/config/finish.h"

/* Whatever decodes looks at what an encoder of images made. Where their widths differ, and the decoder does not say
 * that its products take the encoder's, one product lies between them. */
ft_status ft__finish_captions(const ft_reading *r, ft_arch *a)
{
    if (a->design != FT_DECODER_ONLY && a->design != FT_ENCODER_ONLY)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "model_type",
                               "such a decoder of images is not modelled: bert, gpt2, trocr and their like are");
    a->cross = a->causal = true;
    if (a->cross_width > 0 && a->cross_width != a->tower_hidden)
        return ft__config_fail(r, FT_E_RANGE, ft__config_word(r, offsetof(ft_arch, cross_width), "cross_width"),
                               "%" PRId64 " beside an encoder of width %" PRId64, a->cross_width, a->tower_hidden);
    if (a->cross_width > 0 || a->tower_hidden == a->hidden || a->step_count > 0) return FT_OK;
    a->step_count = 1;
    a->steps[0] = (ft_project_step){.kind = FT_STEP_LINEAR, .bias = true};
    return FT_OK;
}

/* Nothing lies between the encoder and what looks at it. */
ft_status ft__finish_same_width(const ft_reading *r, ft_arch *a)
{
    if (a->tower_hidden == a->hidden) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, ft__config_word(r, offsetof(ft_arch, hidden), "hidden_size"),
                           "%" PRId64 " beside an encoder of width %" PRId64 ": both must be the same", a->hidden,
                           a->tower_hidden);
}

/* The decoder's layers are the encoder's too. */
ft_status ft__finish_equal_stacks(const ft_reading *r, ft_arch *a)
{
    const json_t *encoder = json_object_get(json_object_get(r->whole, "encoder"), "text_config");
    const struct {
        const char *key;
        int64_t own;
    } sizes[] = {{"num_hidden_layers", a->layers},
                 {"hidden_size", a->hidden},
                 {"intermediate_size", a->ffn},
                 {"num_attention_heads", a->heads},
                 {"vocab_size", a->vocab}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t other = sizes[i].own;
        char key[64];
        snprintf(key, sizeof key, "encoder.text_config.%s", sizes[i].key);
        if (json_is_object(encoder))
            FT_TRY(ft__json_whole(encoder, sizes[i].key, FT_OPTIONAL, 1, (int64_t)1 << 31, &other, r->where, r->err));
        if (other != sizes[i].own)
            return ft__config_fail(r, FT_E_UNSUPPORTED, key,
                                   "%" PRId64 " in the decoder beside %" PRId64
                                   " in the encoder: only equal stacks are "
                                   "supported",
                                   sizes[i].own, other);
    }
    return FT_OK;
}

/* DaViT before an encoder of words: widths, depths and heads of its stages. Other filters than its own are refused. */
ft_status ft__finish_davit(const ft_reading *r, ft_arch *a)
{
    static const int64_t wide[] = {128, 256, 512, 1024}, deep[] = {1, 1, 9, 1}, heads[] = {4, 8, 16, 32};
    enum { USUAL = sizeof wide / sizeof *wide, PIXELS = 768, HALVED = 32, WINDOW = 12, PLACES = 50 };
    int64_t groups[FT_MAX_STAGES], stages = USUAL, depths = USUAL, parts[2] = {USUAL, USUAL}, out = a->hidden;
    double ratio = 4;
    ft_reading whole = *r, eye;
    ft_config_path path;
    const int64_t most = (int64_t)1 << 24;
    for (int i = 0; i < USUAL; i++) {
        a->width[i] = wide[i];
        a->depth[i] = deep[i];
        a->stage_heads[i] = groups[i] = heads[i];
    }
    a->tower_window = WINDOW;
    a->tower_positions = PLACES;
    whole.config = r->whole;
    if (ft__config_inside(&whole, "vision_config", &eye, path)) {
        FT_TRY(ft__config_sizes(&eye, "embed_dim", a->width, &stages));
        FT_TRY(ft__config_sizes(&eye, "depths", a->depth, &depths));
        FT_TRY(ft__config_sizes(&eye, "num_heads", a->stage_heads, &parts[0]));
        FT_TRY(ft__config_sizes(&eye, "num_groups", groups, &parts[1]));
        FT_TRY(ft__json_whole(eye.config, "projection_dim", FT_OPTIONAL, 1, most, &out, path, r->err));
        FT_TRY(ft__json_whole(eye.config, "window_size", FT_OPTIONAL, 1, PIXELS, &a->tower_window, path, r->err));
        FT_TRY(ft__json_whole(eye.config, "max_position_embeddings", FT_OPTIONAL, 1, most, &a->tower_positions, path,
                              r->err));
        FT_TRY(ft__json_number(eye.config, "mlp_ratio", FT_OPTIONAL, 1, 64, &ratio, path, r->err));
    } else {
        eye = whole;
    }
    a->stages = stages;
    a->tower_layers = 0;
    for (int64_t i = 0; i < stages; i++) {
        const char *key = depths != stages ? "depths" : parts[0] != stages ? "num_heads" : "num_groups";
        if (depths != stages || parts[0] != stages || parts[1] != stages)
            return ft__config_fail(&eye, FT_E_RANGE, key, "must hold %" PRId64 " sizes, one for each of embed_dim",
                                   stages);
        if (a->stage_heads[i] != groups[i] || a->width[i] % a->stage_heads[i])
            return ft__config_fail(&eye, FT_E_RANGE, "num_groups",
                                   "as many groups as heads are expected, which divide embed_dim; stage %" PRId64
                                   " has %" PRId64 " and %" PRId64 " of %" PRId64,
                                   i + 1, groups[i], a->stage_heads[i], a->width[i]);
        a->tower_layers += 2 * a->depth[i];
    }
    if (out != a->hidden)
        return ft__config_fail(&eye, FT_E_RANGE, "projection_dim", "%" PRId64 " beside words of width %" PRId64, out,
                               a->hidden);
    a->tower_hidden = a->width[stages - 1];
    a->tower_heads = a->stage_heads[stages - 1];
    a->tower_ffn = (int64_t)ratio;
    a->tower_size = PIXELS;
    a->tower_patch = HALVED;
    a->tower_tokens = (PIXELS / HALVED) * (PIXELS / HALVED) + 1;
    return FT_OK;
}

/* A drafter reads and makes states of a target model, and has no keys of its own: all its layers see that model's. */
ft_status ft__finish_drafts(const ft_reading *r, ft_arch *a)
{
    const int64_t most = (int64_t)1 << 31;
    bool grouped = false;
    ft_reading whole = *r;
    whole.config = r->whole;
    FT_TRY(ft__json_whole(r->whole, "backbone_hidden_size", FT_OPTIONAL, 1, most, &a->draft_width, r->where, r->err));
    FT_TRY(ft__config_flag(&whole, "use_ordered_embeddings", &grouped));
    for (int32_t i = 0; i < a->kind_count; i++) a->kinds[i].shares_keys = true;
    a->per_layer_width = a->per_layer_vocab = 0;
    if (!grouped) return FT_OK;
    a->centroids = 2048;
    a->centroid_topk = 32;
    FT_TRY(ft__json_whole(r->whole, "num_centroids", FT_OPTIONAL, 1, most, &a->centroids, r->where, r->err));
    FT_TRY(ft__json_whole(r->whole, "centroid_intermediate_top_k", FT_OPTIONAL, 1, most, &a->centroid_topk, r->where,
                          r->err));
    if (a->vocab % a->centroids || a->centroid_topk > a->centroids)
        return ft__config_fail(
            &whole, FT_E_RANGE, a->vocab % a->centroids ? "num_centroids" : "centroid_intermediate_top_k",
            "%" PRId64 " groups, of which %" PRId64 " are scored: they must divide %" PRId64 " words", a->centroids,
            a->centroid_topk, a->vocab);
    return FT_OK;
}

/* Blocks of tokens make up what the indexer picks, hashes the width of an n-gram's embedding. */
ft_status ft__finish_qwen4(const ft_reading *r, ft_arch *a)
{
    enum { MOST = 1024 };
    int64_t width = a->ngram_width > 0 ? a->ngram_width : a->hidden, hashes = (a->ngram_size - 1) * a->ngram_heads;
    if (a->index_mean < 1 || a->index_topk % a->index_mean)
        return ft__config_fail(r, FT_E_RANGE, "indexer_compress_ratio",
                               "%" PRId64 " must be from 1 on and divide indexer_budget %" PRId64, a->index_mean,
                               a->index_topk);
    if (a->streams < 2 || a->streams > MOST)
        return ft__config_fail(r, FT_E_RANGE, "hc_count", "%" PRId64 " residual streams; 2 to %d are expected",
                               a->streams, MOST);
    if (a->ngram_size > MOST || a->ngram_heads > MOST || a->ngram_kernel > MOST)
        return ft__config_fail(r, FT_E_RANGE, a->ngram_size > MOST ? "ngram_size" : "heads_per_ngram",
                               "n-grams, their hashes and filters of at most %d are expected", MOST);
    const json_t *with = json_object_get(r->config, "ple_layer_ids");
    for (size_t i = 0; i < json_array_size(with); i++) {
        json_int_t layer = json_integer_value(json_array_get(with, i));
        if (layer < 1 || layer > a->layers)
            return ft__config_fail(r, FT_E_RANGE, "ple_layer_ids", "entry %zu must be a layer from 1 to %" PRId64,
                                   i + 1, a->layers);
    }
    if (hashes < 1 || width % hashes || a->ngram_kernel < 1)
        return ft__config_fail(r, FT_E_RANGE, "ple_embed_dim",
                               "%" PRId64 " must be a multiple of the %" PRId64 " hashes of n-grams", width, hashes);
    return FT_OK;
}

/* A step reads and writes a word of every codebook: tables and heads side by side. The tables have a row more each. */
ft_status ft__finish_codebooks(const ft_reading *r, ft_arch *a)
{
    if (a->codebooks < 1 || a->codebooks > ((int64_t)1 << 31) / a->vocab)
        return ft__config_fail(r, FT_E_RANGE, "num_codebooks", "%" PRId64 " codebooks of %" PRId64 " words",
                               a->codebooks, a->vocab);
    a->vocab *= a->codebooks;
    a->beside += (double)a->codebooks * (double)a->hidden;
    return FT_OK;
}

/* How much is denoised at once stands beside the language model's config. */
ft_status ft__finish_canvas(const ft_reading *r, ft_arch *a)
{
    return ft__json_whole(r->whole, "canvas_length", FT_OPTIONAL, 1, 1 << 24, &a->canvas, r->where, r->err);
}
