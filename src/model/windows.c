/* windows.c: attention of SAM's tower (arXiv 2304.02643) as transformers launches it: layers see windows of so many by
 * so many patches, the image padded to whole ones, and a few see all of it. To the scores is added what a query says
 * of the key's row and of its column, two products over tables of distances, whose sum is copied into the order of the
 * scores. Those are written out, through a softmax in fp32 (got_ocr2), or `fused`: the sum is a mask to sdpa (SAM
 * itself). In training the fused form is taken for the written one: the mask has a gradient. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

static int64_t padded(int64_t side, int64_t window) { return (side + window - 1) / window * window; }

/* Of rows or of columns: the table by distance is stretched to the image's size, laid out by pairs, and multiplied
 * with the queries that share a row. */
static ft_ref by_distance(ft_maker *m, ft_ref query, int64_t pairs, int64_t side, int64_t other, int64_t dim)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_BIAS);
    int64_t rows = pairs * side * other;
    ft_ref table = ft__parameter(b, "rel_pos", 2 * side - 1, dim);
    ft__no_grad_kernels(b, at, "copy", FT_NONE, 2 * side - 1, dim, ft_dtype_bytes(b->stored), 3);
    ft_ref laid = ft__copy(b, at, table, side * side, dim);
    ft_ref turned = ft__copy(b, at, query, rows, dim);
    return ft__matmul(b, at, turned, laid, side, pairs * other, side, dim, "nt");
}

static ft_ref written(ft_maker *m, const ft_ref *part, ft_ref added, int64_t pairs, int64_t seen, int64_t dim)
{
    ft_build *b = &m->b;
    ft_ref scaled = ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", part[0]);
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), scaled, part[1], pairs, seen, seen, dim, "nt");
    scores = ft__softmax(b, FT_AT(ATTN_SOFTMAX), ft__add(b, FT_AT(ATTN_BIAS), scores, added), true);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), scores, part[2], pairs, seen, dim, seen, "nn");
    ft__part_held(m, 1, &scores);
    return y;
}

static ft_ref masked(ft_maker *m, const ft_ref *part, const ft_windows *w, int64_t pairs, int64_t seen, int64_t dim)
{
    ft_build *b = &m->b;
    ft_attention_shape shape = {.batch = pairs / w->heads,
                                .heads = w->heads,
                                .kv_heads = w->heads,
                                .q_len = seen,
                                .kv_len = seen,
                                .head_dim = dim,
                                .masked = true};
    ft_ref y = ft__attention(b, FT_AT(ATTN_CORE), part[0], part[1], part[2], &shape, 0);
    if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].manner |= FT_MANNER_MASK_ADDED;
    return y;
}

ft_ref ft__part_windows(ft_maker *m, ft_ref x, const ft_windows *w)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_WINDOWS);
    int64_t high = w->window > 0 ? padded(w->high, w->window) : w->high,
            wide = w->window > 0 ? padded(w->wide, w->window) : w->wide;
    int64_t tall = w->window > 0 ? w->window : high, broad = w->window > 0 ? w->window : wide, seen = tall * broad;
    int64_t rows = m->batch * high * wide, pairs = rows / seen * w->heads, dim = w->hidden / w->heads;
    int64_t cols[3] = {w->hidden, w->hidden, w->hidden};
    ft_ref part[3];
    ft__module(b, 1);
    if (rows > m->batch * w->high * w->wide) {
        ft_ref rest = ft__buffer(b, rows - m->batch * w->high * w->wide, w->hidden, ft_dtype_bytes(b->stored));
        ft_ref both[2] = {x, rest};
        x = ft__cat(b, at, 2, both, rows, w->hidden);
    }
    if (w->window > 0) x = ft__copy(b, at, x, rows, w->hidden); /* window by window */
    ft_bias bias = w->bias ? FT_BIAS : FT_NO_BIAS;
    ft__split(b, ft__linear(b, FT_AT(ATTN_QKV_PROJ), x, 3 * w->hidden, bias, FT_CUT_COLUMNS), 3, cols, part);
    for (int i = 0; i < 3; i++)
        part[i] = ft__contiguous(b, FT_AT(ATTN_QKV_PROJ), ft__view(b, part[i], pairs * seen, dim, true));
    ft_ref of_rows = by_distance(m, part[0], pairs, tall, broad, dim);
    ft_ref of_cols = by_distance(m, part[0], pairs, broad, tall, dim);
    ft_ref added = ft__add(b, FT_AT(ATTN_BIAS), ft__expand(b, of_rows, pairs * seen, seen),
                           ft__expand(b, of_cols, pairs * seen, seen));
    added = ft__contiguous(b, FT_AT(ATTN_BIAS), ft__view(b, added, pairs * seen, seen, true));
    bool fused = w->fused && m->work->attention != FT_EAGER && !b->training;
    ft_ref y = fused ? masked(m, part, w, pairs, seen, dim) : written(m, part, added, pairs, seen, dim);
    y = ft__contiguous(b, FT_AT(ATTN_MERGE), ft__view(b, y, rows, w->hidden, true));
    ft_ref named[4] = {part[0], part[1], part[2], added};
    ft__part_held(m, 4, named);
    y = ft__linear(b, FT_AT(ATTN_O_PROJ), y, w->hidden, FT_BIAS, FT_CUT_ROWS);
    if (w->window < 1) return y;
    y = ft__copy(b, at, y, rows, w->hidden); /* row by row again, and without what was padded */
    if (rows == m->batch * w->high * w->wide) return y;
    return ft__contiguous(b, at, ft__slice(b, y, m->batch * w->high * w->wide, w->hidden));
}
