/* fusion_apart.c: what a compiler that merges less than Inductor runs beside a fused kernel.
 *
 * XLA before its kernels by Triton: a reduction is the end of a kernel, since nothing is fused behind a fusion. A
 * softmax is three kernels, a norm three, and the sums of a gradient down the columns are kernels of their own; each
 * reads what the group reads. And values of costly functions that several kernels want are written once, not computed
 * again. */
#include <string.h>

#include "graph/fusion.h"
#include "graph/fusion_constants.h"

static const struct ft__k_fusion_apart *apart(const ft_node *n)
{
    for (int i = 0; i < FT_K_FUSION_APART_COUNT; i++)
        if (!strcmp(ft__k_fusion_apart[i].name, n->op.name)) return &ft__k_fusion_apart[i];
    return NULL;
}

/* Mixed precision computes such functions in the weights' format. */
static double function_bytes(const ft_graph *g)
{
    double widest = ft_dtype_bytes(g->dtype);
    for (ft_ref t = 0; t < g->tensor_count; t++)
        if (g->tensors[t].role == FT_PARAMETER && g->tensors[t].element_bytes > widest)
            widest = g->tensors[t].element_bytes;
    return widest < 4 ? widest : 4;
}

void ft__fusion_apart(ft_fusion *f, int32_t block, int32_t group, ft_fused *k, const ft_node *kernel, int sums)
{
    const ft_graph *g = f->g;
    const int32_t first = g->blocks[block].first;
    double reads = sums && (f->how & FT_FUSE_REDUCTIONS_END) ? 1 : 0, kept = 0, bytes = 0;
    for (int32_t i = f->groups[group].head; i >= 0; i = f->next[i]) {
        const ft_node *n = &g->nodes[first + i];
        const struct ft__k_fusion_apart *a = apart(n);
        if (!a) continue;
        bool back = n->op.kind == FT_OP_ROW && n->op.pass == FT_PASS_BWD;
        if (f->how & FT_FUSE_REDUCTIONS_END) reads += back ? a->reads_back : a->reads;
        bool waits = f->part[first + i] == FT_POINT && f->inference; /* nobody goes back to read it */
        if ((f->how & FT_FUSE_KEEPS_FUNCTIONS) && !waits)
            kept += (back ? a->kept_back : a->kept) * ft__fusion_space(g, n);
    }
    if (kept > 0) k->bytes += kept * function_bytes(g);
    for (int32_t i = 0; i < k->in_count; i++) bytes += k->in_bytes[i];
    ft_node pass = ft__fusion_node(FT_DO_ROW, kernel->phase, kernel->at, kernel->op.dtype, k->space, bytes,
                                   FT_K_FUSION_WORK_MOMENTS);
    pass.count = kernel->count;
    for (int i = 0; i < (int)reads; i++) ft__fusion_emit(f, &pass); /* name nothing: the kernel reads the same */
}
