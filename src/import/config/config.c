/* config.c: a Hugging Face config.json as an ft_arch.
 *
 * An architecture is a file of data/architectures: defaults, keys, rules, and for what they cannot say the name of a
 * function (finish.h). This file applies them, derives what follows from the sizes, and refuses what contradicts
 * itself. Keys that nobody here knows are ignored: configs carry dozens that change no computation.
 */
#include "import/config/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "import/config/architecture.h"
#include "import/graphfile/graphfile.h"

static const int64_t most_layers = 1000000;
static const int64_t most_wide = (int64_t)1 << 31;

/* -- messages ------------------------------------------------------------------------------------- */

static bool names_a_file(const char *where)
{
    size_t n = strlen(where);
    return n > 5 && strcmp(where + n - 5, ".json") == 0;
}

static void path_of(ft_config_path path, const char *where, const char *key)
{
    if (*where)
        snprintf(path, sizeof(ft_config_path), "%s%s%s", where, names_a_file(where) ? ": " : ".", key);
    else
        snprintf(path, sizeof(ft_config_path), "%s", key);
}

ft_status ft__config_fail(const ft_reading *r, ft_status code, const char *key, const char *format, ...)
{
    ft_config_path path;
    char message[sizeof r->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    path_of(path, r->where, key);
    return ft__fail_at(r->err, code, path, 0, 0, "%s", message);
}

const char *ft__config_word(const ft_reading *r, size_t offset, const char *otherwise)
{
    for (const ft_config_key *key = r->type->keys; key->name; key++)
        if (key->offset == offset) return key->name;
    return otherwise;
}
#define WORD(field) FT_CONFIG_WORD(r, field)

/* -- one key -------------------------------------------------------------------------------------- */

static ft_status read_activation(const ft_reading *r, const char *key, const char **out)
{
    const char *name = NULL;
    FT_TRY(ft__json_string(r->config, key, FT_OPTIONAL, &name, r->where, r->err));
    return name ? ft__config_activation(r, key, name, out) : FT_OK;
}

static ft_status read_null(const ft_reading *r, const ft_config_key *key, const char *name, void *field)
{
    switch (key->kind) {
    case FT_KEY_LAYERS:
    case FT_KEY_SIZE: return ft__config_fail(r, FT_E_TYPE, name, "\"%s\" must be a whole number, got null", name);
    case FT_KEY_FOLLOWS:
    case FT_KEY_MAYBE: *(int64_t *)field = 0; return FT_OK;
    case FT_KEY_SHARE:
    case FT_KEY_REAL: *(double *)field = 0; return FT_OK;
    case FT_KEY_FLAG:
    case FT_KEY_ACTIVATION:
    case FT_KEY_SIZES: return FT_OK;
    }
    return FT_OK;
}

static ft_status read_value(const ft_reading *r, const ft_config_key *key, const char *name, void *field)
{
    switch (key->kind) {
    case FT_KEY_LAYERS: return ft__json_whole(r->config, name, FT_OPTIONAL, 1, most_layers, field, r->where, r->err);
    case FT_KEY_FOLLOWS:
    case FT_KEY_SIZE: return ft__json_whole(r->config, name, FT_OPTIONAL, 1, most_wide, field, r->where, r->err);
    case FT_KEY_MAYBE: return ft__json_whole(r->config, name, FT_OPTIONAL, 0, most_wide, field, r->where, r->err);
    case FT_KEY_FLAG: return ft__json_bool(r->config, name, FT_OPTIONAL, field, r->where, r->err);
    case FT_KEY_SHARE: return ft__json_number(r->config, name, FT_OPTIONAL, 0, 1, field, r->where, r->err);
    case FT_KEY_REAL: return ft__json_number(r->config, name, FT_OPTIONAL, 0, 1e30, field, r->where, r->err);
    case FT_KEY_ACTIVATION: return read_activation(r, name, field);
    case FT_KEY_SIZES: return FT_OK; /* no key is one (architecture.c) */
    }
    return FT_OK;
}

static ft_status read_named(const ft_reading *r, const ft_config_key *key, const char *name, ft_arch *a)
{
    void *field = (char *)a + key->offset;
    return json_is_null(json_object_get(r->config, name)) ? read_null(r, key, name, field)
                                                          : read_value(r, key, name, field);
}

/* The library keeps one value under both names, so that two different ones are a mistake somewhere. */
static ft_status check_alias(const ft_reading *r, const ft_config_key *key)
{
    const json_t *named = json_object_get(r->config, key->name), *other = json_object_get(r->config, key->alias);
    if (!named || json_equal(named, other)) return FT_OK;
    if (json_is_number(named) && json_is_number(other) && json_number_value(named) == json_number_value(other))
        return FT_OK;
    if (json_is_null(named) || json_is_null(other)) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, key->alias, "\"%s\" and \"%s\" mean the same and differ: leave one out",
                           key->name, key->alias);
}

