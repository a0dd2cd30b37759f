/* parts.c: norms, activations, rotary embeddings, feed-forward networks, the head. */
#include "model/parts.h"

#include <string.h>

#include "graph/emit.h"

/* -- norms ------------------------------------------------------------------------------------- */

/* Transformers writes RMSNorm out: raise to fp32, square, mean, add epsilon, reciprocal root, product, and the weight
 * before or after the way back down. */
static ft_ref rmsnorm(ft_maker *m, const char *name, ft_ref x, bool wide)
{
    ft_build *b = &m->b;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref h = ft__cast(b, name, x, FT_FP32);
    ft_ref power = ft__pointwise(b, name, "powu", h);
    ft_ref mean = ft__reduce(b, name, "mean", power);
    mean = ft__pointwise(b, name, "addu", mean);
    mean = ft__pointwise(b, name, "rsqrt", mean);
    h = ft__mul(b, name, h, mean);
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    ft__module(b, 1);
    if (!wide) {
        h = ft__cast(b, name, h, low);
        return ft__mul(b, name, weight, h);
    }
    if (!strncmp(m->arch->model_type, "gemma", 5)) { /* 1 + w */
        weight = ft__cast(b, name, weight, FT_FP32);
        weight = ft__pointwise(b, name, "addu", weight);
    }
    h = ft__mul(b, name, weight, h);
    return ft__cast(b, name, h, low);
}

/* Layer norm with w + 1 for its weight, which is one more kernel over the weights alone (NemotronLayerNorm1P). Under
 * autocast that class casts all operands down by itself and norms in the low format. Transformer Engine has w + 1 as an
 * option of its kernel (zero_centered_gamma), engines add it when they load. */
static ft_ref layernorm_1p(ft_maker *m, const char *name, ft_ref x, bool biased)
{
    ft_build *b = &m->b;
    if (m->fused || m->engine) return ft__layernorm(b, name, x, biased ? FT_BIAS : FT_NO_BIAS);
    int64_t width = ft__tensor_of(b, x)->cols;
    ft_ref weight = ft__parameter(b, "norm.weight", 1, width);
    ft_ref bias = biased ? ft__parameter(b, "norm.bias", 1, width) : FT_NONE;
    weight = ft__pointwise(b, name, "addu", weight);
    bool autocast = b->autocast;
    if (autocast) {
        ft_dtype low = ft__flowing(b->math);
        x = ft__cast(b, name, x, low);
        weight = ft__cast(b, name, weight, low);
        if (bias != FT_NONE) bias = ft__cast(b, name, bias, low);
    }
    b->autocast = false;
    ft_ref y = ft__norm_with(b, name, "layernorm", x, weight, bias);
    b->autocast = autocast;
    return y;
}

ft_ref ft__part_norm(ft_maker *m, const char *name, ft_ref x, ft_norm kind, bool bias)
{
    if (kind == FT_LAYERNORM_1P) return layernorm_1p(m, name, x, bias);
    if (kind == FT_LAYERNORM) return ft__layernorm(&m->b, name, x, bias ? FT_BIAS : FT_NO_BIAS);
    if (m->fused || m->engine) return ft__rmsnorm_fused(&m->b, name, x);
    return rmsnorm(m, name, x, kind == FT_RMSNORM_WIDE);
}

/* -- activations ------------------------------------------------------------------------------- */

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), one kernel per sign. */
static ft_ref gelu_written_out(ft_build *b, const char *name, ft_ref x)
{
    ft_ref half = ft__pointwise(b, name, "mulu", x);
    ft_ref cube = ft__pointwise(b, name, "powu", x);
    cube = ft__pointwise(b, name, "mulu", cube);
    ft_ref inner = ft__add(b, name, x, cube);
    inner = ft__pointwise(b, name, "mulu", inner);
    inner = ft__pointwise(b, name, "tanh", inner);
    inner = ft__pointwise(b, name, "addu", inner);
    return ft__mul(b, name, half, inner);
}

/* The same, written out in another order inside a function with its own gradient, which keeps x alone (bloom). */
static ft_ref gelu_of_bloom(ft_build *b, const char *name, ft_ref x)
{
    bool training = b->training;
    b->training = false;
    ft_ref half = ft__pointwise(b, name, "mulu", x), inner = ft__pointwise(b, name, "mulu", x);
    ft_ref square = ft__mul(b, name, ft__pointwise(b, name, "mulu", x), x);
    square = ft__pointwise(b, name, "addu", square);
    inner = ft__mul(b, name, inner, square);
    inner = ft__pointwise(b, name, "tanh", inner);
    inner = ft__pointwise(b, name, "addu", inner);
    (void)half; /* the other operand of the product, of x's size as x is */
    b->training = training;
    return ft__pointwise2(b, name, "gelu_again", x, inner);
}

