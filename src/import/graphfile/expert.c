/* expert.c: mixtures of experts of a graph file: the whole of it after the router, or one grouped product. */

#include "graph/emit.h"
#include "import/graphfile/reader.h"
#include "model/moe.h"

static const int64_t LARGEST = (int64_t)1 << 40;

/* Weights of all experts: a parameter's name, or FT_NONE to make them. */
static ft_ref weights(ft_graph_reader *r, const char *key, double wanted)
{
    const json_t *value = json_object_get(r->at, key);
    if (!value || ft__graphfile_failed(r)) return FT_NONE;
    const ft_named *w = ft__graphfile_named_weight(r, key);
    if (!w) {
        ft__graphfile_fail(r, FT_E_TYPE, "\"%s\" must name a parameter", key);
        return FT_NONE;
    }
    if (ft__graphfile_elements(w) == wanted) return w->ref;
    ft__graphfile_fail(r, FT_E_RANGE, "\"%s\" has %.0f elements, not %.0f", key, ft__graphfile_elements(w), wanted);
    return FT_NONE;
}

static bool routing(ft_graph_reader *r, ft_arch *a, int64_t usual)
{
    a->experts = ft__graphfile_whole(r, "experts", 0, 1, 1 << 20);
    a->topk = ft__graphfile_whole(r, "topk", usual, 1, 1 << 20);
    a->expert_bias = ft__graphfile_truth(r, "bias", false);
    if (!ft__graphfile_failed(r) && a->topk > a->experts)
        ft__graphfile_fail(r, FT_E_RANGE, "\"topk\" is %lld of %lld experts", (long long)a->topk,
                           (long long)a->experts);
    return !ft__graphfile_failed(r);
}

void ft__read_experts(ft_graph_reader *r, ft_at at)
{
    ft_maker *m = r->m;
    ft_arch a = *m->arch;
    ft_named x, probability;
    if (!ft__graphfile_operand(r, 0, &x) || !ft__graphfile_operand(r, 1, &probability) || !routing(r, &a, 0)) return;
    a.moe_ffn = ft__graphfile_whole(r, "inter", 0, 1, LARGEST);
    a.hidden = x.dim[x.dims - 1];
    const json_t *said = json_object_get(r->at, "activation");
    a.activation = json_is_string(said) ? ft__graphfile_text(r, json_string_value(said)) : "silu";
    if (said && !json_is_string(said)) ft__graphfile_fail(r, FT_E_TYPE, "\"activation\" must be a name");
    double tokens = (double)ft__graphfile_rows(x.dims, x.dim);
    if (!ft__graphfile_failed(r) && ft__graphfile_elements(&probability) != tokens * (double)a.topk)
        ft__graphfile_fail(r, FT_E_RANGE, "%.0f tokens of %lld experts each need as many weights, got %.0f", tokens,
                           (long long)a.topk, ft__graphfile_elements(&probability));
    double each = (double)a.experts * (double)a.moe_ffn * (double)a.hidden;
    ft_ref up = weights(r, "up", 2 * each), down = weights(r, "down", each);
    if (ft__graphfile_failed(r)) return;
    const ft_arch *asked = m->arch;
    m->arch = &a;
    ft_ref in = ft__graphfile_by_rows(r, at, &x);
    ft_ref share = ft__graphfile_matrix(r, at, &probability, (int64_t)tokens, a.topk);
    ft_ref y = ft__sorted_experts(m, in, share, up, down);
    m->arch = asked;
    ft__graphfile_result(r, y, x.dims, x.dim);
}

void ft__read_grouped(ft_graph_reader *r, ft_at at)
{
    ft_maker *m = r->m;
    ft_arch a = *m->arch;
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x) || !routing(r, &a, 1)) return;
    int64_t features = ft__graphfile_whole(r, "features", 0, 1, LARGEST), k = x.dim[x.dims - 1];
    ft_ref weight = weights(r, "weight", (double)a.experts * (double)features * (double)k);
    if (ft__graphfile_failed(r)) return;
    const ft_arch *asked = m->arch;
    m->arch = &a;
    ft_ref y = ft__grouped_product(m, at, ft__graphfile_by_rows(r, at, &x), features, a.expert_bias, weight);
    m->arch = asked;
    x.dim[x.dims - 1] = features;
    ft__graphfile_result(r, y, x.dims, x.dim);
}
