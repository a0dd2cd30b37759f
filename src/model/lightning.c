/* lightning.c: linear attention whose decay is fixed for each head (MiniMax-01, arXiv 2501.08313): one product for
 * queries, keys and values, blocks of 256 tokens that attend inside and pass a state on, a norm, a gate. And the gated
 * short convolution of LFM2, which mixes no further than its width. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/state_space.h"

enum { BLOCK = 256 };

ft_ref ft__part_lightning(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, wide = a->heads * a->head_dim, dim = a->head_dim, lanes = m->batch * a->heads;
    int64_t side = m->q_len < BLOCK ? m->q_len : BLOCK, blocks = (m->q_len + side - 1) / side, all = lanes * blocks;
    int64_t parts[3] = {wide, wide, wide};
    ft_ref part[3];
    ft__module(b, 2);
    ft_ref qkv = ft__linear(b, FT_AT(MIXER_IN_PROJ), x, 3 * wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    qkv = ft__part_activation(m, FT_AT(MIXER_ACT), a->activation, qkv);
    ft__split(b, qkv, 3, parts, part);
    ft_ref q = ft__view(b, part[0], tokens * a->heads, dim, true),
           k = ft__view(b, part[1], tokens * a->heads, dim, true);
    ft_ref v = ft__view(b, part[2], tokens * a->heads, dim, true), y;
    if (m->work->task == FT_DECODE || m->work->task == FT_PREFILL) ft__cache(b, lanes * dim, dim, 4);
    if (m->work->task == FT_DECODE) {
        ft_op op = ft__bytes_kernel("state_update", b->stored, 8 * (double)lanes * (double)dim * (double)dim, 0);
        y = ft__scan_step(m, FT_AT(MIXER_SCAN_UPDATE), op, tokens, wide, b->stored, (ft_ref[]){q, k, v}, 3);
    } else if (ft__scan_has_kernels(m)) {
        ft_op inside = ft__gemm_kernel(b->math, all, side, 2 * dim, (side + 1) / 2, "nn", false);
        ft_op across = ft__gemm_kernel(b->math, all, side, dim, 2 * dim, "nn", false);
        ft_ref near = ft__scan_step(m, FT_AT(MIXER_SCAN_PAIRS), inside, tokens, wide, b->stored, (ft_ref[]){q, k, v},
                                    3);
        y = ft__scan_step(m, FT_AT(MIXER_SCAN_OUTPUT), across, tokens, wide, b->stored, (ft_ref[]){q, k, v, near}, 4);
    } else {
        ft_ref pairs = ft__looped(b, ft__matmul(b, FT_AT(MIXER_SCAN_PAIRS), q, k, all, side, side, dim, "nt"), blocks);
        pairs = ft__looped(b, ft__pointwise(b, FT_AT(MIXER_SCAN_PAIRS), "mulu", pairs), blocks);
        ft_ref near = ft__looped(b, ft__matmul(b, FT_AT(MIXER_SCAN_PAIRS), pairs, v, all, side, dim, side, "nn"),
                                 blocks);
        ft_ref state = ft__activation(b, all * dim, dim, b->stored);
        ft_ref far = ft__looped(b, ft__matmul(b, FT_AT(MIXER_SCAN_OUTPUT), q, state, all, side, dim, dim, "nn"),
                                blocks);
        ft_ref faded = ft__looped(b, ft__pointwise(b, FT_AT(MIXER_SCAN_STATE), "mulu", k), blocks);
        ft_ref next = ft__looped(b, ft__matmul(b, FT_AT(MIXER_SCAN_STATE), faded, v, all, dim, dim, side, "tn"),
                                 blocks);
        ft__looped(b, ft__add(b, FT_AT(MIXER_SCAN_STATE), state, next), blocks);
        y = ft__looped(b, ft__add(b, FT_AT(MIXER_SCAN_OUTPUT), near, far), blocks);
        y = ft__contiguous(b, FT_AT(MIXER_SCAN_OUTPUT), ft__view(b, y, tokens, wide, true));
    }
    y = ft__part_norm(m, FT_AT(MIXER_NORM), ft__view(b, y, tokens, wide, false), FT_RMSNORM, false);
    ft_ref gate = ft__linear(b, FT_AT(MIXER_GATES), x, wide, FT_NO_BIAS, FT_CUT_COLUMNS);
    y = ft__mul(b, FT_AT(MIXER_GATES), y, ft__pointwise(b, FT_AT(MIXER_GATES), "sigmoid", gate));
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), y, a->hidden, FT_NO_BIAS, FT_CUT_ROWS);
}

ft_ref ft__part_short_conv(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t parts[3] = {a->hidden, a->hidden, a->hidden};
    ft_bias bias = a->ssm_bias ? FT_BIAS : FT_NO_BIAS;
    ft_ref part[3];
    ft__module(b, 1);
    ft__split(b, ft__linear(b, FT_AT(MIXER_IN_PROJ), x, 3 * a->hidden, bias, FT_CUT_COLUMNS), 3, parts, part);
    ft_ref h = ft__mul(b, FT_AT(MIXER_GATES), part[0], part[2]);
    ft_scan s = {.batch = m->batch, .length = m->q_len, .kernel = a->conv_kernel, .conv_width = a->hidden};
    h = ft__mul(b, FT_AT(MIXER_GATES), part[1], ft__scan_conv(m, &s, h));
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), h, a->hidden, bias, FT_CUT_ROWS);
}
