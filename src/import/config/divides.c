/* divides.c: sizes that must divide, or make up, each other, in every type alike. */
#include <inttypes.h>

#include "base/json.h"
#include "import/config/type.h"

ft_status ft__config_layer_numbers(const ft_reading *r, const char *key, int64_t layers)
{
    const json_t *list = json_object_get(r->config, key);
    if (!list || json_is_null(list)) return FT_OK;
    if (!json_is_array(list)) return ft__config_fail(r, FT_E_TYPE, key, "\"%s\" must be a list of layers", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        bool again = false;
        for (size_t at = 0; at < i && !again; at++) again = json_equal((json_t *)entry, json_array_get(list, at));
        if (json_is_integer(entry) && json_integer_value(entry) >= 0 && json_integer_value(entry) < layers && !again)
            continue;
        return ft__config_fail(r, json_is_integer(entry) ? FT_E_RANGE : FT_E_TYPE, key,
                               "entry %zu of \"%s\" must be %s from 0 to %" PRId64, i + 1, key,
                               again ? "another layer" : "a layer", layers - 1);
    }
    return FT_OK;
}

#define WORD(field) FT_CONFIG_WORD(r, field)

typedef struct pair {
    int64_t part, whole;
    const char *part_key, *whole_key;
} pair;

static ft_status must_divide(const ft_reading *r, const pair *p)
{
    if (p->part < 1 || p->whole % p->part == 0) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, p->part_key, "%s %" PRId64 " must divide %s %" PRId64, p->part_key, p->part,
                           p->whole_key, p->whole);
}

/* A scan's heads make up its width, which is so many times the model's. */
static ft_status check_scan(const ft_reading *r, const ft_arch *a)
{
    if (!json_is_integer(json_object_get(r->config, WORD(ssm_heads)))) return FT_OK; /* hybrids without a scan */
    if (a->ssm_inner < 1 || a->ssm_heads < 1 || a->ssm_heads * a->ssm_head_dim == a->ssm_inner) return FT_OK;
    return ft__config_fail(r, FT_E_RANGE, WORD(ssm_heads),
                           "%s %" PRId64 " heads of %" PRId64 " must make up the scan's width %" PRId64,
                           WORD(ssm_heads), a->ssm_heads, a->ssm_head_dim, a->ssm_inner);
}

/* Tokens pick by small heads of their own; without them nothing is picked. */
static ft_status check_indexer(const ft_reading *r, const ft_arch *a)
{
    if (a->index_topk < 1 || (a->index_heads > 0 && a->index_dim > 0)) return FT_OK;
    const char *key = a->index_heads < 1 ? WORD(index_heads) : WORD(index_dim);
    return ft__config_fail(r, FT_E_RANGE, key, "\"%s\" must be a whole number from 1 on: the indexer picks %" PRId64,
                           key, a->index_topk);
}

ft_status ft__config_divides(const ft_reading *r, const ft_arch *a)
{
    const pair pairs[] = {
        {a->groups, a->ssm_heads, WORD(groups), WORD(ssm_heads)},
        {a->delta_key_heads, a->delta_value_heads, WORD(delta_key_heads), WORD(delta_value_heads)},
        {a->out_groups, a->heads, WORD(out_groups), WORD(heads)},
        {a->expert_groups, a->experts, WORD(expert_groups), WORD(experts)},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) FT_TRY(must_divide(r, &pairs[i]));
    bool picked = json_is_integer(json_object_get(r->config, WORD(picked_groups)));
    if (picked && a->experts > 0 && a->expert_groups > 0 && a->picked_groups > a->expert_groups)
        return ft__config_fail(r, FT_E_RANGE, WORD(picked_groups), "%s %" PRId64 " is more than %s %" PRId64,
                               WORD(picked_groups), a->picked_groups, WORD(expert_groups), a->expert_groups);
    if (a->mixer == FT_MIX_COMPRESSED && a->out_groups < 1)
        return ft__config_fail(r, FT_E_RANGE, WORD(out_groups), "\"%s\" must be a whole number from 1 on",
                               WORD(out_groups));
    FT_TRY(check_indexer(r, a));
    return check_scan(r, a);
}
