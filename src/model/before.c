/* before.c: what transformers does before the first layer, whatever the layers are: which masks there are, and the
 * small kernels that make one (src/transformers/masking_utils.py, sdpa_mask and eager_mask). */
#include "graph/emit.h"
#include "model/parts.h"
#include "model/plan.h"
#include "model/relative.h"

bool ft__part_spelled_out(const ft_maker *m)
{
    ft_execution how = m->work->execution;
    return !m->engine && m->stack->passes_masks && how != FT_RUN_COMPILE && how != FT_RUN_CUDA_GRAPH;
}

int ft__part_mask_kinds(const ft_arch *a)
{
    bool with = false, without = false;
    for (int64_t i = 0; i < a->layers && !(with && without); i++) {
        ft_layer_shape l = ft__layer_at(a, i);
        if (l.mixer != FT_MIX_ATTENTION) continue;
        with = with || l.window > 0;
        without = without || l.window < 1;
    }
    return with + without;
}

void ft__part_mask_indices(ft_maker *m)
{
    enum { NUMBERED = 4, MOVED = 2, CONSTANTS = 2 };
    int64_t longest = m->q_len > m->kv_len ? m->q_len : m->kv_len;
    ft__no_grad_kernels(&m->b, FT_AT(MASK), "fill", FT_NONE, 1, longest, 8, NUMBERED + MOVED + CONSTANTS);
}

/* sdpa has no window: once a sequence is longer, pairs are compared with both ends of it and the answers joined, in a
 * step of generation as well, as the cache of such a layer then reports its full length (cache_utils.py). */
void ft__part_window_mask(ft_maker *m)
{
    enum { COMPARED = 4 };
    const ft_arch *a = m->arch;
    if (a->window < 1 || a->chunked || m->kv_len <= a->window || m->work->attention != FT_SDPA) return;
    int64_t keys = m->work->task == FT_DECODE ? a->window : m->kv_len;
    ft__part_mask_indices(m);
    ft__no_grad_kernels(&m->b, FT_AT(MASK), "compare", FT_NONE, m->q_len, keys, 1, COMPARED);
}

/* A layer of the cache is made by its first prompt, with an empty tensor for keys and one for values (cache_utils.py,
 * lazy_initialization): 35 us of Python in a loop beyond the two concatenations
 * (data/measurements/h200/host_parts.jsonl), half for each, counted in entered modules. */
void ft__part_first_fill(ft_maker *m)
{
    enum { OF_ONE = 4 };
    if (ft__part_spelled_out(m)) ft__module(&m->b, OF_ONE);
}

/* Dropouts are modules that Python enters whether they drop anything or not, and so are the halves of older blocks. */
void ft__part_other_modules(ft_maker *m)
{
    if (ft__part_spelled_out(m)) ft__module(&m->b, (int)m->arch->other_modules);
}

/* Heads that lie in groups of one product's result are copied into their order, part by part. */
void ft__part_regroup(ft_maker *m, ft_ref *q, ft_ref *k, ft_ref *v)
{
    ft_ref *part[3] = {q, k, v};
    if (!m->arch->heads_regrouped || !ft__part_spelled_out(m)) return;
    for (int i = 0; i < 3; i++) {
        const ft_tensor t = *ft__tensor_of(&m->b, *part[i]);
        *part[i] = ft__copy(&m->b, FT_AT(ATTN_QKV_PROJ), *part[i], t.rows, t.cols);
    }
}