ft_ref ft__part_activation(ft_maker *m, const char *name, const char *activation, ft_ref x)
{
    ft_build *b = &m->b;
    bool one = m->fused || m->engine;
    ft__module(b, 1);
    if (!one && !strcmp(m->arch->model_type, "bloom")) return gelu_of_bloom(b, name, x);
    if (!strcmp(activation, "gelu_new") || !strcmp(activation, "gelu_fast"))
        return one ? ft__pointwise(b, name, "gelu", x) : gelu_written_out(b, name, x);
    if (!strcmp(activation, "quick_gelu")) {
        if (one) return ft__pointwise(b, name, "gelu", x);
        ft_ref gate = ft__pointwise(b, name, "mulu", x);
        gate = ft__pointwise(b, name, "sigmoid", gate);
        return ft__mul(b, name, x, gate);
    }
    if (!strcmp(activation, "relu2")) {
        if (one) return ft__pointwise(b, name, "relu2", x); /* Megatron-Core's squared_relu is compiled, gradient too */
        x = ft__pointwise(b, name, "relu", x);
        return ft__pointwise(b, name, "powu", x);
    }
    if (!strcmp(activation, "relu")) return ft__pointwise(b, name, "relu", x);
    if (!strcmp(activation, "silu") || !strcmp(activation, "swish")) return ft__pointwise(b, name, "silu", x);
    if (!strcmp(activation, "tanh")) return ft__pointwise(b, name, "tanh", x);
    if (!strcmp(activation, "sigmoid")) return ft__pointwise(b, name, "sigmoid", x);
    return ft__pointwise(b, name, "gelu", x);
}

/* -- rotary embeddings ------------------------------------------------------------------------- */

void ft__part_rotary_tables(ft_maker *m, int64_t dim)
{
    ft_build *b = &m->b;
    ft_dtype low = b->stored;
    ft__buffer(b, 1, dim / 2, 4); /* frequencies */
    bool training = b->training;
    b->training = false;
    ft_ref angle = ft__activation(b, m->q_len, dim, FT_FP32);
    ft_ref positions = ft__pointwise(b, "rotary", "addu", angle); /* outer product of positions and frequencies */
    ft_ref c = ft__pointwise(b, "rotary", "cos", positions), s = ft__pointwise(b, "rotary", "sin", positions);
    c = ft__pointwise(b, "rotary", "mulu", c);
    s = ft__pointwise(b, "rotary", "mulu", s);
    /* transformers' OLMo turns in fp32 and casts back; a fused kernel reads what it gets. */
    bool wide = !strncmp(m->arch->model_type, "olmo", 4) && strcmp(m->arch->model_type, "olmoe") && !m->fused &&
                !m->engine;
    m->cos = wide ? c : ft__cast(b, "rotary", c, low);
    m->sin = wide ? s : ft__cast(b, "rotary", s, low);
    b->training = training;
    ft__module(b, 1);
}

/* x cos + rotate_half(x) sin; the half turn is a negated slice and a concatenation. */
static ft_ref rotate_half(ft_maker *m, const char *name, ft_ref x, int64_t dim)
{
    ft_build *b = &m->b;
    int64_t rows = ft__tensor_of(b, x)->rows;
    ft_ref straight = ft__mul(b, name, x, m->cos);
    ft_ref upper = ft__slice(b, x, rows, dim / 2), lower = ft__slice(b, x, rows, dim / 2);
    lower = ft__pointwise(b, name, "neg", lower);
    ft_ref both[2] = {lower, upper};
    ft_ref turned = ft__cat(b, name, 2, both, rows, dim);
    turned = ft__mul(b, name, turned, m->sin);
    return ft__add(b, name, straight, turned);
}

/* Both halves of x turned at once: four products with tables of half the width (gpt_oss). The result is dense. */
static ft_ref rotate_split(ft_maker *m, const char *name, ft_ref x, int64_t dim)
{
    ft_build *b = &m->b;
    int64_t rows = ft__tensor_of(b, x)->rows, half[2] = {dim / 2, dim - dim / 2};
    ft_ref part[2];
    ft__split(b, x, 2, half, part);
    ft_ref both[2];
    both[0] = ft__pointwise2(b, name, "sub", ft__mul(b, name, part[0], m->cos), ft__mul(b, name, part[1], m->sin));
    both[1] = ft__add(b, name, ft__mul(b, name, part[1], m->cos), ft__mul(b, name, part[0], m->sin));
    return ft__cat(b, name, 2, both, rows, dim);
}

