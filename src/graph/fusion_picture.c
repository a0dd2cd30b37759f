/* fusion_picture.c: windows and interpolations of images that Inductor does not compute inside of who reads them. */
#include <math.h>
#include <string.h>

#include "graph/fusion.h"
#include "graph/fusion_constants.h"

/* Who made this storage, or what walks into its block as it. */
static const ft_node *maker_of(const ft_fusion *f, ft_ref *root)
{
    for (int32_t b = 0; b < f->g->block_count && f->maker[*root] < 0; b++) {
        const ft_block *block = &f->g->blocks[b];
        if (block->carry_in == FT_NONE || block->fed_by == FT_NONE || f->root[block->carry_in] != *root) continue;
        *root = f->root[block->fed_by];
    }
    return f->maker[*root] >= 0 ? &f->g->nodes[f->maker[*root]] : NULL;
}

bool ft__fusion_partial_sums(const ft_fusion *f, const ft_node *n)
{
    if (f->how & ~(unsigned)FT_FUSE_LOSS_ALONE || n->verb != FT_DO_POOL || n->phase != FT_FORWARD) return false;
    if (n->in_count != 1 || n->out_count != 1 || strcmp(n->op.name, "upsample") != 0) return false;
    /* Between equal sizes places are known where nothing is saved for a backward pass: a copy. */
    const double from = ft__tensor_numel(&f->g->tensors[n->in[0]]), to = ft__tensor_numel(&f->g->tensors[n->out[0]]);
    const bool linear = n->walk == FT_WALK_LINEAR || n->walk == FT_WALK_LINEAR_LAST || (!f->inference && from == to);
    if (!linear) return false;
    ft_ref root = f->root[n->in[0]];
    const ft_node *product = maker_of(f, &root);
    return product && product->verb == FT_DO_LINEAR && (product->in_count > 2 || f->flags[root] & FT_REWRITTEN);
}

static void partial_sums(ft_fusion *f, const ft_node *n)
{
    const ft_tensor *t = &f->g->tensors[n->out[0]];
    ft_node sums = ft__fusion_node(FT_DO_POINTWISE, n->phase, n->at, FT_FP32, ft__tensor_numel(t),
                                   ft__tensor_bytes(&f->g->tensors[n->in[0]]) + ft__tensor_bytes(t),
                                   ft__fusion_work(f, n));
    ft__fusion_emit_wide(f, &sums, n->in, n->in_count, n->out, 1);
}

/* An average over a wide window is a loop over all of its places, those beyond the image too (_avg_poolnd of
 * torch/_inductor/lowering.py, PyTorch 2.11): transformers' EfficientNet averages 10x10 pixels in one of 1536x1536. */
static bool averages_wide(const ft_fusion *f, const ft_node *n)
{
    return n->verb == FT_DO_POOL && n->phase == FT_FORWARD && n->each > FT_K_FUSION_WINDOW && n->out_count == 1 &&
           !(f->how & ~(unsigned)FT_FUSE_LOSS_ALONE);
}

static void average(ft_fusion *f, const ft_node *n)
{
    const ft_tensor *t = &f->g->tensors[n->out[0]];
    ft_node loop = ft__fusion_node(FT_DO_ROW, n->phase, n->at, t->dtype, ft__tensor_numel(t) * n->each,
                                   ft__tensor_bytes(&f->g->tensors[n->in[0]]) + ft__tensor_bytes(t),
                                   FT_K_FUSION_WINDOW_STEP);
    ft__fusion_emit_wide(f, &loop, n->in, n->in_count, n->out, 1);
}

/* A pixel's gradient goes to four neighbours (torch/_decomp/decompositions.py, _upsample_linear, whose lookups are
 * undone by index_put): a zeroed table in fp32 for each, one kernel that adds to all of them atomically, and the sum of
 * the tables. Sizes that are the same go that way too. */
static bool interpolates_back(const ft_fusion *f, const ft_node *n)
{
    if (n->verb != FT_DO_POOL || n->phase != FT_BACKWARD || !n->in_count || !n->out_count) return false;
    if (strcmp(n->op.name, "upsample") != 0 || !(f->how == 0 || f->how == FT_FUSE_LOSS_ALONE)) return false;
    const bool same = ft__tensor_numel(&f->g->tensors[n->in[0]]) == ft__tensor_numel(&f->g->tensors[n->out[0]]);
    return same || n->walk == FT_WALK_LINEAR_BACKWARD || n->walk == FT_WALK_LINEAR_WIDE_BACKWARD ||
           n->walk == FT_WALK_LINEAR_LAST_BACKWARD;
}

/* Tables lie NCHW, and so does a gradient that a generated kernel makes. Along an image's rows neighbours add to one
 * address, and so do the rows below them; where channels lie last every lane adds far from the next. */
static double waits(const ft_fusion *f, const ft_node *n, double smaller)
{
    enum { WARP = 32 };
    const int32_t maker = f->maker[f->root[n->in[0]]];
    const bool rows = n->walk == FT_WALK_LINEAR_BACKWARD || n->walk == FT_WALK_LINEAR_WIDE_BACKWARD ||
                      (maker >= 0 && f->part[maker] != FT_LIBRARY);
    const double shared = fmin(WARP, sqrt(smaller));
    return rows ? FT_K_FUSION_ADDS_SHARED * shared * shared : FT_K_FUSION_ADDS_APART;
}

static void interpolate_back(ft_fusion *f, const ft_node *n)
{
    enum { TABLES = 4 };
    const ft_tensor *from = &f->g->tensors[n->in[0]], *to = &f->g->tensors[n->out[0]];
    const double pixels = ft__tensor_numel(from), sums = ft__tensor_numel(to), tables = TABLES * 4 * sums;
    ft_node fill = ft__fusion_node(FT_DO_FILL, n->phase, n->at, FT_FP32, sums, 4 * sums, 0);
    fill.count = TABLES;
    fill.workspace = (float)tables;
    fill.out[fill.out_count++] = n->out[0];
    ft__fusion_emit(f, &fill);
    ft_node add = ft__fusion_node(FT_DO_POINTWISE, n->phase, n->at, FT_FP32, pixels,
                                  ft__tensor_bytes(from) + 2 * tables, TABLES * waits(f, n, pixels / sums));
    add.workspace = (float)tables;
    ft__fusion_emit_wide(f, &add, n->in, n->in_count, n->out, 1);
    ft_node sum = ft__fusion_node(FT_DO_POINTWISE, n->phase, n->at, FT_FP32, sums, tables + ft__tensor_bytes(to),
                                  TABLES);
    sum.workspace = (float)tables;
    sum.in[sum.in_count++] = n->out[0];
    ft__fusion_emit(f, &sum);
}

bool ft__fusion_picture(ft_fusion *f, const ft_node *n)
{
    if (ft__fusion_partial_sums(f, n))
        partial_sums(f, n);
    else if (averages_wide(f, n))
        average(f, n);
    else if (interpolates_back(f, n))
        interpolate_back(f, n);
    else
        return false;
    return true;
}
