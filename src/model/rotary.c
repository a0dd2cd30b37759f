/* rotary.c: rotary positions: their tables, and queries and keys turned by them. */
#include "graph/emit.h"
#include "model/parts.h"
#include "model/relative.h"

/* transformers raises positions and frequencies first, and lays the angles out twice. */
static void raise_angles(ft_maker *m, int64_t dim)
{
    enum { RAISED = 2 };
    if (!ft__part_spelled_out(m)) return;
    ft__no_grad_kernels(&m->b, FT_AT(ROTARY), "copy", FT_NONE, m->q_len, 1, 4, RAISED);
    if (!m->arch->rotary_complex) ft__no_grad_kernels(&m->b, FT_AT(ROTARY), "copy", FT_NONE, m->q_len, dim, 4, 1);
}

static void make_tables(ft_maker *m, int64_t dim)
{
    ft_build *b = &m->b;
    ft_dtype low = b->stored;
    ft__buffer(b, 1, dim / 2, 4); /* frequencies */
    bool training = b->training;
    b->training = false;
    raise_angles(m, dim);
    ft_ref angle = ft__activation(b, m->q_len, dim, FT_FP32);
    ft_ref positions = ft__pointwise(b, FT_AT(ROTARY), "addu", angle); /* outer product of positions and frequencies */
    ft_ref c = ft__pointwise(b, FT_AT(ROTARY), "cos", positions), s = ft__pointwise(b, FT_AT(ROTARY), "sin", positions);
    c = ft__pointwise(b, FT_AT(ROTARY), "mulu", c);
    s = ft__pointwise(b, FT_AT(ROTARY), "mulu", s);
    /* transformers' OLMo and Ernie turn in fp32 and cast back; a fused kernel reads what it gets. */
    bool wide = m->arch->rotary_tables_fp32 && !m->stack->fused_rotary && !m->engine;
    m->cos = wide ? c : ft__cast(b, FT_AT(ROTARY), c, low);
    m->sin = wide ? s : ft__cast(b, FT_AT(ROTARY), s, low);
    b->training = training;
    ft__module(b, 1);
}

void ft__part_rotary_tables(ft_maker *m, int64_t dim)
{
    const ft_arch *a = m->arch;
    bool written = ft__part_spelled_out(m);
    if (a->rotary_lookups > 0 && written) { /* kept: every layer takes its own rows */
        m->cos = ft__buffer(&m->b, m->q_len, dim, ft_dtype_bytes(m->b.stored));
        m->sin = ft__buffer(&m->b, m->q_len, dim, ft_dtype_bytes(m->b.stored));
        return;
    }
    if (a->rotary_twice && written && ft__part_mask_kinds(a) > 1) make_tables(m, dim);
    make_tables(m, dim);
}

/* x cos + rotate_half(x) sin; the half turn is a negated slice and a concatenation. Cohere raises x before that, Ernie
 * what it made of it. */
static ft_ref rotate_half(ft_maker *m, ft_at at, ft_ref x, int64_t dim)
{
    ft_build *b = &m->b;
    int64_t rows = ft__tensor_of(b, x)->rows;
    ft_ref wide = m->arch->rotary_fp32 ? ft__cast(b, at, x, FT_FP32) : x;
    if (!m->arch->rotary_repeats) x = m->arch->rotary_raised_twice ? ft__cast(b, at, x, FT_FP32) : wide;
    ft_ref straight = ft__mul(b, at, wide, m->cos);
    ft_ref upper = ft__slice(b, x, rows, dim / 2), lower = ft__slice(b, x, rows, dim / 2);
    lower = ft__pointwise(b, at, "neg", lower);
    ft_ref both[2] = {lower, upper};
    ft_ref turned = ft__cat(b, at, 2, both, rows, dim);
    if (m->arch->rotary_fp32) turned = ft__cast(b, at, turned, FT_FP32);
    turned = ft__mul(b, at, turned, m->sin);
    return ft__add(b, at, straight, turned);
}

