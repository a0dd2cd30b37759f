/* rwkv.c: RWKV's fourth form (arXiv 2305.13048): each token is mixed with the one before, three products, a weighted
 * mean over all earlier tokens with a decay by channel, and a gate; its network is mixed and gated the same way.
 *
 * transformers walks over the tokens in Python, some twenty small kernels each, unless its CUDA kernel could be
 * compiled where it runs; an engine's scan is one kernel. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/state_space.h"

/* x m + before (1 - m), by channel. */
static ft_ref blended(ft_maker *m, ft_ref x, ft_ref before)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(MIXER_CONV1D);
    ft_ref share = ft__parameter(b, "time_mix", 1, m->arch->hidden);
    ft_ref rest = ft__pointwise(b, at, "addu", share);
    x = ft__mul(b, at, x, share);
    return ft__add(b, at, x, ft__mul(b, at, before, rest));
}

/* Every token's place is taken by the one before it: a pad of one in front, the last cut off. */
static ft_ref shifted(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    int64_t rows = m->batch * m->q_len;
    if (m->work->task == FT_PREFILL || m->work->task == FT_DECODE)
        ft__cache(b, m->batch, m->arch->hidden, ft_dtype_bytes(b->stored));
    return ft__copy(b, FT_AT(MIXER_CONV1D), x, rows, m->arch->hidden);
}

/* One step of the loop: numerator, denominator and the largest exponent so far, then the state for the next. */
static ft_ref walked(ft_maker *m, ft_ref key, ft_ref value, int64_t width)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(SCAN_STATE);
    int64_t times = m->q_len;
    ft_ref first = ft__parameter(b, "time_first", 1, width);
    ft_ref decay = ft__pointwise(b, at, "exp", ft__parameter(b, "time_decay", 1, width));
    key = ft__looped(b, ft__cast(b, at, ft__each_step(b, key, times), FT_FP32), times);
    value = ft__each_step(b, value, times);
    ft_ref out = FT_NONE, bound[2] = {first, decay};
    for (int i = 0; i < 2; i++) { /* what goes out, and what is kept */
        ft_ref raised = ft__looped(b, ft__add(b, at, key, bound[i]), times);
        ft_ref most = ft__looped(b, ft__pointwise2(b, at, "maximum", raised, key), times);
        ft_ref again = ft__looped(b, ft__add(b, at, key, bound[i]), times); /* the sum is not kept but made anew */
        ft_ref old = ft__looped(b, ft__pointwise2(b, at, "sub", i ? again : key, most), times);
        old = ft__looped(b, ft__pointwise(b, at, "exp", old), times);
        ft_ref fresh = ft__looped(b, ft__pointwise2(b, at, "sub", i ? key : again, most), times);
        fresh = ft__looped(b, ft__pointwise(b, at, "exp", fresh), times);
        ft_ref above = ft__looped(b, ft__mul(b, at, old, key), times);
        above = ft__looped(b, ft__add(b, at, above, ft__looped(b, ft__mul(b, at, fresh, value), times)), times);
        ft_ref below = ft__looped(b, ft__mul(b, at, old, key), times);
        below = ft__looped(b, ft__add(b, at, below, fresh), times);
        if (i == 0)
            out = ft__looped(b, ft__pointwise2(b, at, "div", above, below), times);
        else
            out = ft__add(b, at, out, ft__slice(b, above, ft__tensor_of(b, above)->rows, width));
    }
    out = ft__looped(b, ft__cast(b, at, out, b->stored), times);
    return ft__looped(b, ft__copy(b, at, out, ft__tensor_of(b, out)->rows, width), times); /* into its row of all */
}

static ft_ref averaged(ft_maker *m, ft_ref key, ft_ref value, int64_t tokens, int64_t width)
{
    ft_build *b = &m->b;
    bool keeps = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (keeps) ft__cache(b, 3 * m->batch, width, 4);
    if (!ft__scan_has_kernels(m)) return walked(m, key, value, width);
    ft__parameter(b, "time_first", 1, width);
    ft__parameter(b, "time_decay", 1, width);
    ft_op op = ft__bytes_kernel("selective_scan", b->stored, 0, 3 * (double)tokens * (double)width);
    return ft__scan_step(m, FT_AT(SCAN_STATE), op, tokens, width, b->stored, (ft_ref[]){key, value}, 2);
}

ft_ref ft__part_rwkv(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t width = a->ssm_inner > 0 ? a->ssm_inner : a->hidden;
    ft__module(b, 2);
    ft_ref before = shifted(m, x), part[3];
    for (int i = 0; i < 3; i++) part[i] = blended(m, x, before);
    ft_ref key = ft__linear(b, FT_AT(ATTN_K_PROJ), part[0], width, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref value = ft__linear(b, FT_AT(ATTN_V_PROJ), part[1], width, FT_NO_BIAS, FT_CUT_COLUMNS);
    ft_ref gate = ft__linear(b, FT_AT(ATTN_GATE), part[2], width, FT_NO_BIAS, FT_CUT_COLUMNS);
    gate = ft__pointwise(b, FT_AT(MIXER_GATES), "sigmoid", gate);
    ft_ref mean = averaged(m, key, value, m->batch * m->q_len, width);
    return ft__linear(b, FT_AT(ATTN_O_PROJ), ft__mul(b, FT_AT(MIXER_GATES), gate, mean), a->hidden, FT_NO_BIAS,
                      FT_CUT_ROWS);
}

ft_ref ft__part_rwkv_feed(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    ft__module(b, 2);
    ft_ref before = shifted(m, x);
    ft_ref read = blended(m, x, before), gated = blended(m, x, before);
    ft_ref h = ft__linear(b, FT_AT(MLP_UP_PROJ), read, a->ffn, FT_NO_BIAS, FT_CUT_COLUMNS);
    h = ft__pointwise(b, FT_AT(MLP_ACT), "powu", ft__pointwise(b, FT_AT(MLP_ACT), "relu", h));
    h = ft__linear(b, FT_AT(MLP_DOWN_PROJ), h, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
    ft_ref gate = ft__linear(b, FT_AT(MLP_GATE_PROJ), gated, a->hidden, FT_NO_BIAS, FT_WHOLE);
    return ft__mul(b, FT_AT(MLP_ACT), ft__pointwise(b, FT_AT(MLP_ACT), "sigmoid", gate), h);
}
