/* windows.c: attention of SAM's tower (arXiv 2304.02643) as transformers launches it: layers see windows of so many by
 * so many patches, the picture padded to whole ones, and a few see all of it. To the scores is added what a query says
 * of the key's row and of its column, two products over tables of distances. No fused kernel takes that: scores are
 * always there, through a softmax in fp32. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/relative.h"

static int64_t padded(int64_t side, int64_t window) { return (side + window - 1) / window * window; }

/* Of rows or of columns: the table by distance is stretched to the picture's size, laid out by pairs, and multiplied
 * with the queries that share a row. */
static ft_ref by_distance(ft_maker *m, ft_ref query, int64_t pairs, int64_t side, int64_t other, int64_t dim)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(ATTN_BIAS);
    int64_t rows = pairs * side * other;
    ft_ref table = ft__parameter(b, "rel_pos", 2 * side - 1, dim);
    ft__aside(b, at, "copy", FT_NONE, 2 * side - 1, dim, ft_dtype_bytes(b->stored), 3);
    ft_ref laid = ft__copy(b, at, table, side * side, dim);
    ft_ref turned = ft__copy(b, at, query, rows, dim);
    return ft__matmul(b, at, turned, laid, side, pairs * other, side, dim, "nt");
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
    ft_ref scores = ft__matmul(b, FT_AT(ATTN_SCORES), ft__pointwise(b, FT_AT(ATTN_SCALE), "mulu", part[0]), part[1],
                               pairs, seen, seen, dim, "nt");
    ft_ref of_rows = by_distance(m, part[0], pairs, tall, broad, dim);
    ft_ref of_cols = by_distance(m, part[0], pairs, broad, tall, dim);
    ft_ref added = ft__add(b, FT_AT(ATTN_BIAS), ft__expand(b, of_rows, pairs * seen, seen),
                           ft__expand(b, of_cols, pairs * seen, seen));
    scores = ft__add(b, FT_AT(ATTN_BIAS), scores, added);
    scores = ft__softmax(b, FT_AT(ATTN_SOFTMAX), scores, true);
    ft_ref y = ft__matmul(b, FT_AT(ATTN_VALUES), scores, part[2], pairs, seen, dim, seen, "nn");
    y = ft__contiguous(b, FT_AT(ATTN_MERGE), ft__view(b, y, rows, w->hidden, true));
    ft_ref named[5] = {part[0], part[1], part[2], added, scores};
    ft__part_held(m, 5, named);
    y = ft__linear(b, FT_AT(ATTN_O_PROJ), y, w->hidden, FT_BIAS, FT_CUT_ROWS);
    if (w->window < 1) return y;
    y = ft__copy(b, at, y, rows, w->hidden); /* row by row again, and without what was padded */
    if (rows == m->batch * w->high * w->wide) return y;
    return ft__contiguous(b, at, ft__slice(b, y, m->batch * w->high * w->wide, w->hidden));
}
