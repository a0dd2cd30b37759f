/* fusion_over.c: results that are written over what nobody reads any more. */
#include <string.h>

#include "graph/fusion.h"

int32_t ft__fusion_widest(const ft_fused *k)
{
    int32_t widest = 0;
    for (int32_t i = 1; i < k->in_count; i++)
        if (k->in_bytes[i] > k->in_bytes[widest]) widest = i;
    return widest;
}

/* A storage and its views lie in another's memory from here on. */
static void lay_over(ft_graph *g, ft_ref storage, ft_ref memory)
{
    for (ft_ref t = storage; t < g->tensor_count; t++)
        if (g->tensors[t].storage == storage) g->tensors[t].storage = memory;
}

/* Where the loss alone leaves the compiler nobody else has the logits, and their gradient is written over them. */
void ft__fusion_over_logits(const ft_fusion *f, const ft_fused *k)
{
    if (!k->in_count || !k->out_count) return;
    const ft_ref logits = f->root[k->in[ft__fusion_widest(k)]];
    const ft_tensor *gradient = &f->g->tensors[k->out[0]];
    if (ft__tensor_bytes(&f->g->tensors[logits]) == ft__tensor_bytes(gradient)) lay_over(f->g, k->out[0], logits);
}

/* Nodes of the group that read this storage. */
static int32_t readers_inside(const ft_fusion *f, int32_t block, int32_t group, ft_ref root)
{
    const ft_node *nodes = &f->g->nodes[f->g->blocks[block].first];
    int32_t count = 0;
    for (int32_t i = f->groups[group].head; i >= 0; i = f->next[i])
        for (int k = 0; k < nodes[i].in_count; k++) count += f->root[nodes[i].in[k]] == root;
    return count;
}

static bool makes(const ft_fusion *f, int32_t block, int32_t group, ft_ref root)
{
    const int32_t at = f->maker[root] - f->g->blocks[block].first;
    if (f->home[root] != block || at < 0 || f->group_of[at] < 0) return false;
    return ft__group_find(f, f->group_of[at]) == group;
}

/* This block made it, and nobody outside of the group reads it. What products made is left alone: compiled GPT-2 and
 * Mistral hold their gates beside what follows from them, where nets write norms over what convolutions made. */
static bool dies(const ft_fusion *f, int32_t block, int32_t group, ft_ref root)
{
    if (f->home[root] != block || f->maker[root] < 0 || f->g->tensors[root].role != FT_ACTIVATION) return false;
    if (f->flags[root] & (FT_FAR | FT_ASKED | FT_REWRITTEN)) return false;
    const ft_verb verb = f->g->nodes[f->maker[root]].verb;
    if (verb == FT_DO_LINEAR || verb == FT_DO_MATMUL) return false;
    return f->uses[root] == readers_inside(f, block, group, root);
}

/* x * sigmoid(x) and the like name what they read twice. */
static bool names_twice(const ft_node *n)
{
    static const char *const twice[] = {"silu", "hardswish", "gelu", "mish"};
    for (size_t i = 0; i < sizeof twice / sizeof *twice; i++)
        if (n->verb == FT_DO_POINTWISE && !strcmp(n->op.name, twice[i])) return true;
    return false;
}

/* How often the group reads what this node makes, before something is written over it; copies of it go on. */
static int32_t reads_of(const ft_fusion *f, int32_t block, int32_t maker)
{
    const ft_node *nodes = &f->g->nodes[f->g->blocks[block].first];
    ft_ref made = f->root[nodes[maker].out[0]];
    int32_t reads = 0;
    for (int32_t i = f->next[maker]; i >= 0; i = f->next[i]) {
        const ft_node *n = &nodes[i];
        for (int k = 0; k < n->in_count; k++) {
            if (f->root[n->in[k]] != made) continue;
            if (n->out_count && !strcmp(n->op.name, "addu"))
                made = f->root[n->out[0]];
            else
                reads += names_twice(n) ? 2 : 1;
        }
        if (n->out_count && f->root[n->out[0]] == made && n->in_place) break;
    }
    return reads;
}

/* A batch norm has more operands than Inductor computes twice (the image, two moments, weight and bias: five, where
 * realize_reads_threshold is four): read twice, it is a buffer of its own inside of the kernel. That one takes the
 * operand's memory over, though it is never written, and what follows gets new memory. So it is with SiLU and hardswish
 * behind a norm, not with ReLU. */
static bool norm_between(const ft_fusion *f, int32_t block, int32_t group, ft_ref operand)
{
    const ft_node *nodes = &f->g->nodes[f->g->blocks[block].first];
    for (int32_t i = f->groups[group].head; i >= 0; i = f->next[i])
        if (nodes[i].verb == FT_DO_BATCHNORM && f->root[nodes[i].in[0]] == operand && reads_of(f, block, i) > 1)
            return true;
    return false;
}

/* A result is written over an operand of its size that dies (Inductor's inplace_buffers); an operand serves once. */
void ft__fusion_over(ft_fusion *f, const ft_fused *k, int32_t block, int32_t group)
{
    if (f->how & FT_FUSE_LONE_AS_WRITTEN) return; /* TorchScript's allocate their results */
    for (int32_t o = 0, i = 0; o < k->out_count && i < k->in_count; i++) {
        const ft_ref from = f->root[k->in[i]], to = f->root[k->out[o]];
        if (from >= to || !dies(f, block, group, from) || !makes(f, block, group, to)) continue;
        if (norm_between(f, block, group, from)) continue;
        if (f->g->tensors[to].role != FT_ACTIVATION) continue;
        /* Partial sums, wider than any result of theirs, are not written over. */
        const ft_tensor *old = &f->g->tensors[from], *made = &f->g->tensors[to];
        if (ft__tensor_bytes(old) != ft__tensor_bytes(made) || old->element_bytes > 2 * made->element_bytes) continue;
        lay_over(f->g, to, from);
        o++;
    }
}
