/* fusion_moments.c: the kernels that a norm needs before the one that makes its result. */
#include <math.h>

#include "graph/batchnorm.h"
#include "graph/fusion.h"
#include "graph/fusion_constants.h"

/* Whether the group makes what the node reads, and keeps it to itself. */
static bool made_inside(const ft_fusion *f, int32_t block, int32_t group, int32_t at)
{
    const int32_t maker = f->from[at][0];
    const ft_ref root = f->root[f->g->nodes[f->g->blocks[block].first + at].in[0]];
    if (maker < 0 || f->group_of[maker] < 0 || ft__group_find(f, f->group_of[maker]) != group) return false;
    return !f->outside[root] && !(f->flags[root] & (FT_FAR | FT_WHOLE_COPY));
}

/* Batch norms of a training step and group norms look at everything twice: moments first, then the result. What the
 * result's kernel computes from its operands the moments' kernel computes, too. */
void ft__fusion_moments(ft_fusion *f, const ft_fused *k, int32_t block, int32_t group, int32_t at)
{
    const ft_node *n = &f->g->nodes[f->g->blocks[block].first + at];
    const bool back = n->phase == FT_BACKWARD, grouped = ft__is_groupnorm(n);
    if (!back && f->inference && !grouped) return; /* they are given */
    double bytes = 0;
    for (int i = 0; i < n->in_count && i < (back ? 2 : 1); i++) bytes += ft__tensor_bytes(&f->g->tensors[n->in[i]]);
    double work = grouped ? FT_K_FUSION_WORK_MOMENTS : FT_K_FUSION_WORK_MOMENTS_DOWN;
    if (!grouped && made_inside(f, block, group, at)) {
        bytes = fmax(bytes, k->read);
        work += fmax(k->work - ft__fusion_work(f, n), 0);
    }
    ft_node kernel = ft__fusion_node(FT_DO_ROW, n->phase, FT_AT(FUSED_MOMENTS), n->op.dtype, ft__fusion_space(f->g, n),
                                     bytes, work);
    ft__fusion_emit(f, &kernel); /* names nothing: the kernel behind it reads the same */
    if (grouped) return;
    /* Columns are summed in parts, which a kernel finishes; going forward it moves the running moments on, and another
     * counts the batches seen. */
    const double channels = n->out_count > 1 ? (double)f->g->tensors[n->out[1]].cols : 1;
    ft_node rest = ft__fusion_node(FT_DO_ROW, n->phase, FT_AT(FUSED_MOMENTS), FT_FP32, channels * FT_K_FUSION_PARTS,
                                   channels * FT_K_FUSION_PARTS * 8, 2);
    ft__fusion_emit(f, &rest);
    ft_node seen = ft__fusion_node(FT_DO_POINTWISE, n->phase, FT_AT(FUSED_MOMENTS), FT_FP32, 1, 16, 1);
    if (!back) ft__fusion_emit(f, &seen);
}