ft_status ft__config_keys(const ft_reading *r, const ft_config_key *keys, ft_arch *a)
{
    for (const ft_config_key *key = keys; key->name; key++) {
        if (key->alias && json_object_get(r->config, key->alias)) {
            FT_TRY(check_alias(r, key));
            FT_TRY(read_named(r, key, key->alias, a));
        }
        if (json_object_get(r->config, key->name)) FT_TRY(read_named(r, key, key->name, a));
    }
    return FT_OK;
}

/* -- other shapes of values ----------------------------------------------------------------------- */

ft_status ft__config_flag(const ft_reading *r, const char *key, bool *out)
{
    if (json_is_null(json_object_get(r->config, key))) return FT_OK;
    return ft__json_bool(r->config, key, FT_OPTIONAL, out, r->where, r->err);
}

ft_status ft__config_sizes(const ft_reading *r, const char *key, int64_t *out, int64_t *count)
{
    const json_t *list = json_object_get(r->config, key);
    if (!list) return FT_OK;
    if (!json_is_array(list)) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list of sizes", key);
    size_t length = json_array_size(list);
    if (length < 1 || length > FT_MAX_STAGES)
        return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" must hold 1 to %d sizes, it holds %zu", key, FT_MAX_STAGES,
                               length);
    for (size_t i = 0; i < length; i++) {
        const json_t *value = json_array_get(list, i);
        json_int_t size = json_integer_value(value);
        if (!json_is_integer(value) || size < 1 || size > most_layers)
            return ft__config_fail(r, json_is_number(value) ? FT_E_RANGE : FT_E_TYPE, key,
                                   "\"%s\" must hold whole numbers from 1 to %" PRId64 "; entry %zu is not one", key,
                                   most_layers, i + 1);
        out[i] = size;
    }
    *count = (int64_t)length;
    return FT_OK;
}

bool ft__config_inside(const ft_reading *r, const char *key, ft_reading *out, ft_config_path path)
{
    const json_t *inside = ft__config_value(r->config, key);
    if (!json_is_object(inside)) return false;
    path_of(path, r->where, key);
    *out = *r;
    out->config = inside;
    out->where = path;
    return true;
}

/* -- what follows from the sizes ------------------------------------------------------------------ */

/* Under three names in three generations of the library. */
static ft_status read_rotary_share(const ft_reading *r, double *share)
{
    static const char *const names[] = {"rotary_pct", "partial_rotary_factor"};
    ft_config_path path;
    ft_reading inside = *r;
    bool nested = ft__config_inside(r, "rope_parameters", &inside, path);
    for (size_t i = 0; i < 2; i++) {
        FT_TRY(ft__json_number(r->config, names[i], FT_OPTIONAL, 0, 1, share, r->where, r->err));
        if (nested) FT_TRY(ft__json_number(inside.config, names[i], FT_OPTIONAL, 0, 1, share, path, r->err));
    }
    return FT_OK;
}

/* Whatever else may stand there is no concern of a forecast. */
static double read_rotary_base(const ft_reading *r)
{
    const json_t *inside = json_object_get(r->config, "rope_parameters"),
                 *base = json_object_get(json_is_object(inside) ? inside : r->config, "rope_theta");
    const double theta = json_is_number(base) ? json_number_value(base) : 0;
    return isfinite(theta) && theta > 0 ? theta : 0;
}

static ft_status settle_rotary(const ft_reading *r, ft_arch *a)
{
    if (a->position == FT_ROTARY) a->rotary_base = read_rotary_base(r);
    if (a->position != FT_ROTARY || a->rope_dim) {
        a->rotary_dim = a->position == FT_ROTARY ? a->rope_dim : 0;
        return FT_OK;
    }
    double share = r->type->rotary_share > 0 ? r->type->rotary_share : 1;
    FT_TRY(read_rotary_share(r, &share));
    if (!a->rotary_dim) a->rotary_dim = (int64_t)((double)a->head_dim * share);
    if (a->rotary_dim > a->head_dim)
        return ft__config_fail(r, FT_E_RANGE, WORD(rotary_dim), "%" PRId64 " rotated dimensions in heads of %" PRId64,
                               a->rotary_dim, a->head_dim);
    if (a->rotary_dim < 2 || a->rotary_dim % 2)
        return ft__config_fail(r, FT_E_RANGE, WORD(head_dim),
                               "rotary positions turn pairs: %" PRId64 " of a head's %" PRId64
                               " dimensions must be even and positive",
                               a->rotary_dim, a->head_dim);
    return FT_OK;
}

