/* finish_beside.c: what a table cannot say of Reformer's positions and buckets, of what Evolla reads beside words, and
 * of the stack that acts for π0. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "import/config/finish.h"

enum { MOST = 1 << 24, MOST_CHUNKS = 7 };

/* A size that may be null, which means its default. */
static ft_status size_of(const ft_reading *r, const char *key, int64_t *out)
{
    if (json_is_null(json_object_get(r->config, key))) return FT_OK;
    return ft__json_whole(r->config, key, FT_OPTIONAL, 1, MOST, out, r->where, r->err);
}

/* What stands under a key is an object, null, or not there. */
static ft_status object_at(const ft_reading *r, const char *key)
{
    const json_t *said = json_object_get(r->config, key);
    if (!said || json_is_null(said) || json_is_object(said)) return FT_OK;
    return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be an object", key);
}

/* -- reformer --------------------------------------------------------------------------------------- */

/* A list of two sizes. */
static ft_status pair_of(const ft_reading *r, const char *key, int64_t out[2])
{
    int64_t sizes[FT_MAX_STAGES] = {out[0], out[1]}, count = 2;
    FT_TRY(ft__config_sizes(r, key, sizes, &count));
    if (count != 2)
        return ft__config_fail(r, FT_E_RANGE, key, "a list of two sizes is expected, not of %" PRId64, count);
    out[0] = sizes[0];
    out[1] = sizes[1];
    return FT_OK;
}

/* One even number, or two whose product it is. */
static ft_status bucket_count(const ft_reading *r, int64_t out[2])
{
    const char *key = "num_buckets";
    const json_t *said = json_object_get(r->config, key);
    int64_t sizes[FT_MAX_STAGES] = {0}, count = 1;
    if (json_is_array(said))
        FT_TRY(ft__config_sizes(r, key, sizes, &count));
    else
        FT_TRY(size_of(r, key, &sizes[0]));
    if (count > 2)
        return ft__config_fail(r, FT_E_UNSUPPORTED, key, "at most two factors are modelled, not %" PRId64, count);
    for (int64_t i = 0; i < count; i++)
        if (sizes[i] % 2)
            return ft__config_fail(r, FT_E_RANGE, key, "an even number of buckets is expected, not %" PRId64, sizes[i]);
    out[0] = sizes[0];
    out[1] = sizes[1];
    return FT_OK;
}

static ft_status chunks(const ft_reading *r, const char *key, const ft_chunking *c)
{
    if (c->before + c->after <= MOST_CHUNKS) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, key, "%" PRId64 " chunks beside a query's own: at most %d are expected",
                           c->before + c->after, MOST_CHUNKS);
}

ft_status ft__finish_reformer(const ft_reading *r, ft_arch *a)
{
    ft_buckets *b = &a->buckets;
    const json_t *list = json_object_get(r->config, "attn_layers");
    bool axial = true;
    b->axial_shape[0] = b->axial_shape[1] = b->axial_width[0] = 64;
    b->axial_width[1] = 192;
    if (json_is_array(list)) a->layers = (int64_t)json_array_size(list);
    FT_TRY(pair_of(r, "axial_pos_shape", b->axial_shape));
    FT_TRY(pair_of(r, "axial_pos_embds_dim", b->axial_width));
    FT_TRY(bucket_count(r, b->count));
    FT_TRY(ft__config_flag(r, "axial_pos_embds", &axial));
    FT_TRY(chunks(r, "local_num_chunks_before", &b->near));
    FT_TRY(chunks(r, "lsh_num_chunks_before", &b->alike));
    if (b->rounds < 1) return ft__config_fail(r, FT_E_RANGE, "num_hashes", "a whole number from 1 on is expected");
    if (b->near.length < 1 || b->alike.length < 1)
        return ft__config_fail(r, FT_E_RANGE, b->near.length < 1 ? "local_attn_chunk_length" : "lsh_attn_chunk_length",
                               "a whole number from 1 on is expected");
    if (axial && b->axial_width[0] + b->axial_width[1] != a->hidden)
        return ft__config_fail(r, FT_E_RANGE, "axial_pos_embds_dim",
                               "%" PRId64 " and %" PRId64 " must make up hidden_size %" PRId64, b->axial_width[0],
                               b->axial_width[1], a->hidden);
    if (!axial) {
        b->axial_shape[0] = b->axial_shape[1] = 0;
        a->position = FT_LEARNED_POSITION;
    }
    a->beside = (double)a->vocab; /* a bias of the head that nobody adds */
    return FT_OK;
}

/* -- evolla ------------------------------------------------------------------------------------------ */