/* Both halves of x turned at once: four products with tables of half the width (gpt_oss). The result is dense. */
static ft_ref rotate_split(ft_maker *m, ft_at at, ft_ref x, int64_t dim)
{
    ft_build *b = &m->b;
    int64_t rows = ft__tensor_of(b, x)->rows, half[2] = {dim / 2, dim - dim / 2};
    ft_ref part[2];
    ft__split(b, x, 2, half, part);
    ft_ref both[2], left = ft__mul(b, at, part[0], m->cos), right = ft__mul(b, at, part[1], m->sin);
    both[0] = ft__pointwise2(b, at, "sub", left, right);
    left = ft__mul(b, at, part[1], m->cos);
    right = ft__mul(b, at, part[0], m->sin);
    both[1] = ft__add(b, at, left, right);
    return ft__cat(b, at, 2, both, rows, dim);
}

/* Pairs as complex numbers, raised to be turned by one product and lowered again (llama4). */
static ft_ref rotate_complex(ft_maker *m, ft_at at, ft_ref x)
{
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    return ft__cast(b, at, ft__mul(b, at, ft__cast(b, at, x, FT_FP32), m->cos), low);
}

/* An axis of one changes nothing by being moved: heads of a single token lie in order, unless gaps of a fused
 * projection lie between sequences; PyTorch, which asks is_contiguous, takes its vectorised kernels for them. */
ft_ref ft__part_by_head(ft_maker *m, ft_ref x, int64_t heads, int64_t dim)
{
    bool moved = m->q_len > 1 || (ft__tensor_of(&m->b, x)->gaps && m->batch > 1);
    return ft__view(&m->b, x, m->batch * m->q_len * heads, dim, moved);
}

ft_ref ft__part_rotate(ft_maker *m, ft_at at, ft_ref x, int64_t heads, int64_t head_dim, int64_t rotary_dim)
{
    ft_build *b = &m->b;
    int64_t rows = m->batch * m->q_len * heads;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    /* Most models turn transposed queries; gptj, codegen and llama4 turn them as they come and transpose afterwards. */
    bool complex = m->arch->rotary_complex;
    bool as_it_comes = complex || (m->arch->rotary_interleaved && m->arch->scores_fp32);
    x = as_it_comes ? ft__view(b, x, rows, head_dim, false) : ft__part_by_head(m, x, heads, head_dim);
    if (m->stack->fused_rotary || m->engine) return ft__pointwise2(b, at, "mul", x, m->cos);
    if (complex) return rotate_complex(m, at, x);
    if (m->arch->sinks && !m->arch->sink_scales) return rotate_split(m, at, x, head_dim);
    if (rotary_dim >= head_dim || rotary_dim <= 0) {
        x = rotate_half(m, at, x, head_dim);
        if (m->arch->qk_norm_late) return x; /* normed as it is */
        if (!m->arch->rotary_joins) return ft__cast(b, at, x, low);
        x = ft__copy(b, at, x, rows, head_dim); /* joined with the part that is not turned, of width zero */
        if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].op.name = "append";
        return x;
    }
    int64_t part[2] = {rotary_dim, head_dim - rotary_dim};
    ft_ref turned = ft__slice(b, x, rows, part[0]), kept = ft__slice(b, x, rows, part[1]);
    turned = ft__cast(b, at, rotate_half(m, at, turned, rotary_dim), low);
    ft_ref both[2] = {turned, kept};
    return ft__cat(b, at, 2, both, rows, head_dim);
}

/* Rows of a table that is kept, taken out and repeated for neighbouring pairs in every layer, with all the views that
 * such indexing makes (modeling_gptj.py, modeling_codegen.py: apply_rotary_pos_emb, rotate_every_two). */
void ft__part_rotary_rows(ft_maker *m)
{
    enum { REPEATED = 4, VIEWS = 25 }; /* cosines and sines, for queries and for keys */
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    if (a->rotary_repeats && !m->stack->fused_rotary && !m->engine) /* both tables, for queries and keys alike */
        ft__no_grad_kernels(b, FT_AT(ATTN_ROTARY), "copy", FT_NONE, m->q_len, a->rotary_dim, ft_dtype_bytes(b->stored),
                            2);
    if (a->rotary_lookups < 1 || !ft__part_spelled_out(m)) return;
    ft__no_grad_kernels(b, FT_AT(ATTN_ROTARY), "copy", FT_NONE, m->batch * m->q_len, m->arch->rotary_dim,
                        ft_dtype_bytes(b->stored), (int)m->arch->rotary_lookups + REPEATED);
    for (int i = 0; i < VIEWS; i++) ft__view(b, m->cos, m->q_len, m->arch->rotary_dim, false);
}
