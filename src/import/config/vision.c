/* vision.c: what an architecture's file says of a tower that sees: "vision", read in an object of its own, and in it
 * "project", the steps between the tower and the language model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "import/config/architecture.h"

static const char *const usual = "vision_config";

static ft_status malformed(const ft_reading *r, const char *what)
{
    return ft__fail_at(r->err, FT_E_TYPE, r->where, 0, 0, "the architecture's file: \"vision\": %s", what);
}

/* -- project ---------------------------------------------------------------------------------------- */

/* A width of a step: a number; "hidden", the language model's; "same", as it comes; else a key of the tower's config or
 * of the whole one, perhaps with what it usually is: ["alignment_intermediate_size", 36864]. */
static ft_status read_width(const ft_reading *r, const json_t *value, int64_t *out)
{
    const char *key = NULL;
    if (json_is_array(value)) {
        FT_TRY(read_width(r, json_array_get(value, 1), out));
        value = json_array_get(value, 0);
        const json_t *said = ft__config_value(r->config, json_string_value(value));
        if (!said) said = ft__config_value(r->whole, json_string_value(value));
        if (!said || json_is_null(said)) return FT_OK;
        key = json_string_value(value);
        value = said;
    }
    const char *word = json_string_value(value);
    if (word && (!strcmp(word, "hidden") || !strcmp(word, "same"))) {
        *out = !strcmp(word, "same") ? -1 : 0;
        return FT_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > (1LL << 31))
        return key ? ft__config_fail(r, json_is_integer(value) ? FT_E_RANGE : FT_E_TYPE, key,
                                     "\"%s\" must be a whole number from 1 to 2^31", key)
                   : malformed(r, "a step's width must be a whole number from 1 to 2^31, or \"hidden\" or \"same\"");
    *out = json_integer_value(value);
    return FT_OK;
}

static ft_status read_step(const ft_reading *r, const json_t *spec, ft_project_step *out)
{
    static const char *const words[] = {"norm", "rmsnorm", "merge", "pool", "linear",
                                        "act",  "glu",     "gated", "conv", "resample"};
    size_t kind = 0, count = sizeof words / sizeof *words;
    while (kind < count && !json_object_get(spec, words[kind])) kind++;
    if (kind == count) return malformed(r, "a step of \"project\" is of no known kind");
    const json_t *value = json_object_get(spec, words[kind]), *bias = json_object_get(spec, "bias");
    *out = (ft_project_step){.kind = (ft_step_kind)kind, .bias = json_is_true(bias)};
    if (json_is_array(bias)) { /* a key, of the whole config or of the tower's, and what it usually is */
        const char *key = json_string_value(json_array_get(bias, 0));
        const json_t *said = key ? ft__config_value(r->whole, key) : NULL;
        if (!said && key) said = ft__config_value(r->config, key);
        out->bias = json_is_true(json_is_boolean(said) ? said : json_array_get(bias, 1));
    }
    const char *act = json_string_value(out->kind == FT_STEP_GATED ? json_object_get(spec, "by") : value);
    switch (out->kind) {
    case FT_STEP_GATED:
        if (act) FT_TRY(ft__config_activation(r, "project", act, &out->activation));
        out->into = -1;
        if (json_object_get(spec, "into")) FT_TRY(read_width(r, json_object_get(spec, "into"), &out->into));
        return read_width(r, value, &out->width);
    case FT_STEP_CONV:
        out->stride = json_integer_value(json_object_get(spec, "stride"));
        return read_width(r, value, &out->width);
    case FT_STEP_ACT:
    case FT_STEP_GLU: return act ? ft__config_activation(r, "project", act, &out->activation) : FT_OK;
    case FT_STEP_POOL:
        if (json_is_string(value)) return FT_OK; /* "tokens": as many as the image becomes */
        return read_width(r, value, &out->width);
    case FT_STEP_MERGE:
    case FT_STEP_LINEAR: return read_width(r, value, &out->width);
    case FT_STEP_NORM:
    case FT_STEP_RMSNORM:
    case FT_STEP_RESAMPLE: break;
    }
    return FT_OK;
}

