/* reach.c: how many positions a model's config allows.
 *
 * Of learned positions it is their table. Of rotary ones it is what the config itself says, times the factor by which
 * it scales them, as serving engines read it (vLLM's _get_and_verify_max_len, transformers' modeling_rope_utils):
 * yarn's factor is of the original length, llama3's and longrope's lengths are scaled already. A type's default
 * promises nothing of a model whose config is silent. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "import/config/type.h"

static bool is_said(const ft_reading *r)
{
    for (const ft_config_key *key = r->type->keys; key->name; key++) {
        if (key->offset != offsetof(ft_arch, max_position)) continue;
        if (json_is_integer(json_object_get(r->config, key->name))) return true;
        if (key->alias && json_is_integer(json_object_get(r->config, key->alias))) return true;
    }
    return false;
}

static const json_t *scaling_of(const ft_reading *r)
{
    static const char *const names[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *scaling = json_object_get(r->config, names[i]);
        if (json_is_object(scaling)) return scaling;
    }
    return NULL;
}

static double scaled(const ft_reading *r, double length)
{
    const json_t *scaling = scaling_of(r), *factor = json_object_get(scaling, "factor"),
                 *original = json_object_get(scaling, "original_max_position_embeddings");
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (!type) type = json_string_value(json_object_get(scaling, "type"));
    const double times = json_is_number(factor) ? json_number_value(factor) : 0;
    if (!type || !(times > 1) || !isfinite(times)) return length;
    if (!strcmp(type, "llama3") || !strcmp(type, "longrope") || !strcmp(type, "su")) return length;
    if (!strcmp(type, "yarn") && json_is_integer(original)) return fmax(length, json_number_value(original) * times);
    return length * times;
}

void ft__config_reach(const ft_reading *r, ft_arch *a)
{
    if (a->position == FT_LEARNED_POSITION) a->reach = a->max_position;
    if (a->position != FT_ROTARY || a->max_position < 1 || !is_said(r)) return;
    /* Of tables by kind of layer, the factor is of some layers, and of a length that is scaled already. */
    const int64_t most = (int64_t)1 << 40;
    const double reach = a->rotary_twice ? (double)a->max_position : scaled(r, (double)a->max_position);
    a->reach = reach < (double)most ? (int64_t)reach : most;
}
