/* mamba.c: the first Mamba (Gu & Dao, arXiv 2312.00752): a product in, a short convolution, steps and projections that
 * depend on the token, a scan over a state of each channel, a gate, a product out.
 *
 * transformers without the mamba-ssm kernels walks over the tokens in Python, a handful of small kernels each; the
 * package's selective scan is one kernel. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/state_space.h"

typedef struct sizes {
    int64_t tokens, inner, state, rank;
} sizes;

static ft_ref scan_written_out(ft_maker *m, const sizes *s, ft_ref x, ft_ref dt, ft_ref bc, ft_ref a_log)
{
    ft_build *b = &m->b;
    int64_t cells = s->tokens * s->inner, times = m->q_len;
    ft_at at = FT_AT(SCAN_STATE);
    ft_ref rate = ft__pointwise(b, FT_AT(SCAN_A), "exp", ft__cast(b, FT_AT(SCAN_A), a_log, FT_FP32));
    ft_ref step = ft__pointwise(b, FT_AT(SCAN_DT), "softplus", ft__cast(b, FT_AT(SCAN_DT), dt, FT_FP32));
    ft_ref one[2] = {ft__view(b, step, cells, 1, false), rate};
    ft_ref decay = ft__pointwise(b, FT_AT(SCAN_DA), "exp",
                                 ft__pointwise_over(b, FT_AT(SCAN_DA), "mul", 2, one, cells, s->state));
    ft_ref both[2] = {ft__view(b, step, cells, 1, false),
                      ft__cast(b, FT_AT(SCAN_B), ft__slice(b, bc, s->tokens, s->state), FT_FP32)};
    ft_ref fresh = ft__pointwise_over(b, FT_AT(SCAN_DB), "mul", 2, both, cells, s->state);
    fresh = ft__mul(b, FT_AT(SCAN_DBX), fresh, ft__view(b, ft__cast(b, FT_AT(SCAN_X), x, FT_FP32), cells, 1, false));
    /* Each token's share is selected, and to autograd each selection is of the whole: a tensor of zeros as large, with
     * one slice in it, is added up for every token. */
    decay = ft__each_step(b, decay, times);
    fresh = ft__each_step(b, fresh, times);
    ft_ref state = ft__looped(b, ft__mul(b, at, decay, fresh), times);
    state = ft__looped(b, ft__add(b, at, state, fresh), times);
    ft_ref low = ft__looped(b, ft__cast(b, at, state, b->stored), times);
    ft_ref query = ft__slice(b, bc, s->tokens, s->state);
    ft_ref y = ft__looped(b, ft__matmul(b, FT_AT(SCAN_Y), low, query, s->tokens, s->inner, 1, s->state, "nn"), times);
    if (m->work->task == FT_PREFILL) ft__scan_keep(b, m->batch * s->inner, s->state, FT_FP32, state);
    y = ft__contiguous(b, FT_AT(SCAN_Y), ft__view(b, y, s->tokens, s->inner, true));
    return y;
}

/* The skip and the gate are the same kernel's; a node hands gradients to its first four inputs, so they are a second.
 * */
static ft_ref scan_fused(ft_maker *m, const sizes *s, ft_ref x, ft_ref dt, ft_ref bc, ft_ref a_log, ft_ref gate,
                         ft_ref skip)
{
    ft_build *b = &m->b;
    double cells = (double)s->tokens * (double)s->inner * (double)s->state;
    bool one = m->work->task == FT_DECODE;
    if (one || m->work->task == FT_PREFILL) ft__cache(b, m->batch * s->inner, s->state, 4);
    ft_op op = ft__bytes_kernel("selective_scan", b->stored, one ? 8 * cells : 0, 9 * cells);
    ft_ref y = ft__scan_step(m, FT_AT(MIXER_SCAN_OUTPUT), op, s->tokens, s->inner, b->stored,
                             (ft_ref[]){x, dt, bc, a_log}, 4);
    ft_op end = ft__bytes_kernel("selective_scan", b->stored, 0, 0);
    return ft__scan_step(m, FT_AT(MIXER_GATES), end, s->tokens, s->inner, b->stored, (ft_ref[]){y, gate, skip}, 3);
}

ft_ref ft__part_mamba(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    sizes s = {.tokens = m->batch * m->q_len, .inner = a->ssm_inner, .state = a->state, .rank = a->dt_rank};
    ft_bias bias = a->ssm_bias ? FT_BIAS : FT_NO_BIAS;
    int64_t halves[2] = {s.inner, s.inner}, widths[2] = {s.rank, 2 * s.state};
    ft_ref part[2], piece[2];
    ft__module(b, 2);
    ft__split(b, ft__linear(b, FT_AT(MIXER_IN_PROJ), x, 2 * s.inner, bias, FT_CUT_COLUMNS), 2, halves, part);
    ft_scan conv = {.batch = m->batch, .length = m->q_len, .kernel = a->conv_kernel, .conv_width = s.inner};
    ft_ref h = ft__scan_conv(m, &conv, part[0]);
    ft__split(b, ft__linear(b, FT_AT(MIXER_GATES), h, s.rank + 2 * s.state, FT_NO_BIAS, FT_CUT_ROWS), 2, widths, piece);
    ft_ref bc = piece[1], rank = piece[0];
    if (a->ssm_norms_inside) {
        int64_t two[2] = {s.state, s.state};
        ft_ref split[2];
        rank = ft__part_norm(m, FT_AT(MIXER_GATES), rank, a->norm, false);
        ft__split(b, bc, 2, two, split);
        for (int i = 0; i < 2; i++) split[i] = ft__part_norm(m, FT_AT(MIXER_GATES), split[i], a->norm, false);
        bc = ft__cat(b, FT_AT(MIXER_GATES), 2, split, s.tokens, 2 * s.state);
    }
    ft_ref dt = ft__linear(b, FT_AT(MIXER_GATES), rank, s.inner, FT_BIAS, FT_CUT_COLUMNS);
    ft_ref a_log = ft__parameter(b, "A_log", s.inner, s.state), skip = ft__parameter(b, "D", 1, s.inner), y;
    if (ft__scan_has_kernels(m)) {
        y = scan_fused(m, &s, h, dt, bc, a_log, part[1], skip);
    } else {
        y = scan_written_out(m, &s, h, dt, bc, a_log);
        y = ft__add(b, FT_AT(SCAN_D), y, ft__mul(b, FT_AT(SCAN_D), h, skip));
        y = ft__mul(b, FT_AT(MIXER_NORM), y, ft__part_activation(m, FT_AT(MIXER_ACT), "silu", part[1]));
    }
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), y, a->hidden, bias, FT_CUT_ROWS);
}