static ft_status settle_heads(const ft_reading *r, ft_arch *a)
{
    if (!a->heads) return FT_OK; /* convolutions */
    if (!a->head_dim && a->hidden < 1)
        return ft__config_fail(r, FT_E_MISSING, WORD(hidden), "\"%s\" is missing: how wide layers are", WORD(hidden));
    if (!a->head_dim) {
        if (a->hidden % a->heads)
            return ft__config_fail(r, FT_E_RANGE, WORD(heads),
                                   "%s %" PRId64 " is not a multiple of %s %" PRId64 ", and no head_dim is given",
                                   WORD(hidden), a->hidden, WORD(heads), a->heads);
        a->head_dim = a->hidden / a->heads;
    }
    if (a->heads > most_wide / a->head_dim)
        return ft__config_fail(r, FT_E_RANGE, WORD(heads), "%" PRId64 " heads of %" PRId64 " are wider than 2^31",
                               a->heads, a->head_dim);
    if (a->design == FT_STATE_SPACE) return FT_OK;
    if (!a->kv_heads) a->kv_heads = a->heads;
    if (a->heads % a->kv_heads)
        return ft__config_fail(r, FT_E_RANGE, WORD(kv_heads), "%s %" PRId64 " must divide %s %" PRId64, WORD(kv_heads),
                               a->kv_heads, WORD(heads), a->heads);
    return settle_rotary(r, a);
}

static ft_status settle_experts(const ft_reading *r, ft_arch *a)
{
    if (!a->experts) {
        a->topk = a->moe_ffn = a->shared_experts = a->shared_ffn = 0;
        return FT_OK;
    }
    if (!a->topk)
        return ft__config_fail(r, FT_E_MISSING, WORD(topk),
                               "\"%s\" is missing: how many of the %" PRId64 " experts a token visits", WORD(topk),
                               a->experts);
    if (a->topk > a->experts)
        return ft__config_fail(r, FT_E_RANGE, WORD(topk), "%s %" PRId64 " is more than %s %" PRId64, WORD(topk),
                               a->topk, WORD(experts), a->experts);
    if (!a->moe_ffn) a->moe_ffn = a->ffn;
    if (!a->moe_every) a->moe_every = 1;
    return FT_OK;
}

/* Later arithmetic is 64-bit and double: a bound here keeps it honest, five orders above what anybody has built. */
static ft_status check_total(const ft_reading *r, const ft_arch *a)
{
    double wide = (double)a->hidden, layers = (double)(a->layers + a->decoder_layers);
    double attention = 8 * (double)a->heads * (double)(a->head_dim > a->v_dim ? a->head_dim : a->v_dim);
    double dense = 3 * (double)(a->ffn + a->shared_ffn), sparse = 3 * (double)a->experts * (double)a->moe_ffn;
    double total = layers * wide * (attention + dense + sparse) + 2 * wide * (double)(a->vocab + a->position_rows);
    if (total <= 1e18) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, WORD(hidden), "the sizes make about %.1e parameters, more than 10^18", total);
}

static ft_status settle(const ft_reading *r, ft_arch *a)
{
    FT_TRY(settle_heads(r, a));
    if (!a->activation && (a->design == FT_DECODER_ONLY || a->design == FT_ENCODER_ONLY))
        return ft__config_fail(r, FT_E_MISSING, WORD(activation),
                               "no key and no trait says which activation layers have");
    if (!a->ffn && a->hidden) {
        if (a->hidden > most_wide / 4)
            return ft__config_fail(r, FT_E_RANGE, WORD(hidden), "four times %" PRId64 " is wider than 2^31", a->hidden);
        a->ffn = 4 * a->hidden;
    }
    FT_TRY(settle_experts(r, a));
    FT_TRY(ft__config_window(r, a));
    if ((a->position == FT_LEARNED_POSITION || a->position_table) && !a->position_rows)
        a->position_rows = a->max_position + a->position_extra;
    if (a->embed_width == a->hidden) a->embed_width = 0;
    FT_TRY(ft__config_head(r, a));
    return check_total(r, a);
}

/* -- the whole ------------------------------------------------------------------------------------- */