static ft_status read_steps(const ft_reading *r, const json_t *list, ft_arch *a)
{
    if (!json_is_array(list)) return FT_OK;
    if (json_array_size(list) > FT_MOST_STEPS) return malformed(r, "\"project\" has more steps than there is room for");
    a->step_count = (int32_t)json_array_size(list);
    for (int32_t i = 0; i < a->step_count; i++) FT_TRY(read_step(r, json_array_get(list, (size_t)i), &a->steps[i]));
    int64_t merged = 1;
    for (int32_t i = 0; i < a->step_count; i++) { /* tokens of an image follow from what is merged */
        bool merges = a->steps[i].kind == FT_STEP_MERGE || a->steps[i].kind == FT_STEP_POOL;
        if (merges && a->steps[i].width > 1 && a->steps[i].width < 64) merged *= a->steps[i].width;
        if (a->steps[i].kind == FT_STEP_CONV && a->steps[i].stride > 1) merged *= a->steps[i].stride;
    }
    a->tower_merge = merged;
    return FT_OK;
}

/* -- the tower --------------------------------------------------------------------------------------- */

/* Sizes of images and patches may stand as two: [448, 448] is read as 448. */
static ft_status read_eye(const ft_reading *eye, const char *name, const ft_model_trait *trait, ft_arch *a)
{
    ft_config_key keys[2] = {{.name = name, .kind = trait->kind, .offset = trait->offset}, FT_KEY_END};
    const json_t *said = json_object_get(eye->config, name);
    bool size = trait->kind == FT_KEY_MAYBE || trait->kind == FT_KEY_FOLLOWS || trait->kind == FT_KEY_SIZE ||
                trait->kind == FT_KEY_LAYERS;
    if (!size || json_array_size(said) != 2 || !json_is_integer(json_array_get(said, 0)))
        return ft__config_keys(eye, keys, a);
    if (!json_equal(json_array_get(said, 0), json_array_get(said, 1)))
        return ft__config_fail(eye, FT_E_UNSUPPORTED, name, "\"%s\" must be as high as wide", name);
    json_t *one = json_pack("{s:O}", name, json_array_get(said, 0));
    if (!one) return ft__no_memory(eye->err);
    ft_reading inside = *eye;
    inside.config = one;
    ft_status status = ft__config_keys(&inside, keys, a);
    json_decref(one);
    return status;
}

static ft_status read_eyes(const ft_reading *eye, const json_t *keys, ft_arch *a)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)keys, name, value) {
        const ft_model_trait *trait = ft__model_trait_find(name);
        if (!trait || trait->words) return malformed(eye, "a key names an unknown trait");
        for (size_t i = json_array_size(value); i-- > 0;)
            FT_TRY(read_eye(eye, json_string_value(json_array_get(value, i)), trait, a));
        if (json_is_string(value)) FT_TRY(read_eye(eye, json_string_value(value), trait, a));
    }
    return FT_OK;
}