ft_status ft__finish_evolla(const ft_reading *r, ft_arch *a)
{
    ft_protein *p = &a->protein;
    int64_t added = 8;
    ft_reading own;
    ft_config_path path;
    p->reader = (ft_stack_size){.layers = 33, .hidden = 1280, .ffn = 5120, .heads = 20};
    p->vocab = 446;
    p->dropout = 0.1;
    FT_TRY(object_at(r, "protein_encoder_config"));
    if (ft__config_inside(r, "protein_encoder_config", &own, path)) {
        const char *place = json_string_value(json_object_get(own.config, "position_embedding_type"));
        FT_TRY(size_of(&own, "num_hidden_layers", &p->reader.layers));
        FT_TRY(size_of(&own, "hidden_size", &p->reader.hidden));
        FT_TRY(size_of(&own, "intermediate_size", &p->reader.ffn));
        FT_TRY(size_of(&own, "num_attention_heads", &p->reader.heads));
        FT_TRY(size_of(&own, "vocab_size", &p->vocab));
        FT_TRY(ft__json_number(own.config, "hidden_dropout_prob", FT_OPTIONAL, 0, 1, &p->dropout, path, r->err));
        if (p->reader.hidden % p->reader.heads)
            return ft__config_fail(&own, FT_E_RANGE, "num_attention_heads",
                                   "%" PRId64 " heads must divide a width of %" PRId64, p->reader.heads,
                                   p->reader.hidden);
        if (place && strcmp(place, "rotary") != 0)
            return ft__config_fail(&own, FT_E_UNSUPPORTED, "position_embedding_type",
                                   "\"rotary\" is expected, other positions of a protein are not modelled");
    }
    FT_TRY(size_of(r, "aligner_num_add_layers", &added));
    a->cross_every = a->layers > added ? a->layers / added : 1;
    if (p->latents < 1 || p->latent_layers < 1 || p->latent_heads < 1 || p->latent_dim < 1 || p->latent_ffn < 1)
        return ft__config_fail(r, FT_E_RANGE, "resampler_num_latents",
                               "sizes of the resampler are whole numbers from 1 on");
    return FT_OK;
}

/* -- pi0 ----------------------------------------------------------------------------------------------- */

ft_status ft__finish_pi0(const ft_reading *r, ft_arch *a)
{
    ft_actor *actor = &a->actor;
    ft_reading whole = *r, own;
    ft_config_path path;
    whole.config = r->whole;
    /* What must be as the language model has it follows that where nothing is said. */
    *actor = (ft_actor){.size = {.layers = a->layers, .hidden = 1024, .ffn = 4096, .kv_heads = a->kv_heads},
                        .head_dim = a->head_dim,
                        .actions = 50,
                        .action_width = 32,
                        .state_width = 32,
                        .steps = 10};
    actor->size.heads = 8 % a->kv_heads ? a->kv_heads : 8;
    FT_TRY(object_at(&whole, "vlm_config"));
    FT_TRY(object_at(&whole, "dit_config"));
    FT_TRY(size_of(&whole, "chunk_size", &actor->actions));
    FT_TRY(size_of(&whole, "max_action_dim", &actor->action_width));
    FT_TRY(size_of(&whole, "max_state_dim", &actor->state_width));
    FT_TRY(size_of(&whole, "num_inference_steps", &actor->steps));
    if (ft__config_inside(&whole, "dit_config", &own, path)) {
        const char *word = json_string_value(json_object_get(own.config, "model_type"));
        FT_TRY(size_of(&own, "num_hidden_layers", &actor->size.layers));
        FT_TRY(size_of(&own, "hidden_size", &actor->size.hidden));
        FT_TRY(size_of(&own, "intermediate_size", &actor->size.ffn));
        FT_TRY(size_of(&own, "num_attention_heads", &actor->size.heads));
        FT_TRY(size_of(&own, "num_key_value_heads", &actor->size.kv_heads));
        FT_TRY(size_of(&own, "head_dim", &actor->head_dim));
        if (word && strcmp(word, "gemma") != 0)
            return ft__config_fail(&own, FT_E_UNSUPPORTED, "model_type", "\"gemma\" is expected: no other acts");
    } else {
        own = whole;
    }
    const struct {
        const char *key;
        int64_t actor, words;
    } same[] = {{"num_hidden_layers", actor->size.layers, a->layers},
                {"num_key_value_heads", actor->size.kv_heads, a->kv_heads},
                {"head_dim", actor->head_dim, a->head_dim}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].actor != same[i].words)
            return ft__config_fail(&own, FT_E_RANGE, same[i].key,
                                   "%" PRId64 " beside %" PRId64
                                   " of the language model, whose keys are read layer by layer",
                                   same[i].actor, same[i].words);
    if (actor->size.heads % actor->size.kv_heads || actor->size.hidden % 2)
        return ft__config_fail(&own, FT_E_RANGE, actor->size.hidden % 2 ? "hidden_size" : "num_attention_heads",
                               actor->size.hidden % 2 ? "an even width is expected, not %" PRId64
                                                      : "%" PRId64 " heads that do not divide into those of keys",
                               actor->size.hidden % 2 ? actor->size.hidden : actor->size.heads);
    a->lm_head = false;
    a->beside += (double)a->vocab * (double)actor->size.hidden; /* its table of words, which it never reads */
    return FT_OK;
}