/* Models that see or hear nest the language model's keys. Clip's two towers are its own affair. */
static void enter_text(ft_reading *r, ft_config_path path)
{
    static const char *const names[] = {"text_config", "llm_config", "language_config", "thinker_config"};
    if (r->type->preset->design == FT_CLIP) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ft__config_inside(r, names[i], r, path)) return;
}

/* What follows from what data gives: shared experts' width, a mamba's inner width and rank. */
static ft_status derive(const ft_reading *r, ft_arch *a)
{
    if (a->shared_experts > 0 && !a->shared_ffn) {
        if (a->shared_experts > most_layers || a->moe_ffn > most_wide / a->shared_experts)
            return ft__config_fail(r, FT_E_RANGE, WORD(shared_experts), "%" PRId64 " shared experts are too many",
                                   a->shared_experts);
        a->shared_ffn = a->shared_experts * a->moe_ffn;
    }
    if (a->layers_each > 1 && a->layers <= most_layers / a->layers_each) a->layers *= a->layers_each;
    if (a->expand > 0 && !a->ssm_inner && a->hidden <= most_wide / a->expand) a->ssm_inner = a->expand * a->hidden;
    if (a->ssm_heads > 0 && !a->ssm_head_dim) a->ssm_head_dim = a->ssm_inner / a->ssm_heads;
    if (a->ssm_head_dim > 0 && !a->ssm_heads) a->ssm_heads = a->ssm_inner / a->ssm_head_dim;
    if (a->state > 0 && !a->dt_rank) a->dt_rank = (a->hidden + 15) / 16;
    if (a->per_layer_width > 0 && !a->per_layer_vocab) a->per_layer_vocab = a->vocab;
    return FT_OK;
}

static ft_status read_arch(ft_reading *r, ft_found *found, ft_opened *o, ft_arch *a)
{
    ft_config_path path[2];
    FT_TRY(ft__config_open(r, found, path, o));
    const json_t *whole = r->whole;
    if (r->config == whole) enter_text(r, path[0]);
    *a = *r->type->preset;
    a->model_type = found->name;
    a->nearest = found->relative;
    if (o->has_outer) FT_TRY(ft__architecture_outer(&o->outer, o->usual, r, a));
    FT_TRY(ft__config_keys(r, r->type->keys, a));
    FT_TRY(ft__architecture_when(&o->own, r, a));
    if (r->type->finish) FT_TRY(r->type->finish(r, a));
    /* The whole model says whether its head is its embedding. */
    if (r->config != whole && json_is_boolean(json_object_get(whole, "tie_word_embeddings")))
        a->tied = json_is_true(json_object_get(whole, "tie_word_embeddings"));
    FT_TRY(derive(r, a));
    FT_TRY(ft__config_divides(r, a));
    FT_TRY(ft__config_lists(&o->own, r, a));
    FT_TRY(settle(r, a));
    FT_TRY(ft__architecture_layers(&o->own, r, a));
    FT_TRY(ft__architecture_vision(&o->own, r, a));
    if (o->has_outer) FT_TRY(ft__architecture_around(&o->outer, r, a));
    if (a->tower_source && a->tower_layers < 1)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "model_type",
                               "\"%s\" looks at what a tower made: the config of the whole model is expected",
                               a->model_type);
    ft__config_reach(r, a);
    FT_TRY(ft__config_shapes(r)); /* last: the type's own readers say more of what they expect */
    return ft__config_quantized(r, a);
}

ft_status ft__config_read(const json_t *config, const char *nearest, const char *where, ft_arch *out, ft_error *err)
{
    ft_reading r = {.config = config, .whole = config, .where = where ? where : "", .err = err};
    ft_found found;
    if (!json_is_object(config))
        return ft__fail_at(err, FT_E_TYPE, r.where, 0, 0, "a model's config must be an object with \"model_type\"");
    if (ft__graphfile_is(config)) return ft__graphfile_read(config, r.where, out, err);
    FT_TRY(ft__config_find(&r, nearest, &found));
    ft_opened o = {.has_own = false, .has_outer = false};
    ft_arch a;
    ft_status status = read_arch(&r, &found, &o, &a);
    if (o.has_own) ft__architecture_close(&o.own);
    if (o.has_outer) ft__architecture_close(&o.outer);
    if (status != FT_OK) return status;
    if (r.whole != config && !a.quantized) { /* what holds the model says how it is stored */
        ft_reading outside = {.config = config, .whole = config, .where = where ? where : "", .err = err};
        status = ft__config_quantized(&outside, &a);
        if (status != FT_OK) ft__arch_release(&a);
    }
    if (status == FT_OK) *out = a;
    return status;
}
