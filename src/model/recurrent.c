/* recurrent.c: the recurrent block of Griffin (arXiv 2402.19427) as RecurrentGemma has it: two products in, a short
 * convolution, gates by a product of each head's block, a recurrence by channel, and a product out.
 *
 * transformers walks over the tokens in Python, a handful of small kernels each; an engine's scan is one kernel. */
#include "graph/emit.h"
#include "model/mixers.h"
#include "model/state_space.h"

/* A sigmoid of a product of each head by itself. */
static ft_ref gate(ft_maker *m, ft_ref x, int64_t tokens, int64_t width)
{
    ft_build *b = &m->b;
    int64_t heads = m->arch->heads, block = width / heads;
    ft_ref weight = ft__parameter(b, "gate.weight", heads * block, block),
           bias = ft__parameter(b, "gate.bias", heads, block);
    ft_ref by_heads = ft__contiguous(b, FT_AT(MIXER_GATES), ft__view(b, x, heads * tokens, block, true));
    ft_ref y = ft__matmul(b, FT_AT(MIXER_GATES), by_heads, weight, heads, tokens, block, block, "nn");
    y = ft__pointwise_in_place(b, FT_AT(MIXER_GATES), "add", y, bias);
    y = ft__contiguous(b, FT_AT(MIXER_GATES), ft__view(b, y, tokens, width, true));
    return ft__pointwise(b, FT_AT(MIXER_GATES), "sigmoid", y);
}

static ft_ref scanned(ft_maker *m, ft_ref x, ft_ref decay, int64_t tokens, int64_t width)
{
    ft_build *b = &m->b;
    ft_at at = FT_AT(SCAN_STATE);
    bool keeps = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (keeps) ft__cache(b, m->batch, width, 4);
    if (ft__scan_has_kernels(m)) {
        ft_op op = ft__bytes_kernel("selective_scan", b->stored, 0, 3 * (double)tokens * (double)width);
        return ft__scan_step(m, at, op, tokens, width, b->stored, (ft_ref[]){x, decay}, 2);
    }
    /* A token's decay and input are raised one by one, and what comes out is lowered and copied into its row. */
    decay = ft__looped(b, ft__cast(b, at, ft__each_step(b, decay, m->q_len), FT_FP32), m->q_len);
    ft_ref wide = ft__looped(b, ft__cast(b, at, ft__each_step(b, x, m->q_len), FT_FP32), m->q_len);
    ft_ref state = ft__looped(b, ft__mul(b, at, decay, wide), m->q_len);
    state = ft__looped(b, ft__add(b, at, state, wide), m->q_len);
    state = ft__looped(b, ft__cast(b, at, state, b->stored), m->q_len);
    return ft__looped(b, ft__copy(b, at, state, tokens, width), m->q_len);
}

ft_ref ft__part_recurrent(ft_maker *m, ft_ref x)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    int64_t tokens = m->batch * m->q_len, width = a->ssm_inner > 0 ? a->ssm_inner : a->hidden;
    ft__module(b, 4);
    ft_ref y = ft__linear(b, FT_AT(MIXER_IN_PROJ), x, width, FT_BIAS, FT_CUT_COLUMNS);
    y = ft__part_activation(m, FT_AT(MIXER_ACT), a->activation, y);
    ft_ref h = ft__linear(b, FT_AT(MIXER_IN_PROJ), x, width, FT_BIAS, FT_CUT_COLUMNS);
    ft_scan conv = {.batch = m->batch, .length = m->q_len, .kernel = a->conv_kernel, .conv_width = width};
    h = ft__scan_conv(m, &conv, h);
    ft_ref enters = gate(m, h, tokens, width), forgets = gate(m, h, tokens, width);
    ft_ref rate = ft__pointwise(b, FT_AT(SCAN_A), "softplus", ft__parameter(b, "recurrent_param", 1, width));
    ft_ref log = ft__mul(b, FT_AT(SCAN_A), ft__pointwise(b, FT_AT(SCAN_A), "mulu", forgets), rate);
    ft_ref decay = ft__pointwise(b, FT_AT(SCAN_A), "exp", log);
    ft_ref left = ft__pointwise(b, FT_AT(SCAN_A), "exp", ft__pointwise(b, FT_AT(SCAN_A), "mulu", log));
    left = ft__pointwise(b, FT_AT(SCAN_A), "sqrt", ft__pointwise(b, FT_AT(SCAN_A), "addu", left));
    h = ft__mul(b, FT_AT(SCAN_X), ft__mul(b, FT_AT(SCAN_X), h, enters), left);
    h = scanned(m, h, decay, tokens, width);
    return ft__linear(b, FT_AT(MIXER_OUT_PROJ), ft__mul(b, FT_AT(MIXER_GATES), h, y), a->hidden, FT_BIAS, FT_CUT_ROWS);
}