/* What sees is read from an object of the whole config, whatever holds the language model. */
static ft_status read_vision(const ft_reading *r, const json_t *spec, ft_arch *a)
{
    const char *where = json_string_value(json_object_get(spec, "in"));
    const json_t *inside = where ? ft__config_value(r->whole, where) : json_object_get(r->whole, usual);
    if (where && !*where) inside = r->whole;
    if (inside && !json_is_object(inside) && !json_is_null(inside))
        return ft__config_fail(r, FT_E_TYPE, where ? where : usual, "\"%s\" must be an object", where ? where : usual);
    if (json_is_true(json_object_get(spec, "optional")) && !json_is_object(inside)) return FT_OK;
    FT_TRY(ft__architecture_set(r, json_object_get(spec, "traits"), a));
    json_t *nothing = json_object();
    ft_config_path path;
    snprintf(path, sizeof path, "%s%s%s", r->where, *r->where ? ": " : "", where ? where : usual);
    ft_reading eye = {.config = json_is_object(inside) ? inside : nothing,
                      .whole = r->whole,
                      .type = r->type,
                      .where = path,
                      .err = r->err};
    ft_status status = nothing ? FT_OK : ft__no_memory(r->err);
    if (status == FT_OK) status = read_eyes(&eye, json_object_get(spec, "keys"), a);
    const json_t *also = json_object_get(spec, "also"); /* a resampler's own object */
    ft_reading other = eye;
    other.config = ft__config_value(r->whole, json_string_value(json_object_get(also, "in")));
    if (status == FT_OK && json_is_object(other.config)) status = read_eyes(&other, json_object_get(also, "keys"), a);
    if (status == FT_OK && json_is_object(inside))
        status = ft__architecture_rules(&eye, json_object_get(spec, "when"), a);
    if (status == FT_OK) status = read_steps(&eye, json_object_get(spec, "project"), a);
    json_decref(nothing);
    return status;
}

/* What a tower cannot be without, and what must divide. */
static ft_status check_tower(const ft_reading *r, const json_t *spec, const ft_arch *a)
{
    const struct {
        int64_t size;
        const char *trait;
    } needed[] = {{a->tower_hidden, "tower_hidden"}, {a->tower_heads, "tower_heads"}, {a->tower_patch, "tower_patch"}};
    if (a->design != FT_DECODER_ONLY && !a->tower_source)
        return ft__config_fail(r, FT_E_UNSUPPORTED, "text_config.model_type",
                               "a tower before \"%s\" is not modelled: a decoder is expected", a->model_type);
    const json_t *keys = json_object_get(spec, "keys");
    const char *where = json_string_value(json_object_get(spec, "in"));
    char key[96];
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const json_t *names = json_object_get(keys, needed[i].trait);
        const char *name = json_string_value(json_is_array(names) ? json_array_get(names, 0) : names);
        snprintf(key, sizeof key, "%s.%s", where ? where : usual, name ? name : needed[i].trait);
        if (needed[i].size < 1) return ft__config_fail(r, FT_E_RANGE, key, "must be a whole number from 1 on");
        if (i == 1 && a->tower_head_dim < 1 && a->tower_hidden % a->tower_heads)
            return ft__config_fail(r, FT_E_RANGE, key, "%" PRId64 " heads must divide the tower's width %" PRId64,
                                   a->tower_heads, a->tower_hidden);
    }
    if (a->tower_kv_heads > 0 && a->tower_heads % a->tower_kv_heads) {
        const char *name = json_string_value(json_object_get(keys, "tower_kv_heads"));
        snprintf(key, sizeof key, "%s.%s", where ? where : usual, name ? name : "num_key_value_heads");
        return ft__config_fail(r, FT_E_RANGE, key, "%" PRId64 " must divide the tower's %" PRId64 " heads",
                               a->tower_kv_heads, a->tower_heads);
    }
    if (a->query_kv_heads > 0 && a->query_heads % a->query_kv_heads)
        return ft__config_fail(r, FT_E_RANGE, json_string_value(json_object_get(json_object_get(spec, "also"), "in")),
                               "%" PRId64 " heads of keys must divide the resampler's %" PRId64, a->query_kv_heads,
                               a->query_heads);
    return FT_OK;
}

ft_status ft__architecture_vision(const ft_architecture *of, const ft_reading *r, ft_arch *a)
{
    for (size_t i = of->count; i-- > 0;) {
        const json_t *spec = json_object_get(of->document[i], "vision");
        if (json_is_object(spec)) FT_TRY(read_vision(r, spec, a));
        if (json_is_object(spec) && a->tower_layers > 0) FT_TRY(check_tower(r, spec, a));
        if (json_is_null(spec)) a->tower_layers = 0;
    }
    return FT_OK;
}