ft_ref ft__part_rotate(ft_maker *m, const char *name, ft_ref x, int64_t heads, int64_t head_dim, int64_t rotary_dim)
{
    ft_build *b = &m->b;
    int64_t rows = m->batch * m->q_len * heads;
    ft_dtype low = ft__tensor_of(b, x)->dtype;
    /* Most models turn transposed queries; gptj and codegen turn them as they come and transpose afterwards. */
    x = ft__view(b, x, rows, head_dim, !(m->arch->rotary_interleaved && m->arch->scores_fp32));
    if (m->fused || m->engine) return ft__pointwise2(b, name, "mul", x, m->cos);
    if (m->arch->sinks) return rotate_split(m, name, x, head_dim);
    if (rotary_dim >= head_dim || rotary_dim <= 0) {
        x = rotate_half(m, name, x, head_dim);
        if (strcmp(m->arch->model_type, "phi3")) return ft__cast(b, name, x, low);
        x = ft__copy(b, name, x, rows, head_dim); /* joined with the part that is not turned, of width zero */
        if (b->status == FT_OK) b->g->nodes[b->g->node_count - 1].op.name = "append";
        return x;
    }
    int64_t part[2] = {rotary_dim, head_dim - rotary_dim};
    ft_ref turned = ft__slice(b, x, rows, part[0]), kept = ft__slice(b, x, rows, part[1]);
    turned = rotate_half(m, name, turned, rotary_dim);
    ft_ref both[2] = {turned, kept};
    return ft__cat(b, name, 2, both, rows, head_dim);
}

/* -- feed-forward ------------------------------------------------------------------------------ */

ft_ref ft__part_mlp(ft_maker *m, const char *name, ft_ref x, int64_t inter, const char *activation, bool gated,
                    bool fused_gate_up, ft_bias bias)
{
    ft_build *b = &m->b;
    int64_t width = ft__tensor_of(b, x)->cols;
    bool one = m->fused || m->engine;
    ft__module(b, 1);
    ft_ref h;
    if (gated && (fused_gate_up || one)) {
        ft_ref both = ft__linear(b, "mlp.gate_up_proj", x, 2 * inter, bias, FT_CUT_COLUMNS);
        int64_t halves[2] = {inter, inter};
        ft_ref part[2];
        if (one) {
            h = ft__swiglu(b, "mlp.act", both, FT_NONE);
        } else {
            ft__split(b, both, 2, halves, part);
            ft_ref gate = ft__part_activation(m, "mlp.act", activation, part[0]);
            h = ft__mul(b, "mlp.act", part[1], gate);
        }
    } else if (gated) {
        ft_ref gate = ft__linear(b, "mlp.gate_proj", x, inter, bias, FT_CUT_COLUMNS);
        gate = ft__part_activation(m, "mlp.act", activation, gate);
        ft_ref up = ft__linear(b, "mlp.up_proj", x, inter, bias, FT_CUT_COLUMNS);
        h = ft__mul(b, "mlp.act", gate, up);
    } else {
        h = ft__linear(b, "mlp.up_proj", x, inter, bias, FT_CUT_COLUMNS);
        h = ft__part_activation(m, "mlp.act", activation, h);
        if (m->arch->activation_dropout > 0) h = ft__dropout(b, "mlp.dropout", h, m->arch->activation_dropout);
    }
    (void)name;
    return ft__linear(b, "mlp.down_proj", h, width, bias, FT_CUT_ROWS);
}

/* -- head -------------------------------------------------------------------------------------- */

ft_ref ft__part_head(ft_maker *m, ft_ref x, ft_ref table)
{
    ft_build *b = &m->b;
    const ft_arch *a = m->arch;
    bool last_only = m->work->task == FT_PREFILL || m->work->task == FT_DECODE;
    if (last_only && m->q_len > 1) x = ft__slice(b, x, m->batch, ft__tensor_of(b, x)->cols);
    int64_t rank = b->lora_rank;
    b->lora_rank = 0;
    ft_ref logits;
    ft_dtype math = b->math;
    /* Recipes cover the layers alone: Transformer Engine's, torchao's (Accelerate leaves out the first and last
     * product, torchtitan the output). */
    if (b->training && ft_dtype_bytes(math) < 2) b->math = ft__flowing(math);
    ft_ref bias = a->head_bias && table != FT_NONE ? ft__parameter(b, "head.bias", 1, a->vocab) : FT_NONE;
    if (table != FT_NONE)
        logits = ft__linear_with(b, "lm_head", x, table, a->vocab, bias, FT_CUT_COLUMNS);
    else
        logits = ft__linear(b, "lm_head", x, a->vocab, a->head_bias ? FT_BIAS : FT_NO_BIAS, FT_CUT_COLUMNS);
    b->lora_rank = rank;
    b->math = math;
    ft__module(b, 1);
    if (a->logit_softcap > 0) {
        logits = ft__pointwise(b, "lm_head.softcap", "divu", logits);
        logits = ft__pointwise(b, "lm_head.softcap", "tanh", logits);
        logits = ft__pointwise(b, "lm_head.softcap", "mulu", logits);
    }
    return m->work->task == FT_TRAIN ? ft__loss(b, "loss", logits, a->loss_fp32) : logits;
}
